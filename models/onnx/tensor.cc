#include "models/onnx/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/onnx/data_in_file.h"
#include "pcg/support/half.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using onnx::TensorProto;

// Elements as they lie in raw_data: little-endian, as is every machine that Isomer runs on.
template <typename Stored, typename To>
absl::Status AppendRaw(absl::string_view raw, std::vector<To>* out) {
  if (raw.size() % sizeof(Stored) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("its data has ", raw.size(), " bytes, no multiple of ", sizeof(Stored)));
  }
  out->resize(raw.size() / sizeof(Stored));
  for (size_t i = 0; i < out->size(); ++i) {
    Stored value;
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    (*out)[i] = static_cast<To>(value);
  }
  return absl::OkStatus();
}

// The 16-bit types lie in int32_data by their bits.
template <typename Half>
std::vector<float> FromBits(const google::protobuf::RepeatedField<int32_t>& words) {
  std::vector<float> values;
  for (int32_t word : words) {
    Half half;
    half.bits = static_cast<uint16_t>(word);
    values.push_back(half);
  }
  return values;
}

absl::StatusOr<std::vector<float>> Narrowed(const std::vector<double>& values) {
  std::vector<float> narrowed;
  for (double value : values) {
    narrowed.push_back(static_cast<float>(value));
    if (std::isinf(narrowed.back()) && !std::isinf(value)) {
      return absl::UnimplementedError(
          absl::StrCat("its DOUBLE ", value, " is outside of the range of FLOAT"));
    }
  }
  return narrowed;
}

template <typename Stored>
absl::Status ReadFloats(absl::string_view raw, OnnxTensor* tensor) {
  std::vector<float> values;
  ISOMER_RETURN_IF_ERROR(AppendRaw<Stored>(raw, &values));
  tensor->floats = std::move(values);
  return absl::OkStatus();
}

absl::Status ReadRaw(int data_type, absl::string_view raw, OnnxTensor* tensor) {
  switch (data_type) {
    case TensorProto::FLOAT:
      return ReadFloats<float>(raw, tensor);
    case TensorProto::FLOAT16:
      return ReadFloats<Float16>(raw, tensor);
    case TensorProto::BFLOAT16:
      return ReadFloats<BFloat16>(raw, tensor);
    case TensorProto::DOUBLE: {
      std::vector<double> values;
      ISOMER_RETURN_IF_ERROR(AppendRaw<double>(raw, &values));
      ISOMER_ASSIGN_OR_RETURN(tensor->floats, Narrowed(values));
      return absl::OkStatus();
    }
    case TensorProto::INT64:
      return AppendRaw<int64_t>(raw, &tensor->ints);
    case TensorProto::INT32:
      return AppendRaw<int32_t>(raw, &tensor->ints);
    case TensorProto::INT16:
      return AppendRaw<int16_t>(raw, &tensor->ints);
    case TensorProto::UINT16:
      return AppendRaw<uint16_t>(raw, &tensor->ints);
    case TensorProto::INT8:
      return AppendRaw<int8_t>(raw, &tensor->ints);
    default:
      return AppendRaw<uint8_t>(raw, &tensor->ints);
  }
}

absl::Status ReadFromFile(int data_type, const ExternalData& data, OnnxTensor* tensor) {
  const int64_t width = BytesPerElement(tensor->dtype);
  if (tensor->is_float() && data_type != TensorProto::DOUBLE &&
      data.length >= static_cast<int64_t>(kManyBytes) && data.length % width == 0) {
    ISOMER_ASSIGN_OR_RETURN(tensor->floats,
                            StoredValues::InFile({data.path, data.file_bytes, data.offset,
                                                  tensor->dtype, data.length / width}));
    return absl::OkStatus();
  }
  ISOMER_ASSIGN_OR_RETURN(const std::string raw, ReadExternalData(data));
  return ReadRaw(data_type, raw, tensor);
}

absl::Status ReadFields(const TensorProto& proto, OnnxTensor* tensor) {
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      tensor->floats = std::vector<float>(proto.float_data().begin(), proto.float_data().end());
      return absl::OkStatus();
    case TensorProto::FLOAT16:
      tensor->floats = FromBits<Float16>(proto.int32_data());
      return absl::OkStatus();
    case TensorProto::BFLOAT16:
      tensor->floats = FromBits<BFloat16>(proto.int32_data());
      return absl::OkStatus();
    case TensorProto::DOUBLE: {
      ISOMER_ASSIGN_OR_RETURN(tensor->floats,
                              Narrowed({proto.double_data().begin(), proto.double_data().end()}));
      return absl::OkStatus();
    }
    case TensorProto::INT64:
      tensor->ints.assign(proto.int64_data().begin(), proto.int64_data().end());
      return absl::OkStatus();
    default:
      tensor->ints.assign(proto.int32_data().begin(), proto.int32_data().end());
      return absl::OkStatus();
  }
}

