// isomer-run --test_data: a model on the test cases that come with it.
#ifndef ISOMER_RUNTIME_TEST_DATA_MAIN_H_
#define ISOMER_RUNTIME_TEST_DATA_MAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/device/backend.h"

namespace isomer {

// Runs a plan, or an .onnx file, on every test set of `folder` and prints a line for each. What is
// off by more than `rtol` of what is expected and `atol` differs; an atol below 0 is 1e-7, or what
// float32 rounds of the largest element (TestTolerance). An .onnx file is run in
// inference; where a set has gradients, also as a step of training with the loss that it gets by
// default. kExitDone where all outputs and gradients agree, kExitNo where one differs; the error
// says what is refused.
absl::StatusOr<int> RunTestData(const std::string& spec, const std::string& folder, double rtol,
                                double atol, Backend* backend);

// model.onnx in the folder of a test case, or in the one around it.
std::string ModelBeside(const std::string& folder);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_TEST_DATA_MAIN_H_
