#include "pcg/evaluation/comparisons.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace isomer {
namespace {

// less(x, z), and a call that nothing needs.
class Comparisons : public testing::Test {
 protected:
  Comparisons() {
    const TensorType type = SequentialType({2});
    x_ = graph_.AddInput("x", type).node;
    z_ = graph_.AddInput("z", type).node;
    graph_.AddOutput("y", graph_.AddOp(OpKind::kLess, {{x_, 0}, {z_, 0}}).value());
    graph_.AddOp(OpKind::kSign, {graph_.AddOp(OpKind::kExp, {{x_, 0}}).value()}).IgnoreError();
  }

  Values<double> At(std::vector<double> x, std::vector<double> z) const {
    std::map<NodeId, Value<double>> leaves;
    for (const auto& [id, values] : {std::pair(x_, x), std::pair(z_, z)}) {
      Array<double> array({2});
      array.data = values;
      leaves[id] = {graph_.type({id, 0}), {array}};
    }
    return EvaluateGraph<double>(graph_, leaves).value();
  }

  Graph graph_;
  NodeId x_, z_;
};

TEST_F(Comparisons, OfNumbersThatAreApartOrEqualAreClear) {
  for (const auto& values : {At({1, 2}, {2, 2}), At({0.3, -7}, {0.4, 1e9})}) {
    EXPECT_FALSE(RoundingMayDecide(graph_, values));
    EXPECT_FALSE(ComparesWhatIsNotFinite(graph_, values));
  }
}

TEST_F(Comparisons, RoundingMayDecideOfNeighbours) {
  EXPECT_TRUE(RoundingMayDecide(graph_, At({0.1 + 0.2, 5}, {0.3, 7})));
  EXPECT_TRUE(RoundingMayDecide(graph_, At({2 + std::sqrt(2.) - std::sqrt(2.), 5}, {2, 7})));
  EXPECT_TRUE(RoundingMayDecide(graph_, At({1e12, 5}, {1e12 + 1, 7})));
}

// At integers, functions jump.
TEST_F(Comparisons, RoundingMayDecideBesideIntegers) {
  EXPECT_TRUE(RoundingMayDecide(graph_, At({3 - 1e-14, 5}, {0.5, 7})));
}

TEST_F(Comparisons, OfWhatIsNotFiniteHaveNoValue) {
  const Values<double> values = At({1, std::nan("")}, {INFINITY, 2});
  EXPECT_TRUE(ComparesWhatIsNotFinite(graph_, values));
  EXPECT_FALSE(RoundingMayDecide(graph_, values));
}

}  // namespace
}  // namespace isomer
