// That the tasks of a spread call make what the whole call makes.
//
// Graphs are evaluated tensor by tensor, so that they say nothing of pieces: this evaluates every
// task by itself, from nothing but the boxes of the operands that its device would hold (halos
// included), and puts the parts together, partial sums added.
#ifndef ISOMER_VERIFIER_VALUES_PIECE_CHECK_H_
#define ISOMER_VERIFIER_VALUES_PIECE_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "rules/language/rule.h"

namespace isomer {

// Checks every call of `pattern` at `binding` so, in the prime field, on operands drawn from
// `seed`. The error names the operator, its operand types and the first element that differs.
absl::Status CheckPieces(const Pattern& pattern, const Binding& binding, uint64_t seed);
// The same for one call.
absl::Status CheckPiecesOfCall(const Operator& op, const std::vector<TensorType>& operands,
                               uint64_t seed);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_VALUES_PIECE_CHECK_H_
