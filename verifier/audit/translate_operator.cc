#include "verifier/audit/translate_operator.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {

AttributePattern IntegersAttribute(std::string name, const std::vector<int64_t>& values) {
  std::vector<IntExpr> list;
  for (int64_t value : values) list.push_back(IntExpr::Constant(value));
  return {std::move(name), list};
}

namespace {

AttributePattern Integer(std::string name, int64_t value) {
  return {std::move(name), IntExpr::Constant(value)};
}

struct Known {
  OpKind kind;
  int operands;
};

// Operators that are one call of ours, without attributes.
const std::map<std::string, Known>& PlainOperators() {
  static const auto* const operators = new std::map<std::string, Known>{
      {"OP_EW_ADD", {OpKind::kAdd, 2}},      {"OP_EW_SUB", {OpKind::kSub, 2}},
      {"OP_EW_MUL", {OpKind::kMul, 2}},      {"OP_EW_DIV", {OpKind::kDiv, 2}},
      {"OP_EW_EQUAL", {OpKind::kEqual, 2}},  {"OP_EW_LESS", {OpKind::kLess, 2}},
      {"OP_EW_MAX", {OpKind::kMaximum, 2}},  {"OP_EW_MIN", {OpKind::kMinimum, 2}},
      {"OP_POW", {OpKind::kPow, 2}},         {"OP_RELU", {OpKind::kRelu, 1}},
      {"OP_SIGMOID", {OpKind::kSigmoid, 1}}, {"OP_TANH", {OpKind::kTanh, 1}},
      {"OP_GELU", {OpKind::kGelu, 1}},       {"OP_EXP", {OpKind::kExp, 1}},
      {"OP_LOG", {OpKind::kLog, 1}},         {"OP_SQRT", {OpKind::kSqrt, 1}},
      {"OP_SIN", {OpKind::kSin, 1}},         {"OP_COS", {OpKind::kCos, 1}},
      {"OP_CEIL", {OpKind::kCeil, 1}},       {"OP_ROUND", {OpKind::kRound, 1}},
      {"OP_LOGICAL_NOT", {OpKind::kNot, 1}},
  };
  return *operators;
}

// How many operands the other operators take that have a meaning here; 0: any number.
std::optional<int> OperandCount(const std::string& type) {
  static const auto* const counts = new std::map<std::string, int>{
      {"OP_MATMUL", 2},   {"OP_BATCHMATMUL", 2}, {"OP_LINEAR", 2},     {"OP_CONV2D", 2},
      {"OP_MUL", 2},      {"OP_POOL2D_MAX", 1},  {"OP_POOL2D_AVG", 1}, {"OP_CONCAT", 0},
      {"OP_SPLIT", 1},    {"OP_TRANSPOSE", 1},   {"OP_ENLARGE", 0},    {"OP_NOOP", 1},
      {"OP_IDENTITY", 1}, {"OP_PARTITION", 1},   {"OP_COMBINE", 1},    {"OP_REPLICATE", 1},
      {"OP_REDUCE", 1},   {"OP_EW_GREATER", 2}};
  const auto found = counts->find(type);
  return found == counts->end() ? std::nullopt : std::optional(found->second);
}

// None, sigmoid, relu, tanh are 0 to 3 in TASO and in the files that its generator wrote for
// Unity; FlexFlow itself counts from 10.
absl::StatusOr<std::optional<OpKind>> ActivationOf(ForeignFormat format, int64_t number) {
  static constexpr std::optional<OpKind> kByTaso[] = {std::nullopt, OpKind::kSigmoid, OpKind::kRelu,
                                                      OpKind::kTanh};
  static constexpr std::optional<OpKind> kByFlexFlow[] = {
      std::nullopt, OpKind::kRelu, OpKind::kSigmoid, OpKind::kTanh, OpKind::kGelu};
  if (number >= 0 && number < 4) return kByTaso[number];
  if (format == ForeignFormat::kUnity && number >= 10 && number < 15) {
    return kByFlexFlow[number - 10];
  }
  return absl::UnimplementedError(absl::StrCat("PM_ACTI ", number, " is no activation"));
}

}  // namespace

