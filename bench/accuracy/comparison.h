// Predicted against measured, for one plan: the step, the memory, and kind of task by kind of task.
#ifndef ISOMER_BENCH_ACCURACY_COMPARISON_H_
#define ISOMER_BENCH_ACCURACY_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/accuracy/measurement.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Tasks of one kind, of an average device.
struct KindTimes {
  std::string kind;  // "compute_gradient conv2d"; "waiting" is what is left of the step
  double predicted_us = 0, measured_us = 0;
  double least_us = 0;  // the fastest of each task: without what else the computer did
};

// One task, on one device.
struct TaskComparison {
  std::string task;  // "12 compute_gradient conv2d 'conv1'"
  double predicted_us = 0, measured_us = 0, least_us = 0;
};

struct PlanComparison {
  std::string model, plan, communicator;
  int devices = 1;
  double predicted_us = 0, measured_us = 0;
  double lowest_us = 0, highest_us = 0;  // medians of runs
  int64_t predicted_bytes = 0, measured_bytes = 0;
  std::vector<KindTimes> kinds = {};  // those that differ most first
  std::vector<TaskComparison> tasks = {};

  double TimeError() const { return predicted_us / measured_us - 1; }
  double MemoryError() const {
    return static_cast<double>(predicted_bytes) / static_cast<double>(measured_bytes) - 1;
  }
};

// Fills in everything but the names. The trace of a task is the median over the runs; that of a
// communication begins when the last of its devices has come.
void Compare(const Graph& graph, const Schedule& schedule, const Simulation& simulation,
             absl::Span<const Measurement> runs, PlanComparison* comparison);

double MedianOf(std::vector<double> values);
// Spearman's, with mean ranks for ties; 1 for fewer than two.
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace isomer

#endif  // ISOMER_BENCH_ACCURACY_COMPARISON_H_
