// Any bytes, read as an ONNX file: a model, or one line that says why not; a list of what is not
// read; and as a tensor of the standard's test data.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "models/onnx/tensor.h"
#include "models/onnx_import.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view contents(reinterpret_cast<const char*>(data), size);
  for (int64_t batch_size : {0, 4}) {
    (void)isomer::ParseOnnx(contents, "fuzz.onnx", {.batch_size = batch_size});
  }
  (void)isomer::ListUnsupported(contents, "fuzz.onnx");
  isomer::onnx::TensorProto tensor;
  if (tensor.ParseFromArray(data, static_cast<int>(size))) (void)isomer::ReadOnnxTensor(tensor);
  return 0;
}
