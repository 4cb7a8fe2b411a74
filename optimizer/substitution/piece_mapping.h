// The best mapping of one piece for all placements of the tensors that cross its borders.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_MAPPING_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_MAPPING_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/mapping_problem.h"
#include "optimizer/substitution/splitting.h"
#include "pcg/support/stopping.h"

namespace isomer {

// Possible placements of crossing tensors, indexed by their position in the sets. kNone: nothing
// crosses.
struct Borders {
  static constexpr PlacementSetId kNone = -1;
  PlacementSetId in = kNone, out = kNone;
  // The placement of each tensor of Piece::carried_in and carried_out, as a set of one: every use
  // takes it from its producer to there, and from there. kNone, or an empty list: free.
  std::vector<PlacementSetId> carried_in = {}, carried_out = {};
  friend auto operator<=>(const Borders&, const Borders&) = default;
};

class PieceMapping {
 public:
  // Maps `graph`, the piece's own or a rewritten one. `enumerate_until`: unless null, enumerates
  // mappings until then (mapping_enumeration.h). `concurrent_branches`: also of branches that only
  // meet (mapping_branches.h).
  static absl::StatusOr<PieceMapping> Solve(const Piece& piece, const Graph& graph,
                                            const Borders& borders, CostTables* tables,
                                            const Deadline* enumerate_until = nullptr,
                                            bool concurrent_branches = false);

  // Minimum us per placement of what crosses in (rows; one if nothing does) and out (columns).
  const CostTable& table() const { return table_; }
  bool exact() const { return mapping_.exact(); }
  double gap() const { return mapping_.gap(); }
  // The choice of every compute node, by node id in `graph`.
  std::map<NodeId, ShardingChoice> Choices(int in, int out) const;

  // A call that produces or uses a carried tensor.
  struct CarriedUse {
    bool is_made = false;
    float times = 1;     // number of uses by later pieces, if produced here
    size_t carried = 0;  // index in Piece::carried_out if produced, else in carried_in
    int node = 0;        // index of the call
    PlacementSetId set;  // its placements under the call's choices
    bool gradient = false;
  };
  const std::vector<CarriedUse>& carried_uses() const { return carried_uses_; }
  // Per call: the index of its choice.
  std::vector<int> Picks(int in, int out) const;

 private:
  // Records carried uses, and adds their cost under `borders` to the nodes of `problem`.
  absl::Status AddCarried(const Piece& piece, const Graph& graph, const Borders& borders,
                          CostTables* tables, MappingProblem* problem);

  ComputeGraph compute_;
  std::vector<const CallTables*> calls_;
  std::vector<CarriedUse> carried_uses_;
  MappingSolution mapping_;
  int out_node_ = -1;             // in compute_.nodes
  std::vector<int> out_columns_;  // per choice of the out node: the column, or -1
  CostTable table_;
};

// The distinct placements that the producer of `tensor` can leave it in. `moment_dim` is that of
// the producer (CostTables::Call). `restrictions` on the graph's nodes may be null.
absl::StatusOr<PlacementSetId> PlacementsLeft(const Graph& graph, TensorRef tensor, int moment_dim,
                                              const Restrictions* restrictions, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_MAPPING_H_
