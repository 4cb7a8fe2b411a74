#include "models/zoo/blocks/model_builder.h"

#include "absl/strings/str_cat.h"
#include "models/support/einsum.h"
#include "pcg/ir/nested_parts.h"

namespace isomer {

TensorRef ModelBuilder::Leaf(OpKind kind, std::string name, TensorType type) {
  if (absl::Status status = ValidateTensorType(type); !status.ok()) {
    Fail(absl::InvalidArgumentError(absl::StrCat("'", name, "': ", status.message())));
  }
  if (!status_.ok()) return {};
  return model_.graph.AddLeaf(kind, std::move(name), std::move(type));
}

TensorRef ModelBuilder::Input(std::string name, std::vector<int64_t> sizes, DataType dtype) {
  return Leaf(OpKind::kInput, std::move(name), SequentialType(std::move(sizes), dtype));
}

TensorRef ModelBuilder::Weight(std::string name, std::vector<int64_t> sizes) {
  return Leaf(OpKind::kWeight, std::move(name), SequentialType(std::move(sizes)));
}

TensorRef ModelBuilder::Constant(std::string name, std::vector<int64_t> sizes,
                                 std::vector<float> values, DataType dtype) {
  const TensorRef constant = Leaf(OpKind::kConstant, name, SequentialType(std::move(sizes), dtype));
  if (status_.ok() && !values.empty()) model_.weights[name] = std::move(values);
  return constant;
}

std::vector<TensorRef> ModelBuilder::CallAll(Operator op, std::vector<TensorRef> operands,
                                             int num_outputs, std::string name) {
  std::vector<TensorRef> outputs(num_outputs);
  if (!status_.ok()) return outputs;
  absl::StatusOr<NodeId> node =
      model_.graph.Add(std::move(op), std::move(operands), std::move(name));
  if (!node.ok()) {
    Fail(node.status());
    return outputs;
  }
  for (int i = 0; i < num_outputs; ++i) outputs[i] = {*node, i};
  return outputs;
}

TensorRef ModelBuilder::Call(Operator op, std::vector<TensorRef> operands, std::string name) {
  return CallAll(std::move(op), std::move(operands), 1, std::move(name))[0];
}

TensorRef ModelBuilder::Linear(TensorRef x, int64_t inputs, int64_t outputs,
                               const std::string& name) {
  const TensorRef weight = Weight(absl::StrCat(name, ".weight"), {inputs, outputs});
  const TensorRef product = Call(OpKind::kMatMul, {x, weight}, absl::StrCat(name, "/product"));
  const TensorRef bias = Weight(absl::StrCat(name, ".bias"), {outputs});
  return Call(OpKind::kAdd, {bias, product}, name);
}

TensorRef ModelBuilder::Product(TensorRef x, int64_t outputs, const std::string& name) {
  const TensorRef weight = Weight(absl::StrCat(name, ".weight"), {Size(x, -1), outputs});
  return Call(OpKind::kMatMul, {x, weight}, name);
}

TensorRef ModelBuilder::Concat(std::vector<TensorRef> parts, int64_t axis, std::string name) {
  return NestedConcat(std::move(parts), [&](std::vector<TensorRef> group) {
    return Call({OpKind::kConcat, {{"axis", axis}}}, std::move(group), name);
  });
}

std::vector<TensorRef> ModelBuilder::Split(TensorRef x, int64_t axis, int64_t parts,
                                           std::string name) {
  const std::vector<int64_t> sizes(parts, Size(x, static_cast<int>(axis)) / parts);
  return NestedSplit(x, sizes, [&](TensorRef whole, const std::vector<int64_t>& of_whole) {
    return CallAll({OpKind::kSplit, {{"axis", axis}, {"sizes", of_whole}}}, {whole},
                   static_cast<int>(of_whole.size()), name);
  });
}

TensorRef ModelBuilder::Reshape(TensorRef x, std::vector<int64_t> shape, std::string name) {
  return Call({OpKind::kReshape, {{"shape", std::move(shape)}}}, {x}, std::move(name));
}

TensorRef ModelBuilder::Transpose(TensorRef x, std::vector<int64_t> perm, std::string name) {
  return Call({OpKind::kTranspose, {{"perm", std::move(perm)}}}, {x}, std::move(name));
}

TensorRef ModelBuilder::Einsum(absl::string_view equation, std::vector<TensorRef> operands,
                               const std::string& name) {
  if (!status_.ok()) return {};
  const absl::StatusOr<TensorRef> result =
      AddEinsum(&model_.graph, equation, std::move(operands), name);
  if (result.ok()) return *result;
  Fail(absl::Status(result.status().code(),
                    absl::StrCat("'", name, "': ", result.status().message())));
  return {};
}

TensorRef ModelBuilder::Flatten(TensorRef x, std::string name) {
  int64_t elements = 1;
  const std::vector<int64_t> sizes = Sizes(x);
  for (size_t i = 1; i < sizes.size(); ++i) elements *= sizes[i];
  return Reshape(x, {sizes.empty() ? 1 : sizes[0], elements}, std::move(name));
}

TensorRef ModelBuilder::Dropout(TensorRef x, double rate, std::string name) {
  if (rate == 0) return x;
  if (num_dropouts_ == 0) dropout_seed_ = Input("dropout_seed", {}, DataType::kInt64);
  return Call({OpKind::kDropout, {{"rate", rate}, {"salt", num_dropouts_++}}}, {x, dropout_seed_},
              std::move(name));
}

void ModelBuilder::Output(std::string name, TensorRef tensor) {
  if (status_.ok()) model_.graph.AddOutput(std::move(name), tensor);
}

void ModelBuilder::Loss(TensorRef scalar) {
  Output("loss", scalar);
  model_.loss = "loss";
}

std::vector<int64_t> ModelBuilder::Sizes(TensorRef x) const {
  return status_.ok() ? model_.graph.type(x).Sizes() : std::vector<int64_t>();
}

int64_t ModelBuilder::Size(TensorRef x, int dim) const {
  if (!status_.ok()) return 1;
  const TensorType& type = model_.graph.type(x);
  return type.dims[dim < 0 ? type.rank() + dim : dim].size;
}

absl::StatusOr<Model> ModelBuilder::Build() {
  if (!status_.ok()) return status_;
  return std::move(model_);
}

}  // namespace isomer
