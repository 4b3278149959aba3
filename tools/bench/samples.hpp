// Timings of one case, and how they are taken.
#pragma once

#include <cstddef>
#include <vector>

namespace vramd::bench {

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  void add(const Samples& more) { values_.insert(values_.end(), more.values_.begin(), more.values_.end()); }
  std::size_t size() const { return values_.size(); }
  // The nearest-rank percentile, `percent` from 0 to 100; 0 without samples.
  double percentile(double percent) const;

 private:
  std::vector<double> values_;
};

// Nanoseconds of CLOCK_MONOTONIC.
double now();

// Nanoseconds of one call, from a block of `calls`.
template <class Call>
double time_of_one(int calls, Call call) {
  const double begin = now();
  for (int i = 0; i < calls; ++i) call();
  return (now() - begin) / calls;
}

struct Pairs {
  Samples first, second, difference;  // difference: second minus first, pair by pair
};

// Takes `count` pairs in turn, each time in the other order, so that what drifts meets both. `first` and `second` return a
// sample.
template <class First, class Second>
Pairs take_pairs(int count, First first, Second second) {
  Pairs pairs;
  for (int i = 0; i < count; ++i) {
    double a = 0, b = 0;
    if (i % 2 == 0) a = first(), b = second();
    if (i % 2 != 0) b = second(), a = first();
    pairs.first.add(a);
    pairs.second.add(b);
    pairs.difference.add(b - a);
  }
  return pairs;
}

}  // namespace vramd::bench
