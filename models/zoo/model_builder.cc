#include "models/zoo/model_builder.h"

#include "absl/strings/str_cat.h"

namespace isomer {

TensorRef ModelBuilder::Leaf(bool is_weight, std::string name, TensorType type) {
  if (absl::Status status = ValidateTensorType(type); !status.ok()) {
    Fail(absl::InvalidArgumentError(absl::StrCat("'", name, "': ", status.message())));
  }
  if (!status_.ok()) return {};
  return is_weight ? model_.graph.AddWeight(std::move(name), std::move(type))
                   : model_.graph.AddInput(std::move(name), std::move(type));
}

TensorRef ModelBuilder::Input(std::string name, std::vector<int64_t> sizes, DataType dtype) {
  return Leaf(false, std::move(name), SequentialType(std::move(sizes), dtype));
}

TensorRef ModelBuilder::Weight(std::string name, std::vector<int64_t> sizes) {
  return Leaf(true, std::move(name), SequentialType(std::move(sizes)));
}

TensorRef ModelBuilder::Call(Operator op, std::vector<TensorRef> operands, std::string name) {
  if (!status_.ok()) return {};
  absl::StatusOr<TensorRef> result =
      model_.graph.AddOp(std::move(op), std::move(operands), std::move(name));
  if (!result.ok()) {
    Fail(result.status());
    return {};
  }
  return *result;
}

TensorRef ModelBuilder::Linear(TensorRef x, int64_t inputs, int64_t outputs,
                               const std::string& name) {
  const TensorRef weight = Weight(absl::StrCat(name, ".weight"), {inputs, outputs});
  const TensorRef product = Call(OpKind::kMatMul, {x, weight}, absl::StrCat(name, "/product"));
  const TensorRef bias = Weight(absl::StrCat(name, ".bias"), {outputs});
  return Call(OpKind::kAdd, {bias, product}, name);
}

TensorRef ModelBuilder::Reshape(TensorRef x, std::vector<int64_t> shape, std::string name) {
  return Call({OpKind::kReshape, {{"shape", std::move(shape)}}}, {x}, std::move(name));
}

TensorRef ModelBuilder::Transpose(TensorRef x, std::vector<int64_t> perm, std::string name) {
  return Call({OpKind::kTranspose, {{"perm", std::move(perm)}}}, {x}, std::move(name));
}

void ModelBuilder::Output(std::string name, TensorRef tensor) {
  if (status_.ok()) model_.graph.AddOutput(std::move(name), tensor);
}

absl::StatusOr<Model> ModelBuilder::Build() {
  if (!status_.ok()) return status_;
  return std::move(model_);
}

}  // namespace isomer
