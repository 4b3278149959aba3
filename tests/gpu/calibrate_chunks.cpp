// Chunks: create, map, access, unmap, release, share; and the driver's own allocations.
#include <sys/mman.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/gpu/calibrate.hpp"

namespace calibrate {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Times {
  Samples create, map, access, unmap, release;
};

// A round: the whole life of one chunk. Stops at the first failure and cleans up.
bool live(Times& times, Attempt& attempt, const CUmemAllocationProp& properties, const CUmemAccessDesc& access,
          CUdeviceptr address, std::size_t size) {
  CUmemGenericAllocationHandle handle = 0;
  if (!TIMED(attempt, times.create, cuMemCreate(&handle, size, &properties, 0))) return false;
  if (TIMED(attempt, times.map, cuMemMap(address, size, 0, handle, 0))) {
    TIMED(attempt, times.access, cuMemSetAccess(address, size, &access, 1));
    const double begin = now_us();
    if (attempt.check(cuMemUnmap(address, size), "cuMemUnmap")) times.unmap.add(now_us() - begin);
  }
  const double begin = now_us();
  if (attempt.check(cuMemRelease(handle), "cuMemRelease")) times.release.add(now_us() - begin);
  return attempt.error == CUDA_SUCCESS;
}

}  // namespace

CUmemAllocationProp properties_of(Backing backing, int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (backing == Backing::device) {
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    return properties;
  }
  int node = 0;
  if (cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device) != CUDA_SUCCESS || node < 0) node = 0;
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, {node}};
  return properties;
}

CUmemAccessDesc access_of(int device) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

bool MappedChunk::make(Attempt& attempt, Backing backing, int device, std::size_t bytes) {
  const CUmemAllocationProp properties = properties_of(backing, device);
  const CUmemAccessDesc access = access_of(device);
  if (!TRY(attempt, cuMemAddressReserve(&address, bytes, 0, 0, 0))) return false;
  size = bytes;
  if (!TRY(attempt, cuMemCreate(&handle, bytes, &properties, 0))) return false;
  return TRY(attempt, cuMemMap(address, bytes, 0, handle, 0)) && TRY(attempt, cuMemSetAccess(address, bytes, &access, 1));
}

void MappedChunk::release() {
  if (address != 0) cuMemUnmap(address, size);  // fails where make() did not come so far
  if (handle != 0) cuMemRelease(handle);
  if (address != 0) cuMemAddressFree(address, size);
  *this = {};
}

void measure_chunks(Report& report, const Options& options, const char* when) {
  const CUmemAccessDesc access = access_of(options.device);
  for (const Backing backing : {Backing::device, Backing::host}) {
    const CUmemAllocationProp properties = properties_of(backing, options.device);
    for (const int mib : {2, 20, 32, 128}) {
      const std::size_t size = static_cast<std::size_t>(mib) * kMiB;
      static Times times;  // too large for a stack that is not ours
      times = {};
      Attempt attempt;
      CUdeviceptr address = 0;
      if (TRY(attempt, cuMemAddressReserve(&address, size, 0, 0, 0))) {
        for (Box box(options.box_us); box.open() && live(times, attempt, properties, access, address, size);) {
        }
        cuMemAddressFree(address, size);
      }
      const struct {
        const char* name;
        Samples& samples;
      } rows[] = {{"create", times.create},
                  {"map", times.map},
                  {"access", times.access},
                  {"unmap", times.unmap},
                  {"release", times.release}};
      for (const auto& row : rows)
        report.add(Name("%s/%s/%dMiB/%s", row.name, name_of(backing), mib, when), "us", row.samples, size);
      if (attempt.error != CUDA_SUCCESS)
        report.add_error(Name("chunk/%s/%dMiB/%s", name_of(backing), mib, when), attempt.call, attempt.error);
    }
  }
}

// One cuMemSetAccess over many mappings against one for each.
void measure_access_of_many(Report& report, const Options& options) {
  constexpr int kMost = 64;
  const CUmemAllocationProp properties = properties_of(Backing::device, options.device);
  const CUmemAccessDesc access = access_of(options.device);
  const struct { int count, mib; } cases[] = {{64, 2}, {8, 32}};
  for (const auto& c : cases) {
    const std::size_t size = static_cast<std::size_t>(c.mib) * kMiB;
    const std::size_t whole = size * static_cast<std::size_t>(c.count);
    CUmemGenericAllocationHandle handles[kMost] = {};
    CUdeviceptr address = 0;
    static Samples together, each;
    together = each = {};
    Attempt attempt;
    TRY(attempt, cuMemAddressReserve(&address, whole, 0, 0, 0));
    for (int i = 0; i < c.count && attempt.error == CUDA_SUCCESS; ++i)
      TRY(attempt, cuMemCreate(&handles[i], size, &properties, 0));
    bool one_by_one = false;
    for (Box box(options.box_us * 2); attempt.error == CUDA_SUCCESS && box.open(); one_by_one = !one_by_one) {
      int mapped = 0;
      for (; mapped < c.count; ++mapped)
        if (!TRY(attempt, cuMemMap(address + static_cast<std::size_t>(mapped) * size, size, 0, handles[mapped], 0))) break;
      const double begin = now_us();
      for (int i = 0; i < c.count && one_by_one; ++i)
        TRY(attempt, cuMemSetAccess(address + static_cast<std::size_t>(i) * size, size, &access, 1));
      if (!one_by_one) TRY(attempt, cuMemSetAccess(address, whole, &access, 1));
      if (attempt.error == CUDA_SUCCESS) (one_by_one ? each : together).add(now_us() - begin);
      for (int i = 0; i < mapped; ++i) cuMemUnmap(address + static_cast<std::size_t>(i) * size, size);
    }
    report.add(Name("access_of_many/%dx%dMiB/one_call", c.count, c.mib), "us", together, whole);
    report.add(Name("access_of_many/%dx%dMiB/call_each", c.count, c.mib), "us", each, whole);
    if (attempt.error != CUDA_SUCCESS)
      report.add_error(Name("access_of_many/%dx%dMiB", c.count, c.mib), attempt.call, attempt.error);
    for (const auto handle : handles)
      if (handle != 0) cuMemRelease(handle);
    if (address != 0) cuMemAddressFree(address, whole);
  }
}

