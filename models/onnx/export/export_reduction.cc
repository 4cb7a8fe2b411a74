// Reductions over dims.
#include "models/onnx/export/export_operators.h"

namespace isomer {

// In opset 17 the axes of ReduceSum are an operand, those of the others an attribute.
void ExportReduction(NodeExporter& node) {
  const std::vector<int64_t>& axes = node.op().Ints("axes");
  const OnnxAttribute keepdims = {"keepdims", node.op().Int("keepdims")};
  if (node.kind() == OpKind::kReduceSum) {
    return node.Result("ReduceSum", {node.In(0), node.Ints(axes)}, {keepdims});
  }
  node.Result(node.kind() == OpKind::kReduceMean  ? "ReduceMean"
              : node.kind() == OpKind::kReduceMax ? "ReduceMax"
              : node.kind() == OpKind::kReduceMin ? "ReduceMin"
                                                  : "ReduceProd",
              {node.In(0)}, {{"axes", axes}, keepdims});
}

void ExportArg(NodeExporter& node) {
  node.Result(node.kind() == OpKind::kArgMax ? "ArgMax" : "ArgMin", {node.In(0)},
              {{"axis", node.op().Int("axis")},
               {"keepdims", node.op().Int("keepdims")},
               {"select_last_index", node.op().Int("last")}});
}

void ExportTopK(NodeExporter& node) {
  node.Result("TopK", {node.In(0), node.Ints({node.op().Int("k")})},
              {{"axis", node.op().Int("axis")},
               {"largest", node.op().Int("largest")},
               {"sorted", int64_t{1}}});
}

void ExportCumSum(NodeExporter& node) {
  const int64_t axis = node.Axis("axis", node.InType(0).rank());
  node.Result("CumSum", {node.In(0), node.Int(axis)},
              {{"exclusive", node.op().Int("exclusive")}, {"reverse", node.op().Int("reverse")}});
}

}  // namespace isomer
