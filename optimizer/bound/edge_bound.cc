#include "optimizer/bound/edge_bound.h"

#include <algorithm>

#include "optimizer/cost/reshard_cost.h"
#include "optimizer/mapping/choice_pricer.h"

namespace isomer {

const CostTable& EdgeBounds::Us(PlacementSetId from, PlacementSetId to, bool gradient) {
  std::unique_ptr<CostTable>& table = us_[{from, to, gradient}];
  if (table != nullptr) return *table;
  const EdgeParts& parts = Parts(from, to, gradient);
  table = std::make_unique<CostTable>(parts.there);
  for (size_t i = 0; i < table->us.size(); ++i) table->us[i] += parts.back.us[i];
  table->key = table->ContentKey();
  return *table;
}

const EdgeParts& EdgeBounds::Parts(PlacementSetId from, PlacementSetId to, bool gradient) {
  std::unique_ptr<EdgeParts>& parts = parts_[{from, to, gradient}];
  if (parts != nullptr) return *parts;
  parts = std::make_unique<EdgeParts>();
  const std::vector<int>&rows = tables_.PlacementsOf(from), &cols = tables_.PlacementsOf(to);
  const CostTable zero(static_cast<int>(rows.size()), static_cast<int>(cols.size()), 0);
  parts->there = parts->back = parts->waited_there = parts->waited_back = zero;
  const auto in_precision = [this](int id) {
    Placement placement = tables_.placement(id);
    placement.type.dtype = ComputedIn(tables_.options().precision, placement.type.dtype);
    return placement;
  };
  std::vector<Placement> needs, needs_back;
  for (int id : cols) {
    needs.push_back(in_precision(id));
    needs_back.push_back(GradientPlacement(needs.back()));
  }
  for (int r = 0; r < zero.rows; ++r) {
    const Placement produced = in_precision(rows[r]), back_to = GradientPlacement(produced);
    for (int c = 0; c < zero.cols; ++c) {
      if (rows[r] == cols[c]) continue;
      if (!CanReshard(produced.type, needs[c].type)) {
        parts->there.at(r, c) = kImpossibleUs;
        continue;
      }
      const MoveBounds::Us there = moves_.Of(produced, needs[c]);
      parts->there.at(r, c) = static_cast<float>(there.anywhere);
      parts->waited_there.at(r, c) = static_cast<float>(there.first);
      if (!gradient) continue;
      const MoveBounds::Us back = moves_.Of(needs_back[c], back_to);
      parts->back.at(r, c) = static_cast<float>(back.anywhere);
      parts->waited_back.at(r, c) = static_cast<float>(back.first);
    }
  }
  return *parts;
}

// One message per device with a shard.
std::vector<float> EdgeBounds::OutputUs(PlacementSetId from) const {
  const CostModel& cost = tables_.cost();
  const Machine& machine = cost.machine();
  std::vector<float> result;
  for (int id : tables_.PlacementsOf(from)) {
    Placement placement = tables_.placement(id);
    placement.type.dtype = ComputedIn(tables_.options().precision, placement.type.dtype);
    std::map<int, int> messages;  // per level
    std::map<LinkId, int> to_here;
    const int64_t here = placement.view.start;
    for (int64_t device : DevicesOf(placement.view, placement.type)) {
      const int level = cost.LevelBetween(device, here);
      if (level < 0) continue;
      ++messages[level];
      for (LinkId link : machine.Path(device, here)) ++to_here[link];
    }
    double in_turn_us = 0;
    for (const auto& [level, count] : messages) {
      in_turn_us = std::max(in_turn_us, machine.LatencyUs(level, count));
    }
    double bytes_us = 0;
    for (const auto& [link, count] : to_here) {
      bytes_us = std::max(bytes_us, count * static_cast<double>(placement.type.LocalBytes()) /
                                        machine.link(link).bytes_per_us);
    }
    const bool sends = !messages.empty() && placement.type.copies == 1;
    const double us = sends ? machine.message_start_us() + in_turn_us + bytes_us : 0;
    result.push_back(static_cast<float>(us));
  }
  return result;
}

}  // namespace isomer
