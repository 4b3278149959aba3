#include "tools/vramctl/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "allocator/base/clock.hpp"
#include "allocator/base/unique_fd.hpp"
#include "tools/vramctl/application.hpp"
#include "tools/vramctl/library.hpp"

namespace vramd::ctl {
namespace {

constexpr Nanos kPatience = seconds(10);
constexpr std::size_t kMostOutput = 1 << 20;

// This process's environment with changes; the child must meet the bare library unless it is to have a preloaded shim.
class ChildEnvironment {
 public:
  ChildEnvironment(const std::vector<std::pair<std::string, std::string>>& variables, const std::string& preload) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos) values_[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : variables) values_[name] = value;
    values_.erase("LD_PRELOAD");
    if (!preload.empty()) values_["LD_PRELOAD"] = preload;
    values_.erase("CUDA_INJECTION64_PATH");
    for (const auto& [name, value] : values_) lines_.push_back(name + '=' + value);
    for (std::string& line : lines_) pointers_.push_back(line.data());
    pointers_.push_back(nullptr);
  }
  char** data() { return pointers_.data(); }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> lines_;
  std::vector<char*> pointers_;
};

// Reads until the other end closes. False when time or space runs out.
bool read_to_end(int fd, Nanos deadline, std::string& output) {
  char buffer[4096];
  while (output.size() < kMostOutput) {
    const Nanos left = deadline - MonotonicClock{}.now();
    if (left.value <= 0) return false;
    pollfd item{fd, POLLIN, 0};
    if (::poll(&item, 1, static_cast<int>(left.value / 1'000'000) + 1) <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    output.append(buffer, static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

ProbeReport probe_in_child(const std::string& what, const std::string& library,
                           const std::vector<std::pair<std::string, std::string>>& variables, const std::string& preload) {
  ProbeReport report;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    report.trouble = std::string("no pipe: ") + std::strerror(errno);
    return report;
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  std::string self = own_path(), command = kProbeCommand, what_text = what, library_text = library;
  char* words[] = {self.data(), command.data(), what_text.data(), library_text.data(), nullptr};
  ChildEnvironment environment(variables, preload);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, self.c_str(), &actions, nullptr, words, environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (failed != 0) {
    report.trouble = std::string("cannot start a child: ") + std::strerror(failed);
    return report;
  }
  const bool ended = read_to_end(reader.get(), MonotonicClock{}.now() + kPatience, report.output);
  if (!ended) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  report.finished = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!ended) {
    report.trouble = "it did not come back within 10 seconds";
  } else if (WIFSIGNALED(status)) {
    report.trouble = std::string("it crashed (") + ::strsignal(WTERMSIG(status)) + ')';
  } else if (!report.finished) {
    report.trouble = "it ended the process with exit code " + std::to_string(WEXITSTATUS(status));
  }
  return report;
}

}  // namespace vramd::ctl
