// Operators as graphs of others: op(x, y, ..) <-> a graph that computes what op declares.
//
// A declaration of several statements says what is computed on the way: the scores of attention,
// their maxima, their sums. For each of them in turn, and then for the output, a smallest graph is
// looked for that gives it from the operands and from those found before, over all operators whose
// own declarations do nothing but what this one does. So that graphs of many operators are found
// in steps of a few. What is found at one call becomes rules, one for each direction, as an
// enumerated equation does.
#ifndef ISOMER_GENERATOR_SCHEMAS_DEFINITION_FAMILIES_H_
#define ISOMER_GENERATOR_SCHEMAS_DEFINITION_FAMILIES_H_

#include <set>
#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

std::vector<GeneralRule> FindDefinitionFamilies(OpKind kind, TypeOracle* oracle, Random* random,
                                                Statistics* statistics);

// The operators that may occur in them besides the operator that they are of.
std::set<OpKind> OperatorsOfDefinitionFamilies();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_DEFINITION_FAMILIES_H_
