// Resharding prices, memoised. But for the reduction of partial sums, resharding costs a latency
// plus a time per byte, which depend on how the two placements shard the tensor, but not on its
// size or on dims that neither shards. So one such line serves tensors of all shapes.
#ifndef ISOMER_OPTIMIZER_MAPPING_MOVE_PRICER_H_
#define ISOMER_OPTIMIZER_MAPPING_MOVE_PRICER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "optimizer/cost/reshard_cost.h"

namespace isomer {

// Placements of equal structure differ only in the sizes of dims.
struct PlacedTensor {
  Placement placement;
  int structure = 0;
  double bytes = 0;  // of the logical tensor
};

// What the cost of a move depends on: first devices, and of copies, partials and sharded dims, in
// an order that does not depend on which dims these are, kNumbersOfCut numbers: extent, stride,
// period and outer stride (0: none) before, and after.
constexpr int kNumbersOfCut = 8;
using MoveCuts = absl::InlinedVector<int64_t, 2 + 4 * kNumbersOfCut>;
MoveCuts CutsOfMove(const Placement& from, const Placement& to);

class MovePricer {
 public:
  explicit MovePricer(const CostModel& cost) : levels_(cost) {}
  const ReshardLevels& levels() const { return levels_; }

  PlacedTensor Place(const Placement& placement);
  // ReshardUs in microseconds. REQUIRES: CanReshard(from, to), one micro-batch.
  double Us(const PlacedTensor& from, const PlacedTensor& to);

 private:
  // Per byte of the logical tensor.
  struct Line {
    double fixed_us = 0, us_per_byte = 0;
  };
  ReshardLevels levels_;
  absl::flat_hash_map<std::string, int> structures_;
  absl::flat_hash_map<std::pair<int, int>, Line> lines_;  // by both structures
  absl::flat_hash_map<MoveCuts, Line> lines_of_cuts_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MOVE_PRICER_H_
