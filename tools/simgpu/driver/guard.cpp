#include "tools/simgpu/driver/guard.hpp"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

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

struct sigaction before[2];  // the program's handlers; written under watch_mutex before ours is in place
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

// The program's own handler, or the end of the process with this signal.
void pass_on(int signal, siginfo_t* info, void* raw) {
  const struct sigaction& other = before[signal == SIGBUS];
  if ((other.sa_flags & SA_SIGINFO) != 0 && other.sa_sigaction) return other.sa_sigaction(signal, info, raw);
  if (other.sa_handler != SIG_DFL && other.sa_handler != SIG_IGN) return other.sa_handler(signal);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);  // the access faults again when this returns
}

void report_host_access(std::uintptr_t address, const void* raw) {
  {
    const std::unique_lock lock(memory_mutex(), std::try_to_lock);
    if (!lock || !address_space().find_area(address)) return;
  }
#if defined(__x86_64__)
  call_site = reinterpret_cast<const void*>(static_cast<const ucontext_t*>(raw)->uc_mcontext.gregs[REG_RIP]);
#else
  (void)raw;
#endif
  char detail[48];
  std::snprintf(detail, sizeof detail, "address 0x%llx", static_cast<unsigned long long>(address));
  misuse("host access to device memory", detail);
  report_misuse();  // a process that dies of this runs no exit handler
}

void on_fault(int signal, siginfo_t* info, void* raw) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (KernelRun* const run = current_run) {
    if (run->admit(address, was_write(raw))) return;
    run->leave();
  }
  report_host_access(address, raw);
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
  for (const std::uintptr_t base : opened_) address_space().close(base);
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
  if (std::ranges::count(opened_, area->base)) return false;  // open, and yet it faults: the host has no memory for it
  if (!space.open(area->base)) return false;
  opened_.push_back(area->base);
  return true;
}

bool KernelRun::lose(std::uintptr_t begin, std::uintptr_t end) {
  return std::erase_if(opened_, [&](std::uintptr_t base) {
           const Area* const area = address_space().find_area(base);
           const bool lost = area && begin <= area->base && area->base + area->size <= end;
           if (lost) address_space().close(base);
           return lost;
         }) != 0;
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
