// --check from both sides: no plan that computes the model is accused, whatever it is rounded to,
// and no wrong gradient passes for rounding.
#include "runtime/checking/check_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/rounding_bounds.h"
#include "runtime/cpu/cpu_backend.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/faulty_backend.h"

namespace isomer {
namespace {

constexpr char kBiasedMlp[] = R"(
%0 = input "x" : f32[64,16]
%1 = weight "w1" : f32[16,32]
%2 = weight "b1" : f32[32]
%3 = weight "w2" : f32[32,8]
%4 = input "labels" : i64[64]
%5 = matmul(%0, %1) : f32[64,32]
%6 = add(%5, %2) : f32[64,32]
%7 = relu(%6) : f32[64,32]
%8 = matmul(%7, %3) : f32[64,8]
%9 = cross_entropy(%8, %4) : f32[]
output "y" = %8
output "loss" = %9
)";

// The batch over eight devices.
constexpr char kInEightShards[] = R"(
%0 = input "x" : f32[64,16]
%1 = weight "w1" : f32[16,32]
%2 = weight "b1" : f32[32]
%3 = weight "w2" : f32[32,8]
%4 = input "labels" : i64[64]
%5 = partition(%0) {axis=0, degree=8} : f32[64:8,16]
%6 = replicate(%1) {degree=8} : f32[16,32] c8
%7 = replicate(%2) {degree=8} : f32[32] c8
%8 = replicate(%3) {degree=8} : f32[32,8] c8
%9 = partition(%4) {axis=0, degree=8} : i64[64:8]
%10 = matmul(%5, %6) : f32[64:8,32]
%11 = add(%10, %7) : f32[64:8,32]
%12 = relu(%11) : f32[64:8,32]
%13 = matmul(%12, %8) : f32[64:8,8]
%14 = cross_entropy(%13, %9) : f32[] p8
%15 = reduce(%14) {degree=8} : f32[]
output "y" = %13
output "loss" = %15
)";

Plan ShardedPlan(DataType precision) {
  Plan plan;
  plan.model.graph = Parsed(kBiasedMlp);
  plan.model.loss = "loss";
  plan.graph = Parsed(kInEightShards);
  plan.views = ViewsOf(plan.graph);
  plan.num_devices = 8;
  plan.precision = precision;
  return plan;
}

// Two stages by two devices, and eight micro-batches.
Plan PipelinedPlan(DataType precision) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .data = 2, .micro_batches = 4, .batch = 64};
  return MicroBatchPlan(pipeline, precision);
}

// A network of the zoo as it is.
Plan PlanOfModel(const std::string& spec, DataType precision) {
  Plan plan;
  absl::StatusOr<Model> model = BuildZooModel(spec);
  EXPECT_TRUE(model.ok()) << model.status();
  plan.model = *std::move(model);
  EXPECT_EQ(AttachLoss(&plan.model, "auto"), absl::OkStatus());
  plan.graph = plan.model.graph;
  plan.views = SequentialViews(plan.graph);
  plan.precision = precision;
  return plan;
}

struct Checked {
  Comparison in_float32, in_precision;
};

// The plan's step by `backend`, checked from both.
Checked Check(const Plan& plan, Backend* backend, uint64_t seed = 3) {
  const auto weights = InitialWeights(plan.model, seed);
  EXPECT_TRUE(weights.ok()) << weights.status();
  const HostValues inputs = RandomInputs(plan.model.graph, seed + 1);
  const auto checker = StepChecker::Make(plan, *weights, inputs);
  EXPECT_TRUE(checker.ok()) << checker.status();
  const auto exact = CheckInFloat32(*checker, plan, *weights, inputs, backend, {});
  EXPECT_TRUE(exact.ok()) << exact.status();
  const auto lowered = LowerPlan(plan, /*keep_gradients=*/true);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend);
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
  EXPECT_EQ((*job)->TrainStep(inputs, 0), absl::OkStatus());
  const auto actual = ValuesOfStep(plan.model, job->get(), true);
  EXPECT_TRUE(actual.ok()) << actual.status();
  const auto low = checker->Check(*actual, RoundingOf(plan.precision, lowered->schedule));
  EXPECT_TRUE(low.ok()) << low.status();
  return {exact->comparison, low->comparison};
}

