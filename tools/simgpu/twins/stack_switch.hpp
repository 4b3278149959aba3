// A stack, and the step from one to another.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define SIMGPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMGPU_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMGPU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMGPU_TSAN 1
#endif
#endif

#ifdef SIMGPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIMGPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace simgpu::twins {

// Lazily touched: a parked thread costs the pages that it used, at least one. Frames are larger under sanitizers.
#if defined(SIMGPU_ASAN) || defined(SIMGPU_TSAN)
inline constexpr std::size_t kStackBytes = 256 << 10;
#else
inline constexpr std::size_t kStackBytes = 64 << 10;
#endif

// Not movable: a parked stack holds its address.
struct Stack {
  void* pointer = nullptr;      // while it does not run
  std::byte* lowest = nullptr;  // null: the OS thread's own stack
  const void* bottom = nullptr;
  std::size_t size = 0;
#ifdef SIMGPU_ASAN
  void* fake = nullptr;
#endif
#ifdef SIMGPU_TSAN
  void* fiber = nullptr;
#endif

  Stack() = default;
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  ~Stack();

  // Maps kStackBytes over a guard page. False without memory.
  bool map();
  // The next switch to this stack calls entry, which must not return. What was on it is forgotten.
  void start_at(void (*entry)());
  // Makes this the stack of the OS thread, which runs on it.
  void adopt_current();
};

// Returns when somebody switches back to `from`.
void switch_stack(Stack& from, Stack& to);
// First statement of an entry.
void arrived_on_fresh_stack();
// After a longjmp from `left` to the OS thread's own stack, which the sanitizer did not see as a switch.
void forget_switch(Stack& left, Stack& own);

}  // namespace simgpu::twins
