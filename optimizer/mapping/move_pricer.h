// Prices of moves, many times over: a resharding but for its reduction is a latency and a time for
// each byte that depend on how the two placements cut the tensor, not on its sizes, nor on the dims
// that neither cuts. So one of these lines serves tensors of all shapes.
#ifndef ISOMER_OPTIMIZER_MAPPING_MOVE_PRICER_H_
#define ISOMER_OPTIMIZER_MAPPING_MOVE_PRICER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "optimizer/cost/reshard_cost.h"

namespace isomer {

// A placement as reshardings see it. Those of equal structure differ in the sizes of dims alone.
struct PlacedTensor {
  Placement placement;
  int structure = 0;
  double bytes = 0;  // of the logical tensor
};

// What a move does to what one of its placements cuts: devices that they start at, copies, partials
// and dims, whichever they are, with extents and strides of either side.
using MoveCuts = absl::InlinedVector<int64_t, 24>;
MoveCuts CutsOfMove(const Placement& from, const Placement& to);

class MovePricer {
 public:
  explicit MovePricer(const CostModel& cost) : levels_(cost) {}
  const ReshardLevels& levels() const { return levels_; }

  PlacedTensor Place(const Placement& placement);
  // REQUIRES: CanReshard(from, to), no moments.
  double Us(const PlacedTensor& from, const PlacedTensor& to);

 private:
  // Of a byte of the logical tensor.
  struct Line {
    double fixed_us = 0, us_per_byte = 0;
  };
  ReshardLevels levels_;
  absl::flat_hash_map<std::string, int> structures_;
  absl::flat_hash_map<std::pair<int, int>, Line> lines_;  // by structures
  absl::flat_hash_map<MoveCuts, Line> lines_of_cuts_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MOVE_PRICER_H_
