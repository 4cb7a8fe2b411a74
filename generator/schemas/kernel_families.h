// Families of kernels: what may be done to the second operand of op(x, w) instead of to the result.
//
//   grown    op(x, w; A)            -> op(x, pad(w); A')       some of the last dims of w, and what
//                                                              a list of A has for these
//   scaled   op(.., mul(w, s'), ..) -> mul(op(.., w, ..), s)   s: a factor for each place along the
//                                                              dim that w shares with the output
//   merged   op(x, w), op(x, u), .. -> the parts of op(x, concat(w, u, ..)), three of any
//                                      sizes along the dim, alike elsewhere
//   folded   f(op(.., w, ..), u, z)   -> add(op(.., f(w, u, 0 z), ..), f(0 w, u, z))
//                                      f linear in its operand and z together, along the dim
//   passed   op(f(x), w; A)         -> f(op(x, w; A))          f linear, of any attributes
//
// for contractions op(x, w), which are linear in both. Every call among an operator's samples,
// every operand, dim and list of attributes is tried; a rule is made of what has equal types and
// values at all of them, with as many attributes variable as bear it. So a convolution's kernel
// grows with its padding, its rows take the scale of a normalisation, or the normalisation, and a
// 1x1 convolution passes an average pool: found, not said.
#ifndef ISOMER_GENERATOR_SCHEMAS_KERNEL_FAMILIES_H_
#define ISOMER_GENERATOR_SCHEMAS_KERNEL_FAMILIES_H_

#include <set>
#include <vector>

#include "generator/assignments/statistics.h"
#include "generator/preconditions/generalize.h"

namespace isomer {

std::vector<GeneralRule> FindKernelFamilies(OpKind kind, TypeOracle* oracle, Random* random,
                                            Statistics* statistics);

// The operators that occur in them besides the operator that they are of.
std::set<OpKind> OperatorsOfKernelFamilies();

}  // namespace isomer

#endif  // ISOMER_GENERATOR_SCHEMAS_KERNEL_FAMILIES_H_
