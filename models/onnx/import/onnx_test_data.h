// The folders in which ONNX keeps test cases of a model: input_0.pb, .. and output_0.pb, .. (one
// TensorProto each), in the folder itself or in folders test_data_set_0, .. of it. Beside them may
// lie, of a training step, target_0.pb, which the loss compares the first output with, and
// gradient_0.pb, .., each under the name of its weight.
#ifndef ISOMER_MODELS_ONNX_IMPORT_ONNX_TEST_DATA_H_
#define ISOMER_MODELS_ONNX_IMPORT_ONNX_TEST_DATA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/onnx/tensor.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/plan.h"

namespace isomer {

struct OnnxTestSet {
  std::string folder;
  std::vector<OnnxTensor> inputs, outputs;  // in the order of the model's
  std::vector<OnnxTensor> targets;          // one, or none
  std::map<std::string, OnnxTensor> gradients;
};

// Ok if the model can be read as far as its inputs and outputs, and all of them are tensors.
absl::Status CheckTensorTypes(absl::string_view contents, const std::string& name);

// All sets of a folder, by name. Errors name the file, and say what in it is not read: strings,
// tensors without elements, element types that Isomer does not have.
absl::StatusOr<std::vector<OnnxTestSet>> ReadOnnxTestSets(const std::string& folder);

// A model with its inputs bound to a set: sizes that the file leaves open are those of the values.
struct BoundModel {
  Model model;
  std::map<std::string, Array<double>> inputs;  // of those that are still inputs of the graph
  OnnxTestSet set;                              // with these inputs alone
};

// Which inputs are constants to the import, so that operators may ask for their values (as those
// that take shapes, axes or repeats do).
enum class BoundInputs { kNone, kIntegers, kAllButFirst, kAll };
inline constexpr BoundInputs kAllBoundInputs[] = {BoundInputs::kNone, BoundInputs::kIntegers,
                                                  BoundInputs::kAllButFirst, BoundInputs::kAll};

absl::StatusOr<BoundModel> BindOnnxModel(absl::string_view contents, const std::string& name,
                                         const OnnxTestSet& set, BoundInputs constants);

// What the set has for the inputs of `graph`, which may have a loss, in their order: inputs, then
// targets. The error says how many there are, or which has another type.
absl::StatusOr<std::map<std::string, Array<double>>> InputsFrom(const OnnxTestSet& set,
                                                                const Graph& graph);

Array<double> ArrayOf(const OnnxTensor& tensor);

// |got - expected| <= absolute + relative |expected|, as ONNX's own runner has it unless a user
// says; or <= of_largest times the largest finite magnitude that is expected: what float32 rounds
// in sums of such terms, of which an element of a network may be what remains.
struct TestTolerance {
  double relative = 1e-3, absolute = 1e-7, of_largest = 1e-5;
};

// How far a tensor is from what is expected.
struct TensorDistance {
  std::string difference;  // "[0,2] is 1.5, not 2.5 (off by 1 of up to 4; 3 of 6 elements ..)"
  double most = 0;         // the largest of an element; infinite where one is no number
  double scale = 0;        // the largest finite magnitude that is expected
};
// Of `got` (of type `type`). Floats agree within the tolerance, NaN is NaN; the rest, type and
// shape, is to be the same.
TensorDistance DistanceFrom(const OnnxTensor& expected, const Array<double>& got,
                            const TensorType& type, const TestTolerance& tolerance = {});

}  // namespace isomer

#endif  // ISOMER_MODELS_ONNX_IMPORT_ONNX_TEST_DATA_H_
