#include "pcg/ir/graph.h"

#include <algorithm>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Which nodes a graph output needs; leaves are always kept.
std::vector<bool> LiveNodes(const std::vector<Node>& nodes,
                            const std::vector<Graph::NamedOutput>& outputs) {
  std::vector<bool> live(nodes.size(), false);
  std::vector<int> stack;
  auto visit = [&](int id) {
    if (!live[id]) live[id] = true, stack.push_back(id);
  };
  for (size_t id = 0; id < nodes.size(); ++id) {
    if (IsLeaf(nodes[id].op.kind())) visit(static_cast<int>(id));
  }
  for (const Graph::NamedOutput& output : outputs) visit(output.tensor.node.value);
  while (!stack.empty()) {
    const int id = stack.back();
    stack.pop_back();
    for (TensorRef input : nodes[id].inputs) visit(input.node.value);
  }
  return live;
}

uint64_t TypeHash(const TensorType& type) {
  uint64_t hash = HashCombine(static_cast<uint64_t>(type.dtype), type.copies, type.partials,
                              type.micro_batches);
  for (const Dim& dim : type.dims) hash = HashCombine(hash, dim.size, dim.degree);
  return hash;
}

// The order of Canonical(): leaves first, in the order of their ids (names are theirs to keep);
// then a depth-first walk from the outputs, so that numbering depends on the structure alone. Equal
// nodes have one number.
class CanonicalNumbering {
 public:
  CanonicalNumbering(const std::vector<Node>& nodes, const std::vector<Graph::NamedOutput>& outputs)
      : new_ids(nodes.size()), nodes_(nodes) {
    for (size_t id = 0; id < nodes.size(); ++id) {
      if (IsLeaf(nodes[id].op.kind())) Keep(static_cast<int>(id), nodes[id].op.Hash());
    }
    struct Frame {
      int id;
      size_t next_input;
    };
    std::vector<Frame> stack;
    for (const Graph::NamedOutput& output : outputs) {
      stack.push_back({output.tensor.node.value, 0});
      while (!stack.empty()) {
        Frame& frame = stack.back();
        const Node& node = nodes[frame.id];
        if (new_ids[frame.id].value >= 0) {
          stack.pop_back();
        } else if (frame.next_input < node.inputs.size()) {
          const int input = node.inputs[frame.next_input++].node.value;
          if (new_ids[input].value < 0) stack.push_back({input, 0});
        } else {
          Number(frame.id);
          stack.pop_back();
        }
      }
    }
  }

  TensorRef Of(TensorRef tensor) const { return {new_ids[tensor.node.value], tensor.output}; }

  std::vector<NodeId> new_ids;      // per node; -1: nothing needs it
  std::vector<int> kept;            // by new id: a node
  std::vector<uint64_t> op_hashes;  // by new id

 private:
  void Keep(int id, uint64_t op_hash) {
    new_ids[id] = NodeId{static_cast<int>(kept.size())};
    kept.push_back(id);
    op_hashes.push_back(op_hash);
    next_.push_back(-1);
  }

  bool AreEqual(const Node& a, const Node& b) const {
    return a.op == b.op && a.inputs.size() == b.inputs.size() &&
           std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(),
                      [&](TensorRef x, TensorRef y) { return Of(x) == Of(y); });
  }

  void Number(int id) {
    const Node& node = nodes_[id];
    const uint64_t op_hash = node.op.Hash();
    uint64_t hash = op_hash;
    for (TensorRef input : node.inputs) {
      hash = HashCombine(hash, static_cast<uint64_t>(Of(input).node.value),
                         static_cast<uint64_t>(input.output));
    }
    const auto [last, added] = last_.try_emplace(hash, -1);
    for (int other = last->second; other >= 0; other = next_[other]) {
      if (!AreEqual(node, nodes_[kept[other]])) continue;
      new_ids[id] = NodeId{other};
      return;
    }
    Keep(id, op_hash);
    next_.back() = last->second;
    last->second = new_ids[id].value;
  }

  const std::vector<Node>& nodes_;
  absl::flat_hash_map<uint64_t, int> last_;  // by hash: the new id that came last,
  std::vector<int> next_;                    // and by new id the one before it
};

}  // namespace

TensorRef Graph::AddLeaf(OpKind kind, std::string name, TensorType type) {
  nodes_.push_back({Operator(kind), {}, {std::move(type)}, std::move(name)});
  return {NodeId{num_nodes() - 1}, 0};
}

