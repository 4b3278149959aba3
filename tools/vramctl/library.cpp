#include "tools/vramctl/library.hpp"

#include <filesystem>
#include <system_error>

namespace vramd::ctl {
namespace {

namespace fs = std::filesystem;

// The links of the path are resolved, so that one library has one name in LD_PRELOAD.
tl::expected<std::string, NoLibrary> usable(const fs::path& path) {
  std::error_code error;
  const std::string absolute = fs::canonical(path, error).string();
  if (error) return tl::unexpected(NoLibrary{"no libvramd.so at " + path.string(), ""});
  // The dynamic linker takes both for separators and has no way to quote them.
  if (absolute.find_first_of(" :") != std::string::npos)
    return tl::unexpected(NoLibrary{"LD_PRELOAD cannot name " + absolute, "move it to a path without spaces and colons"});
  if (!fs::is_regular_file(absolute, error))
    return tl::unexpected(NoLibrary{absolute + " is no file", "name libvramd.so itself"});
  return absolute;
}

}  // namespace

std::string own_path() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

tl::expected<std::string, NoLibrary> find_library(const Lookup& environment) {
  const char* named = environment("VRAMD_LIBRARY");
  if (named != nullptr && *named != '\0') {
    auto library = usable(named);
    if (!library && library.error().remedy.empty()) library.error().remedy = "correct VRAMD_LIBRARY, or unset it";
    return library;
  }
  const fs::path folder = fs::path(own_path()).parent_path();
  std::string looked;
  for (const char* place : {"../lib/libvramd.so", "../lib/vramd/libvramd.so"}) {
    const fs::path candidate = (folder / place).lexically_normal();
    std::error_code error;
    if (fs::exists(candidate, error)) return usable(candidate);
    looked += (looked.empty() ? "" : " or ") + candidate.string();
  }
  return tl::unexpected(NoLibrary{"no libvramd.so at " + looked, "install it there, or name it in VRAMD_LIBRARY"});
}

}  // namespace vramd::ctl
