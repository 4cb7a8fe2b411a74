#include "verifier/audit/foreign_rule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// No published rule comes near; beyond these a file is damaged or made to exhaust us.
constexpr int kMaxOperators = 48, kMaxInputs = 16;

struct ParameterBounds {
  int64_t least, most;
};

ParameterBounds BoundsOf(const std::string& parameter) {
  static const auto* const bounds = new std::map<std::string, ParameterBounds>{
      {"PM_NUM_INPUTS", {1, kMaxInputs}},
      {"PM_NUM_OUTPUTS", {1, kMaxInputs}},
      {"PM_GROUP", {1, 4096}},
      {"PM_KERNEL_H", {1, 64}},
      {"PM_KERNEL_W", {1, 64}},
      {"PM_STRIDE_H", {1, 64}},
      {"PM_STRIDE_W", {1, 64}},
      {"PM_PAD", {0, 1}},
      {"PM_NUMDIM", {1, 8}},
      {"PM_AXIS", {0, 7}},
      {"PM_PERM", {0, 16777215}},  // 8 dims: 8^8 - 1
      {"PM_PARALLEL_DIM", {0, 7}},
      {"PM_PARALLEL_DEGREE", {1, 1024}},
  };
  const auto found = bounds->find(parameter);
  return found == bounds->end() ? ParameterBounds{INT32_MIN, INT32_MAX} : found->second;
}

absl::Status CheckParameters(const ForeignOperator& op) {
  for (const auto& [name, value] : op.parameters) {
    const auto [least, most] = BoundsOf(name);
    if (value < least || value > most) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", value, ", not ", least, " to ", most));
    }
  }
  if (const auto inputs = op.Find("PM_NUM_INPUTS");
      inputs && *inputs != static_cast<int64_t>(op.inputs.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("PM_NUM_INPUTS is ", *inputs, " with ", op.inputs.size(), " inputs"));
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const std::vector<ForeignOperator>& ops, ForeignTensor tensor,
                         bool may_be_input) {
  const int count = static_cast<int>(ops.size());
  if (tensor.op >= count || (tensor.op < 0 && !may_be_input)) {
    return absl::InvalidArgumentError(absl::StrCat("is output ", tensor.output, " of operator ",
                                                   tensor.op, "; there are ", count, " operators"));
  }
  if (tensor.op < 0) {
    if (tensor.output >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("is the rule's input ", tensor.op, ", output ", tensor.output, " of it"));
  }
  const int outputs = NumOutputs(ops[tensor.op]);
  if (tensor.output < 0 || tensor.output >= outputs) {
    return absl::InvalidArgumentError(absl::StrCat("is output ", tensor.output, " of operator ",
                                                   tensor.op, ", which has ", outputs));
  }
  return absl::OkStatus();
}

absl::Status CheckSide(absl::string_view side, const std::vector<ForeignOperator>& ops) {
  if (ops.empty() || ops.size() > kMaxOperators) {
    return absl::InvalidArgumentError(
        absl::StrCat(side, " has ", ops.size(), " operators, not 1 to ", kMaxOperators));
  }
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    absl::Status status = CheckParameters(ops[i]);
    if (ops[i].inputs.size() > kMaxInputs) {
      status = absl::InvalidArgumentError(absl::StrCat("has ", ops[i].inputs.size(), " inputs"));
    }
    for (size_t j = 0; j < ops[i].inputs.size() && status.ok(); ++j) {
      status = CheckTensor(ops, ops[i].inputs[j], /*may_be_input=*/true);
      if (!status.ok()) {
        status = absl::InvalidArgumentError(absl::StrCat("input ", j, " ", status.message()));
      }
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(LabelOf(side, i, ops[i]), ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

// The new place of each operator.
absl::StatusOr<std::vector<int>> Sort(absl::string_view side, std::vector<ForeignOperator>* ops) {
  const int count = static_cast<int>(ops->size());
  std::vector<int> place(count, -1);
  std::vector<ForeignOperator> sorted;
  while (static_cast<int>(sorted.size()) < count) {
    const size_t before = sorted.size();
    for (int i = 0; i < count; ++i) {
      const auto& inputs = (*ops)[i].inputs;
      const bool ready = std::all_of(inputs.begin(), inputs.end(),
                                     [&](ForeignTensor t) { return t.op < 0 || place[t.op] >= 0; });
      if (place[i] >= 0 || !ready) continue;
      place[i] = static_cast<int>(sorted.size());
      sorted.push_back((*ops)[i]);
    }
    if (sorted.size() > before) continue;
    const auto stuck = std::find(place.begin(), place.end(), -1) - place.begin();
    return absl::InvalidArgumentError(
        absl::StrCat(LabelOf(side, stuck, (*ops)[stuck]), ": is on a cycle, or after one"));
  }
  for (ForeignOperator& op : sorted) {
    for (ForeignTensor& input : op.inputs) {
      if (input.op >= 0) input.op = place[input.op];
    }
  }
  *ops = std::move(sorted);
  return place;
}

}  // namespace

std::optional<int64_t> ForeignOperator::Find(const std::string& parameter) const {
  const auto found = parameters.find(parameter);
  return found == parameters.end() ? std::nullopt : std::optional(found->second);
}

int NumOutputs(const ForeignOperator& op) {
  if (op.type != "OP_SPLIT") return 1;
  return static_cast<int>(op.Find("PM_NUM_OUTPUTS").value_or(2));
}

std::string LabelOf(absl::string_view side, int index, const ForeignOperator& op) {
  return absl::StrCat(side, " operator ", index, " (", op.type, ")");
}

absl::Status CheckAndSort(ForeignRule* rule) {
  ISOMER_RETURN_IF_ERROR(CheckSide("source", rule->source));
  ISOMER_RETURN_IF_ERROR(CheckSide("target", rule->target));
  if (rule->outputs.empty()) return absl::InvalidArgumentError("maps no output");
  for (size_t i = 0; i < rule->outputs.size(); ++i) {
    for (bool of_source : {true, false}) {
      const ForeignTensor tensor = of_source ? rule->outputs[i].first : rule->outputs[i].second;
      const absl::Status status =
          CheckTensor(of_source ? rule->source : rule->target, tensor, /*may_be_input=*/false);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "mapped output ", i, " of the ", of_source ? "source " : "target ", status.message()));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int> sources, Sort("source", &rule->source));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<int> targets, Sort("target", &rule->target));
  for (auto& [source, target] : rule->outputs) {
    source.op = sources[source.op];
    target.op = targets[target.op];
  }
  return absl::OkStatus();
}

}  // namespace isomer
