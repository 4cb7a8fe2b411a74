#include "pcg/ir/operator_facts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

// Operand 1 is a weight in common use.
bool HasWeight(OpKind kind) {
  return (IsContraction(kind) && !IsAttention(kind)) || IsLookUp(kind);
}

}  // namespace

bool IsContraction(OpKind kind) {
  switch (TraitsOf(kind).op_class) {
    case OperatorClass::kProduct:
    case OperatorClass::kConvolution:
    case OperatorClass::kTransposedConvolution:
    case OperatorClass::kAttention:
      return true;
    default:
      return false;
  }
}

bool IsPointwise(const Declaration& d) {
  if (d.outputs.size() != 1) return false;
  const size_t rank = d.outputs[0].size();
  const auto is_at_place = [&](const std::vector<Index>& indices, bool broadcasts) {
    if (indices.size() > rank) return false;
    for (size_t i = 0; i < indices.size(); ++i) {
      const bool is_place = indices[i] == Index(static_cast<int>(rank - indices.size() + i));
      if (!is_place && !(broadcasts && indices[i] == Index())) return false;
    }
    return true;
  };
  return d.dims.size() == rank &&
         absl::c_all_of(d.accesses,
                        [&](const Access& a) { return is_at_place(a.indices, true); }) &&
         absl::c_all_of(d.statements, [&](const Statement& s) {
           return s.reduction == Reduction::kNone && s.indices.size() == rank &&
                  is_at_place(s.indices, false) &&
                  absl::c_none_of(s.body, [](const Instruction& instruction) {
                    return instruction.op == ScalarOp::kIndex ||
                           instruction.op == ScalarOp::kRandom;
                  });
         });
}

bool IsConvolution(OpKind kind) { return TraitsOf(kind).op_class == OperatorClass::kConvolution; }

bool HasPointFilters(const Operator& convolution, absl::Span<const int64_t> images,
                     absl::Span<const int64_t> filters) {
  const auto is_one = [](int64_t size) { return size == 1; };
  return images[1] == filters[1] && absl::c_all_of(convolution.Ints("stride"), is_one) &&
         absl::c_all_of(filters.subspan(2), is_one);
}

bool IsAttention(OpKind kind) { return TraitsOf(kind).op_class == OperatorClass::kAttention; }

