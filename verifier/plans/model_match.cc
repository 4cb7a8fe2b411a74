#include "verifier/plans/model_match.h"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status Differs(const std::string& what, const std::string& own, const std::string& of_plan) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is ", own, " in the model and ", of_plan, " in the plan's"));
}

absl::Status ExpectSameNode(const Graph& own, const Graph& of_plan, NodeId id) {
  const Node &a = own.node(id), &b = of_plan.node(id);
  const std::string label = own.Label(id);
  if (a.op != b.op) return Differs(label, a.op.ToString(), b.op.ToString());
  if (IsLeaf(a.op.kind()) && a.name != b.name) return Differs(label, a.name, b.name);
  if (a.inputs != b.inputs) {
    return absl::FailedPreconditionError(
        absl::StrCat(label, " has other operands in the plan's model"));
  }
  for (size_t o = 0; o < a.outputs.size(); ++o) {
    if (a.outputs[o] == b.outputs[o]) continue;
    return Differs(label, a.outputs[o].ToString(), b.outputs[o].ToString());
  }
  return absl::OkStatus();
}

// Bit by bit, so that NaN is NaN.
absl::Status ExpectSameValues(const std::string& name, const StoredValues& own,
                              const StoredValues& of_plan) {
  if (own.size() != of_plan.size()) {
    return Differs(absl::StrCat("the number of values of ", name), absl::StrCat(own.size()),
                   absl::StrCat(of_plan.size()));
  }
  for (size_t i = 0; i < own.size(); ++i) {
    if (std::bit_cast<uint32_t>(own[i]) == std::bit_cast<uint32_t>(of_plan[i])) continue;
    return Differs(absl::StrCat("value ", i, " of ", name), absl::StrCat(own[i]),
                   absl::StrCat(of_plan[i]));
  }
  return absl::OkStatus();
}

std::string Listed(const std::vector<std::string>& lines) {
  return lines.empty() ? "nothing" : absl::StrCat("'", absl::StrJoin(lines, "', '"), "'");
}

}  // namespace

absl::Status ExpectSameModel(const Model& own, const Model& of_plan) {
  if (own.graph.num_nodes() != of_plan.graph.num_nodes()) {
    return Differs("the number of nodes", absl::StrCat(own.graph.num_nodes()),
                   absl::StrCat(of_plan.graph.num_nodes()));
  }
  for (int id = 0; id < own.graph.num_nodes(); ++id) {
    ISOMER_RETURN_IF_ERROR(ExpectSameNode(own.graph, of_plan.graph, NodeId{id}));
  }
  const auto &outputs = own.graph.outputs(), &others = of_plan.graph.outputs();
  if (outputs.size() != others.size()) {
    return Differs("the number of outputs", absl::StrCat(outputs.size()),
                   absl::StrCat(others.size()));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].name != others[o].name) {
      return Differs(absl::StrCat("output ", o), outputs[o].name, others[o].name);
    }
    if (outputs[o].tensor != others[o].tensor) {
      return absl::FailedPreconditionError(
          absl::StrCat("output ", outputs[o].name, " is another tensor in the plan's model"));
    }
  }
  if (own.loss != of_plan.loss) {
    return Differs("the loss", absl::StrCat("'", own.loss, "'"),
                   absl::StrCat("'", of_plan.loss, "'"));
  }
  if (own.assumptions != of_plan.assumptions) {
    return Differs("what is assumed", Listed(own.assumptions), Listed(of_plan.assumptions));
  }
  if (own.statistics != of_plan.statistics) {
    return absl::FailedPreconditionError("batch statistics are others in the plan's model");
  }
  for (const auto& [name, values] : own.weights) {
    const auto at = of_plan.weights.find(name);
    if (at == of_plan.weights.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the values of ", name, " are not in the plan's model"));
    }
    const FileRange* const file = values.file();
    if (file != nullptr && at->second.file() != nullptr && *file == *at->second.file()) continue;
    ISOMER_RETURN_IF_ERROR(ExpectSameValues(name, values, at->second));
  }
  for (const auto& [name, values] : of_plan.weights) {
    if (own.weights.count(name) == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the plan's model has values of ", name, ", and the model has none"));
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
