// Steps with activations in the host's memory: the same bits, however the copies run.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/order/pipeline.h"
#include "runtime/checking/check_executions.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/layers.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

struct Run {
  std::vector<double> losses;
  HostValues weights;
  int64_t arena_bytes = 0, host_bytes = 0;
};

Schedule Lowered(const Model& model, const std::vector<NodeId>& offloaded,
                 const std::vector<NodeId>& recomputed) {
  ScheduleOptions options;
  options.loss = model.loss;
  options.update.optimizer = OptimizerKind::kMomentum;
  options.offloaded = offloaded;
  options.recomputed = recomputed;
  auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(model.graph, *schedule), absl::OkStatus());
  return *std::move(schedule);
}

Run Train(const Model& model, Schedule schedule, ExecutionKind kind, uint64_t seed = 1) {
  Run run;
  const auto backend = MakeCpuBackend();
  auto job = Job::Start(model.graph, std::move(schedule), backend.get(),
                        {.execution = {.kind = kind, .seed = seed}});
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ((*job)->SetParameters(*InitialWeights(model, 1)), absl::OkStatus());
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ((*job)->TrainStep(RandomInputs(model.graph, step), 0.05), absl::OkStatus());
    run.losses.push_back((*job)->Output(model.loss)->data[0]);
  }
  run.weights = *(*job)->Parameters();
  run.arena_bytes = (*job)->memory().arena_bytes[0];
  run.host_bytes = (*job)->memory().host_bytes[0];
  return run;
}

void ExpectEqualBits(const Run& run, const Run& other) {
  EXPECT_EQ(run.losses, other.losses);
  for (const auto& [name, values] : run.weights) {
    EXPECT_EQ(values.data, other.weights.at(name).data) << name;
  }
}

// All that is kept on the host, then the ends of segments alone and the rest computed again.
void ExpectEqualBitsOf(const std::string& spec) {
  auto model = BuildZooModel(spec);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(AttachLoss(&*model, "auto"), absl::OkStatus());
  const Run all = Train(*model, Lowered(*model, {}, {}), ExecutionKind::kThreaded);
  const std::vector<NodeId> nodes = ComputedNodes(model->graph);
  std::vector<NodeId> ends, within;
  for (size_t i = 0; i < nodes.size(); ++i) (i % 4 == 0 ? ends : within).push_back(nodes[i]);
  for (const auto& [offloaded, recomputed] :
       {std::pair(nodes, std::vector<NodeId>()), std::pair(ends, within)}) {
    const Schedule schedule = Lowered(*model, offloaded, recomputed);
    for (ExecutionKind kind :
         {ExecutionKind::kInline, ExecutionKind::kThreaded, ExecutionKind::kAdversarial}) {
      SCOPED_TRACE(static_cast<int>(kind));
      const Run some = Train(*model, schedule, kind);
      ExpectEqualBits(all, some);
      EXPECT_LT(some.arena_bytes, all.arena_bytes);
      // The last values of the forward pass stay.
      constexpr size_t kFew = 8;
      if (offloaded.size() > kFew) {
        EXPECT_GT(some.host_bytes, 0);
      }
    }
  }
}

TEST(OffloadOf, Encoder) { ExpectEqualBitsOf("encoder?layers=4&seq=32"); }
TEST(OffloadOf, DigitsCnn) { ExpectEqualBitsOf("digits_cnn?batch=64"); }

TEST(OffloadOf, PipelinesInAllExecutions) {
  for (int64_t data : {1, 2}) {
    const StagedMlp pipeline{
        .layers = 24, .stages = 2, .data = data, .micro_batches = 4, .shortcut = data == 2};
    SCOPED_TRACE(pipeline.Name());
    const PipelineGraphs graphs = MakePipeline(pipeline);
    ScheduleOptions options = TrainingOptions(pipeline.devices());
    options.offloaded = ComputedNodes(graphs.mapped.graph);
    auto schedule = LowerGraph(graphs.mapped.graph, graphs.mapped.views, options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ASSERT_EQ(CheckSchedule(graphs.mapped.graph, *schedule), absl::OkStatus());
    int offloads = 0;
    for (const Task& task : schedule->tasks) offloads += task.kind == TaskKind::kOffload;
    EXPECT_GT(offloads, 40);
    const auto backend = MakeCpuBackend(/*reference=*/false);
    const auto weights = InitialWeights(graphs.model, 3);
    ASSERT_TRUE(weights.ok());
    const auto check =
        CheckExecutions(graphs.mapped.graph, *schedule, *weights,
                        RandomInputs(graphs.model.graph, 5), 0.1, /*seeds=*/8, backend.get());
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->difference, "");
    StepValues expected;
    ExpectStepAgrees(graphs.model, graphs.mapped.graph, *std::move(schedule), backend.get(),
                     &expected);
  }
}

// An evaluation in between fetches nothing, and leaves nothing behind.
TEST(OffloadOf, StepsAroundAnEvaluation) {
  auto model = BuildZooModel("encoder?layers=3&seq=16");
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(AttachLoss(&*model, "auto"), absl::OkStatus());
  std::vector<std::vector<double>> losses;
  for (const bool offloads : {false, true}) {
    const auto backend = MakeCpuBackend();
    auto job = Job::Start(
        model->graph,
        Lowered(*model, offloads ? ComputedNodes(model->graph) : std::vector<NodeId>(), {}),
        backend.get(), {.execution = {.kind = ExecutionKind::kAdversarial, .seed = 3}});
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_EQ((*job)->SetParameters(*InitialWeights(*model, 1)), absl::OkStatus());
    std::vector<double>& of = losses.emplace_back();
    for (uint64_t step = 0; step < 3; ++step) {
      ASSERT_EQ((*job)->TrainStep(RandomInputs(model->graph, step), 0.05), absl::OkStatus());
      of.push_back((*job)->Output(model->loss)->data[0]);
      ASSERT_EQ((*job)->Evaluate(RandomInputs(model->graph, step + 7)), absl::OkStatus());
      of.push_back((*job)->Output(model->loss)->data[0]);
    }
  }
  EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace isomer
