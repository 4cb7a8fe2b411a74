// Algebraic forms: equations between a call and the same call on parts of its operands.
//
// Of a call op(X, W), where X stands for the operands that take part and W for the others:
//
//   kConcat      op(concat_i(X, Y), W)        -> concat_j(op(X, W), op(Y, W))
//   kSum         op(concat_i(X, Y), W)        -> add(op(X, W), op(Y, W))
//   kSumSplitRest, kSumSplitFirst
//                op(concat_i(X, Y), Z)        -> add(op(X, split_j(Z).0), op(Y, split_j(Z).1))
//   kSplit       split_j(op(X, W))            -> op(split_i(X).0, W), op(split_i(X).1, W)
//   kMerge       op(X, W), op(Y, W)           -> split_j(op(concat_i(X, Y), W))
//   kConcatBack, kSumBack, kSplitBack: those, from right to left
//   kAdd, kSub   op(add(X, Y), W)             -> add(op(X, W), op(Y, W))
//   kScale       scale(op(X, W))              -> op(scale(X), W)
//   kPointwise   f(op(X, W))                  -> op(f(X), W)        f elementwise, of one operand
//   kPointwise2  f(op(X, W), op(Y, W))        -> op(f(X, Y), W)     of two
//
// In kSumSplitRest X is the first operand that takes part and Z the others; in kSumSplitFirst the
// other way around.
//
// X may be several operands, each with an axis of its own. Which forms hold for which operands and
// axes of an operator is found by enumeration (algebra_families.h), not said here.
#ifndef ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FORM_KINDS_H_
#define ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FORM_KINDS_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace isomer {

enum class AlgebraForm {
  kConcat,
  kConcatBack,
  kSum,
  kSumBack,
  kSumSplitRest,
  kSumSplitFirst,
  kSplit,
  kSplitBack,
  kMerge,
  kAdd,
  kSub,
  kScale,
  kPointwise,
  kPointwise2,
};
// "concat", "split, back", ..
const char* AlgebraFormName(AlgebraForm form);

// Forms along axes.
bool HasAxes(AlgebraForm form);
// Forms in which two operands of the call take the place of one: X and Y.
bool HasTwo(AlgebraForm form);
// Forms in which other operands are taken apart where some are put together.
bool SplitsOthers(AlgebraForm form);
// What the target of a form has and its source does not must be unpartitioned by condition.
bool PutsTogether(AlgebraForm form);

// Which operands take part, and along which axes (counted from the end; 0 in forms without axes).
struct ShapeCut {
  std::vector<std::optional<int64_t>> operand_axes, output_axes;
  // All of them are the same.
  bool IsOneAxis() const;
  friend bool operator==(const ShapeCut&, const ShapeCut&) = default;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FORM_KINDS_H_
