#include "optimizer/report/throughput.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/profile/model_statistics.h"

namespace isomer {

Throughput ThroughputOf(const Plan& plan, const Machine& machine) {
  Throughput throughput;
  if (plan.predicted_step_us <= 0) return throughput;
  const ModelStatistics statistics = StatisticsOf(plan.model.graph);
  double advertised = 0, reached = 0;  // FLOPs per us
  for (int64_t device = 0; device < machine.num_devices(); ++device) {
    const DeviceKind& kind = machine.kind(device);
    reached += kind.FlopsPerUs(plan.precision);
    advertised += kind.FlopsPerUs(plan.precision) / kind.peak_fraction;
  }
  const double passes = plan.mode == "training" ? 3 : 1;
  const double flops_per_us = passes * statistics.product_flops / plan.predicted_step_us;
  const auto devices = static_cast<double>(machine.num_devices());
  const double per_s = 1e6 / plan.predicted_step_us / devices;
  throughput.samples_per_s = per_s * static_cast<double>(BatchSize(plan.model.graph));
  throughput.tokens_per_s = per_s * static_cast<double>(statistics.tokens);
  throughput.model_tflops = flops_per_us / devices / 1e6;
  throughput.mfu = flops_per_us / advertised;
  throughput.share_of_rate = flops_per_us / reached;
  return throughput;
}

std::string ThroughputText(const Throughput& throughput, const StepShares& shares, double step_us) {
  std::string text = "Each device: ";
  if (throughput.tokens_per_s > 0) {
    absl::StrAppendFormat(&text, "%.0f tokens/s", throughput.tokens_per_s);
  } else {
    absl::StrAppendFormat(&text, "%.1f samples/s", throughput.samples_per_s);
  }
  if (throughput.model_tflops > 0) {
    absl::StrAppendFormat(&text, ", %.1f TFLOP/s of the model (MFU %.1f %%)",
                          throughput.model_tflops, 100 * throughput.mfu);
  }
  if (step_us <= 0) return text + "\n";
  const auto percent = [&](double us) { return 100 * us / step_us; };
  absl::StrAppendFormat(&text,
                        "\n  computes %.1f %% of the step, communicates beside nothing %.1f %%, "
                        "waits %.1f %%\n",
                        percent(shares.compute_us), percent(shares.exposed_us()),
                        percent(shares.idle_us));
  std::vector<std::pair<double, std::string>> kinds;
  for (const auto& [what, us] : shares.exposed_communication_us) kinds.emplace_back(us, what);
  std::sort(kinds.rbegin(), kinds.rend());
  constexpr double kWorthALine = 0.1;  // percent
  for (const auto& [us, what] : kinds) {
    if (percent(us) < kWorthALine) break;
    absl::StrAppendFormat(&text, "  %5.1f %%  %s, exposed\n", percent(us), what);
  }
  return text;
}

}  // namespace isomer
