#include "optimizer/comparison/turning_point.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// A sign change is found to this.
constexpr double kPrecision = 0.02;

void ScaleDevices(double factor, Machine* machine) {
  for (DeviceKind& kind : machine->kinds) {
    kind.flops_per_us *= factor;
    kind.memory_bytes_per_us *= factor;
    for (auto& [dtype, rate] : kind.flops_per_us_of) rate *= factor;
  }
}

// Between `low` and `high`, at which the signs differ.
double Bisected(const std::function<double(double)>& difference, double low, double high) {
  const bool sign_of_low = difference(low) > 0;
  while (high / low > 1 + kPrecision) {
    const double middle = std::sqrt(low * high);
    ((difference(middle) > 0) == sign_of_low ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

std::vector<MachineRates> RatesOf(const Machine& machine) {
  std::vector<MachineRates> rates;
  if (!machine.topology.empty()) {
    rates.push_back({"links", [](double factor, Machine* scaled) {
                       scaled->topology.ScaleBandwidths(factor);
                     }});
  } else if (machine.num_devices() > 1) {
    const size_t last = machine.levels.size() - 1;
    if (machine.num_nodes() > 1) {
      rates.push_back({"links between nodes", [last](double factor, Machine* scaled) {
                         scaled->levels[last].bytes_per_us *= factor;
                       }});
    }
    if (machine.devices_per_node() > 1) {
      rates.push_back({"links within a node", [last](double factor, Machine* scaled) {
                         for (size_t l = 0; l < last; ++l) scaled->levels[l].bytes_per_us *= factor;
                       }});
    }
  }
  rates.push_back({"devices", ScaleDevices});
  return rates;
}

std::optional<double> NearestSignChange(const std::function<double(double)>& difference,
                                        double farthest) {
  const bool sign = difference(1) > 0;
  for (double factor = 2; factor <= farthest; factor *= 2) {
    if ((difference(factor) > 0) != sign) {
      return Bisected(difference, factor / 2, factor);
    }
    if ((difference(1 / factor) > 0) != sign) {
      return Bisected(difference, 1 / factor, 2 / factor);
    }
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<TurningPoint>> TurningPointsOf(const Plan& a, const Plan& b,
                                                          const CostModel& cost) {
  ISOMER_ASSIGN_OR_RETURN(const PreparedPlan ready_a, PreparedPlan::Prepare(cost, a));
  ISOMER_ASSIGN_OR_RETURN(const PreparedPlan ready_b, PreparedPlan::Prepare(cost, b));
  // Steps that were predicted closely, with all devices of a node, are a little longer.
  const double of_a = a.predicted_step_us / ready_a.StepUs(cost);
  const double of_b = b.predicted_step_us / ready_b.StepUs(cost);
  std::vector<TurningPoint> points;
  for (const MachineRates& rates : RatesOf(cost.machine())) {
    const auto difference = [&](double factor) {
      Machine machine = cost.machine();
      rates.scale(factor, &machine);
      const CostModel scaled(std::move(machine));
      return of_b * ready_b.StepUs(scaled) - of_a * ready_a.StepUs(scaled);
    };
    points.push_back({rates.name, NearestSignChange(difference, kFarthestRate)});
  }
  return points;
}

std::string TurningPointsText(const std::vector<TurningPoint>& points, const std::string& a,
                              const std::string& b) {
  std::string text;
  for (const TurningPoint& point : points) {
    if (!point.factor.has_value()) {
      absl::StrAppendFormat(&text, "  %s: from 1/%g to %g times their speed, %s stays faster\n",
                            point.rates, kFarthestRate, kFarthestRate, a);
    } else if (*point.factor >= 1) {
      absl::StrAppendFormat(&text, "  %s: from %.2g times their speed on, %s is faster\n",
                            point.rates, *point.factor, b);
    } else {
      absl::StrAppendFormat(&text, "  %s: below 1/%.2g of their speed, %s is faster\n", point.rates,
                            1 / *point.factor, b);
    }
  }
  return text;
}

Json TurningPointsJson(const std::vector<TurningPoint>& points) {
  Json json = Json::EmptyArray();
  for (const TurningPoint& point : points) {
    Json one;
    one["rates"] = point.rates;
    if (point.factor.has_value()) one["factor"] = *point.factor;
    json.Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