absl::StatusOr<int64_t> Parameter(const ForeignOperator& op, const std::string& name) {
  if (const auto value = op.Find(name)) return *value;
  return absl::UnimplementedError(absl::StrCat("lacks ", name));
}

PatternRef OperatorTranslator::Emit(OpKind kind, std::vector<PatternRef> inputs,
                                    std::vector<AttributePattern> attributes) {
  std::sort(attributes.begin(), attributes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  pattern_->nodes.push_back({kind, std::move(attributes), std::move(inputs)});
  return PatternRef::Node(static_cast<int>(pattern_->nodes.size()) - 1);
}

TypedTensor OperatorTranslator::Unary(OpKind kind, const TypedTensor& x,
                                      std::vector<AttributePattern> attributes) {
  return {Emit(kind, {x.ref}, std::move(attributes)), x.shape, x.seams, ""};
}

absl::StatusOr<TypedTensor> OperatorTranslator::Activated(const ForeignOperator& op,
                                                          TypedTensor x) {
  ISOMER_ASSIGN_OR_RETURN(const std::optional<OpKind> kind,
                          ActivationOf(format_, op.Find("PM_ACTI").value_or(0)));
  return kind ? Unary(*kind, x) : std::move(x);
}

absl::StatusOr<int> OperatorTranslator::AxisOf(int64_t dim, int rank) const {
  const int64_t axis = HasReplicaDim() ? dim - 1 : dim;
  if (axis >= 0 && axis < rank) return static_cast<int>(axis);
  return absl::InvalidArgumentError(absl::StrCat("has no dim ", dim, ": ", rank, " logical dims"));
}

absl::Status OperatorTranslator::CheckNumDims(const ForeignOperator& op, int rank) const {
  const auto dims = op.Find("PM_NUMDIM");
  const int logical = rank + (HasReplicaDim() ? 1 : 0);
  if (!dims || *dims == logical) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("PM_NUMDIM is ", *dims, ", its operand has ", logical, " dims"));
}

absl::StatusOr<std::vector<TypedTensor>> OperatorTranslator::Translate(
    const ForeignOperator& op, const std::vector<TypedTensor>& operands, int fresh) {
  ISOMER_ASSIGN_OR_RETURN(std::vector<TypedTensor> outputs, Dispatch(op, operands, fresh));
  const bool copied =
      (HasReplicaDim() && op.type == "OP_REPLICATE" && op.Find("PM_PARALLEL_DIM") == 0) ||
      std::any_of(operands.begin(), operands.end(),
                  [](const TypedTensor& operand) { return operand.copied; });
  for (TypedTensor& output : outputs) output.copied = copied;
  return outputs;
}

OperatorTranslator::Result OperatorTranslator::Dispatch(const ForeignOperator& op,
                                                        const std::vector<TypedTensor>& operands,
                                                        int fresh) {
  const auto plain = PlainOperators().find(op.type);
  std::optional<int> count = OperandCount(op.type);
  if (plain != PlainOperators().end()) count = plain->second.operands;
  if (!count) return absl::UnimplementedError("is no operator of ours");
  if (operands.empty() || (*count > 0 && static_cast<int>(operands.size()) != *count)) {
    if (operands.size() < 2 && *count == 2) {
      return absl::UnimplementedError("its weight is no part of the rule");
    }
    return absl::InvalidArgumentError(absl::StrCat("has ", operands.size(), " operands"));
  }
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!operands[o].number.empty() && (op.type != "OP_MUL" || o == 0)) {
      return absl::UnknownError("computes with a scalar");
    }
  }
  const TypedTensor& x = operands[0];
  if (plain != PlainOperators().end()) {
    if (*count == 2) return Binary(plain->second.kind, x, operands[1]);
    return Result({Unary(plain->second.kind, x)});
  }
  const std::string& type = op.type;
  if (type == "OP_EW_GREATER") return Binary(OpKind::kLess, operands[1], x);
  if (type == "OP_NOOP" || type == "OP_IDENTITY") return Result({x});
  if (type == "OP_MUL") return ScalarMul(x, operands[1]);
  if (type == "OP_CONCAT") return Concat(op, operands);
  if (type == "OP_SPLIT") return Split(op, x, fresh);
  if (type == "OP_TRANSPOSE") return Transpose(op, x);
  if (type == "OP_CONV2D") return Convolution(op, x, operands[1]);
  if (type == "OP_POOL2D_MAX") return Pool(OpKind::kMaxPool, op, x);
  if (type == "OP_POOL2D_AVG") return Pool(OpKind::kAvgPool, op, x);
  if (type == "OP_ENLARGE") return Enlarge(op, operands);
  if (type == "OP_PARTITION") return Parallel(OpKind::kPartition, op, x, fresh);
  if (type == "OP_COMBINE") return Parallel(OpKind::kCombine, op, x, fresh);
  if (type == "OP_REPLICATE") return Parallel(OpKind::kReplicate, op, x, fresh);
  if (type == "OP_REDUCE") return Parallel(OpKind::kReduce, op, x, fresh);
  if (type == "OP_LINEAR") return MatMul(op, x, SwapLastDims(operands[1]));
  return MatMul(op, x, operands[1]);
}

