#include "shim/calls/memory.hpp"

#include <new>

#include "shim/calls/capture.hpp"
#include "shim/calls/native_blocks.hpp"
#include "shim/gate/gate.hpp"
#include "shim/hook/driver_library.hpp"
#include "shim/hook/libc.hpp"
#include "shim/hook/process.hpp"

extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library);

namespace vramd::shim {
namespace {

// Everything lives as long as the process: no destructor runs inside a host program.
alignas(Memory) unsigned char memory_place[sizeof(Memory)];
alignas(Heap) unsigned char heap_places[kMaxDevices][sizeof(Heap)];
Driver driver_table;
Settings settings;

enum class State : int { fresh, starting, active, passive };
int state = static_cast<int>(State::fresh);

Memory* the_memory() { return std::launder(reinterpret_cast<Memory*>(memory_place)); }

bool exiting = false;

// By look-up: glibc before 2.34 has it in a library of its own, which not every process has.
decltype(Line::Work::create_thread) thread_creator() {
  const hook::Libc libc = hook::libc();
  void* found = libc.dlsym(RTLD_DEFAULT, "pthread_create");
  if (found == nullptr) {
    void* library = libc.dlopen("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = libc.dlsym(library, "pthread_create");
  }
  return reinterpret_cast<decltype(Line::Work::create_thread)>(found);
}

void* resolve(void*, const char* name) { return hook::real_entry(name); }

}  // namespace

Memory* Memory::active() {
  // Matched by the release in start(): whoever sees `active` sees the object.
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != static_cast<int>(State::active)) return nullptr;
  return hook::passes_through() ? nullptr : the_memory();
}

void Memory::start() {
  if (hook::disabled()) return;
  int expected = static_cast<int>(State::fresh);
  if (!__atomic_compare_exchange_n(&state, &expected, static_cast<int>(State::starting), false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return;  // another thread is at it or was: until it is done calls are native, which is always right
  hook::mark_process();
  gate::prepare();
  hook::OwnCall own;
  State next = State::passive;
  settings = read_settings();
  if (settings.mode == protocol::Mode::off) {
    log(LogLevel::info, "mode off (VRAMD_MODE): every call goes to the driver");
  } else if (auto loaded = load_driver(resolve, nullptr); !loaded) {
    log(LogLevel::info, "mode off: the driver lacks %s", loaded.error().what);
  } else {
    driver_table = *loaded;
    Memory* memory = new (memory_place) Memory(driver_table, settings);
    memory->source_.set_line_work({&recall, &tick, memory, thread_creator()});
    if (memory->prepare(memory->source_.introduce(memory->device_count_))) {
      next = State::active;
      static char library;  // stands for this library, which is never unloaded
      __cxa_atexit(at_exit, nullptr, &library);
    }
  }
  __atomic_store_n(&state, static_cast<int>(next), __ATOMIC_RELEASE);
}

Memory::Memory(const Driver& driver, const Settings& wishes) : driver_(driver), source_(driver, wishes) {
  if (driver_.device_get_count(&device_count_) != CUDA_SUCCESS || device_count_ < 0) device_count_ = 0;
  if (device_count_ > kMaxDevices) {
    log(LogLevel::warn, "%d devices are visible; vramd manages the first %d, the others are native", device_count_,
        kMaxDevices);
    device_count_ = kMaxDevices;
  }
}

bool Memory::prepare(protocol::Mode mode) {
  if (mode == protocol::Mode::off) {
    log(LogLevel::info, "mode off (policy): every call goes to the driver");
    return false;
  }
  if (mode == protocol::Mode::observe) return true;
  for (int device = 0; device < device_count_; ++device) {
    if (device_has_vmm(device)) {
      heaps_[device] = new (heap_places[device]) Heap(driver_, device, source_);
    } else {
      log(LogLevel::info, "device %d: native allocations, it has no virtual memory management with 2 MiB granularity", device);
    }
  }
  return true;
}

bool Memory::device_has_vmm(int device) const {
  int supported = 0;
  if (driver_.device_get_attribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) !=
          CUDA_SUCCESS ||
      supported == 0)
    return false;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  std::size_t granularity = 0;
  return driver_.mem_get_allocation_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
         granularity != 0 && kSmallChunk.value % granularity == 0;
}

Heap* Memory::owner(DevicePtr p, Heap::Owned& owned, heap::BlockInfo& block) {
  for (int device = 0; device < device_count_; ++device) {
    if (heaps_[device] == nullptr) continue;
    owned = heaps_[device]->find(p, &block);
    if (owned != Heap::Owned::no) return heaps_[device];
  }
  owned = Heap::Owned::no;
  return nullptr;
}

int Memory::current_device() const {
  CUdevice device = -1;
  return driver_.ctx_get_device(&device) == CUDA_SUCCESS ? device : -1;
}

Result<void> Memory::synchronize(const void* context) const {
  CUcontext current = nullptr;
  CUcontext wanted = static_cast<CUcontext>(const_cast<void*>(context));
  if (auto asked = check(driver_.ctx_get_current(&current), "cuCtxGetCurrent"); !asked) return asked;
  if (current == wanted) return check(driver_.ctx_synchronize(), "cuCtxSynchronize");
  if (auto pushed = check(driver_.ctx_push_current(wanted), "cuCtxPushCurrent"); !pushed) return pushed;
  auto synchronized = check(driver_.ctx_synchronize(), "cuCtxSynchronize");
  CUcontext popped = nullptr;
  auto restored = check(driver_.ctx_pop_current(&popped), "cuCtxPopCurrent");
  return synchronized ? restored : synchronized;
}

Memory::Youngest Memory::youngest() const {
  Youngest last{};
  for (int device = 0; device < device_count_; ++device)
    if (heaps_[device] != nullptr) last.block[device] = heaps_[device]->last_id();
  last.native = last_native_id();
  return last;
}

void Memory::drop_context(const void* context, const Youngest& last) {
  end_captures_of(context);
  for (int device = 0; device < device_count_; ++device)
    if (heaps_[device] != nullptr) heaps_[device]->drop_context(context, last.block[device]);
  for (NativeBlock block; forget_native_of(context, last.native, block);) source_.leave_native(block.device, block.size);
}

CUresult to_result(const Error& error) {
  switch (error.code) {
    case ErrorCode::out_of_memory:
    case ErrorCode::over_limit: return CUDA_ERROR_OUT_OF_MEMORY;
    case ErrorCode::driver: return static_cast<CUresult>(error.detail);
    default: return CUDA_ERROR_UNKNOWN;
  }
}

CUdeviceptr no_device_address() {
  static char here;
  return reinterpret_cast<CUdeviceptr>(&here);
}

void Memory::recall(void* self, const protocol::Recall& wanted) {
  Memory& memory = *static_cast<Memory*>(self);
  if (__atomic_load_n(&exiting, __ATOMIC_RELAXED)) return;
  hook::OwnCall own;
  const int device = memory.source_.device_of(wanted.device);
  Heap* heap = memory.heap(device);
  if (heap != nullptr && !capture_in_progress()) {
    RelaxedCapture relaxed(memory.driver_);  // one may begin now
    heap->give_back_idle(saturating_sub(heap->totals().idle, {wanted.bytes}));
  }
  memory.source_.recalled(wanted);
}

// Two lines' threads may be here at once for a moment, after a daemon was lost: the worst is a tick more or less.
void Memory::tick(void* self) {
  constexpr int kQuietTicks = 3;
  Memory& memory = *static_cast<Memory*>(self);
  if (__atomic_load_n(&exiting, __ATOMIC_RELAXED)) return;
  hook::OwnCall own;
  for (int device = 0; device < memory.device_count_; ++device) {
    Heap* heap = memory.heaps_[device];
    if (heap == nullptr) continue;
    const std::uint64_t youngest = heap->last_id();
    const bool quiet = __atomic_exchange_n(&memory.youngest_at_tick_[device], youngest, __ATOMIC_RELAXED) == youngest;
    const int ticks = quiet ? __atomic_add_fetch(&memory.quiet_ticks_[device], 1, __ATOMIC_RELAXED) : 0;
    if (!quiet) __atomic_store_n(&memory.quiet_ticks_[device], 0, __ATOMIC_RELAXED);
    if (ticks < kQuietTicks || heap->totals().idle == Bytes{0} || capture_in_progress()) continue;
    RelaxedCapture relaxed(memory.driver_);
    heap->give_back_idle({});
  }
}

// Runs in exit(), before the driver's own handlers, which were registered earlier, in cuInit. What the program has freed is
// given back in good order, so that others get it at once; what it still holds stays as it is: the daemon sees the process
// end and takes those bytes back from the driver.
void Memory::at_exit(void*) {
  Memory* memory = active();
  if (memory == nullptr) return;
  hook::OwnCall own;
  __atomic_store_n(&exiting, true, __ATOMIC_RELAXED);
  for (int device = 0; device < memory->device_count_; ++device)
    if (Heap* heap = memory->heaps_[device]) heap->give_back_idle({});
  memory->source_.goodbye();
  const SourceCounters n = memory->source_.counters();
  log(LogLevel::info, "exit: %llu chunks from the daemon (%llu recycled), %llu of its own, %llu given back",
      static_cast<unsigned long long>(n.granted), static_cast<unsigned long long>(n.recycled),
      static_cast<unsigned long long>(n.created), static_cast<unsigned long long>(n.returned));
}

}  // namespace vramd::shim
