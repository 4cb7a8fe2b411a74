// A few micro-batches, repeated, are the schedule of all of them: task by task, buffer by buffer.
#include "pcg/schedule/symmetry/micro_batch_classes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/symmetry/class_schedule.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

constexpr int64_t kLimit = int64_t{1} << 40;

Plan PlanOf(const StagedMlp& pipeline) {
  PipelineGraphs graphs = MakePipeline(pipeline);
  Plan plan;
  plan.model = std::move(graphs.model);
  plan.graph = std::move(graphs.mapped.graph);
  plan.views = std::move(graphs.mapped.views);
  plan.num_devices = pipeline.devices();
  return plan;
}

void ExpectEqualSchedules(const Plan& plan) {
  const auto all = LowerPlan(plan);
  const auto few = LowerPlanInClasses(plan, {plan.num_devices}, 1, kLimit);
  ASSERT_TRUE(all.ok() && few.ok()) << all.status() << few.status();
  ASSERT_TRUE(few->schedule.shards.empty());  // It was not lowered as a whole.
  const Schedule &a = all->schedule, &b = few->schedule;
  EXPECT_EQ(a.num_moments, b.num_moments);
  ASSERT_EQ(a.tasks.size(), b.tasks.size());
  for (size_t t = 0; t < a.tasks.size(); ++t) {
    const Task &x = a.tasks[t], &y = b.tasks[t];
    ASSERT_EQ(x.kind, y.kind) << t;
    ASSERT_EQ(x.phase, y.phase) << t;
    ASSERT_EQ(x.node, y.node) << t;
    ASSERT_EQ(x.moment, y.moment) << t;
    ASSERT_EQ(x.devices, y.devices) << t;
    ASSERT_EQ(x.segments, y.segments) << t;
    ASSERT_EQ(x.reads, y.reads) << t;
    ASSERT_EQ(x.writes, y.writes) << t;
    ASSERT_EQ(x.transfers, y.transfers) << t;
    ASSERT_EQ(x.flops, y.flops) << t;
    ASSERT_EQ(x.bytes, y.bytes) << t;
    ASSERT_EQ(x.deps, y.deps) << t;
  }
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (size_t id = 0; id < a.buffers.size(); ++id) {
    const Buffer &x = a.buffers[id], &y = b.buffers[id];
    ASSERT_EQ(x.role, y.role) << id;
    ASSERT_EQ(x.tensor, y.tensor) << id;
    ASSERT_EQ(x.device, y.device) << id;
    ASSERT_EQ(x.moment, y.moment) << id;
    ASSERT_EQ(x.box, y.box) << id << ": " << x.box.ToString() << " and " << y.box.ToString();
  }
  EXPECT_EQ(a.programs, b.programs);
  EXPECT_EQ(PlanMemory(a).arena_bytes, PlanMemory(b).arena_bytes);
}

class MicroBatchClasses : public testing::TestWithParam<StagedMlp> {};

TEST_P(MicroBatchClasses, AreTheScheduleOfAll) {
  Plan plan = PlanOf(GetParam());
  for (const UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kOwner,
        UpdateMethod::kShardedGradients, UpdateMethod::kShardedWeights}) {
    for (const DataType precision : {DataType::kFloat32, DataType::kBFloat16}) {
      SCOPED_TRACE(std::string(UpdateMethodName(method)) + " " + DataTypeName(precision).data());
      plan.update.method = method;
      plan.precision = precision;
      ExpectEqualSchedules(plan);
    }
  }
}

TEST_P(MicroBatchClasses, AreTheScheduleOfAllWithRecomputation) {
  Plan plan = PlanOf(GetParam());
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    if (plan.graph.node(id).op.kind() == OpKind::kTanh) plan.recomputed.push_back({id});
  }
  ExpectEqualSchedules(plan);
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, MicroBatchClasses,
    testing::Values(StagedMlp{.micro_batches = 8}, StagedMlp{.data = 2, .micro_batches = 12},
                    StagedMlp{.layers = 6, .stages = 3, .micro_batches = 16, .batch = 64},
                    StagedMlp{.micro_batches = 8, .shortcut = true},
                    StagedMlp{.layers = 8, .micro_batches = 8, .chunks = 2},
                    // Four stand for 24, which no four divide by stages.
                    StagedMlp{
                        .layers = 6, .stages = 3, .micro_batches = 24, .batch = 24, .chunks = 2},
                    StagedMlp{.stages = 1, .data = 2, .micro_batches = 8},
                    // Devices sum gradients of all micro-batches at once.
                    StagedMlp{.data = 2, .micro_batches = 8, .whole_logits = true}),
    [](const auto& info) { return info.param.Name(); });

TEST(MicroBatchClasses, AreFewWhereADivisorIsEnough) {
  EXPECT_EQ(RepresentedMoments(1), 1);
  EXPECT_EQ(RepresentedMoments(6), 6);
  EXPECT_EQ(RepresentedMoments(8), 4);
  EXPECT_EQ(RepresentedMoments(10), 5);
  EXPECT_EQ(RepresentedMoments(13), 13);
  EXPECT_EQ(RepresentedMoments(64), 4);
}

}  // namespace
}  // namespace isomer
