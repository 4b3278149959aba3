// PTX text: only kernels that do nothing can be simulated, since nobody compiles them. They need no twin.
#include <cctype>
#include <cstring>
#include <string_view>

#include "tools/simgpu/driver/image.hpp"

namespace simgpu {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Bytes of ".u64", ".f32" and their kind; 0 when it is none.
std::uint32_t size_of_type(std::string_view type) {
  std::uint32_t bits = 0;
  for (const char c : type) {
    if (std::isdigit(static_cast<unsigned char>(c))) bits = bits * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return bits <= 64 ? bits / 8 : 0;
}

bool read_parameters(std::string_view list, Kernel& kernel) {
  std::uint32_t offset = 0;
  while (!(list = trimmed(list)).empty()) {
    const std::string_view one = trimmed(list.substr(0, list.find(',')));
    const std::size_t comma = list.find(',');
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
    const std::size_t type = one.find_first_not_of(kSpace, std::strlen(".param"));
    if (!one.starts_with(".param") || type == std::string_view::npos) return false;
    const std::uint32_t size = size_of_type(one.substr(type, one.find_first_of(kSpace, type) - type));
    if (size == 0) return false;
    offset = (offset + size - 1) / size * size;
    kernel.parameters.push_back({offset, size});
    offset += size;
  }
  return true;
}

}  // namespace

bool parse_ptx(std::string_view text, Image& image, std::string& error) {
  constexpr std::string_view kEntry = ".entry";
  error = "PTX can only be simulated when its kernels do nothing; build with a real architecture, for example sm_86";
  for (std::size_t at = text.find(kEntry); at != std::string_view::npos; at = text.find(kEntry, at)) {
    at += kEntry.size();
    const std::size_t open = text.find('(', at), close = text.find(')', at), begin = text.find('{', at),
                      end = text.find('}', at);
    const bool shaped = open < close && close < begin && begin < end && end != std::string_view::npos;
    if (!shaped || trimmed(text.substr(begin + 1, end - begin - 1)) != "ret;") return false;
    Kernel kernel;
    kernel.name = trimmed(text.substr(at, open - at));
    kernel.does_nothing = true;
    if (!read_parameters(text.substr(open + 1, close - open - 1), kernel)) return false;
    image.kernels.push_back(std::move(kernel));
    at = end;
  }
  return !image.kernels.empty();
}

}  // namespace simgpu
