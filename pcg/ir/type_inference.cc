#include "pcg/ir/type_inference.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/call_hash.h"
#include "pcg/ir/operator_call.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What operand dim i is in the iteration space, for messages: "2 (y, spatial)".
std::string DescribeOperandDim(const Declaration& d, int operand, int i) {
  for (const Access& access : d.accesses) {
    if (access.tensor != operand || access.indices[i].terms.empty()) continue;
    const IterationDim& dim = d.dims[access.indices[i].terms[0].first];
    return absl::StrCat(i, " (", dim.name, ", ", DimKindName(dim.kind), ")");
  }
  return absl::StrCat(i);
}

// Unifies the degrees of operand dims with those of the iteration dims that lead them.
absl::Status UnifyDegrees(const Operator& op, absl::Span<const TensorType> operands, Sharding* s) {
  const Declaration& d = s->declaration;
  s->degrees.assign(d.dims.size(), 1);
  std::vector<bool> seen(d.dims.size(), false);
  for (size_t o = 0; o < operands.size(); ++o) {
    for (int i = 0; i < operands[o].rank(); ++i) {
      const int64_t degree = operands[o].dims[i].degree;
      const int lead = d.LeadOfOperandDim(static_cast<int>(o), i);
      if (degree != 1 && (lead < 0 || !d.IsPartitionable(lead))) {
        return absl::InvalidArgumentError(absl::StrCat(
            op.name(), ": dim ", DescribeOperandDim(d, static_cast<int>(o), i), " of operand ", o,
            " cannot be partitioned, but ", operands[o].ToString(), " has degree ", degree));
      }
      if (lead < 0) continue;
      if (seen[lead] && s->degrees[lead] != degree) {
        return absl::InvalidArgumentError(
            absl::StrCat(op.name(), ": dim ", d.dims[lead].name, " has degree ", s->degrees[lead],
                         " in one operand and ", degree, " in operand ", o));
      }
      seen[lead] = true;
      s->degrees[lead] = degree;
    }
  }
  // The lead of a merged dim (heads x features, groups x channels) is smaller than the dim.
  for (size_t v = 0; v < d.dims.size(); ++v) {
    if (d.dims[v].size.value() % s->degrees[v] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(op.name(), ": degree ", s->degrees[v],
                                                     " does not divide dim ", d.dims[v].name,
                                                     " of size ", d.dims[v].size.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status UnifyPartials(const Operator& op, absl::Span<const TensorType> operands, Sharding* s) {
  s->linear_operands.assign(operands.size(), false);
  for (size_t o = 0; o < operands.size(); ++o) {
    if (operands[o].partials == 1) continue;
    if (s->operand_partials != 1 && s->operand_partials != operands[o].partials) {
      return absl::InvalidArgumentError(absl::StrCat(op.name(), ": operands with ",
                                                     s->operand_partials, " and ",
                                                     operands[o].partials, " partials"));
    }
    s->operand_partials = operands[o].partials;
    s->linear_operands[o] = true;
  }
  if (s->operand_partials > 1 && !PassesPartials(op)) {
    return absl::InvalidArgumentError(absl::StrCat(
        op.name(), " to integers of ", s->operand_partials, " partial sums: Reduce them first"));
  }
  if (s->operand_partials > 1 && !s->declaration.IsLinearIn(s->linear_operands)) {
    std::vector<std::string> holders;
    for (size_t o = 0; o < operands.size(); ++o) {
      if (s->linear_operands[o]) holders.push_back(absl::StrCat(o));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(op.name(), " is not linear in operand ", absl::StrJoin(holders, "+"),
                     ", which holds ", s->operand_partials, " partial sums: Reduce them first"));
  }
  return absl::OkStatus();
}

// How many tasks of the grid share one shard of `operand`, apart from redundant copies.
int64_t SharersOf(const Sharding& s, int operand) {
  int64_t sharers = s.linear_operands[operand] ? 1 : s.operand_partials;
  const Declaration& d = s.declaration;
  for (size_t v = 0; v < d.dims.size(); ++v) {
    if (s.degrees[v] == 1) continue;
    bool indexed = false;
    for (size_t i = 0; i < d.operands[operand].size(); ++i) {
      indexed |= d.LeadOfOperandDim(operand, static_cast<int>(i)) == static_cast<int>(v);
    }
    if (!indexed) sharers *= s.degrees[v];
  }
  return sharers;
}

absl::Status UnifyCopies(const Operator& op, absl::Span<const TensorType> operands, Sharding* s) {
  for (size_t o = 0; o < operands.size(); ++o) {
    const int64_t sharers = SharersOf(*s, static_cast<int>(o));
    const int64_t copies = operands[o].copies / sharers;
    if (operands[o].copies % sharers != 0 || (o > 0 && copies != s->copies)) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.name(), ": operand ", o, " is used by ", sharers, " tasks a shard",
                       o > 0 ? absl::StrCat(", times ", s->copies, " copies of the call") : "",
                       ", but has ", operands[o].copies, " copies"));
    }
    s->copies = copies;
  }
  return absl::OkStatus();
}

// `common`: the type of the operands that hold values, if there are any.
absl::StatusOr<DataType> TypeOfResult(const Operator& op, ResultType result,
                                      std::optional<DataType> common) {
  switch (result) {
    case ResultType::kOfOperands:
      return common.value_or(DataType::kFloat32);
    case ResultType::kBool:
      return DataType::kBool;
    case ResultType::kInt64:
      return DataType::kInt64;
    case ResultType::kFloat32:
      return DataType::kFloat32;
    case ResultType::kOfAttribute:
      break;
  }
  const int64_t to = op.Int("to");
  if (to < 0 || to >= static_cast<int64_t>(std::size(kAllDataTypes))) {
    return absl::InvalidArgumentError(absl::StrCat(op.name(), ": no data type ", to));
  }
  return static_cast<DataType>(to);
}

}  // namespace

