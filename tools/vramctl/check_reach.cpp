// Whether vramd is active in a running process, or would be in a command.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "policies/file/text.hpp"
#include "tools/vramctl/checks.hpp"
#include "tools/vramctl/elf.hpp"
#include "tools/vramctl/executable.hpp"
#include "tools/vramctl/format.hpp"
#include "tools/vramctl/library.hpp"

namespace vramd::ctl {
namespace {

std::string printable(std::string_view text) { return policy::printable(text, 1000); }  // paths are of use whole only

constexpr const char* kReach = "reach";
constexpr const char* kLibrary = "libvramd.so";
constexpr std::string_view kDeleted = " (deleted)";

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_shim(std::string_view file) { return file_name(file).starts_with(kLibrary); }
bool is_driver(std::string_view file) { return file_name(file).starts_with("libcuda.so"); }

const std::string* find_file(const ProcessFacts& process, bool (*matches)(std::string_view)) {
  const auto at = std::find_if(process.files.begin(), process.files.end(), matches);
  return at == process.files.end() ? nullptr : &*at;
}

bool is_set(const char* value) { return value != nullptr && *value != '\0'; }

const SessionStatus* session_of(const std::optional<DaemonStatus>& status, int pid) {
  if (!status) return nullptr;
  const auto at = std::find_if(status->sessions.begin(), status->sessions.end(),
                               [&](const SessionStatus& s) { return s.pid == static_cast<std::uint64_t>(pid); });
  return at == status->sessions.end() ? nullptr : &*at;
}

// What switches the shim off though it is loaded: (what is, what to do). Empty when nothing does.
std::pair<std::string, std::string> switched_off(const Lookup& environment) {
  const char* disabled = environment("VRAMD_DISABLE");
  if (is_set(disabled) && std::strcmp(disabled, "0") != 0) return {"VRAMD_DISABLE is set", "unset VRAMD_DISABLE"};
  if (is_set(environment("CUDA_INJECTION64_PATH")))
    return {"CUDA_INJECTION64_PATH is set: a profiler hooks the driver, and vramd stays passive beside it",
            "unset CUDA_INJECTION64_PATH unless you profile or debug"};
  const char* mode = environment("VRAMD_MODE");
  if (is_set(mode) && std::strcmp(mode, "off") == 0) return {"VRAMD_MODE is off", "unset VRAMD_MODE, or write pool"};
  return {};
}

// Entries of an LD_PRELOAD that name the shim.
std::vector<std::string> preloaded_shims(const char* list) {
  std::vector<std::string> found;
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(": "), rest.size());
    if (is_shim(rest.substr(0, end))) found.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found;
}

// Why a process that was to load the shim has not: (what is, what to do).
std::pair<std::string, std::string> why_not_loaded(const ProcessFacts& process, const std::string& library) {
  const std::string seen = process.root + library;
  std::error_code error;
  if (library.starts_with('/') && !std::filesystem::exists(seen, error)) {
    return {"LD_PRELOAD names " + printable(library) + ", which is not there for this process",
            "install vramd there, or bind it into the container under the same path"};
  }
  const auto obstacles = preload_obstacles(process.root + process.executable);
  if (!obstacles.empty()) return {printable(obstacles.front()), "start another build of the program"};
  const auto shim = read_elf(seen), program = read_elf(process.root + process.executable);
  if (shim && program && shim->machine != program->machine)
    return {printable(library) + " is built for another machine than the program", "install the build for this machine"};
  return {"LD_PRELOAD names " + printable(library) + " and the loader did not load it",
          "start the program once by hand and read what the loader says on standard error"};
}

void check_loaded(const ProcessFacts& process, const std::string& who, const std::string& shim,
                  const std::optional<DaemonStatus>& status, Results& results) {
  const auto off = switched_off([&](const char* name) { return process.variable(name); });
  const SessionStatus* session = session_of(status, process.pid);
  const SessionStatus* parent = session_of(status, process.parent);
  if (!off.first.empty()) {
    results.push_back(
        finding(kReach, who + ": vramd is loaded and does nothing: " + off.first, off.second + ", and start it again"));
  } else if (session != nullptr) {
    results.push_back(
        ok(kReach, who + ": vramd is active, session " + std::to_string(session->id) + ", mode " + printable(session->mode)));
  } else if (find_file(process, &is_driver) == nullptr) {
    results.push_back(ok(kReach, who + ": vramd is loaded; the program has not used a GPU yet"));
  } else if (parent != nullptr) {
    results.push_back(ok(kReach, who + ": vramd is loaded; this is a child of the session of pid " +
                                     std::to_string(process.parent) +
                                     ". Forked without exec it cannot use the GPU, with vramd or without"));
  } else if (status) {
    results.push_back(
        ok(kReach, who + ": vramd is active with memory of its own, or only counts: this daemon has no session of it"));
  } else {
    results.push_back(ok(kReach, who + ": vramd is loaded, and no daemon answers here: the program has memory of its own"));
  }
  if (shim.ends_with(kDeleted)) {
    results.push_back(ok("shim library", printable(shim.substr(0, shim.size() - kDeleted.size())) +
                                             " has been replaced since the program started, which keeps the one it has"));
  } else {
    results.push_back(ok("shim library", printable(shim)));
  }
  if (const std::string* driver = find_file(process, &is_driver)) results.push_back(ok("driver", printable(*driver)));
}

// What Python programs do with the GPU's memory by themselves.
void check_frameworks(const Lookup& environment, Results& results) {
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* value = environment(name);
    if (!is_set(value)) continue;
    const std::string_view settings = value;
    if (settings.find("backend:cudaMallocAsync") != std::string_view::npos) {
      results.push_back(
          finding(name, "backend:cudaMallocAsync: PyTorch then allocates from the driver's own pool, which vramd passes on",
                  "leave the backend out"));
    } else if (settings.find("expandable_segments:True") != std::string_view::npos) {
      results.push_back(
          finding(name, "expandable_segments:True: PyTorch then maps memory itself, which vramd passes on to the driver",
                  "leave expandable_segments out"));
    } else {
      results.push_back(ok(name, printable(value)));
    }
  }
  for (const auto& [name, good, framework] :
       {std::tuple{"XLA_PYTHON_CLIENT_PREALLOCATE", "false", "JAX takes most of the GPU at its start"},
        std::tuple{"TF_FORCE_GPU_ALLOW_GROWTH", "true", "TensorFlow takes all of the GPU at its start"}}) {
    const char* value = environment(name);
    if (value == nullptr)
      results.push_back(ok(name, std::string("not set; vramctl run sets it to ") + good + ", else " + framework));
    else if (std::strcmp(value, good) == 0)
      results.push_back(ok(name, value));
    else
      results.push_back(
          finding(name, policy::in_quotes(value) + ": " + framework, std::string("write ") + good + ", or unset it"));
  }
}

}  // namespace

