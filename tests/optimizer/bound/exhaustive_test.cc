#include "optimizer/bound/exhaustive.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "optimizer/bound/prefix_bound.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/exhaustive_search.h"
#include "optimizer/simulator/task_graph.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

// The least simulated step over all assignments on `devices`, each tried, with calls in the order
// of the plan of `start`.
Picoseconds TryAll(const Model& model, const MappedModel& start, int64_t devices,
                   CostTables* tables) {
  const CostOptions saved = tables->options();
  CostOptions options = saved;
  options.halves = false;
  options.num_devices = devices;
  tables->set_options(options);
  auto graph = TaskGraph::Create(model, start, tables, nullptr, TaskGraph::Lists::kChoices,
                                 TaskGraph::Order::kInterleaved);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const int n = (*graph)->num_nodes();
  std::vector<int> sizes;  // without the choice that the graph began with
  for (const auto& node : (*graph)->compute().nodes) {
    const auto call = tables->Call(model.graph.node(node.id).op, node.operand_types);
    EXPECT_TRUE(call.ok());
    sizes.push_back(static_cast<int>((*call)->space.choices.size()));
  }
  std::vector<int> choices(n, 0);
  Picoseconds least = -1;
  while (true) {
    for (int i = 0; i < n; ++i) {
      if ((*graph)->choice(i) == choices[i]) continue;
      EXPECT_TRUE((*graph)->SetChoice(i, choices[i]).ok());
    }
    (*graph)->Commit();
    if (least < 0 || (*graph)->makespan() < least) least = (*graph)->makespan();
    int i = 0;
    while (i < n && ++choices[i] == sizes[i]) choices[i++] = 0;
    if (i == n) break;
  }
  tables->set_options(saved);
  return least;
}

// A model on a machine.
struct Setting {
  Setting(Model of, int64_t nodes, int64_t devices)
      : model(std::move(of)),
        rules(ExampleRules(model.graph)),
        index(rules),
        cost(TestMachine(nodes, devices)),
        tables(index, cost, CostOptions{}) {}

  const Model model;
  const RuleSet rules;
  const RuleIndex index;
  const CostModel cost;
  CostTables tables;
};

// All calls are one operator.
ExhaustiveOptions OneOperator(const MappedModel& mapped) {
  ExhaustiveOptions options;
  for (const auto& [call, choice] : mapped.choices) options.operators[call] = "all";
  return options;
}

void ExpectOptimum(Model of, int64_t devices) {
  Setting setting(std::move(of), 1, devices);
  const Model& model = setting.model;
  CostTables& tables = setting.tables;
  const auto start = BestMapping(model, Deadline(), &tables);
  ASSERT_TRUE(start.ok()) << start.status();
  const auto found = SearchExhaustively(model, *start, {}, &tables);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->proved) << found->ToString();
  Picoseconds least = -1;
  for (int64_t d = devices; d >= 1; --d) {
    if (devices % d != 0) continue;
    const Picoseconds now = TryAll(model, *start, d, &tables);
    if (least < 0 || now < least) least = now;
  }
  EXPECT_DOUBLE_EQ(found->step_us, MicrosecondsOf(least));
  EXPECT_EQ(found->bound_us, found->step_us);
}

TEST(Exhaustive, FindsWhatTryingEverythingFinds) {
  ExpectOptimum(ResidualModel(1, 8, 16, 32), 2);
  ExpectOptimum(ResidualModel(1, 8, 512, 512), 2);
}

TEST(Exhaustive, FindsWhatTryingEverythingFindsBesideBranches) {
  ExpectOptimum(TwoBranches(1, 16, 512), 2);
}

TEST(Exhaustive, MovesNothingWithinAnOperator) {
  Setting setting(ResidualModel(1, 8, 512, 512), 1, 2);
  const Model& model = setting.model;
  CostTables& tables = setting.tables;
  const auto start = MapBaseline(kDataParallel, model.graph, &tables);
  ASSERT_TRUE(start.ok()) << start.status();
  const auto all = SearchExhaustively(model, *start, {}, &tables);
  const auto found = SearchExhaustively(model, *start, OneOperator(*start), &tables);
  ASSERT_TRUE(all.ok() && found.ok());
  EXPECT_TRUE(found->proved) << found->ToString();
  EXPECT_LT(found->assignments, all->assignments);
  EXPECT_GE(found->step_us, all->step_us);
  int edges = 0;
  for (const auto& [call, choice] : found->best.choices) {
    const std::vector<TensorRef>& inputs = model.graph.node(call).inputs;
    for (size_t o = 0; o < inputs.size(); ++o) {
      const auto made = found->best.choices.find(inputs[o].node);
      if (made == found->best.choices.end()) continue;
      ++edges;
      EXPECT_EQ(made->second.outputs[inputs[o].output], choice.operands[o]);
    }
  }
  EXPECT_GT(edges, 3);
}

