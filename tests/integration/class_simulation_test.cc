// Simulating one device of each class says what simulating all of them does.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/load.h"
#include "models/loss.h"
#include "optimizer/cost/memory_cost.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/report/explanation.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/bucket_choice.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/substitution/search.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/symmetry/class_schedule.h"
#include "pcg/support/data_path.h"

namespace isomer {
namespace {

struct Scenario {
  const char* model;
  const char* machine;
  int64_t nodes, batch;
  const char* plan;  // a baseline, or "search"
  UpdateMethod update = UpdateMethod::kAllReduce;
  int64_t stages = 1, micro_batches = 1;
  DataType precision = DataType::kFloat32;

  std::string Name() const {
    std::string name = std::string(model).substr(0, std::string(model).find('?')) + "_" + machine +
                       "_" + std::to_string(nodes) + "_" + plan + "_" + UpdateMethodName(update);
    if (precision != DataType::kFloat32) name += "_" + std::string(DataTypeName(precision));
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ':' || c == '+'; }, '_');
    return name;
  }
};

const RuleSet& Rules() {
  static const RuleSet* rules = new RuleSet(LoadRules(DataPath("rules/default.rules")).value());
  return *rules;
}

absl::StatusOr<Plan> PlanOf(const Scenario& s, const Model& model, const CostModel& cost) {
  const RuleIndex index(Rules());
  if (std::string(s.plan) == kPipeline) {
    CostTables tables(index, cost, {.training = true});
    const ParallelConfig config{.devices = cost.machine().num_devices(),
                                .stages = s.stages,
                                .micro_batches = s.micro_batches};
    GridGraph graphs(model);
    absl::StatusOr<GridPlan> made = PlanOfConfig(&graphs, /*training=*/true, config, &tables);
    if (!made.ok()) return made.status();
    return std::move(made->plan);
  }
  if (std::string(s.plan) == "search") {
    OptimizeOptions options;
    options.search.budget = 20;
    absl::StatusOr<OptimizeResult> result = Optimize(model, index, cost, options);
    if (!result.ok()) return result.status();
    return std::move(result->plan);
  }
  CostTables tables(index, cost, {.training = true});
  absl::StatusOr<MappedModel> mapped = MapBaseline(s.plan, model.graph, &tables);
  if (!mapped.ok()) return mapped.status();
  return DerivePlan(model, *mapped, /*training=*/true, &tables);
}

constexpr char kMixture[] =
    "gshard_moe?experts=256&layers=4&hidden=128&intermediate=1024&heads=8&head_size=16&"
    "vocabulary=1024&seq=256";

// Of the zoo, with a loss.
Model Trained(const std::string& name, int64_t batch) {
  LoadOptions load;
  load.batch_size = batch;
  Model model = LoadAnyModel("zoo:" + name, load).value();
  EXPECT_EQ(AttachLoss(&model, "auto"), absl::OkStatus());
  return model;
}

class ClassSimulation : public testing::TestWithParam<Scenario> {
 protected:
  static absl::StatusOr<Plan> PlanFor(const CostModel& cost) {
    const Scenario& s = GetParam();
    absl::StatusOr<Plan> plan = PlanOf(s, Trained(s.model, s.batch), cost);
    if (!plan.ok()) return plan;
    plan->precision = s.precision;
    plan->update.method = s.update;
    return plan;
  }
};

