// Runs one operator on given numbers, for tests with known answers.
#ifndef ISOMER_TESTS_PCG_OPERATORS_RUN_OPERATOR_H_
#define ISOMER_TESTS_PCG_OPERATORS_RUN_OPERATOR_H_

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/operator.h"

namespace isomer {

using Tensor = Array<double>;

inline Tensor Filled(std::vector<int64_t> shape, std::vector<double> data) {
  Tensor tensor(std::move(shape));
  EXPECT_EQ(tensor.data.size(), data.size());
  tensor.data = std::move(data);
  return tensor;
}

// Numbers between -1 and 1.
inline Tensor Random(std::vector<int64_t> shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> real(-1, 1);
  Tensor tensor(std::move(shape));
  for (double& value : tensor.data) value = real(random);
  return tensor;
}

inline absl::StatusOr<Declaration> DeclareText(const std::string& call,
                                               const std::vector<std::vector<int64_t>>& sizes) {
  absl::StatusOr<Operator> op = ParseOperator(call);
  if (!op.ok()) return op.status();
  std::vector<Shape> shapes;
  for (const std::vector<int64_t>& size : sizes) shapes.emplace_back(size.begin(), size.end());
  return Declare(*op, shapes);
}

// What the declaration of a call that must be refused says.
inline std::string ErrorOf(const std::string& call,
                           const std::vector<std::vector<int64_t>>& sizes) {
  const absl::StatusOr<Declaration> declaration = DeclareText(call, sizes);
  EXPECT_FALSE(declaration.ok()) << call;
  return std::string(declaration.status().message());
}

inline Declaration DeclarationFor(const std::string& call, const std::vector<Tensor>& operands) {
  std::vector<std::vector<int64_t>> sizes;
  for (const Tensor& operand : operands) sizes.push_back(operand.shape);
  absl::StatusOr<Declaration> declaration = DeclareText(call, sizes);
  EXPECT_TRUE(declaration.ok()) << call << ": " << declaration.status();
  return declaration.ok() ? *std::move(declaration) : Declaration();
}

inline std::vector<const Tensor*> PointersTo(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

inline std::vector<Tensor> OutputsOf(const std::string& call, const std::vector<Tensor>& operands) {
  const Declaration d = DeclarationFor(call, operands);
  auto outputs = Evaluate<double>(d, FullBox(d), PointersTo(operands));
  EXPECT_TRUE(outputs.ok()) << call << ": " << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>(d.outputs.size());
}

inline Tensor OutputOf(const std::string& call, const std::vector<Tensor>& operands) {
  return OutputsOf(call, operands).at(0);
}

inline void ExpectClose(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  ASSERT_EQ(a.shape, b.shape);
  for (size_t e = 0; e < a.data.size(); ++e) {
    ASSERT_NEAR(a.data[e], b.data[e], tolerance) << "element " << e;
  }
}

// The names of the dims that may be partitioned.
inline std::vector<std::string> PartitionableDims(const Declaration& d) {
  std::vector<std::string> names;
  for (size_t v = 0; v < d.dims.size(); ++v) {
    if (d.IsPartitionable(static_cast<int>(v))) names.push_back(d.dims[v].name);
  }
  return names;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_OPERATORS_RUN_OPERATOR_H_
