// vramd_calibrate [--device N] [--box MS] [--largest MIB] FILE: how long what vramd does takes on this driver and GPU, as JSON.
// Needs libc and the driver. Failed calls are recorded with their code, never fatal.
// Exit: 0 written, 2 no usable GPU, 64 usage.
#include "tests/gpu/calibrate.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace calibrate {

double now_us() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double Samples::at(double part) {
  if (count_ == 0) return 0;
  std::qsort(values_, static_cast<std::size_t>(count_), sizeof(double), [](const void* a, const void* b) {
    const double x = *static_cast<const double*>(a), y = *static_cast<const double*>(b);
    return x < y ? -1 : x > y ? 1 : 0;
  });
  return values_[static_cast<int>(part * (count_ - 1) + 0.5)];
}

void Report::begin(const char* name) {
  std::fprintf(static_cast<FILE*>(file_), "%s\n    \"%s\": ", first_ ? "" : ",", name);
  first_ = false;
}

void Report::add(const char* name, const char* unit, Samples& samples, std::size_t bytes) {
  if (samples.count() == 0) return;
  begin(name);
  auto* file = static_cast<FILE*>(file_);
  std::fprintf(file, "{\"unit\": \"%s\", \"median\": %.4g, \"p90\": %.4g, \"least\": %.4g, \"count\": %d", unit,
               samples.at(0.5), samples.at(0.9), samples.at(0), samples.count());
  if (bytes != 0) std::fprintf(file, ", \"bytes\": %zu", bytes);
  std::fprintf(file, "}");
  std::fflush(file);  // what was measured stays, should a later call not return
}

void Report::add_value(const char* name, const char* unit, double value) {
  begin(name);
  std::fprintf(static_cast<FILE*>(file_), "{\"unit\": \"%s\", \"value\": %.10g}", unit, value);
}

void Report::add_error(const char* name, const char* call, CUresult error) {
  begin(name);
  const int length = static_cast<int>(std::strcspn(call, "("));  // the rest is of no use to readers
  std::fprintf(static_cast<FILE*>(file_), "{\"call\": \"%.*s\", \"error\": %d}", length, call, static_cast<int>(error));
}

Name::Name(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
}

namespace {

[[noreturn]] void stop(const char* what, const char* value) {
  std::fprintf(stderr, "vramd_calibrate: %s%s\nusage: vramd_calibrate [--device N] [--box MS] [--largest MIB] FILE\n", what,
               value);
  std::exit(64);
}

// Not strtol: newer build hosts bind it to a version of libc that older machines lack.
long number(const char* flag, const char* text, long least, long greatest) {
  long value = 0;
  const char* at = text;
  for (; at != nullptr && *at >= '0' && *at <= '9' && value <= greatest; ++at) value = value * 10 + (*at - '0');
  if (at == nullptr || at == text || *at != '\0' || value < least || value > greatest) {
    std::fprintf(stderr, "vramd_calibrate: %s takes a number from %ld to %ld\n", flag, least, greatest);
    std::exit(64);
  }
  return value;
}

// ---- What a context costs, as another process sees it
// -------------------------------------------------------------------------

// In a process of its own: answers every byte with the free memory of the device.
int observe(int device) {
  CUdevice handle;
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&handle, device) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, handle) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return 2;
  char question;
  while (read(STDIN_FILENO, &question, 1) == 1) {
    std::size_t free = 0, total = 0;
    if (cuMemGetInfo(&free, &total) != CUDA_SUCCESS) return 2;
    if (write(STDOUT_FILENO, &free, sizeof(free)) != sizeof(free)) return 2;
  }
  return 0;
}

