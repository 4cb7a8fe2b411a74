#include "models/onnx/graph/fold.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/graph/attributes.h"
#include "pcg/ir/operator.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using Operands = absl::Span<const OnnxTensor* const>;
using Folded = absl::StatusOr<std::optional<OnnxTensor>>;

// More elements than constants have that are computed, fewer than would be slow.
constexpr int64_t kMostElements = 1 << 24;
constexpr size_t kMostDims = 64;

absl::Status NoValue(absl::string_view why) { return absl::InvalidArgumentError(why); }

OnnxTensor IntVector(std::vector<int64_t> values, DataType dtype = DataType::kInt64) {
  OnnxTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = {static_cast<int64_t>(values.size())};
  tensor.ints = std::move(values);
  return tensor;
}

absl::StatusOr<int64_t> IntegerResult(char op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (op == '+') overflows = __builtin_add_overflow(a, b, &result);
  if (op == '-') overflows = __builtin_sub_overflow(a, b, &result);
  if (op == '*') overflows = __builtin_mul_overflow(a, b, &result);
  if (op == '/') {
    if (b == 0) return NoValue("division of constants by zero");
    overflows = b == -1 && __builtin_sub_overflow(int64_t{0}, a, &result);
    if (b != -1) result = a / b;
  }
  if (overflows) return NoValue("arithmetic of constants leaves the range of int64");
  return result;
}

Folded FoldBinary(char op, const OnnxTensor& a, const OnnxTensor& b) {
  const bool scalar_a = a.size() == 1 && a.dims.size() <= b.dims.size();
  const bool scalar_b = b.size() == 1 && b.dims.size() <= a.dims.size();
  if (a.dtype != b.dtype || !(IsInteger(a.dtype) || a.dtype == DataType::kFloat32)) {
    return std::nullopt;
  }
  if (a.dims != b.dims && !scalar_a && !scalar_b) return std::nullopt;
  const OnnxTensor& like = a.dims == b.dims || scalar_b ? a : b;
  OnnxTensor result;
  result.dtype = like.dtype;
  result.dims = like.dims;
  std::vector<float> floats;
  for (int64_t i = 0; i < like.size(); ++i) {
    const int64_t at_a = a.size() == 1 ? 0 : i, at_b = b.size() == 1 ? 0 : i;
    if (IsInteger(a.dtype)) {
      ISOMER_ASSIGN_OR_RETURN(result.ints.emplace_back(),
                              IntegerResult(op, a.ints[at_a], b.ints[at_b]));
      if (a.dtype == DataType::kInt32 && result.ints[i] != static_cast<int32_t>(result.ints[i])) {
        return NoValue("arithmetic of constants leaves the range of int32");
      }
    } else {
      const float x = a.floats[at_a], y = b.floats[at_b];
      floats.push_back(op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y);
    }
  }
  result.floats = std::move(floats);
  return result;
}

Folded FoldSqrt(const OnnxTensor& x) {
  if (x.dtype != DataType::kFloat32) return std::nullopt;
  OnnxTensor result = x;
  std::vector<float> roots;
  for (float value : x.floats) roots.push_back(std::sqrt(value));
  result.floats = std::move(roots);
  return result;
}

// ONNX leaves open what an infinity is cast to, as log(0) is before another bucket of distances is
// selected; runtimes give an end of the range. Here it is that of the integers that are counted in
// float32, as the graph may go on with it.
absl::StatusOr<int64_t> AsInteger(double value, DataType to) {
  constexpr int64_t kFarthest = int64_t{1} << 24;
  if (std::isinf(value)) return value < 0 ? -kFarthest : kFarthest;
  const double end = to == DataType::kInt32 ? 0x1p31 : 0x1p63;
  if (value > -end - 1 && value < end && value >= -0x1p63) return static_cast<int64_t>(value);
  return NoValue("a constant does not fit an integer");
}

