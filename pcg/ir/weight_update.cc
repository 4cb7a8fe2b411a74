#include "pcg/ir/weight_update.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace isomer {

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

const char* UpdateMethodName(UpdateMethod method) {
  switch (method) {
    case UpdateMethod::kAllReduce:
      return "all_reduce";
    case UpdateMethod::kSharded:
      return "sharded";
    case UpdateMethod::kShardedGradients:
      return "sharded_gradients";
    case UpdateMethod::kShardedWeights:
      return "sharded_weights";
    case UpdateMethod::kOwner:
      return "owner";
  }
  return "?";
}

absl::StatusOr<UpdateMethod> ParseUpdateMethod(absl::string_view name) {
  for (UpdateMethod method :
       {UpdateMethod::kAllReduce, UpdateMethod::kSharded, UpdateMethod::kShardedGradients,
        UpdateMethod::kShardedWeights, UpdateMethod::kOwner}) {
    if (name == UpdateMethodName(method)) return method;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "update '", name,
      "': there are all_reduce, sharded, sharded_gradients, sharded_weights and owner"));
}

absl::Status CheckStepsBetweenFlushes(int64_t steps) {
  constexpr int64_t kMost = 1024;
  if (steps == 1 || (steps > 1 && steps <= kMost && steps % 2 == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      steps, " steps between flushes: 1 is expected, or an even number of at most ", kMost));
}

}  // namespace isomer
