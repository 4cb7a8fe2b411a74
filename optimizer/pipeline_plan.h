// The pipeline baseline: stages of neighbouring calls, micro-batches in time, and data parallelism
// over the devices of a stage.
//
// A micro-batch is a shard in time (pcg/machine_view.h): the plan's graph is that of data
// parallelism over devices of a stage times micro-batches, derived by the same rules, and only its
// views know what is a device and what a moment. Stage s of S has devices [s d, (s + 1) d). Stages
// are cut from the topological order of calls so that their times are balanced and little crosses.
//
// Where the model mixes samples (the statistics of a batch), micro-batches cannot be ordered: the
// plan is as right, and no faster than its slowest order (pcg/schedule/pipeline.h).
#ifndef ISOMER_OPTIMIZER_PIPELINE_PLAN_H_
#define ISOMER_OPTIMIZER_PIPELINE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost.h"
#include "optimizer/rule_index.h"
#include "optimizer/simulator.h"
#include "pcg/plan.h"

namespace isomer {

inline constexpr char kPipeline[] = "pipeline";

struct PipelineOptions {
  int64_t stages = 2;
  int64_t micro_batches = 4;
};

// The plan without its predictions. Errors: stages that do not divide the devices, or are more than
// the calls; a batch that is not cut into so many micro-batches on so many devices.
absl::StatusOr<Plan> PipelinePlan(const Model& model, const RuleIndex& rules, const CostModel& cost,
                                  bool training, const PipelineOptions& options);

// What a simulated schedule is as a pipeline; absent if it has no micro-batches.
struct PipelineSummary {
  int64_t stages = 1, micro_batches = 1;
  bool ordered = true;  // else micro-batches mix
  // (S - 1) / (n + S - 1): of the step, with equal stages and free transfers.
  double bubble_share = 0;
  double idle_share = 0;  // of the devices' time, simulated: no task that computes runs

  std::string ToString() const;
};
std::optional<PipelineSummary> SummaryOfPipeline(const Schedule& schedule,
                                                 const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PIPELINE_PLAN_H_
