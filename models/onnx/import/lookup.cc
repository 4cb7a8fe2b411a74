// Operators that select elements, by constants or by a tensor of indices.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

// Elements [begin, begin + count) along `axis`, as a part of a Split: what rules merge again.
// REQUIRES: they are inside, count >= 1.
TensorRef Range(NodeImporter& node, TensorRef x, int axis, int64_t begin, int64_t count) {
  if (!node.ok()) return {};
  const int64_t size = node.Sizes(x)[axis];
  if (count == size) return x;
  std::vector<int64_t> sizes;
  if (begin > 0) sizes.push_back(begin);
  const int part = static_cast<int>(sizes.size());
  sizes.push_back(count);
  if (begin + count < size) sizes.push_back(size - begin - count);
  TensorRef result = SplitInto(node, x, axis, sizes)[0];
  result.output = part;
  return result;
}

// Input `i` as indices into a dim of `size`: those that count from the end are moved to the front
// where the file states them; others have to be from the front.
TensorRef Indices(NodeImporter& node, int i, int64_t size) {
  const OnnxTensor* const constant = node.Constant(i);
  if (constant == nullptr || constant->is_float()) return node.Operand(i);
  OnnxTensor moved = *constant;
  for (size_t k = 0; k < moved.ints.size(); ++k) {
    if (moved.ints[k] < 0) moved.ints[k] += size;
    const bool fits = moved.ints[k] >= 0 && moved.ints[k] < size;
    if (!node.Expect(fits, "index ", constant->ints[k], " is outside of dim of size ", size)) {
      return {};
    }
  }
  if (moved.ints == constant->ints) return node.Operand(i);
  return Literal(node, std::move(moved));
}

// 0 none, 1 add, 2 mul, 3 max, 4 min; -1 and an error for others.
int64_t ReadReduction(NodeImporter& node) {
  static constexpr const char* kReductions[] = {"none", "add", "mul", "max", "min"};
  const std::string reduction = node.attributes.String("reduction", "none");
  const auto* const found = std::find(std::begin(kReductions), std::end(kReductions), reduction);
  if (found != std::end(kReductions)) return found - std::begin(kReductions);
  node.Fail("reduction ", QuotedName(reduction), " is not known");
  return -1;
}

// Indices [.., k] into the first k of `dims` as positions [..] in row-major order.
TensorRef LinearIndices(NodeImporter& node, int input, const Sizes& dims) {
  if (!node.ok()) return {};
  const int64_t k = static_cast<int64_t>(dims.size());
  Sizes strides(k, 1);
  for (int64_t i = k - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims[i + 1];
  const OnnxTensor* const constant = node.Constant(input);
  if (constant == nullptr) {
    const TensorRef indices = node.Operand(input);
    if (k == 1) {
      const Sizes sizes = node.Sizes(indices);
      return Reshaped(node, indices, Sizes(sizes.begin(), sizes.end() - 1));
    }
    const TensorRef weights = IntLiteral(node, {k}, strides, node.Type(indices));
    return Reduced(node, OpKind::kReduceSum, Apply(node, OpKind::kMul, indices, weights),
                   {node.Rank(indices) - 1}, /*keepdims=*/false);
  }
  if (!node.Expect(!constant->is_float(), "its indices are not integers")) return {};
  OnnxTensor linear;
  linear.dtype = DataType::kInt64;
  linear.dims.assign(constant->dims.begin(), constant->dims.end() - 1);
  for (size_t at = 0; at < constant->ints.size(); at += k) {
    int64_t position = 0;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t stated = constant->ints[at + i], index = stated < 0 ? stated + dims[i] : stated;
      if (!node.Expect(index >= 0 && index < dims[i], "index ", stated, " is outside of dim ", i,
                       " of size ", dims[i])) {
        return {};
      }
      position += index * strides[i];
    }
    linear.ints.push_back(position);
  }
  return Literal(node, std::move(linear));
}

}  // namespace

