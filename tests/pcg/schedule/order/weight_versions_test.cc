// Steps without a flush in between: which weights they read, what overlaps, what is refused.
#include "pcg/schedule/order/weight_versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/symmetry/class_schedule.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

struct Schedules {
  PipelineGraphs graphs;
  Schedule one, all;
};

Schedules Lowered(const StagedMlp& pipeline, int32_t steps, UpdateOptions update = {}) {
  Schedules made{MakePipeline(pipeline), {}, {}};
  update.steps_between_flushes = 1;
  made.one = LoweredPipeline(pipeline, made.graphs.mapped, PipelineOrder::kOneForwardOneBackward,
                             {}, update);
  update.steps_between_flushes = steps;
  made.all = LoweredPipeline(pipeline, made.graphs.mapped, PipelineOrder::kOneForwardOneBackward,
                             {}, update);
  return made;
}

absl::Status Check(const Schedules& schedules) {
  return CheckSteps(schedules.graphs.mapped.graph, schedules.one, schedules.all);
}

absl::StatusCode RefusedWith(const StagedMlp& pipeline, int32_t steps, std::string* message) {
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto schedule = LowerGraph(graphs.mapped.graph, graphs.mapped.views,
                                   {.num_devices = pipeline.devices(),
                                    .loss = "loss",
                                    .update = {.steps_between_flushes = steps}});
  *message = std::string(schedule.status().message());
  return schedule.status().code();
}

class WeightVersions
    : public testing::TestWithParam<std::tuple<StagedMlp, UpdateMethod, OptimizerKind>> {};

TEST_P(WeightVersions, AreThoseOfStepsOneAfterTheOther) {
  const auto& [pipeline, method, optimizer] = GetParam();
  const Schedules schedules = Lowered(pipeline, 4, {.optimizer = optimizer, .method = method});
  ASSERT_EQ(schedules.all.num_steps(), 4);
  EXPECT_EQ(schedules.all.num_moments, 4 * pipeline.micro_batches);
  ASSERT_EQ(CheckSchedule(schedules.graphs.mapped.graph, schedules.one), absl::OkStatus());
  EXPECT_EQ(Check(schedules), absl::OkStatus())
      << schedules.all.ToString(schedules.graphs.mapped.graph);
  const auto count = [](const Schedule& schedule, BufferRole role) {
    return std::count_if(schedule.buffers.begin(), schedule.buffers.end(),
                         [role](const Buffer& buffer) { return buffer.role == role; });
  };
  EXPECT_EQ(count(schedules.all, BufferRole::kParameter),
            2 * count(schedules.one, BufferRole::kParameter));
  EXPECT_EQ(count(schedules.all, BufferRole::kState), count(schedules.one, BufferRole::kState));
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, WeightVersions,
    testing::Combine(
        testing::Values(StagedMlp{}, StagedMlp{.data = 2, .micro_batches = 3},
                        StagedMlp{.stages = 4, .micro_batches = 4},
                        StagedMlp{.micro_batches = 4, .shortcut = true},
                        StagedMlp{.layers = 8, .micro_batches = 8, .chunks = 2},
                        StagedMlp{.layers = 6, .stages = 3, .micro_batches = 8, .chunks = 2}),
        testing::Values(UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                        UpdateMethod::kShardedGradients, UpdateMethod::kShardedWeights,
                        UpdateMethod::kOwner),
        testing::Values(OptimizerKind::kSgd, OptimizerKind::kAdam)),
    [](const auto& info) {
      return std::get<0>(info.param).Name() + "With_" + UpdateMethodName(std::get<1>(info.param)) +
             "_" + OptimizerName(std::get<2>(info.param));
    });

