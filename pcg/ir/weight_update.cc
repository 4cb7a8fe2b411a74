#include "pcg/ir/weight_update.h"

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

}  // namespace

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

int NumStates(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kMomentum:
      return 1;
    case OptimizerKind::kAdam:
      return 2;
  }
  return 0;
}

bool HasMaster(DataType dtype) {
  return dtype == DataType::kBFloat16 || dtype == DataType::kFloat16;
}

WeightBytes BytesOfWeight(DataType stored, OptimizerKind optimizer, bool low_precision_sums) {
  constexpr int64_t kFull = sizeof(float);
  const int64_t element = BytesPerElement(stored);
  const bool has_master = HasMaster(stored);
  WeightBytes bytes{
      .stored = element, .gradient = kFull, .reduced = low_precision_sums ? element : kFull};
  bytes.trained = (NumStates(optimizer) + (has_master ? 1 : 0)) * kFull;
  // The gradient is read, the weight written; what is trained is read and written.
  bytes.update = bytes.reduced + element + 2 * bytes.trained + (has_master ? 0 : element);
  return bytes;
}

double UpdateFlops(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 2;
    case OptimizerKind::kMomentum:
      return 4;
    case OptimizerKind::kAdam:
      return 14;  // The square root and the division count one each.
  }
  return 0;
}

const char* OptimizerName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kMomentum:
      return "momentum";
    case OptimizerKind::kAdam:
      return "adam";
  }
  return "?";
}

absl::StatusOr<OptimizerKind> ParseOptimizer(absl::string_view name) {
  for (OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    if (name == OptimizerName(kind)) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("optimizer '", name, "': there are sgd, momentum and adam"));
}

const char* UpdateMethodName(UpdateMethod method) { return TraitsOf(method).name; }

absl::StatusOr<UpdateMethod> ParseUpdateMethod(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const UpdateMethodTraits& traits : AllUpdateMethods()) {
    if (name == traits.name) return traits.method;
    names.push_back(traits.name);
  }
  const absl::string_view last = names.back();
  names.pop_back();
  return absl::InvalidArgumentError(
      absl::StrCat("update '", name, "': there are ", absl::StrJoin(names, ", "), " and ", last));
}

absl::Status CheckStepsBetweenFlushes(int64_t steps) {
  constexpr int64_t kMost = 1024;
  if (steps == 1 || (steps > 1 && steps <= kMost && steps % 2 == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      steps, " steps between flushes: 1 is expected, or an even number of at most ", kMost));
}

}  // namespace isomer
