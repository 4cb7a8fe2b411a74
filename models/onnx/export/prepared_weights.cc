#include "models/onnx/export/prepared_weights.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

int64_t BytesOf(const TensorType& type) {
  int64_t bytes = BytesPerElement(type.dtype);
  for (const Dim& dim : type.dims) bytes *= dim.size;
  return bytes;
}

class Preparer {
 public:
  Preparer(const Model& model, const Graph& graph)
      : model_(model),
        graph_(graph),
        order_(graph.TopologicalOrder()),
        place_(graph.num_nodes(), 0),
        is_prepared_(graph.num_nodes(), false) {
    for (size_t p = 0; p < order_.size(); ++p) place_[order_[p].value] = p;
  }

  absl::StatusOr<PreparedWeights> Run() {
    for (NodeId id : order_) is_prepared_[id.value] = IsMadeOfWeights(id);
    // Calls before those that they are made of. What grows too much is left as it is; what it is
    // made of may still be prepared.
    std::set<TensorRef> wanted;
    for (const Graph::NamedOutput& output : graph_.outputs()) wanted.insert(output.tensor);
    PreparedWeights prepared;
    prepared.is_needed.assign(graph_.num_nodes(), false);
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (IsLeaf(node.op.kind())) {
        // Inputs are there whether anybody reads them or not.
        prepared.is_needed[id->value] = wanted.contains({*id, 0}) || !HasValue(node);
        continue;
      }
      std::vector<TensorRef> results;
      for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
        if (wanted.contains({*id, o})) results.push_back({*id, o});
      }
      if (results.empty()) continue;
      if (is_prepared_[id->value] && !GrowsTooMuch(*id)) {
        ISOMER_RETURN_IF_ERROR(Prepare(*id, results, &prepared.values));
        continue;
      }
      prepared.is_needed[id->value] = true;
      wanted.insert(node.inputs.begin(), node.inputs.end());
    }
    return prepared;
  }

 private:
  bool HasValue(const Node& leaf) const {
    return leaf.op.kind() != OpKind::kInput && model_.weights.contains(leaf.name);
  }

  bool IsMadeOfWeights(NodeId id) const {
    const Node& node = graph_.node(id);
    if (IsLeaf(node.op.kind())) return HasValue(node);
    return CanRunOnHost(node.op.kind()) && !node.inputs.empty() &&
           absl::c_all_of(node.inputs,
                          [&](TensorRef input) { return is_prepared_[input.node.value]; });
  }

  // The call and all that it is made of, each behind its operands.
  std::vector<NodeId> MadeOf(NodeId id) const {
    std::set<size_t> places = {place_[id.value]};
    std::vector<NodeId> next = {id};
    while (!next.empty()) {
      const NodeId one = next.back();
      next.pop_back();
      for (TensorRef input : graph_.node(one).inputs) {
        if (places.insert(place_[input.node.value]).second) next.push_back(input.node);
      }
    }
    std::vector<NodeId> all;
    for (size_t place : places) all.push_back(order_[place]);
    return all;
  }

  bool GrowsTooMuch(NodeId id) const {
    int64_t before = 0, after = 0;
    for (NodeId one : MadeOf(id)) {
      const Node& node = graph_.node(one);
      if (IsLeaf(node.op.kind())) before += BytesOf(node.outputs[0]);
    }
    for (const TensorType& type : graph_.node(id).outputs) after += BytesOf(type);
    return static_cast<double>(after) > kMostGrowth * static_cast<double>(before);
  }

  absl::Status Prepare(NodeId id, const std::vector<TensorRef>& results,
                       std::map<TensorRef, StoredValues>* values) const {
    Graph part;
    std::map<NodeId, NodeId> in_part;
    std::map<NodeId, Value<double>> leaves;
    for (NodeId one : MadeOf(id)) {
      const Node& node = graph_.node(one);
      std::vector<TensorRef> inputs;
      for (TensorRef input : node.inputs) {
        inputs.push_back({in_part.at(input.node), input.output});
      }
      if (!IsLeaf(node.op.kind())) {
        ISOMER_ASSIGN_OR_RETURN(in_part[one], part.Add(node.op, std::move(inputs), node.name));
        continue;
      }
      in_part[one] = part.AddLeaf(node.op.kind(), node.name, node.outputs[0]).node;
      const StoredValues& stored = model_.weights.at(node.name);
      Array<double> array(node.outputs[0].Sizes());
      const std::vector<float> read = stored.ToVector();
      array.data.assign(read.begin(), read.end());
      leaves[in_part[one]] = {node.outputs[0], {std::move(array)}};
    }
    for (TensorRef result : results) {
      part.AddOutput(absl::StrCat(result.output), {in_part.at(id), result.output});
    }
    ISOMER_ASSIGN_OR_RETURN(const Values<double> all, EvaluateGraph<double>(part, leaves));
    for (TensorRef result : results) {
      const std::vector<double>& data = all[in_part.at(id).value][result.output].part(0, 0).data;
      values->insert({result, StoredValues(std::vector<float>(data.begin(), data.end()))});
    }
    return absl::OkStatus();
  }

  const Model& model_;
  const Graph& graph_;
  const std::vector<NodeId> order_;
  std::vector<size_t> place_;      // per node: its place in the order
  std::vector<bool> is_prepared_;  // per node: could be
};

}  // namespace

absl::StatusOr<PreparedWeights> PrepareWeights(const Model& model, const Graph& graph) {
  return Preparer(model, graph).Run();
}

}  // namespace isomer
