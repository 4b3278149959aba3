// What streams did when: SIM_TIMELINE. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "tools/simgpu/driver/work.hpp"

namespace simgpu {

// Performs the work and, with SIM_TIMELINE, notes when, under the stream that this thread works for.
CUresult perform_noted(const Work& work, Context& context);

// The stream whose work this thread does; set by its worker.
extern thread_local std::uint64_t timeline_stream;

// Writes all that was noted as a JSON array of trace events ("ph": "X", microseconds), which trace viewers read. False: errno.
bool write_timeline(const std::string& path);

}  // namespace simgpu
