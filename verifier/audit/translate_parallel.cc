// The parallel operators of Unity's rules. Of the replica dim, Replicate and Reduce are ours. Along
// a logical dim FlexFlow has them too, where ours have no such type: the tensor several times over,
// in as many pieces, and the sum of such pieces.
#include <numeric>
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

// A piece of size m * size in m pieces of a size that rules can name, as of a tensor that was
// repeated: m, or 1.
int64_t TimesRepeated(const Extent& size) {
  int64_t times = size.constant();
  for (const auto& [symbol, coefficient] : size.terms()) times = std::gcd(times, coefficient);
  return size.known() || times < 1 || times > kMaxRepetitions ? 1 : times;
}

Extent Divided(const Extent& size, int64_t by) {
  Extent result = size.constant() / by;
  for (const auto& [symbol, coefficient] : size.terms()) {
    result += Extent::Symbol(symbol) * (coefficient / by);
  }
  return result;
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
  const int64_t times = fine_pieces_ ? TimesRepeated(parts[0].size) : 1;
  const PatternRef split =
      Emit(OpKind::kSplit, {y.ref}, {along, {"sizes", std::vector<IntExpr>()}});
  split_sizes_.push_back(
      {split.node, std::vector<Extent>(pieces * times, Divided(parts[0].size, times))});
  std::vector<PatternRef> sums;
  for (int64_t t = 0; t < times; ++t) {
    PatternRef sum = PatternRef::Node(split.node, static_cast<int>(t));
    for (int64_t p = 1; p < pieces; ++p) {
      const int part = static_cast<int>(p * times + t);
      sum = Emit(OpKind::kAdd, {sum, PatternRef::Node(split.node, part)});
    }
    sums.push_back(sum);
  }
  y.shape[axis] = parts[0].size;
  y.ref = times == 1 ? sums[0] : Emit(OpKind::kConcat, std::move(sums), {along});
  return y;
}

}  // namespace isomer
