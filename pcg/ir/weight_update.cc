#include "pcg/ir/weight_update.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {

namespace {

using Sum = UpdateMethodTraits::Sum;
using Spread = UpdateMethodTraits::Spread;
using Times = UpdateMethodTraits::Times;

constexpr UpdateMethodTraits kUpdateMethods[] = {
    {.method = UpdateMethod::kAllReduce,
     .name = "all_reduce",
     .zero_stage = 0,
     .splits_trained = false,
     .splits_gradient = false,
     .splits_weight = false,
     .sum = Sum::kAllReduce,
     .sums = Times::kStep,
     .spread = Spread::kNothing,
     .spreads = Times::kStep},
    {.method = UpdateMethod::kSharded,
     .name = "sharded",
     .zero_stage = 1,
     .splits_trained = true,
     .splits_gradient = false,
     .splits_weight = false,
     .sum = Sum::kReduceScatter,
     .sums = Times::kStep,
     .spread = Spread::kAllGather,
     .spreads = Times::kStep},
    {.method = UpdateMethod::kShardedGradients,
     .name = "sharded_gradients",
     .zero_stage = 2,
     .splits_trained = true,
     .splits_gradient = true,
     .splits_weight = false,
     .sum = Sum::kReduceScatter,
     .sums = Times::kMicroBatch,
     .spread = Spread::kAllGather,
     .spreads = Times::kStep},
    {.method = UpdateMethod::kShardedWeights,
     .name = "sharded_weights",
     .zero_stage = 3,
     .splits_trained = true,
     .splits_gradient = true,
     .splits_weight = true,
     .sum = Sum::kReduceScatter,
     .sums = Times::kMicroBatch,
     .spread = Spread::kAllGather,
     .spreads = Times::kPass},
    // What is trained lies with one of the devices, as a whole.
    {.method = UpdateMethod::kOwner,
     .name = "owner",
     .zero_stage = 0,
     .splits_trained = false,
     .splits_gradient = false,
     .splits_weight = false,
     .sum = Sum::kReduce,
     .sums = Times::kStep,
     .spread = Spread::kBroadcast,
     .spreads = Times::kStep},
};

constexpr OptimizerTraits kOptimizers[] = {
    {.kind = OptimizerKind::kSgd,
     .name = "sgd",
     .num_states = 0,
     .states = {},
     .flops = 2,
     .has_momentum = false,
     .has_betas = false,
     .has_epsilon = false,
     .decays_weight = false,
     .needs = UpdateNeeds::kElement,
     .settings = {}},
    {.kind = OptimizerKind::kMomentum,
     .name = "momentum",
     .num_states = 1,
     .states = {"momentum"},
     .flops = 4,
     .has_momentum = true,
     .has_betas = false,
     .has_epsilon = false,
     .decays_weight = false,
     .needs = UpdateNeeds::kElement,
     .settings = {}},
    {.kind = OptimizerKind::kAdam,
     .name = "adam",
     .num_states = 2,
     .states = {"adam_mean", "adam_square"},
     .flops = 14,
     .has_momentum = false,
     .has_betas = true,
     .has_epsilon = true,
     .decays_weight = true,
     .needs = UpdateNeeds::kElement,
     .settings = {}},
    {.kind = OptimizerKind::kLion,
     .name = "lion",
     .num_states = 1,
     .states = {"lion_mean"},
     .flops = 9,
     .has_momentum = false,
     .has_betas = true,
     .has_epsilon = false,
     .decays_weight = true,
     .needs = UpdateNeeds::kElement,
     .settings = {.beta2 = 0.99}},
    {.kind = OptimizerKind::kAdagrad,
     .name = "adagrad",
     .num_states = 1,
     .states = {"adagrad_sum"},
     .flops = 7,
     .has_momentum = false,
     .has_betas = false,
     .has_epsilon = true,
     .decays_weight = false,
     .needs = UpdateNeeds::kElement,
     .settings = {.epsilon = 1e-10}},
    {.kind = OptimizerKind::kLamb,
     .name = "lamb",
     .num_states = 2,
     .states = {"lamb_mean", "lamb_square"},
     .flops = 32,
     .has_momentum = false,
     .has_betas = true,
     .has_epsilon = true,
     .decays_weight = true,
     .needs = UpdateNeeds::kNorms,
     .settings = {.epsilon = 1e-6}},
    // Of a matrix the second state is what its momentum becomes when it is orthogonalised.
    {.kind = OptimizerKind::kMuon,
     .name = "muon",
     .num_states = 2,
     .states = {"muon_mean", "muon_square"},
     .flops = 14,
     .has_momentum = true,
     .has_betas = true,
     .has_epsilon = true,
     .decays_weight = true,
     .needs = UpdateNeeds::kMatrix,
     .settings = {.momentum = 0.95, .nesterov = true}},
};

absl::Status RefuseSetting(const char* name, double value, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, "=", value, ": ", expected, " is expected"));
}

