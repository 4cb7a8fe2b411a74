#include "generator/enumeration/chance.h"

#include <algorithm>

#include "generator/assignments/trial.h"

namespace isomer {
namespace {

// Far above what rounding makes of the few operators of a candidate, far below what false equations
// differ by.
constexpr double kRounding = 1e-6;

bool AgreeOverNumbers(const Rule& rule, const Binding& binding, Random* random) {
  // A step that rounding took another way is none twice.
  for (int draw = 0; draw < 2; ++draw) {
    const auto difference = LargestRelativeDifference(rule, binding, random);
    if (!difference.ok() || *difference < kRounding) return true;
  }
  return false;
}

// The smallest size of a dim of several elements; 1: there is none.
int64_t SmallestSize(const std::vector<TensorType>& types) {
  int64_t smallest = 1;
  for (const TensorType& type : types) {
    for (const Dim& dim : type.dims) {
      if (dim.size > 1 && (smallest == 1 || dim.size < smallest)) smallest = dim.size;
    }
  }
  return smallest;
}

// With as many elements as others have in dims of one. nullopt: no dim has one.
std::optional<Binding> Widened(const Binding& binding) {
  const int64_t size = SmallestSize(binding.inputs);
  Binding wide = binding;
  for (TensorType& type : wide.inputs) {
    for (Dim& dim : type.dims) dim.size = dim.size == 1 ? size : dim.size;
  }
  return wide.inputs == binding.inputs ? std::nullopt : std::optional(wide);
}

}  // namespace

std::optional<std::string> FailsElsewhere(const Candidate& candidate, TypeOracle* oracle,
                                          Random* random) {
  const Rule rule = ConstantRule(candidate);
  Binding binding;
  binding.inputs = candidate.inputs;
  const absl::StatusOr<bool> agree = ValuesAgree(rule, binding, random);
  if (!agree.ok() || !*agree) return "differs on fresh inputs";
  if (!AgreeOverNumbers(rule, binding, random)) return "differs over numbers";
  // Other types there say nothing: of a broadcast operand it may be a rule that it has one element.
  const std::optional<Binding> wide = Widened(binding);
  if (!wide || !TypesAgree(rule, *wide, oracle)) return std::nullopt;
  const absl::StatusOr<bool> agree_there = ValuesAgree(rule, *wide, random);
  if (agree_there.ok() && !*agree_there) return "holds of one element alone";
  return std::nullopt;
}

}  // namespace isomer
