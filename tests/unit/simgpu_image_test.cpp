// Images: what the simulated driver reads out of cubins and fatbins, and that nothing it is given can crash
// it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tools/simgpu/driver/image.hpp"

namespace {

using simgpu::Image;
using simgpu::Kernel;
using Bytes = std::vector<std::byte>;

// Bytes that end where readable memory ends: the first read behind them is a fault.
class Guarded {
 public:
  explicit Guarded(const Bytes& bytes) : size_(bytes.size()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (size_ + page - 1) / page * page;
    length_ = room + page;
    void* base = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(base != MAP_FAILED);
    base_ = static_cast<std::byte*>(base);
    REQUIRE(mprotect(base_ + room, page, PROT_NONE) == 0);
    begin_ = base_ + room - size_;
    if (size_ != 0) std::memcpy(begin_, bytes.data(), size_);
  }
  ~Guarded() { munmap(base_, length_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::span<std::byte> span() { return {begin_, size_}; }

 private:
  std::size_t size_ = 0, length_ = 0;
  std::byte* base_ = nullptr;
  std::byte* begin_ = nullptr;
};

#ifdef SIMGPU_IMAGE_FOLDER

Bytes load(const std::string& name) {
  std::ifstream file(std::string(SIMGPU_IMAGE_FOLDER) + "/" + name, std::ios::binary);
  REQUIRE(file.good());
  const std::vector<char> chars((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(!chars.empty());
  Bytes bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

Image parsed(const Bytes& bytes) {
  Image image;
  std::string error;
  const bool whole = simgpu::parse_image(std::span<const std::byte>(bytes), image, error);
  INFO(error);
  REQUIRE(whole);
  return image;
}

const Kernel& kernel(const Image& image, const std::string& name) {
  const auto found = std::find_if(image.kernels.begin(), image.kernels.end(), [&](const Kernel& k) { return k.name == name; });
  INFO(name);
  REQUIRE(found != image.kernels.end());
  return *found;
}

const simgpu::Global& global(const Image& image, const std::string& name) {
  const auto found =
      std::find_if(image.globals.begin(), image.globals.end(), [&](const simgpu::Global& g) { return g.name == name; });
  INFO(name);
  REQUIRE(found != image.globals.end());
  return *found;
}

void check_parameters(const Kernel& kernel, std::vector<std::pair<unsigned, unsigned>> offsets_and_sizes) {
  std::vector<std::pair<unsigned, unsigned>> found;
  for (const auto& parameter : kernel.parameters) found.emplace_back(parameter.offset, parameter.size);
  CHECK(found == offsets_and_sizes);
}

void check_contents(const Image& image) {
  CHECK(image.kernels.size() == 3);  // not `helper`, which the host cannot call
  const Kernel& mixed = kernel(image, "_Z5mixedIiEvPT_7Block48S0_m");
  check_parameters(mixed, {{0, 8}, {8, 48}, {56, 4}, {64, 8}});
  CHECK(mixed.registers > 0);
  CHECK(mixed.static_shared >= 160);
  check_parameters(kernel(image, "_Z13no_parametersv"), {});
  check_parameters(kernel(image, "_Z10small_onescsdcPi"), {{0, 1}, {2, 2}, {8, 8}, {16, 1}, {24, 8}});

  CHECK(image.globals.size() == 4);
  CHECK(global(image, "all_zero").size == 16);
  CHECK(global(image, "all_zero").initial.empty());
  CHECK(global(image, "counter").size == 4);
  const int primes[3] = {2, 3, 5};
  CHECK(global(image, "primes").initial == std::string(reinterpret_cast<const char*>(primes), sizeof(primes)));
  const short started[5] = {0, 0, 7, 0, 0};
  CHECK(global(image, "started").initial == std::string(reinterpret_cast<const char*>(started), sizeof(started)));
}

#endif

}  // namespace

TEST_CASE("Image: nonsense is refused with a reason") {
  Image image;
  std::string error;
  CHECK_FALSE(simgpu::parse_image(nullptr, image, error));
  CHECK(!error.empty());
  for (const std::string text : {"", "x", ".version 8.0\n.target sm_90",
                                 "\x7f"
                                 "ELF"}) {
    Bytes bytes(text.size());
    if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    Guarded guarded(bytes);
    error.clear();
    CHECK_FALSE(simgpu::parse_image(std::span<const std::byte>(guarded.span()), image, error));
    CHECK(!error.empty());
  }
}

#ifdef SIMGPU_IMAGE_FOLDER

TEST_CASE("Image: kernels, parameters and variables of nvcc's files") {
  for (const char* name : {"sm_86.cubin", "sm_90.cubin", "plain.fatbin", "compressed.fatbin"}) {
    INFO(name);
    check_contents(parsed(load(name)));
  }
}

TEST_CASE("Image: the wrapper that host code registers") {
  struct {
    unsigned magic, version;
    const void* data;
    const void* more;
  } wrapper{0x466243B1, 1, nullptr, nullptr};
  const Bytes fatbin = load("plain.fatbin");
  const Bytes compressed = load("compressed.fatbin");
  wrapper.data = fatbin.data();
  Image image;
  std::string error;
  REQUIRE(simgpu::parse_image(&wrapper, image, error));
  check_contents(image);

  // Relocatable device code: the parts are listed. What several of them hold counts once.
  const void* const parts[] = {compressed.data(), fatbin.data(), nullptr};
  wrapper.version = 2;
  wrapper.data = nullptr;
  wrapper.more = parts;
  image = {};
  REQUIRE(simgpu::parse_image(&wrapper, image, error));
  check_contents(image);
}

TEST_CASE("Image: PTX alone is refused, and the reason says what to build") {
  Image image;
  std::string error;
  CHECK_FALSE(simgpu::parse_image(std::span<const std::byte>(load("ptx.fatbin")), image, error));
  CHECK(error.find("sm_86") != std::string::npos);
}

TEST_CASE("Image: truncated files are refused and nothing behind them is read") {
  for (const char* name : {"sm_86.cubin", "plain.fatbin", "compressed.fatbin"}) {
    const Bytes whole = load(name);
    for (std::size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 37) {
      Guarded guarded(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      Image image;
      std::string error;
      INFO(name << " cut to " << size);
      CHECK_FALSE(simgpu::parse_image(std::span<const std::byte>(guarded.span()), image, error));
      CHECK(!error.empty());
    }
  }
}

TEST_CASE("Image: files with flipped bits never crash the reader") {
  std::mt19937_64 random(20240229);
  for (const char* name : {"sm_86.cubin", "sm_90.cubin", "plain.fatbin", "compressed.fatbin"}) {
    const Bytes whole = load(name);
    Guarded guarded(whole);
    const auto bytes = guarded.span();
    for (int round = 0; round < 3000; ++round) {
      // Headers and tables are small beside code: half of the flips go to the first and last 2 KiB.
      const std::size_t flips = 1 + random() % 4;
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < flips; ++i) {
        std::size_t place = random() % whole.size();
        if (random() % 2 == 0) {
          const std::size_t edge = std::min<std::size_t>(2048, whole.size());
          place = random() % edge;
          if (random() % 2 == 0) place = whole.size() - 1 - place;
        }
        bytes[place] ^= static_cast<std::byte>(1U << (random() % 8));
        places.push_back(place);
      }
      Image image;
      std::string error;
      const bool good = simgpu::parse_image(std::span<const std::byte>(bytes), image, error);
      if (!good) CHECK(!error.empty());
      for (std::size_t place : places) bytes[place] = whole[place];
    }
    REQUIRE(std::equal(bytes.begin(), bytes.end(), whole.begin()));
  }
}

#endif

TEST_CASE("Image: PTX whose kernels do nothing is enough, other PTX is refused") {
  const std::string head = ".version 7.0\n.target sm_50\n.address_size 64\n";
  simgpu::Image image;
  std::string error;
  const std::string nothing =
      head + ".visible .entry nothing() { ret; }\n.entry two(.param .u32 a, .param .u64 b)\n{\n  ret;\n}\n";
  REQUIRE(simgpu::parse_image(static_cast<const void*>(nothing.c_str()), image, error));
  REQUIRE(image.kernels.size() == 2);
  CHECK(image.kernels[0].name == "nothing");
  CHECK(image.kernels[0].does_nothing);
  REQUIRE(image.kernels[1].parameters.size() == 2);
  CHECK(image.kernels[1].parameters[1].offset == 8);
  for (const char* bad : {".entry f() { mov.u32 %r0, 1; ret; }", ".entry f(", ".entry f(.param .texref t) { ret; }", ""}) {
    INFO(bad);
    simgpu::Image other;
    const std::string text = head + bad;
    CHECK_FALSE(simgpu::parse_image(static_cast<const void*>(text.c_str()), other, error));
  }
}