// In low precision there are two versions of weights, and one of masters.
TEST(WeightVersionsTest, HaveOneMasterInLowPrecision) {
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    SCOPED_TRACE(UpdateMethodName(method));
    PipelineGraphs graphs = MakePipeline({.data = 2, .micro_batches = 4});
    Plan plan;
    plan.model = graphs.model;
    plan.graph = graphs.mapped.graph;
    plan.views = graphs.mapped.views;
    plan.num_devices = 4;
    plan.precision = DataType::kBFloat16;
    plan.update = {.optimizer = OptimizerKind::kAdam, .method = method};
    const auto one = LowerPlan(plan);
    plan.update.steps_between_flushes = 4;
    const auto all = LowerPlan(plan);
    ASSERT_TRUE(one.ok() && all.ok()) << all.status();
    EXPECT_EQ(CheckSteps(one->mapped.graph, one->schedule, all->schedule), absl::OkStatus());
    std::set<BufferId> stored, trained;
    for (int32_t step = 0; step < 4; ++step) {
      for (const auto& parameter : all->schedule.parameters) {
        for (BufferId id : parameter.stored) stored.insert(all->schedule.InStep(id, step));
        for (BufferId id : parameter.trained) {
          if (id != kNoBuffer) trained.insert(all->schedule.InStep(id, step));
        }
      }
    }
    std::set<BufferId> stored_once, trained_once;
    for (const auto& parameter : one->schedule.parameters) {
      stored_once.insert(parameter.stored.begin(), parameter.stored.end());
      for (BufferId id : parameter.trained) {
        if (id != kNoBuffer) trained_once.insert(id);
      }
    }
    EXPECT_EQ(stored.size(), 2 * stored_once.size());
    EXPECT_EQ(trained.size(), trained_once.size());
  }
}

// Of stage 0: what it does between its first backward and its last forward, without a break.
TEST(WeightVersionsTest, StagesGoOnWithTheNextStep) {
  const StagedMlp pipeline{.stages = 4, .micro_batches = 4};
  const Schedules schedules = Lowered(pipeline, 4);
  std::vector<std::pair<Phase, int32_t>> slots;
  for (int32_t t : schedules.all.programs[0]) {
    const Task& task = schedules.all.tasks[t];
    if (task.kind != TaskKind::kCompute && task.kind != TaskKind::kComputeGradient) continue;
    const std::pair slot(task.phase, task.moment);
    if (slots.empty() || slots.back() != slot) slots.push_back(slot);
  }
  std::vector<std::pair<Phase, int32_t>> expected;
  for (int32_t m = 0; m < 16 + 4; ++m) {
    if (m >= 4) expected.emplace_back(Phase::kBackward, m - 4);
    if (m < 16) expected.emplace_back(Phase::kForward, m);
  }
  EXPECT_EQ(slots, expected);
}

// Each weight is updated when its step's gradients are there, not behind all steps.
TEST(WeightVersionsTest, UpdatesComeBetweenSteps) {
  const Schedules schedules = Lowered({.stages = 2, .micro_batches = 4}, 4);
  const auto& tasks = schedules.all.tasks;
  const auto is_update_of = [](int32_t step) {
    return [step](const Task& task) { return task.kind == TaskKind::kUpdate && task.step == step; };
  };
  const auto is_last_step = [](const Task& task) {
    return task.step == 3 && task.phase == Phase::kForward && task.moment != kNoMoment &&
           task.kind == TaskKind::kCompute;
  };
  EXPECT_LT(std::find_if(tasks.begin(), tasks.end(), is_update_of(0)),
            std::find_if(tasks.begin(), tasks.end(), is_last_step));
}

TEST(WeightVersionsTest, ScheduleInClassesHasTheSameSteps) {
  PipelineGraphs graphs = MakePipeline({.micro_batches = 8});
  Plan plan;
  plan.model = std::move(graphs.model);
  plan.graph = std::move(graphs.mapped.graph);
  plan.views = std::move(graphs.mapped.views);
  plan.num_devices = 2;
  plan.update.steps_between_flushes = 4;
  const auto all = LowerPlan(plan);
  const auto few = LowerPlanInClasses(plan, {plan.num_devices}, 1, int64_t{1} << 40);
  ASSERT_TRUE(all.ok() && few.ok()) << all.status() << few.status();
  ASSERT_TRUE(few->schedule.shards.empty());
  ASSERT_EQ(few->schedule.tasks.size(), all->schedule.tasks.size());
  for (size_t t = 0; t < all->schedule.tasks.size(); ++t) {
    const Task &a = all->schedule.tasks[t], &b = few->schedule.tasks[t];
    ASSERT_EQ(std::tie(a.kind, a.step, a.moment, a.reads, a.writes, a.deps),
              std::tie(b.kind, b.step, b.moment, b.reads, b.writes, b.deps))
        << t;
  }
}

