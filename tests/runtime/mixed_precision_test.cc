// Hand-written parallel graphs in bfloat16 and float16 train like the float32 model.
#include <gtest/gtest.h>

#include <algorithm>

#include "pcg/ir/precision.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/half.h"
#include "runtime/checking/check_executions.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/elements.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

Plan PlanOf(const ParallelCase& c, DataType precision) {
  Plan plan;
  plan.model.graph = Parsed(c.sequential);
  plan.model.loss = "loss";
  plan.graph = Parsed(c.parallel);
  plan.views = ViewsOf(plan.graph, c.strides);
  plan.num_devices = c.num_devices;
  plan.precision = precision;
  return plan;
}

// About eight units of the last place: these graphs have few layers.
double ToleranceIn(DataType precision) { return precision == DataType::kBFloat16 ? 3e-2 : 4e-3; }

double Loss(Job* job) {
  const absl::StatusOr<Array<double>> loss = job->Output("loss");
  EXPECT_TRUE(loss.ok()) << loss.status();
  return loss.ok() ? loss->data[0] : 0;
}

class MixedPrecisionTest : public testing::TestWithParam<ParallelCase> {
 protected:
  static void Check(DataType precision) {
    const Plan plan = PlanOf(GetParam(), precision);
    absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/true);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
    const auto backend = MakeCpuBackend();
    auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto weights = InitialWeights(plan.model, 3);
    ASSERT_TRUE(weights.ok());
    const HostValues inputs = RandomInputs(plan.model.graph, 5);
    ASSERT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
    ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    const double first = Loss(job->get());

    const auto expected = ReferenceStep(plan.model, *weights, inputs, true);
    const auto actual = ValuesOfStep(plan.model, job->get(), true);
    ASSERT_TRUE(expected.ok() && actual.ok());
    const Comparison comparison =
        Compare(*expected, *actual, ShareOf(*expected, ToleranceIn(precision)));
    EXPECT_TRUE(comparison.agrees()) << comparison.worst << " " << comparison.of_worst.error;
    EXPECT_GT(comparison.max_rel_error, 1e-6) << "it is float32";

    for (int step = 0; step < 20; ++step) {
      ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    }
    EXPECT_LT(Loss(job->get()), first);
    CheckTrainedLoss(plan, *weights, inputs, Loss(job->get()));
  }

  // The float32 model on one device arrives at about the same loss.
  static void CheckTrainedLoss(const Plan& plan, const HostValues& weights,
                               const HostValues& inputs, double loss) {
    const auto backend = MakeCpuBackend();
    auto schedule =
        LowerGraph(plan.model.graph, SequentialViews(plan.model.graph), TrainingOptions(1));
    ASSERT_TRUE(schedule.ok());
    auto job = Job::Start(plan.model.graph, *std::move(schedule), backend.get());
    ASSERT_TRUE(job.ok());
    ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
    for (int step = 0; step < 21; ++step) {
      ASSERT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
    }
    EXPECT_NEAR(loss, Loss(job->get()), ToleranceIn(plan.precision) * std::abs(loss));
  }
};

TEST_P(MixedPrecisionTest, BFloat16TrainsLikeFloat32) { Check(DataType::kBFloat16); }
TEST_P(MixedPrecisionTest, Float16TrainsLikeFloat32) { Check(DataType::kFloat16); }

HostValues GradientsOf(const Plan& plan, const HostValues& weights, const HostValues& inputs) {
  absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/true);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get());
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  EXPECT_EQ((*job)->TrainStep(inputs, 0.1), absl::OkStatus());
  return (*job)->Gradients().value();
}

