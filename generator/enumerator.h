// Enumerates graphs over a configuration and pairs those that are equal.
//
// Tensors are hash-consed: a tensor is an operator applied to tensors, and its meaning (the value,
// partial sums added up) over the prime field on one set of random inputs is computed once. Two
// tensors with one fingerprint, that is the hash of meaning and type, are in one class; the first
// and smallest of a class stands for it.
//
// A new tensor applies an operator to *representatives* only. Nothing is missed by that: a graph
// with another operand is turned into one with the representative by the smaller equation that put
// the operand into its class, and replacing equals by equals is what rewriting does. It also leaves
// no equation whose sides differ in an operand only. So each tensor that is not the first of its
// class gives one equation, tensor = representative; there are as many as tensors, not as pairs.
//
// A graph is the set of operators that a tensor needs, at most max_operators, inner results shared.
// Graphs with several outputs matter where outputs share an operator with several outputs (Split):
// other sets of outputs are equal when their members are. So for every Split, its outputs together
// are paired with their representatives together: {matmul(x,y), matmul(x,z)} and the parts of
// matmul(x, concat(y,z)).
//
// Order: operators of a graph, then operators as listed, then operands by number. Operands of Add
// and Mul are taken in one order, and equations that differ in names of inputs are one.
#ifndef ISOMER_GENERATOR_ENUMERATOR_H_
#define ISOMER_GENERATOR_ENUMERATOR_H_

#include <vector>

#include "generator/configuration.h"
#include "generator/generalize.h"
#include "generator/statistics.h"
#include "generator/type_oracle.h"

namespace isomer {

// Pairs of equal graphs, the source the larger one, smallest first.
std::vector<Candidate> Enumerate(const Configuration& configuration, TypeOracle* oracle,
                                 Random* random, Statistics* statistics);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATOR_H_
