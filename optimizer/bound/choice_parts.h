// What a choice costs a device at least, by what it is: for bounds from below.
#ifndef ISOMER_OPTIMIZER_BOUND_CHOICE_PARTS_H_
#define ISOMER_OPTIMIZER_BOUND_CHOICE_PARTS_H_

#include <cstdint>
#include <vector>

#include "optimizer/mapping/cost_tables.h"

namespace isomer {

struct ChoiceParts {
  double forward_us = 0;
  // And adding it to that of another use of the tensor, as far as every path through the call waits
  // for it.
  double gradient_us = 0;
  double weights_us = 0;  // what of the gradients may be a task that no path waits for
  double update_us = 0;
  // What else there is to add up, or to fill in, which may be done while something is moved.
  double sums_us = 0;
  double halo_us = 0;  // both ways
  // Synchronisation of gradients, at the rate of all of them in one message: in buckets of any size
  // it takes as long.
  double sync_us = 0;
  // Of an all-reduce of next to nothing among the same devices; 0: weights are not all-reduced.
  double sync_latency_us = 0;
  // Of a weight that no other gradient comes after: its synchronisation, not below that of itself
  // alone, and its update.
  double last_us = 0;
  double devices = 1;                      // used
  bool on_first = true, on_upper = false;  // it uses the first device; that of the upper half

  double compute_us() const { return forward_us + gradient_us + weights_us + update_us + sums_us; }
};

// Gradients of a stored tensor that several calls use are summed, then synchronised and applied
// once: the first call is charged for that, to the others the tensor counts as fed. So is it for
// the halos of any tensor, which others that read it need not fetch again.
void ChargeFirstUses(const Graph& graph, ComputeGraph* compute);

// Of a call's backward pass, what others decide.
struct GradientSources {
  // Per operand: its gradient is added to that of another use of the tensor, as that of all is but
  // of one: the one that costs the most, as any may come first in the backward pass. Only uses that
  // lead to a loss have one.
  std::vector<bool> summed;
  bool keeps_order = false;       // the call is a view: its share is added by a task of its own
  std::vector<bool> filled;       // per output: nobody reads it, so that its gradient is zeros
  int64_t all_weights_bytes = 0;  // of the graph: the largest message that they are synchronised in
};
std::vector<GradientSources> FindGradientSources(const Graph& graph, const ComputeGraph& compute);

ChoiceParts PartsOfChoice(const ChoiceSpace& space, const ShardingChoice& choice,
                          const ComputeGraph::ComputeNode& node, const GradientSources& sources,
                          const CostTables& tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_CHOICE_PARTS_H_
