#include "tools/simgpu/twins/stack_switch.hpp"

#include <sys/mman.h>
#include <unistd.h>

#ifndef __x86_64__
#error \
    "barriers of kernel twins switch stacks in assembly, written for x86-64 only: add simgpu_switch_stack for this architecture"
#endif

// What a called function must preserve goes to the stack: registers, the modes of SSE and x87. The compiler saves the rest.
extern "C" void simgpu_switch_stack(void** from, void* to);
asm(R"(
  .text
  .p2align 4
  .hidden simgpu_switch_stack
  .globl simgpu_switch_stack
  .type simgpu_switch_stack, @function
simgpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size simgpu_switch_stack, . - simgpu_switch_stack
)");

namespace simgpu::twins {
namespace {

// What simgpu_switch_stack finds on a stack that has not run yet.
struct FirstFrame {
  std::uint32_t mxcsr;
  std::uint16_t x87, unused;
  std::uint64_t registers[6];
  void (*entry)();
  void* caller;  // null: debuggers stop here. Ends the stack, so that the entry finds the alignment that a call leaves
};
static_assert(sizeof(FirstFrame) == 72 && offsetof(FirstFrame, entry) == 56);

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

#ifdef SIMGPU_ASAN
constinit thread_local Stack* switched_from = nullptr;  // read by the side that arrives
#endif

}  // namespace

Stack::~Stack() {
#ifdef SIMGPU_TSAN
  if (lowest != nullptr && fiber != nullptr) __tsan_destroy_fiber(fiber);
#endif
  if (lowest != nullptr) munmap(lowest, page_size() + kStackBytes);
}

bool Stack::map() {
  const std::size_t page = page_size();
  void* const memory =
      mmap(nullptr, page + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  if (mprotect(memory, page, PROT_NONE) != 0) {
    munmap(memory, page + kStackBytes);
    return false;
  }
  lowest = static_cast<std::byte*>(memory);
  bottom = lowest + page;
  size = kStackBytes;
  return true;
}

void Stack::start_at(void (*entry)()) {
  std::byte* const end = lowest + page_size() + kStackBytes;
#ifdef SIMGPU_ASAN
  __asan_unpoison_memory_region(bottom, size);  // frames that were left without returning
  fake = nullptr;
#endif
#ifdef SIMGPU_TSAN
  if (fiber != nullptr) __tsan_destroy_fiber(fiber);
  fiber = __tsan_create_fiber(0);
#endif
  auto* const frame = reinterpret_cast<FirstFrame*>(end - sizeof(FirstFrame));
  *frame = {};
  asm volatile("stmxcsr %0" : "=m"(frame->mxcsr));
  asm volatile("fnstcw %0" : "=m"(frame->x87));
  frame->entry = entry;
  pointer = frame;
}

void Stack::adopt_current() {
#ifdef SIMGPU_TSAN
  fiber = __tsan_get_current_fiber();
#endif
}

void switch_stack(Stack& from, Stack& to) {
#ifdef SIMGPU_ASAN
  switched_from = &from;
  __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.size);
#endif
#ifdef SIMGPU_TSAN
  __tsan_switch_to_fiber(to.fiber, 0);  // 0: what happened on one stack happened before the other goes on
#endif
  simgpu_switch_stack(&from.pointer, to.pointer);
#ifdef SIMGPU_ASAN
  __sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);
#endif
}

void arrived_on_fresh_stack() {
#ifdef SIMGPU_ASAN
  // The first switch of all comes from the OS thread's own stack, whose bounds only the sanitizer knows.
  Stack& from = *switched_from;
  __sanitizer_finish_switch_fiber(nullptr, from.bottom == nullptr ? &from.bottom : nullptr,
                                  from.size == 0 ? &from.size : nullptr);
#endif
}

void forget_switch([[maybe_unused]] Stack& left, [[maybe_unused]] Stack& own) {
#ifdef SIMGPU_ASAN
  if (&left != &own && own.bottom != nullptr) {
    __sanitizer_start_switch_fiber(&left.fake, own.bottom, own.size);
    __sanitizer_finish_switch_fiber(own.fake, nullptr, nullptr);
  }
  // Frames that the jump skipped, below this one and above.
  auto* const parked = static_cast<std::byte*>(own.pointer);
  auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
  if (parked != nullptr && parked < here) __asan_unpoison_memory_region(parked, static_cast<std::size_t>(here - parked));
  __asan_handle_no_return();
#endif
#ifdef SIMGPU_TSAN
  if (__tsan_get_current_fiber() != own.fiber) __tsan_switch_to_fiber(own.fiber, 0);
#endif
}

}  // namespace simgpu::twins
