#include "bench/accuracy/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator.h"

namespace isomer {
namespace {

std::string KindOf(const Graph& graph, const Task& task) {
  const std::string kind = TaskKindName(task.kind);
  const bool computes = task.kind == TaskKind::kCompute || task.kind == TaskKind::kComputeGradient;
  return computes ? absl::StrCat(kind, " ", graph.node(task.node).op.name()) : kind;
}

struct TracedTimes {
  double median_us = 0, least_us = 0;
};

// Per task, what it took on one device, by the traces; 0 for tasks without.
std::vector<TracedTimes> TimesOfTasks(const Schedule& schedule,
                                      absl::Span<const Measurement> runs) {
  std::vector<std::vector<double>> samples(schedule.tasks.size());
  for (const Measurement& run : runs) {
    std::map<std::pair<int32_t, int>, double> last_start, end;  // by task and step
    for (const TracedTask& traced : run.trace) {
      double& start =
          last_start.try_emplace({traced.task, traced.step}, traced.start_us).first->second;
      start = std::max(start, traced.start_us);
      double& latest = end.try_emplace({traced.task, traced.step}, traced.end_us).first->second;
      latest = std::max(latest, traced.end_us);
    }
    for (const auto& [key, start] : last_start) {
      samples[key.first].push_back(end.at(key) - start);
    }
  }
  std::vector<TracedTimes> times(samples.size());
  for (size_t t = 0; t < samples.size(); ++t) {
    if (samples[t].empty()) continue;
    times[t].least_us = *std::min_element(samples[t].begin(), samples[t].end());
    times[t].median_us = MedianOf(std::move(samples[t]));
  }
  return times;
}

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

}  // namespace

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  if (n == 0) return 0;
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2) return 1;
  const std::vector<double> ra = Ranks(a), rb = Ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - mean) * (rb[i] - mean);
    aa += (ra[i] - mean) * (ra[i] - mean);
    bb += (rb[i] - mean) * (rb[i] - mean);
  }
  return aa == 0 || bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

void Compare(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
             absl::Span<const Measurement> runs, PlanComparison* comparison) {
  std::vector<double> steps;
  for (const Measurement& run : runs) {
    steps.push_back(run.step_us);
    comparison->measured_bytes = std::max(comparison->measured_bytes, run.peak_bytes);
  }
  comparison->measured_us = MedianOf(steps);
  comparison->lowest_us = *std::min_element(steps.begin(), steps.end());
  comparison->highest_us = *std::max_element(steps.begin(), steps.end());
  comparison->predicted_us = simulation.step_us;
  comparison->predicted_bytes = simulation.peak_bytes;

  const std::vector<TracedTimes> measured = TimesOfTasks(schedule, runs);
  std::map<std::string, KindTimes> kinds;
  KindTimes waiting{"waiting, and between tasks", simulation.step_us, comparison->measured_us};
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const bool hosts = task.kind == TaskKind::kLoad || task.kind == TaskKind::kFeed ||
                       task.kind == TaskKind::kUnload;
    if (hosts) continue;
    const double alone = MicrosecondsOf(simulation.timeline.end[t] - simulation.timeline.start[t]);
    comparison->tasks.push_back(
        {absl::StrCat(t, " ", KindOf(graph, task), " ", graph.Label(task.node)), alone,
         measured[t].median_us, measured[t].least_us});
    const double share =
        static_cast<double>(task.devices.size()) / static_cast<double>(comparison->devices);
    const double predicted = share * alone;
    KindTimes& times = kinds[KindOf(graph, task)];
    times.predicted_us += predicted;
    times.measured_us += share * measured[t].median_us;
    times.least_us += share * measured[t].least_us;
    waiting.predicted_us -= predicted;
    waiting.measured_us -= share * measured[t].median_us;
  }
  for (auto& [name, times] : kinds) {
    times.kind = name;
    comparison->kinds.push_back(times);
  }
  comparison->kinds.push_back(waiting);
  std::sort(comparison->kinds.begin(), comparison->kinds.end(),
            [](const KindTimes& a, const KindTimes& b) {
              return std::abs(a.predicted_us - a.measured_us) >
                     std::abs(b.predicted_us - b.measured_us);
            });
}

}  // namespace isomer
