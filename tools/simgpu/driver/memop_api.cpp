// Stream memory operations.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

#include "impl.hpp"
#include "tools/simgpu/driver/address_space.hpp"
#include "tools/simgpu/driver/context.hpp"
#include "tools/simgpu/driver/memop.hpp"
#include "tools/simgpu/driver/stream.hpp"

namespace simgpu {
namespace {

constexpr unsigned kConditionMask = 3;

template <class Value>
bool condition_holds(Value now, Value wanted, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<std::make_signed_t<Value>>(now - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (now & wanted) != 0;
    default:  // NOR
      return static_cast<Value>(~(now | wanted)) != 0;
  }
}

// The word may be used for the moment of one access; false: the device faults.
template <class Value, class Access>
bool with_word(CUdeviceptr address, int device, bool write, Access access) {
  const std::lock_guard lock(memory_mutex());
  const Touch touch{address, address + sizeof(Value), write, true};
  if (!address_space().permitted(touch, device)) return false;
  address_space().open_span(touch.begin, touch.end, write);
  access(std::atomic_ref<Value>(*reinterpret_cast<Value*>(address)));
  address_space().close_span(touch.begin, touch.end, write);
  return true;
}

template <class Value>
CUresult wait_for_value(Context& context, CUdeviceptr address, Value value, unsigned flags) {
  for (;;) {
    bool holds = false;
    const auto look = [&](auto word) { holds = condition_holds<Value>(word.load(), value, flags & kConditionMask); };
    if (!with_word<Value>(address, context.device, false, look)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (holds || context.fault() != CUDA_SUCCESS) return CUDA_SUCCESS;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

template <class Value>
CUresult write_value(const Context& context, CUdeviceptr address, Value value) {
  const bool done = with_word<Value>(address, context.device, true, [&](auto word) { word.store(value); });
  return done ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult submit_operations(CUstream handle, const CUstreamBatchMemOpParams* operations, unsigned count) {
  StreamRef stream;
  if (const CUresult result = resolve_stream(handle, stream)) return result;
  std::shared_ptr<MemOpWork> work;
  if (const CUresult result = MemOpWork::make(operations, count, work)) return result;
  Operation operation;
  operation.writes_host = work->writes();
  operation.work = std::move(work);
  return submit(stream, std::move(operation));
}

CUstreamBatchMemOpParams waiting(CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams operation{};
  operation.operation = type;
  operation.waitValue.address = address;
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return operation;
}

CUstreamBatchMemOpParams writing(CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams operation{};
  operation.operation = type;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  operation.writeValue.flags = flags;
  return operation;
}

// The size of the word, 0 for an operation that has none, -1 for one that doesn't exist.
int word_size(CUstreamBatchMemOpType type) {
  switch (type) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: return 4;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return 8;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER: return 0;
    default: return -1;
  }
}

}  // namespace

CUresult MemOpWork::make(const CUstreamBatchMemOpParams* operations, unsigned count, std::shared_ptr<MemOpWork>& work) {
  constexpr unsigned kMost = 256;
  if (!operations || count == 0 || count > kMost) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<MemOpWork>();
  for (unsigned i = 0; i < count; ++i) {
    const int size = word_size(operations[i].operation);
    if (size < 0) return CUDA_ERROR_INVALID_VALUE;
    const CUdeviceptr address = size > 0 ? operations[i].waitValue.address : 0;  // the same place in both forms
    if (size > 0 && (address == 0 || address % static_cast<unsigned>(size) != 0)) return CUDA_ERROR_INVALID_VALUE;
    made->operations_.push_back(operations[i]);
  }
  work = std::move(made);
  return CUDA_SUCCESS;
}

bool MemOpWork::writes() const {
  return std::ranges::any_of(operations_, [](const CUstreamBatchMemOpParams& o) {
    return o.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || o.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
  });
}

CUresult MemOpWork::perform(Context& context) const {
  for (const CUstreamBatchMemOpParams& o : operations_) {
    CUresult result = CUDA_SUCCESS;
    switch (o.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        result = wait_for_value<std::uint32_t>(context, o.waitValue.address, o.waitValue.value, o.waitValue.flags);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        result = wait_for_value<std::uint64_t>(context, o.waitValue.address, o.waitValue.value64, o.waitValue.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        result = write_value<std::uint32_t>(context, o.writeValue.address, o.writeValue.value);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        result = write_value<std::uint64_t>(context, o.writeValue.address, o.writeValue.value64);
        break;
      default: break;  // barriers: operations run one after the other
    }
    if (result) return result;
  }
  return CUDA_SUCCESS;
}

namespace impl {

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  const auto operation = waiting(CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
  return submit_operations(stream, &operation, 1);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  const auto operation = waiting(CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
  return submit_operations(stream, &operation, 1);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  const auto operation = writing(CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
  return submit_operations(stream, &operation, 1);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  const auto operation = writing(CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
  return submit_operations(stream, &operation, 1);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : submit_operations(stream, operations, count);
}

}  // namespace impl
}  // namespace simgpu