// Products add the gradients of micro-batches up in float32, and round none of them.
TEST(MicroBatches, TheirGradientsAreSummedInFloat32) {
  constexpr int64_t kMicroBatches = 64, kWidth = 8;
  const StagedMlp all = {.layers = 2,
                         .stages = 1,
                         .micro_batches = kMicroBatches,
                         .batch = kMicroBatches,
                         .width = kWidth};
  const StagedMlp one = {.layers = 2, .stages = 1, .micro_batches = 1, .batch = 1, .width = kWidth};
  // The first is of zeros, whose gradients are; so the other's are added to a sum.
  const StagedMlp two = {.layers = 2, .stages = 1, .micro_batches = 2, .batch = 2, .width = kWidth};
  for (DataType precision : {DataType::kBFloat16, DataType::kFloat16}) {
    const Plan plan = MicroBatchPlan(all, precision), single = MicroBatchPlan(one, precision),
               added = MicroBatchPlan(two, precision);
    const HostValues weights = InitialWeights(plan.model, 3).value();
    const HostValues inputs = RandomInputs(plan.model.graph, 5);
    const HostValues actual = GradientsOf(plan, weights, inputs);
    // Those of each micro-batch by itself; the loss is the mean over all, a power of two of them.
    HostValues sums, low_sums;
    for (int64_t m = 0; m < kMicroBatches; ++m) {
      HostValues row, behind_zeros;
      for (const auto& [name, value] : inputs) {
        Array<double>& of_row = row[name] = Array<double>({1, kWidth});
        Array<double>& of_two = behind_zeros[name] = Array<double>({2, kWidth}, 0.0);
        std::copy_n(value.data.begin() + m * kWidth, kWidth, of_row.data.begin());
        std::copy_n(value.data.begin() + m * kWidth, kWidth, of_two.data.begin() + kWidth);
      }
      for (const auto& [name, gradient] : GradientsOf(added, weights, behind_zeros)) {
        Array<double>& sum = sums.try_emplace(name, gradient.shape, 0.0).first->second;
        for (int64_t i = 0; i < gradient.size(); ++i) {
          sum.data[i] += 2 * gradient.data[i] / kMicroBatches;
        }
      }
      for (const auto& [name, gradient] : GradientsOf(single, weights, row)) {
        Array<double>& low = low_sums.try_emplace(name, gradient.shape, 0.0).first->second;
        for (int64_t i = 0; i < gradient.size(); ++i) {
          const double share = gradient.data[i] / kMicroBatches;
          low.data[i] = precision == DataType::kBFloat16
                            ? static_cast<double>(BFloat16(static_cast<float>(low.data[i] + share)))
                            : static_cast<double>(Float16(static_cast<float>(low.data[i] + share)));
        }
      }
    }
    ASSERT_EQ(sums.size(), 2u);
    for (const auto& [name, sum] : sums) {
      const double norm = Distance(sum, Array<double>(sum.shape, 0.0));
      EXPECT_LT(Distance(actual.at(name), sum), 1e-5 * norm) << name;
      // What it would be in low precision.
      EXPECT_GT(Distance(low_sums.at(name), sum), 5e-4 * norm) << name;
    }
  }
}

// Steps that are far below the precision of a weight add up in its master, on one device and in
// parts on several.
TEST(Masters, AddUpWhatTheWeightsWouldLose) {
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    SCOPED_TRACE(UpdateMethodName(method));
    Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .data = 2, .micro_batches = 2},
                               DataType::kBFloat16);
    plan.update.method = method;
    const absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto backend = MakeCpuBackend();
    const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get());
    ASSERT_TRUE(job.ok()) << job.status();
    const HostValues weights = InitialWeights(plan.model, 3).value();
    ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
    // Not rounded: what was never trained, and what is, are the numbers that were given.
    const HostValues before = (*job)->Parameters().value();
    for (const auto& [name, value] : weights) EXPECT_EQ(before.at(name).data, value.data) << name;
    const HostValues inputs = RandomInputs(plan.model.graph, 5);
    constexpr double kRate = 1e-4;
    const auto steps = [&](int count) {
      for (int step = 0; step < count; ++step) {
        EXPECT_EQ((*job)->TrainStep(inputs, kRate), absl::OkStatus());
      }
      return (*job)->Parameters().value();
    };
    const HostValues one = steps(1), many = steps(19);
    for (const auto& [name, value] : weights) {
      // As far as twenty steps of the first's length, about; none moves a weight by itself.
      const double first = Distance(one.at(name), value), all = Distance(many.at(name), value);
      const double norm = Distance(value, Array<double>(value.shape, 0.0));
      EXPECT_LT(first, 0x1p-9 * norm) << name;
      EXPECT_NEAR(all, 20 * first, 2 * first) << name;
    }
  }
}

