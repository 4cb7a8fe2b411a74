// Attention in place of the calls that compute it.
#ifndef ISOMER_OPTIMIZER_CANONICAL_ATTENTION_STEP_H_
#define ISOMER_OPTIMIZER_CANONICAL_ATTENTION_STEP_H_

#include <optional>
#include <string>
#include <vector>

#include "pcg/ir/plan.h"

namespace isomer {

// The step that puts `op`, an attention, in place of calls that compute it of `operands`: q, k', v
// and perhaps a mask, where k' is k with its last two dims exchanged. Its nodes are left to the
// caller; its calls have ids from `next` on, and `names`. The operands have samples and heads as
// their first two dims, or both as dim 0, [samples * heads, ..], as nn.MultiheadAttention has them
// where it gives its weights, too: then heads get a dim of their own. nullopt: it is not seen how
// many there are. Whether the two are equal is not looked at.
std::optional<DerivationStep> AttentionStep(const Graph& graph, const Operator& op,
                                            const std::vector<TensorRef>& operands, NodeId root,
                                            NodeId next, std::vector<std::string>* names);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_ATTENTION_STEP_H_
