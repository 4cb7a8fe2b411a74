#include "optimizer/proposal/contest.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/machine/machine.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/proposal/recompute.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/constraints.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class ContestTest : public testing::Test {
 protected:
  // The data-parallel plan, in buckets of `bucket_bytes`.
  Plan PlanOf(int64_t bucket_bytes) {
    CostTables tables(index_, cost_, {});
    const MappedModel mapped = MapBaseline(kDataParallel, model_.graph, &tables).value();
    Plan plan = DerivePlan(model_, mapped, /*training=*/true, &tables).value();
    plan.update.bucket_bytes = bucket_bytes;
    return plan;
  }

  const Model model_ = ResidualModel(3, 64, 128, 256);
  const RuleSet rules_ = ExampleRules(model_.graph);
  const RuleIndex index_{rules_};
  const CostModel cost_{TestMachine(2, 4)};
};

TEST_F(ContestTest, PlansThatRunAlikeHaveOnePrediction) {
  Contest contest(cost_);
  const Plan plan = PlanOf(1 << 20);
  Plan otherwise_derived = plan;
  otherwise_derived.steps.clear();
  otherwise_derived.predicted_step_us = 1;
  const Prediction first = contest.Consider(plan, "first").value();
  EXPECT_EQ(contest.Consider(otherwise_derived, "second").value(), first);
  EXPECT_EQ(contest.best().origin, "first");
  EXPECT_FALSE(contest.best().plan.steps.empty());
}

// Each product as a Linear without bias and activation; calls have other names.
Graph WithLinears(const Graph& graph) {
  Graph linear;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) {
      linear.AddLeaf(node.op.kind(), node.name, node.outputs[0]);
      continue;
    }
    const bool is_product = node.op.kind() == OpKind::kMatMul;
    const Operator op =
        is_product ? Operator(OpKind::kLinear, {{"activation", int64_t{0}}}) : node.op;
    EXPECT_TRUE(linear.Add(op, node.inputs, absl::StrCat("call", id)).ok());
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    linear.AddOutput(output.name, output.tensor);
  }
  return linear;
}

// A search may leave a product as either: these plans are predicted once.
TEST_F(ContestTest, ProductsAndBareLinearsRunAlike) {
  const CostModel on_gpus{LoadMachine("dgx_h100", 2).value()};
  const CostModel on_cores{LoadMachine("laptop_cpu").value()};
  for (const DataType precision : {DataType::kFloat32, DataType::kBFloat16}) {
    Plan products = PlanOf(1 << 20), linears = products;
    products.precision = linears.precision = precision;
    linears.graph = WithLinears(products.graph);
    ASSERT_NE(products.graph.StructuralHash(), linears.graph.StructuralHash());
    EXPECT_EQ(WhatRuns(on_gpus, &products), WhatRuns(on_gpus, &linears));
    EXPECT_NE(WhatRuns(on_cores, &products), WhatRuns(on_cores, &linears));
    const Simulation of_products = PredictPlan(on_gpus, &products).value();
    const Simulation of_linears = PredictPlan(on_gpus, &linears).value();
    EXPECT_EQ(of_products.step_us, of_linears.step_us);
    EXPECT_EQ(of_products.exposed_tail_us, of_linears.exposed_tail_us);
    EXPECT_EQ(of_products.compute_us, of_linears.compute_us);
    EXPECT_EQ(of_products.peak_bytes, of_linears.peak_bytes);
    EXPECT_EQ(of_products.tasks.size(), of_linears.tasks.size());
  }
}

TEST_F(ContestTest, WhatAPlanRunsTellsItFromOthers) {
  Contest contest(cost_);
  const Prediction whole = contest.Consider(PlanOf(0), "by weight").value();
  const Prediction buckets = contest.Consider(PlanOf(1 << 30), "at once").value();
  EXPECT_NE(whole.step_us, buckets.step_us);
}

// Whoever proposed them: of one that does otherwise there is no prediction, and it is not the best.
TEST_F(ContestTest, PlansThatDoNotAsAUserSaysOfTheStepTakeNoPart) {
  const Plan plan = PlanOf(0);  // one micro-batch, all-reduces, and all is kept
  ASSERT_FALSE(RecomputedNodes(RecomputeMode::kFull, plan.graph).empty());
  for (const auto& [step, deviation] : std::vector<std::pair<std::string, std::string>>{
           {"stages: 2", "it has one micro-batch"},
           {"chunks: 2", "it has one micro-batch"},
           {"micro_batches: 4", "it has 1 micro-batch"},
           {"update: \"sharded\"", "it updates by all_reduce"},
           {"recompute: \"full\"", "it computes 0 results again"},
           {"stages: 1 micro_batches: 1 chunks: 1 update: \"all_reduce\" recompute: \"none\"",
            ""}}) {
    SCOPED_TRACE(step);
    const Constraints::OfStep wanted =
        ParseConstraints("step { " + step + " }", "mine.txt").value().step;
    Contest contest(cost_, 1, nullptr, {}, wanted);
    const Prediction prediction = contest.Consider(plan, "some").value();
    EXPECT_EQ(prediction == kNotAllowed, !deviation.empty());
    EXPECT_EQ(contest.empty(), !deviation.empty());
    EXPECT_EQ(contest.deviation(), deviation);
    const int only_predicted = contest.Enter(plan, "baseline", /*takes_part=*/false);
    EXPECT_LT(contest.PredictionOf(only_predicted).value().step_us, kNotAllowed.step_us);
    EXPECT_EQ(contest.empty(), !deviation.empty());
  }
}