void check_process(const std::string& proc, int pid, const std::optional<DaemonStatus>& status, Results& results) {
  const auto process = read_process(proc, pid);
  if (!process) {
    results.push_back(
        finding(kReach, "no process here has pid " + std::to_string(pid), "name one that runs; vramctl status lists sessions"));
    return;
  }
  const std::string who = printable(process->name) + " (pid " + std::to_string(pid) + ')';
  if (!process->has_memory) {
    results.push_back(finding(kReach, who + " is a thread of the kernel, or has ended", "name a program's process"));
    return;
  }
  if (!process->readable) {
    if (const SessionStatus* session = session_of(status, pid)) {
      results.push_back(ok(kReach, who + ": vramd is active, session " + std::to_string(session->id) + ", mode " +
                                       printable(session->mode) + "; this user may not see more of it"));
    } else {
      results.push_back(finding(kReach, who + ": this user may not look at it",
                                "ask as its user: sudo vramctl doctor --pid " + std::to_string(pid)));
    }
    return;
  }
  if (const std::string* shim = find_file(*process, &is_shim)) return check_loaded(*process, who, *shim, status, results);
  const auto named = preloaded_shims(process->variable("LD_PRELOAD"));
  if (named.empty()) {
    results.push_back(finding(kReach, who + ": vramd is not in it: it was started without",
                              "start it again as vramctl run -- COMMAND, or with LD_PRELOAD set to libvramd.so"));
    return;
  }
  const auto [reason, remedy] = why_not_loaded(*process, named.front());
  results.push_back(finding(kReach, who + ": vramd is not in it: " + reason, remedy));
}

void check_command(const std::vector<std::string>& command, const Lookup& environment, Results& results) {
  const auto executable = find_executable(command.front(), environment);
  if (!executable) {
    results.push_back(finding(kReach, printable(executable.error().what), "name a program that can be started"));
    return;
  }
  const std::string who = printable(*executable);
  Results rest;
  const auto library = find_library(environment);
  const auto obstacles = preload_obstacles(*executable);
  const auto off = switched_off(environment);
  if (!obstacles.empty()) {
    results.push_back(finding(kReach, printable(obstacles.front()),
                              "use a build of the program that is linked dynamically and runs "
                              "with its caller's rights"));
  } else if (!library) {
    results.push_back(finding(kReach, who + ": vramd cannot be put into it: " + library.error().what, library.error().remedy));
  } else if (!off.first.empty()) {
    results.push_back(finding(kReach, who + ": vramd would be loaded and do nothing: " + off.first, off.second));
  } else {
    results.push_back(ok(kReach, who + ": vramd would be active in it: vramctl run -- " + shell_quoted(command.front()) +
                                     (command.size() > 1 ? " ..." : "")));
  }
  // A library that LD_PRELOAD names twice is one too many only when the two are different files.
  for (const std::string& other : preloaded_shims(environment("LD_PRELOAD"))) {
    std::error_code error;
    if (library && !std::filesystem::equivalent(other, *library, error))
      results.push_back(finding("LD_PRELOAD", "names " + printable(other) + ", another libvramd.so than " + printable(*library),
                                "unset LD_PRELOAD; vramctl run sets it"));
  }
  if (file_name(interpreted_by(*executable)).find("python") != std::string_view::npos) check_frameworks(environment, results);
}

}  // namespace vramd::ctl
