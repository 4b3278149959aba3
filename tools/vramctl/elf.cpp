#include "tools/vramctl/elf.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

#include "allocator/base/unique_fd.hpp"

namespace vramd::ctl {
namespace {

// A file as bytes, mapped for the life of the object.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about {};
    if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0) return;
    const auto size = static_cast<std::size_t>(about.st_size);
    void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (start == MAP_FAILED) return;
    bytes_ = {static_cast<const char*>(start), size};
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// A copy of what stands at `offset`; false when it does not lie within the file.
template <class T>
bool read_at(std::string_view file, std::uint64_t offset, T& out) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, file.data() + offset, sizeof(T));
  return true;
}

std::string text_at(std::string_view file, std::uint64_t offset) {
  if (offset >= file.size()) return {};
  const std::string_view rest = file.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

// The versions that the file needs of other libraries (.gnu.version_r).
std::string newest_glibc(std::string_view file, const Elf64_Ehdr& header) {
  constexpr std::string_view kPrefix = "GLIBC_";
  constexpr int kMostEntries = 10000;  // a chain in a broken file may be a circle
  std::string newest;
  for (std::uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section, strings;
    if (!read_at(file, header.e_shoff + i * std::uint64_t{header.e_shentsize}, section)) return newest;
    if (section.sh_type != SHT_GNU_verneed) continue;
    if (!read_at(file, header.e_shoff + section.sh_link * std::uint64_t{header.e_shentsize}, strings)) return newest;
    int left = kMostEntries;
    std::uint64_t need_at = section.sh_offset;
    Elf64_Verneed need;
    while (left-- > 0 && read_at(file, need_at, need)) {
      std::uint64_t entry_at = need_at + need.vn_aux;
      Elf64_Vernaux entry;
      for (int count = 0; count < need.vn_cnt && left-- > 0 && read_at(file, entry_at, entry); ++count) {
        const std::string name = text_at(file, strings.sh_offset + entry.vna_name);
        const bool numbered = name.starts_with(kPrefix) && name.size() > kPrefix.size() && name[kPrefix.size()] >= '0' &&
                              name[kPrefix.size()] <= '9';
        if (numbered && version_less(newest, name.substr(kPrefix.size()))) newest = name.substr(kPrefix.size());
        if (entry.vna_next == 0) break;
        entry_at += entry.vna_next;
      }
      if (need.vn_next == 0) break;
      need_at += need.vn_next;
    }
  }
  return newest;
}

template <class Header, class ProgramHeader>
std::optional<ElfFacts> read_headers(std::string_view file, Header& header) {
  if (!read_at(file, 0, header)) return std::nullopt;
  ElfFacts facts;
  facts.machine = header.e_machine;
  facts.is_shared_library = header.e_type == ET_DYN;
  for (std::uint32_t i = 0; i < header.e_phnum; ++i) {
    ProgramHeader segment;
    if (!read_at(file, header.e_phoff + i * std::uint64_t{header.e_phentsize}, segment)) break;
    if (segment.p_type == PT_INTERP) facts.interpreter = text_at(file, segment.p_offset);
  }
  return facts;
}

}  // namespace

std::optional<ElfFacts> read_elf(const std::string& path) {
  const MappedFile mapped(path);
  const std::string_view file = mapped.bytes();
  if (file.size() < EI_NIDENT || !file.starts_with(std::string_view(ELFMAG, SELFMAG))) return std::nullopt;
  if (file[EI_DATA] != ELFDATA2LSB) return std::nullopt;  // the machines that CUDA runs on are little-endian
  if (file[EI_CLASS] == ELFCLASS32) {
    Elf32_Ehdr header;
    return read_headers<Elf32_Ehdr, Elf32_Phdr>(file, header);
  }
  if (file[EI_CLASS] != ELFCLASS64) return std::nullopt;
  Elf64_Ehdr header;
  auto facts = read_headers<Elf64_Ehdr, Elf64_Phdr>(file, header);
  if (!facts) return std::nullopt;
  facts->is_64_bit = true;
  facts->newest_glibc = newest_glibc(file, header);
  return facts;
}

std::uint16_t own_machine() {
  static const std::uint16_t kMachine = [] {
    const auto self = read_elf("/proc/self/exe");
    return self ? self->machine : std::uint16_t{EM_NONE};
  }();
  return kMachine;
}

bool version_less(const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; }

}  // namespace vramd::ctl
