// Recurrent layers, pools, normalisations, products and losses of ONNX against loops.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/models/onnx_node.h"

namespace isomer {
namespace {

using testing::HasSubstr;

std::vector<double> Random(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {  // Exact as float32 too.
    values.push_back(static_cast<double>(static_cast<int>(random() % 2001) - 1000) / 1024);
  }
  return values;
}

std::vector<float> Floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// A recurrent layer of one batch element at a time, straight from the standard.
struct Layer {
  std::string op;
  int64_t steps, batch, input, hidden, gates;
  std::vector<double> x, w, r, b;  // [steps, batch, input], [dirs, gates * hidden, ..]

  // Gate `g` of unit `j`: W x + Wb + R h + Rb, or its two halves.
  double OfInput(int64_t d, int64_t g, int64_t j, int64_t t, int64_t n) const {
    const int64_t row = (d * gates + g) * hidden + j;
    double sum = b[d * 2 * gates * hidden + g * hidden + j];
    for (int64_t i = 0; i < input; ++i) sum += w[row * input + i] * x[(t * batch + n) * input + i];
    return sum;
  }
  double OfState(int64_t d, int64_t g, int64_t j, const std::vector<double>& h) const {
    const int64_t row = (d * gates + g) * hidden + j;
    double sum = b[(d * 2 + 1) * gates * hidden + g * hidden + j];
    for (int64_t i = 0; i < hidden; ++i) sum += r[row * hidden + i] * h[i];
    return sum;
  }
  void Step(int64_t d, int64_t t, int64_t n, bool linear_before_reset, std::vector<double>* h,
            std::vector<double>* c) const {
    const std::vector<double> old = *h;
    auto gate = [&](int64_t g, int64_t j) {
      return OfInput(d, g, j, t, n) + OfState(d, g, j, old);
    };
    for (int64_t j = 0; j < hidden; ++j) {
      if (op == "RNN") {
        (*h)[j] = std::tanh(gate(0, j));
      } else if (op == "LSTM") {  // i, o, f, c
        (*c)[j] = Sigmoid(gate(2, j)) * (*c)[j] + Sigmoid(gate(0, j)) * std::tanh(gate(3, j));
        (*h)[j] = Sigmoid(gate(1, j)) * std::tanh((*c)[j]);
      } else {  // z, r, h
        std::vector<double> reset = old;
        for (int64_t k = 0; k < hidden; ++k) reset[k] *= Sigmoid(gate(1, k));
        const double inner = linear_before_reset ? Sigmoid(gate(1, j)) * OfState(d, 2, j, old)
                                                 : OfState(d, 2, j, reset);
        const double z = Sigmoid(gate(0, j)), n_j = std::tanh(OfInput(d, 2, j, t, n) + inner);
        (*h)[j] = (1 - z) * n_j + z * old[j];
      }
    }
  }
  // Y [steps, dirs, batch, hidden]; direction 1 runs backwards. Lengths cut sequences short.
  std::vector<double> Run(int64_t directions, bool linear_before_reset,
                          const std::vector<int64_t>& lengths) const {
    std::vector<double> y(steps * directions * batch * hidden, 0);
    for (int64_t d = 0; d < directions; ++d) {
      for (int64_t n = 0; n < batch; ++n) {
        std::vector<double> h(hidden, 0), c(hidden, 0);
        for (int64_t s = 0; s < lengths[n]; ++s) {
          const int64_t t = d == 0 ? s : lengths[n] - 1 - s;
          Step(d, t, n, linear_before_reset, &h, &c);
          std::copy(h.begin(), h.end(), y.begin() + ((t * directions + d) * batch + n) * hidden);
        }
      }
    }
    return y;
  }
};

void ExpectRecurrent(const std::string& op, int64_t linear_before_reset,
                     const std::vector<int64_t>& lengths) {
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const int64_t steps = 4, batch = 3, input = 2, hidden = 3, dirs = 2;
  Layer layer = {op, steps, batch, input, hidden, gates, {}, {}, {}, {}};
  layer.x = Random(steps * batch * input, 1);
  layer.w = Random(dirs * gates * hidden * input, 2);
  layer.r = Random(dirs * gates * hidden * hidden, 3);
  layer.b = Random(dirs * 2 * gates * hidden, 4);
  OnnxNodeRun run(op, 14);
  run.X({steps, batch, input}, layer.x)
      .Floats({dirs, gates * hidden, input}, Floats(layer.w))
      .Floats({dirs, gates * hidden, hidden}, Floats(layer.r))
      .Floats({dirs, 2 * gates * hidden}, Floats(layer.b))
      .X({batch}, {lengths.begin(), lengths.end()}, onnx::TensorProto::INT32)
      .With("direction", "bidirectional")
      .With("hidden_size", hidden);
  if (op == "GRU") run.With("linear_before_reset", linear_before_reset);
  ExpectValues(run.Run()[0], {steps, dirs, batch, hidden},
               layer.Run(dirs, linear_before_reset != 0, lengths), op);
}

TEST(OnnxRecurrent, BothDirections) {
  for (const char* op : {"RNN", "LSTM", "GRU"}) ExpectRecurrent(op, 0, {4, 4, 4});
  ExpectRecurrent("GRU", 1, {4, 4, 4});
}

TEST(OnnxRecurrent, SequencesOfDifferentLength) {
  for (const char* op : {"RNN", "LSTM", "GRU"}) ExpectRecurrent(op, 0, {4, 1, 3});
  ExpectRecurrent("GRU", 1, {2, 4, 1});
}

TEST(OnnxRecurrent, UnknownActivationIsRefused) {
  OnnxNodeRun run("RNN", 14);
  run.X({2, 1, 1}, {1, 2}).Floats({1, 1, 1}, {1}).Floats({1, 1, 1}, {1});
  run.With("hidden_size", 1).With("direction", "sideways");
  EXPECT_THAT(std::string(run.Import().status().message()), HasSubstr("direction 'sideways'"));
}

// Pools of one dim over x: windows by a loop, without what is outside.
std::vector<double> Pooled(const std::vector<double>& x, int64_t positions, int64_t kernel,
                           int64_t stride, int64_t dilation, int64_t padding, bool is_max) {
  std::vector<double> y;
  for (int64_t p = 0; p < positions; ++p) {
    double sum = 0, largest = -1e30, count = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = p * stride - padding + k * dilation;
      if (at < 0 || at >= static_cast<int64_t>(x.size())) continue;
      sum += x[at];
      largest = std::max(largest, x[at]);
      ++count;
    }
    y.push_back(is_max ? largest : sum / count);
  }
  return y;
}

TEST(OnnxPool, DilatedAndRoundedUp) {
  const std::vector<double> x = Random(11, 5);
  for (const char* op : {"MaxPool", "AveragePool"}) {
    for (int64_t dilation : {1, 2, 3}) {
      OnnxNodeRun run(op, 19);
      run.X({1, 1, 11}, x).With("kernel_shape", std::vector<int64_t>{3});
      run.With("strides", std::vector<int64_t>{3}).With("pads", std::vector<int64_t>{1, 1});
      run.With("dilations", std::vector<int64_t>{dilation}).With("ceil_mode", 1);
      // With dilation 1 a fifth would begin in the padding; with 3 there are whole windows.
      const int64_t positions = dilation == 3 ? 3 : 4;
      ExpectValues(run.Run()[0], {1, 1, positions},
                   Pooled(x, positions, 3, 3, dilation, 1, *op == 'M'), op);
    }
  }
}

TEST(OnnxPool, SameInBothWays) {
  for (const char* pad : {"SAME_UPPER", "SAME_LOWER"}) {
    OnnxNodeRun run("MaxPool");
    run.X({1, 1, 3}, {3, 1, 2}).With("kernel_shape", std::vector<int64_t>{2}).With("auto_pad", pad);
    ExpectValues(run.Run()[0], {1, 1, 3},
                 pad[5] == 'U' ? std::vector<double>{3, 2, 2} : std::vector<double>{3, 3, 2}, pad);
  }
}

TEST(OnnxPool, NormsOfWindows) {
  OnnxNodeRun run("LpPool", 18);
  run.X({1, 1, 4}, {3, -4, 0, 2}).With("kernel_shape", std::vector<int64_t>{2});
  ExpectValues(run.Run()[0], {1, 1, 3}, {5, 4, 2});
}

TEST(OnnxConv, TransposedToAStatedShape) {
  OnnxNodeRun run("ConvTranspose");
  run.X({1, 1, 3}, {1, 2, 3}).Floats({1, 1, 2}, {1, 10}).Floats({1}, {100});
  run.With("strides", std::vector<int64_t>{2}).With("output_shape", std::vector<int64_t>{7});
  ExpectValues(run.Run()[0], {1, 1, 7}, {101, 110, 102, 120, 103, 130, 100});
}

TEST(OnnxMatMul, VectorsAreRowsOrColumns) {
  const std::vector<double> v = {1, 2}, m = {1, 2, 3, 4};
  ExpectValues(OnnxNodeRun("MatMul").X({2}, v).X({2, 2}, m).Run()[0], {2}, {7, 10});
  ExpectValues(OnnxNodeRun("MatMul").X({2, 2}, m).X({2}, v).Run()[0], {2}, {5, 11});
  ExpectValues(OnnxNodeRun("MatMul").X({2}, v).X({2}, v).Run()[0], {}, {5});
}

TEST(OnnxNormalization, OverSeveralDimsAndWithoutBias) {
  const std::vector<double> x = Random(2 * 2 * 3, 6), scale = Random(6, 7);
  OnnxNodeRun run("LayerNormalization");
  run.X({2, 2, 3}, x).Floats({2, 3}, Floats(scale)).With("axis", 1).WithFloat("epsilon", 0.25);
  std::vector<double> expected;
  for (int64_t n = 0; n < 2; ++n) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < 6; ++i) mean += x[6 * n + i] / 6;
    for (int64_t i = 0; i < 6; ++i) variance += (x[6 * n + i] - mean) * (x[6 * n + i] - mean) / 6;
    for (int64_t i = 0; i < 6; ++i) {
      expected.push_back((x[6 * n + i] - mean) / std::sqrt(variance + 0.25) * scale[i]);
    }
  }
  ExpectValues(run.Run()[0], {2, 2, 3}, expected);
}

