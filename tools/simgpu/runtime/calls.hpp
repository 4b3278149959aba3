// How a runtime function is written: SIMGPU_API or SIMGPU_BOTH_FORMS for its export, `direct` or `through`
// for its driver call.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tools/simgpu/runtime/driver_table.hpp"
#include "tools/simgpu/runtime/state.hpp"

#include "rows.hpp"  // generated; needs the two above

#define SIMGPU_API extern "C" __attribute__((visibility("default")))

// Defines cudaXxx and its per-thread form (suffix _ptsz or _ptds) with one body, a template on `form`:
//   SIMGPU_BOTH_FORMS(cudaStreamQuery, _ptsz, (cudaStream_t stream), (stream)) { ... row::cudaStreamQuery,
//   form ... }
#define SIMGPU_BOTH_FORMS(name, suffix, parameters, arguments)                                      \
  namespace body {                                                                                  \
  template <Form form>                                                                              \
  cudaError_t name parameters;                                                                      \
  }                                                                                                 \
  SIMGPU_API cudaError_t name##suffix parameters;                                                   \
  SIMGPU_API cudaError_t name parameters { return body::name<Form::legacy> arguments; }             \
  SIMGPU_API cudaError_t name##suffix parameters { return body::name<Form::per_thread> arguments; } \
  template <Form form>                                                                              \
  cudaError_t body::name parameters

namespace simgpu::runtime {

// Runtime and driver have types of their own for the same things: enums with the same numbers, handles,
// structs with the same layout. as<T>(x) says that x is to be understood as the other side's T.
template <class To, class From>
To as(From from) {
  if constexpr (std::is_convertible_v<From, To>) {
    return from;
  } else if constexpr (std::is_enum_v<To> || std::is_enum_v<From>) {
    return static_cast<To>(from);
  } else if constexpr (std::is_pointer_v<To> && std::is_pointer_v<From>) {
    return (To)from;  // also between pointers to const and not: some driver prototypes lack a const that the
                      // runtime's have
  } else if constexpr (std::is_pointer_v<From> || std::is_pointer_v<To>) {
    return reinterpret_cast<To>(from);
  } else {
    return std::bit_cast<To>(from);
  }
}

inline CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

namespace detail {
template <class Entry, class Call>
CUresult call_entry(Slots slots, Form form, Call& call) {
  void* found = looked_up(form == Form::legacy ? slots.legacy : slots.per_thread);
  if (found == nullptr) return static_cast<CUresult>(cudaErrorCallRequiresNewerDriver);
  return call(reinterpret_cast<Entry>(found));
}
}  // namespace detail

// Hands the driver entry of a row to `call`, which may have to cope with the prototypes of both maps
// (adapters.hpp).
template <class Row, Form form = Form::legacy, class Call>
CUresult through(Call&& call) {
  if (map_is_permuted()) return detail::call_entry<typename Row::Permuted>(Row::kPermuted, form, call);
  return detail::call_entry<typename Row::Standard>(Row::kStandard, form, call);
}

// The driver call of a row, with its own arguments and nothing else.
template <class Row, Form form = Form::legacy, class... Arguments>
CUresult driver_call(Arguments... arguments) {
  return through<Row, form>([&](auto entry) { return entry(arguments...); });
}

// A whole runtime function that is one driver call in the current context.
template <class Row, Form form = Form::legacy, class... Arguments>
cudaError_t direct(Arguments... arguments) {
  if (const cudaError_t error = context_ready()) return finish(error);
  return finish(driver_call<Row, form>(arguments...));
}

// The same for functions that need no context.
template <class Row, class... Arguments>
cudaError_t direct_without_context(Arguments... arguments) {
  if (const cudaError_t error = driver_ready()) return finish(error);
  return finish(driver_call<Row>(arguments...));
}

}  // namespace simgpu::runtime
