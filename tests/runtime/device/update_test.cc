// Optimizers against plain references in double, and the ways to keep copies equal against each
// other: to the bit.
#include "runtime/device/update.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

// w after each of five steps, in double, with gradients sin(t + i).
std::vector<double> Reference(OptimizerKind optimizer, double rate, int size) {
  std::vector<double> w(size), m(size, 0), v(size, 0);
  for (int i = 0; i < size; ++i) w[i] = 0.1 * i;
  for (int t = 1; t <= 5; ++t) {
    for (int i = 0; i < size; ++i) {
      const double g = std::sin(t + i);
      if (optimizer == OptimizerKind::kSgd) {
        w[i] -= rate * g;
      } else if (optimizer == OptimizerKind::kMomentum) {
        m[i] = 0.9 * m[i] + g;
        w[i] -= rate * m[i];
      } else {
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        const double mean = m[i] / (1 - std::pow(0.9, t));
        const double square = v[i] / (1 - std::pow(0.999, t));
        w[i] -= rate * mean / (std::sqrt(square) + 1e-8);
      }
    }
  }
  return w;
}

TEST(UpdateWeights, AgreesWithDoubleOverSteps) {
  constexpr int kSize = 17;
  for (OptimizerKind optimizer :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    for (double scale : {1.0, 1.0 / 1024}) {
      std::vector<float> w(kSize), g(kSize), m(kSize, 0), v(kSize, 0);
      for (int i = 0; i < kSize; ++i) w[i] = static_cast<float>(0.1 * i);
      for (int t = 1; t <= 5; ++t) {
        for (int i = 0; i < kSize; ++i) g[i] = static_cast<float>(std::sin(t + i) / scale);
        UpdateWeights(optimizer,
                      FactorsOf({.optimizer = optimizer,
                                 .number = t,
                                 .learning_rate = 0.05,
                                 .gradient_scale = scale}),
                      {DataType::kFloat32, g.data()}, kSize, w.data(), w.data(),
                      {m.data(), v.data()});
      }
      const std::vector<double> expected = Reference(optimizer, 0.05, kSize);
      for (int i = 0; i < kSize; ++i) {
        EXPECT_NEAR(w[i], expected[i], 2e-6) << OptimizerName(optimizer) << " " << i;
      }
    }
  }
}

// Parameters after three steps, or those of the first failure.
HostValues Trained(const std::string& sequential, const std::string& parallel,
                   const std::map<int, std::vector<int64_t>>& strides, int64_t devices,
                   const UpdateOptions& update, HostValues* gradients) {
  Model model;
  model.graph = Parsed(sequential);
  model.loss = "loss";
  const Graph graph = Parsed(parallel);
  ScheduleOptions options = TrainingOptions(devices);
  options.update = update;
  auto schedule = LowerGraph(graph, ViewsOf(graph, strides), options);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(graph, *schedule), absl::OkStatus());
  const auto backend = MakeCpuBackend();
  auto job = Job::Start(graph, *schedule, backend.get());
  EXPECT_TRUE(job.ok()) << job.status();
  const auto weights = InitialWeights(model, 3);
  EXPECT_TRUE(weights.ok());
  // The first round is forgotten: its states, too.
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ((*job)->SetParameters(*weights), absl::OkStatus());
    for (int step = 0; step < 2; ++step) {
      EXPECT_EQ((*job)->TrainStep(RandomInputs(model.graph, 5 + step), 0.1), absl::OkStatus());
    }
  }
  auto of_last_step = (*job)->Gradients();
  auto parameters = (*job)->Parameters();
  EXPECT_TRUE(of_last_step.ok() && parameters.ok());
  *gradients = *of_last_step;
  return *parameters;
}

void ExpectSameBits(const HostValues& expected, const HostValues& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (const auto& [name, value] : expected) EXPECT_EQ(value.data, actual.at(name).data) << name;
}

std::vector<UpdateOptions> Ways(OptimizerKind optimizer) {
  std::vector<UpdateOptions> ways;
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    for (int64_t bucket_bytes : {0, 1 << 20}) {
      ways.push_back({.optimizer = optimizer, .method = method, .bucket_bytes = bucket_bytes});
    }
    ways.push_back({.optimizer = optimizer,
                    .method = method,
                    .bucket_bytes = 0,
                    .immediate = true,
                    .states_on_host = true});
  }
  return ways;
}

void ExpectSameBitsInAllWays(const std::string& sequential, const std::string& parallel,
                             const std::map<int, std::vector<int64_t>>& strides, int64_t devices,
                             OptimizerKind optimizer) {
  HostValues expected, expected_gradients;
  for (const UpdateOptions& way : Ways(optimizer)) {
    SCOPED_TRACE(absl::StrCat(OptimizerName(optimizer), " on ", devices, " devices, ",
                              UpdateMethodName(way.method), " ", way.bucket_bytes,
                              way.immediate ? " at once" : ""));
    HostValues gradients;
    const HostValues parameters = Trained(sequential, parallel, strides, devices, way, &gradients);
    if (expected.empty()) {
      expected = parameters;
      expected_gradients = gradients;
    }
    ExpectSameBits(expected, parameters);
    ExpectSameBits(expected_gradients, gradients);
  }
}

class UpdateWays : public testing::TestWithParam<ParallelCase> {};

TEST_P(UpdateWays, GiveTheSameBits) {
  const ParallelCase& c = GetParam();
  for (OptimizerKind optimizer : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    ExpectSameBitsInAllWays(c.sequential, c.parallel, c.strides, c.num_devices, optimizer);
  }
}

