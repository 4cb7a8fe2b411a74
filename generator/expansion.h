// Expansions: how a call is split, found by enumeration.
//
// For one call op(x0, x1, ..) on tensors that are not parallel, every way to put a parallel
// operator (Partition along an axis, Replicate, or none) before each operand and one (Combine along
// an axis, Reduce, or none) after each output is tried; those that give the types of the call, and
// on random inputs its values shard by shard, are equal to it. So partitioning MatMul by rows, by
// columns and by the contraction are three of them; that there are no others is part of the result.
//
// Expansions have more operators than a side of an enumerated graph may have (one per operand and
// output besides the call), which is why they have an enumeration of their own.
//
// Equalities of one form (which operands are partitioned, which replicated, what follows) are one
// rule, a family: its axes are variables that the condition kSplitsDim ties together, so that it
// serves batch dims and rows, broadcast operands, and operators whose attributes say which axes
// correspond (Reshape, Conv2d, ..). Attributes of the call are variables.
#ifndef ISOMER_GENERATOR_EXPANSION_H_
#define ISOMER_GENERATOR_EXPANSION_H_

#include <cstdint>
#include <vector>

#include "generator/generalize.h"
#include "generator/prune.h"
#include "generator/statistics.h"

namespace isomer {

// Expansions of an operator, and the rules that carry Replicate from its outputs to its operands.
std::vector<GeneralRule> FindExpansions(OpKind kind, TypeOracle* oracle, Random* random,
                                        Statistics* statistics);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_EXPANSION_H_