absl::Status CheckSize(const OnnxTensor& tensor) {
  const int64_t elements = NumElementsOf(tensor.dims);
  if (elements == tensor.size()) return absl::OkStatus();
  constexpr size_t kShown = 8;
  std::vector<int64_t> shown = tensor.dims;
  if (shown.size() > kShown) shown.resize(kShown);
  return absl::InvalidArgumentError(
      absl::StrCat("dims [", absl::StrJoin(shown, ","), tensor.dims.size() > kShown ? ",.." : "",
                   "] have ", elements < 0 ? "impossibly many" : absl::StrCat(elements),
                   " elements, but the data has ", tensor.size()));
}

}  // namespace

bool IsNarrowInteger(int data_type) {
  return data_type == TensorProto::UINT8 || data_type == TensorProto::INT8 ||
         data_type == TensorProto::UINT16 || data_type == TensorProto::INT16;
}

std::string OnnxTypeText(int data_type) {
  const std::string name = TensorProto::DataType_IsValid(data_type)
                               ? TensorProto::DataType_Name(TensorProto::DataType(data_type))
                               : absl::StrCat(data_type);
  return absl::StrCat("element type ", name);
}

absl::StatusOr<DataType> OnnxDataType(int data_type, NarrowIntegers narrow) {
  if (narrow == NarrowIntegers::kAsInt32 && IsNarrowInteger(data_type)) return DataType::kInt32;
  switch (data_type) {
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
      return DataType::kFloat32;
    case TensorProto::FLOAT16:
      return DataType::kFloat16;
    case TensorProto::BFLOAT16:
      return DataType::kBFloat16;
    case TensorProto::INT64:
      return DataType::kInt64;
    case TensorProto::INT32:
      return DataType::kInt32;
    case TensorProto::BOOL:
      return DataType::kBool;
    default:
      return absl::UnimplementedError(
          absl::StrCat(OnnxTypeText(data_type),
                       "; FLOAT, FLOAT16, BFLOAT16, DOUBLE (as FLOAT), INT64, INT32 and BOOL are "
                       "read"));
  }
}

TensorProto::DataType OnnxElementType(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return TensorProto::FLOAT;
    case DataType::kFloat16:
      return TensorProto::FLOAT16;
    case DataType::kBFloat16:
      return TensorProto::BFLOAT16;
    case DataType::kInt64:
      return TensorProto::INT64;
    case DataType::kInt32:
      return TensorProto::INT32;
    case DataType::kBool:
      break;
  }
  return TensorProto::BOOL;
}

float RoundedTo(DataType dtype, double value) {
  if (dtype == DataType::kFloat16) return Float16(value);
  if (dtype == DataType::kBFloat16) return BFloat16(value);
  return static_cast<float>(value);
}

int64_t NumElementsOf(const std::vector<int64_t>& dims) {
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t product = 1;  // of all but 0
  bool is_empty = false;
  for (int64_t size : dims) {
    is_empty |= size == 0;
    if (size == 0) continue;
    if (size < 0 || product > kMost / size) return -1;
    product *= size;
  }
  return is_empty ? 0 : product;
}

std::string QuotedName(absl::string_view name) {
  constexpr size_t kShown = 120;
  return absl::StrCat("'", absl::CHexEscape(name.substr(0, kShown)),
                      name.size() > kShown ? "..." : "", "'");
}

absl::StatusOr<OnnxTensor> ReadOnnxTensor(const TensorProto& proto, const std::string* folder,
                                          const ExternalData* in_file, NarrowIntegers narrow) {
  OnnxTensor tensor;
  ISOMER_ASSIGN_OR_RETURN(tensor.dtype, OnnxDataType(proto.data_type(), narrow));
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  if (proto.has_segment()) return absl::UnimplementedError("it is stored in segments");
  if (in_file != nullptr) {
    ISOMER_RETURN_IF_ERROR(ReadFromFile(proto.data_type(), *in_file, &tensor));
  } else if (proto.data_location() == TensorProto::EXTERNAL) {
    if (folder == nullptr) {
      return absl::UnimplementedError("its data lies in another file, which here is not read");
    }
    ISOMER_ASSIGN_OR_RETURN(const ExternalData data, LocateExternalData(proto, *folder));
    ISOMER_RETURN_IF_ERROR(ReadFromFile(proto.data_type(), data, &tensor));
  } else if (proto.has_raw_data()) {
    ISOMER_RETURN_IF_ERROR(ReadRaw(proto.data_type(), proto.raw_data(), &tensor));
  } else {
    ISOMER_RETURN_IF_ERROR(ReadFields(proto, &tensor));
  }
  if (tensor.dtype == DataType::kBool) {
    for (int64_t& value : tensor.ints) value = value != 0;
  }
  ISOMER_RETURN_IF_ERROR(CheckSize(tensor));
  return tensor;
}

}  // namespace isomer