TypedTensor OperatorTranslator::SwapLastDims(const TypedTensor& x) {
  if (x.rank() < 2) return x;  // MatMul refuses it.
  TypedTensor y = Unary(OpKind::kTranspose, x, {{"perm", SwapAxes{-2, -1}}});
  std::swap(y.shape[y.rank() - 2], y.shape[y.rank() - 1]);
  std::swap(y.seams[y.rank() - 2], y.seams[y.rank() - 1]);
  return y;
}

OperatorTranslator::Result OperatorTranslator::Binary(OpKind kind, const TypedTensor& a,
                                                      const TypedTensor& b) {
  ISOMER_RETURN_IF_ERROR(ties_->Equal(a.shape, b.shape));
  TypedTensor y{Emit(kind, {a.ref, b.ref}), a.shape, a.seams, ""};
  for (int i = 0; i < y.rank(); ++i) y.seams[i] = Agreeing(a.seams[i], b.seams[i]);
  return Result({std::move(y)});
}

OperatorTranslator::Result OperatorTranslator::ScalarMul(const TypedTensor& x,
                                                         const TypedTensor& scalar) {
  if (scalar.number.empty()) return absl::InvalidArgumentError("operand 1 is no scalar");
  return Result({Unary(OpKind::kScale, x, {{"factor", NumberExpr{1, {scalar.number}}}})});
}

// Equal batch dims, then [m,k] and [k,n].
OperatorTranslator::Result OperatorTranslator::MatMul(const ForeignOperator& op,
                                                      const TypedTensor& a, const TypedTensor& b) {
  const int rank = a.rank();
  if (rank < 2 || b.rank() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("operands have ", rank, " and ", b.rank(), " dims"));
  }
  for (int i = 0; i + 2 < rank; ++i) ISOMER_RETURN_IF_ERROR(ties_->Equal(a.shape[i], b.shape[i]));
  ISOMER_RETURN_IF_ERROR(ties_->Equal(a.shape[rank - 1], b.shape[rank - 2]));
  TypedTensor y{Emit(OpKind::kMatMul, {a.ref, b.ref}), a.shape, a.seams, ""};
  y.shape.back() = b.shape.back();
  y.seams.back() = b.seams.back();
  for (int i = 0; i + 2 < rank; ++i) y.seams[i] = Agreeing(a.seams[i], b.seams[i]);
  ISOMER_ASSIGN_OR_RETURN(y, Activated(op, std::move(y)));
  return Result({std::move(y)});
}

