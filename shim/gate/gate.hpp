// The gate: what stops this process's GPU submissions for a moment. Every submitting driver call (calls/submission.def) passes
// it. The passing thread stores its own word, looks at the gate, submits, and stores the word back: plain stores, since whoever
// closes the gate makes all threads' stores visible (membarrier; where that is refused both sides use full barriers) and then
// waits until no word shows a submission. Cost of an open gate: about a nanosecond.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/units.hpp"

namespace vramd::shim::gate {

// Kinds of submissions, as in submission.def.
enum class Kind : std::uint32_t { kernel, graph, copy, fill, host, capture, other };
inline constexpr std::size_t kKinds = 7;

// The word of one thread, in memory that outlives the thread. 64 bytes: threads don't share a cache line.
struct alignas(64) Word {
  std::atomic<std::uint32_t> submitting;  // 1 inside a submission
  std::atomic<std::int32_t> owner;        // thread id; 0: nobody's
  std::atomic<std::uint64_t> counts[kKinds];
};

// Decides whether membarrier serves. Until then nobody's submissions are seen. To be called after a successful cuInit, when
// the process is marked (hook/process.hpp). Any thread, any number of times. More than 65,536 threads at once are not seen
// either.
void prepare();

// How many submissions of a kind have passed, of all threads that ever were.
std::uint64_t passed(Kind kind);

// Closes and opens the gate; open() only by whoever closed it. Closing says how.
void close();
void open();
// How many threads sleep at the gate now.
std::uint32_t waiting();

// Closes the gate from construction to destruction. Threads that want to submit meanwhile sleep; those inside a submission go
// on and are waited for by drain(). One at a time: a second closer waits for the first. Not to be used by a thread that holds a
// lock which a submitting thread may want inside a submission.
class Closing {
 public:
  Closing() { close(); }
  ~Closing() { open(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

  // Waits until no other thread is inside a submission. False when one still is at the deadline (CLOCK_MONOTONIC). A thread
  // that ended inside a submission (it was cancelled) doesn't count.
  bool drain(Nanos deadline);
};

namespace detail {

// 0: open.
extern std::atomic<std::uint32_t> closed;
extern std::atomic<bool> no_membarrier;  // both sides are sequentially consistent instead
extern thread_local constinit Word* own_word;

Word* claim_word();
// Sleeps while the gate is closed and then enters anew.
void wait_and_enter(Word& word);

}  // namespace detail

// A submission of this thread, from construction to destruction. Nested ones (a driver that calls itself through our exports)
// pass.
class Pass {
 public:
  explicit Pass(Kind kind) {
    Word* word = detail::own_word;
    if (word == nullptr) [[unlikely]]
      word = detail::claim_word();
    if (word == nullptr || word->submitting.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return;
    auto& count = word->counts[static_cast<std::size_t>(kind)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // only this thread writes it
    bool closed = false;
    if (detail::no_membarrier.load(std::memory_order_relaxed)) [[unlikely]] {
      word->submitting.store(1, std::memory_order_seq_cst);
      closed = detail::closed.load(std::memory_order_seq_cst) != 0;
    } else {
      word->submitting.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the store above stays above; membarrier does the rest
      closed = detail::closed.load(std::memory_order_relaxed) != 0;
    }
    if (closed) [[unlikely]]
      detail::wait_and_enter(*word);
    word_ = word;
  }
  ~Pass() {
    if (word_ != nullptr) word_->submitting.store(0, std::memory_order_release);  // matched by the acquire in drain()
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

 private:
  Word* word_ = nullptr;
};

}  // namespace vramd::shim::gate
