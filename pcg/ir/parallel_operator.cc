#include "pcg/ir/parallel_operator.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::StatusOr<TensorType> ConcatPartialsType(absl::Span<const TensorType> operands) {
  TensorType type = operands[0];
  for (size_t o = 1; o < operands.size(); ++o) {
    TensorType other = operands[o];
    if (other.partials != operands[0].partials) {
      return absl::InvalidArgumentError(absl::StrCat("concat_partials: operands with ",
                                                     operands[0].partials, " and ", other.partials,
                                                     " partials"));
    }
    other.partials = type.partials;
    if (other != type) {
      return absl::InvalidArgumentError(absl::StrCat("concat_partials: operand ", o, " is ",
                                                     operands[o].ToString(), ", not ",
                                                     operands[0].ToString()));
    }
    type.partials += operands[o].partials;
  }
  if (!IsFloat(type.dtype)) {
    return absl::InvalidArgumentError("concat_partials: partial sums of indices have no meaning");
  }
  return type;
}

}  // namespace

absl::StatusOr<TensorType> InferParallelType(const Operator& op,
                                             absl::Span<const TensorType> operands) {
  if (static_cast<int>(operands.size()) < MinOperands(op.kind()) ||
      static_cast<int>(operands.size()) > MaxOperands(op.kind())) {
    return absl::InvalidArgumentError(absl::StrCat("operator ", op.name(), " takes ",
                                                   MinOperands(op.kind()), " operands, not ",
                                                   operands.size()));
  }
  if (op.kind() == OpKind::kConcatPartials) return ConcatPartialsType(operands);
  TensorType type = operands[0];
  const int64_t degree = op.Int("degree");
  if (degree < 1 || degree > (1 << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.ToString(), ": degree must be between 1 and 2^20"));
  }
  int axis = 0;
  if (op.Find("axis") != nullptr) {
    absl::StatusOr<int> normalized = NormalizeAxis(op.Int("axis"), type.rank());
    if (!normalized.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(op.ToString(), ": ", normalized.status().message()));
    }
    axis = *normalized;
  }
  auto does_not_divide = [&](absl::string_view what, int64_t value) {
    return absl::InvalidArgumentError(absl::StrCat(op.ToString(), " of ", operands[0].ToString(),
                                                   ": ", degree, " does not divide ", what, " ",
                                                   value));
  };
  switch (op.kind()) {
    case OpKind::kPartition: {
      Dim& dim = type.dims[axis];
      if (dim.size % (dim.degree * degree) != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(op.ToString(), ": degree ", dim.degree * degree, " does not divide size ",
                         dim.size, " of dim ", axis, " of ", operands[0].ToString()));
      }
      dim.degree *= degree;
      return type;
    }
    case OpKind::kCombine:
      if (type.dims[axis].degree % degree != 0)
        return does_not_divide(absl::StrCat("the degree of dim ", axis, ","),
                               type.dims[axis].degree);
      type.dims[axis].degree /= degree;
      return type;
    case OpKind::kReplicate:
      type.copies *= degree;
      return type;
    case OpKind::kReduce:
      if (type.partials % degree != 0)
        return does_not_divide("the number of partials,", type.partials);
      type.partials /= degree;
      return type;
    case OpKind::kPipeline: {
      Dim& dim = type.dims[axis];
      if (type.micro_batches != 1)
        return absl::InvalidArgumentError(
            absl::StrCat(op.ToString(), ": operand is a sequence of micro-batches already"));
      if (dim.degree != 1 && degree != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat(op.ToString(), ": dim ", axis, " of ", type.ToString(),
                         " is partitioned; Pipeline first, then Partition"));
      }
      if (dim.size % (dim.degree * degree) != 0)
        return does_not_divide(absl::StrCat("the size of dim ", axis, ","), dim.size);
      dim.size /= degree;
      type.micro_batches = degree;
      return type;
    }
    case OpKind::kBatch:
      if (type.micro_batches != degree) {
        return absl::InvalidArgumentError(absl::StrCat(op.ToString(), ": operand is a sequence of ",
                                                       type.micro_batches, " micro-batches"));
      }
      if (type.dims[axis].degree != 1 && degree != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat(op.ToString(), ": dim ", axis, " of ", type.ToString(),
                         " is partitioned; Combine first, then Batch"));
      }
      type.dims[axis].size *= degree;
      type.micro_batches = 1;
      return type;
    default:
      return absl::InternalError(absl::StrCat(op.name(), " is not a parallel operator"));
  }
}

Operator Partition(int64_t axis, int64_t degree) {
  return Operator(OpKind::kPartition, {{"axis", axis}, {"degree", degree}});
}
Operator Combine(int64_t axis, int64_t degree) {
  return Operator(OpKind::kCombine, {{"axis", axis}, {"degree", degree}});
}
Operator Replicate(int64_t degree) { return Operator(OpKind::kReplicate, {{"degree", degree}}); }
Operator Reduce(int64_t degree) { return Operator(OpKind::kReduce, {{"degree", degree}}); }
Operator Pipeline(int64_t axis, int64_t degree) {
  return Operator(OpKind::kPipeline, {{"axis", axis}, {"degree", degree}});
}
Operator Batch(int64_t axis, int64_t degree) {
  return Operator(OpKind::kBatch, {{"axis", axis}, {"degree", degree}});
}

Operator DualOf(const Operator& op) {
  switch (op.kind()) {
    case OpKind::kPartition:
      return Combine(op.Int("axis"), op.Int("degree"));
    case OpKind::kCombine:
      return Partition(op.Int("axis"), op.Int("degree"));
    case OpKind::kReplicate:
      return Reduce(op.Int("degree"));
    case OpKind::kReduce:
      return Replicate(op.Int("degree"));
    case OpKind::kPipeline:
      return Batch(op.Int("axis"), op.Int("degree"));
    case OpKind::kBatch:
      return Pipeline(op.Int("axis"), op.Int("degree"));
    default:
      std::abort();  // REQUIRES was broken.
  }
}

}  // namespace isomer
