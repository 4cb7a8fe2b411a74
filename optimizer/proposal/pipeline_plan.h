// The pipeline baseline: stages of equal work, micro-batches in time, and data parallelism over the
// devices of a stage, as a user asks for them. It is a configuration (parallel_config.h) that
// nobody chose.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_PLAN_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PIPELINE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
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

// On the devices of the tables' options; the plan without its predictions. Errors, of one line:
// stages that do not divide the devices, or whose chunks are more than the calls; a batch that is
// not cut into so many micro-batches on so many devices; chunks without as many micro-batches as
// stages, or a multiple; a model that needs all samples at once.
absl::StatusOr<Plan> PipelinePlan(const Model& model, bool training, const PipelineOptions& options,
                                  CostTables* tables);

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
