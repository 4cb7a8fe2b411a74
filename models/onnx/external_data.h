#ifndef ISOMER_MODELS_ONNX_EXTERNAL_DATA_H_
#define ISOMER_MODELS_ONNX_EXTERNAL_DATA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "models/onnx/onnx.pb.h"

namespace isomer {

// Bytes of a file.
struct ExternalData {
  std::string path;
  int64_t file_bytes = 0;  // of the whole file
  int64_t offset = 0, length = 0;
};

// Where the data of a tensor lies that has a file of its own: `length` bytes (to the end of the
// file where it is not given) from `offset` on. The location is relative to `folder`, that of the
// model's file, and may not leave it, not through links either.
// Errors do not name the tensor: "its data lies in 'w.bin', which has 12 bytes, not 16 from 8 on".
absl::StatusOr<ExternalData> LocateExternalData(const onnx::TensorProto& proto,
                                                const std::string& folder);
absl::StatusOr<std::string> ReadExternalData(const ExternalData& data);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXTERNAL_DATA_H_