Folded FoldCast(const OnnxTensor& x, int64_t to) {
  const absl::StatusOr<DataType> dtype = OnnxDataType(static_cast<int>(to));
  if (!dtype.ok() || *dtype == DataType::kFloat16 || *dtype == DataType::kBFloat16) {
    return std::nullopt;
  }
  OnnxTensor result;
  result.dims = x.dims;
  result.dtype = *dtype;
  std::vector<float> floats;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double value = x.Number(i);
    if (result.is_float()) {
      floats.push_back(static_cast<float>(value));
    } else if (*dtype == DataType::kBool) {
      result.ints.push_back(value != 0);
    } else if (!x.is_float()) {
      const int64_t kept = x.ints[i];
      result.ints.push_back(*dtype == DataType::kInt32 ? static_cast<int32_t>(kept) : kept);
    } else {
      ISOMER_ASSIGN_OR_RETURN(result.ints.emplace_back(), AsInteger(value, *dtype));
    }
  }
  result.floats = std::move(floats);
  return result;
}

Folded FoldGather(const OnnxTensor& data, const OnnxTensor& indices, int64_t axis) {
  if (data.dims.size() != 1 || data.is_float() || indices.dims.size() > 1 ||
      !IsInteger(indices.dtype) || (axis != 0 && axis != -1)) {
    return std::nullopt;
  }
  OnnxTensor result;
  result.dtype = data.dtype;
  result.dims = indices.dims;
  for (int64_t index : indices.ints) {
    const int64_t from_front = index < 0 ? index + data.size() : index;
    if (from_front < 0 || from_front >= data.size()) {
      return NoValue(
          absl::StrCat("index ", index, " into a constant of ", data.size(), " elements"));
    }
    result.ints.push_back(data.ints[from_front]);
  }
  return result;
}

Folded FoldConcat(Operands operands) {
  std::vector<int64_t> values;
  const DataType dtype = operands[0]->dtype;
  int64_t elements = 0;
  for (const OnnxTensor* part : operands) {
    if (part->dims.size() != 1 || part->is_float() || part->dtype != dtype) return std::nullopt;
    elements += part->size();
    if (elements > kMostElements) return std::nullopt;
    values.insert(values.end(), part->ints.begin(), part->ints.end());
  }
  return IntVector(std::move(values), dtype);
}

// Indices begin, begin + step, .. below end of dim `axis`. REQUIRES: 0 <= begin, end <= the size.
OnnxTensor SliceAxis(const OnnxTensor& x, int axis, int64_t begin, int64_t end, int64_t step) {
  OnnxTensor result;
  result.dtype = x.dtype;
  result.dims = x.dims;
  result.dims[axis] = begin < end ? (end - begin - 1) / step + 1 : 0;
  if (NumElementsOf(result.dims) == 0) return result;
  int64_t inner = 1, outer = 1;
  for (size_t i = axis + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  for (int i = 0; i < axis; ++i) outer *= x.dims[i];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < result.dims[axis]; ++k) {
      const auto from = x.ints.begin() + (o * x.dims[axis] + begin + k * step) * inner;
      result.ints.insert(result.ints.end(), from, from + inner);
    }
  }
  return result;
}

// Slice(data, starts, ends, axes?, steps?), forwards.
Folded FoldSlice(Operands operands) {
  OnnxTensor result = *operands[0];
  if (operands.size() < 3 || operands.size() > 5) return std::nullopt;
  for (const OnnxTensor* operand : operands) {
    if (operand == nullptr || operand->is_float() ||
        (operand != operands[0] && operand->size() != operands[1]->size())) {
      return std::nullopt;
    }
  }
  for (int64_t i = 0; i < operands[1]->size(); ++i) {
    const int64_t step = operands.size() > 4 ? operands[4]->ints[i] : 1;
    if (step < 1) return std::nullopt;
    ISOMER_ASSIGN_OR_RETURN(const int axis,
                            NormalizeAxis(operands.size() > 3 ? operands[3]->ints[i] : i,
                                          static_cast<int>(result.dims.size())));
    const int64_t size = result.dims[axis];
    auto clamp = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    result =
        SliceAxis(result, axis, clamp(operands[1]->ints[i]), clamp(operands[2]->ints[i]), step);
  }
  return result;
}

Folded FoldConstantOfShape(const OnnxTensor& shape, const OnnxTensor& value) {
  const int64_t elements = NumElementsOf(shape.ints);
  if (!IsInteger(shape.dtype) || value.size() != 1) return std::nullopt;
  if (elements < 0 || elements > kMostElements) return NoValue("a constant of impossible size");
  OnnxTensor result = value;
  result.dims = shape.ints;
  result.ints.assign(value.ints.empty() ? 0 : elements, value.ints.empty() ? 0 : value.ints[0]);
  result.floats = std::vector<float>(value.floats.empty() ? 0 : elements,
                                     value.floats.empty() ? 0 : value.floats[0]);
  return result;
}

