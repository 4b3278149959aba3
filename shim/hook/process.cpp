#include "shim/hook/process.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace vramd::shim::hook {
namespace {

enum class Activity : int { unread, active, disabled };
constinit std::atomic<Activity> g_activity{Activity::unread};

Activity read_environment() {
  const char* disable = std::getenv("VRAMD_DISABLE");
  const bool switched_off = disable != nullptr && *disable != '\0' && std::strcmp(disable, "0") != 0;
  return switched_off || std::getenv("CUDA_INJECTION64_PATH") != nullptr ? Activity::disabled : Activity::active;
}

// Holds the owner's pid in memory that the kernel empties in every child. Where it cannot, pids are compared.
struct OwnerMark {
  pid_t pid;
  bool emptied_by_fork;
};
constinit std::atomic<OwnerMark*> g_mark{nullptr};

constexpr std::size_t kPage = 4096;  // mmap rounds up to the system's page

OwnerMark* make_mark() {
  void* memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const bool emptied = madvise(memory, kPage, MADV_WIPEONFORK) == 0;  // Linux 4.14
  auto* mark = static_cast<OwnerMark*>(memory);
  *mark = {getpid(), emptied};
  return mark;
}

}  // namespace

thread_local constinit int OwnCall::depth_ = 0;

bool disabled() {
  Activity activity = g_activity.load(std::memory_order_relaxed);
  if (activity == Activity::unread) {
    activity = read_environment();
    Activity expected = Activity::unread;
    // The first reader decides for all: the environment may change between two readers.
    if (!g_activity.compare_exchange_strong(expected, activity, std::memory_order_relaxed)) activity = expected;
  }
  return activity == Activity::disabled;
}

void mark_process() {
  if (g_mark.load(std::memory_order_acquire) != nullptr) return;
  OwnerMark* mark = make_mark();
  OwnerMark* expected = nullptr;
  if (mark != nullptr && !g_mark.compare_exchange_strong(expected, mark)) munmap(mark, kPage);  // another thread was first
}

bool in_forked_child() {
  const OwnerMark* mark = g_mark.load(std::memory_order_acquire);  // matched by the exchange in mark_process()
  if (mark == nullptr || (mark->pid != 0 && mark->emptied_by_fork)) [[likely]]
    return false;
  return mark->pid == 0 || mark->pid != getpid();
}

}  // namespace vramd::shim::hook