TEST_P(ClassSimulation, IsThatOfAllDevices) {
  const CostModel cost(LoadMachine(GetParam().machine, GetParam().nodes).value());
  absl::StatusOr<Plan> plan = PlanFor(cost);
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->update.optimizer = OptimizerKind::kAdam;
  const auto all = LowerPlan(*plan);
  const auto few = LowerForSimulation(cost.machine(), *plan, 1);
  ASSERT_TRUE(all.ok() && few.ok()) << all.status() << few.status();
  ASSERT_LT(few->schedule.num_represented(), plan->num_devices);
  const Simulation expected = Simulate(cost, all->mapped.graph, all->schedule);
  const Simulation simulated = Simulate(cost, few->mapped.graph, few->schedule);
  EXPECT_NEAR(simulated.step_us, expected.step_us, 1e-9 * expected.step_us);
  EXPECT_EQ(simulated.peak_bytes, expected.peak_bytes);
  EXPECT_EQ(simulated.memory.categories, expected.memory.categories);
  const auto arena = [](const LoweredPlan& lowered) {
    const MemoryPlan memory = PlanMemory(lowered.schedule);
    return *std::max_element(memory.arena_bytes.begin(), memory.arena_bytes.end());
  };
  EXPECT_EQ(arena(*few), arena(*all));

  // Every device that is there is as busy, and so is every link between two of them.
  const Explanation why_all = Explain(cost, all->mapped.graph, all->schedule, expected);
  const Explanation why = Explain(cost, few->mapped.graph, few->schedule, simulated);
  for (int32_t d : why.devices) {
    EXPECT_NEAR(why.device_compute_us[d], why_all.device_compute_us[d],
                1e-9 * why_all.device_compute_us[d]);
    EXPECT_NEAR(why.device_communication_us[d], why_all.device_communication_us[d],
                1e-9 * why_all.device_communication_us[d]);
  }
  for (size_t link = 0; link < why.link_bytes.size(); ++link) {
    if (why.link_bytes[link] == 0) continue;
    EXPECT_NEAR(why.link_bytes[link], why_all.link_bytes[link], 1e-9 * why_all.link_bytes[link])
        << cost.machine().LinkName(static_cast<LinkId>(link));
  }
}

// By one device of each class of a node's, too.
TEST_P(ClassSimulation, OfPartsOfNodesIsNear) {
  const CostModel cost(LoadMachine(GetParam().machine, GetParam().nodes).value());
  absl::StatusOr<Plan> plan = PlanFor(cost);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const int64_t node = cost.machine().devices_per_node(), alike = cost.machine().devices_alike();
  const auto all = LowerPlan(*plan);
  const auto few = LowerPlanInClasses(*plan, {node, 1}, /*most_shards=*/0, int64_t{1} << 40,
                                      int64_t{1} << 40, alike == plan->num_devices ? 0 : alike);
  ASSERT_TRUE(all.ok() && few.ok()) << all.status() << few.status();
  const double expected_us = Simulate(cost, all->mapped.graph, all->schedule).step_us;
  EXPECT_NEAR(Simulate(cost, few->mapped.graph, few->schedule).step_us, expected_us,
              0.005 * expected_us);
}

// The most messages that a device gets in the moves of each node, forward or backward.
std::map<std::pair<int, Phase>, int64_t> MostReceived(const Schedule& schedule) {
  std::map<std::pair<int, Phase>, int64_t> most;
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kSendReceive) continue;
    std::map<int32_t, int64_t> received;  // by device
    for (size_t i = 0; i < task.transfers.size(); ++i) {
      const auto [read, write] = task.transfers[i];
      const int32_t to = schedule.buffers[task.writes[write]].device;
      if (schedule.buffers[task.reads[read]].device == to) continue;
      received[to] += schedule.CountOf(task, i).received;
    }
    int64_t& of_node = most[{task.node.value, task.phase}];
    for (const auto& [device, count] : received) of_node = std::max(of_node, count);
  }
  return most;
}

absl::StatusOr<Plan> PublishedPlan(const std::string& name, const CostModel& cost) {
  const Model model = Trained(name, 64);
  const RuleIndex index(Rules());
  CostTables tables(index, cost, {.training = true});
  const absl::StatusOr<MappedModel> mapped = MapBaseline(kPublished, model.graph, &tables);
  if (!mapped.ok()) return mapped.status();
  return DerivePlan(model, *mapped, /*training=*/true, &tables);
}

// Devices of a node share out the samples of the experts there: whom a device hears from depends on
// its own place in the node, which is no reason to hear from as many as there are nodes.
TEST(ClassSimulationOfFewExperts, CountsMessagesThatDependOnTheReceiver) {
  const CostModel cost(LoadMachine("dgx_h100", 8).value());
  const absl::StatusOr<Plan> plan = PublishedPlan(
      "gshard_moe?experts=8&layers=4&hidden=64&intermediate=256&heads=4&head_size=16&"
      "vocabulary=512&seq=128",
      cost);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto all = LowerPlan(*plan);
  const auto few = LowerPlanInClasses(*plan, {1}, 1'000'000, 1'000'000);
  ASSERT_TRUE(all.ok() && few.ok()) << all.status() << few.status();
  ASSERT_LT(few->schedule.num_represented(), 8);
  const auto expected = MostReceived(all->schedule);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(MostReceived(few->schedule), expected);
}

