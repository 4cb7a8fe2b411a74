// Pipelines on virtual devices: outputs and gradients are those of the undivided model.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/order/pipeline.h"
#include "runtime/checking/check_executions.h"
#include "runtime/cpu/cpu_backend.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

class PipelineTest : public testing::TestWithParam<StagedMlp> {};

TEST_P(PipelineTest, StepIsThatOfTheUndividedModel) {
  const PipelineGraphs graphs = MakePipeline(GetParam());
  for (PipelineOrder order :
       {PipelineOrder::kOneForwardOneBackward, PipelineOrder::kAllForwardFirst}) {
    Schedule schedule = LoweredPipeline(GetParam(), graphs.mapped, order);
    ASSERT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus())
        << schedule.ToString(graphs.mapped.graph);
    const auto backend = MakeCpuBackend(/*reference=*/false);
    StepValues expected;
    ExpectStepAgrees(graphs.model, graphs.mapped.graph, std::move(schedule), backend.get(),
                     &expected);
  }
}

// What is not kept, and what is held in parts, change no number.
TEST_P(PipelineTest, StepWithLessMemoryIsThatOfTheUndividedModel) {
  const PipelineGraphs graphs = MakePipeline(GetParam());
  for (UpdateMethod method : {UpdateMethod::kShardedGradients, UpdateMethod::kShardedWeights}) {
    Schedule schedule =
        LoweredPipeline(GetParam(), graphs.mapped, PipelineOrder::kOneForwardOneBackward,
                        ComputedNodes(graphs.mapped.graph), {.method = method});
    ASSERT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus())
        << schedule.ToString(graphs.mapped.graph);
    const auto backend = MakeCpuBackend(/*reference=*/false);
    StepValues expected;
    ExpectStepAgrees(graphs.model, graphs.mapped.graph, std::move(schedule), backend.get(),
                     &expected);
  }
}

Schedule InHalves(const StagedMlp& pipeline, const MappedGraph& mapped, int32_t in_flight,
                  const UpdateOptions& update, const std::vector<NodeId>& recomputed = {}) {
  auto schedule = LowerGraph(mapped.graph, mapped.views,
                             {.num_devices = pipeline.devices(),
                              .loss = "loss",
                              .update = update,
                              .zero_bubble = {.most_in_flight = in_flight},
                              .keep_gradients = true,
                              .recomputed = recomputed});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

// Gradients of weights later than those of data: the same numbers.
TEST_P(PipelineTest, StepInTwoHalvesIsThatOfTheUndividedModel) {
  const StagedMlp& pipeline = GetParam();
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto backend = MakeCpuBackend(/*reference=*/false);
  const auto one = static_cast<int32_t>(pipeline.chunks), some = 2 * one;
  for (int32_t in_flight : {one, some, static_cast<int32_t>(2 * pipeline.stages) * one}) {
    for (bool less_memory : {false, true}) {
      Schedule schedule = InHalves(
          pipeline, graphs.mapped, in_flight,
          {.method = less_memory ? UpdateMethod::kShardedGradients : UpdateMethod::kAllReduce},
          less_memory ? ComputedNodes(graphs.mapped.graph) : std::vector<NodeId>());
      ASSERT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus())
          << schedule.ToString(graphs.mapped.graph);
      StepValues expected;
      ExpectStepAgrees(graphs.model, graphs.mapped.graph, std::move(schedule), backend.get(),
                       &expected);
    }
  }
}

// To the bit, however queues run.
TEST(ZeroBubblePipeline, AllExecutionsGiveTheSameBits) {
  for (int64_t stages : {2, 3}) {
    for (int64_t data : {1, 2}) {
      const StagedMlp pipeline{.layers = 2 * stages,
                               .stages = stages,
                               .data = data,
                               .micro_batches = 2 * stages,
                               .shortcut = data == 2};
      const PipelineGraphs graphs = MakePipeline(pipeline);
      const auto backend = MakeCpuBackend(/*reference=*/false);
      const auto weights = InitialWeights(graphs.model, 3);
      ASSERT_TRUE(weights.ok());
      for (int32_t in_flight : {stages, 2 * stages - 1}) {
        SCOPED_TRACE(absl::StrCat(pipeline.Name(), ", ", in_flight, " in flight"));
        const Schedule schedule =
            InHalves(pipeline, graphs.mapped, in_flight,
                     {.optimizer = OptimizerKind::kAdam, .method = UpdateMethod::kSharded});
        const auto check =
            CheckExecutions(graphs.mapped.graph, schedule, *weights,
                            RandomInputs(graphs.model.graph, 5), 0.1, /*seeds=*/5, backend.get());
        ASSERT_TRUE(check.ok()) << check.status();
        EXPECT_EQ(check->difference, "");
        EXPECT_GT(check->tensors, static_cast<int64_t>(weights->size()));
      }
    }
  }
}

