// isomer-run --test_data: a model on the test cases that come with it.
#ifndef ISOMER_RUNTIME_TEST_DATA_MAIN_H_
#define ISOMER_RUNTIME_TEST_DATA_MAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/backend.h"

namespace isomer {

// Runs the .onnx file `path` in inference on every test set of `folder` and prints a line for each.
// kExitDone where all outputs agree, kExitNo where one differs; the error says what is refused.
absl::StatusOr<int> RunTestData(const std::string& path, const std::string& folder,
                                Backend* backend);

// model.onnx in the folder of a test case, or in the one around it.
std::string ModelBeside(const std::string& folder);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_TEST_DATA_MAIN_H_
