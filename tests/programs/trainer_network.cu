#include "tests/programs/trainer_network.hpp"

#include <cmath>

#include "tests/programs/trainer_attention_kernels.cuh"
#include "tests/programs/trainer_text_kernels.cuh"

namespace {

constexpr int kThreads = 128;

// `threads` of the kernel, as one-dimensional blocks.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, const char* name, void (*kernel)(Parameters...), int threads, Arguments... arguments) {
  kernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(arguments...);
  require(cudaGetLastError(), name, __FILE__, __LINE__);
}
#define LAUNCH(stream, kernel, ...) launch(stream, "kernel " #kernel, kernel, __VA_ARGS__)

// Places in list_parameters(): two tables, then this many of each layer, then the last norm and the head.
constexpr int kTokenTable = 0, kPositionTable = 1, kFirstLayer = 2;
enum LayerParameter { kNorm1, kQkv, kProjection, kNorm2, kExpand, kContract, kPerLayer };

std::size_t layer_parameter(int layer, LayerParameter which) {
  return static_cast<std::size_t>(kFirstLayer + layer * kPerLayer + which);
}

// What a layer keeps for its backward pass.
struct LayerState {
  Tensor input, normed1, scale1, qkv, probabilities, mixed;
  Tensor middle, normed2, scale2, hidden, active;
};

// One forward and backward pass of one batch on one stream.
class Pass {
 public:
  Pass(const NetworkShape& shape, Memory& memory, const std::vector<Tensor>& weights, cudaStream_t stream,
       const DeviceBatch& batch)
      : shape_(shape),
        memory_(memory),
        weights_(weights),
        stream_(stream),
        batch_(batch),
        attention_{batch.sequences, shape.heads, shape.context, shape.dim / shape.heads},
        tokens_(batch.sequences * shape.context),
        gradients_(weights.size()) {}

  std::vector<Tensor> run(float token_weight, double* loss_sum) {
    Tensor x = tensor(tokens_ * shape_.dim);
    LAUNCH(stream_, embed, tokens_ * shape_.dim, batch_.tokens.data(), weight(kTokenTable), weight(kPositionTable), x.data(),
           tokens_, shape_.context, shape_.dim);
    for (int layer = 0; layer < shape_.layers; ++layer) x = forward(layer, std::move(x));

    Tensor d_x = head(x, token_weight, loss_sum);
    x.free();
    for (int layer = shape_.layers - 1; layer >= 0; --layer) d_x = backward(layer, std::move(d_x));

    LAUNCH(stream_, embed_backward_tokens, shape_.vocab * shape_.dim, batch_.tokens.data(), d_x.data(),
           gradient(kTokenTable, shape_.vocab * shape_.dim), tokens_, shape_.vocab, shape_.dim);
    LAUNCH(stream_, embed_backward_positions, shape_.context * shape_.dim, d_x.data(),
           gradient(kPositionTable, shape_.context * shape_.dim), tokens_, shape_.context, shape_.dim);
    return std::move(gradients_);
  }

 private:
  Tensor tensor(int elements) { return Tensor(memory_, stream_, static_cast<std::size_t>(elements)); }
  const float* weight(std::size_t parameter) const { return weights_[parameter].data(); }

  float* gradient(std::size_t parameter, int elements) {
    gradients_[parameter] = tensor(elements);
    return gradients_[parameter].data();
  }

  void multiply(Matrix a, Matrix b, float* c, int rows, int columns, int inner) {
    const int tiles = (rows + kTileRows - 1) / kTileRows * ((columns + kTileColumns - 1) / kTileColumns);
    LAUNCH(stream_, matmul, tiles, a, b, c, rows, columns, inner);
  }

  // x[tokens][in] * w[in][out]
  Tensor linear(const Tensor& x, std::size_t w, int in, int out) {
    Tensor y = tensor(tokens_ * out);
    multiply({x.data(), in, 1}, {weight(w), out, 1}, y.data(), tokens_, out, in);
    return y;
  }

  // Makes the gradient of w and returns the one of x.
  Tensor linear_backward(const Tensor& d_y, const Tensor& x, std::size_t w, int in, int out) {
    multiply({x.data(), 1, in}, {d_y.data(), out, 1}, gradient(w, in * out), in, out, tokens_);
    Tensor d_x = tensor(tokens_ * in);
    multiply({d_y.data(), out, 1}, {weight(w), 1, out}, d_x.data(), tokens_, in, out);
    return d_x;
  }

  Tensor norm(const Tensor& x, std::size_t gain, Tensor& scale) {
    Tensor y = tensor(tokens_ * shape_.dim);
    scale = tensor(tokens_);
    LAUNCH(stream_, rms_norm, tokens_, x.data(), weight(gain), y.data(), scale.data(), tokens_, shape_.dim);
    return y;
  }