// "a, b and c"
std::string Enumerated(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", names.back());
}

}  // namespace

absl::Span<const OptimizerTraits> AllOptimizers() { return kOptimizers; }

const OptimizerTraits& TraitsOf(OptimizerKind kind) { return kOptimizers[static_cast<int>(kind)]; }

// What is computed in float32 is neither zero nor infinite there.
absl::Status CheckSettings(const OptimizerSettings& settings) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  constexpr double kMost = std::numeric_limits<float>::max();
  for (const auto& [name, value] :
       {std::pair("momentum", settings.momentum), std::pair("beta1", settings.beta1),
        std::pair("beta2", settings.beta2)}) {
    if (!(value >= 0 && value < 1)) {
      return RefuseSetting(name, value, "a number from 0 and below 1");
    }
  }
  if (!(settings.epsilon >= kLeast && settings.epsilon <= kMost)) {
    return RefuseSetting("epsilon", settings.epsilon, "a positive number");
  }
  if (!(settings.weight_decay >= 0 && settings.weight_decay <= kMost)) {
    return RefuseSetting("weight_decay", settings.weight_decay, "a number from 0");
  }
  if (!(settings.adam_rate >= 0 && settings.adam_rate <= kMost)) {
    return RefuseSetting("adam_rate", settings.adam_rate, "a number from 0");
  }
  if (!settings.nesterov || settings.momentum > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("--nesterov: needs a --momentum above 0");
}

absl::Span<const UpdateMethodTraits> AllUpdateMethods() { return kUpdateMethods; }

const UpdateMethodTraits& TraitsOf(UpdateMethod method) {
  return kUpdateMethods[static_cast<int>(method)];
}

std::vector<UpdateMethod> ZeroMethods(int64_t micro_batches) {
  std::vector<UpdateMethod> methods;
  for (const UpdateMethodTraits& traits : kUpdateMethods) {
    if (traits.zero_stage == 0 || (traits.zero_stage == 2 && micro_batches == 1)) continue;
    methods.push_back(traits.method);
  }
  return methods;
}

int NumStates(OptimizerKind kind) { return TraitsOf(kind).num_states; }

const char* StateName(OptimizerKind kind, int state) {
  const OptimizerTraits& traits = TraitsOf(kind);
  return state < traits.num_states ? traits.states[state] : "average";
}

double UpdateFlops(OptimizerKind kind) { return TraitsOf(kind).flops; }

double UpdateFlops(OptimizerKind kind, absl::Span<const int64_t> shape) {
  double numbers = 1, each = UpdateFlops(kind);
  for (int64_t size : shape) numbers *= static_cast<double>(size);
  if (TraitsOf(kind).needs == UpdateNeeds::kMatrix && shape.size() == 2 && numbers > 0) {
    // Of each iteration X X', its square, and that times X, all of the shorter side.
    constexpr double kIterations = 5;
    const double rows = static_cast<double>(std::min(shape[0], shape[1]));
    each += kIterations * (4 * rows + 2 * rows * rows * rows / numbers);
  }
  return each * numbers;
}

