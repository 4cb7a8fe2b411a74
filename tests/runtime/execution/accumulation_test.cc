// Steps in parts, and averages of weights, whatever the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/update.h"
#include "runtime/execution/job.h"
#include "runtime/execution/weight_average.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

constexpr int kBatches = 3;

std::vector<UpdateMethod> MethodsOfAll() {
  std::vector<UpdateMethod> methods;
  for (const UpdateMethodTraits& traits : AllUpdateMethods()) methods.push_back(traits.method);
  return methods;
}

double NormOfAll(const HostValues& gradients) {
  double sum = 0;
  for (const auto& [name, gradient] : gradients) {
    for (double g : gradient.data) sum += g * g;
  }
  return std::sqrt(sum);
}

void ExpectNear(const HostValues& expected, const HostValues& found, double tolerance) {
  const StepValues as_values{.outputs = expected, .gradients = {}};
  const Comparison comparison =
      Compare(as_values, {.outputs = found, .gradients = {}}, ShareOf(as_values, tolerance));
  EXPECT_TRUE(comparison.agrees()) << comparison.worst;
}

// Momentum in double, with the mean of the gradients of three batches, clipped.
void ExpectAccumulatesAsInDouble(const Model& model, const Graph& parallel,
                                 const Schedule& schedule) {
  const auto backend = MakeCpuBackend();
  constexpr double kClip = 0.05, kRate = 0.5, kMomentum = 0.9;
  const auto job = Job::Start(parallel, schedule, backend.get(), {.clip_norm = kClip});
  ASSERT_TRUE(job.ok()) << job.status();
  HostValues weights = InitialWeights(model, 3).value(), velocity;
  ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  for (int t = 1; t <= 3; ++t) {
    HostValues mean;
    for (int b = 0; b < kBatches; ++b) {
      const HostValues inputs = RandomInputs(model.graph, 10 * t + b);
      const auto step = ReferenceStep(model, weights, inputs, true);
      ASSERT_TRUE(step.ok()) << step.status();
      for (const auto& [name, gradient] : step->gradients) {
        auto [sum, is_new] = mean.try_emplace(name, gradient.shape);
        for (int64_t i = 0; i < gradient.size(); ++i) {
          sum->second.data[i] += gradient.data[i] / kBatches;
        }
      }
      ASSERT_EQ((*job)->AddGradients(inputs), absl::OkStatus());
      const double loss = step->outputs.at("loss").data[0];
      EXPECT_NEAR((*job)->Output("loss")->data[0], loss, 2e-5 * (1 + std::abs(loss)));
    }
    ASSERT_EQ((*job)->UpdateWithMean(kRate), absl::OkStatus());
    const double norm = NormOfAll(mean);
    EXPECT_NEAR((*job)->gradient_norm(), norm, 2e-5 * norm) << t;
    ExpectNear(mean, (*job)->Gradients().value(), 1e-4);
    const double factor = std::min(1.0, kClip / (norm + 1e-6));
    for (const auto& [name, gradient] : mean) {
      auto [v, is_new] = velocity.try_emplace(name, gradient.shape);
      for (int64_t i = 0; i < gradient.size(); ++i) {
        v->second.data[i] = kMomentum * v->second.data[i] + factor * gradient.data[i];
        weights.at(name).data[i] -= kRate * v->second.data[i];
      }
    }
  }
  ExpectNear(weights, (*job)->Parameters().value(), 1e-4);
}

class AccumulationTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(AccumulationTest, IsAStepOfTheMean) {
  const ParallelCase& c = GetParam();
  Model model;
  model.graph = Parsed(c.sequential);
  model.loss = "loss";
  const Graph parallel = Parsed(c.parallel);
  for (UpdateMethod method : MethodsOfAll()) {
    SCOPED_TRACE(UpdateMethodName(method));
    ScheduleOptions options = TrainingOptions(c.num_devices);
    options.update = {.optimizer = OptimizerKind::kMomentum, .method = method};
    const auto schedule = LowerGraph(parallel, ViewsOf(parallel, c.strides), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectAccumulatesAsInDouble(model, parallel, *schedule);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, AccumulationTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

TEST(Accumulation, IsAStepOfTheMeanInPipelines) {
  for (const StagedMlp& pipeline : {StagedMlp{}, StagedMlp{.data = 2, .micro_batches = 2},
                                    StagedMlp{.stages = 4, .micro_batches = 4, .shortcut = true}}) {
    const PipelineGraphs graphs = MakePipeline(pipeline);
    for (UpdateMethod method : MethodsOfAll()) {
      SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", UpdateMethodName(method)));
      const Schedule schedule =
          LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                          {.optimizer = OptimizerKind::kMomentum, .method = method});
      ExpectAccumulatesAsInDouble(graphs.model, graphs.mapped.graph, schedule);
    }
  }
}

// One batch whose gradients overflow skips them all; the next group is taken with half the scale.
TEST(Accumulation, SkipsAGroupWithAGradientThatIsNotFinite) {
  Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .micro_batches = 2}, DataType::kFloat16);
  const auto lowered = LowerPlan(plan, /*keep_gradients=*/true);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(),
                              {.loss_scale = 1024, .finds_loss_scale = true});
  ASSERT_TRUE(job.ok()) << job.status();
  const HostValues initial = InitialWeights(plan.model, 3).value();
  ASSERT_EQ((*job)->SetParameters(initial), absl::OkStatus());
  const HostValues before = (*job)->Parameters().value();
  HostValues large = RandomInputs(plan.model.graph, 5);
  for (auto& [name, value] : large) {
    for (double& x : value.data) x *= 1e4;
  }
  ASSERT_EQ((*job)->AddGradients(large), absl::OkStatus());
  ASSERT_EQ((*job)->AddGradients(RandomInputs(plan.model.graph, 6)), absl::OkStatus());
  ASSERT_EQ((*job)->UpdateWithMean(0.1), absl::OkStatus());
  EXPECT_EQ((*job)->loss_scale().skipped(), 1);
  EXPECT_EQ((*job)->loss_scale().value(), 512);
  EXPECT_EQ((*job)->updates(), 0);
  const HostValues skipped = (*job)->Parameters().value();
  for (const auto& [name, value] : before) EXPECT_EQ(skipped.at(name).data, value.data) << name;
  // Nothing of the group that was skipped is left in the next.
  ASSERT_EQ((*job)->AddGradients(RandomInputs(plan.model.graph, 6)), absl::OkStatus());
  ASSERT_EQ((*job)->AddGradients(RandomInputs(plan.model.graph, 6)), absl::OkStatus());
  ASSERT_EQ((*job)->UpdateWithMean(0.1), absl::OkStatus());
  EXPECT_EQ((*job)->updates(), 1);
  const HostValues trained = (*job)->Parameters().value();
  for (const auto& [name, value] : trained) {
    for (double x : value.data) EXPECT_TRUE(std::isfinite(x)) << name;
  }
}

TEST(AverageOptions, SayHowFarItGoes) {
  const AverageOptions exponential = {.decay = 0.75};
  EXPECT_EQ(exponential.RateOf(1), 1);
  EXPECT_EQ(exponential.RateOf(2), 0.25);
  const AverageOptions mean = {.is_mean = true, .first = 3, .every = 2};
  for (const auto& [update, rate] : std::vector<std::pair<int, double>>{
           {1, 1}, {2, 1}, {3, 1}, {4, 0}, {5, 1.0 / 2}, {6, 0}, {7, 1.0 / 3}}) {
    EXPECT_EQ(mean.RateOf(update), rate) << update;
  }
}

// What torch 2.15 gives: AveragedModel, with get_ema_multi_avg_fn(0.75) and without.
TEST(AverageOptions, AverageAsPyTorch) {
  for (const auto& [average, expected] : std::vector<std::pair<AverageOptions, float>>{
           {{.decay = 0.75}, 3.453125F}, {{.is_mean = true}, 3.75F}}) {
    float averaged = 0;
    for (int t = 1; t <= 4; ++t) {
      const auto weight = static_cast<float>(1 << (t - 1));
      AverageWeights(average.RateOf(t), 1, &weight, &averaged);
    }
    EXPECT_FLOAT_EQ(averaged, expected);
  }
}