TEST(WeightVersionsTest, AreRefusedWhereThereIsNothingToDrain) {
  std::string message;
  EXPECT_EQ(RefusedWith({.stages = 1, .data = 2}, 2, &message), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(message, "2 steps between flushes: there is no pipeline that is drained after each");
  EXPECT_EQ(RefusedWith({.micro_batches = 1}, 2, &message), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RefusedWith({}, 3, &message), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(message, "3 steps between flushes: 1 is expected, or an even number of at most 1024");
  // Four stages have four micro-batches under way.
  EXPECT_EQ(RefusedWith({.stages = 4, .micro_batches = 3}, 2, &message),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(message,
            "2 steps between flushes: 4 stages work on more micro-batches at a time than 3, for "
            "which two versions of weights are not enough");
}

// What CheckSteps is for.
class ChangedSteps : public testing::Test {
 protected:
  ChangedSteps() : schedules_(Lowered({.data = 2}, 4)) { EXPECT_EQ(Check(schedules_), Ok()); }

  static absl::Status Ok() { return absl::OkStatus(); }
  Task& First(TaskKind kind, int32_t step) {
    return *std::find_if(schedules_.all.tasks.begin(), schedules_.all.tasks.end(),
                         [&](const Task& task) { return task.kind == kind && task.step == step; });
  }
  // The other version of a weight.
  BufferId Other(BufferId id) const {
    const auto& in_step = schedules_.all.in_step;
    for (size_t i = 0; i < in_step[0].size(); ++i) {
      if (in_step[0][i] == id) return in_step[1][i];
      if (in_step[1][i] == id) return in_step[0][i];
    }
    return kNoBuffer;
  }
  bool IsWeight(BufferId id) const {
    return schedules_.all.buffers[id].role == BufferRole::kParameter;
  }

  Schedules schedules_;
};

TEST_F(ChangedSteps, ThatReadTheNewerWeightsAreFound) {
  for (BufferId& id : First(TaskKind::kCompute, 2).reads) {
    if (IsWeight(id)) id = Other(id);
  }
  EXPECT_FALSE(Check(schedules_).ok());
}

TEST_F(ChangedSteps, ThatUpdateTheOlderWeightsAreFound) {
  Task& update = First(TaskKind::kUpdate, 1);
  ASSERT_TRUE(IsWeight(update.reads[0]));
  update.reads[0] = Other(update.reads[0]);
  EXPECT_FALSE(Check(schedules_).ok());
}

TEST_F(ChangedSteps, ThatLeaveAnUpdateOutAreFound) {
  Task& update = First(TaskKind::kUpdate, 1);
  update.step = 3;
  EXPECT_FALSE(Check(schedules_).ok());
}

TEST_F(ChangedSteps, ThatShareABufferAreFound) {
  schedules_.all.in_step[2] = schedules_.all.in_step[0];
  EXPECT_FALSE(Check(schedules_).ok());
}

TEST_F(ChangedSteps, ThatDoNotWaitForAnUpdateAreFound) {
  for (Task& task : schedules_.all.tasks) {
    if (task.step < 2) continue;
    std::vector<int32_t> deps = task.deps;
    std::erase_if(deps,
                  [&](int32_t dep) { return schedules_.all.tasks[dep].kind == TaskKind::kUpdate; });
    task.deps = deps;
  }
  const absl::Status status = Check(schedules_);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("without waiting"), std::string::npos) << status;
}

// An order in which a later step's task comes first, with deps that say so, runs; it means
// something else.
TEST_F(ChangedSteps, ThatComeInAnotherOrderAreFound) {
  Schedule& all = schedules_.all;
  Schedule& one = schedules_.one;
  // The update of step 1 takes place of that of step 3: same kind, device and boxes.
  Task &a = First(TaskKind::kUpdate, 1), &b = First(TaskKind::kUpdate, 3);
  std::swap(a.reads, b.reads);
  std::swap(a.writes, b.writes);
  std::swap(a.step, b.step);
  EXPECT_FALSE(CheckSteps(schedules_.graphs.mapped.graph, one, all).ok());
}

}  // namespace
}  // namespace isomer
