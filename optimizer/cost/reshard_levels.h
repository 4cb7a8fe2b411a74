// The levels of a machine, as resharding costs see them.
#ifndef ISOMER_OPTIMIZER_COST_RESHARD_LEVELS_H_
#define ISOMER_OPTIMIZER_COST_RESHARD_LEVELS_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "optimizer/cost/cost.h"

namespace isomer {

struct ReshardLevels {
  static constexpr int kMost = 6;

  struct Level {
    int64_t unit;   // devices per unit
    int64_t users;  // devices per link
    double bytes_per_us;
    bool shared, through;
  };

  explicit ReshardLevels(const CostModel& cost_in)
      : cost(cost_in), start_us(cost_in.machine().message_start_us()) {
    const Machine& machine = cost.machine();
    num_devices = 1;
    for (const Machine::Level& l : machine.levels) {
      const int64_t below = num_devices;
      num_devices *= l.count;
      levels.push_back(
          {num_devices, l.shared ? num_devices : below, l.bytes_per_us, l.shared, l.through});
    }
  }
  int size() const { return static_cast<int>(levels.size()); }
  const Level& operator[](int l) const { return levels[l]; }

  const CostModel& cost;
  const double start_us;
  int64_t num_devices;
  absl::InlinedVector<Level, kMost> levels;
};

// Time of a resharding without the reduction of partial sums: fixed, plus a term per byte of an
// element.
struct MoveLine {
  double fixed_us = 0, us_per_byte = 0;
  double Us(DataType dtype) const {
    return fixed_us + us_per_byte * static_cast<double>(BytesPerElement(dtype));
  }
};

// The busiest links and receivers of a resharding, level by level.
struct ReshardLoad {
  std::array<double, ReshardLevels::kMost> elements = {};  // maximum over its links
  std::array<int64_t, ReshardLevels::kMost> sources = {};  // maximum per receiver
  double outbound = 0;                                     // maximum per sender

  void Ask(int level, int64_t count) { sources[level] = std::max(sources[level], count); }
  void Carry(int level, double sum) { elements[level] = std::max(elements[level], sum); }

  // The message start, the slowest link's elements, and the latencies of the busiest receiver.
  MoveLine Line(const ReshardLevels& levels) const {
    double slowest_us = 0, latency_us = 0;
    for (int l = 0; l < levels.size(); ++l) {
      const ReshardLevels::Level& level = levels[l];
      const double most = sources[l] > 0 ? std::max(elements[l], outbound) : elements[l];
      slowest_us = std::max(slowest_us, most / level.bytes_per_us);
      latency_us += levels.cost.machine().LatencyUs(l, sources[l]);
    }
    if (latency_us + slowest_us == 0) return {};
    return {levels.start_us + latency_us, slowest_us};
  }
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COST_RESHARD_LEVELS_H_
