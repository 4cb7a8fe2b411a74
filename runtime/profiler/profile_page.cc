#include "runtime/profiler/profile_page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "pcg/profile/calibration.h"

namespace isomer {
namespace {

// Half of the distance between the quartiles, as a share of the median.
template <typename Times>
double SpreadPercent(const Times& time) {
  return time.median_us == 0 ? 0 : 50 * (time.upper_us - time.lower_us) / time.median_us;
}

std::string KernelsText(const Profile& profile, int most_kernels) {
  std::vector<std::pair<std::string, KernelTime>> kernels(profile.kernels.begin(),
                                                          profile.kernels.end());
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
    return a.second.median_us > b.second.median_us;
  });
  if (static_cast<int>(kernels.size()) > most_kernels) kernels.resize(most_kernels);
  std::string text =
      absl::StrFormat("\nKernels: %d measured; the slowest\n%12s %8s %9s %8s %6s  %s\n",
                      profile.kernels.size(), "us", "+-", "GFLOP/s", "GB/s", "runs", "kernel");
  for (const auto& [key, time] : kernels) {
    const double us = std::max(time.median_us, 1e-3);
    absl::StrAppendFormat(&text, "%12.2f %6.1f %% %9.2f %8.2f %6d  %s\n", time.median_us,
                          SpreadPercent(time), time.flops / us / 1e3,
                          static_cast<double>(time.bytes) / us / 1e3, time.repetitions, key);
  }
  return text;
}

std::string TablesText(const Profile& profile) {
  std::string text;
  for (const auto& [key, table] : profile.tables) {
    absl::StrAppendFormat(&text, "\n%s\n%12s %12s %8s %8s\n", key, "bytes", "us", "+-", "GB/s");
    for (const SizeTime& time : table.times()) {
      const double us = std::max(time.median_us, 1e-3);
      absl::StrAppendFormat(&text, "%12d %12.2f %6.1f %% %8.2f\n", time.bytes, time.median_us,
                            SpreadPercent(time), static_cast<double>(time.bytes) / us / 1e3);
    }
  }
  return text;
}

std::string CalibrationText(const Profile& profile) {
  std::string text = absl::StrFormat(
      "\nCalibration: each kernel predicted from the others of its family\n%8s %14s %14s  %s\n",
      "kernels", "median error", "worst error", "family");
  int shown = 0;
  for (const Calibration::HeldOut& held_out : Calibration(profile).LeaveOneOut()) {
    absl::StrAppendFormat(&text, "%8d %12.1f %% %12.1f %%  %s\n", held_out.samples,
                          100 * held_out.median_error, 100 * held_out.worst_error, held_out.from);
    ++shown;
  }
  return shown == 0 ? "\nCalibration: no family has four kernels\n" : text;
}

}  // namespace

std::string ProfilePage(const Profile& profile, int most_kernels) {
  return absl::StrCat(
      "Profile of ", absl::StrJoin(profile.models, ", "), "\non ", profile.device.ToString(),
      absl::StrFormat("\nexecutor: %.2f us a kernel\n", profile.task_overhead_us),
      KernelsText(profile, most_kernels), TablesText(profile), CalibrationText(profile));
}

}  // namespace isomer
