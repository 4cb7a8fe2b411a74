// Mappings by hand: for every call the first that is possible of a few choices that somebody
// preferences for, knowing what its dims stand for (batch_dims.h).
#ifndef ISOMER_OPTIMIZER_MAPPING_ROLE_MAPPING_H_
#define ISOMER_OPTIMIZER_MAPPING_ROLE_MAPPING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/compute_graph.h"

namespace isomer {

// A choice of axes; those that are left over of the devices idle. `model`: the iteration dim that
// is split by tensor parallelism, for those behind it to know; -1: none.
struct ShardingPreference {
  std::vector<Axis> axes;
  int64_t start = 0;  // counted from the first device of the tables' options
  int model = -1;
};

struct CallToMap {
  NodeId id;
  const ComputeGraph::ComputeNode& node;
  const ChoiceSpace& space;
  const std::vector<DimRole>& roles;  // of iteration dims
  int64_t devices;                    // to deal out

  const Declaration& declaration() const { return space.sharding.declaration; }
  // The first iteration dim of this role that a rule splits, or kIdleAxis.
  int DimOf(DimRole role) const;
  // A product of a tensor with a stored one.
  bool IsProductWithWeight() const { return node.operands.size() == 2 && ByWeight(); }
  // The largest degree of `dim` up to `degree` that divides both.
  int64_t DegreeFor(int dim, int64_t degree) const;
  // The batch split as far as `devices` go, or of a call that arranges a weight what splits
  // furthest; then the call as a whole, on the first device. What micro-batches leave of the batch
  // counts.
  void AddDataParallel(std::vector<ShardingPreference>* preferences) const;
  // The dim that splits furthest, if any. A weight that other calls read as it is (the embedding
  // that is also the last product's) is then gathered by all, not sent to each by one.
  void AddArrangedWeight(std::vector<ShardingPreference>* preferences) const;

 private:
  bool ByWeight() const;
};

// The preferences for one call, best first. Must end with some that are always possible
// (AddDataParallel's are).
using PreferencesOfCall = std::function<std::vector<ShardingPreference>(const CallToMap&)>;

// Gives the calls of `mapped` that have no choice one: those that arrange weights, which a piece of
// the graph cannot tell from weights that are stored as arranged.
absl::Status MapArrangedWeights(CostTables* tables, MappedModel* mapped);

// Maps `graph` onto the devices, and into the micro-batches, of the tables' options. Calls of the
// same operator, types and roles get the same choice unless `by_place` says that preferences depend
// on the call's place in the graph.
absl::StatusOr<MappedModel> MapByRoles(const Graph& graph, const PreferencesOfCall& preferences,
                                       bool by_place, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_ROLE_MAPPING_H_