// start, start + delta, .. before limit.
Folded FoldRange(Operands operands) {
  const DataType dtype = operands[0]->dtype;
  for (const OnnxTensor* operand : operands) {
    const bool is_number = IsInteger(dtype) || dtype == DataType::kFloat32;
    if (!is_number || operand->dtype != dtype || operand->size() != 1) return std::nullopt;
  }
  const double start = operands[0]->Number(0), delta = operands[2]->Number(0);
  const double count = std::ceil((operands[1]->Number(0) - start) / delta);
  if (!std::isfinite(count) || count > kMostElements) return NoValue("a range of impossible size");
  OnnxTensor result;
  result.dtype = dtype;
  std::vector<float> floats;
  for (int64_t i = 0; i < static_cast<int64_t>(std::max(0.0, count)); ++i) {
    const double value = start + static_cast<double>(i) * delta;
    if (result.is_float()) {
      floats.push_back(static_cast<float>(value));
    } else {
      ISOMER_ASSIGN_OR_RETURN(result.ints.emplace_back(), AsInteger(value, dtype));
    }
  }
  result.floats = std::move(floats);
  result.dims = {result.size()};
  return result;
}

// The indices of what is not zero, a row per dim. Of a constant: a range, before opset 11.
Folded FoldNonZero(const OnnxTensor& x) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x.Number(i) != 0) found.push_back(i);
  }
  if (static_cast<int64_t>(found.size() * x.dims.size()) > kMostElements) return std::nullopt;
  OnnxTensor result = IntVector({}, DataType::kInt64);
  result.dims = {static_cast<int64_t>(x.dims.size()), static_cast<int64_t>(found.size())};
  int64_t inner = x.size();
  for (int64_t size : x.dims) {
    inner /= std::max<int64_t>(1, size);
    for (int64_t i : found) result.ints.push_back(i / inner % size);
  }
  return result;
}

// Unsqueeze, Squeeze and Reshape: other dims, the same elements.
Folded WithDims(const OnnxTensor& x, absl::StatusOr<std::vector<int64_t>> dims) {
  ISOMER_RETURN_IF_ERROR(dims.status());
  OnnxTensor result = x;
  result.dims = *std::move(dims);
  if (NumElementsOf(result.dims) != result.size()) return NoValue("a constant changes its size");
  return result;
}

// Axes are the second operand from opset 13 on, and an attribute before.
std::vector<int64_t> Axes(Operands operands, OnnxAttributes* attributes) {
  return operands.size() > 1 && operands[1] != nullptr ? operands[1]->ints
                                                       : attributes->Ints("axes", {});
}

Folded Dispatch(const std::string& op, Operands operands, OnnxAttributes* attributes) {
  const OnnxTensor& x = *operands[0];
  if (operands.size() == 1) {
    if (op == "Identity") return x;
    if (op == "NonZero") return FoldNonZero(x);
    if (op == "Sqrt") return FoldSqrt(x);
    if (op == "Cast") return FoldCast(x, attributes->Int("to", 0));
    if (op == "ConstantOfShape") {
      OnnxTensor zero;
      zero.floats = {0};
      return FoldConstantOfShape(x, attributes->Tensor("value", zero));
    }
  }
  if (op == "Unsqueeze") return WithDims(x, UnsqueezedDims(x.dims, Axes(operands, attributes)));
  if (op == "Squeeze") return WithDims(x, SqueezedDims(x.dims, Axes(operands, attributes)));
  if (op == "Slice") return FoldSlice(operands);
  if (std::count(operands.begin(), operands.end(), nullptr) > 0) return std::nullopt;
  if (op == "Concat") return FoldConcat(operands);
  if (op == "Range" && operands.size() == 3) return FoldRange(operands);
  if (operands.size() != 2) return std::nullopt;
  if (op == "Add") return FoldBinary('+', x, *operands[1]);
  if (op == "Sub") return FoldBinary('-', x, *operands[1]);
  if (op == "Mul") return FoldBinary('*', x, *operands[1]);
  if (op == "Div") return FoldBinary('/', x, *operands[1]);
  if (op == "Gather") return FoldGather(x, *operands[1], attributes->Int("axis", 0));
  if (op == "Reshape") {
    return WithDims(x,
                    ReshapedDims(x.dims, operands[1]->ints, attributes->Int("allowzero", 0) == 1));
  }
  return std::nullopt;
}

}  // namespace

