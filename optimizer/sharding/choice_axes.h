// The axes that choices of a call are made of: lists of (dim, degree), outermost first, that use up
// the devices.
//
// All ordered lists of up to three dims and all divisors are too many on a large machine (16,384
// devices and 5 dims: 5,000), and cost tables grow with their square. So they come in tiers, until
// `limit` is reached:
//
//   1  the unsplit call on one device; each dim over all devices, over one unit of each level of
//      the machine, or as far as it divides, the other devices idle
//   2  two dims, with the boundary between them at units of the levels, then at other divisors
//   3  three dims, with a boundary at a unit of a level
//
// Above 1,024 devices boundaries between nodes are spaced by factors of sixteen, so that few
// devices represent all of a plan (pcg/schedule/symmetry/device_classes.h). Lists that a tier omits
// are close to some that it has: boundaries are thinned evenly in the logarithm, so that the best
// degree is missed by a known factor (`Thinned`), and a third axis that ends within a node shares
// its links with another.
#ifndef ISOMER_OPTIMIZER_SHARDING_CHOICE_AXES_H_
#define ISOMER_OPTIMIZER_SHARDING_CHOICE_AXES_H_

#include <compare>
#include <cstdint>
#include <vector>

namespace isomer {

// In place of an iteration dim: devices of which the first alone computes; devices each of which
// computes the same.
inline constexpr int kIdleAxis = -1;
inline constexpr int kCopyAxis = -2;

// Ascending, from 1 to the number itself.
std::vector<int64_t> DivisorsOf(int64_t number);

struct Axis {
  int dim;  // an iteration dim, kIdleAxis or kCopyAxis
  int64_t degree;
  friend auto operator<=>(const Axis&, const Axis&) = default;
};

struct AxisOptions {
  int64_t num_devices = 1;
  int max_axes = 3;                 // with degree above 1
  int limit = 400;                  // approximate number of lists
  std::vector<int64_t> units = {};  // devices per unit of each level
};

struct SplitDim {
  int dim;
  int64_t size;  // a multiple of degrees
};

// At most `count` of `values` (ascending), including both ends, with ratios of neighbours as equal
// as possible.
std::vector<int64_t> Thinned(const std::vector<int64_t>& values, int count);

std::vector<std::vector<Axis>> EnumerateAxes(const std::vector<SplitDim>& dims,
                                             const AxisOptions& options);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CHOICE_AXES_H_
