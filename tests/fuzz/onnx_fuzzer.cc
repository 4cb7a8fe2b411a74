// Any bytes, read as an ONNX file: a model, or one line that says why not; a list of what is not
// read; without its data; and as a tensor of the standard's test data.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "models/onnx/data_in_file.h"
#include "models/onnx/import/onnx_import.h"
#include "models/onnx/tensor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view contents(reinterpret_cast<const char*>(data), size);
  for (int64_t batch_size : {0, 4}) {
    (void)isomer::ParseOnnx(contents, "fuzz.onnx", {.batch_size = batch_size});
  }
  (void)isomer::ListUnsupported(contents, "fuzz.onnx");
  // A model without its data is one, and the data lies in the file.
  const isomer::OnnxWithoutData without = isomer::LeaveDataInFile(contents, "fuzz.onnx", 8);
  for (const auto& [place, range] : without.data) {
    if (range.offset < 0 || range.length < 8 ||
        range.offset + range.length > static_cast<int64_t>(size)) {
      std::abort();
    }
  }
  isomer::onnx::ModelProto whole, parts;
  const bool is_model = whole.ParseFromArray(data, static_cast<int>(size));
  if (is_model != parts.ParseFromString(without.model)) std::abort();
  isomer::onnx::TensorProto tensor;
  if (tensor.ParseFromArray(data, static_cast<int>(size))) (void)isomer::ReadOnnxTensor(tensor);
  return 0;
}
