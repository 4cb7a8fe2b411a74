// Attention and recurrent cells, taken apart.
#include <cmath>
#include <limits>

#include "models/onnx/export/export_operators.h"

namespace isomer {
namespace {

// 0 where query i may see key j (j <= i + keys - queries), minus infinity elsewhere; both in the
// order of `stripes`.
std::string CausalMask(NodeExporter& node, int64_t queries, int64_t keys, int64_t stripes) {
  const auto place = [stripes](int64_t index, int64_t size) {
    const int64_t each = size / stripes;
    return index % each * stripes + index / each;
  };
  std::vector<double> mask(queries * keys, 0);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      if (place(j, keys) <= place(i, queries) + keys - queries) continue;
      mask[i * keys + j] = -std::numeric_limits<double>::infinity();
    }
  }
  return node.Numbers({queries, keys}, mask, node.InType(0).dtype);
}

// Parts of equal size along dim `axis`, which goes.
std::vector<std::string> Parts(NodeExporter& node, const std::string& x, std::vector<int64_t> sizes,
                               int axis) {
  const int64_t count = sizes[axis];
  std::vector<std::string> parts =
      node.AddMany("Split", {x, node.Ints(std::vector<int64_t>(count, 1))}, static_cast<int>(count),
                   {{"axis", int64_t{axis}}});
  sizes.erase(sizes.begin() + axis);
  for (std::string& part : parts) part = node.Reshaped(part, sizes);
  return parts;
}

}  // namespace

// softmax(scale * q k^T + mask) v. The query heads that share a key head are a dim of their own
// in both products.
void ExportAttention(NodeExporter& node) {
  const std::vector<int64_t> q = node.InSizes(0), k = node.InSizes(1), v = node.InSizes(2);
  const DataType dtype = node.InType(0).dtype;
  const int64_t group = q[1] / k[1];
  std::string query = node.In(0), key = node.In(1), value = node.In(2);
  std::vector<int64_t> swap = {0, 1, 3, 2};
  if (group > 1) {
    query = node.Reshaped(query, {q[0], k[1], group, q[2], q[3]});
    key = node.Reshaped(key, {k[0], k[1], 1, k[2], k[3]});
    value = node.Reshaped(value, {v[0], v[1], 1, v[2], v[3]});
    swap = {0, 1, 2, 4, 3};
  }
  key = node.Add("Transpose", {key}, {{"perm", swap}});
  std::string scores = node.Add("MatMul", {query, key});
  scores = node.Add("Mul", {scores, node.Number(node.op().Number("scale"), dtype)});
  if (node.op().kind() == OpKind::kCappedAttention) {
    const std::string curved = node.Add("Tanh", {scores});
    scores = node.Add("Mul", {curved, node.Number(node.op().Number("cap"), dtype)});
  }
  if (group > 1) scores = node.Reshaped(scores, {q[0], q[1], q[2], k[2]});
  if (node.num_inputs() > 3) scores = node.Add("Add", {scores, node.In(3)});
  if (node.op().Int("causal") != 0) {
    scores = node.Add("Add", {scores, CausalMask(node, q[2], k[2], node.op().Int("causal"))});
  }
  std::string weights = node.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (group == 1) return node.Result("MatMul", {weights, value});
  weights = node.Reshaped(weights, {q[0], k[1], group, q[2], k[2]});
  const std::string product = node.Add("MatMul", {weights, value});
  node.Result("Reshape", {product, node.Ints(node.OutType(0).Sizes())});
}

// y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin for the pairs (x1, x2).
void ExportRotary(NodeExporter& node) {
  const std::vector<int64_t> sizes = node.InSizes(0);
  const int64_t half = sizes.back() / 2;
  const bool interleaved = node.op().Int("interleaved") != 0;
  std::vector<int64_t> pairs(sizes.begin(), sizes.end() - 1), one = pairs;
  pairs.insert(pairs.end(), {interleaved ? half : 2, interleaved ? 2 : half});
  const int rank = static_cast<int>(pairs.size());
  const int axis = interleaved ? rank - 1 : rank - 2;
  const std::vector<std::string> x = Parts(node, node.Reshaped(node.In(0), pairs), pairs, axis);
  auto mul = [&](const std::string& a, const std::string& b) { return node.Add("Mul", {a, b}); };
  const std::string first = node.Add("Sub", {mul(x[0], node.In(1)), mul(x[1], node.In(2))});
  const std::string second = node.Add("Add", {mul(x[1], node.In(1)), mul(x[0], node.In(2))});
  one = pairs;
  one[axis] = 1;
  const std::string both = node.Add(
      "Concat", {node.Reshaped(first, one), node.Reshaped(second, one)}, {{"axis", int64_t{axis}}});
  node.Result("Reshape", {both, node.Ints(sizes)});
}

// c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c')
void ExportLstmCell(NodeExporter& node) {
  const std::vector<int64_t> sizes = node.InSizes(0);
  const std::vector<std::string> gates =
      Parts(node, node.In(0), sizes, static_cast<int>(sizes.size()) - 2);
  auto sigmoid = [&](int gate) { return node.Add("Sigmoid", {gates[gate]}); };
  const std::string kept = node.Add("Mul", {sigmoid(1), node.In(1)});
  const std::string added = node.Add("Mul", {sigmoid(0), node.Add("Tanh", {gates[2]})});
  const std::string cell = node.Add("Add", {kept, added});
  node.ResultAt(1, "Identity", {cell});
  node.ResultAt(0, "Mul", {sigmoid(3), node.Add("Tanh", {cell})});
}

// r = sigmoid(x_r + y_r), z = sigmoid(x_z + y_z), n = tanh(x_n + r y_n), h' = (1 - z) n + z h
void ExportGruCell(NodeExporter& node) {
  const std::vector<int64_t> sizes = node.InSizes(0);
  const int axis = static_cast<int>(sizes.size()) - 2;
  const std::vector<std::string> x = Parts(node, node.In(0), sizes, axis);
  const std::vector<std::string> y = Parts(node, node.In(1), sizes, axis);
  auto gate = [&](int i) { return node.Add("Sigmoid", {node.Add("Add", {x[i], y[i]})}); };
  const std::string r = gate(0), z = gate(1);
  const std::string reset = node.Add("Mul", {r, y[2]});
  const std::string candidate = node.Add("Tanh", {node.Add("Add", {x[2], reset})});
  const std::string rest = node.Add("Sub", {node.Number(1, node.InType(0).dtype), z});
  node.Result("Add", {node.Add("Mul", {rest, candidate}), node.Add("Mul", {z, node.In(2)})});
}

}  // namespace isomer