TEST_F(ContestTest, OfASearchIsAboutTheUsersStep) {
  OptimizeOptions options;
  options.constraints = ParseConstraints("step { recompute: \"full\" }", "mine.txt").value();
  for (const bool searches : {true, false}) {
    if (!searches) options.plan = kDataParallel;
    SharedMemos shared;
    SearchContext context(model_, index_, cost_, options, &shared);
    const Prediction prediction = context.contest.Consider(PlanOf(0), "some").value();
    EXPECT_EQ(prediction == kNotAllowed, searches);
    EXPECT_EQ(context.contest.empty(), searches);
  }
}

// Stages are those of the schedule, and not those that somebody meant.
TEST_F(ContestTest, StagesAreThoseOfTheSchedule) {
  CostTables tables(index_, cost_, {});
  const ParallelConfig config{.devices = 8, .stages = 2, .micro_batches = 4};
  GridGraph graphs(model_);
  Plan plan = PlanOfConfig(&graphs, /*training=*/true, config, &tables)->plan;
  config.SetOptions(&plan);
  for (const auto& [step, deviation] : std::vector<std::pair<std::string, std::string>>{
           {"stages: 2", ""},
           {"stages: 1", "it has 2 stages"},
           {"stages: 4", "it has 2 stages"},
           {"chunks: 2", "it has 1 chunk of the model on a stage"},
           {"chunks: 1", ""}}) {
    SCOPED_TRACE(step);
    const Constraints::OfStep wanted =
        ParseConstraints("step { " + step + " }", "mine.txt").value().step;
    Contest contest(cost_, 1, nullptr, {}, wanted);
    EXPECT_EQ(contest.Consider(plan, "some").value() == kNotAllowed, !deviation.empty());
    EXPECT_EQ(contest.empty(), !deviation.empty());
    EXPECT_EQ(contest.deviation(), deviation);
  }
}

TEST_F(ContestTest, PlansTakePartInTheOrderInWhichTheyWereEntered) {
  for (int threads : {1, 2, 4}) {
    Contest contest(cost_, threads);
    const int observed = contest.Enter(PlanOf(1 << 30), "observed", /*takes_part=*/false);
    EXPECT_TRUE(contest.PredictionOf(observed).ok());
    EXPECT_TRUE(contest.empty());
    std::vector<int> entries;
    for (int64_t bytes : {int64_t{0}, int64_t{1} << 30, int64_t{1} << 12, int64_t{1} << 30}) {
      entries.push_back(contest.Enter(PlanOf(bytes), absl::StrCat(bytes)));
    }
    EXPECT_TRUE(contest.empty());
    // Asks for all that were entered before, too.
    const Prediction last = contest.PredictionOf(entries.back()).value();
    EXPECT_EQ(contest.PredictionOf(entries[1]).value(), last);
    EXPECT_EQ(contest.PredictionOf(observed).value(), last);
    EXPECT_LE(contest.step_us(), last.step_us);
  }
}

// What one has begun, another may wait for when the first is gone.
TEST_F(ContestTest, ContestsWithOneMemoPredictAlike) {
  for (int threads : {1, 2}) {
    PredictionMemo memo;
    Contest second(cost_, threads, &memo);
    {
      Contest first(cost_, threads, &memo);
      first.Enter(PlanOf(1 << 20), "first");
      first.Enter(PlanOf(0), "first");
      second.Enter(PlanOf(0), "second");
    }
    const int entry = second.Enter(PlanOf(1 << 20), "second");
    Contest alone(cost_, threads);
    EXPECT_EQ(second.PredictionOf(entry).value(), alone.Consider(PlanOf(1 << 20), "alone").value());
    EXPECT_EQ(alone.Consider(PlanOf(0), "alone").value(),
              second.Consider(PlanOf(0), "second").value());
    EXPECT_EQ(second.best().origin, "second");
    EXPECT_EQ(second.best().plan.predicted_step_us, second.step_us());
  }
}

