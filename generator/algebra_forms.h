// Algebraic forms: equations between a call and the same call on parts of its operands.
//
// Of a call op(X, W), where X stands for the operands that take part and W for the others:
//
//   kConcat      op(concat_i(X, Y), W)        -> concat_j(op(X, W), op(Y, W))
//   kSum         op(concat_i(X, Y), W)        -> add(op(X, W), op(Y, W))
//   kSplit       split_j(op(X, W))            -> op(split_i(X).0, W), op(split_i(X).1, W)
//   kMerge       op(X, W), op(Y, W)           -> split_j(op(concat_i(X, Y), W))
//   kConcatBack, kSumBack, kSplitBack: those, from right to left
//   kAdd, kSub   op(add(X, Y), W)             -> add(op(X, W), op(Y, W))
//   kScale       scale(op(X, W))              -> op(scale(X), W)
//   kPointwise   f(op(X, W))                  -> op(f(X), W)        f elementwise, of one operand
//   kPointwise2  f(op(X, W), op(Y, W))        -> op(f(X, Y), W)     of two
//
// X may be several operands, each with an axis of its own. Which forms hold for which operands and
// axes of an operator is found by enumeration (algebra_families.h), not said here.
#ifndef ISOMER_GENERATOR_ALGEBRA_FORMS_H_
#define ISOMER_GENERATOR_ALGEBRA_FORMS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/sample_calls.h"
#include "generator/type_oracle.h"
#include "rules/rule.h"

namespace isomer {

enum class AlgebraForm {
  kConcat,
  kConcatBack,
  kSum,
  kSumBack,
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

// Which operands take part, and along which axes (counted from the end; 0 in forms without axes).
struct Cut {
  std::vector<std::optional<int64_t>> operand_axes, output_axes;
  // All of them are the same.
  bool IsOneAxis() const;
  friend bool operator==(const Cut&, const Cut&) = default;
};

// Conditions on two operands that are put together, from none to the strongest.
enum class Alike { kAny, kSizes, kTypes };

// How general a rule is made of one equation.
struct Generality {
  // Axes are variables, which the condition kSplitsDim ties to one iteration dim of the call; else
  // constants, tied so or not.
  bool axis_variables = true;
  bool tied = true;
  // They are one variable.
  bool one_axis = false;
  // Attributes of the call that are constants; the others are variables. Only integers and numbers
  // can be constants of a rule.
  std::set<std::string> constants;
  Alike alike = Alike::kAny;
};

// Which assignment a rule is tried at.
struct At {
  bool equal_parts = false;  // else parts differ in size, unless their types must be equal
  bool sizes_of_output =
      false;  // what a Split takes apart is as large as the output, not the operand
};

// A rule and an assignment of its variables, with types that are not parallel.
struct FormRule {
  Rule rule;  // without id and ranks
  Binding binding;
};

// The equation of one form at a call, whose outputs have types `outputs`. `f`: the elementwise
// operator of the forms that have one. Nullopt: an attribute cannot be a constant, or a dim is too
// small to be cut.
std::optional<FormRule> RuleOfForm(AlgebraForm form, const SampleCall& call,
                                   const std::vector<TensorType>& outputs, const Cut& cut,
                                   const Generality& generality, const SampleCall* f = nullptr,
                                   const At& at = {});

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ALGEBRA_FORMS_H_
