// How many bytes of dead sessions the driver has not given back yet: an estimate, since cuMemGetInfo is one
// number for the whole device. Pure.
//
// free + backed changes only by what others do, and by our releases that the driver does not honour at once.
// So what that sum loses by a dirty release is stranded, and what it gains later may be those bytes coming
// back.
#pragma once

#include <algorithm>

#include "daemon/actor.hpp"

namespace vramd {

class Stranded {
 public:
  Stranded(Bytes total, Measure first) : total_(total), last_(first.free + first.backed) {}

  void observe(const Measure& measure, Bytes dirty_released = {}) {
    const Bytes sum = measure.free + measure.backed;
    if (sum < last_) bytes_ += std::min(dirty_released, last_ - sum);
    if (sum > last_) bytes_ = saturating_sub(bytes_, sum - last_);
    // Never more than what is used by somebody else.
    bytes_ = std::min(bytes_, saturating_sub(total_, sum));
    last_ = sum;
  }
  // A process whose session had ended came back and holds so many bytes: they are its own again, no matter how many of them
  // were stranded.
  void unstrand(Bytes held) { bytes_ = saturating_sub(bytes_, held); }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes total_, last_, bytes_;
};

}  // namespace vramd
