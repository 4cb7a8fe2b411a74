#include "verifier/certificate/stated_step.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status Refused(const std::string& why) { return absl::FailedPreconditionError(why); }

class StatedReplay {
 public:
  StatedReplay(const DerivationStep& step, ReplayGraph* graph)
      : step_(step), graph_(*graph), first_new_{graph->num_nodes()} {}

  absl::Status Run(SideCheck equal) {
    if (!step_.inputs.empty() || !step_.variables.empty() || !step_.numbers.empty() ||
        !step_.attributes.empty()) {
      return Refused("it has inputs or variables, but no rule");
    }
    ISOMER_RETURN_IF_ERROR(graph_.CheckReplaceable(step_.nodes));
    for (NodeId id : step_.nodes) ISOMER_RETURN_IF_ERROR(AddToSource(id));
    for (const AddedCall& call : step_.calls) ISOMER_RETURN_IF_ERROR(AddToTarget(call));
    ISOMER_RETURN_IF_ERROR(Replace());
    return equal(source_, target_, numbers_);
  }

 private:
  // The reference of a tensor that both sides take from outside.
  PatternRef Outside(TensorRef tensor) {
    const auto [at, is_new] = outside_.try_emplace(tensor, static_cast<int>(outside_.size()));
    if (!is_new) return PatternRef::Input(at->second);
    if (const std::optional<double> number = graph_.NumberOf(tensor); number.has_value()) {
      numbers_[at->second] = *number;
    }
    return PatternRef::Input(at->second);
  }

  ConcreteCall CallOf(NodeId id, std::vector<PatternRef> inputs) const {
    ConcreteCall call{graph_.node(id).op, std::move(inputs), {}};
    for (TensorRef operand : graph_.node(id).inputs) {
      call.operands.push_back(graph_.type(operand).GlobalShape());
    }
    return call;
  }

  absl::Status AddToSource(NodeId id) {
    const Node& node = graph_.node(id);
    if (IsLeaf(node.op.kind())) return Refused(absl::StrCat(graph_.Label(id), " is no call"));
    ISOMER_RETURN_IF_ERROR(graph_.CheckNoRounding(id));
    std::vector<PatternRef> inputs;
    for (TensorRef input : node.inputs) {
      const auto made = place_.find(input.node);
      inputs.push_back(made == place_.end() ? Outside(input)
                                            : PatternRef::Node(made->second, input.output));
    }
    place_[id] = static_cast<int>(source_.calls.size());
    source_.calls.push_back(CallOf(id, std::move(inputs)));
    return absl::OkStatus();
  }

  // What the target takes is there without the source: what was added, or from outside.
  absl::StatusOr<PatternRef> TargetTensor(TensorRef tensor) {
    if (!graph_.Contains(tensor)) {
      return Refused(absl::StrCat("there is no tensor %", tensor.node.value));
    }
    if (tensor.node.value >= first_new_.value) {
      return PatternRef::Node(tensor.node.value - first_new_.value, tensor.output);
    }
    if (place_.contains(tensor.node)) {
      return Refused(absl::StrCat("it takes ", graph_.Label(tensor.node), ", which it replaces"));
    }
    if (!graph_.IsLive(tensor.node)) {
      return Refused(absl::StrCat(graph_.Label(tensor.node), " was replaced before"));
    }
    return Outside(tensor);
  }

  absl::Status AddToTarget(const AddedCall& call) {
    std::vector<PatternRef> inputs;
    for (TensorRef input : call.inputs) {
      ISOMER_ASSIGN_OR_RETURN(const PatternRef ref, TargetTensor(input));
      inputs.push_back(ref);
    }
    const NodeId id{graph_.num_nodes()};
    ISOMER_RETURN_IF_ERROR(graph_.Add(call.op, call.inputs));
    ISOMER_RETURN_IF_ERROR(graph_.CheckNoRounding(id));
    target_.calls.push_back(CallOf(id, std::move(inputs)));
    return absl::OkStatus();
  }

  absl::Status Replace() {
    if (step_.replaced.empty()) return Refused("it replaces nothing");
    std::set<TensorRef> distinct;
    for (const auto& [from, to] : step_.replaced) {
      const auto made = place_.find(from.node);
      if (made == place_.end() || !graph_.Contains(from)) {
        return Refused(
            absl::StrCat("%", from.node.value, " is not among the calls that it replaces"));
      }
      if (!distinct.insert(from).second) {
        return Refused(absl::StrCat(graph_.Label(from.node), " is replaced twice"));
      }
      source_.outputs.push_back(PatternRef::Node(made->second, from.output));
      ISOMER_ASSIGN_OR_RETURN(const PatternRef ref, TargetTensor(to));
      target_.outputs.push_back(ref);
      if (graph_.type(from) != graph_.type(to)) {
        return Refused(absl::StrCat(graph_.Label(from.node), " is ", graph_.type(from).ToString(),
                                    " and becomes ", graph_.type(to).ToString()));
      }
    }
    for (const auto& [from, to] : step_.replaced) graph_.ReplaceUses(from, to, first_new_);
    return absl::OkStatus();
  }

  const DerivationStep& step_;
  ReplayGraph& graph_;
  const NodeId first_new_;
  std::map<NodeId, int> place_;       // of the nodes that are replaced, in the source
  std::map<TensorRef, int> outside_;  // by number of the input
  InputNumbers numbers_;
  ConcreteSide source_, target_;
};

}  // namespace

absl::Status ReplayStatedStep(const DerivationStep& step, ReplayGraph* graph, SideCheck equal) {
  return StatedReplay(step, graph)
      .Run(
          [&](const ConcreteSide& source, const ConcreteSide& target, const InputNumbers& numbers) {
            const absl::Status shown = equal(source, target, numbers);
            if (shown.ok()) return shown;
            return NotShownEqual(shown);
          });
}

}  // namespace isomer
