#include "allocator/chunks/idle_lists.hpp"

namespace vramd::chunks {

void IdleLists::push(std::size_t chunk_class, DomainId domain, ChunkId chunk) {
  lists_[{chunk_class, domain}].push_back({chunk, next_since_++});
  bytes_ += kClasses[chunk_class].bytes;
}

std::optional<ChunkId> IdleLists::pop(std::size_t chunk_class, DomainId domain) {
  const auto at = lists_.find({chunk_class, domain});
  if (at == lists_.end()) return std::nullopt;
  const ChunkId chunk = at->second.back().chunk;
  at->second.pop_back();
  if (at->second.empty()) lists_.erase(at);
  bytes_ -= kClasses[chunk_class].bytes;
  return chunk;
}

std::optional<ChunkId> IdleLists::pop_least_useful() {
  if (lists_.empty()) return std::nullopt;
  const std::size_t largest = lists_.begin()->first.chunk_class;
  auto oldest = lists_.begin();
  for (auto at = lists_.begin(); at != lists_.end() && at->first.chunk_class == largest; ++at)
    if (at->second.front().since < oldest->second.front().since) oldest = at;
  const ChunkId chunk = oldest->second.front().chunk;
  oldest->second.pop_front();
  if (oldest->second.empty()) lists_.erase(oldest);
  bytes_ -= kClasses[largest].bytes;
  return chunk;
}

std::size_t IdleLists::count() const {
  std::size_t sum = 0;
  for (const auto& [key, list] : lists_) sum += list.size();
  return sum;
}

}  // namespace vramd::chunks