bool KeepsOrder(const Operator& op, absl::Span<const int64_t> sizes) {
  if (op.kind() == OpKind::kReshape) return true;
  if (op.kind() != OpKind::kTranspose) return false;
  int64_t last = -1;
  for (int64_t dim : op.Ints("perm")) {
    if (sizes[dim] == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  return true;
}

bool IsPlacement(OpKind kind) {
  return kind == OpKind::kPartition || kind == OpKind::kCombine || kind == OpKind::kReplicate;
}

bool CanRunOnHost(OpKind kind) {
  return !IsLeaf(kind) && !IsParallel(kind) && !IsContraction(kind) && !IsLoss(kind) &&
         TraitsOf(kind).is_cheap;
}

bool IsFloatCast(const Operator& op) {
  return op.kind() == OpKind::kCast && IsFloat(static_cast<DataType>(op.Int("to")));
}

HostLeaves LeavesOf(OpKind leaf) {
  switch (leaf) {
    case OpKind::kInput:
      return HostLeaves::kInputs;
    case OpKind::kWeight:
      return HostLeaves::kWeights;
    case OpKind::kConstant:
      return HostLeaves::kConstants;
    default:
      return HostLeaves::kOther;
  }
}

HostLeaves Together(HostLeaves a, HostLeaves b, bool training) {
  if (a == b) return a;
  const auto is_stored = [](HostLeaves leaves) {
    return leaves == HostLeaves::kWeights || leaves == HostLeaves::kConstants;
  };
  return !training && is_stored(a) && is_stored(b) ? HostLeaves::kWeights : HostLeaves::kOther;
}

bool IsMadeOnHost(const Operator& op, HostLeaves leaves, bool of_integers, bool used_once,
                  bool training) {
  const OpKind kind = op.kind();
  switch (leaves) {
    case HostLeaves::kInputs:
      return IsLayout(kind) && of_integers;
    case HostLeaves::kConstants:
      return CanRunOnHost(kind);
    case HostLeaves::kWeights:
      return training ? used_once && (IsLayout(kind) || IsFloatCast(op)) : CanRunOnHost(kind);
    case HostLeaves::kOther:
      return false;
  }
  return false;
}

bool IsLookUp(OpKind kind) { return TraitsOf(kind).op_class == OperatorClass::kLookUp; }

bool IsStatistic(OpKind kind, int output) {
  return output > 0 && TraitsOf(kind).other_results == ResultType::kFloat32;
}

bool HoldsValues(OpKind kind, int operand) {
  return !IsIndexOperand(kind, operand) && !IsConditionOperand(kind, operand);
}

absl::string_view SoapClassName(SoapClass soap) {
  switch (soap) {
    case SoapClass::kSample:
      return "sample";
    case SoapClass::kAttribute:
      return "attribute";
    case SoapClass::kParameter:
      return "parameter";
    case SoapClass::kSpatial:
      return "spatial";
    case SoapClass::kReduction:
      return "reduction";
    case SoapClass::kWhole:
      return "whole";
  }
  return "?";
}

bool MayRoundIntegers(OpKind kind) { return TraitsOf(kind).rounding != IntegerRounding::kNever; }

bool RoundsIntegers(const Operator& op, DataType operand, DataType output) {
  if (IsFloat(output)) return false;
  const auto is_fraction = [output](const Attribute& attribute) {
    const double* value = std::get_if<double>(&attribute.value);
    if (value == nullptr) return false;
    return output == DataType::kBool ? *value != 0 && *value != 1 : std::trunc(*value) != *value;
  };
  switch (TraitsOf(op.kind()).rounding) {
    case IntegerRounding::kNever:
      return false;
    case IntegerRounding::kAlways:
      return true;
    case IntegerRounding::kByNumbers:
      return absl::c_any_of(op.attributes(), is_fraction);
    case IntegerRounding::kByTypes:
      return output != operand && (IsFloat(operand) || output == DataType::kBool);
    case IntegerRounding::kOfSumsOfBools:
      return output == DataType::kBool && op.Find("reduction") != nullptr &&
             op.Int("reduction") == 1;
  }
  return false;
}

bool PassesPartials(const Operator& op) {
  return op.kind() != OpKind::kCast || IsFloat(static_cast<DataType>(op.Int("to")));
}

SoapClass SoapClassOf(OpKind kind, const Declaration& declaration, int dim) {
  if (!declaration.IsPartitionable(dim)) return SoapClass::kWhole;
  if (declaration.dims[dim].kind == DimKind::kSum) return SoapClass::kReduction;
  if (declaration.dims[dim].kind == DimKind::kSpatial) return SoapClass::kSpatial;
  const int data = IsLookUp(kind) ? 1 : 0;
  for (size_t i = 0; i < declaration.operands[data].size(); ++i) {
    if (declaration.LeadOfOperandDim(data, static_cast<int>(i)) == dim) {
      return i == 0 ? SoapClass::kSample : SoapClass::kAttribute;
    }
  }
  return HasWeight(kind) ? SoapClass::kParameter : SoapClass::kAttribute;
}

std::vector<bool> DifferentiableOperands(const Declaration& declaration) {
  // Per tensor (operands, then statements): the operands it depends on differentiably, as bits.
  std::vector<uint64_t> depends;
  for (int o = 0; o < declaration.num_operands(); ++o) depends.push_back(uint64_t{1} << (o % 64));
  uint64_t all = 0;
  for (const Statement& s : declaration.statements) {
    std::vector<uint64_t> stack;
    for (const Instruction& instruction : s.body) {
      uint64_t bits = 0;
      switch (instruction.op) {
        case ScalarOp::kLoad:
          bits = depends[declaration.accesses[instruction.access].tensor];
          break;
        case ScalarOp::kLess:
        case ScalarOp::kEqual:
        case ScalarOp::kRandom:
        case ScalarOp::kFloor:
        case ScalarOp::kRound:
          stack.resize(stack.size() - Arity(instruction.op));
          break;
        case ScalarOp::kWhere:  // Not by its condition.
          bits = stack[stack.size() - 1] | stack[stack.size() - 2];
          stack.resize(stack.size() - 3);
          break;
        default:
          for (int i = Arity(instruction.op); i > 0; --i) {
            bits |= stack.back();
            stack.pop_back();
          }
      }
      stack.push_back(bits);
    }
    depends.push_back(stack.back());
    if (s.output >= 0) all |= stack.back();
  }
  std::vector<bool> differentiable;
  for (int o = 0; o < declaration.num_operands(); ++o) {
    differentiable.push_back(all >> (o % 64) & 1);
  }
  return differentiable;
}

std::vector<std::vector<int>> LinearOperandSets(const Declaration& declaration) {
  constexpr int kMostOperands = 10;  // Of more (a wide Concat), sets are not enumerated.
  const int n = std::min(declaration.num_operands(), kMostOperands);
  std::vector<uint32_t> found;
  std::vector<std::vector<int>> sets;
  std::vector<uint32_t> by_size;
  for (uint32_t subset = 1; subset < (uint32_t{1} << n); ++subset) by_size.push_back(subset);
  std::stable_sort(by_size.begin(), by_size.end(), [](uint32_t a, uint32_t b) {
    return __builtin_popcount(a) < __builtin_popcount(b);
  });
  for (uint32_t subset : by_size) {
    if (std::any_of(found.begin(), found.end(),
                    [subset](uint32_t smaller) { return (smaller & ~subset) == 0; })) {
      continue;
    }
    std::vector<bool> members(declaration.num_operands(), false);
    std::vector<int> set;
    for (int o = 0; o < n; ++o) {
      members[o] = subset >> o & 1;
      if (members[o]) set.push_back(o);
    }
    if (!declaration.IsLinearIn(members)) continue;
    found.push_back(subset);
    sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<DataType> ValueTypes(const Operator& op, const std::vector<TensorType>& operands) {
  std::vector<DataType> types;
  for (DataType dtype : kAllDataTypes) {
    std::vector<DataType> dtypes;
    bool any = false;
    for (size_t o = 0; o < operands.size(); ++o) {
      const bool value = HoldsValues(op.kind(), static_cast<int>(o));
      dtypes.push_back(value ? dtype : operands[o].dtype);
      any |= value;
    }
    if (any && InferDataType(op, dtypes).ok()) types.push_back(dtype);
  }
  return types;
}

}  // namespace isomer
