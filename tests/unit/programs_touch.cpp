// The kernels with which replay touches blocks, on the host: which bytes they write, and that no wrong byte
// escapes them.
#include <vector>

#include "tests/support/catch.hpp"
#include "tools/simgpu/twins/host_kernels.hpp"

#include "tests/programs/replay_kernels.cuh"

namespace {

constexpr unsigned char kUntouched = 0xa5;
constexpr unsigned long long kStride = 4096, kLength = 64, kNothingWrong = ~0ULL;

struct TouchedBlock {
  explicit TouchedBlock(unsigned long long size, unsigned long long stride = kStride, unsigned long long length = kLength)
      : words(size / 8 + 1), spans{reinterpret_cast<unsigned char*>(words.data()), size, stride, length} {
    std::memset(words.data(), kUntouched, words.size() * 8);
    for_each_span([&] { touch_write(spans, tag); });
  }

  template <class Kernel>
  void for_each_span(Kernel kernel) {
    blockDim = dim3(1, 1, 1);
    for (unsigned i = 0; i < touch_span_count(spans) + 1; ++i) {  // one thread too many, as in a launch
      blockIdx = {i, 0, 0};
      kernel();
    }
  }

  unsigned long long first_wrong(unsigned long long with_tag = tag) {
    unsigned long long offset = kNothingWrong;
    for_each_span([&] { touch_check(spans, with_tag, &offset); });
    return offset;
  }

  bool must_be_touched(unsigned long long offset) const {
    return offset % spans.stride < spans.length || offset + spans.length >= spans.size;
  }

  static constexpr unsigned long long tag = 77;
  std::vector<unsigned long long> words;
  TouchSpans spans;
};

constexpr unsigned long long kSizes[] = {1,    2,    7,    8,    9,    63,   64,   65,   100,  127,  128,
                                         4095, 4096, 4097, 4100, 4159, 4160, 4161, 4224, 8192, 12345};

}  // namespace

TEST_CASE("touch_write: writes the edges of a block and nothing beside them") {
  for (const unsigned long long size : kSizes) {
    const TouchedBlock block(size);
    unsigned long long wrong = 0;
    for (unsigned long long offset = 0; offset < block.words.size() * 8; ++offset) {
      const bool touched = offset < size && block.must_be_touched(offset);
      wrong += block.spans.block[offset] != (touched ? touch_byte(TouchedBlock::tag, offset) : kUntouched);
    }
    INFO(size);
    CHECK(wrong == 0);
  }
}

TEST_CASE("touch_check: finds any changed byte of the edges, and names the first") {
  for (const unsigned long long size : kSizes) {
    TouchedBlock block(size);
    INFO(size);
    CHECK(block.first_wrong() == kNothingWrong);
    unsigned long long missed = 0;
    for (unsigned long long offset = 0; offset < size; ++offset) {
      block.spans.block[offset] ^= 0x10;
      missed += block.first_wrong() != (block.must_be_touched(offset) ? offset : kNothingWrong);
      block.spans.block[offset] ^= 0x10;
    }
    CHECK(missed == 0);
    block.spans.block[size - 1] ^= 2;
    block.spans.block[0] ^= 1;
    CHECK(block.first_wrong() == 0);
  }
}

TEST_CASE("touch_write: with spans as long as their stride it fills the block") {
  for (const unsigned long long size : kSizes) {
    const TouchedBlock block(size, 512, 512);
    unsigned long long wrong = 0;
    for (unsigned long long offset = 0; offset < size; ++offset) {
      wrong += block.spans.block[offset] != touch_byte(TouchedBlock::tag, offset);
    }
    INFO(size);
    CHECK(wrong == 0);
  }
}

TEST_CASE("touch_check: the pattern of another block is wrong") {
  TouchedBlock block(4096);
  for (unsigned long long tag = 0; tag < 100; ++tag) {
    CHECK((block.first_wrong(tag) == kNothingWrong) == (tag == TouchedBlock::tag));
  }
}
