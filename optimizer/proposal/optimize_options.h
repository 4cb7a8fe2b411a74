// What a user asks of a run of the optimizer.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_OPTIMIZE_OPTIONS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_OPTIMIZE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "optimizer/bound/lower_bound.h"
#include "optimizer/canonical/canonical_form.h"
#include "optimizer/proposal/baselines.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/proposal/strategy_search.h"
#include "optimizer/sharding/constraints.h"
#include "optimizer/substitution/search.h"
#include "pcg/ir/fp8.h"
#include "pcg/ir/tensor_type.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

struct OptimizeOptions {
  Strategy strategy = Strategy::kHierarchical;
  bool training = true;
  DataType precision = DataType::kFloat32;  // what the plan computes in
  Fp8Products fp8 = {};                     // of bfloat16, which products are in 8 bits
  UpdateOptions update = {};                // of weights, in training
  // Take another method of updating weights where it is faster, or where alone the plan fits.
  bool choose_update_method = false;
  // Activations may lie in the host's memory until the backward pass (offload_choice.h).
  bool may_offload = false;
  // Sum gradients of weights over devices in low precision (LowGradientSums) where that is faster:
  // it rounds them.
  bool choose_gradient_sums = false;
  // Of pipelines, which are then drained less often than after each step where that is faster: it
  // is another training (UpdateOptions). 1: they are drained.
  int32_t steps_between_flushes = 1;
  // Larger buckets of gradients than `update` says where they are faster.
  bool choose_buckets = false;
  std::string plan;  // a baseline's name, kGrid, or empty: search
  // A user's own configuration, which is a baseline by the name `grid_name`; with plan = kGrid it
  // is the plan.
  std::optional<GridRequest> grid;
  std::string grid_name = kGrid;
  SearchOptions search;
  int threads = 0;             // that predict plans; 0: all cores. The plan does not depend on it
  bool whole_machine = false;  // no pipelines, and no plans that leave devices idle
  int64_t devices = 0;         // the first of the machine, which alone are used; 0: all
  // Tell how far the plan may be from the best one (lower_bound.h), of models of up to so many
  // nodes.
  int64_t bound_nodes = 0;
  BoundOptions bound;
  // A user's. The plan keeps them; a baseline that does not is reported, and no plan.
  Constraints constraints;
  // What shows that calls are an operator (canonical_form.h), which is what the plan's certificate
  // will be asked; none: the model's calls are taken as they are.
  AreEqual equal;
  // Proposers that are not asked: what each gains is seen without it.
  std::set<std::string> without;
  SearchPolicy policy;
  bool keep_baselines = false;  // their plans, in the result

  // Sets `plan`, and how it updates weights where that is what it is.
  void AskForBaseline(const std::string& name) {
    plan = name;
    if (name != kZero3) return;
    update.method = UpdateMethod::kShardedWeights;
    choose_update_method = false;
  }
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_OPTIMIZE_OPTIONS_H_
