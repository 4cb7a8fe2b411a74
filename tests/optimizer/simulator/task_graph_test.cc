#include "optimizer/simulator/task_graph.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/proposal/baselines.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/builder.h"
#include "pcg/schedule/lowering/lower.h"
#include "tests/optimizer/direct_mapping.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

struct Case {
  const char* name;
  Model model;
  int64_t nodes, devices;
  bool training = true;
};

// Two products with a GELU, of which one leads to no loss: it is for no gradient and saves nothing.
Model Aside() {
  Model model;
  Graph& g = model.graph;
  const Operator gelu(OpKind::kLinear, {{"activation", 2}});
  TensorRef x = g.AddInput("x", SequentialType({16, 32}));
  for (const char* name : {"w", "aside"}) {
    const TensorRef weight = g.AddWeight(name, SequentialType({32, 32}));
    const TensorRef product = g.AddOp(gelu, {x, weight}).value();
    name[0] == 'w' ? void(x = product) : g.AddOutput("y", product);
  }
  const TensorRef target = g.AddInput("target", SequentialType({16, 32}));
  g.AddOutput("loss", g.AddOp(OpKind::kMeanSquaredError, {x, target}).value());
  model.loss = "loss";
  return model;
}

std::vector<Case> Cases() {
  return {{"ResidualTwoDevices", ResidualModel(2, 8, 16, 32), 1, 2},
          {"ResidualTwoNodes", ResidualModel(3, 8, 16, 32), 2, 2},
          {"ResidualEightDevices", ResidualModel(2, 16, 64, 64), 2, 4},
          {"ResidualInference", ResidualModel(2, 8, 16, 32), 2, 2, false},
          {"ThreeProducts", ThreeProducts(16, 16), 2, 2},
          {"TwoBranches", TwoBranches(2, 16, 16), 1, 4},
          {"RecurrentSharedWeights", Recurrent(4, 8, 16), 2, 2},
          {"ConvolutionsWithHalos", Convolutions(8, 16), 2, 2},
          {"Arrangements", Arrangements(), 1, 4},
          {"SavedAndNot", Aside(), 1, 4}};
}

class TaskGraphs : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    rules_ = ExampleRules(GetParam().model.graph);
    index_.emplace(rules_);
    cost_.emplace(TestMachine(GetParam().nodes, GetParam().devices));
    tables_.emplace(*index_, *cost_, CostOptions{.training = GetParam().training});
    auto mapped = MapBaseline(kDataParallel, GetParam().model.graph, &*tables_);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    auto graph = TaskGraph::Create(GetParam().model, *mapped, &*tables_);
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = std::move(*graph);
  }

  Picoseconds MakespanOfSchedule() {
    const MappedModel mapped = graph_->Mapped();
    const MappedGraph direct = MapDirectly(mapped);
    ScheduleOptions options;
    options.training = GetParam().training;
    options.num_devices = cost_->machine().num_devices();
    options.loss = GetParam().model.loss;
    auto schedule = LowerGraph(direct.graph, direct.views, options);
    if (!schedule.ok()) {
      ADD_FAILURE() << schedule.status();
      return -1;
    }
    return Simulate(*cost_, direct.graph, *schedule).timeline.makespan;
  }

  // Where two uses have one form of a value on different devices, the task graph may count a shard
  // twice.
  bool OneViewPerForm() const {
    std::map<std::pair<TensorRef, std::string>, MachineView> views;
    const MappedModel mapped = graph_->Mapped();
    for (const auto& [id, choice] : mapped.choices) {
      for (size_t o = 0; o < choice.operands.size(); ++o) {
        const Placement& operand = choice.operands[o];
        const auto [it, added] = views.try_emplace(
            {mapped.graph.node(id).inputs[o], operand.type.ToString()}, operand.view);
        if (!added && it->second != operand.view) return false;
      }
    }
    return true;
  }

  RuleSet rules_;
  std::optional<RuleIndex> index_;
  std::optional<CostModel> cost_;
  std::optional<CostTables> tables_;
  std::unique_ptr<TaskGraph> graph_;
};

TEST_P(TaskGraphs, TheirMakespanIsThatOfTheSchedule) {
  ASSERT_EQ(graph_->makespan(), MakespanOfSchedule()) << "data parallel";
  std::mt19937 random(7);
  int compared = 0;
  for (int i = 0; i < 200; ++i) {
    const int node = static_cast<int>(random() % graph_->num_nodes());
    const int choice = static_cast<int>(random() % graph_->num_choices(node));
    ASSERT_TRUE(graph_->SetChoice(node, choice).ok());
    if (!OneViewPerForm()) continue;
    ++compared;
    ASSERT_EQ(graph_->makespan(), MakespanOfSchedule()) << "after change " << i;
  }
  EXPECT_GT(compared, 20);
}

// What moves between two calls has a place of its own in plans, so that others are near to them.
class InterleavedTaskGraphs : public TaskGraphs {};
TEST_P(InterleavedTaskGraphs, BranchesAreInTheOrderOfThePlan) {
  for (const char* baseline : {kDataParallel, kMegatron}) {
    const auto mapped = MapBaseline(baseline, GetParam().model.graph, &*tables_);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    const auto graph =
        TaskGraph::Create(GetParam().model, *mapped, &*tables_, nullptr, TaskGraph::Lists::kChoices,
                          TaskGraph::Order::kInterleaved);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const MappedGraph direct = MapDirectly((*graph)->Mapped());
    ScheduleOptions options;
    options.training = GetParam().training;
    options.num_devices = cost_->machine().num_devices();
    options.loss = GetParam().model.loss;
    const auto schedule = LowerInOrder(direct.graph, direct.views, options, /*interleave=*/true);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ((*graph)->makespan(), Simulate(*cost_, direct.graph, *schedule).timeline.makespan)
        << baseline;
  }
}

TEST_P(TaskGraphs, ChangingAndTakingBackEqualsMakingAnew) {
  std::mt19937 random(11);
  for (int i = 0; i < 120; ++i) {
    const Picoseconds before = graph_->makespan();
    const int node = static_cast<int>(random() % graph_->num_nodes());
    const int choice = static_cast<int>(random() % graph_->num_choices(node));
    ASSERT_TRUE(graph_->SetChoice(node, choice).ok());
    const auto anew = TaskGraph::Create(GetParam().model, graph_->Mapped(), &*tables_);
    ASSERT_TRUE(anew.ok());
    ASSERT_EQ(graph_->makespan(), (*anew)->makespan()) << "change " << i;
    ASSERT_EQ(graph_->timeline().num_tasks(), (*anew)->timeline().num_tasks());
    TaskList tasks;
    graph_->timeline().Assemble(&tasks);
    ASSERT_EQ(RunTimeline(tasks).makespan, graph_->makespan());
    if (i % 3 == 0) {
      graph_->Commit();
    } else {
      graph_->Rollback();
      ASSERT_EQ(graph_->makespan(), before);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TaskGraphs, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Cases, InterleavedTaskGraphs,
                         testing::Values(Case{"TwoBranches", TwoBranches(2, 16, 16), 1, 4}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