// Sizes are the second operand from opset 13 on, and an attribute before; without them the parts
// are equal, the last smaller where num_outputs (opset 18) says how many there are.
void ImportSplit(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  std::vector<int64_t> sizes =
      node.opset() >= 13 ? node.ConstantInts(1) : node.attributes.Ints("split", {});
  const int64_t num_outputs = node.attributes.Int("num_outputs", 0);
  if (!node.ok()) return;
  const int64_t size = node.Sizes(x)[axis], parts = node.num_outputs();
  if (sizes.empty() && num_outputs != 0) {
    const int64_t chunk = (size + parts - 1) / parts, last = size - chunk * (parts - 1);
    if (!node.Expect(num_outputs == parts, "num_outputs is ", num_outputs, " of ", parts) ||
        !node.Expect(last >= 1, "dim ", axis, " of size ", size, " has no ", parts, " parts")) {
      return;
    }
    sizes.assign(parts, chunk);
    sizes.back() = last;
  }
  if (sizes.empty()) {
    if (!node.Expect(size % parts == 0, "dim ", axis, " of size ", size, " does not divide into ",
                     parts, " equal parts")) {
      return;
    }
    sizes.assign(parts, size / parts);
  }
  if (!node.Expect(static_cast<int64_t>(sizes.size()) == parts, "it has ", sizes.size(),
                   " sizes and ", parts, " outputs")) {
    return;
  }
  for (int64_t i = 0; i < parts; ++i) {
    if (!node.Expect(sizes[i] != 0, "output ", i, " has size 0; ", kNoEmptyTensors)) return;
  }
  if (parts == 1 && sizes[0] == size) return node.Define(0, x);
  const std::vector<TensorRef> split = SplitInto(node, x, axis, sizes);
  for (int64_t i = 0; i < parts; ++i) node.Define(static_cast<int>(i), split[i]);
}

// Slice(x, starts, ends, axes, steps); before opset 10 with attributes and without steps.
void ImportSlice(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  const bool old = node.opset() < 10;
  const Sizes starts = old ? node.attributes.Ints("starts", {}) : node.ConstantInts(1);
  const Sizes ends = old ? node.attributes.Ints("ends", {}) : node.ConstantInts(2);
  const Sizes first = AllAxes(static_cast<int>(starts.size()));
  const Sizes axes = old ? node.attributes.Ints("axes", first) : node.ConstantInts(3, first);
  const Sizes steps = node.ConstantInts(4, Sizes(starts.size(), 1));
  if (!node.Expect(ends.size() == starts.size() && axes.size() == starts.size() &&
                       steps.size() == starts.size(),
                   "starts, ends, axes and steps differ in length")) {
    return;
  }
  for (size_t i = 0; i < starts.size() && node.ok(); ++i) {
    const int axis = node.Axis(axes[i], node.Rank(x));
    const int64_t step = steps[i];
    if (!node.Expect(step != 0, "a step is 0")) return;
    const int64_t size = node.Sizes(x)[axis];
    // Backwards, -1 is before the first element, which an end may be and a start not.
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    auto clamp = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, low, high);
    };
    const int64_t begin = clamp(starts[i]), end = clamp(ends[i]);
    const int64_t room = step > 0 ? end - begin : begin - end;
    if (!node.Expect(room > 0, "nothing of dim ", axis, " remains; ", kNoEmptyTensors)) return;
    const int64_t stride = step > 0 ? step : step < -size ? size : -step;
    const int64_t count = (room - 1) / stride + 1;
    x = step == 1 ? Range(node, x, axis, begin, count)
                  : Sliced(node, x, axis, begin, count, count == 1 ? 1 : step);
  }
  DefineAs(node, 0, x);
}

// Rows of a table. Of the row that PyTorch does not train (padding_idx) its value, as a constant.
void DefineEmbedding(NodeImporter& node, TensorRef table, TensorRef indices) {
  const std::optional<int64_t> row = node.node().lost.padding_row;
  const OnnxTensor* const values = node.Constant(0);
  if (!row.has_value() || values == nullptr || *row >= values->dims[0]) {
    return node.Define(0, node.Call(OpKind::kEmbedding, {table, indices}));
  }
  const TensorRef rows = Apply(node, OpKind::kEmbedding, table, indices);
  const TensorRef is_row = Apply(node, OpKind::kEqual, indices, static_cast<double>(*row));
  Sizes sizes = node.Sizes(indices);
  sizes.push_back(1);
  const int64_t width = values->dims[1];
  OnnxTensor padding;
  padding.dtype = values->dtype;
  padding.dims = {width};
  const auto begin = values->floats.begin() + *row * width;
  padding.floats = std::vector<float>(begin, begin + width);
  const TensorRef value = Literal(node, std::move(padding));
  DefineAs(node, 0, Where(node, Reshaped(node, is_row, std::move(sizes)), value, rows));
}

