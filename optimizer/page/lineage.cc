#include "optimizer/page/lineage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/matching/rewrite.h"

namespace isomer {

absl::StatusOr<Lineage> Lineage::Of(const Plan& plan, const RuleSet& rules) {
  Lineage lineage;
  lineage.grown_ = plan.model.graph;
  lineage.step_of_.assign(lineage.grown_.num_nodes(), kOfTheModel);
  for (const DerivationStep& step : plan.steps) {
    const int number = static_cast<int>(lineage.first_of_step_.size());
    lineage.first_of_step_.push_back(lineage.grown_.num_nodes());
    const absl::Status applied =
        step.rule.empty() ? lineage.ApplyStated(step) : lineage.Apply(step, rules);
    if (!applied.ok()) {
      return absl::Status(applied.code(), absl::StrCat("step ", number, ": ", applied.message()));
    }
    lineage.step_of_.resize(lineage.grown_.num_nodes(), number);
  }
  lineage.first_of_step_.push_back(lineage.grown_.num_nodes());
  return lineage;
}

absl::Status Lineage::Apply(const DerivationStep& step, const RuleSet& rules) {
  const Rule* rule = rules.Find(step.rule);
  if (rule == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no rule ", step.rule));
  }
  ISOMER_ASSIGN_OR_RETURN(const Binding binding, BindingOf(grown_, *rule, step));
  ISOMER_ASSIGN_OR_RETURN(const Graph target, InstantiatePattern(rule->target, binding));
  const int first_new = grown_.num_nodes();
  const auto image = [&](TensorRef ref) {
    return ref.node.value < rule->num_inputs
               ? step.inputs[ref.node.value]
               : TensorRef{{first_new + ref.node.value - rule->num_inputs}, ref.output};
  };
  const std::string name =
      NameOfTarget(step, [this](NodeId id) -> const Node& { return grown_.node(id); });
  for (int id = rule->num_inputs; id < target.num_nodes(); ++id) {
    std::vector<TensorRef> inputs;
    for (TensorRef input : target.node(id).inputs) inputs.push_back(image(input));
    ISOMER_RETURN_IF_ERROR(grown_.Add(target.node(id).op, std::move(inputs), name).status());
  }
  for (size_t o = 0; o < rule->source.outputs.size(); ++o) {
    const PatternRef source = rule->source.outputs[o];
    const TensorRef from = source.node < 0 ? step.inputs[source.index]
                                           : TensorRef{step.nodes[source.node], source.index};
    Redirect(from, image(target.outputs()[o].tensor), first_new);
  }
  return absl::OkStatus();
}

absl::Status Lineage::ApplyStated(const DerivationStep& step) {
  const int first_new = grown_.num_nodes();
  const std::string name =
      NameOfTarget(step, [this](NodeId id) -> const Node& { return grown_.node(id); });
  for (const AddedCall& call : step.calls) {
    ISOMER_RETURN_IF_ERROR(grown_.Add(call.op, call.inputs, name).status());
  }
  for (const Replacement& replaced : step.replaced) {
    Redirect(replaced.from, replaced.to, first_new);
  }
  return absl::OkStatus();
}

void Lineage::Redirect(TensorRef from, TensorRef to, int first_new) {
  redirections_[from].push_back({static_cast<int>(first_of_step_.size()) - 1, first_new, to});
}

TensorRef Lineage::Resolve(TensorRef tensor, int user) const {
  int after = -1;
  while (true) {
    const auto all = redirections_.find(tensor);
    if (all == redirections_.end()) return tensor;
    const auto next =
        std::find_if(all->second.begin(), all->second.end(),
                     [&](const Redirection& r) { return r.step > after && r.first_new > user; });
    if (next == all->second.end()) return tensor;
    after = next->step;
    tensor = next->to;
  }
}

std::vector<int> Lineage::StepsTo(const Plan& plan, NodeId grown) const {
  std::vector<int> steps;
  while (StepOf(grown) >= 0) {
    const int step = StepOf(grown);
    steps.push_back(step);
    if (IsParallel(grown_.node(grown).op.kind())) break;
    NodeId before;
    for (NodeId source : plan.steps[step].nodes) {
      const OpKind kind = grown_.node(source).op.kind();
      const bool is_same = kind == grown_.node(grown).op.kind();
      if (!IsParallel(kind) && (before.value < 0 || is_same)) before = source;
    }
    if (before.value < 0) break;
    grown = before;
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::vector<NodeId> Lineage::Match(const Graph& graph) const {
  std::vector<NodeId> matched(graph.num_nodes());
  std::vector<std::pair<TensorRef, TensorRef>> open;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    for (const Graph::NamedOutput& other : grown_.outputs()) {
      if (other.name == output.name) open.emplace_back(output.tensor, Resolve(other.tensor, -1));
    }
  }
  while (!open.empty()) {
    const auto [of_plan, of_grown] = open.back();
    open.pop_back();
    const Node& node = graph.node(of_plan.node);
    const Node& other = grown_.node(of_grown.node);
    if (node.op.kind() == OpKind::kCast && node.op != other.op) {
      open.emplace_back(node.inputs[0], of_grown);
      continue;
    }
    NodeId& match = matched[of_plan.node.value];
    if (match.value >= 0 || node.op != other.op || node.inputs.size() != other.inputs.size()) {
      continue;
    }
    match = of_grown.node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      open.emplace_back(node.inputs[i], Resolve(other.inputs[i], match.value));
    }
  }
  return matched;
}

}  // namespace isomer
