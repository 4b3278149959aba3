// Random numbers, and a language to learn: most words decide the next one. Both depend on the seed alone.
#pragma once

#include <cstdint>
#include <vector>

// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }

  // Uniform in [-1, 1).
  float symmetric() { return static_cast<float>(next() >> 40) * 0x1p-23F - 1.0F; }

 private:
  std::uint64_t state_;
};

struct Batch {
  std::vector<int> tokens, targets;  // of all sequences, one after the other; target = the token that follows
};

class Text {
 public:
  Text(int vocab, std::uint64_t seed) : vocab_(vocab), random_(seed ^ 0x7465787400000000ULL) {}

  Batch next(int sequences, int context) {
    Batch batch;
    for (int sequence = 0; sequence < sequences; ++sequence) {
      int word = random_.below(vocab_);
      for (int position = 0; position < context; ++position) {
        batch.tokens.push_back(word);
        word = successor(word);
        batch.targets.push_back(word);
      }
    }
    return batch;
  }

 private:
  // Seven times of eight the rule, else any word.
  int successor(int word) {
    const bool by_rule = random_.below(8) != 0;
    const int other = random_.below(vocab_);
    return by_rule ? static_cast<int>((5LL * word + 3) % vocab_) : other;
  }

  int vocab_;
  Random random_;
};
