// Enumerates graphs over a configuration and pairs those that are equal.
//
// A term is an operator applied to tensors. Its meaning (the value, partial sums added up) over the
// prime field on one set of random inputs is computed once; hash of meaning and type is its
// fingerprint, and terms of one fingerprint are a class. The first of a class stands for it.
//
// What is generated, and why nothing is missed:
//   - Operands are *representatives* only. A graph with another operand is turned into one with the
//     representative by the smaller equation that put the operand into its class. So each term that
//     is not the first of its class gives one equation, term = representative: there are as many as
//     terms, not as pairs, and none whose sides differ in an operand only.
//   - Terms are *canonical up to renaming* of inputs from the start (naming.h): matmul(x0, x1), not
//     matmul(x1, x0). The classes of a term's renamings are found by evaluating it on renamed
//     operands; they get the renamings of one term as representatives, so that representatives are
//     closed under renaming, and a canonical term over any operands is one over representatives.
//   - One side of an equation is *linear*: it uses each of its inputs once, as a tree. Of the other
//     equations nearly all are linear ones with inputs made equal, or compositions. Not all are:
//     relu(x) is x or 0, so that mul(x, relu(x)) = mul(relu(x), relu(x)), which no others say. Such
//     equations are lost; Configuration::every_side finds them, and tests say which ones there are
//     over small sets of operators (tests/generator/completeness_test.cc). So at
//     the last size, where nearly all terms are, linear terms are kept and all others only look
//     their fingerprints up: they are neither stored nor renamed. Memory is that of graphs of one
//     operator less.
//   - Operands of commutative operators are taken in one order.
//
// The size of a term is the number of operators that it needs, inner results shared; terms whose
// operands share operators are generated from pairs and tuples of tensors that do, found by the
// operators that they may have in common. No size is fixed: all follow from max_operators.
//
// Graphs with several outputs matter where outputs share an operator with several outputs (Split):
// other sets of outputs are equal when their members are. So for every Split its outputs together
// are paired with their representatives together: {matmul(x,y), matmul(x,z)} and the parts of
// matmul(x, concat(y,z)).
//
// Cost: one evaluation per canonical term, and one per renaming of those that are kept. The terms
// of the last size are shared out among threads; the order of the result does not depend on that.
#ifndef ISOMER_GENERATOR_ENUMERATION_ENUMERATOR_H_
#define ISOMER_GENERATOR_ENUMERATION_ENUMERATOR_H_

#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/assignments/type_oracle.h"
#include "generator/enumeration/configuration.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

// Pairs of equal graphs, smallest first; the source is the larger one.
// REQUIRES: configuration.max_operators >= 1.
std::vector<Candidate> Enumerate(const Configuration& configuration, TypeOracle* oracle,
                                 Random* random, Statistics* statistics, int threads = 1);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_ENUMERATOR_H_
