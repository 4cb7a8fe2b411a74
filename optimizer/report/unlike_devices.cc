#include "optimizer/report/unlike_devices.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/against_text.h"
#include "pcg/support/bytes_text.h"

namespace isomer {
namespace {

double ComputeShareOf(int kind, const Explanation& explanation, const Machine& machine,
                      double step_us) {
  double sum_us = 0;
  int64_t count = 0;
  for (int32_t d : explanation.devices) {
    if (machine.kind_index(d) != kind) continue;
    sum_us += explanation.device_compute_us[d];
    ++count;
  }
  return count == 0 || step_us == 0 ? 0 : sum_us / static_cast<double>(count) / step_us;
}

std::string EvenName(const EvenCluster& even) {
  const std::string devices =
      absl::StrCat(even.machine.num_devices(), " ", even.machine.device_name());
  return even.is_part ? absl::StrCat("the ", devices, " alone")
                      : absl::StrCat("if all were ", devices);
}

}  // namespace

std::optional<UnlikeDevices> UnlikeDevicesOf(const OptimizeResult& result,
                                             const Explanation& explanation,
                                             const Machine& machine) {
  const std::vector<int> kinds = machine.kinds_in_use();
  if (kinds.size() == 1) return std::nullopt;
  UnlikeDevices unlike;
  for (int kind : kinds) {
    const auto peak = result.simulation.peak_bytes_of_kind.find(kind);
    UnlikeDevices::Kind facts{
        .name = machine.kinds[kind].name,
        .compute_share = ComputeShareOf(kind, explanation, machine, result.simulation.step_us),
        .peak_bytes = peak == result.simulation.peak_bytes_of_kind.end() ? 0 : peak->second,
        .memory_bytes = machine.kinds[kind].memory_bytes};
    for (int64_t d = 0; d < machine.num_devices(); ++d) {
      facts.devices += machine.kind_index(d) == kind;
    }
    unlike.kinds.push_back(std::move(facts));
  }
  unlike.without_loss_us = StepWithoutLoss(machine, result.even);
  if (unlike.without_loss_us > 0) {
    unlike.lost = 1 - unlike.without_loss_us / result.plan.predicted_step_us;
  }
  return unlike;
}

std::string UnlikeDevicesText(const UnlikeDevices& unlike, const OptimizeResult& result) {
  std::string text = "Unlike devices\n";
  for (const UnlikeDevices::Kind& kind : unlike.kinds) {
    absl::StrAppendFormat(&text, "  %-34s compute %.1f %% of the step, %s of %s\n",
                          absl::StrCat(kind.devices, " ", kind.name), 100 * kind.compute_share,
                          BytesText(kind.peak_bytes), BytesText(kind.memory_bytes));
  }
  const double plan_us = result.plan.predicted_step_us;
  for (const EvenCluster& even : result.even) {
    absl::StrAppendFormat(&text, "  %-34s ", EvenName(even));
    if (even.there.step_us == 0) {
      text += "not searched: no time was left\n";
    } else if (!even.fits) {
      text += "no plan found fits\n";
    } else {
      absl::StrAppendFormat(&text, "%10s a step  %s\n", TimeText(even.there.step_us, 4),
                            AgainstText(plan_us, even.there.step_us));
    }
  }
  if (unlike.without_loss_us > 0) {
    absl::StrAppendFormat(&text,
                          "  With each device as fast as in a cluster of its kind, a step would "
                          "take %s: %.1f %% of it\n  is lost by their being unlike.\n",
                          TimeText(unlike.without_loss_us, 4), 100 * unlike.lost);
  }
  return text;
}

Json UnlikeDevicesJson(const UnlikeDevices& unlike, const OptimizeResult& result) {
  Json json;
  json["kinds"] = Json::EmptyArray();
  for (const UnlikeDevices::Kind& kind : unlike.kinds) {
    Json one;
    one["name"] = kind.name;
    one["devices"] = kind.devices;
    one["compute_share"] = kind.compute_share;
    one["peak_bytes"] = kind.peak_bytes;
    one["memory_bytes"] = kind.memory_bytes;
    json["kinds"].Append(std::move(one));
  }
  json["even"] = Json::EmptyArray();
  for (const EvenCluster& even : result.even) {
    if (even.there.step_us == 0) continue;
    Json one;
    one["devices"] = even.machine.num_devices();
    one["kind"] = even.machine.device_name();
    one["those_there_are"] = even.is_part;
    one["fits"] = even.fits;
    one["predicted_step_us"] = even.there.step_us;
    if (even.here.has_value()) one["predicted_step_us_here"] = even.here->step_us;
    json["even"].Append(std::move(one));
  }
  if (unlike.without_loss_us > 0) {
    json["step_without_loss_us"] = unlike.without_loss_us;
    json["lost"] = unlike.lost;
  }
  return json;
}

}  // namespace isomer
