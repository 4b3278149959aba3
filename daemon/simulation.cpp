#include "daemon/simulation.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/text.hpp"

namespace vramd {
namespace {

constexpr unsigned long kMaxSimulated = 8;  // cards that the simulator can have

// "rtx-a5000-24gx2" is two devices of "rtx-a5000-24g": digits at the end after an x.
void split_count(const std::string& argument, std::string& profile, unsigned long& count) {
  profile = argument;
  count = 1;
  const auto x = argument.rfind('x');
  if (x == std::string::npos || x == 0 || x + 1 == argument.size() || argument.size() - x > 4) return;
  if (argument.find_first_not_of("0123456789", x + 1) != std::string::npos) return;
  profile = argument.substr(0, x);
  count = std::stoul(argument.substr(x + 1));
}

}  // namespace

Try<Simulation> choose_simulation(const std::string& argument, const std::string& directory) {
  namespace fs = std::filesystem;
  Simulation chosen;
  unsigned long count = 0;
  split_count(argument, chosen.profile, count);
  if (chosen.profile.empty() || count < 1 || count > kMaxSimulated)
    return trouble(kExitUsage, text("--sim ", argument, ": expected PROFILE or PROFILExN with N from 1 to ", kMaxSimulated,
                                    ", such as rtx-a5000-24gx2"));
  chosen.devices = static_cast<int>(count);

  std::error_code error;
  fs::path folder = directory;
  if (folder.empty()) folder = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "simgpu";
  folder = fs::absolute(folder, error).lexically_normal();
  const fs::path library = folder / "libcuda.so.1";
  if (!fs::exists(library, error))
    return trouble(kExitRuntime, text("--sim ", argument, ": there is no ", library.string(),
                                      "; build the target simgpu_libcuda, or name its folder with --sim-dir"));
  chosen.library = library.string();

  const char* name = ::getenv("SIM_NAME");
  chosen.environment["SIM_NAME"] = name != nullptr && *name != '\0' ? name : text("vramd-", ::getuid());
  if (const char* place = ::getenv("SIM_DIR"); place != nullptr && *place != '\0')
    chosen.environment["SIM_DIR"] = fs::absolute(place, error).string();
  chosen.environment["SIM_PROFILE"] = chosen.profile;
  chosen.environment["SIM_DEVICES"] = text(chosen.devices);
  chosen.environment["LD_LIBRARY_PATH"] = folder.string();
  return chosen;
}

void enter(const Simulation& simulation) {
  for (const auto& [name, value] : simulation.environment)
    if (name != "LD_LIBRARY_PATH") ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace vramd
