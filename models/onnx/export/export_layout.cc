// Operators that relabel, select and look up elements.
#include <algorithm>
#include <climits>
#include <numeric>

#include "models/onnx/export/export_operators.h"
#include "models/onnx/tensor.h"

namespace isomer {

void ExportTranspose(NodeExporter& node) {
  node.Result("Transpose", {node.In(0)}, {{"perm", node.op().Ints("perm")}});
}

void ExportReshape(NodeExporter& node) {
  node.Result("Reshape", {node.In(0), node.Ints(node.OutType(0).Sizes())});
}

// Axes are counted from the front: onnxruntime knows a concatenation of channels by its axis 1.
void ExportConcat(NodeExporter& node) {
  std::vector<std::string> parts;
  for (int i = 0; i < node.num_inputs(); ++i) parts.push_back(node.In(i));
  node.Result("Concat", std::move(parts), {{"axis", node.Axis("axis", node.InType(0).rank())}});
}

void ExportSplit(NodeExporter& node) {
  std::vector<int64_t> sizes;
  for (const Extent& size : node.op().Extents("sizes")) sizes.push_back(size.value());
  node.Result("Split", {node.In(0), node.Ints(sizes)},
              {{"axis", node.Axis("axis", node.InType(0).rank())}});
}

// An end before the first element is no index of ONNX: it would count from the back.
void ExportSlice(NodeExporter& node) {
  const std::vector<int64_t>& starts = node.op().Ints("starts");
  const std::vector<int64_t>& steps = node.op().Ints("steps");
  const std::vector<Extent>& sizes = node.op().Extents("sizes");
  std::vector<int64_t> ends, axes;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t end = starts[i] + sizes[i].value() * steps[i];
    ends.push_back(end < 0 ? INT64_MIN : end);
    axes.push_back(static_cast<int64_t>(i));
  }
  node.Result("Slice",
              {node.In(0), node.Ints(starts), node.Ints(ends), node.Ints(axes), node.Ints(steps)});
}

void ExportPad(NodeExporter& node) {
  const int64_t mode = node.op().Int("mode");
  const std::string pads = node.Ints(node.op().Ints("padding"));
  const std::string name = mode == 0   ? "constant"
                           : mode == 1 ? "reflect"
                           : mode == 2 ? "edge"
                                       : "wrap";
  std::vector<std::string> inputs = {node.In(0), pads};
  if (mode == 0) inputs.push_back(node.Number(node.op().Number("value"), node.InType(0).dtype));
  node.Result("Pad", std::move(inputs), {{"mode", name}});
}

void ExportExpand(NodeExporter& node) {
  node.Result("Expand", {node.In(0), node.Ints(node.op().Ints("shape"))});
}

void ExportTrilu(NodeExporter& node) {
  node.Result("Trilu", {node.In(0), node.Int(node.op().Int("k"))},
              {{"upper", node.op().Int("upper")}});
}

void ExportEmbedding(NodeExporter& node) {
  node.Result("Gather", {node.In(0), node.In(1)}, {{"axis", int64_t{0}}});
}

// The matrix of each row, and a product for each.
void ExportGatherMatMul(NodeExporter& node) {
  const std::string of_rows = node.Add("Gather", {node.In(1), node.In(2)}, {{"axis", int64_t{0}}});
  const std::string rows = node.Add("Unsqueeze", {node.In(0), node.Ints({-2})});
  const std::string product = node.Add("MatMul", {rows, of_rows});
  node.Result("Squeeze", {product, node.Ints({-2})});
}

void ExportEmbeddingBag(NodeExporter& node) {
  const std::string rows = node.Add("Gather", {node.In(0), node.In(1)}, {{"axis", int64_t{0}}});
  const bool is_mean = node.op().Int("mean") != 0;
  node.ResultOfReduction(is_mean ? "ReduceMean" : "ReduceSum", rows, {1}, /*keepdims=*/false);
}

namespace {

// Of each batch, by indices of their own.
std::vector<std::string> RowsAndIndices(NodeExporter& node) {
  return {node.In(0), node.Add("Unsqueeze", {node.In(1), node.Ints({-1})})};
}

// Of rows [b.., v, h].
int64_t BatchesOfRows(NodeExporter& node) { return node.InType(0).rank() - 2; }

}  // namespace

void ExportGatherRows(NodeExporter& node) {
  node.Result("GatherND", RowsAndIndices(node), {{"batch_dims", BatchesOfRows(node)}});
}

void ExportGatherSum(NodeExporter& node) {
  const std::string rows =
      node.Add("GatherND", RowsAndIndices(node), {{"batch_dims", BatchesOfRows(node)}});
  const std::string weights = node.Add("Unsqueeze", {node.In(2), node.Ints({-1})});
  const std::string weighted = node.Add("Mul", {rows, weights});
  node.ResultOfReduction("ReduceSum", weighted, {-2}, /*keepdims=*/false);
}

void ExportGather(NodeExporter& node) {
  node.Result(node.kind() == OpKind::kGather ? "Gather" : "GatherElements",
              {node.In(0), node.In(1)}, {{"axis", node.op().Int("axis")}});
}

void ExportScatterElements(NodeExporter& node) {
  static constexpr const char* kReductions[] = {"none", "add", "mul", "max", "min"};
  const std::string reduction = kReductions[node.op().Int("reduction")];
  node.Result("ScatterElements", {node.In(0), node.In(1), node.In(2)},
              {{"axis", node.op().Int("axis")}, {"reduction", reduction}});
}

// ONNX's OneHot counts indices below 0 from the end; here they, as those of labels that are to be
// ignored, are nowhere hot.
void ExportOneHot(NodeExporter& node) {
  const int64_t depth = node.op().Int("depth");
  const int rank = node.OutType(0).rank();
  const int64_t axis = node.Axis("axis", rank);
  std::vector<int64_t> dims(rank, 1), classes(depth);
  dims[axis] = depth;
  std::iota(classes.begin(), classes.end(), 0);
  const std::string indices = node.Add("Unsqueeze", {node.In(0), node.Ints({axis})});
  const std::string wide = node.Add("Cast", {indices}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  const std::string numbers = node.Reshaped(node.Ints(std::move(classes)), std::move(dims));
  const std::string is_hot = node.Add("Equal", {wide, numbers});
  node.Result("Cast", {is_hot}, {{"to", int64_t{OnnxElementType(node.OutType(0).dtype)}}});
}

}  // namespace isomer