// By an index tensor along axis 0 of a table: Embedding. By constant, consecutive indices along
// any axis (a token's row; positions 0, 1, 2, ..): a part of a Split. Else Gather.
void ImportGather(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  if (!node.ok()) return;
  std::vector<int64_t> sizes = node.Sizes(x);
  const TensorRef indices = node.Constant(1) == nullptr ? node.Operand(1) : TensorRef();
  if (node.Constant(1) == nullptr) {
    if (axis == 0 && sizes.size() == 2 && IsFloat(node.Type(x))) {
      return DefineEmbedding(node, x, indices);
    }
    return node.Define(0, node.Call({OpKind::kGather, {{"axis", int64_t{axis}}}}, {x, indices}));
  }
  const OnnxTensor constant = *node.Constant(1);
  if (!node.Expect(!constant.ints.empty(), "its indices are not integers")) return;
  bool is_range = true;
  for (size_t i = 0; i < constant.ints.size(); ++i) {
    const int64_t index = constant.ints[i];
    if (!node.Expect(index >= -sizes[axis] && index < sizes[axis], "index ", index,
                     " is outside of dim ", axis, " of size ", sizes[axis])) {
      return;
    }
    is_range = is_range && (index - constant.ints[0] == static_cast<int64_t>(i)) &&
               (index < 0) == (constant.ints[0] < 0);
  }
  if (!is_range) {
    const Operator gather = {OpKind::kGather, {{"axis", int64_t{axis}}}};
    return node.Define(0, node.Call(gather, {x, Indices(node, 1, sizes[axis])}));
  }
  const int64_t begin = constant.ints[0] < 0 ? constant.ints[0] + sizes[axis] : constant.ints[0];
  const TensorRef part = Range(node, x, axis, begin, constant.size());
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, constant.dims.begin(), constant.dims.end());
  DefineAs(node, 0, Reshaped(node, part, std::move(sizes)));
}

void ImportGatherElements(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  if (!node.ok()) return;
  const TensorRef indices = Indices(node, 1, node.Sizes(x)[axis]);
  node.Define(0, node.Call({OpKind::kGatherElements, {{"axis", int64_t{axis}}}}, {x, indices}));
}

// Also Scatter, as it was called before opset 11.
void ImportScatterElements(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  const int64_t reduction = ReadReduction(node);
  if (!node.ok()) return;
  const TensorRef indices = Indices(node, 1, node.Sizes(x)[axis]), updates = node.Operand(2);
  const Operator scatter = {OpKind::kScatterElements,
                            {{"axis", int64_t{axis}}, {"reduction", reduction}}};
  node.Define(0, node.Call(scatter, {x, indices, updates}));
}

// The indexed dims become one: a table of rows, or of those of each batch.
void ImportGatherNd(NodeImporter& node) {
  const TensorRef x = node.Operand(0);
  const int64_t batch_dims = node.attributes.Int("batch_dims", 0);
  if (!node.ok()) return;
  const OnnxTensor* const constant = node.Constant(1);
  const Sizes sizes = node.Sizes(x);
  const Sizes indices = constant != nullptr ? constant->dims : node.Sizes(node.Operand(1));
  const int64_t rank = static_cast<int64_t>(sizes.size());
  if (!node.Expect(!indices.empty(), "its indices have rank 0")) return;
  const int64_t k = indices.back();
  if (!node.Expect(k >= 1 && batch_dims >= 0 && batch_dims + k <= rank &&
                       batch_dims < static_cast<int64_t>(indices.size()),
                   "indices of ", k, " dims with batch_dims ", batch_dims, " into rank ", rank)) {
    return;
  }
  const auto row = sizes.begin() + batch_dims + k;
  const int64_t batch = NumElementsOf({sizes.begin(), sizes.begin() + batch_dims});
  const int64_t rows = NumElementsOf({sizes.begin() + batch_dims, row});
  const TensorRef linear = LinearIndices(node, 1, {sizes.begin() + batch_dims, row});
  const Sizes rest(row, sizes.end());
  Sizes result(indices.begin(), indices.end() - 1);
  result.insert(result.end(), rest.begin(), rest.end());
  TensorRef found;
  if (batch > 1) {
    const int64_t each = NumElementsOf({indices.begin() + batch_dims, indices.end() - 1});
    const TensorRef rows_of_x = Reshaped(node, x, {batch, rows, NumElementsOf(rest)});
    found = node.Call(OpKind::kGatherRows, {rows_of_x, Reshaped(node, linear, {batch, each})},
                      "/gather");
  } else {
    Sizes table = rest;
    table.insert(table.begin(), rows);
    found = node.Call({OpKind::kGather, {{"axis", int64_t{0}}}},
                      {Reshaped(node, x, std::move(table)), linear}, "/gather");
  }
  DefineAs(node, 0, Reshaped(node, found, std::move(result)));
}