  Tensor norm_backward(const Tensor& d_y, const Tensor& x, std::size_t gain, const Tensor& scale) {
    LAUNCH(stream_, rms_norm_backward_gain, shape_.dim, d_y.data(), x.data(), scale.data(), gradient(gain, shape_.dim), tokens_,
           shape_.dim);
    Tensor d_x = tensor(tokens_ * shape_.dim);
    LAUNCH(stream_, rms_norm_backward, tokens_, d_y.data(), x.data(), weight(gain), scale.data(), d_x.data(), tokens_,
           shape_.dim);
    return d_x;
  }

  Tensor sum(const Tensor& a, const Tensor& b) {
    Tensor result = tensor(tokens_ * shape_.dim);
    LAUNCH(stream_, add, tokens_ * shape_.dim, a.data(), b.data(), result.data(), tokens_ * shape_.dim);
    return result;
  }

  Tensor forward(int layer, Tensor input) {
    const int dim = shape_.dim;
    LayerState state;
    state.input = std::move(input);
    state.normed1 = norm(state.input, layer_parameter(layer, kNorm1), state.scale1);
    state.qkv = linear(state.normed1, layer_parameter(layer, kQkv), dim, 3 * dim);
    {
      const Tensor scores = tensor(attention_.scores());
      LAUNCH(stream_, attention_scores, attention_.scores(), state.qkv.data(), scores.data(), attention_);
      state.probabilities = tensor(attention_.scores());
      LAUNCH(stream_, causal_softmax, attention_.score_rows(), scores.data(), state.probabilities.data(), attention_);
    }
    state.mixed = tensor(tokens_ * dim);
    LAUNCH(stream_, attention_mix, tokens_ * dim, state.probabilities.data(), state.qkv.data(), state.mixed.data(), attention_);
    {
      const Tensor projected = linear(state.mixed, layer_parameter(layer, kProjection), dim, dim);
      state.middle = sum(state.input, projected);
    }
    state.normed2 = norm(state.middle, layer_parameter(layer, kNorm2), state.scale2);
    state.hidden = linear(state.normed2, layer_parameter(layer, kExpand), dim, 4 * dim);
    state.active = tensor(tokens_ * 4 * dim);
    LAUNCH(stream_, gelu, tokens_ * 4 * dim, state.hidden.data(), state.active.data(), tokens_ * 4 * dim);
    const Tensor contracted = linear(state.active, layer_parameter(layer, kContract), 4 * dim, dim);
    Tensor output = sum(state.middle, contracted);
    states_.push_back(std::move(state));
    return output;
  }

  // The loss and the gradient of x.
  Tensor head(const Tensor& x, float token_weight, double* loss_sum) {
    const int dim = shape_.dim;
    const std::size_t last_norm = layer_parameter(shape_.layers, kNorm1), head_weight = last_norm + 1;
    Tensor scale;
    const Tensor normed = norm(x, last_norm, scale);
    Tensor logits = linear(normed, head_weight, dim, shape_.vocab);
    const Tensor losses = tensor(tokens_);
    const Tensor d_logits = tensor(tokens_ * shape_.vocab);
    LAUNCH(stream_, cross_entropy, tokens_, logits.data(), batch_.targets.data(), losses.data(), d_logits.data(), tokens_,
           shape_.vocab, token_weight);
    logits.free();
    LAUNCH(stream_, sum_losses, 1, losses.data(), loss_sum, tokens_);
    const Tensor d_normed = linear_backward(d_logits, normed, head_weight, dim, shape_.vocab);
    return norm_backward(d_normed, x, last_norm, scale);
  }

  // From the gradient of a layer's output to the one of its input. What the layer kept dies here.
  Tensor backward(int layer, Tensor d_output) {
    const int dim = shape_.dim;
    LayerState state = std::move(states_.back());
    states_.pop_back();

    Tensor d_hidden = tensor(tokens_ * 4 * dim);
    {
      const Tensor d_active = linear_backward(d_output, state.active, layer_parameter(layer, kContract), 4 * dim, dim);
      LAUNCH(stream_, gelu_backward, tokens_ * 4 * dim, d_active.data(), state.hidden.data(), d_hidden.data(),
             tokens_ * 4 * dim);
    }
    state.active.free();
    state.hidden.free();
    Tensor d_normed = linear_backward(d_hidden, state.normed2, layer_parameter(layer, kExpand), dim, 4 * dim);
    d_hidden.free();
    Tensor d_branch = norm_backward(d_normed, state.middle, layer_parameter(layer, kNorm2), state.scale2);
    const Tensor d_middle = sum(d_output, d_branch);
    d_output.free();
    d_branch.free();

    Tensor d_mixed = linear_backward(d_middle, state.mixed, layer_parameter(layer, kProjection), dim, dim);
    Tensor d_scores = tensor(attention_.scores());
    {
      const Tensor d_probabilities = tensor(attention_.scores());
      LAUNCH(stream_, attention_mix_backward, attention_.scores(), d_mixed.data(), state.qkv.data(), d_probabilities.data(),
             attention_);
      LAUNCH(stream_, causal_softmax_backward, attention_.score_rows(), d_probabilities.data(), state.probabilities.data(),
             d_scores.data(), attention_);
    }
    const Tensor d_qkv = tensor(tokens_ * 3 * dim);
    LAUNCH(stream_, attention_backward, tokens_ * 3 * dim, d_scores.data(), state.probabilities.data(), d_mixed.data(),
           state.qkv.data(), d_qkv.data(), attention_);
    d_scores.free();
    d_mixed.free();
    d_normed = linear_backward(d_qkv, state.normed1, layer_parameter(layer, kQkv), dim, 3 * dim);
    d_branch = norm_backward(d_normed, state.input, layer_parameter(layer, kNorm1), state.scale1);
    return sum(d_middle, d_branch);
  }