// A bias of a comparison has no gradient and no master: what devices have of it is rounded, and not
// what was trained.
TEST(Masters, WhatHasNoGradientIsNotRoundedForOthers) {
  Plan plan;
  plan.graph = plan.model.graph = Parsed(R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,4]
%2 = weight "b" : f32[4]
%3 = matmul(%0, %1) : f32[8,4]
%4 = less(%2, %3) : bool[8,4]
%5 = cast(%4) {to=0} : f32[8,4]
%6 = mul(%3, %5) : f32[8,4]
%7 = reduce_sum(%6) {axes=[0,1], keepdims=0} : f32[]
output "loss" = %7
)");
  plan.views = ViewsOf(plan.graph);
  plan.num_devices = 1;
  plan.model.loss = "loss";
  plan.precision = DataType::kBFloat16;
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
  const auto backend = MakeCpuBackend();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get());
  ASSERT_TRUE(job.ok()) << job.status();
  const HostValues weights = InitialWeights(plan.model, 3).value();
  ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  const HostValues parameters = (*job)->Parameters().value();
  EXPECT_EQ(parameters.at("w").data, weights.at("w").data);
  EXPECT_FALSE(parameters.contains("b"));
}

// Gradients that are summed over devices in bfloat16: the same for each method, and rounded.
void ExpectSumsInBFloat16(DataType precision) {
  SCOPED_TRACE(PrecisionName(precision));
  HostValues expected, exact;
  for (UpdateMethod method : {UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                              UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    SCOPED_TRACE(UpdateMethodName(method));
    for (const bool low : {true, false}) {
      Plan plan =
          MicroBatchPlan({.layers = 2, .stages = 1, .data = 4, .micro_batches = 1}, precision);
      plan.update.method = method;
      if (low) plan.update.gradient_sums = DataType::kBFloat16;
      const HostValues gradients = GradientsOf(plan, InitialWeights(plan.model, 3).value(),
                                               RandomInputs(plan.model.graph, 5));
      HostValues& first = low ? expected : exact;
      if (first.empty()) first = gradients;
      for (const auto& [name, value] : gradients) EXPECT_EQ(value.data, first.at(name).data);
    }
  }
  for (const auto& [name, value] : expected) {
    const double norm = Distance(value, Array<double>(value.shape, 0.0));
    const double rounding = Distance(value, exact.at(name));
    EXPECT_GT(rounding, 0x1p-12 * norm) << name;
    EXPECT_LT(rounding, 0x1p-8 * norm) << name;
  }
}

TEST(GradientSums, OverDevicesMayBeInLowPrecision) {
  ExpectSumsInBFloat16(DataType::kBFloat16);
  ExpectSumsInBFloat16(DataType::kFloat32);
}

TEST(LossScale, HalvesAtOnceAndGrowsSlowly) {
  DynamicLossScale scale(1024);
  scale.StepWas(false);
  EXPECT_EQ(scale.value(), 512);
  EXPECT_EQ(scale.skipped(), 1);
  for (int64_t step = 1; step < DynamicLossScale::kStepsToGrow; ++step) scale.StepWas(true);
  EXPECT_EQ(scale.value(), 512);
  scale.StepWas(true);
  EXPECT_EQ(scale.value(), 1024);
  // Not in a row.
  for (int64_t step = 1; step < DynamicLossScale::kStepsToGrow; ++step) scale.StepWas(true);
  scale.StepWas(false);
  scale.StepWas(true);
  EXPECT_EQ(scale.value(), 512);
  for (int step = 0; step < 100; ++step) scale.StepWas(false);
  EXPECT_EQ(scale.value(), DynamicLossScale::kLeast);
}

// Too large a scale changes nothing but itself, on any device, whoever updates; then training is
// what it is with a scale that fits.
TEST(LossScale, StepsThatOverflowAreSkippedOnAllDevices) {
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    SCOPED_TRACE(UpdateMethodName(method));
    Plan plan = MicroBatchPlan({.layers = 4, .stages = 2, .data = 2, .micro_batches = 2},
                               DataType::kFloat16);
    plan.update = {.optimizer = OptimizerKind::kAdam, .method = method};
    const absl::StatusOr<LoweredPlan> lowered = LowerPlan(plan, /*keep_gradients=*/true);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_TRUE(CanSkipUpdates(lowered->schedule));
    const auto backend = MakeCpuBackend();
    const HostValues weights = InitialWeights(plan.model, 3).value();
    const HostValues inputs = RandomInputs(plan.model.graph, 5);
    const auto start = [&](const JobOptions& options) {
      auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(), options);
      EXPECT_TRUE(job.ok()) << job.status();
      EXPECT_EQ((*job)->SetParameters(weights), absl::OkStatus());
      return *std::move(job);
    };
    const auto job = start({.execution = {.kind = ExecutionKind::kThreaded},
                            .loss_scale = 0x1p24,
                            .finds_loss_scale = true});
    const auto executions =
        CheckExecutions(lowered->mapped.graph, lowered->schedule, weights, inputs, 0.01, 4,
                        backend.get(), {.loss_scale = 0x1p17, .finds_loss_scale = true});
    ASSERT_TRUE(executions.ok()) << executions.status();
    EXPECT_EQ(executions->difference, "");
    int64_t steps = 0, skipped = 0;
    for (; steps - skipped < 3 && steps < 60; ++steps) {
      const HostValues before = job->Parameters().value();
      ASSERT_EQ(job->TrainStep(inputs, 0.01), absl::OkStatus());
      const bool is_skipped = job->loss_scale().skipped() > skipped;
      const HostValues after = job->Parameters().value();
      for (const auto& [name, value] : after) {
        EXPECT_EQ(value.data == before.at(name).data, is_skipped) << name << " step " << steps;
      }
      skipped = job->loss_scale().skipped();
    }
    EXPECT_GT(skipped, 0);
    EXPECT_EQ(steps, skipped + 3);
    const auto fixed = start({.loss_scale = job->loss_scale().value()});
    for (int step = 0; step < 3; ++step) {
      ASSERT_EQ(fixed->TrainStep(inputs, 0.01), absl::OkStatus());
    }
    const HostValues expected = fixed->Parameters().value(), found = job->Parameters().value();
    for (const auto& [name, value] : expected) EXPECT_EQ(found.at(name).data, value.data) << name;
    const HostValues gradients = fixed->Gradients().value(), last = job->Gradients().value();
    for (const auto& [name, value] : last) EXPECT_EQ(gradients.at(name).data, value.data) << name;
  }
}

