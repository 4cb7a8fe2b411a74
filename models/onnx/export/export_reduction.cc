// Reductions over dims.
#include "models/onnx/export/export_operators.h"

namespace isomer {

void ExportReduction(NodeExporter& node) {
  const char* const op = node.kind() == OpKind::kReduceSum    ? "ReduceSum"
                         : node.kind() == OpKind::kReduceMean ? "ReduceMean"
                         : node.kind() == OpKind::kReduceMax  ? "ReduceMax"
                         : node.kind() == OpKind::kReduceMin  ? "ReduceMin"
                                                              : "ReduceProd";
  node.ResultOfReduction(op, node.In(0), node.op().Ints("axes"), node.op().Int("keepdims") != 0);
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
