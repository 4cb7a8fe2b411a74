// Optimizers against plain references in double, and the ways to keep copies equal against each
// other: to the bit.
#include "runtime/device/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/match.h"
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

struct Trial {
  OptimizerKind kind;
  OptimizerSettings settings;
};

// Every optimizer by itself, and with all of its settings changed.
std::vector<Trial> Trials() {
  std::vector<Trial> trials;
  for (const OptimizerTraits& traits : AllOptimizers()) {
    trials.push_back({traits.kind, traits.settings});
    trials.push_back({traits.kind,
                      {.momentum = 0.8,
                       .nesterov = traits.has_momentum,
                       .beta1 = 0.8,
                       .beta2 = 0.95,
                       .epsilon = 1e-3,
                       .weight_decay = 0.1}});
  }
  return trials;
}

std::string TrialName(const Trial& trial) {
  return absl::StrCat(OptimizerName(trial.kind), trial.settings.weight_decay > 0 ? "WithAll" : "");
}

// The formulas as their papers have them, in double, for one weight.
class InDouble {
 public:
  InDouble(const Trial& trial, double weight) : trial_(trial), w_(weight) {}

  double Step(double g, double rate) {
    const OptimizerSettings& o = trial_.settings;
    ++t_;
    switch (trial_.kind) {
      case OptimizerKind::kSgd:
        return w_ -= rate * (g + o.weight_decay * w_);
      case OptimizerKind::kMomentum:
        g += o.weight_decay * w_;
        m_ = o.momentum * m_ + g;
        return w_ -= rate * (o.nesterov ? g + o.momentum * m_ : m_);
      // Of a weight alone: LAMB's but for its factor, Muon's of what is no matrix.
      case OptimizerKind::kLamb:
      case OptimizerKind::kMuon:
      case OptimizerKind::kAdam: {
        m_ = o.beta1 * m_ + (1 - o.beta1) * g;
        v_ = o.beta2 * v_ + (1 - o.beta2) * g * g;
        const double mean = m_ / (1 - std::pow(o.beta1, t_));
        const double square = v_ / (1 - std::pow(o.beta2, t_));
        return w_ -= rate * (mean / (std::sqrt(square) + o.epsilon) + o.weight_decay * w_);
      }
      case OptimizerKind::kLion: {
        const double c = o.beta1 * m_ + (1 - o.beta1) * g;
        w_ -= rate * ((c > 0 ? 1 : c < 0 ? -1 : 0) + o.weight_decay * w_);
        m_ = o.beta2 * m_ + (1 - o.beta2) * g;
        return w_;
      }
      case OptimizerKind::kAdagrad:
        g += o.weight_decay * w_;
        v_ += g * g;
        return w_ -= rate * g / (std::sqrt(v_) + o.epsilon);
    }
    return w_;
  }

 private:
  Trial trial_;
  double w_, m_ = 0, v_ = 0;
  int t_ = 0;
};

// w after five steps with gradients sin(t + i), of weights that begin so.
std::vector<float> AfterFiveSteps(const UpdateRule& rule, std::vector<float> w, double scale) {
  const int size = static_cast<int>(w.size());
  std::vector<float> g(size), m(size, 0), v(size, 0);
  for (int t = 1; t <= 5; ++t) {
    for (int i = 0; i < size; ++i) g[i] = static_cast<float>(std::sin(t + i) / scale);
    UpdateWeights(
        rule,
        FactorsOf({.optimizer = rule, .number = t, .learning_rate = 0.05, .gradient_scale = scale}),
        {DataType::kFloat32, g.data()}, size, w.data(), w.data(), {m.data(), v.data()});
  }
  return w;
}

TEST(UpdateWeights, AgreesWithDoubleOverSteps) {
  constexpr int kSize = 17;
  std::vector<float> w(kSize);
  for (int i = 0; i < kSize; ++i) w[i] = static_cast<float>(0.1 * i);
  for (const Trial& trial : Trials()) {
    for (double scale : {1.0, 1.0 / 1024}) {
      for (bool decays : {true, false}) {
        UpdateRule rule(trial.kind, trial.settings);
        rule.decays = decays;
        Trial expected = trial;
        if (!decays) expected.settings.weight_decay = 0;
        const std::vector<float> found = AfterFiveSteps(rule, w, scale);
        for (int i = 0; i < kSize; ++i) {
          InDouble reference(expected, 0.1 * i);
          double last = 0;
          for (int t = 1; t <= 5; ++t) last = reference.Step(std::sin(t + i), 0.05);
          EXPECT_NEAR(found[i], last, 2e-6) << TrialName(trial) << " " << i;
        }
      }
    }
  }
}

