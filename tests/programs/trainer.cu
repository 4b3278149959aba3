// trainer: trains a small language model and prints each step's loss and a hash of the final weights. Two
// runs with the same flags print the same lines, bit for bit, on the same GPU. `trainer --help` lists the
// flags. Exit: 0 done, 1 wrong gradients (--check), 2 CUDA error, 64 usage.
#include <cstdio>
#include <vector>

#include "tests/programs/trainer_gradient_check.hpp"
#include "tests/programs/trainer_network.hpp"
#include "tests/programs/trainer_options.hpp"

namespace {

// The streams of the job; empty list = everything on the legacy stream.
class Streams {
 public:
  explicit Streams(int count) : streams_(static_cast<std::size_t>(count)) {
    for (cudaStream_t& stream : streams_) {
      REQUIRE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    }
    REQUIRE_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    REQUIRE_CUDA(cudaDeviceSynchronize());  // the initial weights were written on the legacy stream
  }
  ~Streams() {
    REQUIRE_CUDA(cudaEventDestroy(event_));
    for (cudaStream_t stream : streams_) REQUIRE_CUDA(cudaStreamDestroy(stream));
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  int count() const { return streams_.empty() ? 1 : static_cast<int>(streams_.size()); }
  cudaStream_t get(int index) const { return streams_.empty() ? nullptr : streams_[static_cast<std::size_t>(index)]; }

  // What is enqueued on `second` from now on runs after what is on `first` already.
  void order(cudaStream_t first, cudaStream_t second) const {
    if (first == second) return;
    REQUIRE_CUDA(cudaEventRecord(event_, first));
    REQUIRE_CUDA(cudaStreamWaitEvent(second, event_, 0));
  }

 private:
  std::vector<cudaStream_t> streams_;
  cudaEvent_t event_ = nullptr;
};

// One step on a batch that is split over the streams. Returns the mean loss of its tokens.
double train_step(const TrainerOptions& options, Memory& memory, const Streams& streams, Network& network, Adam& adam,
                  const Batch& batch) {
  const int slices = streams.count();
  const int sequences = options.batch / slices;
  const int tokens = options.batch * options.shape.context;
  const cudaStream_t main_stream = streams.get(0);
  Array<double> loss_sums(memory, main_stream, static_cast<std::size_t>(slices));

  std::vector<Tensor> total;
  for (int slice = 0; slice < slices; ++slice) {
    const cudaStream_t stream = streams.get(slice);
    streams.order(main_stream, stream);  // after the last step's new weights
    const DeviceBatch part(memory, stream, batch, options.shape.context, slice * sequences, sequences);
    std::vector<Tensor> gradients =
        network.gradients(stream, part, 1.0F / static_cast<float>(tokens), loss_sums.data() + slice);
    streams.order(stream, main_stream);
    if (slice == 0) {
      total = std::move(gradients);
      continue;
    }
    for (std::size_t i = 0; i < total.size(); ++i) {
      add_to(main_stream, total[i], gradients[i]);
      gradients[i].release_on(main_stream);
    }
  }
  adam.step(main_stream, network, total);

  std::vector<double> sums(loss_sums.size());
  REQUIRE_CUDA(cudaMemcpyAsync(sums.data(), loss_sums.data(), loss_sums.bytes(), cudaMemcpyDeviceToHost, main_stream));
  REQUIRE_CUDA(cudaStreamSynchronize(main_stream));
  double loss = 0;
  for (const double sum : sums) loss += sum;
  return loss / tokens;
}

// 64-bit FNV-1a of all weights.
std::uint64_t hash_weights(const Network& network) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Tensor& weights : network.weights()) {
    std::vector<unsigned char> bytes(weights.bytes());
    REQUIRE_CUDA(cudaMemcpy(bytes.data(), weights.data(), bytes.size(), cudaMemcpyDeviceToHost));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const TrainerOptions options = parse_trainer_options(argc, argv);
  Memory memory(options.call);
  Network network(options.shape, memory, options.seed);
  Text text(options.shape.vocab, options.seed);
  if (options.check) {
    const Batch batch = text.next(options.batch, options.shape.context);
    return check_gradients(network, memory, batch, options.batch, options.shape.context) ? 0 : kExitWrongResult;
  }

  Adam adam(network, memory, options.rate);
  const Streams streams(options.streams);
  for (int step = 0; step < options.steps; ++step) {
    const Batch batch = text.next(options.batch, options.shape.context);
    const double loss = train_step(options, memory, streams, network, adam, batch);
    std::printf("step %d loss %.9g\n", step, loss);
    std::fflush(stdout);
  }
  std::printf("weights %016llx\n", static_cast<unsigned long long>(hash_weights(network)));
  std::printf("allocations %llu\n", static_cast<unsigned long long>(memory.allocations()));
  return 0;
}