absl::StatusOr<DataType> InferDataType(const Operator& op, absl::Span<const DataType> operands,
                                       int output) {
  const OpKind kind = op.kind();
  auto error = [kind](size_t operand, DataType is, absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat(OpName(kind), ": operand ", operand, " is ",
                                                   DataTypeName(is), ", not ", expected));
  };
  const OperatorTraits& traits = TraitsOf(kind);
  std::optional<DataType> common;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (IsIndexOperand(kind, static_cast<int>(i))) {
      if (!IsInteger(operands[i])) return error(i, operands[i], "i64 or i32");
    } else if (IsConditionOperand(kind, static_cast<int>(i))) {
      if (operands[i] != DataType::kBool) return error(i, operands[i], "bool");
    } else if (common.has_value() && operands[i] != *common) {
      return error(i, operands[i], DataTypeName(*common));
    } else if (traits.takes == OperandTypes::kFloats && !IsFloat(operands[i])) {
      return error(i, operands[i], "f32");
    } else if (traits.takes == OperandTypes::kNumbers && operands[i] == DataType::kBool) {
      return error(i, operands[i], "a number");
    } else {
      common = operands[i];
    }
  }
  return TypeOfResult(op, output == 0 ? traits.result : traits.other_results, common);
}

absl::StatusOr<Sharding> InferSharding(const Operator& op, absl::Span<const TensorType> operands) {
  Sharding s;
  ISOMER_ASSIGN_OR_RETURN(s.declaration, Declare(op, ShapesOf(operands)));
  std::vector<DataType> dtypes;
  for (const TensorType& operand : operands) dtypes.push_back(operand.dtype);
  ISOMER_RETURN_IF_ERROR(UnifyDegrees(op, operands, &s));
  ISOMER_RETURN_IF_ERROR(UnifyPartials(op, operands, &s));
  ISOMER_RETURN_IF_ERROR(UnifyCopies(op, operands, &s));
  const Declaration& d = s.declaration;
  int64_t micro_batches = 1;
  for (const TensorType& operand : operands) {
    if (operand.micro_batches == 1) continue;  // The same for every micro-batch.
    if (micro_batches != 1 && micro_batches != operand.micro_batches) {
      return absl::InvalidArgumentError(absl::StrCat(op.name(), ": operands with ", micro_batches,
                                                     " and ", operand.micro_batches,
                                                     " micro-batches"));
    }
    micro_batches = operand.micro_batches;
  }
  for (size_t t = 0; t < d.outputs.size(); ++t) {
    TensorType type;
    ISOMER_ASSIGN_OR_RETURN(type.dtype, InferDataType(op, dtypes, static_cast<int>(t)));
    type.copies = s.copies;
    type.partials = s.operand_partials;
    type.micro_batches = micro_batches;
    for (size_t i = 0; i < d.outputs[t].size(); ++i) {
      const int lead = d.LeadOfOutputDim(static_cast<int>(t), static_cast<int>(i));
      type.dims.push_back({d.outputs[t][i].value(), lead < 0 ? 1 : s.degrees[lead]});
    }
    for (size_t v = 0; v < d.dims.size(); ++v) {
      if (d.dims[v].kind == DimKind::kSum) type.partials *= s.degrees[v];
    }
    s.outputs.push_back(std::move(type));
  }
  return s;
}

namespace {

absl::StatusOr<std::vector<TensorType>> TypesByDeclaration(const Operator& op,
                                                           absl::Span<const TensorType> operands) {
  std::vector<TensorType> outputs;
  if (IsParallel(op.kind())) {
    ISOMER_ASSIGN_OR_RETURN(TensorType output, InferParallelType(op, operands));
    outputs.push_back(std::move(output));
  } else {
    ISOMER_ASSIGN_OR_RETURN(Sharding sharding, InferSharding(op, operands));
    outputs = std::move(sharding.outputs);
  }
  for (const TensorType& output : outputs) ISOMER_RETURN_IF_ERROR(ValidateTensorType(output));
  return outputs;
}

// Of calls that were well-typed. A search builds graphs of the same few hundred calls again and
// again; what a declaration says of them costs ten times what finding it here does.
class KnownTypes {
 public:
  // Null if the call is not known.
  const std::vector<TensorType>* Find(uint64_t hash, const Operator& op,
                                      absl::Span<const TensorType> operands) const {
    const auto found = calls_.find(hash);
    if (found == calls_.end()) return nullptr;
    const Call& call = found->second;
    const bool same = call.op == op && absl::MakeConstSpan(call.operands) == operands;
    return same ? &call.outputs : nullptr;
  }

