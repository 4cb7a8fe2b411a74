// Where tensors that cross several pieces are held (splitting.h).
//
// A carried tensor has one placement for the whole chain, by way of which every use takes it from
// its maker; given the placement, pieces do not know of each other. Placements are found by turns:
// given the choices of all calls, each tensor is held where that costs least; given where tensors
// are held, choices are the best mapping of the chain, without algebra. No turn makes it worse. The
// first choices are those for which nothing that is carried costs anything to move. This is a
// heuristic, as a change of both at once may be better. A plan takes tensors the straight way: what
// the mapping costs is a bound for it from above where its maker does not leave it in that
// placement.
//
// Tensors that can be left in the same placements are held in the same, so that equal pieces stay
// equal.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_CARRIED_TENSORS_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_CARRIED_TENSORS_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/substitution/piece_mapping.h"
#include "optimizer/substitution/splitting.h"

namespace isomer {

// Fills in the carried placements of `borders`, one per piece, whose others are set.
// `placements_left`: of a tensor of the whole graph.
absl::Status HoldCarried(
    const std::vector<Piece>& pieces,
    const std::function<absl::StatusOr<PlacementSetId>(TensorRef)>& placements_left,
    CostTables* tables, std::vector<Borders>* borders);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_CARRIED_TENSORS_H_
