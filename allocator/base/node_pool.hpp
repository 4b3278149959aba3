// Memory for bookkeeping nodes, straight from mmap: inside a host program we never call its malloc, which may be replaced,
// broken by the program, or be waiting for us. Not thread-safe.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace vramd {

template <class T>
class NodePool {
 public:
  NodePool() = default;
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;
  ~NodePool() {
    for (Slab* slab = slabs_; slab != nullptr;) {
      Slab* next = slab->next;
      ::munmap(slab, kSlabBytes);
      slab = next;
    }
  }

  // A default-constructed T, or nullptr when the host has no memory.
  T* create() {
    if (free_ == nullptr && !add_slab()) return nullptr;
    Slot* slot = free_;
    free_ = slot->next;
    return new (static_cast<void*>(slot)) T();
  }

  void destroy(T* node) {
    node->~T();
    free_ = new (static_cast<void*>(node)) Slot{free_};
  }

 private:
  static constexpr std::size_t kSlabBytes = 64 << 10;

  struct Slot {
    Slot* next;
  };
  struct Slab {
    Slab* next;
  };

  bool add_slab() {
    static_assert(sizeof(T) >= sizeof(Slot) && alignof(T) <= 64 && sizeof(T) <= kSlabBytes / 4);
    void* memory = ::mmap(nullptr, kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    slabs_ = new (memory) Slab{slabs_};
    char* begin = static_cast<char*>(memory);
    for (std::size_t at = 64; at + sizeof(T) <= kSlabBytes; at += (sizeof(T) + alignof(T) - 1) / alignof(T) * alignof(T)) {
      free_ = new (static_cast<void*>(begin + at)) Slot{free_};
    }
    return true;
  }

  Slot* free_ = nullptr;
  Slab* slabs_ = nullptr;
};

}  // namespace vramd
