// Training without flushes in between (PipeDream-2BW) changes weights as its formula says: by
// gradients at the weights of one step before, whatever the stages, and however weights are kept.
#include "pcg/schedule/order/weight_versions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

constexpr int32_t kStepsBetweenFlushes = 4;
constexpr int kSteps = 8;
// Adam's steps are as long as it, whatever the gradient.
// Of the step `step`, from 0: no two are alike.
double RateOf(OptimizerKind optimizer, int step) {
  return (optimizer == OptimizerKind::kAdam ? 0.02 : 0.5) / (1 + 0.1 * step);
}

// The formulas of pcg/ir/weight_update.h, in double.
class DelayedTraining {
 public:
  DelayedTraining(const Model& model, HostValues weights, OptimizerKind optimizer)
      : model_(model),
        optimizer_(optimizer),
        before_(weights),
        weights_(weights),
        first_(weights),
        second_(std::move(weights)) {
    for (HostValues* states : {&first_, &second_}) {
      for (auto& [name, state] : *states) state.data.assign(state.data.size(), 0);
    }
  }

  // Returns the loss.
  double Step(const HostValues& inputs) {
    const auto step = ReferenceStep(model_, before_, inputs, /*training=*/true);
    EXPECT_TRUE(step.ok()) << step.status();
    before_ = weights_;
    ++number_;
    for (auto& [name, weight] : weights_) {
      const Array<double>& gradient = step->gradients.at(name);
      for (int64_t i = 0; i < weight.size(); ++i) {
        weight.data[i] -=
            RateOf(optimizer_, number_ - 1) *
            Direction(gradient.data[i], &first_.at(name).data[i], &second_.at(name).data[i]);
      }
    }
    return step->outputs.at("loss").data[0];
  }

  const HostValues& weights() const { return weights_; }

 private:
  double Direction(double gradient, double* first, double* second) const {
    if (optimizer_ == OptimizerKind::kSgd) return gradient;
    if (optimizer_ == OptimizerKind::kMomentum) return *first = 0.9 * *first + gradient;
    *first = 0.9 * *first + 0.1 * gradient;
    *second = 0.999 * *second + 0.001 * gradient * gradient;
    return *first / (1 - std::pow(0.9, number_)) /
           (std::sqrt(*second / (1 - std::pow(0.999, number_))) + 1e-8);
  }

  const Model& model_;
  const OptimizerKind optimizer_;
  HostValues before_, weights_;
  HostValues first_, second_;
  int number_ = 0;
};

class WeightVersions
    : public testing::TestWithParam<std::tuple<StagedMlp, UpdateMethod, OptimizerKind>> {};

TEST_P(WeightVersions, TrainAsTheFormulaSays) {
  const auto& [pipeline, method, optimizer] = GetParam();
  const PipelineGraphs graphs = MakePipeline(pipeline);
  Schedule schedule = LoweredPipeline(
      pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
      {.optimizer = optimizer, .method = method, .steps_between_flushes = kStepsBetweenFlushes});
  const auto backend = MakeCpuBackend(/*reference=*/false);
  const auto job = Job::Start(graphs.mapped.graph, std::move(schedule), backend.get());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ((*job)->num_steps(), kStepsBetweenFlushes);
  const auto weights = InitialWeights(graphs.model, 3);
  ASSERT_TRUE(weights.ok());
  ASSERT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
  DelayedTraining expected(graphs.model, *weights, optimizer);
  for (int first = 0; first < kSteps; first += kStepsBetweenFlushes) {
    std::vector<HostValues> inputs;
    std::vector<double> rates;
    for (int i = 0; i < kStepsBetweenFlushes; ++i) {
      inputs.push_back(RandomInputs(graphs.model.graph, 10 + first + i));
      rates.push_back(RateOf(optimizer, first + i));
    }
    ASSERT_EQ((*job)->TrainSteps(inputs, rates), absl::OkStatus());
    for (int i = 0; i < kStepsBetweenFlushes; ++i) {
      const auto loss = (*job)->Output("loss", i);
      ASSERT_TRUE(loss.ok()) << loss.status();
      EXPECT_NEAR(loss->data[0], expected.Step(inputs[i]), 1e-4) << "step " << first + i;
    }
  }
  const auto trained = (*job)->Parameters();
  ASSERT_TRUE(trained.ok()) << trained.status();
  ASSERT_EQ(trained->size(), weights->size());
  for (const auto& [name, weight] : *trained) {
    for (int64_t i = 0; i < weight.size(); ++i) {
      ASSERT_NEAR(weight.data[i], expected.weights().at(name).data[i], 2e-4) << name;
    }
  }
  // Evaluation takes the newest weights.
  const HostValues inputs = RandomInputs(graphs.model.graph, 100);
  ASSERT_EQ((*job)->Evaluate(inputs), absl::OkStatus());
  const auto output = (*job)->Output("y");
  ASSERT_TRUE(output.ok());
  const auto newest = ReferenceStep(graphs.model, expected.weights(), inputs, /*training=*/false);
  ASSERT_TRUE(newest.ok());
  for (int64_t i = 0; i < output->size(); ++i) {
    ASSERT_NEAR(output->data[i], newest->outputs.at("y").data[i], 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, WeightVersions,
    testing::Combine(testing::Values(StagedMlp{}, StagedMlp{.data = 2, .micro_batches = 2},
                                     StagedMlp{.data = 2, .micro_batches = 3},
                                     StagedMlp{.stages = 4, .micro_batches = 4, .shortcut = true},
                                     StagedMlp{.layers = 8, .micro_batches = 8, .chunks = 2}),
                     testing::Values(UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                                     UpdateMethod::kShardedGradients, UpdateMethod::kShardedWeights,
                                     UpdateMethod::kOwner),
                     testing::Values(OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                     OptimizerKind::kAdam)),
    [](const auto& info) {
      return std::get<0>(info.param).Name() + "With_" + UpdateMethodName(std::get<1>(info.param)) +
             "_" + OptimizerName(std::get<2>(info.param));
    });

// The inputs of each step are its own; fewer are an error, not those of the last.
TEST(WeightVersionsTest, StepsNeedTheirInputs) {
  const StagedMlp pipeline{};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  Schedule schedule =
      LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                      {.steps_between_flushes = 2});
  const auto backend = MakeCpuBackend(/*reference=*/false);
  const auto job = Job::Start(graphs.mapped.graph, std::move(schedule), backend.get());
  ASSERT_TRUE(job.ok());
  ASSERT_EQ((*job)->SetParameters(*InitialWeights(graphs.model, 3)), absl::OkStatus());
  const absl::Status status = (*job)->TrainStep(RandomInputs(graphs.model.graph, 1), 0.1);
  EXPECT_EQ(status.message(), "inputs of 1 steps for the 2 of the schedule");
}

}  // namespace
}  // namespace isomer
