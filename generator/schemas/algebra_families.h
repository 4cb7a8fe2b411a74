// Algebraic families: what an operator's meaning says about Concat, Split, Add, Scale and
// elementwise operators, as few rules for all axes and attributes.
//
// For every sample call of the operator, every choice of operands and axes is tried in the forms of
// algebra_forms.h: "op of concatenated operands is the concatenation of op of each", and so on.
// Those that have equal types and values, on random inputs in a prime field, are facts. A rule is
// made of a fact by replacing axes and attributes by variables, the most general choice first; it
// is kept if it holds wherever its conditions admit it: at all sample calls, at other sizes near
// them, and with random degrees, copies and partials. Facts that are instances of a rule found
// before are pruned.
//
// So the rules of a new operator follow from its declaration and its examples alone.
#ifndef ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FAMILIES_H_
#define ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FAMILIES_H_

#include <set>
#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/preconditions/generalize.h"
#include "generator/preconditions/prune.h"

namespace isomer {

std::vector<GeneralRule> FindAlgebraFamilies(OpKind kind, TypeOracle* oracle, Random* random,
                                             Statistics* statistics);

// The operators that occur in them besides the operator that they are of.
std::set<OpKind> OperatorsOfAlgebraFamilies();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_ALGEBRA_FAMILIES_H_
