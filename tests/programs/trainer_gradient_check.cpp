#include "tests/programs/trainer_gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

// How far weights move. Less drowns in the rounding of the loss, more leaves the straight part of it.
constexpr double kDistance = 1e-2;
// Right gradients are off by less than 0.001.
constexpr double kTolerance = 0.003;
// Rounding of the loss over 2 * kDistance: no difference below this means anything.
constexpr double kNoise = 1e-5;

// Of each parameter the weights at these places, in order of falling gradients, are moved one by one.
std::vector<std::size_t> moved_ranks(std::size_t size) { return {0, 1, size / 16, size / 4}; }

class Checker {
 public:
  Checker(Network& network, Memory& memory, const Batch& batch, int sequences, int context)
      : network_(network),
        batch_(memory, nullptr, batch, context, 0, sequences),
        loss_sum_(memory, nullptr, 1),
        token_weight_(1.0F / static_cast<float>(sequences * context)) {}

  bool run() {
    const std::vector<Tensor> gradients = compute();
    bool good = true;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      std::vector<float> gradient(gradients[i].size());
      REQUIRE_CUDA(cudaMemcpy(gradient.data(), gradients[i].data(), gradients[i].bytes(), cudaMemcpyDeviceToHost));
      good &= check(i, gradient);
    }
    return good;
  }

 private:
  std::vector<Tensor> compute() { return network_.gradients(nullptr, batch_, token_weight_, loss_sum_.data()); }

  double loss() {
    compute();
    double sum = 0;
    REQUIRE_CUDA(cudaMemcpy(&sum, loss_sum_.data(), sizeof sum, cudaMemcpyDeviceToHost));
    return sum * static_cast<double>(token_weight_);
  }

  // The slope of the loss when a parameter's weights move along a direction of length 1.
  double slope(const Tensor& weights, const std::vector<float>& at, const std::vector<double>& direction) {
    double losses[2];
    for (const int side : {0, 1}) {
      std::vector<float> moved(at);
      for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i] += static_cast<float>((side ? kDistance : -kDistance) * direction[i]);
      }
      REQUIRE_CUDA(cudaMemcpy(weights.data(), moved.data(), weights.bytes(), cudaMemcpyHostToDevice));
      losses[side] = loss();
    }
    REQUIRE_CUDA(cudaMemcpy(weights.data(), at.data(), weights.bytes(), cudaMemcpyHostToDevice));
    return (losses[1] - losses[0]) / (2 * kDistance);
  }

  bool check(std::size_t index, const std::vector<float>& gradient) {
    const Tensor& weights = network_.weights()[index];
    std::vector<float> at(weights.size());
    REQUIRE_CUDA(cudaMemcpy(at.data(), weights.data(), weights.bytes(), cudaMemcpyDeviceToHost));

    // Along the gradient the loss rises by the gradient's length; a wrong entry changes one of the two.
    double squares = 0;
    for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    const double length = std::sqrt(squares);
    std::vector<double> direction(gradient.size(), 0.0);
    if (length > 0) {
      for (std::size_t i = 0; i < gradient.size(); ++i) direction[i] = static_cast<double>(gradient[i]) / length;
    }
    double worst = error(slope(weights, at, direction), length);

    std::vector<std::size_t> order(gradient.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return std::fabs(gradient[a]) > std::fabs(gradient[b]); });
    for (const std::size_t rank : moved_ranks(order.size())) {
      const std::size_t moved = order[std::min(rank, order.size() - 1)];
      std::fill(direction.begin(), direction.end(), 0.0);
      direction[moved] = 1;
      worst = std::max(worst, error(slope(weights, at, direction), static_cast<double>(gradient[moved])));
    }
    const bool good = worst <= kTolerance && length > 0;
    std::printf("check %-20s gradient length %-11.5g worst error %.4f %s\n", network_.parameters()[index].name.c_str(), length,
                worst, good ? "ok" : "WRONG");
    return good;
  }

  // Relative to the expected slope, beyond what rounding explains.
  static double error(double numerical, double expected) {
    const double difference = std::max(0.0, std::fabs(numerical - expected) - kNoise);
    return difference / std::max(std::fabs(expected), kNoise);
  }

  Network& network_;
  DeviceBatch batch_;
  Array<double> loss_sum_;
  float token_weight_;
};

}  // namespace

bool check_gradients(Network& network, Memory& memory, const Batch& batch, int sequences, int context) {
  return Checker(network, memory, batch, sequences, context).run();
}