  const NetworkShape& shape_;
  Memory& memory_;
  const std::vector<Tensor>& weights_;
  cudaStream_t stream_;
  const DeviceBatch& batch_;
  AttentionShape attention_;
  int tokens_;
  std::vector<LayerState> states_;
  std::vector<Tensor> gradients_;
};

}  // namespace

std::vector<Parameter> list_parameters(const NetworkShape& shape) {
  const auto dim = static_cast<std::size_t>(shape.dim);
  const auto vocab = static_cast<std::size_t>(shape.vocab);
  const auto linear = [](std::string name, std::size_t in, std::size_t out) {
    return Parameter{std::move(name), in * out, 1.0F / std::sqrt(static_cast<float>(in))};
  };
  std::vector<Parameter> all = {{"token table", vocab * dim, 0.5F},
                                {"position table", static_cast<std::size_t>(shape.context) * dim, 0.1F}};
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = "layer " + std::to_string(layer) + " ";
    all.push_back({prefix + "norm 1", dim, 0});
    all.push_back(linear(prefix + "qkv", dim, 3 * dim));
    all.push_back(linear(prefix + "projection", dim, dim));
    all.push_back({prefix + "norm 2", dim, 0});
    all.push_back(linear(prefix + "expand", dim, 4 * dim));
    all.push_back(linear(prefix + "contract", 4 * dim, dim));
  }
  all.push_back({"last norm", dim, 0});
  all.push_back(linear("head", dim, vocab));
  return all;
}

DeviceBatch::DeviceBatch(Memory& memory, cudaStream_t stream, const Batch& batch, int context, int first, int count)
    : tokens(memory, stream, static_cast<std::size_t>(count * context)),
      targets(memory, stream, static_cast<std::size_t>(count * context)),
      sequences(count) {
  const std::size_t offset = static_cast<std::size_t>(first * context);
  REQUIRE_CUDA(cudaMemcpyAsync(tokens.data(), batch.tokens.data() + offset, tokens.bytes(), cudaMemcpyHostToDevice, stream));
  REQUIRE_CUDA(cudaMemcpyAsync(targets.data(), batch.targets.data() + offset, targets.bytes(), cudaMemcpyHostToDevice, stream));
}

Network::Network(const NetworkShape& shape, Memory& memory, std::uint64_t seed)
    : shape_(shape), memory_(memory), parameters_(list_parameters(shape)) {
  Random random(seed);
  for (const Parameter& parameter : parameters_) {
    std::vector<float> values(parameter.size, 1.0F);
    if (parameter.spread > 0) {
      for (float& value : values) value = parameter.spread * random.symmetric();
    }
    weights_.emplace_back(memory, nullptr, parameter.size);
    REQUIRE_CUDA(cudaMemcpy(weights_.back().data(), values.data(), weights_.back().bytes(), cudaMemcpyHostToDevice));
  }
}

std::vector<Tensor> Network::gradients(cudaStream_t stream, const DeviceBatch& batch, float token_weight, double* loss_sum) {
  return Pass(shape_, memory_, weights_, stream, batch).run(token_weight, loss_sum);
}

void add_to(cudaStream_t stream, const Tensor& target, const Tensor& summand) {
  const int size = static_cast<int>(target.size());
  LAUNCH(stream, add, size, target.data(), summand.data(), target.data(), size);
}

Adam::Adam(const Network& network, Memory& memory, float rate) : rate_(rate) {
  for (const Parameter& parameter : network.parameters()) {
    for (std::vector<Tensor>* moments : {&means_, &squares_}) {
      moments->emplace_back(memory, nullptr, parameter.size);
      REQUIRE_CUDA(cudaMemset(moments->back().data(), 0, moments->back().bytes()));
    }
  }
}

void Adam::step(cudaStream_t stream, Network& network, const std::vector<Tensor>& gradients) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.99;
  constexpr float kEpsilon = 1e-8F;
  ++steps_;
  const AdamRates rates = {rate_,
                           static_cast<float>(kBeta1),
                           static_cast<float>(kBeta2),
                           kEpsilon,
                           static_cast<float>(1 / (1 - std::pow(kBeta1, steps_))),
                           static_cast<float>(1 / (1 - std::pow(kBeta2, steps_)))};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const int size = static_cast<int>(gradients[i].size());
    LAUNCH(stream, adam, size, network.weights()[i].data(), gradients[i].data(), means_[i].data(), squares_[i].data(), size,
           rates);
  }
}