TensorRef Graph::AddInput(std::string name, TensorType type) {
  return AddLeaf(OpKind::kInput, std::move(name), std::move(type));
}

TensorRef Graph::AddWeight(std::string name, TensorType type) {
  return AddLeaf(OpKind::kWeight, std::move(name), std::move(type));
}

TensorRef Graph::AddConstant(std::string name, TensorType type) {
  return AddLeaf(OpKind::kConstant, std::move(name), std::move(type));
}

absl::StatusOr<NodeId> Graph::Add(Operator op, std::vector<TensorRef> inputs, std::string name) {
  const std::string where = name.empty() ? "" : absl::StrCat(" (node '", name, "')");
  auto explain = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(status.message(), where));
  };
  if (absl::Status status = NormalizeAttributes(&op); !status.ok()) return explain(status);
  std::vector<TensorType> types;
  for (TensorRef input : inputs) {
    if (!Contains(input)) {
      return absl::InvalidArgumentError(absl::StrCat("operator ", op.name(), " uses %",
                                                     input.node.value, ".", input.output,
                                                     ", which does not exist", where));
    }
    types.push_back(type(input));
  }
  absl::StatusOr<std::vector<TensorType>> outputs = InferTypes(op, types);
  if (!outputs.ok()) return explain(outputs.status());
  nodes_.push_back({std::move(op), std::move(inputs), *std::move(outputs), std::move(name)});
  return NodeId{num_nodes() - 1};
}

absl::StatusOr<TensorRef> Graph::AddOp(Operator op, std::vector<TensorRef> inputs,
                                       std::string name) {
  ISOMER_ASSIGN_OR_RETURN(const NodeId id, Add(std::move(op), std::move(inputs), std::move(name)));
  return TensorRef{id, 0};
}

void Graph::AddOutput(std::string name, TensorRef tensor) {
  outputs_.push_back({std::move(name), tensor});
}

bool Graph::Contains(TensorRef ref) const {
  return ref.node.value >= 0 && ref.node.value < num_nodes() && ref.output >= 0 &&
         ref.output < static_cast<int>(node(ref.node).outputs.size());
}

void Graph::ReplaceUses(TensorRef from, TensorRef to, NodeId except_from) {
  const int end = std::min(num_nodes(), except_from.value);
  for (int id = 0; id < end; ++id) {
    for (TensorRef& input : nodes_[id].inputs) {
      if (input == from) input = to;
    }
  }
  for (NamedOutput& output : outputs_) {
    if (output.tensor == from) output.tensor = to;
  }
}

std::vector<NodeId> Graph::TopologicalOrder() const {
  const std::vector<bool> live = LiveNodes(nodes_, outputs_);
  std::vector<int> waiting(nodes_.size(), 0);
  std::vector<std::vector<int>> users(nodes_.size());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int id = 0; id < num_nodes(); ++id) {
    if (!live[id]) continue;
    for (TensorRef input : nodes_[id].inputs) users[input.node.value].push_back(id);
    waiting[id] = static_cast<int>(nodes_[id].inputs.size());
    if (waiting[id] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const int id = ready.top();
    ready.pop();
    order.push_back({id});
    for (int user : users[id]) {
      if (--waiting[user] == 0) ready.push(user);
    }
  }
  return order;
}

std::vector<std::vector<Graph::Use>> Graph::Users() const {
  std::vector<std::vector<Use>> users(nodes_.size());
  const std::vector<bool> live = LiveNodes(nodes_, outputs_);
  for (int id = 0; id < num_nodes(); ++id) {
    if (!live[id]) continue;
    for (size_t i = 0; i < nodes_[id].inputs.size(); ++i) {
      users[nodes_[id].inputs[i].node.value].push_back({{id}, static_cast<int>(i)});
    }
  }
  return users;
}

Graph Graph::Canonical(std::vector<NodeId>* new_ids) const {
  CanonicalNumbering numbering(nodes_, outputs_);
  Graph result;
  for (int id : numbering.kept) {
    result.nodes_.push_back(nodes_[id]);
    for (TensorRef& input : result.nodes_.back().inputs) input = numbering.Of(input);
  }
  for (const NamedOutput& output : outputs_) {
    result.AddOutput(output.name, numbering.Of(output.tensor));
  }
  if (new_ids != nullptr) *new_ids = std::move(numbering.new_ids);
  return result;
}

