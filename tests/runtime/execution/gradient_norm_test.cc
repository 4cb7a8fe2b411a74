// The global norm of gradients, and clipping by it, whatever the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/check_executions.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

using testing::HasSubstr;

double NormOf(const HostValues& gradients) {
  double sum = 0;
  for (const auto& [name, gradient] : gradients) {
    for (double g : gradient.data) sum += g * g;
  }
  return std::sqrt(sum);
}

std::vector<UpdateMethod> EveryMethod() {
  std::vector<UpdateMethod> methods;
  for (const UpdateMethodTraits& traits : AllUpdateMethods()) methods.push_back(traits.method);
  return methods;
}

// Steps of `schedule`, with gradients clipped to `clip_norm`, against SGD in double on the model as
// it is: losses, norms and weights.
void ExpectClippedAsInDouble(const Model& model, const Graph& parallel, const Schedule& schedule,
                             double clip_norm) {
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(parallel, schedule, backend.get(), {.clip_norm = clip_norm});
  ASSERT_TRUE(job.ok()) << job.status();
  HostValues weights = InitialWeights(model, 3).value();
  ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  for (int t = 1; t <= 3; ++t) {
    const HostValues inputs = RandomInputs(model.graph, t);
    const auto step = ReferenceStep(model, weights, inputs, true);
    ASSERT_TRUE(step.ok()) << step.status();
    const double norm = NormOf(step->gradients);
    const double factor = std::min(1.0, clip_norm / (norm + 1e-6));
    for (const auto& [name, gradient] : step->gradients) {
      for (int64_t i = 0; i < gradient.size(); ++i) {
        weights.at(name).data[i] -= 0.5 * factor * gradient.data[i];
      }
    }
    ASSERT_EQ((*job)->TrainStep(inputs, 0.5), absl::OkStatus());
    EXPECT_NEAR((*job)->gradient_norm(), norm, 2e-5 * norm) << t;
    // Each element of a gradient counts once.
    const double of_all = NormOf((*job)->Gradients().value());
    EXPECT_NEAR((*job)->gradient_norm(), of_all, 1e-12 * of_all) << t;
    const double loss = step->outputs.at("loss").data[0];
    EXPECT_NEAR((*job)->Output("loss")->data[0], loss, 2e-5 * (1 + std::abs(loss))) << t;
  }
  const StepValues expected{.outputs = weights, .gradients = {}};
  const Comparison comparison =
      Compare(expected, {.outputs = (*job)->Parameters().value(), .gradients = {}},
              ShareOf(expected, 1e-4));
  EXPECT_TRUE(comparison.agrees()) << comparison.worst;
}

class GradientNormTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(GradientNormTest, ClipsAsInDouble) {
  const ParallelCase& c = GetParam();
  Model model;
  model.graph = Parsed(c.sequential);
  model.loss = "loss";
  const Graph parallel = Parsed(c.parallel);
  const double norm = NormOf(
      ReferenceStep(model, InitialWeights(model, 3).value(), RandomInputs(model.graph, 1), true)
          ->gradients);
  for (UpdateMethod method : EveryMethod()) {
    SCOPED_TRACE(UpdateMethodName(method));
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.update = {.method = method};
    const auto schedule = LowerGraph(parallel, ViewsOf(parallel, c.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectClippedAsInDouble(model, parallel, *schedule, 0.3 * norm);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, GradientNormTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

TEST(GradientNorm, ClipsPipelinesAsInDouble) {
  for (const StagedMlp& pipeline :
       {StagedMlp{}, StagedMlp{.data = 2, .micro_batches = 2}, StagedMlp{.stages = 1, .data = 4},
        StagedMlp{.stages = 4, .micro_batches = 4, .shortcut = true}}) {
    const PipelineGraphs graphs = MakePipeline(pipeline);
    for (UpdateMethod method : EveryMethod()) {
      SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", UpdateMethodName(method)));
      const Schedule schedule = LoweredPipeline(
          pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {}, {.method = method});
      ExpectClippedAsInDouble(graphs.model, graphs.mapped.graph, schedule, 0.05);
    }
  }
}

TEST(GradientNorm, IsTheSameToTheBitHoweverQueuesRun) {
  const StagedMlp pipeline = {.data = 2, .micro_batches = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto backend = MakeCpuBackend();
  const HostValues weights = InitialWeights(graphs.model, 3).value();
  const HostValues inputs = RandomInputs(graphs.model.graph, 5);
  for (UpdateMethod method : EveryMethod()) {
    const Schedule schedule =
        LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                        {.optimizer = OptimizerKind::kAdam, .method = method});
    const auto check = CheckExecutions(graphs.mapped.graph, schedule, weights, inputs, 0.1, 3,
                                       backend.get(), {.clip_norm = 0.01});
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->difference, "") << UpdateMethodName(method);
  }
}

HostValues TrainedWith(const PipelineGraphs& graphs, const Schedule& schedule,
                       const JobOptions& options) {
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(graphs.mapped.graph, schedule, backend.get(), options);
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ((*job)->SetParameters(InitialWeights(graphs.model, 3).value()), absl::OkStatus());
  for (int t = 1; t <= 3; ++t) {
    EXPECT_EQ((*job)->TrainStep(RandomInputs(graphs.model.graph, t), 0.1), absl::OkStatus());
  }
  return (*job)->Parameters().value();
}

// Neither what is only looked at, nor what is small enough, is changed: not by a bit.
TEST(GradientNorm, LeavesSmallGradientsAsTheyAre) {
  const StagedMlp pipeline = {.data = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Schedule schedule = LoweredPipeline(pipeline, graphs.mapped);
  const HostValues expected = TrainedWith(graphs, schedule, {});
  for (const JobOptions& options :
       {JobOptions{.finds_gradient_norm = true}, JobOptions{.clip_norm = 1e6}}) {
    const HostValues found = TrainedWith(graphs, schedule, options);
    for (const auto& [name, value] : expected) EXPECT_EQ(found.at(name).data, value.data) << name;
  }
  const HostValues clipped = TrainedWith(graphs, schedule, {.clip_norm = 1e-3});
  EXPECT_NE(clipped.at("w0").data, expected.at("w0").data);
}

TEST(GradientNorm, IsThatOfGradientsWithoutTheLossScale) {
  Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .micro_batches = 2}, DataType::kFloat16);
  const auto lowered = LowerPlan(plan, /*keep_gradients=*/true);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto backend = MakeCpuBackend();
  const auto job =
      Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(),
                 {.loss_scale = 0x1p24, .finds_loss_scale = true, .finds_gradient_norm = true});
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ((*job)->SetParameters(InitialWeights(plan.model, 3).value()), absl::OkStatus());
  const HostValues inputs = RandomInputs(plan.model.graph, 5);
  int64_t steps = 0;
  do {
    ASSERT_EQ((*job)->TrainStep(inputs, 0.01), absl::OkStatus());
    // Steps that are skipped have none.
    EXPECT_EQ(std::isfinite((*job)->gradient_norm()), (*job)->loss_scale().skipped() == steps);
  } while ((*job)->loss_scale().skipped() == ++steps && steps < 60);
  const double expected = NormOf((*job)->Gradients().value());
  EXPECT_NEAR((*job)->gradient_norm(), expected, 1e-9 * expected);
}

TEST(GradientNorm, IsRefusedWhereUpdatesDoNotWait) {
  Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .micro_batches = 1}, DataType::kFloat32);
  plan.update.immediate = true;
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto backend = MakeCpuBackend();
  EXPECT_THAT(Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(), {.clip_norm = 1})
                  .status()
                  .message(),
              HasSubstr("--clip_norm: the plan updates weights before all gradients are known"));
}

TEST(GradientNorm, EndsTrainingWhereItIsNotFinite) {
  const StagedMlp pipeline = {.data = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(graphs.mapped.graph, LoweredPipeline(pipeline, graphs.mapped),
                              backend.get(), {.clip_norm = 1});
  ASSERT_TRUE(job.ok()) << job.status();
  HostValues weights = InitialWeights(graphs.model, 3).value();
  weights.at("w0").data[0] = std::numeric_limits<double>::quiet_NaN();
  ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  EXPECT_THAT((*job)->TrainStep(RandomInputs(graphs.model.graph, 1), 0.1).message(),
              HasSubstr("the norm of the gradients is not finite"));
}

}  // namespace
}  // namespace isomer
