#include "optimizer/sharding/stage_cut.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
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

// The times of calls on the kinds of stages, each once where those of a kind are side by side.
std::vector<absl::Span<const double>> TimesOfKinds(absl::Span<const StageCosts> stages) {
  std::vector<absl::Span<const double>> kinds;
  for (const StageCosts& stage : stages) {
    if (kinds.empty() || kinds.back().data() != stage.us.data()) kinds.push_back(stage.us);
  }
  return kinds;
}

// Of all calls, where they take longest.
double MostOfAll(absl::Span<const absl::Span<const double>> kinds) {
  double all = 0;
  for (absl::Span<const double> us : kinds) {
    all = std::max(all, std::accumulate(us.begin(), us.end(), 0.0));
  }
  return all;
}

// Minimum time of the slowest stage, to a millionth; infinity if they hold too little.
double LeastBottleneck(absl::Span<const StageCosts> stages,
                       absl::Span<const absl::Span<const double>> kinds) {
  double low = 0, high = MostOfAll(kinds);
  for (size_t call = 0; call < stages[0].us.size(); ++call) {
    double fastest = kinds[0][call];
    for (absl::Span<const double> us : kinds) fastest = std::min(fastest, us[call]);
    low = std::max(low, fastest);
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

// What a stage takes and holds of calls that follow each other.
class StageSums {
 public:
  // `like`: of the stage before, if there is one; stages of one kind have their sums in common.
  StageSums(const StageCosts& stage, const StageCosts* before, const StageSums* like)
      : most_bytes_(stage.most_bytes) {
    const size_t count = stage.us.size();
    us_ = before != nullptr && before->us.data() == stage.us.data()
              ? like->us_
              : std::make_shared<std::vector<double>>(PrefixSums(stage.us, count));
    held_ = before != nullptr && before->bytes.data() == stage.bytes.data()
                ? like->held_
                : std::make_shared<std::vector<int64_t>>(PrefixSums(stage.bytes, count));
  }

  // Whether calls [first, end) do.
  bool Fit(int first, int end, double limit) const {
    return (*held_)[end] - (*held_)[first] <= most_bytes_ && (*us_)[end] - (*us_)[first] <= limit;
  }

 private:
  std::shared_ptr<const std::vector<double>> us_;
  std::shared_ptr<const std::vector<int64_t>> held_;
  int64_t most_bytes_;
};

// Where stages may end: after [least[s], most[s]] calls s stages have been, so that the others can
// be non-empty and take no more than `limit` either.
struct Ends {
  std::vector<int> least, most;
};
Ends EndsWithin(absl::Span<const StageSums> sums, int count, double limit) {
  const int stages = static_cast<int>(sums.size());
  Ends ends{std::vector<int>(stages + 1, 0), std::vector<int>(stages + 1, count)};
  ends.most[0] = 0;
  for (int s = 1; s <= stages; ++s) {
    int& end = ends.most[s] = ends.most[s - 1];
    while (end < count && sums[s - 1].Fit(ends.most[s - 1], end + 1, limit)) ++end;
    end = std::min(end, count - (stages - s));
  }
  ends.least[stages] = count;
  for (int s = stages - 1; s >= 0; --s) {
    int& first = ends.least[s] = ends.least[s + 1];
    while (first > 0 && sums[s].Fit(first - 1, ends.least[s + 1], limit)) --first;
    first = std::max(first, s);
  }
  return ends;
}

// First calls of the stages, with the fewest crossing bytes among cuts whose stages take up to
// `limit`; empty if there is none.
std::vector<int> CutWithin(absl::Span<const StageSums> sums, absl::Span<const int64_t> crossing,
                           absl::Span<const StageRange> allowed, double limit) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const int count = static_cast<int>(crossing.size()), stages = static_cast<int>(sums.size());
  const Ends ends = EndsWithin(sums, count, limit);
  // Of the first s stages, if they are the first i calls: the crossing bytes of the best cut, and
  // the first call of the last stage.
  struct Best {
    int64_t bytes = kNever;
    int from = -1;
  };
  std::vector<std::vector<Best>> best(stages + 1);
  const auto best_of = [&](int s, int i) -> Best& { return best[s][i - ends.least[s]]; };
  for (int s = 0; s <= stages; ++s) {
    if (ends.least[s] > ends.most[s]) return {};
    best[s].resize(ends.most[s] - ends.least[s] + 1);
  }
  if (ends.least[0] > 0) return {};
  best_of(0, 0).bytes = 0;
  for (int s = 1; s <= stages; ++s) {
    const auto may_hold = [&](int call) {
      return allowed.empty() || (allowed[call].first < s && s - 1 <= allowed[call].last);
    };
    const auto total = [&](int j) { return best_of(s - 1, j).bytes + (j == 0 ? 0 : crossing[j]); };
    // Monotonic queue of first calls of a last stage that ends here; totals ascend too: the first
    // is the best, and of equals the last.
    std::deque<int> firsts;
    for (int i = ends.least[s - 1] + 1; i <= ends.most[s]; ++i) {
      if (!may_hold(i - 1)) {
        firsts.clear();
        continue;
      }
      if (i - 1 <= ends.most[s - 1] && best_of(s - 1, i - 1).bytes != kNever) {
        while (!firsts.empty() && total(firsts.back()) >= total(i - 1)) firsts.pop_back();
        firsts.push_back(i - 1);
      }
      while (!firsts.empty() && !sums[s - 1].Fit(firsts.front(), i, limit)) firsts.pop_front();
      if (firsts.empty() || i < ends.least[s]) continue;
      best_of(s, i) = {total(firsts.front()), firsts.front()};
    }
  }
  if (best_of(stages, count).from < 0) return {};
  std::vector<int> first(stages);
  for (int s = stages, i = count; s > 0; --s) first[s - 1] = i = best_of(s, i).from;
  return first;
}

}  // namespace

std::vector<int> CutStages(absl::Span<const StageCosts> stages, absl::Span<const int64_t> crossing,
                           absl::Span<const StageRange> allowed) {
  constexpr double kSlack = 1.05, kGrowth = 1.1;
  const std::vector<absl::Span<const double>> kinds = TimesOfKinds(stages);
  const double all = MostOfAll(kinds);
  bool limits_bytes = false;
  for (const StageCosts& stage : stages) limits_bytes |= !stage.bytes.empty();
  std::vector<StageSums> sums;
  for (size_t s = 0; s < stages.size(); ++s) {
    sums.emplace_back(stages[s], s == 0 ? nullptr : &stages[s - 1],
                      s == 0 ? nullptr : &sums[s - 1]);
  }
  std::vector<int> first;
  for (double limit = kSlack * LeastBottleneck(stages, kinds);; limit *= kGrowth) {
    first = CutWithin(sums, crossing, allowed, limit);
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
