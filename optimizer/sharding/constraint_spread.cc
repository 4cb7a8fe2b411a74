#include "optimizer/sharding/constraint_spread.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "optimizer/sharding/constraint_names.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Whether every iteration dim leads an output dim: one element of each operand makes one of the
// output.
bool IsOfElements(const Declaration& d) {
  if (d.outputs.size() != 1 || d.outputs[0].size() != d.dims.size()) return false;
  for (int i = 0; i < static_cast<int>(d.outputs[0].size()); ++i) {
    if (d.LeadOfOutputDim(0, i) < 0) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ConstraintSpread> ConstraintSpread::Make(const Constraints& constraints,
                                                        const Graph& graph,
                                                        const ComputeGraph& compute) {
  ConstraintSpread spread(graph, compute);
  for (const auto& tensor : constraints.tensors) ISOMER_RETURN_IF_ERROR(spread.Mark(tensor));
  ISOMER_RETURN_IF_ERROR(spread.FollowArrangements());
  spread.Spread();
  return spread;
}

const ConstraintSpread::Want* ConstraintSpread::Find(TensorRef tensor, int dim) const {
  const auto it = wants_.find({tensor, dim});
  return it == wants_.end() ? nullptr : &it->second;
}

const std::string* ConstraintSpread::Replicated(TensorRef tensor) const {
  const auto it = replicated_.find(tensor);
  return it == replicated_.end() ? nullptr : &it->second;
}

absl::Status ConstraintSpread::Mark(const Constraints::OfTensor& constraint) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TensorRef> tensors,
                          TensorsNamed(graph_, constraint.name, constraint.source));
  for (TensorRef tensor : tensors) {
    if (constraint.replicate) replicated_.try_emplace(tensor, constraint.source);
    for (int dim = 0; constraint.replicate && dim < graph_.type(tensor).rank(); ++dim) {
      ISOMER_RETURN_IF_ERROR(CheckAgainstReplicated(tensor, dim));
    }
    for (const Constraints::Split& split : constraint.splits) {
      ISOMER_RETURN_IF_ERROR(MarkDim(constraint, tensor, split));
    }
  }
  return absl::OkStatus();
}

absl::Status ConstraintSpread::MarkDim(const Constraints::OfTensor& constraint, TensorRef tensor,
                                       const Constraints::Split& split) {
  const TensorType& type = graph_.type(tensor);
  const int dim = split.dim < 0 ? split.dim + type.rank() : split.dim;
  const std::string label = TensorLabel(graph_, tensor);
  if (dim < 0 || dim >= type.rank()) {
    return ConstraintError(constraint.source,
                           absl::StrCat(label, " has no dim ", split.dim, ": ", type.ToString()));
  }
  if (type.dims[dim].size % split.degree != 0) {
    return ConstraintError(constraint.source,
                           absl::StrCat(split.degree, " does not divide dim ", dim, " of ", label,
                                        ": ", type.ToString()));
  }
  const auto [it, added] =
      wants_.try_emplace({tensor, dim}, Want{split.degree, constraint.source, 0});
  if (!added && it->second.degree != split.degree) {
    return ConstraintError(constraint.source,
                           absl::StrCat("dim ", dim, " of ", label, " is split by ", split.degree,
                                        ", but by ", it->second.degree, " at ", it->second.source));
  }
  return CheckAgainstReplicated(tensor, dim);
}

absl::Status ConstraintSpread::CheckAgainstReplicated(TensorRef tensor, int dim) const {
  const std::string* replicated = Replicated(tensor);
  const Want* split = Find(tensor, dim);
  if (replicated == nullptr || split == nullptr || split->degree == 1) return absl::OkStatus();
  return ConstraintError(
      split->source, absl::StrCat("dim ", dim, " of ", TensorLabel(graph_, tensor), " is split by ",
                                  split->degree, ", but replicated at ", *replicated));
}

