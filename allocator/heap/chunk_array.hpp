// A growing array of chunks without the C++ heap: a few inside, more in pages of its own. Not thread-safe.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>

#include "allocator/vmm/chunk.hpp"

namespace vramd::heap {

class ChunkArray {
 public:
  ChunkArray() = default;
  ChunkArray(const ChunkArray&) = delete;
  ChunkArray& operator=(const ChunkArray&) = delete;
  ~ChunkArray() { drop_pages(); }

  std::size_t size() const { return size_; }
  const Chunk* data() const { return pages_ != nullptr ? pages_ : inside_; }

  // Makes sure that one push_back() fits. False when the host has no memory.
  bool has_room() {
    if (size_ < capacity_) return true;
    const std::size_t bytes = capacity_ == kInside ? 4096 : 2 * capacity_ * sizeof(Chunk);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    std::memcpy(memory, data(), size_ * sizeof(Chunk));
    drop_pages();
    pages_ = static_cast<Chunk*>(memory);
    page_bytes_ = bytes;
    capacity_ = bytes / sizeof(Chunk);
    return true;
  }

  void push_back(const Chunk& chunk) { (pages_ != nullptr ? pages_ : inside_)[size_++] = chunk; }

 private:
  static constexpr std::size_t kInside = 4;

  void drop_pages() {
    if (pages_ != nullptr) ::munmap(pages_, page_bytes_);
    pages_ = nullptr;
  }

  Chunk inside_[kInside];
  Chunk* pages_ = nullptr;
  std::size_t page_bytes_ = 0;
  std::size_t capacity_ = kInside;
  std::size_t size_ = 0;
};

}  // namespace vramd::heap