INSTANTIATE_TEST_SUITE_P(Parallel, UpdateWays, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

// One arrangement for 2 and 3 devices; columns of the second weight are cut, which lie apart.
constexpr char kTwoWeights[] = R"(
%0 = input "x" : f32[6,5]
%1 = weight "w1" : f32[5,7]
%2 = weight "w2" : f32[7,12]
%3 = input "labels" : i64[6]
%4 = matmul(%0, %1) : f32[6,7]
%5 = matmul(%4, %2) : f32[6,12]
%6 = cross_entropy(%5, %3) : f32[]
output "loss" = %6
)";
constexpr char kTwoWeightsParallel[] = R"(
%0 = input "x" : f32[6,5]
%1 = weight "w1" : f32[5,7]
%2 = weight "w2" : f32[7,12]
%3 = input "labels" : i64[6]
%4 = partition(%0) {axis=0, degree=N} : f32[6:N,5]
%5 = replicate(%1) {degree=N} : f32[5,7] cN
%6 = replicate(%2) {degree=N} : f32[7,12] cN
%7 = partition(%3) {axis=0, degree=N} : i64[6:N]
%8 = matmul(%4, %5) : f32[6:N,7]
%9 = matmul(%8, %6) : f32[6:N,12]
%10 = cross_entropy(%9, %7) : f32[] pN
%11 = reduce(%10) {degree=N} : f32[]
output "loss" = %11
)";

TEST(UpdateWaysOfTypes, GiveTheSameBitsOnTwoAndThreeDevices) {
  for (const std::string type : {"f32", "bf16", "f16"}) {
    for (int devices : {2, 3}) {
      if (type != "f32" && devices == 2) continue;
      const std::string sequential = absl::StrReplaceAll(kTwoWeights, {{"f32", type}});
      const std::string parallel =
          absl::StrReplaceAll(kTwoWeightsParallel, {{"f32", type}, {"N", absl::StrCat(devices)}});
      SCOPED_TRACE(type);
      ExpectSameBitsInAllWays(sequential, parallel, {}, devices, OptimizerKind::kAdam);
    }
  }
}

// Six devices divide no dim of 10 x 9 or 9 x 4: slices are cut from both dims.
TEST(UpdateWaysOfTypes, GiveTheSameBitsWhereBothDimsAreCut) {
  const std::vector<std::pair<std::string, std::string>> sizes = {
      {"[5,7]", "[10,9]"}, {"[7,12]", "[9,4]"}, {",5]", ",10]"}, {",7]", ",9]"}, {",12]", ",4]"}};
  const std::string sequential = absl::StrReplaceAll(kTwoWeights, sizes);
  const std::string parallel =
      absl::StrReplaceAll(absl::StrReplaceAll(kTwoWeightsParallel, {{"N", "6"}}), sizes);
  ExpectSameBitsInAllWays(sequential, parallel, {}, 6, OptimizerKind::kAdam);
}

// A whole model on one device, against the reference evaluator's gradients and Adam in double.
TEST(Optimizers, TrainAModelAsInDouble) {
  Model model;
  model.graph = Parsed(kMlp);
  model.loss = "loss";
  const auto backend = MakeCpuBackend();
  const auto initial = InitialWeights(model, 3);
  ASSERT_TRUE(initial.ok());
  for (OptimizerKind optimizer : {OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    ScheduleOptions options = TrainingOptions(1);
    options.update.optimizer = optimizer;
    auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), options);
    ASSERT_TRUE(schedule.ok());
    auto job = Job::Start(model.graph, *schedule, backend.get());
    ASSERT_TRUE(job.ok());
    ASSERT_EQ((*job)->SetParameters(*initial), absl::OkStatus());
    HostValues w = *initial, m = *initial, v = *initial;
    for (auto* state : {&m, &v}) {
      for (auto& [name, array] : *state) std::fill(array.data.begin(), array.data.end(), 0);
    }
    for (int t = 1; t <= 4; ++t) {
      const HostValues inputs = RandomInputs(model.graph, t);
      const auto step = ReferenceStep(model, w, inputs, true);
      ASSERT_TRUE(step.ok());
      for (const auto& [name, gradient] : step->gradients) {
        for (int64_t i = 0; i < gradient.size(); ++i) {
          double &mean = m.at(name).data[i], &square = v.at(name).data[i];
          const double g = gradient.data[i];
          if (optimizer == OptimizerKind::kMomentum) {
            mean = 0.9 * mean + g;
            w.at(name).data[i] -= 0.05 * mean;
          } else {
            mean = 0.9 * mean + 0.1 * g;
            square = 0.999 * square + 0.001 * g * g;
            w.at(name).data[i] -= 0.05 * mean / (1 - std::pow(0.9, t)) /
                                  (std::sqrt(square / (1 - std::pow(0.999, t))) + 1e-8);
          }
        }
      }
      ASSERT_EQ((*job)->TrainStep(inputs, 0.05), absl::OkStatus());
    }
    const auto parameters = (*job)->Parameters();
    ASSERT_TRUE(parameters.ok());
    const StepValues expected{.outputs = w, .gradients = {}};
    const Comparison comparison =
        Compare(expected, {.outputs = *parameters, .gradients = {}}, ShareOf(expected, 2e-4));
    EXPECT_TRUE(comparison.agrees()) << OptimizerName(optimizer) << comparison.worst;
  }
}

}  // namespace
}  // namespace isomer
