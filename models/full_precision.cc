#include "models/full_precision.h"

#include <map>
#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

bool IsLow(DataType dtype) { return dtype == DataType::kFloat16 || dtype == DataType::kBFloat16; }

TensorType InFloat32(TensorType type) {
  if (IsLow(type.dtype)) type.dtype = DataType::kFloat32;
  return type;
}

}  // namespace

DataType StatedPrecision(const Model& model) {
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(NodeId{id});
    if (IsLeaf(node.op.kind()) && IsLow(node.outputs[0].dtype)) return node.outputs[0].dtype;
  }
  return DataType::kFloat32;
}

absl::Status StateFloat32(Model* model) {
  const Graph& old = model->graph;
  Graph graph;
  std::map<TensorRef, TensorRef> now;
  for (NodeId id : old.TopologicalOrder()) {
    const Node& node = old.node(id);
    const OpKind kind = node.op.kind();
    if (IsLeaf(kind)) {
      now[{id, 0}] = graph.AddLeaf(kind, node.name, InFloat32(node.outputs[0]));
      continue;
    }
    std::vector<TensorRef> inputs;
    for (TensorRef input : node.inputs) inputs.push_back(now.at(input));
    Operator op = node.op;
    if (kind == OpKind::kCast) {
      const DataType to = InFloat32(node.outputs[0]).dtype;
      if (to == DataType::kFloat32 && graph.type(inputs[0]).dtype == to) {
        now[{id, 0}] = inputs[0];
        continue;
      }
      op.Set("to", static_cast<int64_t>(to));
    }
    ISOMER_ASSIGN_OR_RETURN(const NodeId added,
                            graph.Add(std::move(op), std::move(inputs), node.name));
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      now[{id, static_cast<int32_t>(o)}] = {added, static_cast<int32_t>(o)};
    }
  }
  for (const Graph::NamedOutput& output : old.outputs()) {
    graph.AddOutput(output.name, now.at(output.tensor));
  }
  model->graph = std::move(graph);
  return absl::OkStatus();
}

}  // namespace isomer
