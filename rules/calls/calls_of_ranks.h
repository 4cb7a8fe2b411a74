// Calls of an operator at every rank that it takes, made of its examples.
#ifndef ISOMER_RULES_CALLS_CALLS_OF_RANKS_H_
#define ISOMER_RULES_CALLS_CALLS_OF_RANKS_H_

#include <vector>

#include "pcg/ir/operator_call.h"

namespace isomer {

// The highest rank that sharding rules are stated for. Exporters of PyTorch reshape at rank 5
// (nn.MultiheadAttention: batch, length, three, heads, features) and expand at rank 6 (windows of
// images, cut into heads).
inline constexpr int kMostShardedRank = 6;

// `seeds`, which are sequential, and calls got from them by giving some operands one leading dim
// more or less, as often as the operator takes it; attributes that speak of dims go along. Of calls
// that have the same ranks and that are split in the same ways (by which operands and outputs a dim
// leads) the first. Only calls that can be split.
std::vector<OperatorCall> CallsOfRanks(const std::vector<OperatorCall>& seeds);

}  // namespace isomer

#endif  // ISOMER_RULES_CALLS_CALLS_OF_RANKS_H_