uint64_t Graph::StructuralHash() const {
  const CanonicalNumbering numbering(nodes_, outputs_);
  const auto add = [&](uint64_t hash, TensorRef tensor) {
    const TensorRef at = numbering.Of(tensor);
    return HashCombine(hash, static_cast<uint64_t>(at.node.value),
                       static_cast<uint64_t>(at.output));
  };
  uint64_t hash = numbering.kept.size();
  for (size_t k = 0; k < numbering.kept.size(); ++k) {
    const Node& node = nodes_[numbering.kept[k]];
    hash = HashCombine(hash, numbering.op_hashes[k]);
    if (IsLeaf(node.op.kind())) hash = HashCombine(hash, HashBytes(node.name));
    for (TensorRef input : node.inputs) hash = add(hash, input);
    for (const TensorType& type : node.outputs) hash = HashCombine(hash, TypeHash(type));
  }
  for (const NamedOutput& output : outputs_) {
    hash = add(HashCombine(hash, HashBytes(output.name)), output.tensor);
  }
  return hash;
}

std::string Graph::Label(NodeId id) const {
  const Node& n = node(id);
  return absl::StrCat("%", id.value, " ", n.op.name(),
                      n.name.empty() ? "" : absl::StrCat(" '", n.name, "'"));
}

absl::Status Graph::Validate() const {
  absl::flat_hash_set<std::string> leaves;
  for (int id = 0; id < num_nodes(); ++id) {
    const Node& n = nodes_[id];
    for (TensorRef input : n.inputs) {
      if (!Contains(input)) {
        return absl::InvalidArgumentError(absl::StrCat(
            Label({id}), " uses %", input.node.value, ".", input.output, ", which does not exist"));
      }
    }
    if (!IsLeaf(n.op.kind())) continue;
    if (n.outputs.size() != 1 || !n.inputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(Label({id}), ": a leaf has one output and no inputs"));
    }
    if (n.name.empty() || !leaves.insert(n.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(Label({id}), ": the name of a leaf must be there and be unique"));
    }
    if (absl::Status status = ValidateTensorType(n.outputs[0]); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(Label({id}), ": ", status.message()));
    }
  }
  for (const NamedOutput& output : outputs_) {
    if (!Contains(output.tensor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output.name, "' is %", output.tensor.node.value, ".",
                       output.tensor.output, ", which does not exist"));
    }
  }
  // Everything must be reachable in topological order: what is left out lies on a cycle.
  std::vector<bool> ordered(nodes_.size(), false);
  for (NodeId id : TopologicalOrder()) {
    ordered[id.value] = true;
    const Node& n = node(id);
    if (IsLeaf(n.op.kind())) continue;
    std::vector<TensorType> types;
    for (TensorRef input : n.inputs) types.push_back(type(input));
    absl::StatusOr<std::vector<TensorType>> inferred = InferTypes(n.op, types);
    if (!inferred.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(Label(id), ": ", inferred.status().message()));
    }
    if (*inferred != n.outputs) {
      size_t t = 0;  // the first that differs
      while (t + 1 < std::min(inferred->size(), n.outputs.size()) &&
             (*inferred)[t] == n.outputs[t]) {
        ++t;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          Label(id), ": ", t == 0 ? "its type" : absl::StrCat("the type of output ", t),
          " is stated as ", n.outputs.empty() ? "nothing" : n.outputs[t].ToString(),
          " but must be ", (*inferred)[t].ToString()));
    }
  }
  const std::vector<bool> live = LiveNodes(nodes_, outputs_);
  for (int id = 0; id < num_nodes(); ++id) {
    if (live[id] && !ordered[id])
      return absl::InvalidArgumentError(absl::StrCat(Label({id}), " lies on or behind a cycle"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> GraphFromParts(std::vector<Node> nodes,
                                     std::vector<Graph::NamedOutput> outputs) {
  Graph graph;
  graph.nodes_ = std::move(nodes);
  graph.outputs_ = std::move(outputs);
  for (int id = 0; id < graph.num_nodes(); ++id) {
    Node& node = graph.nodes_[id];
    if (IsLeaf(node.op.kind())) continue;
    const int operands = static_cast<int>(node.inputs.size());
    if (absl::Status status = NormalizeAttributes(&node.op); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(graph.Label({id}), ": ", status.message()));
    }
    if (operands < MinOperands(node.op.kind()) || operands > MaxOperands(node.op.kind())) {
      return absl::InvalidArgumentError(absl::StrCat(
          graph.Label({id}), ": takes ", MinOperands(node.op.kind()), " operands, not ", operands));
    }
  }
  ISOMER_RETURN_IF_ERROR(graph.Validate());
  return graph;
}

}  // namespace isomer
