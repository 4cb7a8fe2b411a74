// Which axes a call is tried on a machine with: lists of (dim, degree), outermost first, that use
// up the devices.
//
// All ordered lists of up to three dims and all divisors are too many on a large machine (16,384
// devices and 5 dims: 5,000), and the tables of the search grow with their square. So they come in
// tiers, until `limit` is reached:
//
//   1  the whole call on one device; each dim over all devices, over one unit of each level of the
//      machine, or as far as it goes, the other devices idle
//   2  two dims, with the border between them at units of the levels, then at other divisors
//   3  three dims, a border of them at a unit of a level
//
// Above 1,024 devices borders between nodes are sixteen times as far out as the one before, so that
// few devices stand for all of a plan (pcg/schedule/symmetry/device_classes.h). What a tier leaves
// out is near to what it has: borders are thinned evenly in the logarithm, so that a degree that
// would be best is missed by a factor that is stated (`Thinned`), and a third axis that ends within
// a node is one of two that share its links.
#ifndef ISOMER_OPTIMIZER_SHARDING_CHOICE_AXES_H_
#define ISOMER_OPTIMIZER_SHARDING_CHOICE_AXES_H_

#include <compare>
#include <cstdint>
#include <vector>

namespace isomer {

inline constexpr int kIdleAxis = -1;

struct Axis {
  int dim;  // an iteration dim, or kIdleAxis
  int64_t degree;
  friend auto operator<=>(const Axis&, const Axis&) = default;
};

struct AxisOptions {
  int64_t num_devices = 1;
  int max_axes = 3;                 // of degree above 1
  int limit = 400;                  // lists, about
  std::vector<int64_t> units = {};  // devices in a unit of each level of the machine
};

struct SplitDim {
  int dim;
  int64_t size;  // degrees divide it
};

// At most `count` of `values` (ascending), the ends among them; neighbours differ by ratios as
// equal as can be.
std::vector<int64_t> Thinned(const std::vector<int64_t>& values, int count);

std::vector<std::vector<Axis>> EnumerateAxes(const std::vector<SplitDim>& dims,
                                             const AxisOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CHOICE_AXES_H_
