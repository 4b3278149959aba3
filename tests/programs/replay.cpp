// replay: issues the allocations of a trace through CUDA, in the trace's order and as fast as it can. `replay
// --help` lists the flags, README.md describes the output. Exit: 0 done, 1 a block was corrupt, 2 CUDA error,
// 3 out of memory, 64 usage or bad trace.
#include <cstring>
#include <map>

#include "tests/programs/cuda_check.hpp"
#include "tests/programs/replay_backend.hpp"
#include "tests/programs/replay_hold.hpp"
#include "tests/programs/replay_options.hpp"
#include "tests/programs/replay_report.hpp"
#include "tests/programs/replay_touch.hpp"

namespace {

using vramd::traces::Event;
using vramd::traces::makes_live;

constexpr int kExitOutOfMemory = 3;

std::uint64_t count_blocks(const std::vector<Event>& events) {
  std::uint64_t count = 0;
  for (const Event& event : events) count += makes_live(event.op);
  return count;
}

class Replay {
 public:
  Replay(const ReplayOptions& options, const std::vector<Event>& events)
      : options_(options),
        events_(events),
        backend_(make_backend(options.api)),
        blocks_(count_blocks(events)),
        toucher_(options.touch, blocks_.size()) {
    for (const Event& event : events) {
      cudaStream_t& stream = streams_[event.stream];
      if (!stream) REQUIRE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    REQUIRE_CUDA(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming));
  }

  // The exit status of the program.
  int run() {
    for (std::uint64_t pass = 0; pass < options_.repeat && status_ == 0; ++pass) {
      if (pass > 0) end_pass(false);
      if (status_ != 0) break;
      toucher_.start_pass(pass);
      run_pass();
    }
    if (!options_.hold) end_pass(options_.keep);
    report_.verified_bytes = toucher_.verified_bytes();
    report_.print();
    if (options_.hold && status_ == 0) {
      if (!hold()) {
        std::fprintf(stderr, "replay: cannot wait: %s\n", std::strerror(errno));
        return kExitCudaError;
      }
      end_pass(options_.keep);
    }
    return status_;
  }

 private:
  void run_pass() {
    std::uint64_t number = 0;
    for (const Event& event : events_) {
      ++number;
      ++report_.events;
      if (makes_live(event.op)) {
        allocate(event, number);
      } else {
        release(blocks_[event.id], streams_[event.stream]);
      }
      if (status_ != 0) return;
      if (number == options_.plant_corruption) plant_corruption();
    }
  }

  void allocate(const Event& event, std::uint64_t number) {
    const cudaStream_t stream = streams_[event.stream];
    void* data = report_.malloc_times.measure([&] { return backend_->allocate(event.size, stream); });
    if (!data) return out_of_memory(event, number);
    Block& block = blocks_[event.id];
    block = {event.id, data, event.size, stream};
    report_.live_bytes += block.size;
    report_.live_peak_bytes = std::max(report_.live_peak_bytes, report_.live_bytes);
    toucher_.write(block, stream);
  }

  void out_of_memory(const Event& event, std::uint64_t number) {
    ++report_.failures;
    if (options_.oom == "continue") return;
    std::fprintf(stderr,
                 "replay: out of memory at event %" PRIu64 ": block %" PRIu64 " of %" PRIu64 " bytes, %" PRIu64
                 " bytes are live; use a larger card, a smaller --scale, or --oom continue\n",
                 number, event.id, event.size, report_.live_bytes);
    status_ = kExitOutOfMemory;
  }

  // Nothing happens for a block whose allocation failed.
  void release(Block& block, cudaStream_t stream) {
    if (!block.data) return;
    if (block.stream != stream) {
      REQUIRE_CUDA(cudaEventRecord(order_, block.stream));
      REQUIRE_CUDA(cudaStreamWaitEvent(stream, order_, 0));
    }
    toucher_.check(block, stream);
    if (toucher_.active() && options_.verify == "now" && !judge(block, stream)) return;
    if (backend_->release_needs_idle()) REQUIRE_CUDA(cudaStreamSynchronize(stream));
    report_.free_times.measure([&] { backend_->release(block.data, block.size, stream); });
    report_.live_bytes -= block.size;
    block.data = nullptr;
  }

  // Verifies what the trace left live, and frees it unless it is kept.
  void end_pass(bool keep) {
    for (Block& block : blocks_) {
      if (status_ != 0) return;
      if (!keep) {
        release(block, block.stream);
      } else if (block.data && toucher_.active()) {
        toucher_.check(block, block.stream);
        judge(block, block.stream);
      }
    }
    if (status_ == 0) judge_late_answers();
  }

  // False when the block is corrupt.
  bool judge(const Block& block, cudaStream_t stream) {
    const std::uint64_t offset = toucher_.answer(block.id, stream);
    if (offset == Toucher::kNothingWrong) return true;
    corrupt(block.id, block.size, offset, toucher_.describe(block, offset));
    return false;
  }

  void judge_late_answers() {
    if (!toucher_.active() || options_.verify != "late") return;
    const std::vector<std::uint64_t> answers = toucher_.answers();
    for (std::uint64_t id = 0; id < answers.size(); ++id) {
      if (answers[id] != Toucher::kNothingWrong) {
        corrupt(id, blocks_[id].size, answers[id], "the block is free by now, its bytes are gone");
      }
    }
  }

  void corrupt(std::uint64_t id, std::uint64_t size, std::uint64_t offset, const std::string& details) {
    std::fprintf(stderr, "replay: corrupt block %" PRIu64 " of %" PRIu64 " bytes: first wrong byte at offset %" PRIu64 ": %s\n",
                 id, size, offset, details.c_str());
    status_ = kExitWrongResult;
  }

  // So that a test can see that corruption is noticed.
  void plant_corruption() {
    REQUIRE_CUDA(cudaDeviceSynchronize());
    for (const Block& block : blocks_) {
      if (!block.data) continue;
      unsigned char byte = 0;
      REQUIRE_CUDA(cudaMemcpy(&byte, block.data, 1, cudaMemcpyDeviceToHost));
      byte = static_cast<unsigned char>(~byte);
      REQUIRE_CUDA(cudaMemcpy(block.data, &byte, 1, cudaMemcpyHostToDevice));
      return;
    }
  }

  const ReplayOptions& options_;
  const std::vector<Event>& events_;
  std::unique_ptr<Backend> backend_;
  std::vector<Block> blocks_;  // by id
  Toucher toucher_;
  std::map<std::uint32_t, cudaStream_t> streams_;
  cudaEvent_t order_ = nullptr;
  ReplayReport report_;
  int status_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const ReplayOptions options = parse_replay_options(argc, argv);
  const std::vector<Event> events = load_trace(options);
  return Replay(options, events).run();
}
