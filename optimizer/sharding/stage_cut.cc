#include "optimizer/sharding/stage_cut.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "pcg/support/check.h"

namespace isomer {
namespace {

// Number of stages if each is filled up to `limit`.
int StagesWithin(absl::Span<const double> us, double limit) {
  int stages = 1;
  double sum = 0;
  for (double call : us) {
    if (sum > 0 && sum + call > limit) {
      ++stages;
      sum = 0;
    }
    sum += call;
  }
  return stages;
}

// Minimum time of the slowest stage, to a millionth.
double LeastBottleneck(absl::Span<const double> us, int stages) {
  double low = *std::max_element(us.begin(), us.end());
  double high = std::accumulate(us.begin(), us.end(), 0.0);
  while (high - low > 1e-6 * high) {
    const double middle = (low + high) / 2;
    (StagesWithin(us, middle) <= stages ? high : low) = middle;
  }
  return high;
}

// First calls of the stages, with the fewest crossing bytes among cuts whose stages take up to
// `limit` or are one call; empty if there is none.
std::vector<int> CutWithin(absl::Span<const double> us, absl::Span<const int64_t> crossing,
                           int stages, absl::Span<const StageRange> allowed, double limit) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const int count = static_cast<int>(us.size());
  // bytes[s][i]: crossing bytes if the first i calls are s stages; from[s][i]: first call of the
  // last one.
  std::vector<std::vector<int64_t>> bytes(stages + 1, std::vector<int64_t>(count + 1, kNever));
  std::vector<std::vector<int>> from(stages + 1, std::vector<int>(count + 1, -1));
  bytes[0][0] = 0;
  std::vector<double> before(count + 1, 0);  // prefix sums of `us`
  std::partial_sum(us.begin(), us.end(), before.begin() + 1);
  for (int s = 1; s <= stages; ++s) {
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
      while (!firsts.empty() && firsts.front() < i - 1 &&
             before[i] - before[firsts.front()] > limit) {
        firsts.pop_front();
      }
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

std::vector<int> CutStages(absl::Span<const double> us, absl::Span<const int64_t> crossing,
                           int stages, absl::Span<const StageRange> allowed) {
  constexpr double kSlack = 1.05, kGrowth = 1.1;
  const double all = std::accumulate(us.begin(), us.end(), 0.0);
  std::vector<int> first;
  for (double limit = kSlack * LeastBottleneck(us, stages);; limit *= kGrowth) {
    first = CutWithin(us, crossing, stages, allowed, limit);
    if (!first.empty() || limit >= all) break;
  }
  // A cut into fewer stages can be refined, so one exists.
  ISOMER_CHECK(!first.empty() || !allowed.empty());
  return first;
}

std::vector<int> StagesOfCalls(absl::Span<const double> us, absl::Span<const MadeByCall> made,
                               int stages, absl::Span<const StageRange> allowed) {
  std::vector<int64_t> crossing(us.size() + 1, 0);
  for (const auto& [call, last_use, bytes] : made) {
    crossing[call + 1] += bytes;
    crossing[last_use + 1] -= bytes;
  }
  for (size_t i = 1; i < crossing.size(); ++i) crossing[i] += crossing[i - 1];
  crossing.pop_back();
  const std::vector<int> firsts = CutStages(us, crossing, stages, allowed);
  if (firsts.empty()) return {};
  std::vector<int> stage_of_call(us.size(), 0);
  for (int first : firsts) {
    if (first > 0) ++stage_of_call[first];
  }
  std::partial_sum(stage_of_call.begin(), stage_of_call.end(), stage_of_call.begin());
  return stage_of_call;
}

}  // namespace isomer
