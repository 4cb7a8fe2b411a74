#include "verifier/certificate/replay_graph.h"

#include <map>
#include <set>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/constant_number.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/status_macros.h"

namespace isomer {

ReplayGraph::ReplayGraph(const Graph& graph) : outputs_(graph.outputs()) {
  for (int id = 0; id < graph.num_nodes(); ++id) nodes_.push_back(graph.node(id));
  live_.assign(nodes_.size(), true);
  uses_.assign(nodes_.size(), 0);
  users_.resize(nodes_.size());
  for (int32_t id = 0; id < num_nodes(); ++id) {
    for (TensorRef input : nodes_[id].inputs) {
      ++uses_[input.node.value];
      users_[input.node.value].push_back(id);
    }
  }
  for (const Graph::NamedOutput& output : outputs_) ++uses_[output.tensor.node.value];
  for (int32_t id = num_nodes() - 1; id >= 0; --id) DropIfUnused(id);
}

ReplayGraph::ReplayGraph(const Model& model) : ReplayGraph(model.graph) { model_ = &model; }

std::optional<double> ReplayGraph::NumberOf(TensorRef ref) const {
  if (model_ == nullptr) return std::nullopt;
  return NumberOfConstant(*model_, node(ref.node));
}

bool ReplayGraph::Contains(TensorRef ref) const {
  return ref.node.value >= 0 && ref.node.value < num_nodes() && ref.output >= 0 &&
         ref.output < static_cast<int>(node(ref.node).outputs.size());
}

std::string ReplayGraph::Label(NodeId id) const {
  const Node& n = node(id);
  return absl::StrCat("%", id.value, " ", n.op.name(),
                      n.name.empty() ? "" : absl::StrCat(" '", n.name, "'"));
}

absl::Status ReplayGraph::CheckReplaceable(const std::vector<NodeId>& nodes) const {
  std::set<NodeId> distinct;
  for (NodeId id : nodes) {
    if (id.value < 0 || id.value >= num_nodes()) {
      return absl::FailedPreconditionError(absl::StrCat("there is no node %", id.value));
    }
    if (!distinct.insert(id).second) {
      return absl::FailedPreconditionError(absl::StrCat("%", id.value, " is matched twice"));
    }
    if (!IsLive(id)) {
      return absl::FailedPreconditionError(absl::StrCat(Label(id), " was replaced before"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReplayGraph::CheckNoRounding(NodeId id) const {
  const Node& n = node(id);
  if (n.inputs.empty() || !RoundsIntegers(n.op, type(n.inputs[0]).dtype, n.outputs[0].dtype)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(Label(id), " rounds integers"));
}

void ReplayGraph::DropIfUnused(int32_t id) {
  std::vector<int32_t> stack = {id};
  while (!stack.empty()) {
    const int32_t last = stack.back();
    stack.pop_back();
    if (!live_[last] || uses_[last] > 0 || IsLeaf(nodes_[last].op.kind())) continue;
    live_[last] = false;
    for (TensorRef input : nodes_[last].inputs) {
      --uses_[input.node.value];
      stack.push_back(input.node.value);
    }
  }
}

absl::Status ReplayGraph::Add(Operator op, std::vector<TensorRef> inputs) {
  ISOMER_RETURN_IF_ERROR(NormalizeAttributes(&op));
  std::vector<TensorType> types;
  for (TensorRef input : inputs) {
    if (!Contains(input)) return absl::FailedPreconditionError("an operand is absent");
    types.push_back(type(input));
  }
  std::vector<InferredCall>& calls = inferred_[absl::HashOf(op.Hash(), types)];
  const InferredCall* known = nullptr;
  for (const InferredCall& call : calls) {
    if (call.op == op && call.operands == types) known = &call;
  }
  if (known == nullptr) {
    ISOMER_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, InferTypes(op, types));
    known = &calls.emplace_back(InferredCall{op, std::move(types), std::move(outputs)});
  }
  const int32_t id = num_nodes();
  for (TensorRef input : inputs) {
    ++uses_[input.node.value];
    users_[input.node.value].push_back(id);
  }
  nodes_.push_back({std::move(op), std::move(inputs), known->outputs, ""});
  live_.push_back(true);
  uses_.push_back(0);
  users_.emplace_back();
  return absl::OkStatus();
}

void ReplayGraph::ReplaceUses(TensorRef from, TensorRef to, NodeId first_new) {
  // Lists keep users that have turned away since: each use is looked at as it is now.
  std::vector<int32_t> kept;
  const auto redirect = [&](TensorRef* use, bool counts) {
    *use = to;
    if (!counts) return;
    --uses_[from.node.value];
    ++uses_[to.node.value];
  };
  const std::vector<int32_t> users = std::move(users_[from.node.value]);
  for (int32_t user : users) {
    bool still_uses = false, uses_other = false;
    for (TensorRef& input : nodes_[user].inputs) {
      if (input == from && user < first_new.value) {
        redirect(&input, live_[user]);
        uses_other = true;
      } else {
        still_uses |= input.node == from.node;
      }
    }
    if (still_uses) kept.push_back(user);
    if (uses_other) users_[to.node.value].push_back(user);
  }
  // `to` may be of the same node, whose list has grown meanwhile.
  users_[from.node.value].insert(users_[from.node.value].end(), kept.begin(), kept.end());
  for (Graph::NamedOutput& output : outputs_) {
    if (output.tensor == from) redirect(&output.tensor, true);
  }
  DropIfUnused(from.node.value);
}

absl::Status ReplayGraph::CheckSame(const Graph& planned) const {
  const auto no = [](const auto&... why) {
    return absl::FailedPreconditionError(absl::StrCat("graph: ", why...));
  };
  if (outputs_.size() != planned.outputs().size()) {
    return no("the derivation gives ", outputs_.size(), " outputs, the plan has ",
              planned.outputs().size());
  }
  // The node of the plan that each node here is, and those that have not been compared yet.
  std::vector<int32_t> image(nodes_.size(), -1);
  std::vector<bool> met(planned.num_nodes(), false);
  std::vector<int32_t> stack;
  const auto meet = [&](int32_t id, int32_t other) {
    if (image[id] >= 0) return image[id] == other;
    image[id] = other;
    met[other] = true;
    stack.push_back(id);
    return true;
  };
  std::map<std::string, int32_t> leaves;
  for (int32_t id = 0; id < planned.num_nodes(); ++id) {
    if (IsLeaf(planned.node(id).op.kind())) leaves[planned.node(id).name] = id;
  }
  for (int32_t id = 0; id < num_nodes(); ++id) {
    if (!IsLeaf(nodes_[id].op.kind())) continue;
    const auto leaf = leaves.find(nodes_[id].name);
    if (leaf == leaves.end()) return no("the plan has no ", Label({id}));
    meet(id, leaf->second);
  }
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Graph::NamedOutput &here = outputs_[o], &there = planned.outputs()[o];
    if (here.name != there.name || here.tensor.output != there.tensor.output ||
        !meet(here.tensor.node.value, there.tensor.node.value)) {
      return no("output ", o, " is not what the derivation gives");
    }
  }
  while (!stack.empty()) {
    const int32_t id = stack.back();
    stack.pop_back();
    const Node &here = nodes_[id], &there = planned.node(image[id]);
    bool same = here.op == there.op && here.outputs == there.outputs &&
                here.inputs.size() == there.inputs.size();
    for (size_t i = 0; same && i < here.inputs.size(); ++i) {
      same = here.inputs[i].output == there.inputs[i].output &&
             meet(here.inputs[i].node.value, there.inputs[i].node.value);
    }
    if (!same) {
      return no(planned.Label({image[id]}), " is not what the derivation gives there, ",
                Label({id}));
    }
  }
  for (int32_t id = 0; id < planned.num_nodes(); ++id) {
    if (!met[id]) return no("the derivation does not give ", planned.Label({id}));
  }
  return absl::OkStatus();
}

}  // namespace isomer