// Constraints on a weight also apply to the results of layout calls on it.
absl::Status ConstraintSpread::FollowArrangements() {
  if (wants_.empty() && replicated_.empty()) return absl::OkStatus();
  for (NodeId id : graph_.TopologicalOrder()) {
    const Node& node = graph_.node(id);
    if (compute_.index[id.value] >= 0 || node.inputs.empty()) continue;
    const Declaration* d = DeclarationOf(id);
    for (int o = 0; d != nullptr && o < d->num_operands(); ++o) {
      const TensorRef input = node.inputs[o];
      if (const std::string* replicated = Replicated(input); replicated != nullptr) {
        const std::string source = *replicated;
        for (int t = 0; t < static_cast<int>(node.outputs.size()); ++t) {
          replicated_.try_emplace({id, t}, source);
        }
      }
      for (int i = 0; i < static_cast<int>(d->operands[o].size()); ++i) {
        const Want* want = Find(input, i);
        if (want == nullptr || Arrange(*d, id, d->LeadOfOperandDim(o, i), *want)) continue;
        return ConstraintError(
            want->source,
            absl::StrCat("dim ", i, " of ", TensorLabel(graph_, input), " is no more a dim behind ",
                         graph_.Label(id), "; name what comes out of that"));
      }
    }
  }
  return absl::OkStatus();
}

// Propagates to the output dims with this lead; returns whether there are any.
bool ConstraintSpread::Arrange(const Declaration& d, NodeId id, int lead, const Want& want) {
  bool found = false;
  for (int t = 0; lead >= 0 && t < static_cast<int>(d.outputs.size()); ++t) {
    for (int j = 0; j < static_cast<int>(d.outputs[t].size()); ++j) {
      if (d.LeadOfOutputDim(t, j) != lead) continue;
      wants_.try_emplace({{id, t}, j}, want);
      found = true;
    }
  }
  return found;
}

void ConstraintSpread::Spread() {
  std::deque<TensorDim> queue;
  for (const auto& [at, want] : wants_) {
    if (want.degree > 1) queue.push_back(at);
  }
  while (!queue.empty()) {
    const TensorDim at = queue.front();
    queue.pop_front();
    Want want = wants_.at(at);
    ++want.hops;
    std::vector<NodeId> nodes{at.first.node};
    for (const Graph::Use& use : users_[at.first.node.value]) nodes.push_back(use.user);
    for (NodeId id : nodes) {
      for (const TensorDim& next : Corresponding(id, at)) {
        if (replicated_.count(next.first) > 0) continue;
        if (wants_.try_emplace(next, want).second) queue.push_back(next);
      }
    }
  }
}

// The dims of an elementwise operator's computed operands and output that correspond to `at`.
std::vector<ConstraintSpread::TensorDim> ConstraintSpread::Corresponding(NodeId id,
                                                                         const TensorDim& at) {
  const Declaration* d = compute_.index[id.value] < 0 ? nullptr : DeclarationOf(id);
  if (d == nullptr || !IsOfElements(*d)) return {};
  const Node& node = graph_.node(id);
  std::vector<std::pair<TensorDim, int>> leads;
  for (int o = 0; o < d->num_operands(); ++o) {
    for (int i = 0; i < static_cast<int>(d->operands[o].size()); ++i) {
      leads.push_back({{node.inputs[o], i}, d->LeadOfOperandDim(o, i)});
    }
  }
  for (int j = 0; j < static_cast<int>(d->outputs[0].size()); ++j) {
    leads.push_back({{{id, 0}, j}, d->LeadOfOutputDim(0, j)});
  }
  std::vector<TensorDim> dims;
  for (const auto& [one, lead] : leads) {
    if (one != at || lead < 0) continue;
    for (const auto& [other, of_other] : leads) {
      if (of_other == lead && compute_.index[other.first.node.value] >= 0) dims.push_back(other);
    }
  }
  return dims;
}

const Declaration* ConstraintSpread::DeclarationOf(NodeId id) {
  const auto [it, added] = declarations_.try_emplace(id);
  if (added) {
    std::vector<TensorType> types;
    for (TensorRef input : graph_.node(id).inputs) types.push_back(graph_.type(input));
    auto sharding = InferSharding(graph_.node(id).op, types);
    if (sharding.ok()) it->second = std::move(sharding->declaration);
  }
  return it->second ? &*it->second : nullptr;
}

}  // namespace isomer