// The way through the chunks leads back as it came.
TEST(ZeroBubblePipeline, AVGivesTheSameBitsAndThoseOfTheUndividedModel) {
  for (int64_t stages : {2, 3}) {
    for (int64_t data : {1, 2}) {
      const StagedMlp pipeline{.layers = 4 * stages,
                               .stages = stages,
                               .data = data,
                               .micro_batches = 2 * stages,
                               .chunks = 2,
                               .folds = true,
                               .tied = data == 2};
      SCOPED_TRACE(pipeline.Name());
      const PipelineGraphs graphs = MakePipeline(pipeline);
      Schedule schedule = InHalves(pipeline, graphs.mapped, static_cast<int32_t>(2 * stages), {});
      ASSERT_EQ(CheckSchedule(graphs.mapped.graph, schedule), absl::OkStatus());
      EXPECT_TRUE(StagesOf(schedule).folds);
      const auto backend = MakeCpuBackend(/*reference=*/false);
      const auto weights = InitialWeights(graphs.model, 3);
      ASSERT_TRUE(weights.ok());
      const auto check =
          CheckExecutions(graphs.mapped.graph, schedule, *weights,
                          RandomInputs(graphs.model.graph, 5), 0.1, /*seeds=*/5, backend.get());
      ASSERT_TRUE(check.ok()) << check.status();
      EXPECT_EQ(check->difference, "");
      StepValues expected;
      ExpectStepAgrees(graphs.model, graphs.mapped.graph, std::move(schedule), backend.get(),
                       &expected);
    }
  }
}

std::vector<StagedMlp> Pipelines() {
  std::vector<StagedMlp> pipelines;
  for (int64_t stages : {1, 2, 4}) {
    for (int64_t data : {1, 2}) {
      for (int64_t micro_batches : {1, 2, 3, 4, 8}) {
        const bool shortcut = (stages + data + micro_batches) % 2 == 0;
        pipelines.push_back({4, stages, data, micro_batches, shortcut});
      }
    }
  }
  for (int64_t data : {1, 2}) {
    pipelines.push_back({.layers = 8,
                         .stages = 2,
                         .data = data,
                         .micro_batches = 4,
                         .shortcut = data == 2,
                         .chunks = 2});
  }
  for (int64_t stages : {2, 3, 4}) {
    for (int64_t chunks : {2, 3}) {
      for (int64_t micro_batches = 1; micro_batches <= 2 * stages + 1; ++micro_batches) {
        if (stages == 2 && chunks == 2 && micro_batches == 4) continue;  // above
        pipelines.push_back({.layers = stages * chunks,
                             .stages = stages,
                             .micro_batches = micro_batches,
                             .shortcut = (micro_batches + chunks) % 2 == 0,
                             .batch = 2 * micro_batches,
                             .chunks = chunks});
      }
    }
  }
  return pipelines;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, PipelineTest, testing::ValuesIn(Pipelines()),
                         [](const auto& info) { return info.param.Name(); });

// Views where axes of `moments` pieces are micro-batches and others go over devices; nodes from
// `second_stage` on are on devices from `start` on.
std::vector<MachineView> ViewsWith(const Graph& graph, int64_t moments, int second_stage,
                                   int64_t start) {
  std::vector<MachineView> views;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const TensorType& type = graph.node(id).outputs[0];
    std::vector<int64_t> extents;
    for (const Dim& dim : type.dims) extents.push_back(dim.degree);
    extents.insert(extents.end(), {type.copies, type.partials});
    MachineView view{id >= second_stage ? start : 0, std::vector<int64_t>(extents.size(), 0),
                     std::vector<int64_t>(extents.size(), 1)};
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] == moments) {
        view.moments[axis] = moments;
      } else if (extents[axis] > 1) {
        view.strides[axis] = 1;
      }
    }
    views.push_back(std::move(view));
  }
  return views;
}

