// The ways to price a resharding agree, on placements drawn at random.
#include "optimizer/cost/reshard_by_digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>

#include "optimizer/cost/reshard_by_devices.h"
#include "optimizer/cost/reshard_by_shards.h"
#include "optimizer/cost/reshard_cost.h"

namespace isomer {
namespace {

Machine LevelsOf(std::vector<Machine::Level> levels) {
  Machine machine;
  machine.kinds[0].flops_per_us = machine.kinds[0].memory_bytes_per_us = 1e5;
  machine.kinds[0].launch_us = 3;
  machine.levels = std::move(levels);
  return machine;
}

std::vector<Machine> Machines() {
  return {
      LevelsOf({{"node", 8, 100, 1}, {"cluster", 2, 10, 5}}),
      LevelsOf({{"node", 4, 100, 0}, {"cluster", 1, 100, 0}}),
      LevelsOf(
          {{"pair", 2, 50, 1, false, true}, {"node", 2, 80, 2, true, true}, {"cluster", 4, 10, 7}}),
      LevelsOf({{"socket", 3, 60, 1}, {"node", 2, 40, 2, true}, {"cluster", 3, 12, 6}}),
      LevelsOf({{"node", 12, 100, 1, false, true}, {"cluster", 2, 10, 5}})};
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  // Axes in any order on a part of the machine, as choices have them.
  Placement OnMachine(int64_t devices) {
    Placement placement;
    placement.type = SequentialType({48, 96, 24});
    placement.view.strides.assign(5, 0);
    int64_t part = devices;
    if (Below(3) == 0) {
      part = DivisorOf(devices);
      placement.view.start = part * Below(devices / part);
    }
    std::vector<int> axes = {0, 1, 2, 3, 4, -1};  // dims, copies, partials, idle
    std::shuffle(axes.begin(), axes.end(), random_);
    // Copies, or partial sums, may walk in two strides.
    if (axes[0] >= 3) axes[2] = axes[0];
    int64_t stride = 1;
    for (int i = 0; i < 4 && stride < part; ++i) {
      const int64_t degree = i == 3 ? part / stride : DivisorOf(part / stride);
      const int axis = axes[i];
      int64_t* count = Count(axis, &placement.type);
      if (count != nullptr && degree > 1) {
        if (axis < 3 && placement.type.dims[axis].size % degree != 0) continue;
        const bool again = *count > 1;
        if (again && stride > *count * placement.view.strides[axis]) {
          if (!placement.view.outer.empty()) continue;
          placement.view.outer.push_back({axis, *count, stride});
        }
        *count *= degree;
        if (!again) placement.view.strides[axis] = stride;
      }
      stride *= degree;
    }
    return placement;
  }

 private:
  int64_t DivisorOf(int64_t n) {
    int64_t d = 1 + Below(n);
    while (n % d != 0) --d;
    return d;
  }
  static int64_t* Count(int axis, TensorType* type) {
    if (axis < 0) return nullptr;
    if (axis == 3) return &type->copies;
    return axis == 4 ? &type->partials : &type->dims[axis].degree;
  }

  std::mt19937_64 random_;
};

void ExpectAgree(const std::optional<MoveLine>& line, const MoveLine& expected,
                 const Placement& from, const Placement& to) {
  if (!line.has_value()) return;
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-6 * b; };
  EXPECT_TRUE(near(line->fixed_us, expected.fixed_us) &&
              near(line->us_per_byte, expected.us_per_byte))
      << "from " << from.type.ToString() << " " << from.view.ToString() << " to "
      << to.type.ToString() << " " << to.view.ToString();
}

TEST(ReshardByDigits, AgreesWithShardByShardAndDeviceByDevice) {
  int64_t by_digits = 0, by_devices = 0, all = 0, in_two_strides = 0;
  for (const Machine& machine : Machines()) {
    const CostModel cost(machine);
    const ReshardLevels levels(cost);
    Draw draw(7);
    for (int i = 0; i < 6000; ++i) {
      const Placement from = draw.OnMachine(machine.num_devices());
      const Placement to = draw.OnMachine(machine.num_devices());
      if (!CanReshard(from.type, to.type) || from == to) continue;
      ++all;
      const MoveLine expected = ReshardByShards(cost, from, to);
      const auto digits = ReshardByDigits(levels, from, to);
      const auto devices = ReshardByDevices(levels, from, to);
      ExpectAgree(digits, expected, from, to);
      ExpectAgree(devices, expected, from, to);
      // Where units of devices are alike, of one of them.
      ExpectAgree(MoveLineOf(levels, from, to), expected, from, to);
      if (HasFailure()) return;
      by_digits += digits.has_value();
      by_devices += devices.has_value();
      in_two_strides += digits.has_value() && !(from.view.outer.empty() && to.view.outer.empty());
    }
  }
  // Degrees of 2 and 3 meet in some.
  EXPECT_GT(by_digits, all / 2);
  EXPECT_GT(by_digits, 3000);
  EXPECT_GT(in_two_strides, 300);
  EXPECT_GT(by_devices, by_digits);
}

}  // namespace
}  // namespace isomer
