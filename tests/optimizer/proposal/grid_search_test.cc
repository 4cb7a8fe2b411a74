#include "optimizer/proposal/grid_search.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optimizer/proposal/grid_plan.h"
#include "tests/models/text_model.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class GridSearchTest : public testing::Test {
 protected:
  GridSearchTest() {
    model_.loss = "loss";
    CostTables tables(index_, cost_, {});
    GridGraph graphs(model_);
    best_us_ =
        contest_.Consider(PlanOfConfig(&graphs, true, {.devices = 8}, &tables)->plan, "some")
            ->step_us;
  }

  // Of configurations with estimates, those that are predicted; what fits takes as long as the
  // first is estimated to.
  std::vector<ParallelConfig> LookedAt(std::vector<ConfigEstimate> estimates) {
    GridSearchOptions options;
    options.grids.devices = 8;
    options.estimates = std::move(estimates);
    std::vector<ParallelConfig> seen;
    options.consider = [&](const MappedModel&, const ParallelConfig& config,
                           const std::string&) -> absl::StatusOr<Prediction> {
      seen.push_back(config);
      return Prediction{options.estimates[0].step_us};
    };
    options.prefetch = [](const MappedModel&, const ParallelConfig&) {};
    GridGraph graphs(model_);
    CostTables tables(index_, cost_, {.halves = false});
    const absl::Status searched = SearchGrids(&graphs, options, Deadline(), contest_, &tables);
    EXPECT_TRUE(searched.ok()) << searched;
    return seen;
  }

  // The same of grids of such degrees with estimates in times of the best step; those that split no
  // sequence should fit or not.
  std::vector<GridDegrees> LookedAt(const std::vector<std::pair<GridDegrees, double>>& estimated,
                                    bool fits = true) {
    std::vector<ConfigEstimate> estimates;
    for (const auto& [degrees, times] : estimated) {
      const bool counts = fits || degrees.context > 1;
      estimates.push_back({{.devices = 8, .degrees = degrees},
                           times * best_us_,
                           counts ? 0 : 2 * cost_.machine().memory_bytes()});
    }
    std::vector<GridDegrees> seen;
    for (const ParallelConfig& config : LookedAt(std::move(estimates))) {
      seen.push_back(config.degrees);
    }
    return seen;
  }

  Model model_ = TextModel(R"(
%0 = input "x" : f32[4,16,32]
%1 = weight "a" : f32[32,32]
%2 = input "target" : f32[4,16,32]
%3 = weight "b" : f32[32,32]
%4 = matmul(%0, %1) : f32[4,16,32]
%5 = reshape(%4) {shape=[4,16,8,4]} : f32[4,16,8,4]
%6 = transpose(%5) {perm=[0,2,1,3]} : f32[4,8,16,4]
%7 = attention(%6, %6, %6) {scale=0.5,causal=1} : f32[4,8,16,4]
%8 = transpose(%7) {perm=[0,2,1,3]} : f32[4,16,8,4]
%9 = reshape(%8) {shape=[4,16,32]} : f32[4,16,32]
%10 = matmul(%9, %3) : f32[4,16,32]
%11 = mse(%10, %2) : f32[]
output "loss" = %11
)");
  const RuleSet rules_ = ExampleRules(model_.graph);
  const RuleIndex index_{rules_};
  const CostModel cost_{TestMachine(1, 8)};
  Contest contest_{cost_};
  double best_us_ = 0;
};

constexpr GridDegrees kTensor = {.tensor = 2}, kContext = {.context = 2},
                      kByHeads = {.context = 2, .context_by_heads = true};

TEST_F(GridSearchTest, SplitSequencesAreLookedAtWhereTheyAreEstimatedBelowTheBest) {
  EXPECT_THAT(LookedAt({{kContext, 0.9}}), testing::ElementsAre(kContext));
  EXPECT_THAT(LookedAt({{kContext, 1.01}, {kByHeads, 1.02}}), testing::IsEmpty());
  // Others are as far from their estimates as the policy says.
  EXPECT_THAT(LookedAt({{kContext, 1.01}, {kTensor, 1.02}}), testing::ElementsAre(kTensor));
}

// By more than estimates are off by; of others those that should fit count.
TEST_F(GridSearchTest, SplitSequencesAreLookedAtWhereTheyAreEstimatedToGain) {
  EXPECT_THAT(LookedAt({{kContext, 0.8}, {kTensor, 0.9}}), testing::ElementsAre(kTensor));
  EXPECT_THAT(LookedAt({{kContext, 0.7}, {kByHeads, 0.79}, {kTensor, 0.9}}),
              testing::ElementsAre(kContext));
  EXPECT_THAT(LookedAt({{kContext, 0.8}, {kTensor, 0.9}}, /*fits=*/false),
              testing::ElementsAre(kContext));
}

// Of pipelines that differ in chunks alone the first that fits; so there is time for others.
TEST_F(GridSearchTest, ChunksAreChosenByTheirEstimates) {
  const auto pipeline = [&](int64_t stages, int64_t chunks, double times) {
    const ParallelConfig config{.devices = 8,
                                .stages = stages,
                                .micro_batches = 4,
                                .degrees = {.tensor = 8 / stages},
                                .chunks = chunks};
    return ConfigEstimate{config, times * best_us_, 0};
  };
  std::vector<std::pair<int64_t, int64_t>> seen;
  for (const ParallelConfig& config : LookedAt({pipeline(2, 2, 0.8), pipeline(2, 3, 0.81),
                                                pipeline(2, 1, 0.82), pipeline(4, 1, 0.83)})) {
    seen.emplace_back(config.stages, config.chunks);
  }
  EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(2, 2), testing::Pair(4, 1)));
}

}  // namespace
}  // namespace isomer
