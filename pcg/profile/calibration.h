// Times of kernels that were not measured, from those that were.
//
// Kernels of one family (KernelFamily: operator, data type, pass) take about
//     launch + flops / rate + bytes / bandwidth,   all three terms non-negative,
// but the rates depend on the shape. So the three numbers are fitted anew for each question, by
// weighted least squares on relative errors: measured kernels near the one asked for, in the
// logarithms of FLOPs and bytes, weigh more (locally weighted regression, Cleveland 1979), and
// those that the fit misses by far weigh less (Huber 1964). A family with fewer than three measured
// kernels borrows from its class: contractions, or all else, of its data type and pass.
#ifndef ISOMER_PCG_PROFILE_CALIBRATION_H_
#define ISOMER_PCG_PROFILE_CALIBRATION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "pcg/profile/profile.h"

namespace isomer {

struct KernelSample {
  double flops = 0, bytes = 0, us = 0;
};

// The time at (flops, bytes), fitted to `samples`. REQUIRES: samples are not empty, their times
// positive.
double FitUs(absl::Span<const KernelSample> samples, double flops, double bytes);

class Calibration {
 public:
  explicit Calibration(const Profile& profile);

  struct Estimate {
    double us = 0;
    std::string from;    // the family or class that it was fitted to
    int neighbours = 0;  // measured kernels of it
  };
  // Nothing if the profile has too few kernels of the family and of its class.
  std::optional<Estimate> UsOf(const std::string& family, double flops, double bytes) const;

  // How well the fit predicts measured kernels that are left out of it.
  struct HeldOut {
    std::string from;
    int samples = 0;
    double median_error = 0, worst_error = 0;  // relative
  };
  // Of a family or class that has at least four. REQUIRES: UsOf has named `from`.
  HeldOut LeaveOneOut(const std::string& from) const;
  // Of all families with enough kernels.
  std::vector<HeldOut> LeaveOneOut() const;

 private:
  std::map<std::string, std::vector<KernelSample>> families_, classes_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_CALIBRATION_H_
