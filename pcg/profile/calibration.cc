#include "pcg/profile/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

constexpr size_t kFewest = 3;
constexpr int kTerms = 3;  // one, FLOPs, bytes
using Vector = std::array<double, kTerms>;

Vector TermsOf(double flops, double bytes) { return {1, flops, bytes}; }

// Solves the normal equations of the terms in `mask`, by elimination; false if they are singular.
bool Solve(const std::array<Vector, kTerms>& matrix, const Vector& right, int mask, Vector* x) {
  std::array<Vector, kTerms> a = matrix;
  Vector b = right;
  *x = {};
  for (int pivot = 0; pivot < kTerms; ++pivot) {
    if ((mask >> pivot & 1) == 0) continue;
    // Terms are scaled to one, so that this compares with one.
    if (a[pivot][pivot] < 1e-9 * matrix[pivot][pivot] || a[pivot][pivot] <= 0) return false;
    for (int row = 0; row < kTerms; ++row) {
      if (row == pivot || (mask >> row & 1) == 0) continue;
      const double factor = a[row][pivot] / a[pivot][pivot];
      for (int col = 0; col < kTerms; ++col) a[row][col] -= factor * a[pivot][col];
      b[row] -= factor * b[pivot];
    }
  }
  for (int i = 0; i < kTerms; ++i) {
    if (mask >> i & 1) (*x)[i] = b[i] / a[i][i];
  }
  return true;
}

// The non-negative coefficients of least weighted squares of (prediction / us - 1): of so few terms
// every set of them that are not zero is tried.
Vector NonNegativeFit(absl::Span<const KernelSample> samples, const std::vector<double>& weights,
                      const Vector& scale) {
  std::array<Vector, kTerms> matrix = {};
  Vector right = {};
  for (size_t s = 0; s < samples.size(); ++s) {
    Vector row = TermsOf(samples[s].flops, samples[s].bytes);
    for (int i = 0; i < kTerms; ++i) row[i] *= scale[i] / samples[s].us;
    for (int i = 0; i < kTerms; ++i) {
      right[i] += weights[s] * row[i];
      for (int j = 0; j < kTerms; ++j) matrix[i][j] += weights[s] * row[i] * row[j];
    }
  }
  Vector best = {};
  double least = std::numeric_limits<double>::infinity();
  for (int mask = 1; mask < 1 << kTerms; ++mask) {
    Vector x;
    if (!Solve(matrix, right, mask, &x)) continue;
    if (*std::min_element(x.begin(), x.end()) < 0) continue;
    double squares = 0;  // less that of the right sides
    for (int i = 0; i < kTerms; ++i) {
      squares -= 2 * x[i] * right[i];
      for (int j = 0; j < kTerms; ++j) squares += x[i] * matrix[i][j] * x[j];
    }
    if (squares >= least) continue;
    least = squares;
    best = x;
  }
  for (int i = 0; i < kTerms; ++i) best[i] *= scale[i];
  return best;
}

double Dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// "contraction f32 gradient" of "matmul f32 gradient".
std::string ClassOf(const std::string& family) {
  const size_t space = std::min(family.find(' '), family.size());
  const std::string name = family.substr(0, space);
  bool contraction = false;
  for (const OpKind kind : AllOpKinds()) {
    if (OpName(kind) == name) contraction = IsContraction(kind);
  }
  return absl::StrCat(contraction ? "contraction" : "other", family.substr(space));
}

Calibration::HeldOut HeldOutOf(const std::string& from, const std::vector<KernelSample>& samples) {
  Calibration::HeldOut held_out{.from = from, .samples = static_cast<int>(samples.size())};
  if (samples.size() <= kFewest) return held_out;
  std::vector<double> errors;
  for (size_t s = 0; s < samples.size(); ++s) {
    std::vector<KernelSample> others = samples;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(s));
    errors.push_back(
        std::abs(FitUs(others, samples[s].flops, samples[s].bytes) / samples[s].us - 1));
  }
  held_out.worst_error = *std::max_element(errors.begin(), errors.end());
  held_out.median_error = Median(std::move(errors));
  return held_out;
}

}  // namespace

double FitUs(absl::Span<const KernelSample> samples, double flops, double bytes) {
  Vector scale = {1e-300, 1e-300, 1e-300};
  for (const KernelSample& sample : samples) {
    const Vector terms = TermsOf(sample.flops, sample.bytes);
    for (int i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], terms[i] / sample.us);
  }
  for (double& s : scale) s = 1 / s;
  constexpr double kReach = 1.4;  // a factor of four
  std::vector<double> near;
  for (const KernelSample& sample : samples) {
    const double df = std::log((sample.flops + 1) / (flops + 1)) / kReach;
    const double db = std::log((sample.bytes + 1) / (bytes + 1)) / kReach;
    near.push_back(1 / std::pow(1 + df * df + db * db, 2));
  }
  std::vector<double> weights = near;
  Vector fit = {};
  constexpr int kIterations = 5;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    fit = NonNegativeFit(samples, weights, scale);
    std::vector<double> residuals;
    for (const KernelSample& sample : samples) {
      residuals.push_back(std::abs(Dot(fit, TermsOf(sample.flops, sample.bytes)) / sample.us - 1));
    }
    // Residuals beyond twice the median count as that large.
    const double usual = std::max(2 * Median(residuals), 1e-6);
    for (size_t s = 0; s < samples.size(); ++s) {
      weights[s] = near[s] * std::min(1.0, usual / std::max(residuals[s], 1e-12));
    }
  }
  return Dot(fit, TermsOf(flops, bytes));
}

Calibration::Calibration(const Profile& profile) {
  for (const auto& [key, time] : profile.kernels) {
    if (time.median_us <= 0 || time.family.empty()) continue;
    const KernelSample sample{time.flops, static_cast<double>(time.bytes), time.median_us};
    families_[time.family].push_back(sample);
    classes_[ClassOf(time.family)].push_back(sample);
  }
}

std::optional<Calibration::Estimate> Calibration::UsOf(const std::string& family, double flops,
                                                       double bytes) const {
  for (const auto& [name, groups] :
       {std::pair(family, &families_), std::pair(ClassOf(family), &classes_)}) {
    const auto found = groups->find(name);
    if (found == groups->end() || found->second.size() < kFewest) continue;
    return Estimate{.us = FitUs(found->second, flops, bytes),
                    .from = name,
                    .neighbours = static_cast<int>(found->second.size())};
  }
  return std::nullopt;
}

Calibration::HeldOut Calibration::LeaveOneOut(const std::string& from) const {
  const auto family = families_.find(from);
  if (family != families_.end() && family->second.size() >= kFewest) {
    return HeldOutOf(from, family->second);
  }
  return HeldOutOf(from, classes_.at(from));
}

std::vector<Calibration::HeldOut> Calibration::LeaveOneOut() const {
  std::vector<HeldOut> all;
  for (const auto& [family, samples] : families_) {
    if (samples.size() > kFewest) all.push_back(HeldOutOf(family, samples));
  }
  return all;
}

}  // namespace isomer
