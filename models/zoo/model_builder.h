#ifndef ISOMER_MODELS_ZOO_MODEL_BUILDER_H_
#define ISOMER_MODELS_ZOO_MODEL_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/plan.h"

namespace isomer {

// Builds a graph whose first error is kept until Build(), so that networks read as formulas.
class ModelBuilder {
 public:
  TensorRef Input(std::string name, std::vector<int64_t> sizes,
                  DataType dtype = DataType::kFloat32);
  TensorRef Weight(std::string name, std::vector<int64_t> sizes);
  TensorRef Call(Operator op, std::vector<TensorRef> operands, std::string name);
  // x times a weight [inputs, outputs], plus a bias [outputs]; `name` is that of the sum. The
  // operands of the Add stand as PyTorch's exporter writes them: bias, product.
  TensorRef Linear(TensorRef x, int64_t inputs, int64_t outputs, const std::string& name);
  TensorRef Reshape(TensorRef x, std::vector<int64_t> shape, std::string name);
  TensorRef Transpose(TensorRef x, std::vector<int64_t> perm, std::string name);
  void Output(std::string name, TensorRef tensor);

  // For what a builder finds wrong with its arguments.
  void Fail(absl::Status status) { status_.Update(std::move(status)); }

  absl::StatusOr<Model> Build();

 private:
  TensorRef Leaf(bool is_weight, std::string name, TensorType type);

  absl::Status status_;
  Model model_;
};

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_MODEL_BUILDER_H_