// Dense layers' gradients are summed by all devices, experts' by few of them, and one device stands
// for both: they are not packed together, but share its time.
TEST(ClassSimulationOfFewExperts, EndsBucketsOfEachGroup) {
  const CostModel cost(LoadMachine("dgx_h100", 2).value());
  absl::StatusOr<Plan> plan = PublishedPlan(
      "gshard_moe?experts=8&layers=4&hidden=512&intermediate=512&heads=4&head_size=128&"
      "vocabulary=512&seq=128",
      cost);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto ends = BestBucketEnds(cost, *plan);
  ASSERT_TRUE(ends.ok()) << ends.status();
  const auto by_size = PredictPlan(cost, &*plan);
  ASSERT_TRUE(by_size.ok()) << by_size.status();
  std::set<double> shares;
  for (const std::set<std::string>& choice : ends->behind) {
    plan->update.bucket_ends = choice;
    const auto ended = PredictPlan(cost, &*plan);
    ASSERT_TRUE(ended.ok()) << ended.status();
    shares.insert(ended->step_us / by_size->step_us);
  }
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_LT(*shares.begin(), 0.93);
  EXPECT_LT(*shares.rbegin(), 0.97);  // each group as if it was alone
}

// A search compares by fewer devices of a node, and predicts what it returns as it would be alone.
TEST_P(ClassSimulation, InASearchIsNear) {
  const CostModel cost(LoadMachine(GetParam().machine, GetParam().nodes).value());
  absl::StatusOr<Plan> plan = PlanFor(cost);
  ASSERT_TRUE(plan.ok()) << plan.status();
  Plan compared = *plan;
  const auto simulation = PredictPlan(cost, &*plan);
  const auto in_search = PredictPlanInSearch(cost, &compared);
  ASSERT_TRUE(simulation.ok() && in_search.ok()) << simulation.status() << in_search.status();
  EXPECT_EQ(in_search->devices < simulation->devices, SearchLacksDevices(cost, *plan));
  EXPECT_NEAR(in_search->step_us, simulation->step_us, 0.005 * simulation->step_us);
  EXPECT_NEAR(static_cast<double>(in_search->peak_bytes),
              static_cast<double>(simulation->peak_bytes),
              0.005 * static_cast<double>(simulation->peak_bytes));
  const auto closely = PredictPlanClosely(cost, &compared);
  ASSERT_TRUE(closely.ok()) << closely.status();
  EXPECT_EQ(compared.predicted_step_us, plan->predicted_step_us);
  EXPECT_EQ(compared.predicted_peak_bytes, plan->predicted_peak_bytes);
}

// Owners of weights are unlike each other: on few devices all of them are there for all who ask.
TEST(ClassSimulationOfOwners, OnFewDevicesIsThatOfAll) {
  const Model model = Trained("alexnet", 64);
  const CostModel cost(LoadMachine("dgx_h100", 4, 4).value());
  const RuleIndex index(Rules());
  CostTables tables(index, cost, {.training = true});
  const auto mapped = MapBaseline(kDataParallel, model.graph, &tables);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  auto plan = DerivePlan(model, *mapped, /*training=*/true, &tables);
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->update.method = UpdateMethod::kOwner;
  EXPECT_FALSE(SearchLacksDevices(cost, *plan));
  const auto in_search = PredictPlanInSearch(cost, &*plan);
  ASSERT_TRUE(in_search.ok()) << in_search.status();
  EXPECT_EQ(in_search->devices, 16);
  const double step_us = plan->predicted_step_us;
  const auto closely = PredictPlanClosely(cost, &*plan);
  ASSERT_TRUE(closely.ok()) << closely.status();
  EXPECT_FALSE(closely->has_value());
  EXPECT_EQ(plan->predicted_step_us, step_us);
}

