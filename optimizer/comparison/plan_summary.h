// What plans are compared by: the step of the average device, block by block, and how they do it.
//
// A summary is small and keeps nothing of a plan's schedule, so that many can be made, one after
// the other, of plans of any size.
#ifndef ISOMER_OPTIMIZER_COMPARISON_PLAN_SUMMARY_H_
#define ISOMER_OPTIMIZER_COMPARISON_PLAN_SUMMARY_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/cost/cost.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/node_times.h"
#include "optimizer/search/optimizer.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/memory/memory.h"

namespace isomer {

// Operators and weights whose names begin alike, in all repeated layers.
struct BlockSummary {
  // As in StepShares, on the average device.
  double compute_us = 0;
  std::map<std::string, double> exposed_us;  // by kind of communication
  std::map<std::string, double> sent_bytes;  // likewise: that a device sends in a step
  std::map<std::string, int64_t> calls;      // that take time, by operator
  int64_t recomputed = 0;                    // of these, for the backward pass
  std::map<std::string, double> splits_us;   // by how calls are split: their computation

  void Add(const BlockSummary& other);
  // Computation, and communication that it waits for.
  double TimeUs() const;
  // How most of its computation is split; "" if it computes nothing.
  std::string MainSplit() const;
};

struct PlanSummary {
  std::string name;      // of its file, or who proposed it
  std::string headline;  // HeadlineOf
  double step_us = 0;
  int64_t peak_bytes = 0;
  bool fits = true;
  // Of the average device: they add up to the step.
  double compute_us = 0, bubble_us = 0, idle_us = 0;
  std::map<std::string, double> exposed_us;  // by kind of communication
  std::array<int64_t, kNumMemoryCategories> memory = {};
  // What holds for the whole step: {"micro-batches", "32"}. Of every plan the same, in this order.
  std::vector<std::pair<std::string, std::string>> settings;
  // By the folded names of operators (BlockName); Blocks() are for people.
  std::map<std::string, BlockSummary> operators;

  // By a device, in a step.
  double sent_bytes() const;
};

// "layer*/attention/query" of an operator "layer0/attention/query", "encoder/layer.*/output" of
// "/encoder/layer.11/output" and of a weight "encoder.layer.11.output".
std::string BlockName(absl::string_view name);

// `explanation` and `times` are those of `result`. Errors: a call does not type-check.
absl::StatusOr<PlanSummary> SummaryOf(std::string name, const OptimizeResult& result,
                                      const Explanation& explanation,
                                      const std::vector<NodeTimes>& times, const Machine& machine);
// The same, explained here.
absl::StatusOr<PlanSummary> SummaryOf(std::string name, const OptimizeResult& result,
                                      const CostModel& cost);
// Of a plan that is priced for it.
absl::StatusOr<PlanSummary> SummaryOf(std::string name, Plan plan, const CostModel& cost);

// Blocks of all these plans under the same names: parts of operators' names, more of them where it
// takes longest, so that there are at most `most` blocks (or as many as there are first parts), and
// calls whose differences between two plans cancel each other stay together. One map for each plan.
std::vector<std::map<std::string, BlockSummary>> BlocksOf(
    const std::vector<const PlanSummary*>& plans, int most);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_COMPARISON_PLAN_SUMMARY_H_
