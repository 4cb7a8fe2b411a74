// Cost tables for mapping, shared by all candidates of a search: choices by operator and operand
// types, node times per choice, resharding times per pair of placements.
#ifndef ISOMER_OPTIMIZER_MAPPING_COST_TABLES_H_
#define ISOMER_OPTIMIZER_MAPPING_COST_TABLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/cost/reshard_cost.h"
#include "optimizer/mapping/cost_options.h"
#include "optimizer/mapping/mapping_memo.h"
#include "optimizer/mapping/mapping_problem.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

// An interned list of placements, one per choice.
using PlacementSetId = int;

struct CallTables {
  ChoiceSpace space;
  std::vector<Share> shares;  // per choice
  std::vector<PlacementSetId> operands, outputs;
};

struct CallRestriction;
struct DerivationMemo;

class CostTables {
 public:
  CostTables(const RuleIndex& rules, const CostModel& cost, CostOptions options);
  ~CostTables();

  const CostModel& cost() const { return cost_; }
  const RuleIndex& rules() const { return rules_; }
  const CostOptions& options() const { return options_; }
  // As in the options; the machine's if these say 0.
  int64_t num_devices() const;
  // Keeps choices and edge times; recomputes node times.
  void set_options(const CostOptions& options);

  // The call's sharding and expansions, without enumerating its choices, which takes most of the
  // time. Equal calls share one, valid as long as this lives. Errors: the call does not type-check.
  absl::StatusOr<const ChoiceSpace*> Space(const Operator& op,
                                           const std::vector<TensorType>& operands);
  // `moment_dim`: the iteration dim that micro-batches split (batch_dims.h), or -1. `restriction`:
  // a user's constraints on the call (restrictions.h), or null. Errors: the call does not
  // type-check, or no choice is left.
  absl::StatusOr<const CallTables*> Call(const Operator& op,
                                         const std::vector<TensorType>& operands,
                                         int moment_dim = -1,
                                         const CallRestriction* restriction = nullptr);
  // Microseconds per choice: forward, gradient, halo exchange, synchronisation and update of stored
  // operands.
  const std::vector<float>& NodeUs(const CallTables& call, const ComputeGraph::ComputeNode& node);
  // Resharding time per pair of choices, rows: `from`; with `gradient`, forward and backward.
  const CostTable& EdgeUs(PlacementSetId from, PlacementSetId to, bool gradient);

  PlacementSetId Intern(const std::vector<Placement>& placements);
  const std::vector<int>& PlacementsOf(PlacementSetId set) const { return sets_[set]; }
  const Placement& placement(int id) const { return *placements_[id]; }
  // Shared by all mappings over these tables.
  MappingMemo* mapping_memo() const { return mapping_memo_.get(); }
  // Shared by all derivations of plans from these tables' choices.
  DerivationMemo* derivation_memo() const { return derivation_memo_.get(); }

 private:
  struct Caches;
  struct KnownCall;

  absl::StatusOr<KnownCall*> Find(const Operator& op, const std::vector<TensorType>& operands);
  absl::StatusOr<const CallTables*> Tables(int moment_dim, const CallRestriction* restriction,
                                           KnownCall* known);
  ChoiceOptions WholeOptions(int moment_dim) const;
  void AddFastestNode(ChoiceOptions options, CallTables* call);
  void DropDoubles(CallTables* call);
  int InternPlacement(const Placement& placement);
  PlacementSetId InternIds(std::vector<int> ids);
  // With the type that it is computed in.
  Placement InPrecision(Placement placement) const;
  float MoveUs(int from, int to, bool gradient);

  const RuleIndex& rules_;
  const CostModel& cost_;
  CostOptions options_;
  std::unique_ptr<MappingMemo> mapping_memo_ = std::make_unique<MappingMemo>();
  std::unique_ptr<DerivationMemo> derivation_memo_;
  std::vector<std::unique_ptr<Placement>> placements_;
  std::vector<std::vector<int>> sets_;
  std::unique_ptr<Caches> caches_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_COST_TABLES_H_
