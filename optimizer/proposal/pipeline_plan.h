// The pipeline baseline: stages of neighbouring calls, micro-batches in time, and data parallelism
// over the devices of a stage.
//
// A micro-batch is a shard in time (pcg/ir/machine_view.h): the plan's graph is that of data
// parallelism over devices of a stage times micro-batches, derived by the same rules, and only its
// views know what is a device and what a moment. Stage s of S has devices [s d, (s + 1) d). Stages
// are cut from the topological order of calls so that their times are balanced and little crosses;
// interleaved, into v S chunks, of which stage s has chunks s, s + S, ..
//
// Where the model mixes samples (the statistics of a batch), micro-batches cannot be ordered: the
// plan is as right, and no faster than its slowest order (pcg/schedule/order/pipeline.h).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_PLAN_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/sharding/rule_index.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/plan.h"

namespace isomer {

inline constexpr char kPipeline[] = "pipeline";

struct PipelineOptions {
  int64_t stages = 2;
  int64_t micro_batches = 4;
  // Of the model that a stage has, apart from each other: more than one is interleaved 1F1B.
  int64_t chunks = 1;
};

// The plan without its predictions. Errors: stages that do not divide the devices, or whose chunks
// are more than the calls; a batch that is not cut into so many micro-batches on so many devices;
// chunks without as many micro-batches as stages, or a multiple.
absl::StatusOr<Plan> PipelinePlan(const Model& model, const RuleIndex& rules, const CostModel& cost,
                                  bool training, const PipelineOptions& options);

// What a simulated schedule is as a pipeline; absent if it has no micro-batches.
struct PipelineSummary {
  int64_t stages = 1, micro_batches = 1;
  int64_t chunks = 1;   // of each stage; more than 1: interleaved
  int64_t steps = 1;    // between two flushes (pcg/schedule/order/weight_versions.h)
  bool ordered = true;  // else micro-batches mix
  // (S - 1) / (v u n + S - 1), of v chunks and u steps: of the time, with equal stages and free
  // transfers.
  double bubble_share = 0;
  double idle_share = 0;  // of the devices' time, simulated: no task that computes runs

  std::string ToString() const;
};
std::optional<PipelineSummary> SummaryOfPipeline(const Schedule& schedule,
                                                 const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_PLAN_H_
