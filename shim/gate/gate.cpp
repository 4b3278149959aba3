#include "shim/gate/gate.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace vramd::shim::gate {

namespace detail {

constinit std::atomic<std::uint32_t> closed{0};
constinit std::atomic<bool> no_membarrier{true};  // until prepare() knows better
thread_local constinit Word* own_word = nullptr;

}  // namespace detail

namespace {

// Words live in pages that are never given back; a word is used again when its thread is gone.
constexpr std::size_t kWordsPerPage = 256, kPages = 256;
constinit std::atomic<Word*> g_pages[kPages];
constinit std::atomic<std::uint32_t> g_waiting{0};
constinit std::atomic<bool> g_ready{false};    // words of a process that isn't marked yet would be inherited by its children
constinit std::atomic<bool> g_closing{false};  // somebody has the gate closed, or is about to

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

std::int32_t thread_id() { return static_cast<std::int32_t>(::syscall(SYS_gettid)); }

bool lives(std::int32_t thread) {
  return ::syscall(SYS_tgkill, static_cast<long>(::getpid()), static_cast<long>(thread), 0L) == 0 || errno != ESRCH;
}

Word* page_of_words(std::size_t index) {
  Word* page = g_pages[index].load(std::memory_order_acquire);
  if (page != nullptr) return page;
  void* memory = ::mmap(nullptr, kWordsPerPage * sizeof(Word), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  page = static_cast<Word*>(memory);
  Word* expected = nullptr;
  if (g_pages[index].compare_exchange_strong(expected, page, std::memory_order_acq_rel)) return page;
  ::munmap(memory, kWordsPerPage * sizeof(Word));
  return expected;
}

// Visits all words until `visit` is true for one; that one, or nullptr.
template <class Visit>
Word* find_word(Visit visit) {
  for (const auto& slot : g_pages) {
    Word* const page = slot.load(std::memory_order_acquire);
    if (page == nullptr) break;
    for (std::size_t i = 0; i < kWordsPerPage; ++i) {
      if (visit(page[i])) return &page[i];
    }
  }
  return nullptr;
}

bool take(Word& word, std::int32_t from, std::int32_t self) {
  if (word.owner.load(std::memory_order_relaxed) != from) return false;
  if (!word.owner.compare_exchange_strong(from, self, std::memory_order_acq_rel)) return false;
  word.submitting.store(0, std::memory_order_relaxed);  // its last owner may have been cancelled inside a submission
  return true;
}

Word* find_free(std::int32_t self) {
  // A dead thread's word under our own number first: else it would look alive.
  if (Word* word = find_word([&](Word& w) { return take(w, self, self); })) return word;
  if (Word* word = find_word([&](Word& w) { return take(w, 0, self); })) return word;
  return find_word([&](Word& w) {
    const std::int32_t owner = w.owner.load(std::memory_order_relaxed);
    return owner != 0 && !lives(owner) && take(w, owner, self);
  });
}

Nanos now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return {static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec};
}

void sleep_a_little() {
  const timespec time{0, 50'000};
  ::syscall(SYS_nanosleep, &time, nullptr);  // libc's is a cancellation point
}

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

// Makes every thread's earlier stores visible to us, and our store of `closed` to them.
void order_with_all_threads() {
  if (!detail::no_membarrier.load(std::memory_order_relaxed) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  detail::no_membarrier.store(true, std::memory_order_seq_cst);
  // Who passed without a barrier until now: its store has long left the processor's buffer after this.
  for (int i = 0; i < 20; ++i) sleep_a_little();
}

}  // namespace

void prepare() {
  const int saved = errno;
  const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  detail::no_membarrier.store(!registered, std::memory_order_seq_cst);
  g_ready.store(true, std::memory_order_release);
  errno = saved;
}

std::uint64_t passed(Kind kind) {
  std::uint64_t sum = 0;
  find_word([&](Word& word) {
    sum += word.counts[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
    return false;
  });
  return sum;
}

namespace detail {

Word* claim_word() {
  if (!g_ready.load(std::memory_order_acquire)) return nullptr;
  const int saved = errno;
  const std::int32_t self = thread_id();
  Word* word = find_free(self);
  for (std::size_t index = 0; word == nullptr && index < kPages; ++index) {
    const bool fresh = g_pages[index].load(std::memory_order_acquire) == nullptr;
    if (!fresh) continue;
    if (page_of_words(index) == nullptr) break;
    word = find_free(self);
  }
  own_word = word;
  errno = saved;
  return word;
}

void wait_and_enter(Word& word) {
  const int saved = errno;
  g_waiting.fetch_add(1, std::memory_order_release);
  do {
    word.submitting.store(0, std::memory_order_release);
    while (const std::uint32_t value = closed.load(std::memory_order_acquire)) futex(closed, FUTEX_WAIT, value);
    word.submitting.store(1, std::memory_order_seq_cst);
  } while (closed.load(std::memory_order_seq_cst) != 0);
  g_waiting.fetch_sub(1, std::memory_order_release);
  errno = saved;
}

}  // namespace detail

void close() {
  while (g_closing.exchange(true, std::memory_order_acquire)) sleep_a_little();
  detail::closed.store(1, std::memory_order_seq_cst);
  order_with_all_threads();
}

void open() {
  detail::closed.store(0, std::memory_order_release);
  futex(detail::closed, FUTEX_WAKE, INT32_MAX);
  g_closing.store(false, std::memory_order_release);
}

std::uint32_t waiting() { return g_waiting.load(std::memory_order_acquire); }

bool Closing::drain(Nanos deadline) {
  constexpr int kSpins = 200;
  const int saved = errno;
  const Word* const mine = detail::own_word;
  bool late = false;
  find_word([&](Word& word) {
    if (&word == mine) return false;
    for (int round = 0; word.submitting.load(std::memory_order_seq_cst) != 0; ++round) {
      if (round < kSpins) {
        ::sched_yield();
        continue;
      }
      if (!lives(word.owner.load(std::memory_order_relaxed))) return false;
      if (now() >= deadline) return late = true;
      sleep_a_little();
    }
    return false;
  });
  errno = saved;
  return !late;
}

}  // namespace vramd::shim::gate
