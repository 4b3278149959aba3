#include "tools/simgpu/driver/image.hpp"

#include <elf.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace simgpu {
namespace {

using Bytes = std::span<const std::byte>;

// ---- Reading without trust
// ------------------------------------------------------------------------------------------

std::optional<Bytes> part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// Copied out: nothing in an image need be aligned.
template <class T>
std::optional<T> read(Bytes bytes, std::uint64_t offset) {
  const auto found = part(bytes, offset, sizeof(T));
  if (!found) return std::nullopt;
  T value;
  std::memcpy(&value, found->data(), sizeof(T));
  return value;
}

// A string that ends inside `strings`, or nothing.
std::optional<std::string_view> text(Bytes strings, std::uint64_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const char* begin = reinterpret_cast<const char*>(strings.data() + offset);
  const std::size_t room = strings.size() - offset;
  const std::size_t length = strnlen(begin, room);
  if (length == room) return std::nullopt;
  return std::string_view(begin, length);
}

// ---- Cubin: an ELF file
// ---------------------------------------------------------------------------------------------

constexpr std::uint16_t kMachineCuda = 190;             // EM_CUDA
constexpr unsigned char kKernelEntry = 0x10;            // bit of st_other: callable from the host
constexpr std::uint8_t kFormatSized = 4;                // an .nv.info record that is followed by `size` bytes
constexpr std::uint8_t kAttributeParameter = 0x17;      // {u32 index, u16 ordinal, u16 offset, u32: size in bits 18..31}
constexpr std::uint8_t kAttributeRegisters = 0x2f;      // {u32 symbol, u32 count}
constexpr std::size_t kLargestParameterBuffer = 32764;  // what CUDA 12.1 and later accept
constexpr std::size_t kMostParameters = 8192;

class Cubin {
 public:
  static std::optional<Cubin> open(Bytes bytes, std::string& error) {
    Cubin cubin(bytes);
    const auto header = read<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != kMachineCuda)
      return fail(error, "not a cubin (64-bit ELF for CUDA)");
    if (header->e_shentsize != sizeof(Elf64_Shdr)) return fail(error, "cubin: section headers of an unknown size");
    // The program headers stand last and are not needed: a file without them has lost its end.
    if (!part(bytes, header->e_phoff, std::uint64_t{header->e_phnum} * sizeof(Elf64_Phdr)))
      return fail(error, "cubin: cut short");
    if (header->e_shoff > bytes.size()) return fail(error, "cubin: section headers outside the file");
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = read<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return fail(error, "cubin: section headers outside the file");
      cubin.sections_.push_back(*section);
    }
    if (header->e_shstrndx >= cubin.sections_.size()) return fail(error, "cubin: no section names");
    const auto names = cubin.content(cubin.sections_[header->e_shstrndx]);
    if (!names) return fail(error, "cubin: section names outside the file");
    for (std::size_t i = 0; i < cubin.sections_.size(); ++i) {
      const auto name = text(*names, cubin.sections_[i].sh_name);
      if (!name) return fail(error, "cubin: a section without a name");
      cubin.names_.push_back(*name);
      cubin.by_name_.emplace(*name, i);
    }
    return cubin;
  }

  bool read_into(Image& image, std::string& error) const {
    const auto found = by_name_.find(".symtab");
    if (found == by_name_.end()) return reject(error, "cubin: no symbol table");
    const Elf64_Shdr& table = sections_[found->second];
    const auto symbols = content(table);
    if (!symbols || table.sh_link >= sections_.size()) return reject(error, "cubin: symbol table outside the file");
    const auto names = content(sections_[table.sh_link]);
    if (!names) return reject(error, "cubin: symbol names outside the file");

    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= symbols->size(); offset += sizeof(Elf64_Sym)) {
      const Elf64_Sym symbol = *read<Elf64_Sym>(*symbols, offset);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections_.size()) continue;
      const auto name = text(*names, symbol.st_name);
      if (!name) return reject(error, "cubin: a symbol without a name");
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      const auto index = static_cast<std::uint32_t>(offset / sizeof(Elf64_Sym));
      if (type == STT_FUNC && (symbol.st_other & kKernelEntry) != 0) {
        if (!read_kernel(*name, symbol, index, image, error)) return false;
      } else if (type == STT_OBJECT) {
        if (!read_global(*name, symbol, image, error)) return false;
      }
    }
    return true;
  }

 private:
  explicit Cubin(Bytes bytes) : bytes_(bytes) {}

  static std::optional<Cubin> fail(std::string& error, const char* reason) {
    error = reason;
    return std::nullopt;
  }
  static bool reject(std::string& error, std::string reason) {
    error = std::move(reason);
    return false;
  }

  std::optional<Bytes> content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return Bytes{};
    return part(bytes_, section.sh_offset, section.sh_size);
  }

  const Elf64_Shdr* section(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &sections_[found->second];
  }

  // Calls visit(attribute, payload) for each record of an .nv.info section. False if the records run out of
  // the section.
  template <class Visit>
  bool for_each_record(const Elf64_Shdr& info, Visit&& visit) const {
    const auto records = content(info);
    if (!records) return false;
    std::uint64_t at = 0;
    while (at < records->size()) {
      const auto format = read<std::uint8_t>(*records, at);
      const auto attribute = read<std::uint8_t>(*records, at + 1);
      const auto size = read<std::uint16_t>(*records, at + 2);
      if (!format || !attribute || !size) return false;
      at += 4;
      if (*format != kFormatSized) continue;
      const auto payload = part(*records, at, *size);
      if (!payload) return false;
      visit(*attribute, *payload);
      at += *size;
    }
    return true;
  }

  bool read_kernel(std::string_view name, const Elf64_Sym& symbol, std::uint32_t index, Image& image,
                   std::string& error) const {
    Kernel kernel;
    kernel.name = name;
    if (!read_parameters(kernel, error)) return false;
    // Up to sm_8x the number of registers stands in the section's header, later in a record of .nv.info.
    kernel.registers = static_cast<int>(sections_[symbol.st_shndx].sh_info >> 24);
    if (const Elf64_Shdr* info = kernel.registers == 0 ? section(".nv.info") : nullptr) {
      const bool whole = for_each_record(*info, [&](std::uint8_t attribute, Bytes payload) {
        const auto owner = read<std::uint32_t>(payload, 0);
        const auto count = read<std::uint32_t>(payload, 4);
        if (attribute == kAttributeRegisters && count && owner == index) kernel.registers = static_cast<int>(*count & 0xffff);
      });
      if (!whole) return reject(error, "cubin: broken .nv.info");
    }
    if (const Elf64_Shdr* shared = section(".nv.shared." + kernel.name)) kernel.static_shared = shared->sh_size;
    image.kernels.push_back(std::move(kernel));
    return true;
  }

  bool read_parameters(Kernel& kernel, std::string& error) const {
    const Elf64_Shdr* info = section(".nv.info." + kernel.name);
    if (info == nullptr) return true;  // no parameters
    bool valid = true;
    std::vector<bool> seen;
    const bool whole = for_each_record(*info, [&](std::uint8_t attribute, Bytes payload) {
      if (attribute != kAttributeParameter) return;
      const auto ordinal = read<std::uint16_t>(payload, 4);
      const auto offset = read<std::uint16_t>(payload, 6);
      const auto packed = read<std::uint32_t>(payload, 8);
      if (!ordinal || !offset || !packed || *ordinal >= kMostParameters) {
        valid = false;
        return;
      }
      const Parameter parameter{*offset, *packed >> 18};
      if (parameter.size == 0 || parameter.offset + parameter.size > kLargestParameterBuffer) valid = false;
      if (*ordinal >= kernel.parameters.size()) {
        kernel.parameters.resize(*ordinal + 1U);
        seen.resize(*ordinal + 1U);
      }
      kernel.parameters[*ordinal] = parameter;
      seen[*ordinal] = true;
    });
    if (!whole || !valid || std::find(seen.begin(), seen.end(), false) != seen.end())
      return reject(error, "cubin: broken parameter list of " + kernel.name);
    return true;
  }

  bool read_global(std::string_view name, const Elf64_Sym& symbol, Image& image, std::string& error) const {
    const std::string_view home = names_[symbol.st_shndx];
    if (!home.starts_with(".nv.global") && !home.starts_with(".nv.constant3")) return true;  // shared memory and the like
    const Elf64_Shdr& where = sections_[symbol.st_shndx];
    Global global{std::string(name), symbol.st_size, {}};
    if (symbol.st_value > where.sh_size || symbol.st_size > where.sh_size - symbol.st_value)
      return reject(error, "cubin: variable " + global.name + " is outside its section");
    if (where.sh_type != SHT_NOBITS) {
      const auto all = content(where);
      const auto initial = all ? part(*all, symbol.st_value, symbol.st_size) : std::nullopt;
      if (!initial) return reject(error, "cubin: variable " + global.name + " is outside the file");
      const bool zeros = std::all_of(initial->begin(), initial->end(), [](std::byte b) { return b == std::byte{0}; });
      if (!zeros) global.initial.assign(reinterpret_cast<const char*>(initial->data()), initial->size());
    }
    image.globals.push_back(std::move(global));
    return true;
  }

  Bytes bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

