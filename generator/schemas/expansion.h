// Families: how a call is spread over tasks, and how parallel operators move through it.
//
// The spreads of an operator's sample calls (spread.h) that are of one form (which operands are
// pieces, which copies, which partial sums) are a family: their axes are variables that the
// condition kSplitsDim ties together, so that one rule serves batch dims and rows, broadcast
// operands, and operators whose attributes say which axes correspond (Reshape, Conv2d, ..).
// Attributes of the call are variables. Every form of a family (family_forms.h) that holds at its
// calls is a rule: the expansion op(x0, ..) -> combine(op(partition(x0), ..)), which has more
// operators than a side of an enumerated graph may have, and those that come of moving operators
// from one side to the other.
//
// Samples are of ranks up to 4. A family's rules are stated at the ranks of all calls up to rank 6
// that have its form (rules/calls/calls_of_ranks.h), and tried at the samples.
//
// What a form needs besides is found by trying: that inputs hold no partial sums; and where the
// call is linear, or not, depending on an attribute, the attribute stays as it was found.
#ifndef ISOMER_GENERATOR_SCHEMAS_EXPANSION_H_
#define ISOMER_GENERATOR_SCHEMAS_EXPANSION_H_

#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

// The family rules of an operator.
std::vector<GeneralRule> FindExpansions(OpKind kind, TypeOracle* oracle, Random* random,
                                        Statistics* statistics);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_EXPANSION_H_
