#include "rules/equality/egraph.h"

#include <algorithm>

namespace isomer {

EGraph::EGraph(const Graph& graph, bool training) : training_(training) {
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    std::vector<ClassId> operands;
    for (TensorRef input : node.inputs) operands.push_back(tensors_.at(input));
    ENodeId call;
    if (IsLeaf(node.op.kind())) {
      // A leaf equals only itself.
      operators_.push_back(node.op);
      call = AddNode(static_cast<OperatorId>(operators_.size()) - 1, {}, node.outputs);
    } else {
      call = Add(node.op, std::move(operands), node.outputs);
    }
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
      tensors_[{id, o}] = nodes_[call].outputs[o];
    }
  }
}

ClassId EGraph::Find(ClassId id) const {
  while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
  return id;
}

ENodeId EGraph::FindNode(ENodeId id) const {
  while (forward_[id] != id) id = forward_[id] = forward_[forward_[id]];
  return id;
}

const std::vector<ENodeId>& EGraph::NodesOf(OpKind kind) const {
  static const std::vector<ENodeId> kNone;
  const auto found = by_kind_.find(kind);
  return found == by_kind_.end() ? kNone : found->second;
}

OperatorId EGraph::Intern(const Operator& op) const {
  std::vector<OperatorId>& ids = operator_ids_[op.Hash()];
  for (OperatorId id : ids) {
    if (operators_[id] == op) return id;
  }
  ids.push_back(static_cast<OperatorId>(operators_.size()));
  operators_.push_back(op);
  return ids.back();
}

EGraph::Key EGraph::KeyOf(const ENode& node) const {
  Key key{node.op, node.operands};
  for (ClassId& operand : key.second) operand = Find(operand);
  return key;
}

ENodeId EGraph::Lookup(const Operator& op, const std::vector<ClassId>& operands) const {
  const auto found = calls_.find(KeyOf({Intern(op), operands, {}}));
  return found == calls_.end() ? -1 : FindNode(found->second);
}

ENodeId EGraph::Add(const Operator& op, std::vector<ClassId> operands,
                    const std::vector<TensorType>& types) {
  const OperatorId id = Intern(op);
  const auto found = calls_.find(KeyOf({id, operands, {}}));
  if (found != calls_.end()) return FindNode(found->second);
  return AddNode(id, std::move(operands), types);
}

ENodeId EGraph::AddNode(OperatorId op, std::vector<ClassId> operands,
                        const std::vector<TensorType>& types) {
  const ENodeId id = num_nodes();
  ENode node{op, std::move(operands), {}};
  const OpKind kind = operators_[op].kind();
  const bool stored =
      isomer::IsStored(kind) || (!node.operands.empty() && IsPrepared(kind) &&
                                 std::all_of(node.operands.begin(), node.operands.end(),
                                             [&](ClassId operand) { return IsStored(operand); }));
  for (int32_t o = 0; o < static_cast<int32_t>(types.size()); ++o) {
    const auto [type, added] =
        type_ids_.try_emplace(types[o].ToString(), static_cast<int32_t>(types_.size()));
    if (added) types_.push_back(types[o]);
    node.outputs.push_back(num_classes());
    parent_.push_back(num_classes());
    classes_.push_back({type->second, stored, {{id, o}}, {}});
  }
  for (ClassId& operand : node.operands) {
    operand = Find(operand);
    std::vector<ENodeId>& users = classes_[operand].users;
    if (users.empty() || users.back() != id) users.push_back(id);
  }
  if (!node.operands.empty()) calls_.emplace(Key{op, node.operands}, id);
  by_kind_[kind].push_back(id);
  forward_.push_back(id);
  nodes_.push_back(std::move(node));
  return id;
}

void EGraph::Merge(ClassId a, ClassId b) {
  a = Find(a);
  b = Find(b);
  if (a == b) return;
  // The older class stays, so that ids do not depend on sizes.
  if (b < a) std::swap(a, b);
  parent_[b] = a;
  Class &into = classes_[a], &from = classes_[b];
  into.members.insert(into.members.end(), from.members.begin(), from.members.end());
  into.users.insert(into.users.end(), from.users.begin(), from.users.end());
  into.stored |= from.stored;
  from.members.clear();
  from.users.clear();
  dirty_.push_back(a);
}

void EGraph::Rebuild() {
  while (!dirty_.empty()) {
    std::vector<ClassId> todo = std::move(dirty_);
    dirty_.clear();
    for (ClassId& id : todo) id = Find(id);
    std::sort(todo.begin(), todo.end());
    todo.erase(std::unique(todo.begin(), todo.end()), todo.end());
    for (ClassId id : todo) {
      const std::vector<ENodeId> users = classes_[Find(id)].users;
      std::vector<ENodeId> kept;
      for (ENodeId user : users) {
        if (!IsCanonical(user)) continue;
        ENode& node = nodes_[user];
        if (const auto old = calls_.find(Key{node.op, node.operands});
            old != calls_.end() && old->second == user) {
          calls_.erase(old);
        }
        node.operands = KeyOf(node).second;
        const auto [equal, added] = calls_.try_emplace(Key{node.op, node.operands}, user);
        if (added || equal->second == user) {
          if (std::find(kept.begin(), kept.end(), user) == kept.end()) kept.push_back(user);
          continue;
        }
        const ENodeId first = std::min(user, equal->second), second = std::max(user, equal->second);
        forward_[second] = first;
        equal->second = first;
        kept.push_back(first);
        for (size_t o = 0; o < node.outputs.size(); ++o) {
          Merge(nodes_[first].outputs[o], nodes_[second].outputs[o]);
        }
      }
      Class& now = classes_[Find(id)];
      if (Find(id) == id) now.users = std::move(kept);
      std::erase_if(now.members, [&](const Member& member) { return !IsCanonical(member.node); });
    }
  }
}

}  // namespace isomer
