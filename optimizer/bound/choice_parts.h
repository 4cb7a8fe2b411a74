// Lower bounds on a choice's cost per device, by component.
#ifndef ISOMER_OPTIMIZER_BOUND_CHOICE_PARTS_H_
#define ISOMER_OPTIMIZER_BOUND_CHOICE_PARTS_H_

#include <cstdint>
#include <vector>

#include "optimizer/mapping/cost_tables.h"

namespace isomer {

struct ChoiceParts {
  double forward_us = 0;
  // Includes adding it to that of another use of the tensor, where every path through the call
  // waits for that.
  double gradient_us = 0;
  double weights_us = 0;  // gradients in a task that no path waits for
  double update_us = 0;
  // Other sums and fills, which may overlap communication.
  double sums_us = 0;
  double halo_us = 0;  // forward and backward
  // Gradient synchronisation, at the bandwidth of a single message of all gradients: no bucket size
  // is faster.
  double sync_us = 0;
  // Latency of an all-reduce among the same devices; 0: weights are not all-reduced.
  double sync_latency_us = 0;
  // For a weight whose gradient is last: its synchronisation, at least as if alone, and its update.
  double last_us = 0;
  double devices = 1;                      // number in use
  bool on_first = true, on_upper = false;  // uses the first device; the upper half's first device

  double compute_us() const { return forward_us + gradient_us + weights_us + update_us + sums_us; }
};

// Gradients of a stored tensor that several calls use are summed, then synchronised and applied
// once: charges the first call for that; to the others the tensor counts as fed. Likewise for halos
// of any tensor, which other readers need not fetch again.
void ChargeFirstUses(const Graph& graph, ComputeGraph* compute);

// Properties of a call's backward pass that depend on other calls.
struct GradientSources {
  // Per operand: whether its gradient is added to that of another use of the tensor. True for all
  // uses but one, the one whose addition costs most, as any may be first in the backward pass. Only
  // uses that lead to a loss count.
  std::vector<bool> summed;
  bool keeps_order = false;       // the call is a view: its summand is added by a task of its own
  std::vector<bool> filled;       // per output: unread, so that its gradient is zeros
  int64_t all_weights_bytes = 0;  // all of the graph's: the largest message of a synchronisation
};
std::vector<GradientSources> FindGradientSources(const Graph& graph, const ComputeGraph& compute);

ChoiceParts PartsOfChoice(const ChoiceSpace& space, const ShardingChoice& choice,
                          const ComputeGraph::ComputeNode& node, const GradientSources& sources,
                          const CostTables& tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_CHOICE_PARTS_H_
