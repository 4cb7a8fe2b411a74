#include "models/onnx/import/formulas.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/nested_parts.h"

namespace isomer {
namespace {

std::string Suffix(OpKind kind) { return absl::StrCat("/", OpName(kind)); }

TensorRef Call(NodeImporter& node, Operator op, std::vector<TensorRef> operands) {
  const std::string suffix = Suffix(op.kind());
  return node.Call(std::move(op), std::move(operands), suffix);
}

constexpr char kSeedName[] = "dropout_seed";

}  // namespace

TensorRef Literal(NodeImporter& node, OnnxTensor value) {
  if (!node.ok()) return {};
  ImportState& state = node.state();
  const std::string name =
      absl::StrCat(node.node().outputs[0], "/constant_", state.model.graph.num_nodes());
  value.is_literal = true;
  state.onnx.constants[name] = std::move(value);
  const absl::StatusOr<TensorRef> leaf = TensorNamed(name, &state);
  if (leaf.ok()) return *leaf;
  node.Fail(leaf.status().message());
  return {};
}

TensorRef FloatLiteral(NodeImporter& node, Sizes dims, std::vector<float> values) {
  OnnxTensor tensor;
  tensor.dims = std::move(dims);
  tensor.floats = std::move(values);
  return Literal(node, std::move(tensor));
}

TensorRef IntLiteral(NodeImporter& node, Sizes dims, std::vector<int64_t> values, DataType dtype) {
  OnnxTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  if (tensor.is_float()) {
    tensor.floats = std::vector<float>(values.begin(), values.end());
  } else {
    tensor.ints = std::move(values);
  }
  return Literal(node, std::move(tensor));
}

bool FitsLiteral(NodeImporter& node, const Sizes& dims) {
  if (!node.ok()) return false;
  const int64_t elements = NumElementsOf(dims);
  int64_t& budget = node.state().literal_budget;
  if (elements < 0 || elements > budget) {
    node.Refuse("it takes a table of [", absl::StrJoin(dims, ","), "], too large to be computed");
    return false;
  }
  budget -= elements;
  return true;
}

TensorRef Filled(NodeImporter& node, double value, Sizes dims, TensorRef like) {
  return Expanded(node, Number(node, value, like), std::move(dims));
}

TensorRef Number(NodeImporter& node, double value, TensorRef like) {
  OnnxTensor tensor;
  tensor.dtype = node.Type(like);
  if (tensor.is_float()) {
    tensor.floats = {static_cast<float>(value)};
  } else {
    const double end = tensor.dtype == DataType::kInt32 ? 0x1p31 : 0x1p63;
    if (!(value >= -end && value < end)) {
      node.Refuse("the number ", value, " as ", DataTypeName(tensor.dtype));
      return {};
    }
    tensor.ints = {static_cast<int64_t>(value)};
  }
  return Literal(node, std::move(tensor));
}

TensorRef Apply(NodeImporter& node, OpKind kind, TensorRef x) { return Call(node, kind, {x}); }

TensorRef Apply(NodeImporter& node, OpKind kind, TensorRef a, TensorRef b) {
  return Call(node, kind, {a, b});
}

TensorRef Apply(NodeImporter& node, OpKind kind, TensorRef x, double number) {
  return Apply(node, kind, x, Number(node, number, x));
}

TensorRef Scaled(NodeImporter& node, TensorRef x, double factor) {
  return factor == 1 ? x : Call(node, {OpKind::kScale, {{"factor", factor}}}, {x});
}

TensorRef Where(NodeImporter& node, TensorRef condition, TensorRef yes, TensorRef no) {
  return Call(node, OpKind::kWhere, {condition, yes, no});
}

TensorRef Cast(NodeImporter& node, TensorRef x, DataType to) {
  if (!node.ok() || node.Type(x) == to) return x;
  if (to == DataType::kBool) {
    return Apply(node, OpKind::kNot, Apply(node, OpKind::kEqual, x, 0));
  }
  return Call(node, {OpKind::kCast, {{"to", static_cast<int64_t>(to)}}}, {x});
}

TensorRef Clipped(NodeImporter& node, TensorRef x, double low, double high) {
  return Call(node, {OpKind::kClip, {{"min", low}, {"max", high}}}, {x});
}

TensorRef IsNegative(NodeImporter& node, TensorRef x) { return Apply(node, OpKind::kLess, x, 0); }

TensorRef Reduced(NodeImporter& node, OpKind kind, TensorRef x, Sizes axes, bool keepdims) {
  if (axes.empty()) return x;
  return Call(node, {kind, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}}}, {x});
}

