#include "models/onnx/graph/repeated_constant.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace isomer {
namespace {

using Dims = std::vector<int64_t>;

// Row-major.
Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Calls visit(offset) for each index of `dims`, row-major, with the sum of index * stride.
template <typename F>
void ForEachOffset(const Dims& dims, const Dims& strides, int64_t offset, const F& visit) {
  Dims index(dims.size(), 0);
  const int64_t elements = NumElementsOf(dims);
  for (int64_t n = 0; n < elements; ++n) {
    visit(offset);
    for (size_t i = dims.size(); i-- > 0;) {
      offset += strides[i];
      if (++index[i] < dims[i]) break;
      offset -= strides[i] * dims[i];
      index[i] = 0;
    }
  }
}

// A tensor of `dims` of elements of x: that of an index is at `offset` + the sum of index * stride.
OnnxTensor Arranged(const OnnxTensor& x, Dims dims, const Dims& strides, int64_t offset = 0) {
  OnnxTensor result;
  result.dtype = x.dtype;
  result.is_literal = true;
  const int64_t elements = NumElementsOf(dims);
  if (x.is_float()) {
    std::vector<float> floats;
    floats.reserve(elements);
    ForEachOffset(dims, strides, offset, [&](int64_t at) { floats.push_back(x.floats[at]); });
    result.floats = std::move(floats);
  } else {
    result.ints.reserve(elements);
    ForEachOffset(dims, strides, offset, [&](int64_t at) { result.ints.push_back(x.ints[at]); });
  }
  result.dims = std::move(dims);
  return result;
}

bool IsTooLarge(const Dims& dims) {
  const int64_t elements = NumElementsOf(dims);
  return elements < 1 || elements > kMostComputedElements;
}

// x broadcast to `dims`, of its rank.
std::optional<OnnxTensor> BroadcastTo(const OnnxTensor& x, const Dims& dims) {
  if (x.dims == dims) return x;
  if (IsTooLarge(dims)) return std::nullopt;
  Dims strides = StridesOf(x.dims);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (x.dims[i] == 1) strides[i] = 0;
  }
  return Arranged(x, dims, strides);
}

// Tensors that differ in no dim but `axis`, one behind the other.
OnnxTensor Joined(const std::vector<OnnxTensor>& parts, size_t axis) {
  OnnxTensor result;
  result.dtype = parts[0].dtype;
  result.is_literal = true;
  result.dims = parts[0].dims;
  result.dims[axis] = 0;
  int64_t inner = 1, outer = 1;
  for (size_t i = axis + 1; i < result.dims.size(); ++i) inner *= result.dims[i];
  for (size_t i = 0; i < axis; ++i) outer *= result.dims[i];
  for (const OnnxTensor& part : parts) result.dims[axis] += part.dims[axis];
  std::vector<float> floats;
  for (int64_t o = 0; o < outer; ++o) {
    for (const OnnxTensor& part : parts) {
      const int64_t count = part.dims[axis] * inner;
      auto append = [&](const auto& from, auto* to) {
        to->insert(to->end(), from.begin() + o * count, from.begin() + (o + 1) * count);
      };
      part.is_float() ? append(part.floats, &floats) : append(part.ints, &result.ints);
    }
  }
  result.floats = std::move(floats);
  return result;
}

// Dims [from_begin, from_end) become dims [to_begin, to_end), which have as many elements.
struct DimGroup {
  size_t from_begin, from_end, to_begin, to_end;
};

// The finest groups of a reshape, in order. REQUIRES: all dims are positive, the products equal.
std::vector<DimGroup> GroupsOf(const Dims& from, const Dims& to) {
  std::vector<DimGroup> groups;
  for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
    DimGroup group = {i, i, j, j};
    int64_t of_from = 1, of_to = 1;
    if (i < from.size()) {
      of_from = from[i++];
    } else {
      ++j;  // of size 1, as all that follow
    }
    while (of_from != of_to) {
      if (of_from < of_to) {
        of_from *= from[i++];
      } else {
        of_to *= to[j++];
      }
    }
    group.from_end = i, group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

// Which of the components of index tuples say where in the table an element is, and where.
struct Component {
  OnnxTensor values;   // without the last dim
  int64_t stride = 0;  // in the table's one part; 0: of a dim that it repeats
};

std::optional<std::vector<Component>> ComponentsOf(const RepeatedConstant& table,
                                                   const RepeatedConstant& indices) {
  const size_t k = indices.dims.back();
  const Dims strides = StridesOf(table.parts[0].dims);
  std::vector<Component> components(k);
  for (size_t c = 0; c < k; ++c) {
    const bool is_apart = indices.parts.size() > 1;
    const OnnxTensor& part = indices.parts[is_apart ? c : 0];
    Dims dims = part.dims;
    const bool is_in_part = !is_apart && dims.back() != 1;
    const Dims steps = StridesOf(dims);
    dims.back() = 1;
    OnnxTensor& values = components[c].values =
        Arranged(part, dims, steps, is_in_part ? static_cast<int64_t>(c) : 0);
    values.dims.pop_back();
    const int64_t size = table.dims[c];
    for (int64_t& index : values.ints) {
      if (index < 0) index += size;
      if (index < 0 || index >= size) return std::nullopt;
    }
    components[c].stride = table.parts[0].dims[c] == 1 ? 0 : strides[c];
  }
  return components;
}

}  // namespace