bool HasMaster(DataType dtype) {
  return dtype == DataType::kBFloat16 || dtype == DataType::kFloat16;
}

WeightBytes BytesOfWeight(DataType stored, OptimizerKind optimizer, DataType gradient_sums,
                          bool averages, bool clips, DataType states) {
  constexpr int64_t kFull = sizeof(float);
  const int64_t element = BytesPerElement(stored);
  const bool has_master = HasMaster(stored);
  WeightBytes bytes{
      .stored = element, .gradient = kFull, .reduced = BytesPerElement(gradient_sums)};
  bytes.trained = NumStates(optimizer) * BytesPerElement(states) +
                  ((averages ? 1 : 0) + (has_master ? 1 : 0)) * kFull;
  // The gradient is read, the weight written; what is trained is read and written.
  bytes.update = bytes.reduced + element + 2 * bytes.trained + (has_master ? 0 : element);
  if (clips) bytes.update += bytes.reduced;
  // What it depends on is found by one more look at all that is read.
  if (TraitsOf(optimizer).needs != UpdateNeeds::kElement) {
    bytes.update += bytes.reduced + bytes.trained + (has_master ? 0 : element);
  }
  return bytes;
}

const char* OptimizerName(OptimizerKind kind) { return TraitsOf(kind).name; }

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names;
  for (const OptimizerTraits& traits : kOptimizers) names.push_back(traits.name);
  return names;
}

absl::StatusOr<OptimizerKind> ParseOptimizer(absl::string_view name) {
  for (const OptimizerTraits& traits : kOptimizers) {
    if (name == traits.name) return traits.kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer '", name, "': there are ", Enumerated(OptimizerNames())));
}

const char* UpdateMethodName(UpdateMethod method) { return TraitsOf(method).name; }

absl::StatusOr<UpdateMethod> ParseUpdateMethod(absl::string_view name) {
  std::vector<std::string> names;
  for (const UpdateMethodTraits& traits : AllUpdateMethods()) {
    if (name == traits.name) return traits.method;
    names.push_back(traits.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("update '", name, "': there are ", Enumerated(names)));
}

absl::Status CheckStepsBetweenFlushes(int64_t steps) {
  constexpr int64_t kMost = 1024;
  if (steps == 1 || (steps > 1 && steps <= kMost && steps % 2 == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      steps, " steps between flushes: 1 is expected, or an even number of at most ", kMost));
}

absl::Status CheckGoTogether(const UpdateOptions& update) {
  if (update.state_precision != DataType::kFloat32) {
    const OptimizerTraits& traits = TraitsOf(update.optimizer);
    if (update.state_precision != DataType::kBFloat16) {
      return absl::InvalidArgumentError("states of the optimizer are float32 or bfloat16");
    }
    if (traits.kind == OptimizerKind::kAdagrad) {
      return absl::InvalidArgumentError(
          "states in bfloat16: adagrad's sums only grow, and would soon lose what is added");
    }
    if (traits.num_states == 0 || traits.needs != UpdateNeeds::kElement) {
      return absl::InvalidArgumentError(absl::StrCat(
          "states in bfloat16: the optimizer ", traits.name,
          traits.num_states == 0 ? " has none" : " does not update each number by itself"));
    }
  }
  if (update.steps_between_flushes == 1) return absl::OkStatus();
  const bool waits = update.all_gradients_first();
  if (!waits && !update.averages) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(update.steps_between_flushes, " steps between flushes: do not go with ",
                   update.averages ? "averaged weights"
                   : update.clips  ? "clipping"
                                  : absl::StrCat("the optimizer ", OptimizerName(update.optimizer)),
                   waits ? ", for which all gradients of a step must be known" : ""));
}

}  // namespace isomer
