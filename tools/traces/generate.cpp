#include "tools/traces/generate.hpp"

#include <string>
#include <vector>

#include "tools/traces/tape.hpp"

namespace vramd::traces {
namespace {

using Blocks = std::vector<Tape::Block>;
constexpr std::uint64_t kHalf = 2, kSingle = 4, kIndex = 8;  // bytes per element

class TransformerJob {
 public:
  TransformerJob(const TransformerShape& shape, const std::function<void(const Event&)>& sink)
      : shape_(shape), tape_(shape.seed, sink) {}

  void run() {
    for (const std::uint64_t elements : parameters()) weights_.push_back(tape_.present(kSingle * elements));
    fetch();
    for (std::uint64_t step = 0; step < shape_.steps; ++step) run_step(step == 0);
    tape_.release_all(gradients_);
    tape_.release_all(fetched_);
  }

 private:
  // Elements of each parameter, in the order of the forward pass.
  std::vector<std::uint64_t> parameters() const {
    const std::uint64_t d = shape_.dim;
    std::vector<std::uint64_t> all = {shape_.vocab * d, shape_.context * d};
    for (std::uint64_t layer = 0; layer < shape_.layers; ++layer) {
      all.insert(all.end(), {d, d, 3 * d * d, 3 * d, d * d, d});      // norm 1, qkv, projection
      all.insert(all.end(), {d, d, 4 * d * d, 4 * d, 4 * d * d, d});  // norm 2, feed-forward
    }
    all.insert(all.end(), {d, d});
    return all;
  }

  // Tokens and targets of the next step.
  void fetch() {
    const std::uint64_t length = shape_.context_min ? tape_.draw(shape_.context_min, shape_.context) : shape_.context;
    next_tokens_ = shape_.batch * length;
    for (int i = 0; i < 2; ++i) fetched_.push_back(tape_.allocate(kIndex * next_tokens_, second_stream()));
  }

  void run_step(bool first) {
    tape_.release_all(gradients_);
    tokens_ = next_tokens_;
    Blocks batch = std::move(fetched_);
    fetched_.clear();
    fetch();
    forward();
    backward();
    tape_.release_all(batch);
    optimize(first);
    tape_.settle();
  }

  std::uint32_t second_stream() const { return shape_.streams > 1 ? 1 : 0; }

  // With a second stream: the half copy of a layer's gradients that is summed over the GPUs of a job.
  void reduce_layer_gradients() {
    if (shape_.streams > 1) tape_.passing(kHalf * 12 * shape_.dim * shape_.dim, 8, second_stream());
  }

  std::uint64_t wide(std::uint64_t bytes_per_element) const { return bytes_per_element * tokens_ * shape_.dim; }

  // Saved for the backward pass.
  void save(Blocks& saved, std::uint64_t size) { saved.push_back(tape_.allocate(size)); }

  // The half copies that autocast makes of a linear layer's weight and bias live to the end of the forward
  // pass.
  void cast(std::uint64_t inputs, std::uint64_t outputs) {
    casts_.push_back(tape_.allocate(kHalf * inputs * outputs));
    casts_.push_back(tape_.allocate(kHalf * outputs));
  }

  void norm(Blocks& saved) {
    tape_.passing(wide(kSingle), 5);
    save(saved, kSingle * tokens_);  // mean
    save(saved, kSingle * tokens_);  // reciprocal deviation
    save(saved, wide(kHalf));        // the half copy that the next linear layer reads
  }

  void forward() {
    const std::uint64_t d = shape_.dim;
    tape_.passing(wide(kSingle), 4);                         // embedding
    tape_.passing(kSingle * tokens_ / shape_.batch * d, 3);  // positions
    save(embedding_saved_, wide(kSingle));
    layers_saved_.resize(shape_.layers);
    for (Blocks& saved : layers_saved_) {
      norm(saved);
      cast(d, 3 * d);
      save(saved, 3 * wide(kHalf));                               // q, k, v
      for (int i = 0; i < 3; ++i) tape_.passing(wide(kHalf), 4);  // their copies by head
      save(saved, wide(kHalf));                                   // attention
      save(saved, kSingle * tokens_ * shape_.heads);              // log-sum-exp
      save(saved, kIndex);                                        // two scalars of the random state
      save(saved, kIndex);
      cast(d, d);
      tape_.passing(wide(kHalf), 3);
      save(saved, wide(kSingle));  // residual
      norm(saved);
      cast(d, 4 * d);
      save(saved, 4 * wide(kHalf));
      for (int i = 0; i < 2; ++i) tape_.passing(4 * wide(kHalf), 3);
      save(saved, 4 * wide(kHalf));  // activation
      cast(4 * d, d);
      tape_.passing(wide(kHalf), 3);
      save(saved, wide(kSingle));  // residual
    }
    norm(head_saved_);
    casts_.push_back(tape_.allocate(kHalf * shape_.vocab * d));
    save(head_saved_, kHalf * tokens_ * shape_.vocab);    // logits
    tape_.passing(kSingle * tokens_ * shape_.vocab, 2);   // their fp32 copy
    save(head_saved_, kSingle * tokens_ * shape_.vocab);  // log-softmax
    save(head_saved_, kSingle);                           // loss
    tape_.release_all(casts_);
  }

