// sim: what the simulated driver's own calls cost on the host, so that figures measured on it can be read.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "tools/bench/bench.hpp"

namespace vramd::bench {
namespace {

constexpr const char* kProfile = "bench-2g";
constexpr std::size_t kChunk = 2u << 20;
// The profile's link, each way; see tools/simgpu/driver/profiles.cpp.
constexpr double kLinkBytesPerSecond = 2.0 * (1 << 30);
constexpr double kLinkLatency = 10e-6;
constexpr double kPageableToDevice = 0.72, kPageableToHost = 0.42;  // shares of the link; profiles.hpp
constexpr std::size_t kCopy = 64u << 20;
constexpr int kBlock = 64;  // calls that one sample is the mean of

void need(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw std::runtime_error(std::string(call) + " gives " + std::to_string(result));
}

// A simulated machine for this bench alone, in the environment before the driver is loaded.
class Machine {
 public:
  Machine() : folder_("/dev/shm/vramd-bench-" + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
    ::setenv("SIM_DIR", folder_.c_str(), 1);
    ::setenv("SIM_PROFILE", kProfile, 1);
    ::setenv("SIM_TIME", "1", 1);               // copies last as long as on the card,
    ::setenv("SIM_LATENCY_US", "create:0", 1);  // but calls only what they cost the host
    for (const char* other : {"SIM_NAME", "SIM_DEVICES", "SIM_CAPACITY_MB", "SIM_LAUNCH_US", "CUDA_VISIBLE_DEVICES"})
      ::unsetenv(other);
  }
  ~Machine() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

