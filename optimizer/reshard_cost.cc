#include "optimizer/reshard_cost.h"

#include <optional>
#include <utility>

#include "optimizer/reshard_by_devices.h"
#include "optimizer/reshard_by_digits.h"
#include "optimizer/reshard_by_shards.h"

namespace isomer {

bool CanReshard(const TensorType& from, const TensorType& to) {
  return to.copies % from.copies == 0 && from.partials % to.partials == 0;
}

double ReshardUs(const CostModel& cost, const Placement& from, const Placement& to) {
  const ReshardLevels levels(cost);
  return ReduceUs(levels, from, to) + MoveLineOf(levels, from, to).Us(from.type.dtype);
}

double ReduceUs(const ReshardLevels& levels, const Placement& from, const Placement& to) {
  const int64_t size = from.type.partials / to.type.partials;
  if (size == 1) return 0;
  return levels.cost.CollectiveUs(Collective::kReduceScatter, from.type.LocalBytes(),
                                  DeviceGroup{from.view.start, from.view.strides.back(), size});
}

MoveLine MoveLineOf(const ReshardLevels& levels, const Placement& from, const Placement& to) {
  if (from == to) return {};
  std::optional<MoveLine> line = ReshardByDigits(levels, from, to);
  if (!line.has_value()) line = ReshardByDevices(levels, from, to);
  return line.has_value() ? *line : ReshardByShards(levels.cost, from, to);
}

Placement GradientPlacement(const Placement& placement) {
  Placement gradient{GradientType(placement.type), placement.view};
  std::swap(gradient.view.strides.end()[-1], gradient.view.strides.end()[-2]);
  return gradient;
}

double EdgeUs(const CostModel& cost, const Placement& produced, const Placement& needed,
              bool gradient) {
  const double forward = ReshardUs(cost, produced, needed);
  if (!gradient) return forward;
  return forward + ReshardUs(cost, GradientPlacement(needed), GradientPlacement(produced));
}

}  // namespace isomer