TEST_F(ContestTest, WhatIsPrefetchnIsPredictedAsEverAndTakesNoPart) {
  for (int threads : {1, 2}) {
    PredictionMemo memo;
    Contest contest(cost_, threads, &memo), alone(cost_, threads);
    for (int64_t bucket : {0, 1 << 20}) contest.Prefetch(PlanOf(bucket));
    EXPECT_TRUE(contest.empty());
    EXPECT_EQ(contest.Consider(PlanOf(0), "entered").value(),
              alone.Consider(PlanOf(0), "alone").value());
    contest.ForgetPrefetched();
    EXPECT_EQ(contest.Consider(PlanOf(1 << 20), "entered").value(),
              alone.Consider(PlanOf(1 << 20), "alone").value());
    EXPECT_EQ(contest.step_us(), alone.step_us());
  }
}

TEST(PredictionMemoTest, BeginsEachSimulationOnce) {
  PredictionMemo memo;
  int begun = 0;
  const auto begin = [&begun]() -> PredictionMemo::Future {
    std::promise<absl::StatusOr<Simulation>> promise;
    Simulation simulation;
    simulation.step_us = ++begun;
    promise.set_value(simulation);
    return promise.get_future();
  };
  const auto step_us = [&](uint64_t what_runs) {
    const PredictionMemo::Known known = memo.FindOrBegin(what_runs, begin);
    return known.step.has_value() ? known.step->step_us : known.simulation.get()->step_us;
  };
  EXPECT_EQ(step_us(7), 1);
  EXPECT_EQ(step_us(8), 2);
  EXPECT_EQ(step_us(7), 1);
  memo.Forget(7);
  EXPECT_EQ(step_us(7), 3);
  // What was judged is known without its tasks, and not forgotten with what nobody asked for.
  memo.Keep(7, {.step_us = 9});
  EXPECT_FALSE(memo.FindOrBegin(7, begin).simulation.valid());
  memo.Forget(7);
  EXPECT_EQ(step_us(7), 9);
  EXPECT_EQ(begun, 3);
}

// The second contest's best is one that the first simulated: it has its step, and no simulation.
TEST_F(ContestTest, WhatAnotherContestPredictedIsNotSimulatedAgain) {
  PredictionMemo memo;
  Contest first(cost_, 1, &memo), second(cost_, 1, &memo);
  const Prediction prediction = first.Consider(PlanOf(1 << 20), "first").value();
  EXPECT_TRUE(first.best().simulation.has_value());
  EXPECT_EQ(second.Consider(PlanOf(1 << 20), "second").value(), prediction);
  EXPECT_FALSE(second.best().simulation.has_value());
  EXPECT_EQ(second.best().step.step_us, prediction.step_us);
  EXPECT_EQ(second.best().plan.predicted_step_us, prediction.step_us);
  EXPECT_EQ(second.step_us(), first.step_us());
  EXPECT_EQ(second.contenders().size(), first.contenders().size());
  EXPECT_EQ(second.ComputeUsOf(0), first.ComputeUsOf(0));
}

TEST(GridMemo, EnumeratesOnceForEachKey) {
  GridMemo memo;
  int begun = 0;
  const auto enumerate = [&begun] {
    return std::vector<ConfigEstimate>(static_cast<size_t>(++begun));
  };
  const GridMemo::Key key = {64, UpdateMethod::kAllReduce, true, 1};
  EXPECT_EQ(memo.Of(key, enumerate)->size(), 1u);
  EXPECT_EQ(memo.Of({64, UpdateMethod::kShardedWeights, false, 1}, enumerate)->size(), 2u);
  EXPECT_EQ(memo.Of({32, UpdateMethod::kAllReduce, true, 1}, enumerate)->size(), 3u);
  EXPECT_EQ(memo.Of(key, enumerate)->size(), 1u);
}

TEST_F(ContestTest, APlanThatCannotBeLoweredIsAnErrorOfItsOwn) {
  Contest contest(cost_, 2);
  Plan broken = PlanOf(0);
  broken.views.pop_back();
  const int first = contest.Enter(std::move(broken), "broken");
  const int second = contest.Enter(PlanOf(0), "whole");
  EXPECT_TRUE(contest.PredictionOf(second).ok());
  EXPECT_FALSE(contest.PredictionOf(first).ok());
  EXPECT_EQ(contest.best().origin, "whole");
}

TEST_F(ContestTest, ThePlanDoesNotDependOnThreads) {
  std::vector<OptimizeResult> results;
  for (int threads : {1, 4}) {
    OptimizeOptions options;
    options.threads = threads;
    options.choose_update_method = true;
    results.push_back(Optimize(model_, index_, cost_, options).value());
  }
  EXPECT_EQ(SealOf(results[0].plan), SealOf(results[1].plan));
  EXPECT_EQ(results[0].origin, results[1].origin);
  EXPECT_EQ(results[0].baselines, results[1].baselines);
}

}  // namespace
}  // namespace isomer
