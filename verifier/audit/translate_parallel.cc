// The parallel operators of Unity's rules. Of the replica dim, Replicate and Reduce are ours. Along
// a logical dim FlexFlow has them too, where ours have no such type: the tensor several times over,
// in as many pieces, and the sum of such pieces.
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/audit/translate_operator.h"

namespace isomer {
namespace {

// Repetitions and pieces are calls of their own.
constexpr int64_t kMaxRepetitions = 8;

AttributePattern Integer(std::string name, int64_t value) {
  return {std::move(name), IntExpr::Constant(value)};
}

}  // namespace

OperatorTranslator::Result OperatorTranslator::Parallel(OpKind kind, const ForeignOperator& op,
                                                        const TypedTensor& x, int fresh) {
  ISOMER_ASSIGN_OR_RETURN(const int64_t dim, Parameter(op, "PM_PARALLEL_DIM"));
  ISOMER_ASSIGN_OR_RETURN(const int64_t degree, Parameter(op, "PM_PARALLEL_DEGREE"));
  const bool of_values = kind == OpKind::kReplicate || kind == OpKind::kReduce;
  if (HasReplicaDim() && dim == 0) {
    if (!of_values) return absl::UnimplementedError("partitions the replica dim");
    if (kind == OpKind::kReduce && x.copied) {
      return absl::UnimplementedError("adds copies, which our types tell from partial sums");
    }
    return Result({Unary(kind, x, {Integer("degree", degree)})});
  }
  ISOMER_ASSIGN_OR_RETURN(const int axis, AxisOf(dim, x.rank()));
  if (!of_values) {
    if (arrays_) return Result({x});
    return Result({Unary(kind, x, {Integer("axis", axis - x.rank()), Integer("degree", degree)})});
  }
  if (degree < 2 || degree > kMaxRepetitions) {
    return absl::UnimplementedError(absl::StrCat("of degree ", degree, " along a logical dim"));
  }
  narrower_ = !arrays_;
  if (kind == OpKind::kReplicate) return Result({RepeatAlong(x, axis, degree)});
  ISOMER_ASSIGN_OR_RETURN(TypedTensor sum, AddPieces(x, axis, degree, fresh));
  return Result({std::move(sum)});
}

TypedTensor OperatorTranslator::RepeatAlong(const TypedTensor& x, int axis, int64_t times) {
  TypedTensor y = x;
  y.ref = Emit(OpKind::kConcat, std::vector<PatternRef>(times, x.ref),
               {Integer("axis", axis - x.rank())});
  y.shape[axis] = x.shape[axis] * times;
  if (arrays_) return y;
  return Unary(OpKind::kPartition, y, {Integer("axis", axis - x.rank()), Integer("degree", times)});
}

absl::StatusOr<TypedTensor> OperatorTranslator::AddPieces(const TypedTensor& x, int axis,
                                                          int64_t pieces, int fresh) {
  const AttributePattern along = Integer("axis", axis - x.rank());
  TypedTensor y = x;
  if (!arrays_) y = Unary(OpKind::kCombine, x, {along, Integer("degree", pieces)});
  ISOMER_ASSIGN_OR_RETURN(const std::vector<TensorPiece> parts,
                          SplitEvenly(y, axis, static_cast<int>(pieces), fresh, ties_));
  const PatternRef split =
      Emit(OpKind::kSplit, {y.ref}, {along, {"sizes", std::vector<IntExpr>()}});
  split_sizes_.push_back({split.node, {}});
  for (const TensorPiece& part : parts) split_sizes_.back().sizes.push_back(part.size);
  y.shape[axis] = parts[0].size;
  y.ref = PatternRef::Node(split.node, 0);
  for (int p = 1; p < static_cast<int>(pieces); ++p) {
    y.ref = Emit(OpKind::kAdd, {y.ref, PatternRef::Node(split.node, p)});
  }
  return y;
}

}  // namespace isomer