std::optional<std::vector<int64_t>> BroadcastDims(const std::vector<std::vector<int64_t>>& dims) {
  Dims result;
  for (const Dims& operand : dims) {
    if (operand.size() > result.size()) {
      result.insert(result.begin(), operand.size() - result.size(), 1);
    }
    for (size_t i = 1; i <= operand.size(); ++i) {
      int64_t& size = result[result.size() - i];
      const int64_t of = operand[operand.size() - i];
      if (size != of && size != 1 && of != 1) return std::nullopt;
      if (of != 1) size = of;
    }
  }
  return result;
}

std::optional<RepeatedConstant> AsOnePart(RepeatedConstant x) {
  if (x.parts.size() == 1) return x;
  std::vector<Dims> dims;
  for (const OnnxTensor& part : x.parts) dims.push_back(part.dims);
  Dims all = *BroadcastDims(dims);
  const Dims of_each = all;
  all.back() = static_cast<int64_t>(x.parts.size());
  if (IsTooLarge(all)) return std::nullopt;
  for (OnnxTensor& part : x.parts) part = *BroadcastTo(part, of_each);
  return RepeatedConstant{std::move(x.dims), {Joined(x.parts, all.size() - 1)}};
}

std::optional<RepeatedConstant> WithoutRepeatsAlong(RepeatedConstant x, size_t dim) {
  std::optional<RepeatedConstant> one = AsOnePart(std::move(x));
  if (!one || !one->Repeats(dim)) return one;
  Dims dims = one->parts[0].dims;
  dims[dim] = one->dims[dim];
  std::optional<OnnxTensor> tensor = BroadcastTo(one->parts[0], dims);
  if (!tensor) return std::nullopt;
  one->parts[0] = *std::move(tensor);
  return one;
}

std::optional<OnnxTensor> WrittenOut(const RepeatedConstant& x) {
  const std::optional<RepeatedConstant> one = AsOnePart(x);
  if (!one) return std::nullopt;
  return BroadcastTo(one->parts[0], one->dims);
}

std::optional<RepeatedConstant> ExpandRepeated(RepeatedConstant x,
                                               const std::vector<int64_t>& shape) {
  std::optional<Dims> dims = BroadcastDims({x.dims, shape});
  if (!dims || NumElementsOf(*dims) < 1) return std::nullopt;
  for (OnnxTensor& part : x.parts) {
    part.dims.insert(part.dims.begin(), dims->size() - part.dims.size(), 1);
  }
  x.dims = *std::move(dims);
  return x;
}

std::optional<RepeatedConstant> TransposeRepeated(RepeatedConstant x,
                                                  const std::vector<int64_t>& perm) {
  std::optional<RepeatedConstant> one = AsOnePart(std::move(x));
  if (!one || IsTooLarge(one->parts[0].dims)) return std::nullopt;
  const OnnxTensor& part = one->parts[0];
  const Dims strides = StridesOf(part.dims);
  Dims dims, once, turned;
  for (int64_t dim : perm) {
    dims.push_back(one->dims[dim]);
    once.push_back(part.dims[dim]);
    turned.push_back(strides[dim]);
  }
  return RepeatedConstant{std::move(dims), {Arranged(part, std::move(once), turned)}};
}

std::optional<RepeatedConstant> ReshapeRepeated(RepeatedConstant x, std::vector<int64_t> dims) {
  std::optional<RepeatedConstant> one = AsOnePart(std::move(x));
  if (!one || NumElementsOf(dims) < 1 || NumElementsOf(dims) != NumElementsOf(one->dims)) {
    return std::nullopt;
  }
  Dims once;
  for (const DimGroup& group : GroupsOf(one->dims, dims)) {
    bool repeats = true;
    for (size_t i = group.from_begin; i < group.from_end; ++i) {
      repeats = repeats && one->parts[0].dims[i] == 1;
    }
    for (size_t i = group.from_begin; !repeats && i < group.from_end; ++i) {
      one = WithoutRepeatsAlong(*std::move(one), i);
      if (!one) return std::nullopt;
    }
    for (size_t j = group.to_begin; j < group.to_end; ++j) once.push_back(repeats ? 1 : dims[j]);
  }
  one->parts[0].dims = std::move(once);
  one->dims = std::move(dims);
  return one;
}

