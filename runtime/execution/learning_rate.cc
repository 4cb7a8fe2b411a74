#include "runtime/execution/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Weights are trained in float32.
bool IsRate(double rate) { return rate >= 0 && rate <= std::numeric_limits<float>::max(); }

absl::Status RefuseLine(size_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line + 1, ": ", what));
}

}  // namespace

std::vector<std::string> LearningRate::Names() {
  return {"constant", "linear", "cosine", "inverse_sqrt"};
}

absl::StatusOr<LearningRate> LearningRate::Make(const Options& options) {
  if (!IsRate(options.peak)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--learning_rate=", options.peak, ": a number from 0 is expected, finite in float32"));
  }
  if (options.warmup_steps < 0 || options.decay_steps < 0) {
    return absl::InvalidArgumentError("--warmup_steps and --decay_steps must not be negative");
  }
  if (!(options.final_rate >= 0 && options.final_rate <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--final_rate=", options.final_rate, ": a fraction of the peak is expected, from 0 to 1"));
  }
  LearningRate rate;
  rate.options_ = options;
  if (options.decay_steps > 0) ISOMER_RETURN_IF_ERROR(rate.SetSteps(options.decay_steps));
  return rate;
}

absl::StatusOr<LearningRate> LearningRate::FromFile(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<LearningRate> rate = FromText(text);
  if (rate.ok()) return rate;
  return absl::Status(rate.status().code(), absl::StrCat(path, ": ", rate.status().message()));
}

absl::StatusOr<LearningRate> LearningRate::FromText(absl::string_view text) {
  LearningRate rate;
  rate.options_.shape = Shape::kFile;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t l = 0; l < lines.size(); ++l) {
    const absl::string_view said = lines[l].substr(0, lines[l].find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(said, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    int64_t step = 0;
    double value = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &step) || step < 1 ||
        !absl::SimpleAtod(words[1], &value)) {
      return RefuseLine(l, "a step, from 1, and its learning rate are expected");
    }
    if (!IsRate(value)) return RefuseLine(l, "a learning rate is at least 0, and finite");
    if (!rate.points_.empty() && rate.points_.back().first >= step - 1) {
      return RefuseLine(
          l, absl::StrCat("step ", step, " does not follow step ", rate.points_.back().first + 1));
    }
    rate.points_.emplace_back(step - 1, value);
  }
  if (rate.points_.empty()) return absl::InvalidArgumentError("there is no learning rate");
  return rate;
}

absl::Status LearningRate::SetSteps(int64_t steps) {
  if (!decays()) return absl::OkStatus();
  if (options_.decay_steps == 0) options_.decay_steps = steps;
  if (options_.warmup_steps < options_.decay_steps) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--warmup_steps=", options_.warmup_steps,
                                                 ": the decay is over at step ",
                                                 options_.decay_steps, "; fewer are expected"));
}

double LearningRate::At(int64_t step) const {
  const double s = static_cast<double>(step), warmup = static_cast<double>(options_.warmup_steps);
  const double peak = options_.peak, last = options_.final_rate;
  if (options_.shape == Shape::kFile) return FromPoints(s);
  if (s < warmup) return peak * (s + 1) / warmup;
  const double length = static_cast<double>(options_.decay_steps) - warmup;
  const double x = std::min(1.0, (s - warmup) / length);
  switch (options_.shape) {
    case Shape::kConstant:
    case Shape::kFile:
      break;
    case Shape::kLinear:
      return peak * (1 + (last - 1) * x);
    case Shape::kCosine:
      return peak * (last + (1 - last) * (1 + std::cos(std::numbers::pi * x)) / 2);
    case Shape::kInverseSqrt:
      return peak * std::sqrt(std::max(warmup, 1.0) / (s + 1));
  }
  return peak;
}

double LearningRate::FromPoints(double step) const {
  const auto after = std::find_if(points_.begin(), points_.end(), [step](const auto& point) {
    return static_cast<double>(point.first) > step;
  });
  if (after == points_.begin()) return after->second;
  const auto before = std::prev(after);
  if (after == points_.end()) return before->second;
  const double from = static_cast<double>(before->first), to = static_cast<double>(after->first);
  const double x = (step - from) / (to - from);
  return before->second + (after->second - before->second) * x;
}

}  // namespace isomer
