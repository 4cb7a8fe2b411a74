// Any text, read as a file of declared operators (pcg/operators/declared/operator_file.h). What is
// read is given meanings on operands of a few sizes, and these are evaluated, pieces too: no index
// may leave its tensor.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/operators/declared/operator_file.h"

namespace isomer {
namespace {

constexpr double kMostPoints = 1 << 14;  // of all statements' iteration spaces

bool IsSmall(const Declaration& d) {
  double points = static_cast<double>(d.statements.size());
  for (const IterationDim& dim : d.dims) points *= static_cast<double>(dim.size.value());
  return points <= kMostPoints;
}

void EvaluateOn(const OperatorSyntax& syntax, int64_t size) {
  Operator op(OpKind::kRelu);
  for (const DeclaredAttribute& attribute : syntax.attributes) {
    op.Set(attribute.name, attribute.Of(attribute.value.value_or(attribute.least)));
  }
  std::vector<Shape> shapes;
  for (const OperandSyntax& operand : syntax.operands) {
    // A dim's size is a function of its name, so that those of one name agree.
    Shape shape(operand.has_leading_dims ? 1 : 0, Extent(2));
    for (const std::string& dim : operand.dims) shape.emplace_back(size * (1 + dim[0] % 2));
    shapes.push_back(std::move(shape));
  }
  const absl::StatusOr<Declaration> d = Instantiate(syntax, op, shapes);
  if (!d.ok() || !IsSmall(*d)) return;
  std::vector<Array<double>> operands;
  for (const Shape& shape : shapes) {
    std::vector<int64_t> sizes;
    for (const Extent& extent : shape) sizes.push_back(extent.value());
    operands.emplace_back(std::move(sizes));
  }
  std::vector<const Array<double>*> pointers;
  for (const Array<double>& operand : operands) pointers.push_back(&operand);
  (void)Evaluate<double>(*d, FullBox(*d), pointers);
}

}  // namespace
}  // namespace isomer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace isomer;  // NOLINT
  const auto operators =
      ParseOperators(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!operators.ok()) return 0;
  for (const OperatorSyntax& syntax : *operators) {
    for (const int64_t dim : {1, 2, 3}) EvaluateOn(syntax, dim);
  }
  return 0;
}
