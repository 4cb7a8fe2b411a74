// Algebraic forms (algebra_form_kinds.h) as rules of one call.
#ifndef ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FORMS_H_
#define ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FORMS_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/assignments/sample_calls.h"
#include "generator/assignments/type_oracle.h"
#include "generator/schemas/algebra_form_kinds.h"
#include "rules/language/rule.h"

namespace isomer {

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
std::optional<FormRule> RuleOfForm(AlgebraForm form, const OperatorCall& call,
                                   const std::vector<TensorType>& outputs, const ShapeCut& cut,
                                   const Generality& generality, const OperatorCall* f = nullptr,
                                   const At& at = {});

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FORMS_H_