// What the search makes of a mixture cuts nodes: without all of their devices no fewer than all
// would do, and with some of them they would not meet at the links.
TEST(ClassSimulationOfSearches, HasAllDevicesOfANodeWhereItCan) {
  const Model model = Trained(kMixture, 64);
  const CostModel cost(LoadMachine("dgx_h100", 4).value());
  const RuleIndex index(Rules());
  for (double sync_weight : {1.0, 0.25, 0.0}) {
    CostTables tables(index, cost, {.training = true, .sync_weight = sync_weight});
    SearchOptions options;
    options.budget = 0;
    const auto found = HierarchicalSearch(model.graph, options, &tables);
    ASSERT_TRUE(found.ok()) << found.status();
    auto plan = DerivePlan(model, found->mapped, /*training=*/true, &tables);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto predicted = PredictPlan(cost, &*plan);
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    const auto all = LowerPlan(*plan);
    ASSERT_TRUE(all.ok()) << all.status();
    const Simulation expected = Simulate(cost, all->mapped.graph, all->schedule);
    EXPECT_NEAR(predicted->step_us, expected.step_us, 1e-9 * expected.step_us) << sync_weight;
  }
}

// Devices of a node that two axes share out are alike, as those are that one axis does: where nodes
// are too much, one device of each stage stands for all.
TEST(ClassSimulationOfPartsOfNodes, KeepsOneDeviceOfEachStage) {
  const Model model = Trained("gpt?layers=2", 32);
  const CostModel cost(LoadMachine("dgx_h100", 4).value());
  const RuleIndex index(Rules());
  CostTables tables(index, cost, {.training = true});
  GridGraph graphs(model);
  const ParallelConfig config{
      .devices = 32, .stages = 2, .micro_batches = 4, .degrees = {.tensor = 2, .context = 2}};
  const absl::StatusOr<GridPlan> made = PlanOfConfig(&graphs, /*training=*/true, config, &tables);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto step_us = [&](int64_t most_shards, int64_t devices) {
    const auto lowered = LowerPlanInClasses(made->plan, {8, 1}, most_shards, 10'000'000);
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(lowered->schedule.num_represented(), devices);
    return Simulate(cost, lowered->mapped.graph, lowered->schedule).step_us;
  };
  const double of_nodes = step_us(10'000'000, 16), of_one = step_us(1, 2);
  EXPECT_NEAR(of_one, of_nodes, 0.02 * of_nodes);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ClassSimulation,
    testing::Values(
        Scenario{"alexnet", "dgx_h100", 4, 64, kDataParallel},
        Scenario{"dlrm", "dgx_h100", 8, 64, kDataParallel, UpdateMethod::kSharded},
        // Two nodes are no fewer than two that stand for all, but do the same.
        Scenario{"dlrm", "dgx_h100", 2, 64, kDataParallel, UpdateMethod::kSharded},
        Scenario{kMixture, "dgx_h100", 2, 64, kPublished},
        Scenario{"candle_uno", "summit", 4, 24, kDataParallel, UpdateMethod::kSharded},
        Scenario{"vit", "summit", 4, 24, kDataParallel, UpdateMethod::kShardedWeights, 1, 1,
                 DataType::kFloat16},
        Scenario{"gpt", "dgx_h100", 4, 8, kMegatron, UpdateMethod::kAllReduce, 1, 1,
                 DataType::kBFloat16},
        Scenario{"gpt?layers=2", "dgx_h100", 3, 24, kMegatron},
        Scenario{"gpt?layers=2", "k80_cluster", 4, 16, kMegatron},
        Scenario{"t5?layers=2", "dgx_h100", 4, 32, kMegatron},
        Scenario{"squeezenet", "dgx_h100", 4, 256, "search"},
        Scenario{"squeezenet", "dgx_h100", 2, 64, "search", UpdateMethod::kShardedWeights},
        Scenario{"encoder?hidden=24&heads=2&intermediate=72", "dgx_h100", 4, 32, kDataParallel,
                 UpdateMethod::kShardedWeights},
        Scenario{kMixture, "dgx_h100", 4, 64, kPublished},
        Scenario{"candle_uno", "dgx_h100", 8, 128, kPipeline, UpdateMethod::kAllReduce, 2, 4},
        Scenario{"alexnet", "dgx_h100:4+dgx_a100:4", 0, 64, kDataParallel},
        Scenario{"candle_uno", "dgx_h100:4+dgx_a100:4", 0, 128, kPipeline, UpdateMethod::kSharded,
                 2, 4}),
    [](const auto& info) { return info.param.Name(); });

}  // namespace
}  // namespace isomer
