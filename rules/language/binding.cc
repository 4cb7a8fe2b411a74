// Rules under an assignment of their variables.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/exact_number.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule.h"
#include "rules/language/splittable_dims.h"

namespace isomer {
namespace {

int64_t Bound(const Binding& binding, const std::string& name) {
  const auto found = binding.variables.find(name);
  return found == binding.variables.end() ? 0 : found->second;
}

}  // namespace

const Dim* DimAt(const Binding& binding, int input, int64_t axis) {
  const std::vector<Dim>& dims = binding.inputs[input].dims;
  const int64_t at = axis < 0 ? axis + static_cast<int64_t>(dims.size()) : -1;
  return at >= 0 && at < static_cast<int64_t>(dims.size()) ? &dims[at] : nullptr;
}

const Dim* DimOf(const IntExpr& size_of, const Binding& binding) {
  const int64_t axis =
      size_of.variable.empty() ? size_of.constant : Bound(binding, size_of.variable);
  return DimAt(binding, size_of.input, axis);
}

int64_t Evaluate(const IntExpr& expr, const Binding& binding) {
  switch (expr.kind) {
    case IntExpr::Kind::kConstant:
      return expr.constant;
    case IntExpr::Kind::kVariable:
      return Bound(binding, expr.variable);
    case IntExpr::Kind::kSizeOf: {
      const Dim* dim = DimOf(expr, binding);
      return dim == nullptr ? 0 : dim->size;
    }
    case IntExpr::Kind::kProduct: {
      int64_t product = 0;  // An overflow is no degree.
      return __builtin_mul_overflow(Bound(binding, expr.variable), Bound(binding, expr.factor),
                                    &product)
                 ? 0
                 : product;
    }
  }
  return 0;
}

std::optional<double> Evaluate(const NumberExpr& expr, const Binding& binding) {
  if (expr.variables.empty()) return expr.constant;
  std::vector<double> factors = {expr.constant};
  for (const std::string& name : expr.variables) {
    const auto found = binding.numbers.find(name);
    if (found != binding.numbers.end()) factors.push_back(found->second);
  }
  return ExactProduct(factors);
}

std::vector<SplittableDim> SplittableDims(const Operator& op,
                                          const std::vector<TensorType>& operands) {
  if (IsLeaf(op.kind()) || IsParallel(op.kind())) return {};
  const absl::StatusOr<Sharding> sharding = InferSharding(op, operands);
  if (!sharding.ok()) return {};
  return SplittableDims(*sharding, operands);
}

std::vector<SplittableDim> SplittableDims(const Sharding& sharding,
                                          absl::Span<const TensorType> operands) {
  std::vector<SplittableDim> result;
  const Declaration& d = sharding.declaration;
  const int num_operands = static_cast<int>(operands.size());
  const int num_outputs = static_cast<int>(d.outputs.size());
  std::vector<bool> usable(d.dims.size());
  for (size_t v = 0; v < d.dims.size(); ++v) {
    usable[v] = d.IsPartitionable(static_cast<int>(v));
    result.push_back({.dim = static_cast<int>(v),
                      .size = d.dims[v].size.value(),
                      .degree = sharding.degrees[v],
                      .operand_axes = std::vector<std::optional<int64_t>>(num_operands),
                      .output_axes = std::vector<std::optional<int64_t>>(num_outputs)});
  }
  auto note = [&](int lead, int64_t axis, auto axes, int slot) {
    if (lead < 0) return;
    std::optional<int64_t>& entry = (result[lead].*axes)[slot];
    if (entry.has_value()) usable[lead] = false;  // It leads two dims of one tensor.
    entry = axis;
  };
  for (int o = 0; o < num_operands; ++o) {
    const int rank = operands[o].rank();
    for (int i = 0; i < rank; ++i) {
      const int lead = d.LeadOfOperandDim(o, i);
      note(lead, i - rank, &SplittableDim::operand_axes, o);
      // Pieces of a spatial dim go with pieces of another size.
      if (lead >= 0 && d.dims[lead].kind == DimKind::kSpatial) {
        result[lead].size = std::gcd(result[lead].size, operands[o].dims[i].size);
      }
    }
  }
  for (int t = 0; t < num_outputs; ++t) {
    const int rank = static_cast<int>(d.outputs[t].size());
    for (int i = 0; i < rank; ++i) {
      note(d.LeadOfOutputDim(t, i), i - rank, &SplittableDim::output_axes, t);
    }
  }
  std::erase_if(result, [&](const SplittableDim& dim) { return !usable[dim.dim]; });
  return result;
}

absl::StatusOr<Operator> InstantiateOperator(const PatternNode& node, const Binding& binding,
                                             int operand_rank) {
  Operator op(node.kind);
  for (const AttributePattern& attribute : node.attributes) {
    if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      op.Set(attribute.name, Evaluate(*expr, binding));
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      const std::optional<double> value = Evaluate(*number, binding);
      if (!value.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute '", attribute.name, "' would have to be rounded"));
      }
      op.Set(attribute.name, *value);
    } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      std::vector<int64_t> values;
      for (const IntExpr& expr : *list) values.push_back(Evaluate(expr, binding));
      if (attribute.name == "sizes") {
        op.Set(attribute.name, std::vector<Extent>(values.begin(), values.end()));
      } else {
        op.Set(attribute.name, values);
      }
    } else if (auto* swap = std::get_if<SwapAxes>(&attribute.value)) {
      std::vector<int64_t> perm(operand_rank);
      for (int i = 0; i < operand_rank; ++i) perm[i] = i;
      ISOMER_ASSIGN_OR_RETURN(const int a, NormalizeAxis(swap->a, operand_rank));
      ISOMER_ASSIGN_OR_RETURN(const int b, NormalizeAxis(swap->b, operand_rank));
      std::swap(perm[a], perm[b]);
      op.Set(attribute.name, perm);
    } else {
      const std::string& name = std::get<AttributeVariable>(attribute.value).name;
      const auto found = binding.attributes.find(name);
      if (found == binding.attributes.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute variable '", name, "' is not bound"));
      }
      op.Set(attribute.name, found->second);
    }
  }
  ISOMER_RETURN_IF_ERROR(NormalizeAttributes(&op));
  return op;
}