// The averages are those of what Parameters() was after each step; tests are of them, and training
// goes on as if nobody had looked.
void ExpectAveragesOf(const Model& model, const Graph& parallel, const Schedule& schedule,
                      const AverageOptions& average) {
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(parallel, schedule, backend.get(), {.average = average});
  ASSERT_TRUE(job.ok()) << job.status();
  const HostValues initial = InitialWeights(model, 3).value();
  ASSERT_EQ((*job)->SetParameters(initial), absl::OkStatus());
  HostValues averages = (*job)->Parameters().value();
  const HostValues test = RandomInputs(model.graph, 99);
  for (int t = 1; t <= 4; ++t) {
    ASSERT_EQ((*job)->TrainStep(RandomInputs(model.graph, t), 0.3), absl::OkStatus());
    const HostValues weights = (*job)->Parameters().value();
    const double rate = average.RateOf(t);
    for (auto& [name, value] : averages) {
      for (int64_t i = 0; i < value.size(); ++i) {
        value.data[i] += rate * (weights.at(name).data[i] - value.data[i]);
      }
    }
    ASSERT_EQ((*job)->SwapAverages(), absl::OkStatus());
    ExpectNear(averages, (*job)->Parameters().value(), 1e-6);
    ASSERT_EQ((*job)->Evaluate(test), absl::OkStatus());
    const double found = (*job)->Output("loss")->data[0];
    HostValues whole = initial;
    for (const auto& [name, value] : averages) whole[name] = value;
    const double loss = ReferenceStep(model, whole, test, false)->outputs.at("loss").data[0];
    EXPECT_NEAR(found, loss, 1e-4 * (1 + std::abs(loss))) << t;
    ASSERT_EQ((*job)->SwapAverages(), absl::OkStatus());
    const HostValues swapped_back = (*job)->Parameters().value();
    for (const auto& [name, value] : swapped_back) {
      EXPECT_EQ(value.data, weights.at(name).data) << name;
    }
  }
  EXPECT_EQ((*job)->updates(), 4);
}

class AverageTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(AverageTest, IsOfAllPlans) {
  const ParallelCase& c = GetParam();
  Model model;
  model.graph = Parsed(c.sequential);
  model.loss = "loss";
  const Graph parallel = Parsed(c.parallel);
  for (UpdateMethod method : MethodsOfAll()) {
    for (bool immediate : {false, true}) {
      SCOPED_TRACE(absl::StrCat(UpdateMethodName(method), immediate));
      ScheduleOptions options = TrainingOptions(c.num_devices);
      options.keep_gradients = false;
      options.update = {.optimizer = OptimizerKind::kAdam,
                        .method = method,
                        .immediate = immediate,
                        .averages = true};
      const auto schedule = LowerGraph(parallel, ViewsOf(parallel, c.strides), options);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      ASSERT_EQ(CheckSchedule(parallel, *schedule), absl::OkStatus());
      ExpectAveragesOf(model, parallel, *schedule, {.decay = 0.7});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, AverageTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

TEST(Averages, AreOfPipelinesAndOfMasters) {
  for (const StagedMlp& pipeline :
       {StagedMlp{.data = 2, .micro_batches = 2}, StagedMlp{.stages = 4, .micro_batches = 4}}) {
    const PipelineGraphs graphs = MakePipeline(pipeline);
    for (UpdateMethod method : MethodsOfAll()) {
      SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", UpdateMethodName(method)));
      const Schedule schedule =
          LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                          {.method = method, .averages = true});
      ExpectAveragesOf(graphs.model, graphs.mapped.graph, schedule, {.is_mean = true, .first = 2});
    }
  }
  for (UpdateMethod method : MethodsOfAll()) {
    SCOPED_TRACE(UpdateMethodName(method));
    Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .data = 2, .micro_batches = 2},
                               DataType::kBFloat16);
    plan.update = {.method = method, .averages = true};
    const auto lowered = LowerPlan(plan, /*keep_gradients=*/false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto backend = MakeCpuBackend();
    const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(),
                                {.average = {.decay = 0.5}});
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_EQ((*job)->SetParameters(InitialWeights(plan.model, 3).value()), absl::OkStatus());
    const HostValues inputs = RandomInputs(plan.model.graph, 5);
    ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    const HostValues first = (*job)->Parameters().value();
    ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    HostValues expected = (*job)->Parameters().value();
    for (auto& [name, value] : expected) {
      for (int64_t i = 0; i < value.size(); ++i) {
        value.data[i] = (value.data[i] + first.at(name).data[i]) / 2;
      }
    }
    ASSERT_EQ((*job)->SwapAverages(), absl::OkStatus());
    ExpectNear(expected, (*job)->Parameters().value(), 1e-6);
    // What devices compute with is of the averages, too: a step from there has their loss.
    ASSERT_EQ((*job)->Evaluate(inputs), absl::OkStatus());
    const double swapped = (*job)->Output("loss")->data[0];
    ASSERT_EQ((*job)->SetParameters(expected), absl::OkStatus());
    ASSERT_EQ((*job)->Evaluate(inputs), absl::OkStatus());
    EXPECT_NEAR((*job)->Output("loss")->data[0], swapped, 1e-3 * std::abs(swapped));
  }
}

}  // namespace
}  // namespace isomer