bool parse_cubin(Bytes bytes, Image& image, std::string& error) {
  const auto cubin = Cubin::open(bytes, error);
  Image found;
  if (!cubin || !cubin->read_into(found, error)) return false;
  image = std::move(found);
  return true;
}

// ---- Fatbin: cubins and PTX of several architectures
// ----------------------------------------------------------------

constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;
constexpr std::uint16_t kKindCubin = 2;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kLargestCubin = std::uint64_t{256} << 20;

struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // of the entries behind the header
};
static_assert(sizeof(FatbinHeader) == 16);

struct FatbinEntry {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t payload_size;
  std::uint32_t compressed_size;
  std::uint32_t unknown1[2];
  std::uint32_t architecture;
  std::uint32_t unknown2[2];
  std::uint64_t flags;
  std::uint64_t unknown3;
  std::uint64_t raw_size;
};
static_assert(sizeof(FatbinEntry) == 64);

bool parse_entry(const FatbinEntry& entry, Bytes payload, Image& image, std::string& error) {
  if ((entry.flags & kFlagLz4) != 0) {
    error =
        "fatbin: a cubin compressed with LZ4 cannot be read; build with --compress-mode=size or "
        "-Xfatbin=--no-compress";
    return false;
  }
  if ((entry.flags & kFlagZstd) == 0) return parse_cubin(payload, image, error);

  const auto compressed = part(payload, 0, entry.compressed_size);
  if (!compressed || entry.raw_size == 0 || entry.raw_size > kLargestCubin) {
    error = "fatbin: a compressed cubin of an impossible size";
    return false;
  }
  // Grows with what the frame really holds, so that a lie in `raw_size` costs no memory.
  const auto promised = ZSTD_getFrameContentSize(compressed->data(), compressed->size());
  if (promised == ZSTD_CONTENTSIZE_ERROR || (promised != ZSTD_CONTENTSIZE_UNKNOWN && promised != entry.raw_size)) {
    error = "fatbin: a compressed cubin that zstd does not know";
    return false;
  }
  std::vector<std::byte> raw(entry.raw_size);
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), compressed->data(), compressed->size());
  if (ZSTD_isError(size) != 0U) {
    error = std::string("fatbin: zstd: ") + ZSTD_getErrorName(size);
    return false;
  }
  return parse_cubin(Bytes(raw).first(size), image, error);
}

