#ifndef ISOMER_MODELS_ZOO_BLOCKS_MODEL_BUILDER_H_
#define ISOMER_MODELS_ZOO_BLOCKS_MODEL_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"

namespace isomer {

// Builds a graph whose first error is kept until Build(), so that networks read as formulas. After
// an error calls do nothing and return refs that only other calls of the builder may take.
//
// Leaves get unique names from their callers, "layer3/conv1.weight"; weights get no values, so a
// model of any size is small.
class ModelBuilder {
 public:
  TensorRef Input(std::string name, std::vector<int64_t> sizes,
                  DataType dtype = DataType::kFloat32);
  TensorRef Weight(std::string name, std::vector<int64_t> sizes);
  // What is stored with the model but not trained. Without `values` they are made at run time, like
  // those of weights: for statistics that a trained network would bring.
  TensorRef Constant(std::string name, std::vector<int64_t> sizes, std::vector<float> values = {},
                     DataType dtype = DataType::kFloat32);

  TensorRef Call(Operator op, std::vector<TensorRef> operands, std::string name);
  // For operators of several outputs; `num_outputs` refs.
  std::vector<TensorRef> CallAll(Operator op, std::vector<TensorRef> operands, int num_outputs,
                                 std::string name);

  // x times a weight [inputs, outputs], plus a bias [outputs]; `name` is that of the sum. The
  // operands of the Add stand as PyTorch's exporter writes them: bias, product.
  TensorRef Linear(TensorRef x, int64_t inputs, int64_t outputs, const std::string& name);
  // The same with the last dim of x as inputs, and without a bias.
  TensorRef Product(TensorRef x, int64_t outputs, const std::string& name);
  // Linear with the last dim of x as inputs.
  TensorRef Dense(TensorRef x, int64_t outputs, const std::string& name) {
    return Linear(x, Size(x, -1), outputs, name);
  }
  TensorRef Relu(TensorRef x, const std::string& name) {
    return Call(OpKind::kRelu, {x}, name + "/relu");
  }
  TensorRef Add(TensorRef a, TensorRef b, std::string name) {
    return Call(OpKind::kAdd, {a, b}, std::move(name));
  }
  // x itself where there is only one.
  TensorRef Concat(std::vector<TensorRef> parts, int64_t axis, std::string name);
  // `parts` equal pieces of `axis`.
  std::vector<TensorRef> Split(TensorRef x, int64_t axis, int64_t parts, std::string name);
  TensorRef Reshape(TensorRef x, std::vector<int64_t> shape, std::string name);
  TensorRef Transpose(TensorRef x, std::vector<int64_t> perm, std::string name);
  // What models/support/einsum.h makes of `equation`.
  TensorRef Einsum(absl::string_view equation, std::vector<TensorRef> operands,
                   const std::string& name);
  // All dims but the first become one.
  TensorRef Flatten(TensorRef x, std::string name);
  // Another mask for every call, all from one input `dropout_seed`; x itself where rate is 0.
  TensorRef Dropout(TensorRef x, double rate, std::string name);

  void Output(std::string name, TensorRef tensor);
  // An output that training minimises. Without it the loss is attached to the first output
  // (models/loss.h).
  void Loss(TensorRef scalar);

  // Sizes of dims, from the end where `dim` is negative; 1 after an error.
  int64_t Size(TensorRef x, int dim) const;
  std::vector<int64_t> Sizes(TensorRef x) const;

  // For what a builder finds wrong with its arguments.
  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  bool ok() const { return status_.ok(); }

  absl::StatusOr<Model> Build();

 private:
  TensorRef Leaf(OpKind kind, std::string name, TensorType type);

  absl::Status status_;
  Model model_;
  TensorRef dropout_seed_;
  int64_t num_dropouts_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_MODEL_BUILDER_H_
