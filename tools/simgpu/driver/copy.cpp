#include "tools/simgpu/driver/copy.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/capture.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/engines.hpp"
#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {
namespace {

// False when the program's arithmetic leaves the address space.
bool extent_of(const CopySide& side, const CopyRequest& request, std::size_t& extent) {
  std::size_t slices = 0, rows = 0;
  if (__builtin_mul_overflow(side.slice, request.depth - 1, &slices)) return false;
  if (__builtin_mul_overflow(side.pitch, request.height - 1, &rows)) return false;
  if (__builtin_add_overflow(slices, rows, &extent) || __builtin_add_overflow(extent, request.width, &extent)) return false;
  return extent <= UINTPTR_MAX - side.address;
}

// What the operand is now. INVALID_VALUE when it leaves its allocation or isn't memory of the driver though
// it should be; holes in reservations are left to the execution, as on a GPU.
CUresult classify(const Touch& touch, Where& where) {
  const std::lock_guard lock(memory_mutex());
  AddressSpace& space = address_space();
  const Range* const range = space.find(touch.begin);
  if (!range) {
    const bool hole = space.reserved(touch.begin, touch.begin + 1);
    where.memory = hole ? Memory::device : Memory::pageable;
    return touch.device_typed && !hole ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  const bool whole = range->kind == RangeKind::mapping || touch.end <= range->end();
  const bool registered = range->kind == RangeKind::registered;
  if (!whole && (!registered || touch.device_typed)) return CUDA_ERROR_INVALID_VALUE;
  where.memory = range->kind == RangeKind::managed ? Memory::managed
                 : range->on_host()                ? (whole ? Memory::pinned : Memory::pageable)
                                                   : Memory::device;
  if (where.memory == Memory::device) where.device = range->device;
  return CUDA_SUCCESS;
}

bool on_host(Memory memory) { return memory == Memory::pinned || memory == Memory::pageable; }

// Runs `work` on operands that the device may touch; a GPU's fault otherwise.
template <class Work>
CUresult touching(std::array<Touch, 2> touches, int device, Work work) {
  Busy busy;
  busy.touches = touches;
  {
    const std::lock_guard lock(memory_mutex());
    if (!address_space().begin_touching(busy, device)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  work();
  const std::lock_guard lock(memory_mutex());
  return address_space().end_touching(busy) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

void copy_rows(const CopyRequest& request, std::uintptr_t destination, std::uintptr_t source) {
  for (std::size_t z = 0; z < request.depth; ++z) {
    for (std::size_t y = 0; y < request.height; ++y) {
      std::memmove(reinterpret_cast<void*>(destination + z * request.destination.slice + y * request.destination.pitch),
                   reinterpret_cast<const void*>(source + z * request.source.slice + y * request.source.pitch), request.width);
    }
  }
}

// Zeros over whole pages of a card's file are a hole in it: they take no memory of the host.
bool punch(const FillRequest& request) {
  constexpr std::uint64_t kWorth = 2u << 20, kPageMask = 4095;
  const std::uint64_t bytes = request.width * request.element;
  if (request.value != 0 || request.height != 1 || bytes < kWorth || ((request.address | bytes) & kPageMask) != 0) return false;
  return ::madvise(reinterpret_cast<void*>(request.address), bytes, MADV_REMOVE) == 0;
}

void fill_rows(const FillRequest& request) {
  if (punch(request)) return;
  for (std::size_t y = 0; y < request.height; ++y) {
    const std::uintptr_t row = request.address + y * request.pitch;
    if (request.element == 1) {
      std::memset(reinterpret_cast<void*>(row), static_cast<int>(request.value), request.width);
    } else if (request.element == 2) {
      std::fill_n(reinterpret_cast<std::uint16_t*>(row), request.width, static_cast<std::uint16_t>(request.value));
    } else {
      std::fill_n(reinterpret_cast<std::uint32_t*>(row), request.width, request.value);
    }
  }
}

// A copy whose source was read at submission.
class StagedCopy : public Work {
 public:
  StagedCopy(std::shared_ptr<CopyWork> copy, std::vector<char> taken) : copy_(std::move(copy)), taken_(std::move(taken)) {}
  CUgraphNodeType type() const override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
  std::string label() const override { return copy_->label(); }
  CUresult perform(Context& context) const override { return copy_->perform_staged(context, taken_.data()); }

 private:
  const std::shared_ptr<CopyWork> copy_;
  const std::vector<char> taken_;
};

std::vector<char> stage(std::uintptr_t source, std::size_t extent) {
  const auto* const bytes = reinterpret_cast<const char*>(source);
  return {bytes, bytes + extent};
}

CUresult submit_and_wait(const StreamRef& stream, Operation operation, bool wait) {
  Point point;
  if (const CUresult result = submit(stream, std::move(operation), &point)) return result;
  return wait ? wait_for(point) : CUDA_SUCCESS;
}

}  // namespace

CUresult CopyWork::make(const CopyRequest& request, std::shared_ptr<CopyWork>& work) {
  work.reset();
  if (request.width == 0 || request.height == 0 || request.depth == 0) return CUDA_SUCCESS;
  std::size_t written = 0, read = 0;
  const bool spans_valid = extent_of(request.destination, request, written) && extent_of(request.source, request, read);
  if (!spans_valid || !request.destination.address || !request.source.address) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<CopyWork>();
  made->request_ = request;
  made->destination_ = {request.destination.address, request.destination.address + written, true,
                        request.destination.device_typed};
  made->source_ = {request.source.address, request.source.address + read, false, request.source.device_typed};
  if (const CUresult result = classify(made->destination_, made->to_)) return result;
  if (const CUresult result = classify(made->source_, made->from_)) return result;
  work = std::move(made);
  return CUDA_SUCCESS;
}

std::string CopyWork::label() const {
  const char* const way = on_host(from_.memory) ? (on_host(to_.memory) ? "host to host" : "host to device")
                          : on_host(to_.memory) ? "device to host"
                                                : "device to device";
  return std::string("copy ") + way + " " + std::to_string(request_.width * request_.height * request_.depth);
}

CUresult CopyWork::perform_from(Context& context, std::uintptr_t source, const Touch& read) const {
  return touching({destination_, read}, context.device, [&] {
    const std::uint64_t bytes = request_.width * request_.height * request_.depth;
    std::optional<EngineUse> in, out;
    const bool across = from_.memory == Memory::device && to_.memory == Memory::device && from_.device != to_.device;
    const int home = context.device;
    if (across || (from_.memory == Memory::device && on_host(to_.memory))) {
      out.emplace(from_.device < 0 ? home : from_.device, Direction::to_host, bytes, to_.memory == Memory::pageable);
    }
    if (across || (to_.memory == Memory::device && on_host(from_.memory))) {
      in.emplace(to_.device < 0 ? home : to_.device, Direction::to_device, bytes, from_.memory == Memory::pageable);
    }
    if (!in && !out && from_.memory == Memory::device) in.emplace(home, Direction::inside, 2 * bytes);
    copy_rows(request_, destination_.begin, source);
  });
}

CUresult CopyWork::perform_staged(Context& context, const void* taken) const {
  return perform_from(context, reinterpret_cast<std::uintptr_t>(taken), Touch{});
}

CUresult copy(const CopyRequest& request) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(request.stream, stream)) return result;
  if (request.synchronous && capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::shared_ptr<CopyWork> work;
  if (const CUresult result = CopyWork::make(request, work)) return result;
  if (!work) return CUDA_SUCCESS;
  const Memory to = work->to(), from = work->from();
  const bool capturing = is_capturing(*stream);
  const bool host_to_host = on_host(to) && on_host(from);
  // Where nothing is in the way a pageable source is read by the copy itself, else from a copy taken now: both are allowed.
  const bool read_in_place = from == Memory::pageable && stream->idle();
  const bool wait = !capturing && (request.synchronous ? on_host(to) || on_host(from)
                                                       : host_to_host || to == Memory::pageable || read_in_place);
  const bool staged = !capturing && !wait && from == Memory::pageable;

  Operation operation;
  operation.writes_host = on_host(to);
  if (staged) {
    if (const CUresult result = wait_for(stream->last_host_write())) return result;
    const Touch& source = work->source();
    operation.work = std::make_shared<StagedCopy>(work, stage(source.begin, source.end - source.begin));
  } else {
    operation.work = std::move(work);
  }
  return submit_and_wait(stream, std::move(operation), wait);
}

CUresult FillWork::make(const FillRequest& request, std::shared_ptr<FillWork>& work) {
  work.reset();
  if (request.width == 0 || request.height == 0) return CUDA_SUCCESS;
  if (request.element != 1 && request.element != 2 && request.element != 4) return CUDA_ERROR_INVALID_VALUE;
  if (request.address % request.element != 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t row = 0, extent = 0;
  const bool span_valid = !__builtin_mul_overflow(request.width, std::size_t{request.element}, &row) &&
                          !__builtin_mul_overflow(request.pitch, request.height - 1, &extent) &&
                          !__builtin_add_overflow(extent, row, &extent) && extent <= UINTPTR_MAX - request.address;
  if (!span_valid) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<FillWork>();
  made->request_ = request;
  made->destination_ = {request.address, request.address + extent, true, true};
  if (const CUresult result = classify(made->destination_, made->where_)) return result;
  work = std::move(made);
  return CUDA_SUCCESS;
}

CUresult FillWork::perform(Context& context) const {
  return touching({destination_, Touch{}}, context.device, [&] {
    std::optional<EngineUse> use;
    const std::uint64_t bytes = request_.width * request_.height * request_.element;
    if (where_.memory == Memory::device) use.emplace(context.device, Direction::inside, bytes);
    fill_rows(request_);
  });
}

CUresult fill(const FillRequest& request) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(request.stream, stream)) return result;
  if (request.synchronous && capture_forbids()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::shared_ptr<FillWork> work;
  if (const CUresult result = FillWork::make(request, work)) return result;
  if (!work) return CUDA_SUCCESS;
  Operation operation;
  operation.writes_host = on_host(work->memory());
  const bool wait = request.synchronous && operation.writes_host && !is_capturing(*stream);
  operation.work = std::move(work);
  return submit_and_wait(stream, std::move(operation), wait);
}

}  // namespace simgpu