bool IsFoldable(absl::string_view op) {
  for (absl::string_view known :
       {"Identity", "NonZero", "Sqrt", "Cast", "ConstantOfShape", "Unsqueeze", "Squeeze", "Slice",
        "Concat", "Range", "Add", "Sub", "Mul", "Div", "Gather", "Reshape"}) {
    if (op == known) return true;
  }
  return false;
}

absl::StatusOr<std::optional<OnnxTensor>> FoldNode(const OnnxNode& node, Operands operands,
                                                   int64_t* budget) {
  if (operands.empty() || operands[0] == nullptr || !IsFoldable(node.op)) return std::nullopt;
  int64_t work = 0;
  for (const OnnxTensor* operand : operands) {
    if (operand == nullptr) continue;
    const bool known = operand->is_literal || !operand->is_float();
    if (!known || operand->size() > kMostElements) return std::nullopt;
    work += operand->size();
  }
  if (work > *budget) return std::nullopt;
  OnnxAttributes attributes(node);
  ISOMER_ASSIGN_OR_RETURN(std::optional<OnnxTensor> result,
                          Dispatch(node.op, operands, &attributes));
  ISOMER_RETURN_IF_ERROR(attributes.status());
  if (!result) return result;
  if (result->dims.size() > kMostDims) return NoValue("a constant of too many dims");
  result->is_literal = true;
  *budget -= std::min(*budget, work + result->size());
  return result;
}

absl::StatusOr<std::vector<int64_t>> UnsqueezedDims(std::vector<int64_t> dims,
                                                    std::vector<int64_t> axes) {
  if (dims.size() + axes.size() > kMostDims) {
    return absl::InvalidArgumentError(absl::StrCat(axes.size(), " axes; at most ", kMostDims));
  }
  const int rank = static_cast<int>(dims.size() + axes.size());
  for (int64_t& axis : axes) {
    ISOMER_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    return absl::InvalidArgumentError("an axis is given twice");
  }
  for (int64_t axis : axes) dims.insert(dims.begin() + axis, 1);
  return dims;
}

absl::StatusOr<std::vector<int64_t>> SqueezedDims(const std::vector<int64_t>& dims,
                                                  const std::vector<int64_t>& axes) {
  const int rank = static_cast<int>(dims.size());
  std::vector<bool> dropped(dims.size(), false);
  for (int64_t axis : axes) {
    ISOMER_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, rank));
    if (dims[i] != 1) {
      return absl::InvalidArgumentError(absl::StrCat("dim ", i, " is ", dims[i], ", not 1"));
    }
    dropped[i] = true;
  }
  std::vector<int64_t> result;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dropped[i] && !(axes.empty() && dims[i] == 1)) result.push_back(dims[i]);
  }
  return result;
}

absl::StatusOr<std::vector<int64_t>> ReshapedDims(const std::vector<int64_t>& dims,
                                                  std::vector<int64_t> shape, bool allow_zero) {
  const std::string text = absl::StrCat("shape [", absl::StrJoin(shape, ","), "]");
  int64_t known = 1;
  int inferred = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= dims.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(text, " keeps dim ", i, " of a tensor of rank ", dims.size()));
      }
      shape[i] = dims[i];
    }
    if (shape[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
    } else if (shape[i] < 1 || __builtin_mul_overflow(known, shape[i], &known)) {
      return absl::InvalidArgumentError(absl::StrCat(text, ": dim ", i, " is not a size"));
    }
  }
  if (inferred >= 0) {
    const int64_t elements = NumElementsOf(dims);
    if (elements < 0 || elements % known != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(text, " does not divide [", absl::StrJoin(dims, ","), "]"));
    }
    shape[inferred] = elements / known;
  }
  return shape;
}

}  // namespace isomer