std::optional<RepeatedConstant> SliceRepeated(RepeatedConstant x, size_t axis, int64_t start,
                                              int64_t end, int64_t step) {
  std::optional<RepeatedConstant> one = AsOnePart(std::move(x));
  if (!one || step == 0 || step == std::numeric_limits<int64_t>::min()) return std::nullopt;
  const int64_t size = one->dims[axis], last = step < 0 ? size - 1 : size;
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, step < 0 ? -1 : 0, last);
  };
  // From the end backwards, what lies before the front is -1.
  const int64_t from = std::max<int64_t>(clamp(start), 0), to = clamp(end);
  const int64_t distance = step < 0 ? from - to : to - from, stride = step < 0 ? -step : step;
  if (distance < 1) return std::nullopt;
  one->dims[axis] = (distance - 1) / stride + 1;
  OnnxTensor& part = one->parts[0];
  if (part.dims[axis] == 1) return one;
  Dims strides = StridesOf(part.dims), dims = part.dims;
  dims[axis] = one->dims[axis];
  if (IsTooLarge(dims)) return std::nullopt;
  const int64_t offset = from * strides[axis];
  strides[axis] *= step;
  part = Arranged(part, std::move(dims), strides, offset);
  return one;
}

std::optional<RepeatedConstant> ConcatRepeated(std::vector<RepeatedConstant> parts, size_t axis) {
  Dims dims = parts[0].dims;
  dims[axis] = 0;
  const DataType dtype = parts[0].parts[0].dtype;
  std::vector<OnnxTensor> tensors;
  bool are_columns = axis + 1 == dims.size() && parts.size() > 1;
  for (RepeatedConstant& part : parts) {
    if (part.dims.size() != dims.size() || part.parts[0].dtype != dtype) {
      return std::nullopt;
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i != axis && part.dims[i] != dims[i]) return std::nullopt;
    }
    dims[axis] += part.dims[axis];
    are_columns = are_columns && part.dims[axis] == 1;
    std::optional<RepeatedConstant> one = WithoutRepeatsAlong(std::move(part), axis);
    if (!one) return std::nullopt;
    tensors.push_back(std::move(one->parts[0]));
  }
  if (are_columns) return RepeatedConstant{std::move(dims), std::move(tensors)};
  std::vector<Dims> onces;
  for (const OnnxTensor& tensor : tensors) {
    onces.push_back(tensor.dims);
    onces.back()[axis] = 1;
  }
  Dims once = *BroadcastDims(onces);
  once[axis] = dims[axis];
  if (IsTooLarge(once)) return std::nullopt;
  for (OnnxTensor& tensor : tensors) {
    once[axis] = tensor.dims[axis];
    tensor = *BroadcastTo(tensor, once);
  }
  return RepeatedConstant{std::move(dims), {Joined(tensors, axis)}};
}

std::optional<RepeatedConstant> GatherNDRepeated(const RepeatedConstant& table,
                                                 const RepeatedConstant& indices) {
  const std::optional<RepeatedConstant> one = AsOnePart(table);
  if (!one || indices.dims.empty() || indices.parts[0].is_float()) return std::nullopt;
  const int64_t k = indices.dims.back();
  if (k < 1 || k > static_cast<int64_t>(one->dims.size())) return std::nullopt;
  const std::optional<std::vector<Component>> components = ComponentsOf(*one, indices);
  if (!components) return std::nullopt;
  RepeatedConstant result;
  result.dims.assign(indices.dims.begin(), indices.dims.end() - 1);
  // Where all that says where the elements are repeats, they do.
  Dims rows(result.dims.size(), 1);
  for (const Component& component : *components) {
    if (component.stride != 0) rows = *BroadcastDims({rows, component.values.dims});
  }
  const OnnxTensor& from = one->parts[0];
  const Dims rest(from.dims.begin() + k, from.dims.end());
  result.dims.insert(result.dims.end(), one->dims.begin() + k, one->dims.end());
  Dims once = rows;
  once.insert(once.end(), rest.begin(), rest.end());
  if (IsTooLarge(once)) return std::nullopt;
  Dims offsets(NumElementsOf(rows), 0);
  for (const Component& component : *components) {
    if (component.stride == 0) continue;
    const OnnxTensor values = *BroadcastTo(component.values, rows);
    for (size_t i = 0; i < offsets.size(); ++i) offsets[i] += values.ints[i] * component.stride;
  }
  OnnxTensor tensor;
  tensor.dtype = from.dtype;
  tensor.is_literal = true;
  tensor.dims = std::move(once);
  const int64_t slice = NumElementsOf(rest);
  std::vector<float> floats;
  for (int64_t offset : offsets) {
    auto append = [&](const auto& elements, auto* to) {
      to->insert(to->end(), elements.begin() + offset, elements.begin() + offset + slice);
    };
    from.is_float() ? append(from.floats, &floats) : append(from.ints, &tensor.ints);
  }
  tensor.floats = std::move(floats);
  result.parts.push_back(std::move(tensor));
  return result;
}

}  // namespace isomer