// What torch 2 gives: SGD, AdamW and Adagrad of torch.optim, in float64.
TEST(UpdateWeights, AgreesWithPyTorch) {
  struct Known {
    Trial trial;
    std::vector<double> weights;
  };
  for (const Known& known : std::vector<Known>{
           {{OptimizerKind::kSgd, {.weight_decay = 0.1}},
            {0.4802112269057895, -0.2449477584973816, 2.0093764684962294}},
           {{OptimizerKind::kMomentum, {.momentum = 0.8, .weight_decay = 0.1}},
            {0.29950156021200963, -0.2612492155367989, 2.0811522747217284}},
           {{OptimizerKind::kMomentum, {.momentum = 0.8, .nesterov = true, .weight_decay = 0.1}},
            {0.3237748485467511, -0.212552913220463, 2.0734578822161973}},
           {{OptimizerKind::kAdam,
             {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1}},
            {0.3533269819508622, -0.33117577189343705, 2.0258506708708506}},
           {{OptimizerKind::kAdagrad, {.epsilon = 1e-10, .weight_decay = 0.1}},
            {0.456456414149795, -0.2808522934482639, 2.0018676149893624}}}) {
    const std::vector<float> found =
        AfterFiveSteps(UpdateRule(known.trial.kind, known.trial.settings), {0.5F, -0.3F, 2.0F}, 1);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], known.weights[i], 1e-6) << TrialName(known.trial) << " " << i;
    }
  }
}

// A weight that is no number does not stay as it was.
TEST(UpdateWeights, HideNoGradientThatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Trial& trial : Trials()) {
    float w = 1, m = 0, v = 0;
    const UpdateRule rule(trial.kind, trial.settings);
    UpdateWeights(rule, FactorsOf({.optimizer = rule, .learning_rate = 0.05}),
                  {DataType::kFloat32, &nan}, 1, &w, &w, {&m, &v});
    EXPECT_TRUE(std::isnan(w)) << TrialName(trial);
  }
}

TEST(OptimizerSettings, AreCheckedByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [settings, why] : std::vector<std::pair<OptimizerSettings, std::string>>{
           {{.momentum = 1}, "--momentum=1: a number from 0 and below 1 is expected"},
           {{.beta1 = -0.1}, "--beta1=-0.1: "},
           {{.beta2 = nan}, "--beta2=nan: "},
           {{.epsilon = 0}, "--epsilon=0: a positive number is expected"},
           {{.epsilon = 1e-50}, "--epsilon=1e-50: "},
           {{.weight_decay = -1}, "--weight_decay=-1: a number from 0 is expected"},
           {{.weight_decay = std::numeric_limits<double>::infinity()}, "--weight_decay=inf: "},
           {{.adam_rate = -1}, "--adam_rate=-1: a number from 0 is expected"},
           {{.momentum = 0, .nesterov = true}, "--nesterov: needs a --momentum above 0"}}) {
    EXPECT_TRUE(absl::StartsWith(CheckSettings(settings).message(), why)) << why;
  }
  for (const OptimizerTraits& traits : AllOptimizers()) {
    EXPECT_EQ(CheckSettings(traits.settings), absl::OkStatus()) << traits.name;
    EXPECT_EQ(&TraitsOf(traits.kind), &traits);
    EXPECT_EQ(ParseOptimizer(traits.name).value(), traits.kind);
    for (int s = 0; s < traits.num_states; ++s) EXPECT_NE(StateName(traits.kind, s), nullptr);
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
  for (OptimizerKind optimizer :
       {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kLion}) {
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

// A whole model on one device, against the reference evaluator's gradients and the formulas in
// double.
TEST(Optimizers, TrainAModelAsInDouble) {
  Model model;
  model.graph = Parsed(kMlp);
  model.loss = "loss";
  const auto backend = MakeCpuBackend();
  const auto initial = InitialWeights(model, 3);
  ASSERT_TRUE(initial.ok());
  for (const Trial& trial : Trials()) {
    // Others are tested by whole_updates_test.cc.
    if (TraitsOf(trial.kind).needs != UpdateNeeds::kElement) continue;
    ScheduleOptions options = TrainingOptions(1);
    options.update.optimizer = trial.kind;
    auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), options);
    ASSERT_TRUE(schedule.ok());
    auto job = Job::Start(model.graph, *schedule, backend.get(),
                          {.optimizer = trial.settings, .no_decay = ""});
    ASSERT_TRUE(job.ok());
    ASSERT_EQ((*job)->SetParameters(*initial), absl::OkStatus());
    HostValues w = *initial;
    std::map<std::string, std::vector<InDouble>> weights;
    for (const auto& [name, array] : w) {
      for (double value : array.data) weights[name].emplace_back(trial, value);
    }
    for (int t = 1; t <= 4; ++t) {
      const HostValues inputs = RandomInputs(model.graph, t);
      const auto step = ReferenceStep(model, w, inputs, true);
      ASSERT_TRUE(step.ok());
      for (const auto& [name, gradient] : step->gradients) {
        for (int64_t i = 0; i < gradient.size(); ++i) {
          w.at(name).data[i] = weights.at(name)[i].Step(gradient.data[i], 0.05);
        }
      }
      ASSERT_EQ((*job)->TrainStep(inputs, 0.05), absl::OkStatus());
    }
    const auto parameters = (*job)->Parameters();
    ASSERT_TRUE(parameters.ok());
    const StepValues expected{.outputs = w, .gradients = {}};
    const Comparison comparison =
        Compare(expected, {.outputs = *parameters, .gradients = {}}, ShareOf(expected, 2e-4));
    EXPECT_TRUE(comparison.agrees()) << TrialName(trial) << comparison.worst;
  }
}

}  // namespace
}  // namespace isomer
