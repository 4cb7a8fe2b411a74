#ifndef ISOMER_MODELS_ONNX_EXTERNAL_DATA_H_
#define ISOMER_MODELS_ONNX_EXTERNAL_DATA_H_

#include <string>

#include "absl/status/statusor.h"
#include "models/onnx.pb.h"

namespace isomer {

// The bytes of a tensor that lie in a file of their own: `length` of them (to the end of the file
// where it is not given) from `offset` on. The location is relative to `folder`, that of the
// model's file, and may not leave it, not through links either.
// Errors do not name the tensor: "its data lies in 'w.bin', which has 12 bytes, not 16 from 8 on".
absl::StatusOr<std::string> ReadExternalData(const onnx::TensorProto& proto,
                                             const std::string& folder);

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_EXTERNAL_DATA_H_
