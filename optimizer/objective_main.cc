#include "optimizer/objective_main.h"

#include <bit>
#include <optional>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(
    std::string, objective, "latency",
    "in inference: latency, the least time of a step of the model's batch; or throughput, the "
    "batch, of 1, 2, 4 and so on, that the devices can share out, with most samples a second "
    "(docs/inference.md)");
ABSL_FLAG(double, most_step_ms, 0,
          "with --objective=throughput: a step may take no longer; 0: as long as it does");

namespace isomer {
namespace {

constexpr int64_t kMostBatch = int64_t{1} << 16;

}  // namespace

absl::Status CheckObjective(bool training) {
  const std::string objective = absl::GetFlag(FLAGS_objective);
  if (objective != "latency" && objective != "throughput") {
    return absl::InvalidArgumentError(
        absl::StrCat("--objective=", objective, ": there are latency and throughput"));
  }
  if (training) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"objective", "most_step_ms"}, "is for --mode=inference"));
  }
  if (!SeeksThroughput()) return RefuseFlags({"most_step_ms"}, "needs --objective=throughput");
  if (!(absl::GetFlag(FLAGS_most_step_ms) >= 0)) {
    return absl::InvalidArgumentError("--most_step_ms must not be negative");
  }
  return RefuseFlags({"batch_size", "compare"}, "does not go with --objective=throughput");
}

bool SeeksThroughput() { return absl::GetFlag(FLAGS_objective) == "throughput"; }

std::vector<int64_t> BatchesToTry(int64_t devices) {
  const int64_t odd_part = devices >> std::countr_zero(static_cast<uint64_t>(devices));
  std::vector<int64_t> batches;
  for (int64_t batch = 1; batch < odd_part; batch *= 2) batches.push_back(batch);
  for (int64_t batch = odd_part; batch <= kMostBatch; batch *= 2) batches.push_back(batch);
  return batches;
}

absl::StatusOr<OptimizeResult> PlanForThroughput(
    int64_t devices, const std::function<absl::StatusOr<OptimizeResult>(int64_t batch)>& plan,
    std::vector<BatchTrial>* trials) {
  const double most_us = absl::GetFlag(FLAGS_most_step_ms) * 1000;
  std::optional<OptimizeResult> best;
  double best_per_s = 0;
  absl::Status refused;
  for (const int64_t batch : BatchesToTry(devices)) {
    absl::StatusOr<OptimizeResult> planned = plan(batch);
    // A batch that is too small for a baseline's degrees, before one is large enough.
    if (absl::IsInvalidArgument(planned.status()) && trials->empty()) {
      if (refused.ok()) refused = planned.status();
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(OptimizeResult result, std::move(planned));
    BatchTrial trial{.batch = batch,
                     .step_us = result.plan.predicted_step_us,
                     .peak_bytes = result.plan.predicted_peak_bytes,
                     .fits = result.fits};
    trial.per_s = static_cast<double>(batch) * 1e6 / trial.step_us;
    trial.in_time = most_us == 0 || trial.step_us <= most_us;
    trials->push_back(trial);
    const bool is_good = trial.fits && trial.in_time;
    const bool is_better = is_good && trial.per_s > best_per_s;
    if (is_better || !best.has_value()) best = std::move(result);
    if (is_better) best_per_s = trial.per_s;
    // Larger ones need more memory, and take longer.
    if (!is_good) break;
  }
  if (!best.has_value()) return refused;
  return *std::move(best);
}

std::string TrialsText(const std::vector<BatchTrial>& trials) {
  std::string text =
      absl::StrFormat("\n%10s  %10s  %12s  %10s\n", "batch", "a step", "samples/s", "memory");
  for (const BatchTrial& trial : trials) {
    absl::StrAppendFormat(&text, "%10d  %10s  %12.1f  %10s%s\n", trial.batch,
                          TimeText(trial.step_us), trial.per_s, BytesText(trial.peak_bytes),
                          !trial.fits      ? "  (does not fit)"
                          : !trial.in_time ? "  (takes too long)"
                                           : "");
  }
  return text;
}

Json TrialsJson(const std::vector<BatchTrial>& trials) {
  Json json = Json::EmptyArray();
  for (const BatchTrial& trial : trials) {
    Json entry;
    entry["batch"] = trial.batch;
    entry["step_us"] = trial.step_us;
    entry["samples_per_s"] = trial.per_s;
    entry["peak_bytes"] = trial.peak_bytes;
    entry["fits"] = trial.fits;
    entry["in_time"] = trial.in_time;
    json.Append(std::move(entry));
  }
  return json;
}

}  // namespace isomer
