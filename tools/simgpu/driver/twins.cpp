#include "tools/simgpu/driver/twins.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace simgpu {
namespace {

constexpr const char* kSuffix = ".twins.so";
constexpr const char* kPrefix = "simk_";

std::string executable() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

class Twins {
 public:
  // Objects stay loaded and the table is never destroyed: workers may run twins until the very end of the
  // process.
  static Twins& instance() {
    static auto* twins = new Twins;
    return *twins;
  }

  SimTwin find(const std::string& mangled) {
    std::lock_guard lock(mutex_);
    const auto known = found_.find(mangled);
    if (known != found_.end()) return known->second;
    SimTwin twin = nullptr;
    for (void* object : objects_) {
      twin = reinterpret_cast<SimTwin>(dlsym(object, (kPrefix + mangled).c_str()));
      if (twin != nullptr) break;
    }
    found_.emplace(mangled, twin);
    return twin;
  }

 private:
  Twins() {
    const std::string own = executable() + kSuffix;
    if (access(own.c_str(), R_OK) == 0) load(own);
    const char* list = std::getenv("SIM_KERNELS");
    std::string_view rest = list == nullptr ? std::string_view() : std::string_view(list);
    while (!rest.empty()) {
      const auto colon = rest.find(':');
      if (const std::string path(rest.substr(0, colon)); !path.empty()) load(path);
      rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    }
  }

  void load(const std::string& path) {
    if (void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      objects_.push_back(object);
    } else {
      std::fprintf(stderr, "simgpu: cannot load the kernel twins of %s: %s\n", path.c_str(), dlerror());
    }
  }

  std::mutex mutex_;
  std::vector<void*> objects_;                      // in the order of search
  std::unordered_map<std::string, SimTwin> found_;  // null: looked for and not there
};

}  // namespace

SimTwin find_twin(const std::string& mangled) { return Twins::instance().find(mangled); }

}  // namespace simgpu