void measure_sharing(Report& report, const Options& options) {
  for (const Backing backing : {Backing::device, Backing::host}) {
    for (const int mib : {2, 128}) {
      const std::size_t size = static_cast<std::size_t>(mib) * kMiB;
      const CUmemAllocationProp properties = properties_of(backing, options.device);
      static Samples out, in;
      out = in = {};
      Attempt attempt;
      CUmemGenericAllocationHandle handle = 0;
      TRY(attempt, cuMemCreate(&handle, size, &properties, 0));
      for (Box box(options.box_us / 4); attempt.error == CUDA_SUCCESS && box.open();) {
        int fd = -1;
        CUmemGenericAllocationHandle imported = 0;
        if (!TIMED(attempt, out, cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0))) break;
        auto* token = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));
        if (TIMED(attempt, in, cuMemImportFromShareableHandle(&imported, token, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
          cuMemRelease(imported);
        close(fd);
      }
      report.add(Name("export/%s/%dMiB", name_of(backing), mib), "us", out, size);
      report.add(Name("import/%s/%dMiB", name_of(backing), mib), "us", in, size);
      if (attempt.error != CUDA_SUCCESS)
        report.add_error(Name("share/%s/%dMiB", name_of(backing), mib), attempt.call, attempt.error);
      if (handle != 0) cuMemRelease(handle);
    }
  }
}

void measure_allocations(Report& report, const Options& options) {
  const std::size_t sizes[] = {256, std::size_t{64} << 10, 2 * kMiB, 64 * kMiB, 1024 * kMiB};
  for (const std::size_t size : sizes) {
    static Samples allocate, release;
    allocate = release = {};
    Attempt attempt;
    for (Box box(options.box_us); attempt.error == CUDA_SUCCESS && box.open();) {
      CUdeviceptr address = 0;
      if (TIMED(attempt, allocate, cuMemAlloc(&address, size))) TIMED(attempt, release, cuMemFree(address));
    }
    report.add(Name("alloc/%zuB", size), "us", allocate, size);
    report.add(Name("free/%zuB", size), "us", release, size);
    if (attempt.error != CUDA_SUCCESS) report.add_error(Name("alloc/%zuB", size), attempt.call, attempt.error);
  }
}

// Pinning, in milliseconds per GiB, with enough bytes that the page count decides.
void measure_host_memory(Report& report, const Options& options) {
  const std::size_t size = options.largest;
  const double per_gib = static_cast<double>(1024 * kMiB) / static_cast<double>(size) / 1e3;
  static Samples allocate, free, pin, unpin;
  allocate = free = pin = unpin = {};
  Attempt attempt;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  for (Box box(options.box_us); attempt.error == CUDA_SUCCESS && box.open();) {
    void* made = nullptr;
    double begin = now_us();
    if (!TRY(attempt, cuMemHostAlloc(&made, size, 0))) break;
    allocate.add((now_us() - begin) * per_gib);
    begin = now_us();
    if (TRY(attempt, cuMemFreeHost(made))) free.add((now_us() - begin) * per_gib);
    if (memory == MAP_FAILED) continue;
    begin = now_us();
    if (!TRY(attempt, cuMemHostRegister(memory, size, 0))) break;
    pin.add((now_us() - begin) * per_gib);
    begin = now_us();
    if (TRY(attempt, cuMemHostUnregister(memory))) unpin.add((now_us() - begin) * per_gib);
  }
  report.add("host_alloc", "ms/GiB", allocate, size);
  report.add("host_free", "ms/GiB", free, size);
  report.add("host_register", "ms/GiB", pin, size);
  report.add("host_unregister", "ms/GiB", unpin, size);
  if (attempt.error != CUDA_SUCCESS) report.add_error("host_memory", attempt.call, attempt.error);
  if (memory != MAP_FAILED) munmap(memory, size);
}

}  // namespace calibrate
