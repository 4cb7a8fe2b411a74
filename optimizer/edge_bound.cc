#include "optimizer/edge_bound.h"

#include <algorithm>

#include "optimizer/reshard_cost.h"

namespace isomer {

const CostTable& EdgeBounds::Us(PlacementSetId from, PlacementSetId to, bool gradient) {
  std::unique_ptr<CostTable>& table = us_[{from, to, gradient}];
  if (table != nullptr) return *table;
  table = std::make_unique<CostTable>(tables_.EdgeUs(from, to, gradient));
  const CostTable& forward = tables_.EdgeUs(from, to, false);
  for (int r = 0; r < table->rows; ++r) {
    const Placement& produced = tables_.placement(tables_.PlacementsOf(from)[r]);
    for (int c = 0; c < table->cols; ++c) {
      float& us = table->at(r, c);
      if (us <= 0 || us >= kImpossibleUs) continue;
      const Placement& needed = tables_.placement(tables_.PlacementsOf(to)[c]);
      // Nothing is summed up.
      if (produced.type.partials == needed.type.partials &&
          produced.type.copies == needed.type.copies) {
        continue;
      }
      const double forward_us = forward.at(r, c), back_us = us - forward_us;
      us = static_cast<float>(LeastUs(forward_us, produced, needed));
      if (gradient) {
        us += static_cast<float>(
            LeastUs(back_us, GradientPlacement(needed), GradientPlacement(produced)));
      }
    }
  }
  table->key = table->ContentKey();
  return *table;
}

double EdgeBounds::LeastUs(double us, const Placement& from, const Placement& to) const {
  const int64_t size = from.type.partials / to.type.partials;
  if (size <= 1) return us;
  const DeviceGroup group{from.view.start, from.view.strides.back(), size};
  const auto group_us = [&](Collective kind) {
    return tables_.cost().CollectiveUs(kind, from.type.LocalBytes(), group);
  };
  const double at_once_us = group_us(Collective::kAllReduce);
  const double in_turn_us = group_us(Collective::kReduceScatter) + group_us(Collective::kAllGather);
  return std::max(std::min(us, at_once_us), us - std::max(0.0, in_turn_us - at_once_us));
}

}  // namespace isomer
