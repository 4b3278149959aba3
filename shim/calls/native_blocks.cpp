#include "shim/calls/native_blocks.hpp"

#include <new>

#include "allocator/base/mutex.hpp"
#include "allocator/base/node_pool.hpp"
#include "allocator/base/treap.hpp"

namespace vramd::shim {
namespace {

struct Note {
  NativeBlock block;
  TreapHook<Note> by_base;
};
struct ByBase {
  static bool less(const Note& a, const Note& b) { return a.block.base < b.block.base; }
};

struct Notes {
  NodePool<Note> pool;
  Treap<Note, &Note::by_base, ByBase> by_base;
  std::uint64_t last_id = 0;
};

Mutex mutex;
alignas(Notes) unsigned char place[sizeof(Notes)];
Notes* notes = nullptr;  // made at the first use, never destroyed

Note* first_from(CUdeviceptr base) {
  if (notes == nullptr) return nullptr;
  return notes->by_base.first_not([base](const Note& note) { return note.block.base < base; });
}

void take_out(Note& note, NativeBlock& block) {
  block = note.block;
  notes->by_base.erase(note);
  notes->pool.destroy(&note);
}

}  // namespace

bool remember_native(NativeBlock block) {
  MutexLock lock(mutex);
  if (notes == nullptr) notes = new (place) Notes();
  Note* note = notes->pool.create();
  if (note == nullptr) return false;
  block.id = ++notes->last_id;
  note->block = block;
  notes->by_base.insert(*note);
  return true;
}

bool forget_native(CUdeviceptr base, NativeBlock& block) {
  MutexLock lock(mutex);
  Note* note = first_from(base);
  if (note == nullptr || note->block.base != base) return false;
  take_out(*note, block);
  return true;
}

bool forget_native_of(const void* context, std::uint64_t last, NativeBlock& block) {
  MutexLock lock(mutex);
  for (Note* note = first_from(0); note != nullptr; note = first_from(note->block.base + 1)) {
    if (note->block.context != context || note->block.id > last) continue;
    take_out(*note, block);
    return true;
  }
  return false;
}

std::uint64_t last_native_id() {
  MutexLock lock(mutex);
  return notes == nullptr ? 0 : notes->last_id;
}

}  // namespace vramd::shim
