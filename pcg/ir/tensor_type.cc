#include "pcg/ir/tensor_type.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace isomer {

absl::string_view DataTypeName(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return "f32";
    case DataType::kInt64:
      return "i64";
    case DataType::kBFloat16:
      return "bf16";
    case DataType::kFloat16:
      return "f16";
    case DataType::kInt32:
      return "i32";
    case DataType::kBool:
      return "bool";
  }
  return "?";
}

absl::StatusOr<DataType> ParseDataType(absl::string_view name) {
  for (DataType dtype : kAllDataTypes) {
    if (DataTypeName(dtype) == name) return dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown data type '", name, "'"));
}

int64_t BytesPerElement(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
    case DataType::kInt32:
      return 4;
    case DataType::kInt64:
      return 8;
    case DataType::kBFloat16:
    case DataType::kFloat16:
      return 2;
    case DataType::kBool:
      return 1;
  }
  return 0;
}

bool IsFloat(DataType dtype) {
  return dtype == DataType::kFloat32 || dtype == DataType::kBFloat16 || dtype == DataType::kFloat16;
}
bool IsInteger(DataType dtype) { return dtype == DataType::kInt64 || dtype == DataType::kInt32; }

int64_t TensorType::NumElements() const {
  int64_t product = 1;
  for (const Dim& dim : dims) product *= dim.size;
  return product;
}

int64_t TensorType::LocalElements() const {
  int64_t product = 1;
  for (const Dim& dim : dims) product *= dim.size / dim.degree;
  return product;
}

int64_t TensorType::NumShards() const {
  int64_t product = copies * partials;
  for (const Dim& dim : dims) product *= dim.degree;
  return product;
}

std::vector<int64_t> TensorType::LocalShape() const {
  std::vector<int64_t> shape;
  for (const Dim& dim : dims) shape.push_back(dim.size / dim.degree);
  return shape;
}

std::vector<int64_t> TensorType::Sizes() const {
  std::vector<int64_t> sizes;
  for (const Dim& dim : dims) sizes.push_back(dim.size);
  return sizes;
}

Shape TensorType::GlobalShape() const {
  Shape shape;
  for (const Dim& dim : dims) shape.push_back(dim.size);
  return shape;
}

std::string TensorType::ToString() const {
  std::string text = absl::StrCat(DataTypeName(dtype), "[");
  for (int i = 0; i < rank(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", dims[i].size);
    if (dims[i].degree != 1) absl::StrAppend(&text, ":", dims[i].degree);
  }
  absl::StrAppend(&text, "]");
  if (copies != 1) absl::StrAppend(&text, " c", copies);
  if (partials != 1) absl::StrAppend(&text, " p", partials);
  if (micro_batches != 1) absl::StrAppend(&text, " mb", micro_batches);
  return text;
}

TensorType SequentialType(std::vector<int64_t> sizes, DataType dtype) {
  TensorType type;
  type.dtype = dtype;
  for (int64_t size : sizes) type.dims.push_back({size, 1});
  return type;
}

absl::StatusOr<TensorType> ParseTensorType(absl::string_view text) {
  auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("not a tensor type: '", text, "' (expected e.g. f32[8:2,16] c2 p4)"));
  };
  const size_t open = text.find('['), close = text.find(']');
  if (open == absl::string_view::npos || close == absl::string_view::npos || close < open) {
    return error();
  }
  TensorType type;
  absl::StatusOr<DataType> dtype = ParseDataType(absl::StripAsciiWhitespace(text.substr(0, open)));
  if (!dtype.ok()) return dtype.status();
  type.dtype = *dtype;
  absl::string_view dims = text.substr(open + 1, close - open - 1);
  for (absl::string_view part : absl::StrSplit(dims, ',', absl::SkipWhitespace())) {
    std::pair<absl::string_view, absl::string_view> pieces =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    Dim dim;
    if (!absl::SimpleAtoi(pieces.first, &dim.size)) return error();
    if (!pieces.second.empty() && !absl::SimpleAtoi(pieces.second, &dim.degree)) return error();
    type.dims.push_back(dim);
  }
  for (absl::string_view word :
       absl::StrSplit(text.substr(close + 1), ' ', absl::SkipWhitespace())) {
    int64_t* field = absl::ConsumePrefix(&word, "mb")  ? &type.micro_batches
                     : absl::ConsumePrefix(&word, "c") ? &type.copies
                     : absl::ConsumePrefix(&word, "p") ? &type.partials
                                                       : nullptr;
    if (field == nullptr || !absl::SimpleAtoi(word, field)) return error();
  }
  absl::Status valid = ValidateTensorType(type);
  if (!valid.ok()) return valid;
  return type;
}

absl::Status ValidateTensorType(const TensorType& type) {
  constexpr int64_t kMaxElements = int64_t{1} << 48;
  constexpr int64_t kMaxShards = int64_t{1} << 20;
  constexpr int kMaxRank = 64;
  if (type.rank() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", type.rank(), " dims; at most ", kMaxRank));
  }
  int64_t elements = 1, shards = 1;
  auto grow = [](int64_t* total, int64_t factor, int64_t limit) {
    if (factor < 1 || factor > limit || *total > limit / factor) return false;
    *total *= factor;
    return true;
  };
  for (int i = 0; i < type.rank(); ++i) {
    const Dim& dim = type.dims[i];
    if (!grow(&elements, dim.size, kMaxElements)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dim ", i, " of ", type.ToString(), ": size ", dim.size,
          dim.size < 1 ? " is not positive" : " makes the tensor larger than 2^48 elements"));
    }
    if (!grow(&shards, dim.degree, kMaxShards) || dim.size % dim.degree != 0) {
      return absl::InvalidArgumentError(absl::StrCat("dim ", i, " of ", type.ToString(),
                                                     ": degree ", dim.degree,
                                                     " does not divide size ", dim.size));
    }
  }
  if (!grow(&shards, type.copies, kMaxShards) || !grow(&shards, type.partials, kMaxShards) ||
      type.micro_batches < 1 || type.micro_batches > kMaxShards) {
    return absl::InvalidArgumentError(absl::StrCat(
        type.ToString(),
        ": copies, partials and micro-batches must be positive and give at most 2^20 shards"));
  }
  return absl::OkStatus();
}

TensorType GradientType(const TensorType& type) {
  TensorType gradient = type;
  std::swap(gradient.copies, gradient.partials);
  return gradient;
}

}  // namespace isomer
