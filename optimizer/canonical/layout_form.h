// Minimises layout calls: chains of reshapes, transpositions and selections are fused, and matrix
// products and sums compute their rows in the original order where that lets chains meet.
//
//   nn.MultiheadAttention computes in [position, sample, feature], whatever its input, and packs
//   queries, keys and values in one product, which it takes apart in five dims. A search finds
//   little in that. As one map (places.h) it is a split of the product and, of each part, a
//   reshape and a transposition.
#ifndef ISOMER_OPTIMIZER_CANONICAL_LAYOUT_FORM_H_
#define ISOMER_OPTIMIZER_CANONICAL_LAYOUT_FORM_H_

#include <functional>
#include <string>

#include "optimizer/canonical/stated_rewrite.h"

namespace isomer {

// `keeps`: names of operators that must stay. REQUIRES: the types of the rewriter's graph are
// sequential.
void PutLayoutsTogether(const std::function<bool(const std::string& name)>& keeps,
                        StatedRewriter* rewriter);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CANONICAL_LAYOUT_FORM_H_
