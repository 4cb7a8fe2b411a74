#ifndef ISOMER_MODELS_ONNX_DATA_IN_FILE_H_
#define ISOMER_MODELS_ONNX_DATA_IN_FILE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "models/onnx/external_data.h"

namespace isomer {

// A model's file but for the data of its large initializers, which stay where they lie in it.
struct OnnxWithoutData {
  std::string model;                 // a serialized ModelProto
  std::map<int, ExternalData> data;  // by place among the initializers of the graph
};

// Data of a tensor of as many bytes are left in the file that has them, in external data, too;
// fewer are kept, and go where a plan goes.
inline constexpr size_t kManyBytes = size_t{1} << 18;

// `contents` are those of the file `path`. What is no model, or cut short, is kept as it is. Data
// of `many_bytes` and more are left.
OnnxWithoutData LeaveDataInFile(absl::string_view contents, const std::string& path,
                                size_t many_bytes = kManyBytes);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_DATA_IN_FILE_H_
