#include "optimizer/cost/reshard_cost.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "optimizer/cost/reshard_by_devices.h"
#include "optimizer/cost/reshard_by_digits.h"
#include "optimizer/cost/reshard_by_shards.h"

namespace isomer {
namespace {

struct InOneUnit {
  ReshardLevels levels;
  Placement from, to;
};

// If both placements index the same dim by the outermost digits of device numbers, units of devices
// are independent and symmetric: returns one of them, with its share of the dim. nullopt if there
// are no such units.
std::optional<InOneUnit> OnUnitOf(const ReshardLevels& levels, const Placement& from,
                                  const Placement& to) {
  if (from.view.start != 0 || to.view.start != 0) return std::nullopt;
  const int64_t all = levels.num_devices;
  const auto is_outermost = [&](const Placement& placement, int dim) {
    const int64_t degree = placement.type.dims[dim].degree;
    return degree > 1 && placement.view.OuterOf(dim) == nullptr &&
           degree * placement.view.strides[dim] == all;
  };
  for (int i = 0; i < from.type.rank(); ++i) {
    if (!is_outermost(from, i) || !is_outermost(to, i)) continue;
    int64_t unit = std::lcm(from.view.strides[i], to.view.strides[i]);
    for (const ReshardLevels::Level& level : levels.levels) {
      if (level.unit % unit != 0) unit = std::lcm(unit, level.unit);
    }
    if (unit >= all || all % unit != 0) return std::nullopt;
    InOneUnit part{levels, from, to};
    for (Placement* placement : {&part.from, &part.to}) {
      placement->type.dims[i].size /= all / unit;
      placement->type.dims[i].degree /= all / unit;
    }
    auto& kept = part.levels.levels;
    while (kept.size() > 1 && kept[kept.size() - 2].unit >= unit) kept.pop_back();
    kept.back().unit = unit;
    if (kept.back().shared) kept.back().users = unit;
    part.levels.num_devices = unit;
    return part;
  }
  return std::nullopt;
}

}  // namespace

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
                                  GroupOfAxis(from.view, from.type.rank() + 1, size));
}

MoveLine MoveLineOf(const ReshardLevels& levels, const Placement& from, const Placement& to) {
  if (from == to) return {};
  if (const auto line = ReshardByDigits(levels, from, to)) return *line;
  if (const auto part = OnUnitOf(levels, from, to)) {
    return MoveLineOf(part->levels, part->from, part->to);
  }
  const std::optional<MoveLine> line = ReshardByDevices(levels, from, to);
  return line.has_value() ? *line : ReshardByShards(levels.cost, from, to);
}

Placement GradientPlacement(const Placement& placement) {
  Placement gradient{GradientType(placement.type), placement.view};
  std::swap(gradient.view.strides.end()[-1], gradient.view.strides.end()[-2]);
  const int copies = placement.type.rank(), partials = copies + 1;
  for (OuterStride& outer : gradient.view.outer) {
    if (outer.axis >= copies) outer.axis = outer.axis == copies ? partials : copies;
  }
  const auto by_axis = [](const OuterStride& a, const OuterStride& b) { return a.axis < b.axis; };
  std::sort(gradient.view.outer.begin(), gradient.view.outer.end(), by_axis);
  return gradient;
}

double EdgeUs(const CostModel& cost, const Placement& produced, const Placement& needed,
              bool gradient) {
  const double forward = ReshardUs(cost, produced, needed);
  if (!gradient) return forward;
  return forward + ReshardUs(cost, GradientPlacement(needed), GradientPlacement(produced));
}

}  // namespace isomer