  void Add(uint64_t hash, const Operator& op, absl::Span<const TensorType> operands,
           const std::vector<TensorType>& outputs) {
    if (calls_.size() >= kMost) calls_.clear();
    calls_.insert_or_assign(hash, Call{op, {operands.begin(), operands.end()}, outputs});
  }

 private:
  static constexpr size_t kMost = 8192;
  struct Call {
    Operator op;
    std::vector<TensorType> operands, outputs;
  };
  absl::flat_hash_map<uint64_t, Call> calls_;
};

}  // namespace

absl::StatusOr<std::vector<TensorType>> InferTypes(const Operator& op,
                                                   absl::Span<const TensorType> operands) {
  thread_local KnownTypes known;
  const uint64_t hash = QuickHashOfCall(op, operands);
  if (const auto* outputs = known.Find(hash, op, operands); outputs != nullptr) return *outputs;
  ISOMER_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, TypesByDeclaration(op, operands));
  known.Add(hash, op, operands, outputs);
  return outputs;
}

Sharding::Task Sharding::TaskOfOutputShard(absl::Span<const int64_t> out_coordinates,
                                           int64_t partial) const {
  Task task;
  task.dims.assign(degrees.size(), 0);
  for (size_t i = 0; i < out_coordinates.size(); ++i) {
    const int lead = declaration.LeadOfOutputDim(0, static_cast<int>(i));
    if (lead >= 0) task.dims[lead] = out_coordinates[i];
  }
  for (int v = static_cast<int>(degrees.size()) - 1; v >= 0; --v) {
    if (declaration.dims[v].kind != DimKind::kSum) continue;
    task.dims[v] = partial % degrees[v];
    partial /= degrees[v];
  }
  task.operand_partial = partial;
  return task;
}

std::vector<int64_t> Sharding::OperandCoordinates(const Task& task, int operand) const {
  std::vector<int64_t> coordinates;
  for (size_t i = 0; i < declaration.operands[operand].size(); ++i) {
    const int lead = declaration.LeadOfOperandDim(operand, static_cast<int>(i));
    coordinates.push_back(lead < 0 ? 0 : task.dims[lead]);
  }
  return coordinates;
}

Box Sharding::OperandBox(const Task& task, int operand) const {
  std::vector<int64_t> begin, end;
  for (size_t v = 0; v < degrees.size(); ++v) {
    const int64_t piece = declaration.dims[v].size.value() / degrees[v];
    begin.push_back(task.dims[v] * piece);
    end.push_back(begin.back() + piece);
  }
  Box box;
  for (int i = 0; i < static_cast<int>(declaration.operands[operand].size()); ++i) {
    const int64_t size = declaration.operands[operand][i].value();
    const int lead = declaration.LeadOfOperandDim(operand, i);
    const int64_t degree = lead < 0 ? 1 : degrees[lead];
    int64_t first = lead < 0 ? 0 : task.dims[lead] * (size / degree);
    int64_t last = first + size / degree;
    if (degree > 1 && declaration.HasHalo(operand, i)) {
      const auto [low, high] = declaration.RangeOfOperandDim(operand, i, begin, end);
      if (low < high && (low < first || high > last)) first = low, last = high;
    }
    box.origin.push_back(first);
    box.shape.push_back(last - first);
  }
  return box;
}

absl::StatusOr<std::vector<TensorType>> OperandTypesFor(const Operator& op,
                                                        absl::Span<const TensorType> logical,
                                                        absl::Span<const int64_t> degrees,
                                                        int64_t copies) {
  Sharding s;
  ISOMER_ASSIGN_OR_RETURN(s.declaration, Declare(op, ShapesOf(logical)));
  s.degrees.assign(degrees.begin(), degrees.end());
  s.degrees.resize(s.declaration.dims.size(), 1);
  s.linear_operands.assign(logical.size(), false);
  for (size_t v = 0; v < s.degrees.size(); ++v) {
    if (s.degrees[v] != 1 && !s.declaration.IsPartitionable(static_cast<int>(v))) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.name(), ": dim ", s.declaration.dims[v].name, " cannot be partitioned"));
    }
  }
  std::vector<TensorType> types;
  for (size_t o = 0; o < logical.size(); ++o) {
    TensorType type = SequentialType(logical[o].Sizes(), logical[o].dtype);
    for (int i = 0; i < type.rank(); ++i) {
      const int lead = s.declaration.LeadOfOperandDim(static_cast<int>(o), i);
      if (lead >= 0) type.dims[i].degree = s.degrees[lead];
    }
    type.copies = copies * SharersOf(s, static_cast<int>(o));
    ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace isomer
