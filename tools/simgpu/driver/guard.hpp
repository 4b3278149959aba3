// Kernels touch the program's addresses directly. What a GPU would punish becomes visible by page faults: an access without
// memory or without the device's right ends the kernel with a sticky error, as on a GPU, instead of ending the process.
// With SIM_PROTECT=1 device memory is moreover closed to the processor and opened only while the simulated GPU uses it, so that
// the rights of each device hold and host code that follows a device pointer faults.
#pragma once

#include <cuda.h>

#include <csetjmp>
#include <cstdint>
#include <vector>

namespace simgpu {

class Context;
class AddressSpace;

// A kernel that runs on this thread, from construction to destruction. Not copied or moved: its address is registered.
class KernelRun {
 public:
  KernelRun(Context& context, const char* kernel);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  // SUCCESS, or the error of a GPU on which the kernel had touched what it may not.
  template <class Kernel>
  CUresult run(Kernel kernel) {
    if (sigsetjmp(escape, 0) == 0) {
      begin();
      kernel();
      end();
      return CUDA_SUCCESS;
    }
    return faulted();
  }

  // Called for a fault of this thread: true when the access may be made again.
  bool admit(std::uintptr_t address, bool write);
  // Ends the kernel out of the fault's handler, from whatever stack it runs on (a thread of a block may have one of its own).
  [[noreturn]] void leave();
  // Somebody takes the memory away: the kernel's next access to it faults. True if the kernel used it. Under memory_mutex().
  bool lose(std::uintptr_t begin, std::uintptr_t end);

  // The area is gone, without a word. Under memory_mutex().
  void forget(std::uintptr_t base);
  const Context& context() const { return context_; }

  sigjmp_buf escape;

 private:
  void begin();
  void end();
  CUresult faulted();

  Context& context_;
  const char* const kernel_;
  struct Opened {
    std::uintptr_t base;  // of an area
    bool write;
  };
  std::vector<Opened> opened_;
  std::uintptr_t fault_address_ = 0;
  bool fault_write_ = false;
  void* fiber_ = nullptr;  // of the worker; for the thread sanitizer
};

// The kernels that run now; guarded by memory_mutex().
std::vector<KernelRun*>& kernel_runs();

// Puts the handler of faults in place, also when the program has replaced it since.
void watch_faults();

}  // namespace simgpu