// Rows of the table that the indexed dims make are replaced or combined with updates.
void ImportScatterNd(NodeImporter& node) {
  const TensorRef x = node.Operand(0), updates = node.Operand(2);
  const int64_t reduction = ReadReduction(node);
  if (!node.ok()) return;
  const OnnxTensor* const constant = node.Constant(1);
  const Sizes sizes = node.Sizes(x);
  const Sizes indices = constant != nullptr ? constant->dims : node.Sizes(node.Operand(1));
  const int64_t k = indices.empty() ? 0 : indices.back();
  if (!node.Expect(k >= 1 && k <= static_cast<int64_t>(sizes.size()), "indices of ", k,
                   " dims into rank ", sizes.size())) {
    return;
  }
  const int64_t rows = NumElementsOf({sizes.begin(), sizes.begin() + k});
  const int64_t width = NumElementsOf({sizes.begin() + k, sizes.end()});
  const int64_t count = NumElementsOf({indices.begin(), indices.end() - 1});
  const TensorRef linear = LinearIndices(node, 1, {sizes.begin(), sizes.begin() + k});
  const TensorRef wide = Expanded(node, Reshaped(node, linear, {count, 1}), {count, width});
  const Operator scatter = {OpKind::kScatterElements,
                            {{"axis", int64_t{0}}, {"reduction", reduction}}};
  const TensorRef result = node.Call(
      scatter, {Reshaped(node, x, {rows, width}), wide, Reshaped(node, updates, {count, width})},
      "/scatter");
  DefineAs(node, 0, Reshaped(node, result, sizes));
}

// Compress(x, condition): the elements along the axis, or of all of x in one row, for which the
// condition, a constant, holds. It may be shorter than they are.
void ImportCompress(NodeImporter& node) {
  TensorRef x = node.Operand(0);
  const OnnxTensor* const condition = node.Constant(1);
  if (condition == nullptr) return node.Refuse("the condition is no constant");
  if (!node.ok()) return;
  if (!node.attributes.Has("axis")) x = Reshaped(node, x, {NumElementsOf(node.Sizes(x))});
  const int axis = node.Axis(node.attributes.Int("axis", 0), node.Rank(x));
  if (!node.ok()) return;
  Sizes kept;
  for (int64_t i = 0; i < condition->size(); ++i) {
    if (condition->Number(i) != 0) kept.push_back(i);
  }
  const bool is_inside = condition->dims.size() == 1 && condition->size() <= node.Sizes(x)[axis];
  if (!node.Expect(is_inside, "the condition is no list, or longer than dim ", axis)) return;
  if (kept.empty()) return node.Refuse("the condition keeps nothing");
  const int64_t count = static_cast<int64_t>(kept.size());
  const TensorRef indices = IntLiteral(node, {count}, std::move(kept));
  DefineAs(node, 0,
           node.Call({OpKind::kGather, {{"axis", int64_t{axis}}}}, {x, indices}, "/gather"));
}

