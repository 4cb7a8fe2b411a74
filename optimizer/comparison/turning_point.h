// What would have to change for another plan to win: the same two plans on machines of other rates.
#ifndef ISOMER_OPTIMIZER_COMPARISON_TURNING_POINT_H_
#define ISOMER_OPTIMIZER_COMPARISON_TURNING_POINT_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"

namespace isomer {

// How far a rate is changed, both ways.
inline constexpr double kFarthestRate = 16;

// The rates of a machine that are changed together, each with its name for people: those of links
// between nodes, of links within a node (all links, of a machine of named links), of devices
// (products and memory). Rates that the machine lacks are left out.
struct MachineRates {
  std::string name;  // "links between nodes"
  std::function<void(double factor, Machine* machine)> scale;
};
std::vector<MachineRates> RatesOf(const Machine& machine);

struct TurningPoint {
  std::string rates;
  // How many times as fast these have to be for both steps to take as long, to 2 %, the nearest to
  // 1; absent: from 1/kFarthestRate to kFarthestRate the same plan is faster.
  std::optional<double> factor;
};

// The nearest factor, of those up to `farthest` times as fast or slow, at which `difference`
// changes its sign. Factors that are powers of 2 are tried, the nearest to 1 first. REQUIRES:
// farthest is such a power.
std::optional<double> NearestSignChange(const std::function<double(double factor)>& difference,
                                        double farthest);

// REQUIRES: both plans are for the machine of `cost`, which has no profile: measured times do not
// change with a machine's rates.
absl::StatusOr<std::vector<TurningPoint>> TurningPointsOf(const Plan& a, const Plan& b,
                                                          const CostModel& cost);

// A line for each: "links between nodes: from 3.1 times their speed on, B is faster". `a` and `b`
// are the plans' names, `a` of the faster one.
std::string TurningPointsText(const std::vector<TurningPoint>& points, const std::string& a,
                              const std::string& b);
Json TurningPointsJson(const std::vector<TurningPoint>& points);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_TURNING_POINT_H_
