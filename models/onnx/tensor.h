#ifndef ISOMER_MODELS_ONNX_TENSOR_H_
#define ISOMER_MODELS_ONNX_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/onnx.pb.h"
#include "pcg/tensor_type.h"

namespace isomer {

// A tensor whose elements the file states. Integers of any width and booleans are kInt64.
struct OnnxTensor {
  DataType dtype = DataType::kFloat32;
  std::vector<int64_t> dims;
  std::vector<float> floats;  // kFloat32
  std::vector<int64_t> ints;  // kInt64
  // A literal of a Constant node (or computed from such) rather than a parameter of the network.
  bool is_literal = false;

  int64_t size() const {
    return static_cast<int64_t>(dtype == DataType::kFloat32 ? floats.size() : ints.size());
  }
  // REQUIRES: 0 <= i < size().
  double Number(int64_t i) const {
    return dtype == DataType::kFloat32 ? floats[i] : static_cast<double>(ints[i]);
  }
};

// Errors say what is wrong with the tensor and do not name it: "dims [64,64] have 4096 elements,
// but the data has 12".
absl::StatusOr<OnnxTensor> ReadOnnxTensor(const onnx::TensorProto& proto);

// kFloat32 for FLOAT, kInt64 for INT64 and INT32; the error names any other element type.
absl::StatusOr<DataType> OnnxDataType(int data_type);

// The product, or -1 where a size is negative or the product is above 2^48.
int64_t NumElementsOf(const std::vector<int64_t>& dims);

// A name from a file, in quotes, short and on one line whatever it holds.
std::string QuotedName(absl::string_view name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_TENSOR_H_
