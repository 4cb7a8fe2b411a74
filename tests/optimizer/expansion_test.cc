#include "optimizer/expansion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcg/support/data_path.h"

namespace isomer {
namespace {

// The iteration dims that the shipped rules split.
std::vector<int> DimsSplit(const Operator& op, const std::vector<TensorType>& operands) {
  static const RuleSet& rules = *[] {
    absl::StatusOr<RuleSet> loaded = LoadRules(DataPath("rules/default.rules"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return new RuleSet(loaded.ok() ? *std::move(loaded) : RuleSet());
  }();
  static const RuleIndex& index = *new RuleIndex(rules);
  std::vector<int> dims;
  for (const Expansion& split : FindExpansions(index, op, operands).splits) {
    dims.push_back(split.dim);
  }
  return dims;
}

// Rules count axes from the end, models from either.
TEST(Expansions, AxisIsTheSameFromBothEnds) {
  const std::vector<TensorType> images = {SequentialType({4, 6, 8, 8}),
                                          SequentialType({4, 2, 8, 8})};
  for (int64_t axis : {1, -3}) {
    EXPECT_THAT(DimsSplit(Operator(OpKind::kConcat, {{"axis", axis}}), images),
                testing::ElementsAre(0, 2, 3))
        << axis;
  }
  for (int64_t axis : {1, -1}) {
    EXPECT_THAT(DimsSplit(Operator(OpKind::kSoftmax, {{"axis", axis}}), {SequentialType({4, 6})}),
                testing::ElementsAre(0))
        << axis;
  }
}

}  // namespace
}  // namespace isomer
