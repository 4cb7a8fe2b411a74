#include "optimizer/bound/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/simulator/bucket_choice.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/simulator/task_graph.h"
#include "optimizer/substitution/search.h"
#include "tests/optimizer/bound_scenarios.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class Bounding : public testing::TestWithParam<BoundScenario> {
 protected:
  Bounding()
      : model_(GetParam().model),
        rules_(ExampleRules(model_.graph)),
        index_(rules_),
        cost_(GetParam().MachineOf()),
        tables_(index_, cost_, CostOptions{}) {}

  // Whenever weights are updated, with buckets of any size.
  void ExpectBoundHolds(const MappedModel& mapped, const std::string& what) {
    const bool beside = std::any_of(mapped.choices.begin(), mapped.choices.end(),
                                    [](const auto& choice) { return choice.second.start > 0; });
    const auto bound =
        BoundStep(mapped.graph, {.loss = model_.loss, .cuts = 2, .beside = beside}, &tables_);
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_GT(bound->beside_us, 0);
    EXPECT_LE(bound->beside_us, bound->step_us);
    auto plan = DerivePlan(model_, mapped, tables_.options().training, &tables_);
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan->update.method = tables_.options().update_method;
    for (int64_t bucket_bytes : {UpdateOptions().bucket_bytes, int64_t{1} << 40, int64_t{0}}) {
      for (bool immediate : {false, true}) {
        plan->update.bucket_bytes = bucket_bytes;
        plan->update.immediate = immediate;
        const auto simulation = PredictPlan(cost_, &*plan);
        ASSERT_TRUE(simulation.ok()) << simulation.status();
        EXPECT_LE(beside ? bound->beside_us : bound->step_us, simulation->step_us)
            << what << " in buckets of " << bucket_bytes << (immediate ? " at once" : "");
      }
    }
    plan->update.immediate = false;
    const auto ends = BestBucketEnds(cost_, *plan);
    ASSERT_TRUE(ends.ok()) << ends.status();
    for (const std::set<std::string>& choice : ends->behind) {
      plan->update.bucket_ends = choice;
      const auto simulation = PredictPlan(cost_, &*plan);
      ASSERT_TRUE(simulation.ok()) << simulation.status();
      EXPECT_LE(beside ? bound->beside_us : bound->step_us, simulation->step_us)
          << what << " in the best buckets";
    }
  }

  Model model_;
  RuleSet rules_;
  RuleIndex index_;
  CostModel cost_;
  CostTables tables_;
};

TEST_P(Bounding, NoBaselineAndNoSearchedPlanIsFaster) {
  for (const char* name : {kSingleDevice, kDataParallel, kMegatron}) {
    const auto mapped = MapBaseline(name, model_.graph, &tables_);
    if (mapped.ok()) ExpectBoundHolds(*mapped, name);
  }
  for (double weight : {1.0, 0.25, 0.0}) {
    CostOptions options;
    options.sync_weight = weight;
    tables_.set_options(options);
    const auto found = HierarchicalSearch(model_.graph, {}, &tables_);
    ASSERT_TRUE(found.ok()) << found.status();
    ExpectBoundHolds(found->mapped, absl::StrCat("search with weight ", weight));
    EXPECT_EQ(tables_.options().sync_weight, weight);
  }
}

TEST_P(Bounding, NoInferencePlanIsFaster) {
  CostOptions options;
  options.training = false;
  tables_.set_options(options);
  const auto found = HierarchicalSearch(model_.graph, {}, &tables_);
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectBoundHolds(found->mapped, "search");
}

TEST_P(Bounding, NoPlanOfOtherUpdateMethodsIsFaster) {
  for (UpdateMethod method :
       {UpdateMethod::kSharded, UpdateMethod::kOwner, UpdateMethod::kShardedWeights}) {
    CostOptions options;
    options.update_method = method;
    tables_.set_options(options);
    const auto mapped = MapBaseline(kDataParallel, model_.graph, &tables_);
    if (mapped.ok()) ExpectBoundHolds(*mapped, UpdateMethodName(method));
  }
}

// Any choices of all calls, on all devices or some.
TEST_P(Bounding, NoRandomPlanIsFaster) {
  const auto bound = BoundStep(model_.graph, {.loss = model_.loss, .cuts = 10}, &tables_);
  ASSERT_TRUE(bound.ok()) << bound.status();
  std::mt19937_64 random(7);
  for (int64_t devices = cost_.machine().num_devices(); devices >= 1; devices /= 2) {
    CostOptions options;
    options.num_devices = devices;
    options.halves = false;
    tables_.set_options(options);
    const auto start = MapBaseline(kSingleDevice, model_.graph, &tables_);
    ASSERT_TRUE(start.ok()) << start.status();
    const auto graph = TaskGraph::Create(model_, *start, &tables_);
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (int change = 0; change < 400; ++change) {
      const int node = static_cast<int>(random() % (*graph)->num_nodes());
      const int choice = static_cast<int>(random() % (*graph)->num_choices(node));
      ASSERT_EQ((*graph)->SetChoice(node, choice), absl::OkStatus());
      (*graph)->Commit();
      EXPECT_LE(bound->step_us, MicrosecondsOf((*graph)->makespan()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Bounding, testing::ValuesIn(BoundScenarios()),
                         [](const auto& info) { return std::string(info.param.name); });

// On one device there is nothing to choose: the bound is the step, but for what no call computes.
TEST(LowerBound, IsTightOnOneDevice) {
  const Model model = ResidualModel(2, 8, 512, 2048);
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(1, 1));
  CostTables tables(index, cost, CostOptions{});
  const auto mapped = MapBaseline(kSingleDevice, model.graph, &tables);
  ASSERT_TRUE(mapped.ok());
  auto plan = DerivePlan(model, *mapped, true, &tables);
  ASSERT_TRUE(plan.ok());
  const auto simulation = PredictPlan(cost, &*plan);
  ASSERT_TRUE(simulation.ok());
  const auto bound = BoundStep(model.graph, {.loss = model.loss}, &tables);
  ASSERT_TRUE(bound.ok());
  EXPECT_GE(bound->step_us, 0.9 * simulation->step_us);
  EXPECT_EQ(bound->devices, 1);
}

// What an export of the identity becomes.
TEST(LowerBound, OfAModelWithoutCallsIsZero) {
  Model model;
  model.graph.AddOutput("y", model.graph.AddInput("x", SequentialType({4, 4})));
  const RuleSet rules;
  const RuleIndex index(rules);
  const CostModel cost(TestMachine(2, 2));
  CostTables tables(index, cost, CostOptions{});
  const auto bound = BoundStep(model.graph, {}, &tables);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->step_us, 0);
  EXPECT_EQ(bound->beside_us, 0);
}

}  // namespace
}  // namespace isomer