OperatorTranslator::Result OperatorTranslator::Concat(const ForeignOperator& op,
                                                      const std::vector<TypedTensor>& operands) {
  TypedTensor y = operands[0];
  std::vector<PatternRef> refs;
  for (const TypedTensor& x : operands) refs.push_back(x.ref);
  ISOMER_ASSIGN_OR_RETURN(const int64_t dim, Parameter(op, "PM_AXIS"));
  ISOMER_RETURN_IF_ERROR(CheckNumDims(op, y.rank()));
  if (operands.size() < 2) return absl::UnimplementedError("joins a single tensor");
  if (HasReplicaDim() && dim == 0) {
    for (const TypedTensor& x : operands) ISOMER_RETURN_IF_ERROR(ties_->Equal(x.shape, y.shape));
    y.ref = Emit(OpKind::kConcatPartials, refs);
    return Result({std::move(y)});
  }
  ISOMER_ASSIGN_OR_RETURN(const int axis, AxisOf(dim, y.rank()));
  for (size_t o = 1; o < operands.size(); ++o) {
    const TypedTensor& x = operands[o];
    if (x.rank() != y.rank()) return absl::InvalidArgumentError("operands of two ranks");
    for (int i = 0; i < y.rank(); ++i) {
      if (i == axis) {
        y.seams[i] = {Seam{y.shape[i], y.seams[i], x.seams[i]}};
        y.shape[i] += x.shape[i];
        continue;
      }
      ISOMER_RETURN_IF_ERROR(ties_->Equal(x.shape[i], y.shape[i]));
      y.seams[i] = Agreeing(y.seams[i], x.seams[i]);
    }
  }
  y.ref = Emit(OpKind::kConcat, refs, {Integer("axis", axis - y.rank())});
  return Result({std::move(y)});
}

OperatorTranslator::Result OperatorTranslator::Split(const ForeignOperator& op,
                                                     const TypedTensor& x, int fresh) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t dim, Parameter(op, "PM_AXIS"));
  ISOMER_RETURN_IF_ERROR(CheckNumDims(op, x.rank()));
  if (HasReplicaDim() && dim == 0) {
    return absl::UnimplementedError("takes the replica dim apart");
  }
  ISOMER_ASSIGN_OR_RETURN(const int axis, AxisOf(dim, x.rank()));
  const int parts = NumOutputs(op);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TensorPiece> pieces,
                          format_ == ForeignFormat::kTaso
                              ? SplitAtSeams(x, axis, parts, fresh, ties_)
                              : SplitEvenly(x, axis, parts, fresh, ties_));
  const PatternRef split = Emit(OpKind::kSplit, {x.ref},
                                {Integer("axis", axis - x.rank()), IntegersAttribute("sizes", {})});
  split_sizes_.push_back({split.node, {}});
  std::vector<TypedTensor> outputs;
  for (int p = 0; p < parts; ++p) {
    TypedTensor part = x;
    part.ref = PatternRef::Node(split.node, p);
    part.shape[axis] = pieces[p].size;
    part.seams[axis] = pieces[p].seams;
    split_sizes_.back().sizes.push_back(pieces[p].size);
    outputs.push_back(std::move(part));
  }
  return outputs;
}

// PM_PERM is the permutation read as digits to the base of the rank; PM_OUTSHUFFLE says how the
// result is laid out in memory, which is no part of its value.
OperatorTranslator::Result OperatorTranslator::Transpose(const ForeignOperator& op,
                                                         const TypedTensor& x) {
  if (format_ == ForeignFormat::kUnity) {
    return absl::UnimplementedError("permutes the replica dim too");
  }
  ISOMER_ASSIGN_OR_RETURN(int64_t digits, Parameter(op, "PM_PERM"));
  ISOMER_RETURN_IF_ERROR(CheckNumDims(op, x.rank()));
  const int rank = x.rank();
  std::vector<int64_t> perm(rank), moved;
  std::vector<bool> used(rank);
  TypedTensor y = x;
  for (int i = rank - 1; i >= 0; --i, digits /= rank) {
    perm[i] = digits % rank;
    if (used[perm[i]]) return absl::InvalidArgumentError("PM_PERM is no permutation");
    used[perm[i]] = true;
    y.shape[i] = x.shape[perm[i]];
    y.seams[i] = x.seams[perm[i]];
    if (perm[i] != i) moved.push_back(i - rank);
  }
  if (digits != 0) return absl::InvalidArgumentError("PM_PERM is no permutation");
  if (moved.empty()) return Result({x});
  AttributePattern attribute = IntegersAttribute("perm", perm);
  if (moved.size() == 2) attribute.value = SwapAxes{moved[1], moved[0]};
  y.ref = Emit(OpKind::kTranspose, {x.ref}, {attribute});
  return Result({std::move(y)});
}

}  // namespace isomer
