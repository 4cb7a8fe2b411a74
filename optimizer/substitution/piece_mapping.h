// The best mapping of one piece for every way to hold the tensors that cross its borders.
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

// What crosses: placements are counted by their place in the sets. kNone: nothing crosses.
struct Borders {
  static constexpr PlacementSetId kNone = -1;
  PlacementSetId in = kNone, out = kNone;
  // The placement that each tensor of Piece::carried_in and carried_out is held in, as a set of
  // one: every use takes it there from its maker, and from there. kNone, or none at all: that costs
  // nothing.
  std::vector<PlacementSetId> carried_in = {}, carried_out = {};
  friend auto operator<=>(const Borders&, const Borders&) = default;
};

class PieceMapping {
 public:
  // Maps `graph`, the piece's own or one that rewriting made of it. `enumerate_until`: null, or
  // without a dynamic program (mapping_enumeration.h) until then. `concurrent_branches`: also those
  // that only meet (mapping_branches.h).
  static absl::StatusOr<PieceMapping> Solve(const Piece& piece, const Graph& graph,
                                            const Borders& borders, CostTables* tables,
                                            const Deadline* enumerate_until = nullptr,
                                            bool concurrent_branches = false);

  // Least time per placement of what crosses in (rows; one if nothing does) and out (columns).
  const CostTable& table() const { return table_; }
  bool exact() const { return mapping_.exact(); }
  double gap() const { return mapping_.gap(); }
  // The choice of every node that computes, by node id in `graph`.
  std::map<NodeId, ShardingChoice> Choices(int in, int out) const;

  // A call that makes or uses a carried tensor.
  struct CarriedUse {
    bool is_made = false;
    float times = 1;     // as often as later pieces use it if it is made
    size_t carried = 0;  // its place in Piece::carried_out if it is made, else in carried_in
    int node = 0;        // the call
    PlacementSetId set;  // how its choices make or take it
    bool gradient = false;
  };
  const std::vector<CarriedUse>& carried_uses() const { return carried_uses_; }
  // The place of the choice of every call in its space.
  std::vector<int> Picks(int in, int out) const;

 private:
  // Notes carried uses, and adds what they cost under `borders` to the nodes of `problem`.
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

// The placements that the producer of `tensor` can leave it in, each once. `moment_dim` is that of
// the producer (CostTables::Call).
// `restrictions` of that graph's nodes may be null.
absl::StatusOr<PlacementSetId> PlacementsLeft(const Graph& graph, TensorRef tensor, int moment_dim,
                                              const Restrictions* restrictions, CostTables* tables);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_PIECE_MAPPING_H_
