#include "models/onnx/tensor.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using onnx::TensorProto;

std::string TypeText(int data_type) {
  const std::string name = TensorProto::DataType_IsValid(data_type)
                               ? TensorProto::DataType_Name(TensorProto::DataType(data_type))
                               : absl::StrCat(data_type);
  return absl::StrCat("element type ", name);
}

// Elements as they lie in raw_data: little-endian, as is every machine that Isomer runs on.
template <typename Stored, typename To>
absl::Status AppendRaw(const std::string& raw, std::vector<To>* out) {
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

absl::Status ReadIntegers(const TensorProto& proto, OnnxTensor* tensor) {
  const std::string& raw = proto.raw_data();
  std::vector<int64_t>* ints = &tensor->ints;
  if (!proto.has_raw_data()) {
    ints->assign(proto.int64_data().begin(), proto.int64_data().end());
    ints->insert(ints->end(), proto.int32_data().begin(), proto.int32_data().end());
    ints->insert(ints->end(), proto.uint64_data().begin(), proto.uint64_data().end());
    return absl::OkStatus();
  }
  switch (proto.data_type()) {
    case TensorProto::INT64:
      return AppendRaw<int64_t>(raw, ints);
    case TensorProto::INT32:
      return AppendRaw<int32_t>(raw, ints);
    case TensorProto::INT16:
      return AppendRaw<int16_t>(raw, ints);
    case TensorProto::INT8:
      return AppendRaw<int8_t>(raw, ints);
    default:
      return AppendRaw<uint8_t>(raw, ints);
  }
}

}  // namespace

absl::StatusOr<DataType> OnnxDataType(int data_type) {
  switch (data_type) {
    case TensorProto::FLOAT:
      return DataType::kFloat32;
    case TensorProto::INT32:
    case TensorProto::INT64:
      return DataType::kInt64;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(TypeText(data_type), "; FLOAT, INT32 and INT64 are read"));
  }
}

int64_t NumElementsOf(const std::vector<int64_t>& dims) {
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t product = 1;
  for (int64_t size : dims) {
    if (size < 0 || size > kMost || (size > 0 && product > kMost / size)) return -1;
    product *= size;
  }
  return product;
}

std::string QuotedName(absl::string_view name) {
  constexpr size_t kShown = 120;
  return absl::StrCat("'", absl::CHexEscape(name.substr(0, kShown)),
                      name.size() > kShown ? "..." : "", "'");
}

absl::StatusOr<OnnxTensor> ReadOnnxTensor(const TensorProto& proto) {
  OnnxTensor tensor;
  if (proto.data_location() == TensorProto::EXTERNAL) {
    std::string where;
    for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
      if (entry.key() == "location") where = absl::StrCat(" (", QuotedName(entry.value()), ")");
    }
    return absl::UnimplementedError(absl::StrCat("its data lies in another file", where,
                                                 "; export the model with its data inside"));
  }
  if (proto.has_segment()) return absl::UnimplementedError("it is stored in segments");
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  switch (proto.data_type()) {
    case TensorProto::FLOAT:
      if (proto.has_raw_data()) {
        ISOMER_RETURN_IF_ERROR(AppendRaw<float>(proto.raw_data(), &tensor.floats));
      } else {
        tensor.floats.assign(proto.float_data().begin(), proto.float_data().end());
      }
      break;
    case TensorProto::INT64:
    case TensorProto::INT32:
    case TensorProto::INT16:
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      tensor.dtype = DataType::kInt64;
      ISOMER_RETURN_IF_ERROR(ReadIntegers(proto, &tensor));
      break;
    default:
      return absl::UnimplementedError(absl::StrCat(TypeText(proto.data_type()),
                                                   "; Isomer computes in FLOAT and reads integers "
                                                   "of up to 64 bits"));
  }
  const int64_t elements = NumElementsOf(tensor.dims);
  if (elements != tensor.size()) {
    constexpr size_t kShown = 8;
    std::vector<int64_t> shown = tensor.dims;
    if (shown.size() > kShown) shown.resize(kShown);
    return absl::InvalidArgumentError(
        absl::StrCat("dims [", absl::StrJoin(shown, ","), tensor.dims.size() > kShown ? ",.." : "",
                     "] have ", elements < 0 ? "impossibly many" : absl::StrCat(elements),
                     " elements, but the data has ", tensor.size()));
  }
  return tensor;
}

}  // namespace isomer