void ExpectAgrees(const std::string& sequential, const std::string& parallel, int64_t num_devices,
                  int64_t moments, int second_stage, std::map<TaskKind, int> communications) {
  Model model;
  model.graph = Parsed(sequential);
  model.loss = "loss";
  const Graph graph = Parsed(parallel);
  auto schedule = LowerGraph(graph, ViewsWith(graph, moments, second_stage, num_devices / 2),
                             {.num_devices = num_devices, .loss = "loss", .keep_gradients = true});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  std::map<TaskKind, int> found;
  for (const Task& task : schedule->tasks) {
    if (IsCommunication(task.kind)) ++found[task.kind];
  }
  EXPECT_EQ(found, communications) << schedule->ToString(graph);
  const auto backend = MakeCpuBackend(/*reference=*/false);
  StepValues expected;
  ExpectStepAgrees(model, graph, *std::move(schedule), backend.get(), &expected);
}

// Columns, then rows, over the two devices of each of two stages; four micro-batches.
TEST(HybridPipeline, TensorParallelStagesAgree) {
  ExpectAgrees(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = weight "w3" : f32[4,16]
%5 = weight "w4" : f32[16,4]
%6 = matmul(%0, %1) : f32[8,16]
%7 = relu(%6) : f32[8,16]
%8 = matmul(%7, %2) : f32[8,4]
%9 = matmul(%8, %4) : f32[8,16]
%10 = relu(%9) : f32[8,16]
%11 = matmul(%10, %5) : f32[8,4]
%12 = cross_entropy(%11, %3) : f32[]
output "loss" = %12
)",
               R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%4 = replicate(%3) {degree=2} : f32[8:4,4] c2
%5 = partition(%1) {axis=1, degree=2} : f32[4,16:2]
%6 = replicate(%5) {degree=4} : f32[4,16:2] c4
%7 = partition(%2) {axis=0, degree=2} : f32[16:2,4]
%8 = replicate(%7) {degree=4} : f32[16:2,4] c4
%9 = matmul(%4, %6) : f32[8:4,16:2]
%10 = relu(%9) : f32[8:4,16:2]
%11 = matmul(%10, %8) : f32[8:4,4] p2
%12 = reduce(%11) {degree=2} : f32[8:4,4]
%13 = replicate(%12) {degree=2} : f32[8:4,4] c2
%14 = input "labels" : i64[8]
%15 = weight "w3" : f32[4,16]
%16 = weight "w4" : f32[16,4]
%17 = partition(%14) {axis=0, degree=4} : i64[8:4]
%18 = replicate(%17) {degree=2} : i64[8:4] c2
%19 = partition(%15) {axis=1, degree=2} : f32[4,16:2]
%20 = replicate(%19) {degree=4} : f32[4,16:2] c4
%21 = partition(%16) {axis=0, degree=2} : f32[16:2,4]
%22 = replicate(%21) {degree=4} : f32[16:2,4] c4
%23 = matmul(%13, %20) : f32[8:4,16:2]
%24 = relu(%23) : f32[8:4,16:2]
%25 = matmul(%24, %22) : f32[8:4,4] p2
%26 = reduce(%25) {degree=2} : f32[8:4,4]
%27 = replicate(%26) {degree=2} : f32[8:4,4] c2
%28 = cross_entropy(%27, %18) : f32[] c2 p4
%29 = reduce(%28) {degree=4} : f32[] c2
output "loss" = %29
)",
               4, 4, /*second_stage=*/14,
               // Each of the two sums, of each micro-batch, and its gradient; shards to the second
               // stage and back.
               {{TaskKind::kAllReduce, 16}, {TaskKind::kSendReceive, 16}});
}

// Every micro-batch needs the mean of all.
TEST(MixingPipeline, MeansOverTheBatchAgree) {
  ExpectAgrees(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,4]
%2 = matmul(%0, %1) : f32[8,4]
%3 = reduce_sum(%2) {axes=[0], keepdims=1} : f32[1,4]
%4 = sub(%2, %3) : f32[8,4]
%5 = mse(%4, %0) : f32[]
output "loss" = %5
)",
               R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,4]
%2 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%3 = replicate(%1) {degree=4} : f32[4,4] c4
%4 = matmul(%2, %3) : f32[8:4,4]
%5 = reduce_sum(%4) {axes=[0], keepdims=1} : f32[1,4] p4
%6 = reduce(%5) {degree=4} : f32[1,4]
%7 = replicate(%6) {degree=4} : f32[1,4] c4
%8 = sub(%4, %7) : f32[8:4,4]
%9 = mse(%8, %2) : f32[] p4
%10 = reduce(%9) {degree=4} : f32[]
output "loss" = %10
)",
               1, 4, /*second_stage=*/11, {});
}

}  // namespace
}  // namespace isomer