bool parse_fatbin(Bytes bytes, Image& image, std::string& error) {
  const auto header = read<FatbinHeader>(bytes, 0);
  if (!header || header->magic != kFatbinMagic || header->header_size < sizeof(FatbinHeader)) {
    error = "not a fatbin";
    return false;
  }
  const auto entries = part(bytes, header->header_size, header->size);
  if (!entries) {
    error = "fatbin: shorter than its header says";
    return false;
  }
  error =
      "fatbin: holds no cubin (PTX alone cannot be simulated); build with a real architecture, for example "
      "sm_86";
  std::uint64_t at = 0;
  while (at < entries->size()) {
    const auto entry = read<FatbinEntry>(*entries, at);
    if (!entry || entry->header_size < sizeof(FatbinEntry)) {
      error = "fatbin: a broken entry";
      return false;
    }
    const auto rest = part(*entries, at, entries->size() - at);
    const auto payload = part(*rest, entry->header_size, entry->payload_size);
    if (!payload) {
      error = "fatbin: an entry that is longer than the fatbin";
      return false;
    }
    if (entry->kind == kKindCubin && parse_entry(*entry, *payload, image, error)) {
      error.clear();
      return true;
    }
    at += entry->header_size + entry->payload_size;
  }
  return false;
}

// ---- Images in memory, whose end only they themselves tell
// ----------------------------------------------------------

