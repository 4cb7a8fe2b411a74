// Reductions over axes, the positions of extremes, and running sums.
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// Axes became an operand with opset 18, of ReduceSum with 13. Where there are none, all dims.
Sizes ReadAxes(NodeImporter& node, int rank, bool* is_empty) {
  const bool is_operand = node.opset() >= (node.op() == "ReduceSum" ? 13 : 18);
  Sizes axes = is_operand ? node.ConstantInts(1) : node.attributes.Ints("axes", {});
  *is_empty = axes.empty();
  for (int64_t& axis : axes) axis = node.Axis(axis, rank);
  return axes.empty() ? AllAxes(rank) : axes;
}

// What the operator sums, and what it does with the sum.
TensorRef AsOperator(NodeImporter& node, TensorRef x, const Sizes& axes, bool keepdims) {
  const std::string& op = node.op();
  auto reduced = [&](OpKind kind, TensorRef of) { return Reduced(node, kind, of, axes, keepdims); };
  if (op == "ReduceSum") return reduced(OpKind::kReduceSum, x);
  if (op == "ReduceMean") return reduced(OpKind::kReduceMean, x);
  if (op == "ReduceProd") return reduced(OpKind::kReduceProd, x);
  if (op == "ReduceL1") return reduced(OpKind::kReduceSum, Apply(node, OpKind::kAbs, x));
  if (op == "ReduceLogSum") return Apply(node, OpKind::kLog, reduced(OpKind::kReduceSum, x));
  if (op == "ReduceMax" || op == "ReduceMin") {
    const OpKind kind = op == "ReduceMax" ? OpKind::kReduceMax : OpKind::kReduceMin;
    const DataType type = node.Type(x);
    if (type != DataType::kBool) return reduced(kind, x);
    return Cast(node, reduced(kind, Cast(node, x, DataType::kInt32)), type);
  }
  if (op == "ReduceLogSumExp") {  // Shifted by the largest, so that nothing overflows.
    const TensorRef largest = Reduced(node, OpKind::kReduceMax, x, axes);
    const TensorRef shifted = Apply(node, OpKind::kSub, x, largest);
    const TensorRef sum = reduced(OpKind::kReduceSum, Apply(node, OpKind::kExp, shifted));
    const TensorRef log = Apply(node, OpKind::kLog, sum);
    return node.ok() ? Apply(node, OpKind::kAdd, log, Reshaped(node, largest, node.Sizes(log)))
                     : TensorRef();
  }
  const TensorRef squares = reduced(OpKind::kReduceSum, Apply(node, OpKind::kMul, x, x));
  if (op == "ReduceSumSquare" || !node.ok()) return squares;
  const DataType type = node.Type(squares);
  const TensorRef root =
      Apply(node, OpKind::kSqrt, Cast(node, squares, IsFloat(type) ? type : DataType::kFloat32));
  return Cast(node, root, type);
}

}  // namespace

void ImportReduction(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  bool is_empty = false;
  const Sizes axes = ReadAxes(node, node.Rank(x), &is_empty);
  const bool keepdims = node.attributes.Int("keepdims", 1) != 0;
  const bool empty_is_none = node.attributes.Int("noop_with_empty_axes", 0) == 1;
  if (!node.ok()) return;
  if (is_empty && empty_is_none) return DefineAs(node, 0, AsOperator(node, x, {}, true));
  DefineAs(node, 0, AsOperator(node, x, axes, keepdims));
}

void ImportArgMax(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  const Operator op = {node.op() == "ArgMax" ? OpKind::kArgMax : OpKind::kArgMin,
                       {{"axis", int64_t{axis}},
                        {"keepdims", node.attributes.Int("keepdims", 1)},
                        {"last", node.attributes.Int("select_last_index", 0)}}};
  node.Define(0, node.Call(op, {x}));
}

// k is an operand from opset 10 on. Unsorted output is sorted all the same.
void ImportTopK(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", -1), node.Rank(x));
  const bool largest = node.attributes.Int("largest", 1) != 0;
  node.attributes.Ignore("sorted");
  const Sizes k = node.opset() >= 10 ? node.ConstantInts(1) : Sizes{node.attributes.Int("k", 0)};
  if (!node.Expect(k.size() == 1, "k is not one number")) return;
  const Operator op = {OpKind::kTopK,
                       {{"k", k[0]}, {"axis", int64_t{axis}}, {"largest", int64_t{largest}}}};
  const TensorRef values = node.Call(op, {x});
  node.Define(0, values);
  node.Define(1, {values.node, 1});
}

void ImportCumSum(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const Sizes axis = node.ConstantInts(1);
  if (!node.Expect(axis.size() == 1, "the axis is not one number")) return;
  const Operator op = {OpKind::kCumSum,
                       {{"axis", int64_t{node.Axis(axis[0], node.Rank(x))}},
                        {"exclusive", node.attributes.Int("exclusive", 0)},
                        {"reverse", node.attributes.Int("reverse", 0)}}};
  node.Define(0, node.Call(op, {x}));
}

}  // namespace isomer
