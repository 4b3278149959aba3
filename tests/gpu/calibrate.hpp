// Measuring and writing down, for vramd_calibrate. libc only.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace calibrate {

double now_us();

struct Options {
  int device = 0;
  double box_us = 300e3;                         // longest time that one measurement may take
  std::size_t largest = std::size_t{256} << 20;  // of copies and kernels
};

// Times of one thing.
class Samples {
 public:
  void add(double value) {
    if (count_ < kMost) values_[count_++] = value;
  }
  bool full() const { return count_ == kMost; }
  int count() const { return count_; }
  double at(double part);  // 0.5: the median. Sorts

 private:
  static constexpr int kMost = 1000;
  double values_[kMost];
  int count_ = 0;
};

// Ends a measurement after its time, or when nothing more is to be learnt. At least 3 rounds.
class Box {
 public:
  explicit Box(double us) : end_(now_us() + us) {}
  bool open() { return rounds_++ < 3 || (rounds_ <= 1000 && now_us() < end_); }

 private:
  double end_;
  int rounds_ = 0;
};

// One JSON object: name -> {unit, bytes, median, p90, least, count}, or name -> {call, error}.
class Report {
 public:
  explicit Report(void* file) : file_(file) {}
  void add(const char* name, const char* unit, Samples& samples, std::size_t bytes = 0);
  void add_value(const char* name, const char* unit, double value);
  void add_error(const char* name, const char* call, CUresult error);

 private:
  void begin(const char* name);
  void* file_;
  bool first_ = true;
};

// The name of a measurement: printf into a buffer of its own.
struct Name {
  char text[96];
  [[gnu::format(printf, 2, 3)]] explicit Name(const char* format, ...);
  operator const char*() const { return text; }
};

// Time of one driver call in samples; the first failure stays in `error`, with the call's text.
struct Attempt {
  CUresult error = CUDA_SUCCESS;
  const char* call = "";
  bool check(CUresult result, const char* text) {
    if (result != CUDA_SUCCESS && error == CUDA_SUCCESS) {
      error = result;
      call = text;
    }
    return error == CUDA_SUCCESS;
  }
};
#define TRY(attempt, expression) ((attempt).check((expression), #expression))
// With the time that it took.
#define TIMED(attempt, samples, expression)               \
  ([&] {                                                  \
    const double begin_ = ::calibrate::now_us();          \
    const CUresult result_ = (expression);                \
    const double taken_ = ::calibrate::now_us() - begin_; \
    if (result_ == CUDA_SUCCESS) (samples).add(taken_);   \
    return (attempt).check(result_, #expression);         \
  }())

enum class Backing { device, host };
inline const char* name_of(Backing backing) { return backing == Backing::device ? "device" : "host_numa"; }
CUmemAllocationProp properties_of(Backing backing, int device);
CUmemAccessDesc access_of(int device);

// A range with one chunk in it. No destructor: release() tells what failed.
struct MappedChunk {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  bool make(Attempt& attempt, Backing backing, int device, std::size_t bytes);
  void release();
};

void measure_chunks(Report& report, const Options& options, const char* when);  // when: "no_context" or "context"
void measure_access_of_many(Report& report, const Options& options);
void measure_sharing(Report& report, const Options& options);
void measure_allocations(Report& report, const Options& options);
void measure_host_memory(Report& report, const Options& options);
void measure_copies(Report& report, const Options& options);
void measure_submission(Report& report, const Options& options);
void measure_kernels(Report& report, const Options& options);

}  // namespace calibrate