TensorRef Transposed(NodeImporter& node, TensorRef x, Sizes perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return Call(node, {OpKind::kTranspose, {{"perm", std::move(perm)}}}, {x});
}

TensorRef Reshaped(NodeImporter& node, TensorRef x, Sizes shape) {
  return node.Reshape(x, std::move(shape), Suffix(OpKind::kReshape));
}

TensorRef Expanded(NodeImporter& node, TensorRef x, Sizes shape) {
  if (!node.ok() || node.Sizes(x) == shape) return x;
  return Call(node, {OpKind::kExpand, {{"shape", std::move(shape)}}}, {x});
}

TensorRef Concatenated(NodeImporter& node, std::vector<TensorRef> parts, int axis) {
  return NestedConcat(std::move(parts), [&](std::vector<TensorRef> group) {
    return Call(node, {OpKind::kConcat, {{"axis", int64_t{axis}}}}, std::move(group));
  });
}

std::vector<TensorRef> SplitInto(NodeImporter& node, TensorRef x, int axis, const Sizes& sizes) {
  return NestedSplit(x, sizes, [&](TensorRef whole, const Sizes& of_whole) {
    TensorRef part =
        Call(node, {OpKind::kSplit, {{"axis", int64_t{axis}}, {"sizes", of_whole}}}, {whole});
    std::vector<TensorRef> parts;
    for (size_t i = 0; i < of_whole.size(); ++i) {
      part.output = static_cast<int32_t>(i);
      parts.push_back(part);
    }
    return parts;
  });
}

TensorRef Sliced(NodeImporter& node, TensorRef x, int axis, int64_t begin, int64_t count,
                 int64_t step) {
  if (!node.ok()) return {};
  Sizes sizes = node.Sizes(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (begin == 0 && step == 1 && sizes[axis] == count) return x;
  starts[axis] = begin;
  sizes[axis] = count;
  steps[axis] = step;
  return Call(node, {OpKind::kSlice, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}},
              {x});
}

TensorRef Padded(NodeImporter& node, TensorRef x, Sizes padding, double value, int64_t mode) {
  if (std::count(padding.begin(), padding.end(), 0) == static_cast<int64_t>(padding.size())) {
    return x;
  }
  return Call(node,
              {OpKind::kPad, {{"padding", std::move(padding)}, {"mode", mode}, {"value", value}}},
              {x});
}

TensorRef Product(NodeImporter& node, TensorRef x, TensorRef w) {
  return Apply(node, OpKind::kMatMul, x, w);
}

Sizes AllAxes(int rank, int first) {
  Sizes axes;
  for (int i = first; i < rank; ++i) axes.push_back(i);
  return axes;
}

void DefineAs(NodeImporter& node, int output, TensorRef tensor) {
  if (!node.ok() || output >= node.num_outputs()) return;
  const std::string& name = node.node().outputs[output];
  if (name.empty()) return;
  Graph& graph = node.state().model.graph;
  const Node& producer = graph.node(tensor.node);
  if (!IsLeaf(producer.op.kind()) &&
      absl::StartsWith(producer.name, absl::StrCat(CallName(node.node()), "/"))) {
    graph.set_name(tensor.node, CallName(node.node(), output));
  }
  node.Define(output, tensor);
}

bool IsWanted(NodeImporter& node, int output) {
  if (output >= node.num_outputs() || node.node().outputs[output].empty()) return false;
  const std::string& name = node.node().outputs[output];
  const OnnxGraph& graph = node.state().onnx;
  for (const onnx::ValueInfoProto& wanted : graph.outputs) {
    if (wanted.name() == name) return true;
  }
  auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const OnnxNode& user) { return has(user.inputs) || has(user.captures); });
}

TensorRef RandomSeed(NodeImporter& node) {
  if (!node.ok()) return {};
  ImportState& state = node.state();
  const auto known = state.tensors.find(kSeedName);
  if (known != state.tensors.end()) return known->second;
  const TensorRef seed =
      state.model.graph.AddInput(kSeedName, SequentialType({}, DataType::kInt64));
  state.tensors[kSeedName] = seed;
  return seed;
}

int64_t NextSalt(NodeImporter& node) {
  const Graph& graph = node.state().model.graph;
  int64_t salt = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    salt += graph.node(id).op.kind() == OpKind::kDropout ? 1 : 0;
  }
  return salt;
}

}  // namespace isomer