  // Gradients of a linear layer: a half temporary, then the fp32 gradient that stays between short-lived
  // neighbours.
  void linear_gradients(std::uint64_t inputs, std::uint64_t outputs) {
    tape_.passing(kHalf * tokens_ * outputs, 5);
    tape_.passing(kHalf * tokens_ * inputs, 4);
    tape_.passing(kHalf * inputs * outputs, 2);
    gradients_.push_back(tape_.allocate(kSingle * inputs * outputs));
    tape_.passing(kHalf * outputs, 2);
    gradients_.push_back(tape_.allocate(kSingle * outputs));
  }

  void norm_gradients() {
    tape_.passing(wide(kSingle), 6);
    tape_.passing(wide(kSingle), 4);
    gradients_.push_back(tape_.allocate(kSingle * shape_.dim));
    tape_.passing(kSingle * shape_.dim, 2);
    gradients_.push_back(tape_.allocate(kSingle * shape_.dim));
  }

  // What a pass saved is released last saved first, one block for each that the backward pass of its part
  // allocates.
  void release_last(Blocks& saved, std::size_t count) {
    for (; count > 0 && !saved.empty(); --count) {
      tape_.release(saved.back());
      saved.pop_back();
    }
  }

  void backward() {
    const std::uint64_t d = shape_.dim;
    tape_.passing(kSingle * tokens_ * shape_.vocab, 4);
    tape_.passing(kHalf * tokens_ * shape_.vocab, 6);
    release_last(head_saved_, 3);
    tape_.passing(kHalf * shape_.vocab * d, 2);
    gradients_.push_back(tape_.allocate(kSingle * shape_.vocab * d));
    norm_gradients();
    tape_.release_all(head_saved_);
    for (; !layers_saved_.empty(); layers_saved_.pop_back()) {
      Blocks& saved = layers_saved_.back();
      release_last(saved, 1);
      linear_gradients(4 * d, d);
      tape_.passing(4 * wide(kHalf), 4);
      release_last(saved, 2);
      linear_gradients(d, 4 * d);
      norm_gradients();
      release_last(saved, 4);
      linear_gradients(d, d);
      release_last(saved, 2);
      tape_.passing(3 * wide(kHalf), 5);
      tape_.passing(kSingle * tokens_ * shape_.heads, 3);
      release_last(saved, 3);
      linear_gradients(d, 3 * d);
      norm_gradients();
      tape_.release_all(saved);
      reduce_layer_gradients();
    }
    tape_.passing(wide(kSingle), 3);
    gradients_.push_back(tape_.allocate(kSingle * shape_.context * d));
    tape_.release_all(embedding_saved_);
  }

  void optimize(bool first) {
    for (const Tape::Block& weight : weights_) {
      if (first) {
        tape_.allocate(weight.size);  // Adam's two moments
        tape_.allocate(weight.size);
      }
      for (std::uint64_t i = 0; i < 7; ++i) tape_.passing(weight.size, 2 + i % 3);
    }
  }

  TransformerShape shape_;
  Tape tape_;
  std::uint64_t tokens_ = 0, next_tokens_ = 0;  // of this step and the one that is fetched
  Blocks fetched_, weights_, gradients_, casts_, embedding_saved_, head_saved_;
  std::vector<Blocks> layers_saved_;
};

std::string out_of_range(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  return std::string(name) + " " + std::to_string(value) + " is out of range; expected " + std::to_string(low) + " to " +
         std::to_string(high);
}

}  // namespace

std::string check_shape(const TransformerShape& shape) {
  // With these bounds no size overflows 64 bits.
  const struct {
    const char* name;
    std::uint64_t value, high;
  } bounds[] = {{"layers", shape.layers, 1000},  {"dim", shape.dim, 1 << 16},     {"heads", shape.heads, 1 << 10},
                {"vocab", shape.vocab, 1 << 20}, {"batch", shape.batch, 1 << 14}, {"context", shape.context, 1 << 20},
                {"steps", shape.steps, 100000},  {"streams", shape.streams, 2}};
  for (const auto& bound : bounds) {
    if (bound.value < 1 || bound.value > bound.high) return out_of_range(bound.name, bound.value, 1, bound.high);
  }
  if (shape.context_min > shape.context) return out_of_range("context-min", shape.context_min, 0, shape.context);
  return {};
}

void generate_transformer(const TransformerShape& shape, const std::function<void(const Event&)>& sink) {
  TransformerJob(shape, sink).run();
}

}  // namespace vramd::traces
