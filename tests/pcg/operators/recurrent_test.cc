#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::HasSubstr;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(LstmCell, ByHand) {
  // Gates i, f, g, o.
  const std::vector<Tensor> y =
      OutputsOf("lstm_cell", {Filled({4, 1}, {0.5, -1, 0.25, 2}), Filled({1}, {3})});
  ASSERT_EQ(y.size(), 2u);
  const double c = Sigmoid(-1) * 3 + Sigmoid(0.5) * std::tanh(0.25);
  EXPECT_NEAR(y[0].data[0], Sigmoid(2) * std::tanh(c), 1e-12);
  EXPECT_NEAR(y[1].data[0], c, 1e-12);
}

TEST(LstmCell, OpenForgetGateKeepsTheState) {
  Tensor gates({2, 4, 3});
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t h = 0; h < 3; ++h) {
      gates.data[(n * 4 + 0) * 3 + h] = -1000;
      gates.data[(n * 4 + 1) * 3 + h] = 1000;
      gates.data[(n * 4 + 3) * 3 + h] = 1000;
    }
  }
  const Tensor c = Random({2, 3}, 1);
  const std::vector<Tensor> y = OutputsOf("lstm_cell", {gates, c});
  ExpectClose(y[1], c);
  ExpectClose(y[0], OutputOf("tanh", {c}));
}

TEST(GruCell, ByHand) {
  // Gates r, z, n.
  const Tensor x = Filled({3, 1}, {0.5, -1, 0.25}), p = Filled({3, 1}, {0.25, 0.75, -2}),
               h = Filled({1}, {3});
  const double r = Sigmoid(0.75), z = Sigmoid(-0.25), n = std::tanh(0.25 + r * -2);
  EXPECT_NEAR(OutputOf("gru_cell", {x, p, h}).data[0], (1 - z) * n + z * 3, 1e-12);
}

TEST(GruCell, SamplesAreIndependent) {
  const Tensor x = Random({2, 3, 4}, 1), p = Random({2, 3, 4}, 2), h = Random({2, 4}, 3);
  const Tensor both = OutputOf("gru_cell", {x, p, h});
  auto sample = [](const Tensor& whole, int64_t i, std::vector<int64_t> shape) {
    const int64_t size = whole.size() / 2;
    return Filled(std::move(shape),
                  {whole.data.begin() + i * size, whole.data.begin() + (i + 1) * size});
  };
  for (int64_t i : {0, 1}) {
    ExpectClose(
        OutputOf("gru_cell", {sample(x, i, {3, 4}), sample(p, i, {3, 4}), sample(h, i, {4})}),
        sample(both, i, {4}));
  }
}

TEST(RecurrentCell, RefusesOtherNumbersOfGates) {
  EXPECT_THAT(ErrorOf("lstm_cell", {{2, 3, 6}, {2, 6}}), HasSubstr("is 3, not the 4 gates"));
  EXPECT_THAT(ErrorOf("lstm_cell", {{2, 4, 6}, {2, 5}}), HasSubstr("dim h is 6"));
  EXPECT_THAT(ErrorOf("lstm_cell", {{2, 4, 6}, {3, 6}}), HasSubstr("dim i0 is 2"));
  EXPECT_THAT(ErrorOf("lstm_cell", {{4, 6}, {2, 6}}), HasSubstr("rank 2, not 3"));
  EXPECT_THAT(ErrorOf("gru_cell", {{2, 3, 6}, {2, 4, 6}, {2, 6}}),
              HasSubstr("operand 1 is 4, not the 3 gates"));
}

}  // namespace
}  // namespace isomer