// What is proved then is that nothing in the space is faster.
TEST(Exhaustive, MayBeginOutsideOfTheSpaceOfOperators) {
  Setting setting(ResidualModel(1, 8, 512, 512), 1, 2);
  const Model& model = setting.model;
  CostTables& tables = setting.tables;
  const auto start = BestMapping(model, Deadline(), &tables);
  ASSERT_TRUE(start.ok()) << start.status();
  const auto best = SearchExhaustively(model, *start, {}, &tables);
  ASSERT_TRUE(best.ok()) << best.status();
  const auto found = SearchExhaustively(model, best->best, OneOperator(*start), &tables);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->proved) << found->ToString();
  EXPECT_EQ(found->step_us, best->step_us);
}

TEST(Exhaustive, EndsByItsBudgetWithTheBoundReached) {
  Setting setting(ResidualModel(3, 64, 128, 256), 2, 4);
  const Model& model = setting.model;
  CostTables& tables = setting.tables;
  std::string proof;
  SearchOptions options;
  options.budget = 200;
  const auto found = ExhaustiveSearch(model, options, Deadline(), &tables, &proof);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->stop, StopReason::kBudget);
  EXPECT_EQ(proof.substr(0, 11), "not proved:");
  EXPECT_EQ(tables.options().num_devices, 0);
}

// A second is more than it takes to notice that the time is over, and less than this space takes.
TEST(Exhaustive, EndsAtTheDeadlineWithTheBestSoFar) {
  Setting setting(ResidualModel(3, 64, 128, 256), 2, 4);
  std::string proof;
  SearchOptions options;
  options.budget = int64_t{1} << 40;
  const auto found =
      ExhaustiveSearch(setting.model, options, Deadline::In(0.05), &setting.tables, &proof);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->stop, StopReason::kTimeLimit);
  EXPECT_FALSE(found->exact_mappings);
  EXPECT_EQ(proof.substr(0, 26), "not proved: the time ended");
  EXPECT_FALSE(found->mapped.choices.empty());
}

TEST(Exhaustive, EndsOnCtrlC) {
  Setting setting(ResidualModel(3, 64, 128, 256), 2, 4);
  std::string proof;
  SearchOptions options;
  options.budget = int64_t{1} << 40;
  InterruptSearches();
  const auto found = ExhaustiveSearch(setting.model, options, Deadline(), &setting.tables, &proof);
  ResumeSearches();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->stop, StopReason::kInterrupted);
  EXPECT_EQ(proof.substr(0, 30), "not proved: it was interrupted");
  EXPECT_EQ(proof.find("below 0.0 us"), std::string::npos) << proof;
}

TEST(PrefixBound, NeverAboveTheBestCompletion) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto number = [&](int limit) { return static_cast<int>(random() % limit); };
    PairwiseProblem problem;
    std::vector<CostTable> tables;
    tables.reserve(20);
    for (int n = 0; n < 5; ++n) {
      problem.us.push_back({static_cast<float>(number(20)), static_cast<float>(number(20))});
      for (int u = 0; u < n; ++u) {
        if (number(2) == 0) continue;
        CostTable table(2, 2, 0);
        for (float& us : table.us) us = static_cast<float>(number(30));
        tables.push_back(table);
        problem.edges.push_back({u, n, &tables.back()});
      }
    }
    const PrefixBound bound(problem);
    for (int assignment = 0; assignment < 32; ++assignment) {
      std::vector<int> choices;
      double us = 0, reached = bound.root_us();
      for (int n = 0; n < 5; ++n) choices.push_back((assignment >> n) & 1);
      for (int n = 0; n < 5; ++n) us += problem.us[n][choices[n]];
      for (const auto& edge : problem.edges) us += edge.table->at(choices[edge.a], choices[edge.b]);
      for (int n = 0; n < 5; ++n) {
        EXPECT_LE(reached, us + 1e-3) << "seed " << seed;
        reached += bound.AddedUs(n, choices[n], choices);
      }
      EXPECT_NEAR(reached, us, 1e-3) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace isomer
