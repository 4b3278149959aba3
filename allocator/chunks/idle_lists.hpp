// Idle chunks by (class, domain). Within a list the newest is granted first (its bytes are warm in every
// cache) and the oldest is released first.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "allocator/chunks/classes.hpp"
#include "allocator/chunks/values.hpp"

namespace vramd::chunks {

class IdleLists {
 public:
  void push(std::size_t chunk_class, DomainId domain, ChunkId chunk);

  // The newest chunk of exactly this class and domain.
  std::optional<ChunkId> pop(std::size_t chunk_class, DomainId domain);

  // The chunk that is given up first: of the largest class, there the one that has been idle longest, in any
  // domain.
  std::optional<ChunkId> pop_least_useful();

  Bytes bytes() const { return bytes_; }
  std::size_t count() const;

  template <class Visit>
  void visit(Visit&& visit_one) const {  // visit_one(class, domain, chunk)
    for (const auto& [key, list] : lists_)
      for (const Item& item : list) visit_one(key.chunk_class, key.domain, item.chunk);
  }

 private:
  struct Key {
    std::size_t chunk_class;
    DomainId domain;
    // Largest class first, so that pop_least_useful() looks at the front of the map.
    friend bool operator<(const Key& a, const Key& b) {
      return a.chunk_class != b.chunk_class ? a.chunk_class > b.chunk_class : a.domain < b.domain;
    }
  };
  struct Item {
    ChunkId chunk;
    std::uint64_t since;  // position in the order in which chunks became idle
  };
  using Lists = std::map<Key, std::deque<Item>>;  // no list is empty

  Lists lists_;
  Bytes bytes_;
  std::uint64_t next_since_ = 0;
};

}  // namespace vramd::chunks
