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
  return ReshardUs(ReshardLevels(cost), from, to);
}

double ReshardUs(const ReshardLevels& levels, const Placement& from, const Placement& to) {
  if (from == to) return 0;
  std::optional<double> us = ReshardByDigits(levels, from, to);
  if (!us.has_value()) us = ReshardByDevices(levels, from, to);
  return us.has_value() ? *us : ReshardByShards(levels.cost, from, to);
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