absl::StatusOr<Graph> InstantiatePattern(const Pattern& pattern, const Binding& binding) {
  Graph graph;
  for (size_t i = 0; i < binding.inputs.size(); ++i) {
    ISOMER_RETURN_IF_ERROR(ValidateTensorType(binding.inputs[i]));
    graph.AddInput(absl::StrCat("x", i), binding.inputs[i]);
  }
  const int num_inputs = static_cast<int>(binding.inputs.size());
  auto tensor = [&](PatternRef ref) {
    return ref.node < 0 ? TensorRef{{ref.index}, 0} : TensorRef{{num_inputs + ref.node}, ref.index};
  };
  for (const PatternNode& node : pattern.nodes) {
    std::vector<TensorRef> inputs;
    for (PatternRef ref : node.inputs) {
      inputs.push_back(tensor(ref));
      // Split may have fewer outputs than the pattern says, if its sizes do.
      if (!graph.Contains(inputs.back())) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", ref.index, " of pattern node ", ref.node, " does not exist"));
      }
    }
    ISOMER_ASSIGN_OR_RETURN(Operator op,
                            InstantiateOperator(node, binding, graph.type(inputs[0]).rank()));
    ISOMER_RETURN_IF_ERROR(graph.Add(std::move(op), std::move(inputs)).status());
  }
  for (size_t i = 0; i < pattern.outputs.size(); ++i) {
    const TensorRef output = tensor(pattern.outputs[i]);
    if (!graph.Contains(output)) {
      return absl::InvalidArgumentError(absl::StrCat("pattern output ", i, " does not exist"));
    }
    graph.AddOutput(absl::StrCat("y", i), output);
  }
  return graph;
}

}  // namespace isomer