TEST(LossScale, IsFixedWhereUpdatesDoNotWait) {
  Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .micro_batches = 1}, DataType::kFloat16);
  EXPECT_TRUE(CanSkipUpdates(LowerPlan(plan)->schedule));
  plan.update.immediate = true;
  EXPECT_FALSE(CanSkipUpdates(LowerPlan(plan)->schedule));
  plan = MicroBatchPlan({.layers = 4, .stages = 2, .micro_batches = 4}, DataType::kFloat16);
  plan.update.steps_between_flushes = 2;
  EXPECT_FALSE(CanSkipUpdates(LowerPlan(plan)->schedule));
}

TEST(Elements, AreFiniteOrNot) {
  for (float value : {1.0f, 65504.0f, 0.0f, -1e-7f}) {
    for (DataType dtype : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      std::vector<double> numbers(33, value);
      std::vector<float> buffer(33);
      StoreElements(numbers.data(), 33, dtype, buffer.data());
      EXPECT_TRUE(AreFinite(dtype, buffer.data(), 33));
      for (double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
        numbers[32] = bad;
        StoreElements(numbers.data(), 33, dtype, buffer.data());
        EXPECT_FALSE(AreFinite(dtype, buffer.data(), 33));
        EXPECT_TRUE(AreFinite(dtype, buffer.data(), 32));
      }
    }
  }
}

// However queues run, and wherever weights are.
TEST(MicroBatches, OfLowPrecisionAreTheSameInEveryExecution) {
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    Plan plan =
        MicroBatchPlan({.layers = 4, .stages = 2, .data = 2, .micro_batches = 4, .shortcut = true},
                       DataType::kBFloat16);
    plan.update.method = method;
    plan.update.optimizer = OptimizerKind::kAdam;
    const auto lowered = LowerPlan(plan, /*keep_gradients=*/true);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_EQ(CheckSchedule(lowered->mapped.graph, lowered->schedule), absl::OkStatus());
    const auto backend = MakeCpuBackend();
    const auto check = CheckExecutions(lowered->mapped.graph, lowered->schedule,
                                       InitialWeights(plan.model, 3).value(),
                                       RandomInputs(plan.model.graph, 5), 0.1, 5, backend.get());
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->difference, "") << UpdateMethodName(method);
  }
}

INSTANTIATE_TEST_SUITE_P(AllGraphs, MixedPrecisionTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
