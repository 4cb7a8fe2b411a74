#include "optimizer/sharding/stage_cut.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "pcg/support/check.h"

namespace isomer {
namespace {

// Whether all calls are placed if each stage takes as many as it can within `limit`: what it can
// hold of a sequence it can hold of a part of that, so no cut comes further.
bool FitWithin(absl::Span<const StageCosts> stages, double limit) {
  const size_t count = stages[0].us.size();
  size_t call = 0;
  for (const StageCosts& stage : stages) {
    double sum = 0;
    int64_t bytes = 0;
    for (; call < count; ++call) {
      const int64_t more = stage.bytes.empty() ? 0 : stage.bytes[call];
      if (sum + stage.us[call] > limit || bytes + more > stage.most_bytes) break;
      sum += stage.us[call];
      bytes += more;
    }
  }
  return call == count;
}

// Minimum time of the slowest stage, to a millionth; infinity if they hold too little.
double LeastBottleneck(absl::Span<const StageCosts> stages) {
  double low = 0, high = 0;
  for (size_t call = 0; call < stages[0].us.size(); ++call) {
    const auto fastest =
        std::min_element(stages.begin(), stages.end(),
                         [&](const auto& a, const auto& b) { return a.us[call] < b.us[call]; });
    low = std::max(low, fastest->us[call]);
  }
  for (const StageCosts& stage : stages) {
    high = std::max(high, std::accumulate(stage.us.begin(), stage.us.end(), 0.0));
  }
  if (!FitWithin(stages, high)) return std::numeric_limits<double>::infinity();
  while (high - low > 1e-6 * high) {
    const double middle = (low + high) / 2;
    (FitWithin(stages, middle) ? high : low) = middle;
  }
  return high;
}

// Sums of the first numbers.
template <typename Number>
std::vector<Number> PrefixSums(absl::Span<const Number> numbers, size_t count) {
  std::vector<Number> sums(count + 1, 0);
  if (!numbers.empty()) std::partial_sum(numbers.begin(), numbers.end(), sums.begin() + 1);
  return sums;
}

// First calls of the stages, with the fewest crossing bytes among cuts whose stages take up to
// `limit`; empty if there is none.
std::vector<int> CutWithin(absl::Span<const StageCosts> costs, absl::Span<const int64_t> crossing,
                           absl::Span<const StageRange> allowed, double limit) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const int count = static_cast<int>(costs[0].us.size()), stages = static_cast<int>(costs.size());
  // bytes[s][i]: crossing bytes if the first i calls are s stages; from[s][i]: first call of the
  // last one.
  std::vector<std::vector<int64_t>> bytes(stages + 1, std::vector<int64_t>(count + 1, kNever));
  std::vector<std::vector<int>> from(stages + 1, std::vector<int>(count + 1, -1));
  bytes[0][0] = 0;
  for (int s = 1; s <= stages; ++s) {
    const StageCosts& stage = costs[s - 1];
    const std::vector<double> us = PrefixSums(stage.us, count);
    const std::vector<int64_t> held = PrefixSums(stage.bytes, count);
    const auto fits = [&](int first, int end) {
      return held[end] - held[first] <= stage.most_bytes && us[end] - us[first] <= limit;
    };
    const auto may_hold = [&](int call) {
      return allowed.empty() || (allowed[call].first < s && s - 1 <= allowed[call].last);
    };
    const auto total = [&](int j) { return bytes[s - 1][j] + (j == 0 ? 0 : crossing[j]); };
    // Monotonic queue of first calls of a last stage that ends here; totals ascend too: the first
    // is the best, and of equals the last.
    std::deque<int> firsts;
    for (int i = s; i <= count; ++i) {
      if (!may_hold(i - 1)) {
        firsts.clear();
        continue;
      }
      if (bytes[s - 1][i - 1] != kNever) {
        while (!firsts.empty() && total(firsts.back()) >= total(i - 1)) firsts.pop_back();
        firsts.push_back(i - 1);
      }
      while (!firsts.empty() && !fits(firsts.front(), i)) firsts.pop_front();
      if (firsts.empty()) continue;
      bytes[s][i] = total(firsts.front());
      from[s][i] = firsts.front();
    }
  }
  if (from[stages][count] < 0) return {};
  std::vector<int> first(stages);
  for (int s = stages, i = count; s > 0; --s) first[s - 1] = i = from[s][i];
  return first;
}

}  // namespace

std::vector<int> CutStages(absl::Span<const StageCosts> stages, absl::Span<const int64_t> crossing,
                           absl::Span<const StageRange> allowed) {
  constexpr double kSlack = 1.05, kGrowth = 1.1;
  double all = 0;
  for (const StageCosts& stage : stages) {
    all = std::max(all, std::accumulate(stage.us.begin(), stage.us.end(), 0.0));
  }
  bool limits_bytes = false;
  for (const StageCosts& stage : stages) limits_bytes |= !stage.bytes.empty();
  std::vector<int> first;
  for (double limit = kSlack * LeastBottleneck(stages);; limit *= kGrowth) {
    first = CutWithin(stages, crossing, allowed, limit);
    if (!first.empty() || limit > kSlack * all) break;
  }
  // Within the time of all calls, and of any bytes, a cut into fewer stages can be refined.
  ISOMER_CHECK(!first.empty() || !allowed.empty() || limits_bytes);
  return first;
}

std::vector<int> CutStages(absl::Span<const double> us, absl::Span<const int64_t> crossing,
                           int stages, absl::Span<const StageRange> allowed) {
  return CutStages(std::vector<StageCosts>(stages, {us}), crossing, allowed);
}

std::vector<int> StagesOfCalls(absl::Span<const StageCosts> stages,
                               absl::Span<const MadeByCall> made,
                               absl::Span<const StageRange> allowed) {
  const size_t count = stages[0].us.size();
  std::vector<int64_t> crossing(count + 1, 0);
  for (const auto& [call, last_use, bytes] : made) {
    crossing[call + 1] += bytes;
    crossing[last_use + 1] -= bytes;
  }
  for (size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
  crossing.pop_back();
  const std::vector<int> firsts = CutStages(stages, crossing, allowed);
  if (firsts.empty()) return {};
  std::vector<int> stage_of_call(count, 0);
  for (int first : firsts) {
    if (first > 0) ++stage_of_call[first];
  }
  std::partial_sum(stage_of_call.begin(), stage_of_call.end(), stage_of_call.begin());
  return stage_of_call;
}

}  // namespace isomer