struct Mistake {
  std::string name;
  Fault fault;
  bool gross = true;  // to be told in bfloat16 as well
  std::string culprit = "gradient of w1";
  bool pipelined = false;
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

// Kernels are made ready in the order of the schedule: of each device's gradients of products the
// first is that of the last layer, of the first micro-batch.
std::vector<Mistake> Mistakes() {
  return {{.name = "ShardIsMissing", .fault = {.factor = 0, .device = 3}},
          {.name = "ShardIsCountedTwice", .fault = {.factor = 2, .device = 5}},
          {.name = "MicroBatchIsDropped",
           .fault = {.factor = 0, .device = 0, .number = 2},
           .pipelined = true},
          {.name = "AThousandthTooLarge", .fault = {.factor = 1 + 1e-3}, .gross = false},
          {.name = "ATenthTooSmall", .fault = {.factor = 0.9}},
          {.name = "AveragedTwice", .fault = {.factor = 1.0 / 8}},
          {.name = "BiasIsCountedPerShard",
           .fault = {.kind = OpKind::kAdd, .factor = 8},
           .culprit = "gradient of b1"},
          {.name = "BiasOfAShardIsMissing",
           .fault = {.kind = OpKind::kAdd, .factor = 0, .device = 7},
           .culprit = "gradient of b1"}};
}

class MistakeTest : public testing::TestWithParam<Mistake> {
 protected:
  static Plan PlanIn(DataType precision) {
    return GetParam().pipelined ? PipelinedPlan(precision) : ShardedPlan(precision);
  }
};

TEST_P(MistakeTest, IsFound) {
  FaultyBackend faulty(GetParam().fault);
  for (DataType precision : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    SCOPED_TRACE(PrecisionName(precision));
    const Checked checked = Check(PlanIn(precision), &faulty);
    EXPECT_FALSE(checked.in_float32.agrees());
    const bool told = GetParam().gross || precision == DataType::kFloat32;
    if (told) {
      EXPECT_FALSE(checked.in_precision.agrees());
    }
    if (GetParam().gross) {
      Plan lossy = PlanIn(DataType::kFloat32);
      lossy.update.gradient_sums = DataType::kBFloat16;
      EXPECT_FALSE(Check(lossy, &faulty).in_precision.agrees()) << "gradients in bfloat16";
    }
    if (GetParam().pipelined) continue;
    // No other tensor is blamed: not what was computed before it, nor the other way round.
    for (const auto& [name, gradient] : checked.in_float32.gradients) {
      const bool blamed = absl::StrCat("gradient of ", name) == GetParam().culprit ||
                          (GetParam().fault.kind == OpKind::kMatMul && name == "w2");
      EXPECT_EQ(gradient.agrees(), !blamed) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mistakes, MistakeTest, testing::ValuesIn(Mistakes()),
                         [](const auto& info) { return info.param.name; });

// Where rounding may do as much to a deep network's gradients as a missing shard, the plan is told
// to be wrong by its step in float32.
TEST(CheckStep, AMissingShardOfADeepNetworkIsFoundInEveryPrecision) {
  for (DataType precision : {DataType::kBFloat16, DataType::kFloat16}) {
    SCOPED_TRACE(PrecisionName(precision));
    const Plan plan = PlanOfModel("squeezenet?width=2&side=29&classes=16&batch=16", precision);
    FaultyBackend faulty({.kind = OpKind::kConv2d, .share_of_rows = 1.0 / 8});
    EXPECT_FALSE(Check(plan, &faulty).in_float32.agrees());
    const auto sound = MakeCpuBackend();
    const Checked checked = Check(plan, sound.get());
    EXPECT_TRUE(checked.in_float32.agrees()) << checked.in_float32.worst;
    EXPECT_TRUE(checked.in_precision.agrees()) << checked.in_precision.worst;
  }
}

// Gradients that are sent in bfloat16 differ from the model's by more than float32 can, and by no
// more than that rounds.
TEST(CheckStep, GradientsMayBeSummedInLowPrecision) {
  const auto backend = MakeCpuBackend();
  for (const UpdateMethod method : {UpdateMethod::kAllReduce, UpdateMethod::kSharded,
                                    UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    for (const bool pipelined : {false, true}) {
      SCOPED_TRACE(testing::Message() << UpdateMethodName(method) << pipelined);
      Plan plan = pipelined ? PipelinedPlan(DataType::kFloat32) : ShardedPlan(DataType::kFloat32);
      plan.update.method = method;
      plan.update.gradient_sums = DataType::kBFloat16;
      const Checked checked = Check(plan, backend.get());
      EXPECT_TRUE(checked.in_float32.agrees()) << checked.in_float32.worst;
      EXPECT_TRUE(checked.in_precision.agrees()) << checked.in_precision.worst;
      EXPECT_LT(checked.in_float32.max_rel_error, 1e-5);
      EXPECT_GT(checked.in_precision.max_rel_error, 1e-4);
      // Outputs are not rounded, nor are they allowed to be.
      for (const auto& [name, output] : checked.in_precision.outputs) {
        EXPECT_LT(output.bound, 1e-4 * output.norm) << name;
      }
    }
  }
}

// Casts to float16 are the identity for the reference evaluator, and rounding in every plan.
TEST(CheckStep, AModelMayRoundByItself) {
  Plan plan = ShardedPlan(DataType::kFloat32);
  const std::string cast = absl::StrCat("{to=", static_cast<int>(DataType::kFloat16), "}");
  plan.model.graph = Parsed(absl::StrCat(R"(
%0 = input "x" : f32[64,16]
%1 = cast(%0) )",
                                         cast, R"( : f16[64,16]
%2 = relu(%1) : f16[64,16]
output "y" = %2
)"));
  plan.model.loss.clear();
  plan.mode = "inference";
  plan.graph = plan.model.graph;
  plan.views = SequentialViews(plan.graph);
  plan.num_devices = 1;
  const auto backend = MakeCpuBackend();
  const HostValues weights, inputs = RandomInputs(plan.model.graph, 5);
  const auto checker = StepChecker::Make(plan, weights, inputs);
  ASSERT_TRUE(checker.ok()) << checker.status();
  const auto check = CheckInFloat32(*checker, plan, weights, inputs, backend.get(), {});
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_GT(check->comparison.max_rel_error, 1e-5);
  EXPECT_TRUE(check->comparison.agrees()) << check->comparison.of_worst.bound;
}

// Scores whose upper triangle is masked, and what a softmax makes of them.
TEST(CheckStep, MasksOfInfinityAndOfTheLeastNumberAreComparable) {
  constexpr int64_t kLength = 6;
  for (const float mask : {-std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::lowest(), -1e30F, -1e9F}) {
    for (const DataType precision : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      // An output that float16 makes infinite, where the model has a number, differs.
      if (precision == DataType::kFloat16 && !StandsForInfinity(mask)) continue;
      SCOPED_TRACE(testing::Message() << mask << " in " << PrecisionName(precision));
      Plan plan = ShardedPlan(precision);
      plan.model.graph = Parsed(R"(
%0 = input "x" : f32[6,6]
%1 = weight "w" : f32[6,6]
%2 = input "mask" : f32[6,6]
%3 = matmul(%0, %1) : f32[6,6]
%4 = add(%3, %2) : f32[6,6]
%5 = softmax(%4) {axis=1} : f32[6,6]
%6 = matmul(%5, %0) : f32[6,6]
%7 = mul(%6, %6) : f32[6,6]
%8 = reduce_sum(%7) {axes=[0,1], keepdims=0} : f32[]
output "scores" = %4
output "y" = %6
output "loss" = %8
)");
      plan.graph = plan.model.graph;
      plan.views = SequentialViews(plan.graph);
      plan.num_devices = 1;
      const auto weights = InitialWeights(plan.model, 3);
      ASSERT_TRUE(weights.ok()) << weights.status();
      HostValues inputs = RandomInputs(plan.model.graph, 4);
      for (int64_t i = 0; i < kLength * kLength; ++i) {
        inputs["mask"].data[i] = i % kLength > i / kLength ? mask : 0;
      }
      const auto backend = MakeCpuBackend();
      const auto checker = StepChecker::Make(plan, *weights, inputs);
      ASSERT_TRUE(checker.ok()) << checker.status();
      const auto step = FirstStep(plan, *weights, inputs, backend.get(), {});
      ASSERT_TRUE(step.ok()) << step.status();
      const auto check = checker->Check(step->values, step->rounding);
      ASSERT_TRUE(check.ok()) << check.status();
      EXPECT_TRUE(check->comparison.agrees()) << check->comparison.worst;
      EXPECT_TRUE(check->comparison.not_comparable.empty());
      // What is wrong beside a mask is found.
      StepValues wrong = step->values;
      wrong.outputs["y"].data[7] *= 1.5;
      const auto of_wrong = checker->Check(wrong, step->rounding);
      ASSERT_TRUE(of_wrong.ok()) << of_wrong.status();
      EXPECT_FALSE(of_wrong->comparison.agrees());
    }
  }
}

// Bounds are neither too narrow nor so wide that they say nothing: over many weights and inputs no
// error is above its bound, and the largest of all tensors of a step comes near to it.
TEST(CheckStep, BoundsAreNeitherTooNarrowNorTooWide) {
  constexpr int kSeeds = 60;
  for (DataType precision : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    SCOPED_TRACE(PrecisionName(precision));
    const auto backend = MakeCpuBackend();
    std::vector<double> nearest;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Checked checked = Check(ShardedPlan(precision), backend.get(), 100 * seed);
      EXPECT_TRUE(checked.in_precision.agrees()) << "seed " << seed;
      EXPECT_TRUE(checked.in_precision.not_comparable.empty()) << "seed " << seed;
      const Difference& worst = checked.in_precision.of_worst;
      nearest.push_back(worst.error / worst.bound);
    }
    std::sort(nearest.begin(), nearest.end());
    RecordProperty(std::string(PrecisionName(precision)), absl::StrCat(nearest.back()));
    EXPECT_LT(nearest.back(), 0.9);
    EXPECT_GT(nearest[kSeeds / 2], 0.02);
  }
}

}  // namespace
}  // namespace isomer
