// A model's sequence in the order of stripes, so that causal attention is as much work on every
// device that has a part of it (Brandon et al., "Striped Attention", 2023).
//
// Of n tokens in C stripes, stripe p are the tokens i*C + p, and comes whole before stripe p + 1.
// Split into C contiguous parts, each device has a stripe: tokens from all over the sequence, which
// see half of the keys in the mean, as those of any other device do. (In the order of the sequence
// the last device sees all keys and the first hardly any. An early and a late piece for each, as
// Llama 3 has them, is balanced, too, but no permutation that Reshape and Transpose say.)
//
// All calls on tokens work in that order, from the inputs on, so that nothing is exchanged for it
// where the order is gone at the end, as in a loss. Of a call f one step makes
//
//     f(natural(x), y) = natural(f(x, stripes(y)))
//
// where `natural` brings back what was made by such a step before, and `stripes` goes to inputs and
// stored tensors (tables of rotations), once for all calls that take them. What is left of
// `natural` is before calls that have no such step. Attention does: causal=1 becomes causal=C.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_STRIPED_ORDER_H_
#define ISOMER_OPTIMIZER_PROPOSAL_STRIPED_ORDER_H_

#include <cstdint>

#include "optimizer/canonical/stated_rewrite.h"
#include "pcg/ir/graph.h"

namespace isomer {

// Steps of `rewriter` that bring its graph into the order of `stripes`. False: no causal attention
// is in it, or one that should be is not; the steps so far are of no use.
bool OrderInStripes(int64_t stripes, StatedRewriter* rewriter);

// Whether an attention of the graph is causal, and whether one is of stripes.
bool HasCausalAttention(const Graph& graph);
bool HasStripes(const Graph& graph);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_STRIPED_ORDER_H_