 private:
  std::string folder_;
};

// Typed entry points of the library.
class Library {
 public:
  explicit Library(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
  }
  template <class Function>
  Function* get(Function*, const char* name) const {
    void* found = ::dlsym(handle_, name);
    if (found == nullptr) throw std::runtime_error(std::string("no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  void* handle_;  // never closed: its worker threads live as long as the process
};
#define GET(library, name) (library).get(static_cast<decltype(&::name)>(nullptr), #name)

template <class Call>
Row timed(const char* name, int blocks, Call call) {
  Row row;
  row.name = name;
  row.unit = "ns";
  call();  // once beforehand: what is made at the first call is not the call
  for (int i = 0; i < blocks; ++i) row.samples.add(time_of_one(kBlock, call));
  return row;
}

// Two copies of kCopy, each on a stream of its own. A sample is the time of both over the time that one has at `share` of the
// link.
class Copies {
 public:
  explicit Copies(const Library& driver)
      : to_device_(GET(driver, cuMemcpyHtoDAsync_v2)),
        to_host_(GET(driver, cuMemcpyDtoHAsync_v2)),
        synchronize_(GET(driver, cuCtxSynchronize)) {
    for (int i = 0; i < 2; ++i) {
      need(GET(driver, cuMemAlloc_v2)(&device_[i], kCopy), "cuMemAlloc");
      need(GET(driver, cuMemHostAlloc)(&host_[i], kCopy, 0), "cuMemHostAlloc");
      pageable_[i].resize(kCopy);
      need(GET(driver, cuStreamCreate)(&stream_[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
  }
  enum Way { kNone, kToDevice, kToHost, kFromPageable, kToPageable };

  Row timed(const char* name, int count, Way first, Way second, double share = 1) {
    Row row;
    row.name = name;
    row.unit = "x";
    row.at_most = 1.03;
    const double alone = (kLinkLatency + static_cast<double>(kCopy) / (kLinkBytesPerSecond * share)) * 1e9;
    for (int i = 0; i <= count; ++i) {
      const double begin = now();
      start(0, first);
      start(1, second);
      need(synchronize_(), "cuCtxSynchronize");
      if (i > 0) row.samples.add((now() - begin) / alone);  // the first one touches the memory
    }
    return row;
  }

 private:
  void start(int i, Way way) {
    if (way == kToDevice) need(to_device_(device_[i], host_[i], kCopy, stream_[i]), "cuMemcpyHtoDAsync");
    if (way == kFromPageable) need(to_device_(device_[i], pageable_[i].data(), kCopy, stream_[i]), "cuMemcpyHtoDAsync");
    if (way == kToPageable) need(to_host_(pageable_[i].data(), device_[i], kCopy, stream_[i]), "cuMemcpyDtoHAsync");
    if (way == kToHost) need(to_host_(host_[i], device_[i], kCopy, stream_[i]), "cuMemcpyDtoHAsync");
  }

  decltype(&::cuMemcpyHtoDAsync_v2) to_device_;
  decltype(&::cuMemcpyDtoHAsync_v2) to_host_;
  decltype(&::cuCtxSynchronize) synchronize_;
  CUdeviceptr device_[2] = {};
  void* host_[2] = {};
  std::vector<char> pageable_[2];
  CUstream stream_[2] = {};
};

}  // namespace

Result run_sim(const Options& options) {
  const Machine machine;
  const Library driver(options.folder + "/simgpu/libcuda.so.1");
  CUcontext context = nullptr;
  need(GET(driver, cuInit)(0), "cuInit");
  need(GET(driver, cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
  need(GET(driver, cuCtxSetCurrent)(context), "cuCtxSetCurrent");
  const int blocks = options.long_run ? 2000 : 200;
  Result result{"sim", "simulated GPU", kProfile, {}};

  const auto get_current = GET(driver, cuCtxGetCurrent);
  result.rows.push_back(timed("cuCtxGetCurrent", blocks, [&] { need(get_current(&context), "cuCtxGetCurrent"); }));

  const auto allocate = GET(driver, cuMemAlloc_v2);
  const auto free = GET(driver, cuMemFree_v2);
  result.rows.push_back(timed("cuMemAlloc, cuMemFree of 256 B", blocks, [&] {
    CUdeviceptr p = 0;
    need(allocate(&p, 256), "cuMemAlloc");
    need(free(p), "cuMemFree");
  }));

  const auto create = GET(driver, cuMemCreate);
  const auto release = GET(driver, cuMemRelease);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  const auto create_and_release = [&] {
    CUmemGenericAllocationHandle handle = 0;
    need(create(&handle, kChunk, &properties, 0), "cuMemCreate");
    need(release(handle), "cuMemRelease");
  };
  result.rows.push_back(timed("cuMemCreate, cuMemRelease of 2 MiB", blocks, create_and_release));
  const double plain = result.rows.back().value();
  result.rows.push_back(timed("the same and 100 us of sleep", blocks / 40, [&] {
    create_and_release();
    ::usleep(100);
  }));
  result.rows.back().is_control = true;
  result.rows.back().at_most = 2 * plain;

  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  need(create(&handle, kChunk, &properties, 0), "cuMemCreate");
  need(GET(driver, cuMemAddressReserve)(&base, kChunk, kChunk, 0, 0), "cuMemAddressReserve");
  const auto map = GET(driver, cuMemMap);
  const auto access = GET(driver, cuMemSetAccess);
  const auto unmap = GET(driver, cuMemUnmap);
  CUmemAccessDesc rights{};
  rights.location = properties.location;
  rights.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result.rows.push_back(timed("cuMemMap, cuMemSetAccess, cuMemUnmap of 2 MiB", blocks, [&] {
    need(map(base, kChunk, 0, handle, 0), "cuMemMap");
    need(access(base, kChunk, &rights, 1), "cuMemSetAccess");
    need(unmap(base, kChunk), "cuMemUnmap");
  }));
  const int file = ::memfd_create("vramd-bench", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, kChunk) != 0) throw std::runtime_error("no memfd");
  const Row peer = timed("", blocks, [&] {
    void* at = ::mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED || ::munmap(at, kChunk) != 0) throw std::runtime_error("mmap");
  });
  ::close(file);
  result.rows.back().peer = Peer{"mmap, munmap of a memfd", peer.value()};

  CUstream stream = nullptr;
  CUdeviceptr target = 0;
  need(GET(driver, cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  need(allocate(&target, 256), "cuMemAlloc");
  const auto fill = GET(driver, cuMemsetD8Async);
  const auto synchronize = GET(driver, cuStreamSynchronize);
  result.rows.push_back(
      timed("cuMemsetD8Async of 256 B, submission", blocks, [&] { need(fill(target, 1, 256, stream), "cuMemsetD8Async"); }));
  need(synchronize(stream), "cuStreamSynchronize");
  result.rows.push_back(timed("cuMemsetD8Async of 256 B, cuStreamSynchronize", blocks / 4, [&] {
    need(fill(target, 1, 256, stream), "cuMemsetD8Async");
    need(synchronize(stream), "cuStreamSynchronize");
  }));

  Copies copies(driver);
  const int rounds = options.long_run ? 99 : 9;
  result.rows.push_back(copies.timed("64 MiB to the device, over its link time", rounds, Copies::kToDevice, Copies::kNone));
  result.rows.push_back(copies.timed("64 MiB to the host, over its link time", rounds, Copies::kToHost, Copies::kNone));
  result.rows.push_back(copies.timed("64 MiB each way at once, over one's", rounds, Copies::kToDevice, Copies::kToHost));
  result.rows.push_back(copies.timed("64 MiB from pageable memory, over its share", rounds, Copies::kFromPageable,
                                     Copies::kNone, kPageableToDevice));
  result.rows.push_back(
      copies.timed("64 MiB to pageable memory, over its share", rounds, Copies::kToPageable, Copies::kNone, kPageableToHost));
  result.rows.push_back(copies.timed("64 MiB twice the same way, over one's", rounds, Copies::kToDevice, Copies::kToDevice));
  result.rows.back().is_control = true;
  return result;
}

}  // namespace vramd::bench
