#ifndef ISOMER_MODELS_ONNX_TENSOR_H_
#define ISOMER_MODELS_ONNX_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/onnx/external_data.h"
#include "models/onnx/onnx.pb.h"
#include "pcg/ir/stored_values.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// A tensor whose elements the file states.
struct OnnxTensor {
  DataType dtype = DataType::kFloat32;
  std::vector<int64_t> dims;
  StoredValues floats;        // where IsFloat(dtype)
  std::vector<int64_t> ints;  // of the other types; bool: 0 or 1
  // A literal of a Constant node (or computed from such) rather than a parameter of the network.
  bool is_literal = false;

  bool is_float() const { return IsFloat(dtype); }
  int64_t size() const { return static_cast<int64_t>(is_float() ? floats.size() : ints.size()); }
  // REQUIRES: 0 <= i < size().
  double Number(int64_t i) const { return is_float() ? floats[i] : static_cast<double>(ints[i]); }
};

// Integers of 8 and 16 bits. INT32 has all of their values, but what computes in their own type
// keeps their low bits alone: so it stands for them in what is only read and cast.
enum class NarrowIntegers { kRefused, kAsInt32 };

// DOUBLE is read as FLOAT: a value outside of its range is refused, other digits are rounded.
// `folder` is where external data lies, as models/onnx/external_data.h has it; null: it is refused.
// Errors say what is wrong with the tensor and do not name it: "dims [64,64] have 4096 elements,
// but the data has 12".
// Many floats of data in a file stay there.
// `in_file`: where its data lies, if the message is without.
absl::StatusOr<OnnxTensor> ReadOnnxTensor(const onnx::TensorProto& proto,
                                          const std::string* folder = nullptr,
                                          const ExternalData* in_file = nullptr,
                                          NarrowIntegers narrow = NarrowIntegers::kRefused);

// The type that stands for TensorProto.DataType `data_type`; the error names any that has none.
absl::StatusOr<DataType> OnnxDataType(int data_type,
                                      NarrowIntegers narrow = NarrowIntegers::kRefused);
// UINT8, INT8, UINT16 or INT16.
bool IsNarrowInteger(int data_type);
// "element type UINT8"
std::string OnnxTypeText(int data_type);
// The inverse.
onnx::TensorProto::DataType OnnxElementType(DataType dtype);

// The number of float type `dtype` that is nearest to `value`.
float RoundedTo(DataType dtype, double value);

// The product, or -1 where a size is negative or the product of those that are not 0 above 2^48.
int64_t NumElementsOf(const std::vector<int64_t>& dims);

// A name from a file, in quotes, short and on one line whatever it holds.
std::string QuotedName(absl::string_view name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_TENSOR_H_
