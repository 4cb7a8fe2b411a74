// Equations that follow from the structure of declarations, whatever the attributes and sizes.
//
// An operator with attributes has no single declaration, so an equation between its calls cannot be
// proved by writing out its elements once and for all. But most of what rules say of operators
// needs little of a declaration: that it sums over a dim, that every load is indexed by it, that it
// is linear. These premises are decidable, call by call. The theorems, proved in docs/proof.md for
// every declaration that meets the premise:
//
//   pieces    A partitionable dim (Declaration::IsPartitionable): tasks over its pieces make the
//             pieces of the outputs, or partial sums of them.
//   alike     If besides no coordinate of the dim is used and the declaration of the call on a
//             piece is that of the whole but for the dim's size, then the call on the piece makes
//             what the task makes:  op(concat(x, y)) = concat(op(x), op(y)),
//             and over a sum dim  op(concat(x, y)) = op(x) + op(y).
//   linear    Declaration::IsLinearIn: op(x + y) = op(x) + op(y), op(f x) = f op(x); and where
//             slices of the output are made of slices of an operand, scaling these one by one
//             scales those.
//   moves     Each element of the outputs is an element of one of some operands, or zero, whichever
//             they are: op(f(x)) = f(op(x)) for elementwise f (with f(0) = 0 if there are zeros);
//             the largest (smallest) of such elements: the same for f that does not decrease; their
//             product: for f that is multiplicative.
//   factor    A constant that is a factor of what is linear in an operand may be taken from there:
//             attention(scale(q; f), k, v; scale=c) = attention(q, k, v; scale=c*f).
//   affine    A function f that goes by slices and is linear in x and shifts p together is one
//   factor
//             for each slice and a shift: f(op(x, w), p) = op(x, f(w, 0 p)) + f(0, p), where op is
//             linear in w, slice by slice. So a BatchNorm is folded into a convolution.
//   axes      What mixes slices along one axis commutes with what does one linear thing to each
//             slice: avg_pool(conv2d(x, w)) = conv2d(avg_pool(x), w), where w has one element a
//             channel.
//   zeros     A sum in which an operand is a factor skips what its margins add: conv2d(x, w) =
//             conv2d(x, pad(w)), with a padding that is larger by as much.
//
// So a rule that rests on them carries the condition by_structure, and says: for every assignment
// at which a premise holds, both sides are equal. The condition is decided at the calls at hand, by
// the matcher as by whoever replays a step of a plan.
#ifndef ISOMER_RULES_THEOREMS_STRUCTURE_H_
#define ISOMER_RULES_THEOREMS_STRUCTURE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/declaration.h"
#include "rules/language/rule.h"

namespace isomer {

// REQUIRES: `pattern` has no parallel operators. Of the types of `binding` only sizes count: how
// tensors are held is no matter of what is equal.
// Errors: the side does not type-check at these sizes.
absl::StatusOr<ConcreteSide> SideAt(const Pattern& pattern, Binding binding);

// Ok if one of the theorems shows that the sides, without parallel operators, have equal outputs,
// and the target is defined where the source is (domains.h), so that the sides are not
// exchangeable; `lemmas` gets which: "pieces_of_conv2d", "conv2d_is_linear_in_0",
// "transpose_moves_elements", "conv2d_skips_zeros". The error says that no theorem does; it refutes
// nothing.
absl::Status EqualByStructure(const ConcreteSide& source, const ConcreteSide& target,
                              std::set<std::string>* lemmas);

}  // namespace isomer

#endif  // ISOMER_RULES_THEOREMS_STRUCTURE_H_