// TensorScatter(cache, update, begins): rows begins[b], begins[b] + 1, .. of sample b along the
// axis are those of the update; in circular mode they go on at 0 after the last.
void ImportTensorScatter(NodeImporter& node) {
  const TensorRef cache = node.Operand(0), update = node.Operand(1);
  const int axis = node.Axis(node.attributes.Int("axis", -2), node.Rank(cache));
  const std::string mode = node.attributes.String("mode", "linear");
  if (!node.Expect(mode == "linear" || mode == "circular", "mode is ", QuotedName(mode)) ||
      !node.Expect(axis > 0, "the axis is that of the batch")) {
    return;
  }
  const Sizes sizes = node.Sizes(update);
  Sizes most = node.Sizes(cache), per_row(sizes.size(), 1), per_sample = per_row;
  if (!node.Expect(sizes.size() == most.size() && sizes[axis] <= most[axis],
                   "the update does not fit into the cache")) {
    return;
  }
  const int64_t length = std::exchange(most[axis], sizes[axis]);
  if (!node.Expect(sizes == most, "the update and the cache differ in another dim than ", axis)) {
    return;
  }
  per_row[axis] = sizes[axis], per_sample[0] = sizes[0];
  if (!FitsLiteral(node, per_row)) return;
  const DataType type = node.HasInput(2) ? node.Type(node.Operand(2)) : DataType::kInt64;
  TensorRef row = IntLiteral(node, per_row, AllAxes(static_cast<int>(sizes[axis])), type);
  if (node.HasInput(2)) {
    const TensorRef begins = node.Operand(2);
    if (!node.Expect(node.Sizes(begins) == Sizes{sizes[0]},
                     "input 2 has not one index for each of ", sizes[0], " samples")) {
      return;
    }
    row = Apply(node, OpKind::kAdd, row, Reshaped(node, begins, per_sample));
  }
  if (mode == "circular" && node.ok()) {
    const TensorRef rounds = Apply(node, OpKind::kDiv, row, static_cast<double>(length));
    const TensorRef skipped = Apply(node, OpKind::kMul, rounds, static_cast<double>(length));
    row = Apply(node, OpKind::kSub, row, skipped);
  }
  const Operator scatter = {OpKind::kScatterElements,
                            {{"axis", int64_t{axis}}, {"reduction", int64_t{0}}}};
  node.Define(0, node.Call(scatter, {cache, Expanded(node, row, sizes), update}));
}

// OneHot(indices, depth, [off, on]): indices below 0 count from the end, others outside of the
// range are nowhere hot.
void ImportOneHot(NodeImporter& node) {
  TensorRef indices = node.Operand(0);
  const OnnxTensor* const depth_constant = node.Constant(1);
  const int64_t axis = node.attributes.Int("axis", -1);
  if (!node.Expect(depth_constant != nullptr && depth_constant->size() == 1,
                   "the depth is no constant")) {
    return;
  }
  const double stated = depth_constant->Number(0);
  if (!node.Expect(stated >= 1 && stated <= 0x1p48, "the depth is ", stated)) return;
  const int64_t depth = static_cast<int64_t>(stated);
  if (!IsInteger(node.Type(indices))) indices = Cast(node, indices, DataType::kInt64);
  const TensorRef from_end = Apply(node, OpKind::kAdd, indices, static_cast<double>(depth));
  indices = Where(node, IsNegative(node, indices), from_end, indices);
  const TensorRef hot =
      node.Call({OpKind::kOneHot, {{"depth", depth}, {"axis", axis}}}, {indices}, "/hot");
  const OnnxTensor* const values = node.Constant(2);
  const bool is_plain =
      values != nullptr && values->size() == 2 && values->Number(0) == 0 && values->Number(1) == 1;
  if (is_plain) return DefineAs(node, 0, Cast(node, hot, values->dtype));
  const std::vector<TensorRef> parts = SplitInto(node, node.Operand(2), 0, {1, 1});
  DefineAs(node, 0, Where(node, Cast(node, hot, DataType::kBool), parts[1], parts[0]));
}

// Along the time axis, the first `lengths[b]` elements of sequence b backwards, the rest as it was.
void ImportReverseSequence(NodeImporter& node) {
  const TensorRef x = node.Operand(0), lengths = node.Operand(1);
  const int batch = node.Axis(node.attributes.Int("batch_axis", 1), node.Rank(x));
  const int time = node.Axis(node.attributes.Int("time_axis", 0), node.Rank(x));
  if (!node.Expect(batch != time, "batch_axis is time_axis")) return;
  const Sizes sizes = node.Sizes(x);
  Sizes per_batch(sizes.size(), 1), per_time = per_batch;
  per_batch[batch] = sizes[batch], per_time[time] = sizes[time];
  if (!FitsLiteral(node, per_time)) return;
  const TensorRef step =
      IntLiteral(node, per_time, AllAxes(static_cast<int>(sizes[time])), node.Type(lengths));
  const TensorRef length = Reshaped(node, lengths, per_batch);
  const TensorRef last = Apply(node, OpKind::kSub, length, Number(node, 1, length));
  const TensorRef from = Where(node, Apply(node, OpKind::kLess, step, length),
                               Apply(node, OpKind::kSub, last, step), step);
  const Operator gather = {OpKind::kGatherElements, {{"axis", int64_t{time}}}};
  node.Define(0, node.Call(gather, {x, Expanded(node, from, sizes)}));
}

}  // namespace isomer
