#include "optimizer/simulator/bucket_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/simulator/simulator.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

struct Updates {
  UpdateMethod method;
  bool immediate = false;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  int blocks = 2;
};

std::string NameOf(const Updates& updates) {
  return absl::StrCat(UpdateMethodName(updates.method), updates.immediate ? "_beside" : "",
                      updates.optimizer == OptimizerKind::kAdam ? "_adam" : "",
                      updates.blocks > 2 ? "_of_more" : "");
}
void PrintTo(const Updates& updates, std::ostream* os) { *os << NameOf(updates); }
std::string NameOfCase(const testing::TestParamInfo<Updates>& info) { return NameOf(info.param); }

class PlanOfFewWeights {
 protected:
  PlanOfFewWeights(const Machine& machine, int blocks)
      : model_(ResidualModel(blocks, 64, 512, 2048)),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(machine),
        tables_(index_, cost_, CostOptions{}) {}

  double StepUs(const std::set<std::string>& ends) {
    Plan plan = plan_;
    plan.update.bucket_ends = ends;
    const auto simulation = PredictPlan(cost_, &plan);
    EXPECT_TRUE(simulation.ok()) << simulation.status();
    return simulation->step_us;
  }

  // Of all sets of weights behind which buckets can end.
  double LeastUs() {
    const std::vector<std::string> weights = Weights();
    EXPECT_LE(weights.size(), 12u);
    std::set<std::set<std::string>> choices;
    for (size_t way = 1; way < size_t{1} << weights.size(); ++way) {
      std::set<std::string> ends;
      for (size_t w = 0; w < weights.size(); ++w) {
        if (way >> w & 1) ends.insert(weights[w]);
      }
      choices.insert(std::move(ends));
    }
    return LeastUs(choices);
  }

  std::vector<std::string> Weights() const {
    std::vector<std::string> weights;
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) {
      const Node& node = plan_.graph.node({id});
      if (node.op.kind() == OpKind::kWeight) weights.push_back(node.name);
    }
    return weights;
  }

  double LeastUs(const std::set<std::set<std::string>>& choices) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::set<std::string>& ends : choices) least = std::min(least, StepUs(ends));
    return least;
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  CostTables tables_;
  Plan plan_;
};

class EndingBuckets : public PlanOfFewWeights, public testing::TestWithParam<Updates> {
 protected:
  EndingBuckets() : PlanOfFewWeights(TestMachine(2, 2), GetParam().blocks) {
    const auto mapped = MapBaseline(kDataParallel, model_.graph, &tables_);
    EXPECT_TRUE(mapped.ok()) << mapped.status();
    auto plan = DerivePlan(model_, *mapped, true, &tables_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
    plan_.update.method = GetParam().method;
    plan_.update.immediate = GetParam().immediate;
    plan_.update.optimizer = GetParam().optimizer;
  }
};

TEST_P(EndingBuckets, IsAsFastAsTheFastestOfAllWaysToDoIt) {
  const double least = LeastUs();
  const std::vector<std::string> weights = Weights();
  const auto ends = BestBucketEnds(cost_, plan_);
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_FALSE(ends->behind.empty());
  EXPECT_FALSE(ends->beside.empty());
  const double found = GetParam().immediate ? std::min(LeastUs(ends->beside), LeastUs(ends->behind))
                                            : LeastUs(ends->behind);
  EXPECT_LE(found, 1.001 * least);
  EXPECT_LT(found, StepUs({weights.begin(), weights.end()})) << "each by itself";
}

INSTANTIATE_TEST_SUITE_P(
    Methods, EndingBuckets,
    testing::Values(Updates{UpdateMethod::kAllReduce}, Updates{UpdateMethod::kSharded},
                    Updates{UpdateMethod::kOwner}, Updates{UpdateMethod::kAllReduce, true},
                    Updates{UpdateMethod::kSharded, true},
                    Updates{UpdateMethod::kAllReduce, false, OptimizerKind::kAdam},
                    Updates{UpdateMethod::kAllReduce, true, OptimizerKind::kAdam},
                    Updates{UpdateMethod::kSharded, true, OptimizerKind::kAdam},
                    // So many ways that not all are kept.
                    Updates{UpdateMethod::kAllReduce, false, OptimizerKind::kSgd, 3},
                    Updates{UpdateMethod::kSharded, true, OptimizerKind::kAdam, 3}),
    NameOfCase);

// Of 16 devices few are simulated, and the same ones for gradients that four sum and that all do.
class EndingBucketsOfClasses : public PlanOfFewWeights, public testing::Test {
 protected:
  EndingBucketsOfClasses() : PlanOfFewWeights(TestMachine(4, 4), 2) {}
};

TEST_F(EndingBucketsOfClasses, AreAsFast) {
  GridGraph graphs(model_);
  const ParallelConfig config{.devices = 16, .degrees = {.tensor = 4}};
  auto made = PlanOfConfig(&graphs, /*training=*/true, config, &tables_);
  ASSERT_TRUE(made.ok()) << made.status();
  plan_ = std::move(made->plan);
  const auto ends = BestBucketEnds(cost_, plan_);
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_LE(LeastUs(ends->behind), 1.005 * LeastUs());
}

using EndingNoBuckets = EndingBuckets;

// What is stored in parts is scattered weight by weight.
TEST_P(EndingNoBuckets, WhereThereAreNone) {
  const auto ends = BestBucketEnds(cost_, plan_);
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_TRUE(ends->behind.empty());
  EXPECT_TRUE(ends->beside.empty());
}

INSTANTIATE_TEST_SUITE_P(Methods, EndingNoBuckets,
                         testing::Values(Updates{UpdateMethod::kShardedWeights}), NameOfCase);

}  // namespace
}  // namespace isomer
