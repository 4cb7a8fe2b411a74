#include "optimizer/proposal/recomputation_levels.h"

#include <gtest/gtest.h>

#include <limits>

#include "optimizer/search/optimizer.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

constexpr double kAnyUs = std::numeric_limits<double>::infinity();

TEST(RecomputationLevels, AreThoseThatFreeEnoughInTheTimeThereIs) {
  const Model model = ResidualModel(8, 8192, 64, 256);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 2));
  OptimizeOptions options;
  options.plan = kDataParallel;
  const auto result = Optimize(model, index, cost, options);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto results = ResultsOfNodes(cost, result->plan);
  ASSERT_TRUE(results.ok()) << results.status();
  const auto levels = RecomputationLevels::Of(
      result->plan, *results, SegmentsToRecompute(result->plan.graph, *results), /*most=*/8);
  ASSERT_TRUE(levels.ok()) << levels.status();
  const auto all = levels->Within(kAnyUs, 0);
  EXPECT_EQ(all.first, 0);
  EXPECT_GT(all.end, 2);
  for (int64_t level = 1; level < all.end; ++level) {
    EXPECT_GT(levels->nodes(level).size(), levels->nodes(level - 1).size());
  }
  EXPECT_TRUE(levels->Within(0, 0).empty()) << "each takes time";
  EXPECT_TRUE(levels->Within(kAnyUs, int64_t{1} << 50).empty()) << "none frees so much";
  // More bytes take more of them.
  const int64_t kept = result->plan.predicted_peak_bytes / 4;
  EXPECT_GE(levels->Within(kAnyUs, kept).first, levels->Within(kAnyUs, kept / 4).first);
  EXPECT_EQ(RecomputationLevels().Within(kAnyUs, 0).end, 0);
}

}  // namespace
}  // namespace isomer
