#include "tools/simgpu/driver/guard.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/calls.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/log.hpp"
#include "tools/simgpu/driver/memory.hpp"
#include "tools/simgpu/driver/settings.hpp"

namespace simgpu {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};

thread_local KernelRun* current_run = nullptr;

// The program's handlers: the last ones, and those that were there first. Written under watch_mutex before ours is in place.
struct sigaction before[2], original[2];
std::mutex& watch_mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}

bool was_write(const void* raw) {
#if defined(__x86_64__)
  constexpr unsigned long long kWriteBit = 2;  // of the page fault's error code
  const auto* const state = static_cast<const ucontext_t*>(raw);
  return (static_cast<unsigned long long>(state->uc_mcontext.gregs[REG_ERR]) & kWriteBit) != 0;
#else
  (void)raw;
  return true;
#endif
}

// A handler of the program that was installed after ours may hand the fault on to "the one before", which is us. Known by a
// frame of pass_on() further up this stack that is still alive; one that was left by a jump is overwritten by now.
struct Passing {
  const volatile std::uint64_t* cookie = nullptr;
  std::uint64_t value = 0;
};
thread_local constinit Passing passing{};

// The default action for a fault is that it happens again; a signal that was sent must be sent again.
void act_by_default(int signal, const siginfo_t* info) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  if (info->si_code <= 0) ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
}

// The program's own handler, or the end of the process with this signal.
void pass_on(int signal, siginfo_t* info, void* raw) {
  static std::atomic<std::uint64_t> numbers{0x5157'0000'0000'0000};
  volatile std::uint64_t cookie = 0;
  const bool again = passing.cookie && passing.cookie > &cookie && *passing.cookie == passing.value;
  const struct sigaction& other = again ? original[signal == SIGBUS] : before[signal == SIGBUS];
  const Passing outer = passing;
  cookie = numbers.fetch_add(1, std::memory_order_relaxed);
  passing = {&cookie, cookie};
  if ((other.sa_flags & SA_SIGINFO) != 0 && other.sa_sigaction) {
    other.sa_sigaction(signal, info, raw);
  } else if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN) {
    other.sa_handler(signal);
  } else {
    act_by_default(signal, info);
  }
  cookie = 0;
  passing = outer;
}

void report_host_access(std::uintptr_t address, const void* raw) {
  // The lock may be held by this very thread: then the fault is none of the program's.
  std::unique_lock lock(memory_mutex(), std::defer_lock);
  for (int tries = 0; !lock.try_lock(); ++tries) {
    const timespec moment{0, 100'000};
    if (tries == 500) return;
    ::nanosleep(&moment, nullptr);
  }
  const bool device_memory = address_space().find_area(address) != nullptr;
  lock.unlock();
  if (!device_memory) return;
#if defined(__x86_64__)
  call_site = reinterpret_cast<const void*>(static_cast<const ucontext_t*>(raw)->uc_mcontext.gregs[REG_RIP]);
#else
  (void)raw;
#endif
  char detail[48];
  std::snprintf(detail, sizeof detail, "address 0x%llx", static_cast<unsigned long long>(address));
  misuse("host access to device memory", detail);
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) report_misuse();  // a process that dies of this runs no exit handler
}

void on_fault(int signal, siginfo_t* info, void* raw) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool sent = info->si_code <= 0;  // by a process, not by an access
  if (KernelRun* const run = sent ? nullptr : current_run) {
    if (run->admit(address, was_write(raw))) return;
    run->leave();
  }
  if (!sent) report_host_access(address, raw);
  pass_on(signal, info, raw);
}

}  // namespace

std::vector<KernelRun*>& kernel_runs() {
  static auto* const instance = new std::vector<KernelRun*>;
  return *instance;
}

void watch_faults() {
  const std::lock_guard lock(watch_mutex());
  for (const int signal : kSignals) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) continue;
    static bool first[2] = {true, true};
    if (std::exchange(first[signal == SIGBUS], false)) original[signal == SIGBUS] = now;
    before[signal == SIGBUS] = now;
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;  // NODEFER: the handler is left by a jump
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(signal, &ours, nullptr);
  }
}

KernelRun::KernelRun(Context& context, const char* kernel) : context_(context), kernel_(kernel) {
  watch_faults();
  opened_.reserve(64);
  const std::lock_guard lock(memory_mutex());
  kernel_runs().push_back(this);
}

KernelRun::~KernelRun() {
  const std::lock_guard lock(memory_mutex());
  std::erase(kernel_runs(), this);
  for (const Opened& area : opened_) address_space().close(area.base, area.write);
}

void KernelRun::begin() {
#ifdef __SANITIZE_THREAD__
  fiber_ = __tsan_get_current_fiber();
#endif
  current_run = this;
}
void KernelRun::end() { current_run = nullptr; }

bool KernelRun::admit(std::uintptr_t address, bool write) {
  fault_address_ = address;
  fault_write_ = write;
  if (!settings().protect) return false;
  const std::lock_guard lock(memory_mutex());
  AddressSpace& space = address_space();
  const Area* const area = space.find_area(address);
  if (!area || !may_touch(space.find(address), context_, write)) return false;
  const auto known = std::ranges::find(opened_, area->base, &Opened::base);
  // Open for what is wanted, and yet it faults: the host has no memory for it.
  if (known != opened_.end() && known->write >= write) return false;
  if (!space.open(area->base, write)) return false;
  if (known != opened_.end()) {
    known->write = true;
    space.close(area->base, false);
  } else {
    opened_.push_back({area->base, write});
  }
  return true;
}

bool KernelRun::lose(std::uintptr_t begin, std::uintptr_t end) {
  return std::erase_if(opened_, [&](const Opened& opened) {
           const Area* const area = address_space().find_area(opened.base);
           const bool lost = area && begin <= area->base && area->base + area->size <= end;
           if (lost) address_space().close(opened.base, opened.write);
           return lost;
         }) != 0;
}

void KernelRun::forget(std::uintptr_t base) {
  std::erase_if(opened_, [base](const Opened& opened) { return opened.base == base; });
}

void KernelRun::leave() {
#ifdef __SANITIZE_THREAD__
  if (__tsan_get_current_fiber() != fiber_) __tsan_switch_to_fiber(fiber_, 0);
#endif
  siglongjmp(escape, 1);
}

CUresult KernelRun::faulted() {
  current_run = nullptr;
  char detail[256];
  std::snprintf(detail, sizeof detail, "%s %s 0x%llx", kernel_, fault_write_ ? "wrote" : "read",
                static_cast<unsigned long long>(fault_address_));
  misuse("kernel touched memory that its device may not", detail);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace simgpu