constexpr std::uint32_t kWrapperMagic = 0x466243B1;

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* const* more;  // version 2: further fatbins, the last one is null
};

Bytes fatbin_extent(const void* data) {
  FatbinHeader header;
  std::memcpy(&header, data, sizeof(header));
  return {static_cast<const std::byte*>(data), header.header_size + header.size};
}

Bytes cubin_extent(const void* data) {
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  const auto* begin = static_cast<const std::byte*>(data);
  std::uint64_t end =
      std::max<std::uint64_t>(sizeof(header), header.e_shoff + std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  end = std::max(end, header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, begin + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return {begin, end};
}

void add_missing(Image& image, Image&& more) {
  for (Kernel& kernel : more.kernels)
    if (std::none_of(image.kernels.begin(), image.kernels.end(), [&](const Kernel& k) { return k.name == kernel.name; }))
      image.kernels.push_back(std::move(kernel));
  for (Global& global : more.globals)
    if (std::none_of(image.globals.begin(), image.globals.end(), [&](const Global& g) { return g.name == global.name; }))
      image.globals.push_back(std::move(global));
}

// -rdc=true: what the device linker made, if anything, and the parts that it was made of.
bool parse_linked(const Wrapper& wrapper, Image& image, std::string& error) {
  Image all;
  bool any = wrapper.data != nullptr && parse_image(wrapper.data, all, error);
  for (const void* const* next = wrapper.more; next != nullptr && *next != nullptr; ++next) {
    Image one;
    if (!parse_image(*next, one, error)) continue;
    add_missing(all, std::move(one));
    any = true;
  }
  if (any) image = std::move(all);
  return any;
}

}  // namespace

bool parse_image(std::span<const std::byte> bytes, Image& image, std::string& error) {
  const auto magic = read<std::uint32_t>(bytes, 0);
  if (magic == kFatbinMagic) return parse_fatbin(bytes, image, error);
  return parse_cubin(bytes, image, error);
}

bool parse_image(const void* data, Image& image, std::string& error) {
  if (data == nullptr) {
    error = "no image (null pointer)";
    return false;
  }
  std::uint32_t magic;
  std::memcpy(&magic, data, sizeof(magic));
  if (magic == kWrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, data, sizeof(wrapper));
    if (wrapper.version == 2) return parse_linked(wrapper, image, error);
    return parse_image(wrapper.data, image, error);
  }
  if (magic == kFatbinMagic) return parse_image(fatbin_extent(data), image, error);
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return parse_image(cubin_extent(data), image, error);
  const char* const text = static_cast<const char*>(data);
  if (std::strncmp(text, ".version", 8) == 0) return parse_ptx(text, image, error);  // ends with a zero byte
  error = "neither a fatbin nor a cubin (LTO code cannot be simulated)";
  return false;
}

}  // namespace simgpu
