// Which values of attributes to enumerate with.
#ifndef ISOMER_GENERATOR_ASSIGNMENTS_ATTRIBUTE_DOMAINS_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_ATTRIBUTE_DOMAINS_H_

#include <vector>

#include "pcg/ir/operator_call.h"

namespace isomer {

// The calls of an operator's kind that `call` stands for, on operands of its ranks with sizes that
// are as equal as the operator lets them be (SquareSize), so that whatever can compose does:
//   - axes: each of the operand; lists of axes: each alone
//   - flags (keepdims, causal, mean, ..): both; activations: each
//   - exchanges of axes: each pair
//   - factors: numbers among which are products, quotients and inverses of others
//   - sizes of parts: two halves
//   - all others: as the call has them
// Each call once.
std::vector<OperatorCall> CallsOverDomains(const OperatorCall& call);

// The size of dims where nothing asks for another, by the highest rank of the operands: even, and
// such that a tensor has some sixteen elements.
inline constexpr int64_t SquareSize(int rank) { return rank <= 2 ? 4 : 2; }

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_ATTRIBUTE_DOMAINS_H_