class Observer {
 public:
  // Before this process' cuInit: a child must not inherit a driver.
  explicit Observer(int device) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const int fd : {to[0], to[1], from[0], from[1]}) close(fd);
      const Name index("%d", device);
      execl("/proc/self/exe", "vramd_calibrate", "--observe", index.text, nullptr);
      _exit(2);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }

  bool free_bytes(std::size_t& free) {
    return child_ > 0 && write(to_, "?", 1) == 1 && read(from_, &free, sizeof(free)) == sizeof(free);
  }

  void end() {
    if (child_ <= 0) return;
    close(to_);
    close(from_);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

void describe_device(FILE* file, CUdevice device) {
  char name[256] = "";
  std::size_t bytes = 0;
  int driver = 0;
  cuDeviceGetName(name, sizeof(name), device);
  cuDeviceTotalMem(&bytes, device);
  cuDriverGetVersion(&driver);
  for (char& letter : name)
    if (letter == '"' || letter == '\\') letter = ' ';
  std::fprintf(file, "{\n  \"program\": \"vramd_calibrate\",\n  \"version\": 1,\n  \"gpu\": {\"name\": \"%s\", \"bytes\": %zu",
               name, bytes);
  const struct {
    const char* name;
    CUdevice_attribute attribute;
  } attributes[] = {{"major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
                    {"minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
                    {"multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
                    {"copy_engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
                    {"vmm", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
                    {"host_numa", CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
                    {"host_numa_id", CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
                    {"pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
                    {"pageable_access", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
                    {"compute_mode", CU_DEVICE_ATTRIBUTE_COMPUTE_MODE}};
  for (const auto& entry : attributes) {
    int value = -1;
    cuDeviceGetAttribute(&value, entry.attribute, device);
    std::fprintf(file, ", \"%s\": %d", entry.name, value);
  }
  std::fprintf(file, "},\n  \"driver\": %d,\n  \"measurements\": {", driver);
}

// What is here, as JSON on stdout: tests/gpu/run asks before anything else.
int probe() {
  int driver = 0, devices = 0;
  const CUresult error = cuInit(0);
  cuDriverGetVersion(&driver);
  if (error == CUDA_SUCCESS) cuDeviceGetCount(&devices);
  std::printf("{\"cuInit\": %d, \"driver\": %d, \"devices\": %d}\n", static_cast<int>(error), driver, devices);
  return error == CUDA_SUCCESS && devices > 0 ? 0 : 2;
}

int measure(const Options& options, FILE* file) {
  Observer observer(options.device);
  CUdevice device;
  CUresult error = cuInit(0);
  if (error == CUDA_SUCCESS) error = cuDeviceGet(&device, options.device);
  if (error != CUDA_SUCCESS) {
    std::fprintf(stderr, "vramd_calibrate: device %d cannot be used: driver error %d\n", options.device,
                 static_cast<int>(error));
    observer.end();
    return 2;
  }
  describe_device(file, device);
  Report report(file);
  std::size_t before = 0, after = 0;
  bool observed = observer.free_bytes(before);
  measure_chunks(report, options, "no_context");

  CUcontext context = nullptr;
  Attempt attempt;
  Samples retain;
  observed = observed && observer.free_bytes(before);
  if (!TIMED(attempt, retain, cuDevicePrimaryCtxRetain(&context, device)) || !TRY(attempt, cuCtxSetCurrent(context))) {
    report.add_error("context/create", attempt.call, attempt.error);
  } else {
    report.add("context/create", "us", retain);
    if (observed && observer.free_bytes(after))
      report.add_value("context/bytes", "bytes", static_cast<double>(before) - static_cast<double>(after));
    observer.end();  // its context would be in the way of the largest allocations
    measure_chunks(report, options, "context");
    measure_access_of_many(report, options);
    measure_sharing(report, options);
    measure_allocations(report, options);
    measure_host_memory(report, options);
    measure_submission(report, options);
    measure_copies(report, options);
    measure_kernels(report, options);
    cuDevicePrimaryCtxRelease(device);
  }
  observer.end();
  std::fprintf(file, "\n  }\n}\n");
  return 0;
}

}  // namespace
}  // namespace calibrate

int main(int argc, char** argv) {
  using namespace calibrate;
  Options options;
  const char* path = nullptr;
  for (int i = 1; i < argc; ++i) {
    const char* flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (std::strcmp(flag, "-h") == 0 || std::strcmp(flag, "--help") == 0) {
      std::printf(
          "usage: vramd_calibrate [--device N] [--box MS] [--largest MIB] FILE\n"
          "  --box MS        longest time of one measurement (300)\n"
          "  --largest MIB   of copies and kernels (256)\n"
          "  --probe         only says whether there is a usable GPU; exit 0 or 2\n");
      return 0;
    }
    if (std::strcmp(flag, "--probe") == 0) return probe();
    if (std::strcmp(flag, "--observe") == 0) return observe(static_cast<int>(number(flag, value, 0, 63)));
    if (std::strcmp(flag, "--device") == 0) {
      options.device = static_cast<int>(number(flag, value, 0, 63));
      ++i;
    } else if (std::strcmp(flag, "--box") == 0) {
      options.box_us = static_cast<double>(number(flag, value, 1, 60000)) * 1e3;
      ++i;
    } else if (std::strcmp(flag, "--largest") == 0) {
      options.largest = static_cast<std::size_t>(number(flag, value, 1, 4096)) << 20;
      ++i;
    } else if (flag[0] == '-') {
      stop("no such flag: ", flag);
    } else if (path != nullptr) {
      stop("one FILE only, not also ", flag);
    } else {
      path = flag;
    }
  }
  if (path == nullptr) stop("name the FILE to write", "");
  FILE* file = std::fopen(path, "w");
  if (file == nullptr) stop("name a file in a folder that exists, cannot write ", path);
  const int exit_code = measure(options, file);
  return std::fclose(file) == 0 ? exit_code : 2;
}
