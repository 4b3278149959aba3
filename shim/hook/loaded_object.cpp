#include "shim/hook/loaded_object.hpp"

#include <sys/auxv.h>

#include "shim/hook/text.hpp"

extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;  // set by the linker: where we are loaded ourselves

namespace vramd::shim::hook {
namespace {

constexpr ElfW(Half) kHiddenVersion = 0x8000;  // symbol versions other than the default one carry this bit

std::uint32_t gnu_hash_of(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

bool is_ourselves(const LoadedObject& object) { return object.base() == reinterpret_cast<ElfW(Addr)>(&__ehdr_start); }

bool name_starts_with(const LoadedObject& object, const char* prefix) {
  return starts_with(object.soname(), prefix) || starts_with(file_name_of(object.path()), prefix);
}

struct Search {
  bool (*matches)(const LoadedObject&);
  LoadedObject found;
};

int visit(dl_phdr_info* info, std::size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    const LoadedObject object(info->dlpi_addr, dynamic, info->dlpi_name);
    if (!search.matches(object)) return 0;
    search.found = object;
    return 1;
  }
  return 0;
}

}  // namespace

// The loader adds the base to the addresses in place, except where the dynamic section is read-only (the
// vDSO).
template <class T>
T LoadedObject::table(ElfW(Addr) address) const {
  return reinterpret_cast<T>(address < base_ ? address + base_ : address);
}

LoadedObject::LoadedObject(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* path)
    : base_(base), dynamic_(dynamic), path_(path == nullptr ? "" : path) {
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_STRTAB: strings_ = table<const char*>(entry->d_un.d_ptr); break;
      case DT_SYMTAB: symbols_ = table<const ElfW(Sym)*>(entry->d_un.d_ptr); break;
      case DT_VERSYM: versions_ = table<const ElfW(Half)*>(entry->d_un.d_ptr); break;
      case DT_GNU_HASH: gnu_hash_ = table<const std::uint32_t*>(entry->d_un.d_ptr); break;
      case DT_SONAME: soname_offset_ = entry->d_un.d_val; break;
      default: break;
    }
  }
}

const char* LoadedObject::soname() const { return strings_ == nullptr || soname_offset_ == 0 ? "" : strings_ + soname_offset_; }

void* LoadedObject::function(const char* name) const {
  if (gnu_hash_ == nullptr || symbols_ == nullptr || strings_ == nullptr) return nullptr;
  // DT_GNU_HASH: four counts, the Bloom filter (skipped: it only saves time), the buckets, the chains.
  const std::uint32_t bucket_count = gnu_hash_[0];
  const std::uint32_t first_hashed = gnu_hash_[1];
  const std::uint32_t filter_words = gnu_hash_[2];
  const std::uint32_t* buckets = gnu_hash_ + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0) return nullptr;

  const std::uint32_t hash = gnu_hash_of(name);
  std::uint32_t i = buckets[hash % bucket_count];
  if (i < first_hashed) return nullptr;
  for (;; ++i) {
    const std::uint32_t link = chains[i - first_hashed];
    const ElfW(Sym)& symbol = symbols_[i];
    const bool is_default = versions_ == nullptr || (versions_[i] & kHiddenVersion) == 0;
    if ((link | 1U) == (hash | 1U) && is_default && symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        same_text(strings_ + symbol.st_name, name)) {
      return reinterpret_cast<void*>(base_ + symbol.st_value);
    }
    if ((link & 1U) != 0) return nullptr;  // the last of its chain
  }
}

// From the main program's headers, which the kernel tells of, to the loader's list, as a debugger gets there.
LoadedObject find_listed(bool (*matches)(const LoadedObject& object)) {
  const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const std::size_t count = headers == nullptr ? 0 : getauxval(AT_PHNUM);
  const ElfW(Phdr)* dynamic = nullptr;
  const ElfW(Phdr)* own = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (headers[i].p_type == PT_DYNAMIC) dynamic = &headers[i];
    if (headers[i].p_type == PT_PHDR) own = &headers[i];
  }
  if (dynamic == nullptr || own == nullptr) return {};
  const ElfW(Addr) base = reinterpret_cast<ElfW(Addr)>(headers) - own->p_vaddr;
  const r_debug* known = nullptr;
  for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(base + dynamic->p_vaddr); entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_DEBUG) known = reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
  }
  for (const link_map* map = known == nullptr ? nullptr : known->r_map; map != nullptr; map = map->l_next) {
    if (map->l_ld == nullptr) continue;
    const LoadedObject object(map->l_addr, map->l_ld, map->l_name);
    if (matches(object)) return object;
  }
  return {};
}

LoadedObject find_loaded(bool (*matches)(const LoadedObject& object)) {
  Search search{matches, {}};
  dl_iterate_phdr(&visit, &search);
  return search.found;
}

bool is_driver_library(const LoadedObject& object) { return name_starts_with(object, "libcuda.so") && !is_ourselves(object); }

bool is_driver_or_helper(const LoadedObject& object) {
  return is_driver_library(object) || name_starts_with(object, "libnvidia-");
}

}  // namespace vramd::shim::hook
