// Copies, submissions, kernels.
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "tests/gpu/calibrate.hpp"

#ifdef VRAMD_GPU_IMAGE
extern "C" const unsigned char gpu_run_image[];  // gpu_image.S
#endif

namespace calibrate {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kSizes[] = {kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB};

double gigabytes_per_second(std::size_t bytes, double us) { return static_cast<double>(bytes) / us / 1e3; }

enum class Direction { to_device, to_host, both };
constexpr const char* kDirections[] = {"h2d", "d2h", "both"};

// All that copies need. `host` is one of the three kinds of host memory.
struct Buffers {
  CUdeviceptr device = 0, second = 0;
  CUstream first_stream = nullptr, second_stream = nullptr;
};

CUresult copy_once(const Buffers& b, Direction direction, CUdeviceptr in, CUdeviceptr out, std::size_t size) {
  CUresult result = CUDA_SUCCESS;
  if (direction != Direction::to_host) result = cuMemcpyAsync(b.device, in, size, b.first_stream);
  if (result == CUDA_SUCCESS && direction != Direction::to_device) result = cuMemcpyAsync(out, b.second, size, b.second_stream);
  if (result == CUDA_SUCCESS && direction != Direction::to_host) result = cuStreamSynchronize(b.first_stream);
  if (result == CUDA_SUCCESS && direction != Direction::to_device) result = cuStreamSynchronize(b.second_stream);
  return result;
}

// `in` is read, `out` is written: two blocks of host memory that the driver can address.
void measure_link(Report& report, const Options& options, const Buffers& buffers, const char* kind, CUdeviceptr in,
                  CUdeviceptr out) {
  for (const Direction direction : {Direction::to_device, Direction::to_host, Direction::both}) {
    for (const std::size_t size : kSizes) {
      if (size > options.largest) continue;
      static Samples speed;
      speed = {};
      Attempt attempt;
      const std::size_t moved = direction == Direction::both ? 2 * size : size;
      TRY(attempt, copy_once(buffers, direction, in, out, size));  // the first one warms up
      for (Box box(options.box_us / 3); attempt.error == CUDA_SUCCESS && box.open();) {
        const double begin = now_us();
        if (TRY(attempt, copy_once(buffers, direction, in, out, size)))
          speed.add(gigabytes_per_second(moved, now_us() - begin));
      }
      const Name name("copy/%s/%s/%zuMiB", kDirections[static_cast<int>(direction)], kind, size / kMiB);
      report.add(name, "GB/s", speed, moved);
      if (attempt.error != CUDA_SUCCESS) report.add_error(name, "cuMemcpyAsync", attempt.error);
    }
  }
}

void measure_inside(Report& report, const Options& options, const Buffers& buffers) {
  for (const std::size_t size : kSizes) {
    if (size > options.largest) continue;
    static Samples speed;
    speed = {};
    Attempt attempt;
    for (Box box(options.box_us / 3); attempt.error == CUDA_SUCCESS && box.open();) {
      const double begin = now_us();
      if (TRY(attempt, cuMemcpyDtoDAsync(buffers.second, buffers.device, size, buffers.first_stream)) &&
          TRY(attempt, cuStreamSynchronize(buffers.first_stream)))
        speed.add(gigabytes_per_second(size, now_us() - begin));
    }
    report.add(Name("copy/d2d/%zuMiB", size / kMiB), "GB/s", speed, size);
    if (attempt.error != CUDA_SUCCESS) report.add_error(Name("copy/d2d/%zuMiB", size / kMiB), attempt.call, attempt.error);
  }
}

CUdeviceptr address_of(void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

void measure_copies(Report& report, const Options& options) {
  Buffers buffers;
  Attempt attempt;
  TRY(attempt, cuMemAlloc(&buffers.device, options.largest));
  TRY(attempt, cuMemAlloc(&buffers.second, options.largest));
  TRY(attempt, cuStreamCreate(&buffers.first_stream, CU_STREAM_NON_BLOCKING));
  TRY(attempt, cuStreamCreate(&buffers.second_stream, CU_STREAM_NON_BLOCKING));
  if (attempt.error != CUDA_SUCCESS) {
    report.add_error("copy", attempt.call, attempt.error);
  } else {
    measure_inside(report, options, buffers);

    Attempt pinned;
    void *in = nullptr, *out = nullptr;
    if (TRY(pinned, cuMemHostAlloc(&in, options.largest, 0)) && TRY(pinned, cuMemHostAlloc(&out, options.largest, 0))) {
      std::memset(in, 1, options.largest);
      measure_link(report, options, buffers, "pinned", address_of(in), address_of(out));
    } else {
      report.add_error("copy/pinned", pinned.call, pinned.error);
    }
    if (in != nullptr) cuMemFreeHost(in);
    if (out != nullptr) cuMemFreeHost(out);

    in = std::malloc(options.largest);
    out = std::malloc(options.largest);
    if (in != nullptr && out != nullptr) {
      std::memset(in, 1, options.largest);
      std::memset(out, 1, options.largest);
      measure_link(report, options, buffers, "pageable", address_of(in), address_of(out));
    }
    std::free(in);
    std::free(out);

    Attempt chunks;
    MappedChunk chunk_in, chunk_out;
    if (chunk_in.make(chunks, Backing::host, options.device, options.largest) &&
        chunk_out.make(chunks, Backing::host, options.device, options.largest))
      measure_link(report, options, buffers, "host_numa", chunk_in.address, chunk_out.address);
    else
      report.add_error("copy/host_numa", chunks.call, chunks.error);
    chunk_in.release();
    chunk_out.release();
  }
  if (buffers.first_stream != nullptr) cuStreamDestroy(buffers.first_stream);
  if (buffers.second_stream != nullptr) cuStreamDestroy(buffers.second_stream);
  if (buffers.device != 0) cuMemFree(buffers.device);
  if (buffers.second != 0) cuMemFree(buffers.second);
}

void measure_submission(Report& report, const Options& options) {
  static Samples idle, record, query;
  idle = record = query = {};
  Attempt attempt;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  TRY(attempt, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  TRY(attempt, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  for (Box box(options.box_us); attempt.error == CUDA_SUCCESS && box.open();) {
    TIMED(attempt, idle, cuStreamSynchronize(stream));
    TIMED(attempt, record, cuEventRecord(event, stream));
    TRY(attempt, cuStreamSynchronize(stream));
    TIMED(attempt, query, cuEventQuery(event));
  }
  report.add("stream_synchronize/idle", "us", idle);
  report.add("event_record", "us", record);
  report.add("event_query", "us", query);
  if (attempt.error != CUDA_SUCCESS) report.add_error("submission", attempt.call, attempt.error);
  if (event != nullptr) cuEventDestroy(event);
  if (stream != nullptr) cuStreamDestroy(stream);
}

#ifdef VRAMD_GPU_IMAGE
namespace {

constexpr unsigned kThreads = 256;

void measure_launch(Report& report, const Options& options, CUfunction nothing) {
  static Samples launch, whole;
  launch = whole = {};
  Attempt attempt;
  for (Box box(options.box_us); attempt.error == CUDA_SUCCESS && box.open();) {
    const double begin = now_us();
    TIMED(attempt, launch, cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    if (TRY(attempt, cuStreamSynchronize(nullptr))) whole.add(now_us() - begin);
  }
  report.add("launch/empty", "us", launch);
  report.add("launch/empty_and_wait", "us", whole);
  if (attempt.error != CUDA_SUCCESS) report.add_error("launch", attempt.call, attempt.error);
}

struct Kernel {
  const char* name;      // in the report
  const char* function;  // in the image
  bool writes;
};
constexpr Kernel kKernels[] = {{"read/sequential", "gpu_run_read", false},
                               {"write/sequential", "gpu_run_write", true},
                               {"read/random", "gpu_run_read_scattered", false},
                               {"write/random", "gpu_run_write_scattered", true}};

// GB/s of words that the kernel asked for; scattered ones move more.
void measure_kernel(Report& report, const Options& options, CUmodule module, const Kernel& kernel, const char* where,
                    CUdeviceptr words, CUdeviceptr sum) {
  static Samples speed;
  speed = {};
  Attempt attempt;
  CUfunction function = nullptr;
  int processors = 1;
  cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, options.device);
  TRY(attempt, cuModuleGetFunction(&function, module, kernel.function));
  unsigned long long count = options.largest / sizeof(unsigned);
  unsigned value = 5;
  void* reading[] = {&words, &count, &sum};
  void* writing[] = {&words, &count, &value};
  const auto blocks = static_cast<unsigned>(processors) * 8;
  for (Box box(options.box_us); attempt.error == CUDA_SUCCESS && box.open();) {
    const double begin = now_us();
    if (TRY(attempt,
            cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, kernel.writes ? writing : reading, nullptr)) &&
        TRY(attempt, cuStreamSynchronize(nullptr)))
      speed.add(gigabytes_per_second(options.largest, now_us() - begin));
  }
  report.add(Name("kernel/%s/%s", kernel.name, where), "GB/s", speed, options.largest);
  if (attempt.error != CUDA_SUCCESS) report.add_error(Name("kernel/%s/%s", kernel.name, where), attempt.call, attempt.error);
}

}  // namespace

void measure_kernels(Report& report, const Options& options) {
  Attempt attempt;
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUdeviceptr sum = 0, device = 0;
  TRY(attempt, cuModuleLoadData(&module, gpu_run_image)) &&
      TRY(attempt, cuModuleGetFunction(&nothing, module, "gpu_run_nothing")) && TRY(attempt, cuMemAlloc(&sum, 256));
  if (attempt.error != CUDA_SUCCESS) {
    report.add_error("kernel", attempt.call, attempt.error);
    if (module != nullptr) cuModuleUnload(module);
    return;
  }
  measure_launch(report, options, nothing);
  if (cuMemAlloc(&device, options.largest) == CUDA_SUCCESS) {
    for (const Kernel& kernel : kKernels) measure_kernel(report, options, module, kernel, "device", device, sum);
    cuMemFree(device);
  }
  MappedChunk chunk;
  Attempt made;
  if (chunk.make(made, Backing::host, options.device, options.largest))
    for (const Kernel& kernel : kKernels) measure_kernel(report, options, module, kernel, "host_numa", chunk.address, sum);
  else
    report.add_error("kernel/host_numa", made.call, made.error);
  chunk.release();
  void* pinned = nullptr;
  CUdeviceptr mapped = 0;
  if (cuMemHostAlloc(&pinned, options.largest, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS &&
      cuMemHostGetDevicePointer(&mapped, pinned, 0) == CUDA_SUCCESS)
    for (const Kernel& kernel : kKernels) measure_kernel(report, options, module, kernel, "pinned", mapped, sum);
  if (pinned != nullptr) cuMemFreeHost(pinned);
  cuMemFree(sum);
  cuModuleUnload(module);
}
#else
void measure_kernels(Report& report, const Options&) {
  report.add_error("kernel", "built without nvcc: no kernels", CUDA_ERROR_NOT_FOUND);
}
#endif

}  // namespace calibrate
