// Placements of tensors that cross several pieces (splitting.h).
//
// A carried tensor has one placement for the full chain, from which every use takes it; given the
// placement, pieces are independent. Placements are found by alternation: given the choices of all
// calls, each tensor gets its cheapest placement; given the placements, choices are the best
// mapping of the chain, without algebra. Neither step raises the cost. The first choices are those
// under which carried tensors are free to move. This is a heuristic: changing both at once may be
// better. A plan reshards directly from producer to user, so where the producer leaves the tensor
// in another placement, the mapping's cost is an upper bound.
//
// Tensors with the same possible placements get the same one, so that equal pieces stay equal.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_CARRIED_TENSORS_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_CARRIED_TENSORS_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/substitution/piece_mapping.h"
#include "optimizer/substitution/splitting.h"

namespace isomer {

// Sets the carried placements of `borders`, one per piece, whose other fields are set.
// `placements_left`: PlacementsLeft (piece_mapping.h) of a tensor of the full graph.
absl::Status HoldCarried(
    const std::vector<Piece>& pieces,
    const std::function<absl::StatusOr<PlacementSetId>(TensorRef)>& placements_left,
    CostTables* tables, std::vector<Borders>* borders);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_CARRIED_TENSORS_H_
