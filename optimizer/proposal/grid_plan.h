// --plan=grid: the parallel configuration that a user asks for, as a plan.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_GRID_PLAN_H_
#define ISOMER_OPTIMIZER_PROPOSAL_GRID_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/grid_graph.h"
#include "optimizer/proposal/parallel_config.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/order/pipeline.h"

namespace isomer {

inline constexpr char kGrid[] = "grid";

// What a user says of a configuration; data parallelism has the devices that the degrees leave.
struct GridRequest {
  GridDegrees degrees = {};
  bool any_context = false;  // degrees.context_by_heads or not, as is better
  int64_t stages = 1, chunks = 1;
  // Samples of a micro-batch on a device; 0: of a pipeline 1, else the step is one micro-batch.
  int64_t micro_batch_size = 0;
  RecomputeMode recomputation = RecomputeMode::kNone;
  std::optional<UpdateMethod> update = {};  // none: as the options say
  // Gradients are synchronised during the backward pass, in buckets as the options say; else behind
  // it, in one.
  bool overlaps_gradients = true;
  // None: that of the fastest plan that fits.
  std::optional<PipelineSchedule> schedule = PipelineSchedule::k1F1B;
  // With degrees.in_stripes: it is an error where no attention can be.
  bool must_be_in_stripes = false;
};

// The configuration on so many devices. Errors, of one line that names the flag: degrees that do
// not divide the devices, a batch that is not cut so, a model that needs all samples at once.
absl::StatusOr<ParallelConfig> ConfigOf(const GridRequest& request, const Model& model,
                                        int64_t devices);

struct GridPlan {
  Plan plan;           // without its predictions
  MappedModel mapped;  // what it was derived from
  std::string misfit;  // grid_mapping.h: what could not be split as asked; "": nothing
};
// On the devices of the tables' options. Errors: as of MapGrid; more chunks than calls.
absl::StatusOr<GridPlan> PlanOfConfig(GridGraph* graphs, bool training,
                                      const ParallelConfig& config, CostTables* tables);

// What a simulated schedule is as a pipeline; absent if it has no micro-batches.
struct PipelineSummary {
  int64_t stages = 1, micro_batches = 1;
  int64_t chunks = 1;       // of each stage; more than 1: interleaved
  int64_t round = 1;        // micro-batches that take turns in chunks, at most (PipelineShape)
  int64_t steps = 1;        // between two flushes (pcg/schedule/order/weight_versions.h)
  bool ordered = true;      // else micro-batches mix
  double bubble_share = 0;  // PipelineShape::IdleShare
  double idle_share = 0;    // of the devices' time, simulated: no task that computes runs
  // Those, as it is ordered.
  PipelineShape shape = {};

  std::string ToString() const;
};
std::optional<PipelineSummary> SummaryOfPipeline(const Schedule& schedule,
                                                 const Simulation& simulation);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_GRID_PLAN_H_