TEST(OnnxNormalization, RunningStatisticsAfterABatch) {
  OnnxNodeRun run("BatchNormalization", 15);
  run.X({2, 1}, {1, 3}).Floats({1}, {2}).Floats({1}, {1}).Floats({1}, {10}).Floats({1}, {20});
  run.With("training_mode", 1).WithFloat("momentum", 0.75).WithFloat("epsilon", 0);
  const auto outputs = run.Run(3);
  ExpectValues(outputs[0], {2, 1}, {-1, 3});
  ExpectValues(outputs[1], {1}, {8});      // 0.75 * 10 + 0.25 * 2
  ExpectValues(outputs[2], {1}, {15.25});  // 0.75 * 20 + 0.25 * 1
}

TEST(OnnxNormalization, SoftmaxOfOldOpsetsTakesTheRestAsOne) {
  const auto y = OnnxNodeRun("Softmax", 11).X({2, 2, 2}, std::vector<double>(8, 3)).Run()[0];
  ExpectValues(y, {2, 2, 2}, std::vector<double>(8, 0.25));
}

TEST(OnnxReduction, AllOfThem) {
  const std::vector<double> x = {1, -2, 3, 4, 0.5, -6};  // rows sum to 2 and -1.5
  const struct {
    const char* op;
    std::vector<double> expected;
  } cases[] = {{"ReduceSum", {2, -1.5}},
               {"ReduceMean", {2 / 3.0, -0.5}},
               {"ReduceMax", {3, 4}},
               {"ReduceMin", {-2, -6}},
               {"ReduceProd", {-6, -12}},
               {"ReduceL1", {6, 10.5}},
               {"ReduceL2", {std::sqrt(14), std::sqrt(52.25)}},
               {"ReduceSumSquare", {14, 52.25}},
               {"ReduceLogSumExp",
                {std::log(std::exp(1) + std::exp(-2) + std::exp(3)),
                 std::log(std::exp(4) + std::exp(0.5) + std::exp(-6))}}};
  for (const auto& c : cases) {
    OnnxNodeRun run(c.op, 18);
    run.X({2, 3}, x).Ints({1}, {-1}).With("keepdims", 0);
    ExpectValues(run.Run()[0], {2}, c.expected, c.op);
  }
}

TEST(OnnxLoss, WeightsAndAnIgnoredClass) {
  const std::vector<double> scores = Random(3 * 4, 8);
  const std::vector<double> labels = {1, 3, 2}, weights = {1, 2, 0.5, 4};
  double total = 0, weight = 0;
  for (int64_t n = 0; n < 3; ++n) {
    const int64_t label = static_cast<int64_t>(labels[n]);
    if (label == 2) continue;
    double sum = 0;
    for (int64_t c = 0; c < 4; ++c) sum += std::exp(scores[4 * n + c]);
    total -= weights[label] * (scores[4 * n + label] - std::log(sum));
    weight += weights[label];
  }
  OnnxNodeRun run("SoftmaxCrossEntropyLoss");
  run.X({3, 4}, scores).X({3}, labels, onnx::TensorProto::INT64).Floats({4}, Floats(weights));
  run.With("ignore_index", 2);
  ExpectValues(run.Run()[0], {}, {total / weight});
}

}  // namespace
}  // namespace isomer
