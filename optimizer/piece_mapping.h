// The best mapping of one piece for every way to hold the tensors that cross its borders.
#ifndef ISOMER_OPTIMIZER_PIECE_MAPPING_H_
#define ISOMER_OPTIMIZER_PIECE_MAPPING_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cost_tables.h"
#include "optimizer/mapping.h"
#include "optimizer/splitting.h"
#include "optimizer/stopping.h"

namespace isomer {

// What crosses: placements are counted by their place in the sets. kNone: nothing crosses.
struct Borders {
  static constexpr PlacementSetId kNone = -1;
  PlacementSetId in = kNone, out = kNone;
};

class PieceMapping {
 public:
  // Maps `graph`, the piece's own or one that rewriting made of it. `enumerate_until`: null, or
  // without a dynamic program (mapping_enumeration.h) until then.
  static absl::StatusOr<PieceMapping> Solve(const Piece& piece, const Graph& graph,
                                            const Borders& borders, CostTables* tables,
                                            const Deadline* enumerate_until = nullptr);

  // Least time per placement of what crosses in (rows; one if nothing does) and out (columns).
  const CostTable& table() const { return table_; }
  bool exact() const { return mapping_.exact(); }
  double gap() const { return mapping_.gap(); }
  // The choice of every node that computes, by node id in `graph`.
  std::map<NodeId, ShardingChoice> Choices(int in, int out) const;

 private:
  ComputeGraph compute_;
  std::vector<const CallTables*> calls_;
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

#endif  // ISOMER_OPTIMIZER_PIECE_MAPPING_H_
