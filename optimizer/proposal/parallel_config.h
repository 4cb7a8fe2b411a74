// Parallel configurations: tensor, pipeline and data degrees, micro-batches, the stage of ZeRO and
// checkpointing, decided before the search maps calls.
//
// A configuration says how many devices are used, in how many pipeline stages, and in how many
// micro-batches a step is cut. The search then maps the model onto the devices of one stage, and
// every call moves to its stage (stages.h). There are too many configurations to search each: an
// estimate orders them, from the tables' costs of a mapping by hand (grid_mapping.h, of every
// tensor degree up to a node, and of mixtures every expert degree: the calls' times and memory
// hardly depend on more).
//
//   step    = n max t_s + (sum over stages of t_s - max t_s) / (v u) (of fewer micro-batches than
//             stages, the first through all chunks and 1 / v of the slowest for each of the others,
//             if that is more) + what the backward pass of the last micro-batch leaves of the
//             synchronisation + the latencies of messages while the pipeline fills,
//             t_s: a micro-batch on stage s, forward and backward (1F1B,
//             pcg/schedule/order/pipeline.h); v: chunks of the model on each stage; u: steps
//             between flushes
//   memory  = weights, of two versions if u > 1, gradients, optimizer state; and what is kept, made
//             or received, of the micro-batches that stage s works on at a time: min(S - s, n), of
//             more chunks PipelineShape::MostInFlight
//
// A configuration also says how the copies of weights are kept equal (ZeRO, pcg/ir/weight_update.h)
// and whether results are computed again in the backward pass rather than kept (segments.h): with
// them a configuration of fewer stages may fit.
//
// Of fewer samples than there are models on the devices, each on those of a tensor degree, the
// sequence may be split, too (GridDegrees::context): there is nothing else to give all of them work
// but a pipeline with a bubble.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PARALLEL_CONFIG_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PARALLEL_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/grid_graph.h"
#include "optimizer/proposal/grid_mapping.h"
#include "optimizer/proposal/pipeline_schedule.h"
#include "optimizer/proposal/recompute.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/proposal/stages.h"
#include "optimizer/sharding/constraints.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/order/pipeline.h"

namespace isomer {

// Of a step, that a user may ask for.
inline constexpr int64_t kMostMicroBatches = 4096;

struct ParallelConfig {
  int64_t devices = 1;  // the first of the machine
  int64_t stages = 1, micro_batches = 1;
  GridDegrees degrees = {};  // of the mapping by hand
  UpdateMethod update = UpdateMethod::kAllReduce;
  RecomputeMode recomputation = RecomputeMode::kNone;
  int64_t chunks = 1;                 // of the model on each stage: interleaved 1F1B
  int32_t steps_between_flushes = 1;  // UpdateOptions
  PipelineSchedule schedule = PipelineSchedule::k1F1B;
  // The block of devices of each stage, block b being [b stage_devices, (b + 1) stage_devices);
  // empty: in their order.
  std::vector<int64_t> blocks = {};

  int64_t BlockOfStage(int64_t stage) const { return blocks.empty() ? stage : blocks[stage]; }
  int64_t num_chunks() const { return stages * chunks; }
  int64_t stage_devices() const { return devices / stages; }
  int64_t data_degree() const { return stage_devices() / (degrees.tensor * degrees.context); }
  PipelineShape Shape() const;
  // Whether the calls go to the same devices at the same moments.
  bool MapsLike(const ParallelConfig& other) const;
  // What a configuration says of a plan beyond where its calls run.
  void SetOptions(Plan* plan) const;
  // "tensor 8 x pipeline 16 x data 8, 64 micro-batches, sharded, full recomputation".
  std::string ToString() const;
  friend bool operator==(const ParallelConfig&, const ParallelConfig&) = default;
};

// What a configuration comes to by the estimate.
struct ConfigEstimate {
  ParallelConfig config;
  double step_us = 0;
  int64_t peak_bytes = 0;
};

struct GridOptions {
  int64_t devices = 1;  // to use
  SearchPolicy policy = {};
  UpdateMethod update = UpdateMethod::kAllReduce;
  bool choose_update = false;         // all-reduces and each stage of ZeRO instead
  int32_t steps_between_flushes = 1;  // of grids that have a pipeline to drain
  bool may_recompute = false;
  BoundStages bound_stages = {};  // a user's: no grids of fewer stages, or where they do not suit
  Constraints::OfStep step = {};  // a user's: no other grids, and the policy limits none of these

  int64_t LeastStages() const;  // that calls are bound to
};

// Of every configuration that suits the model (the batch divides into data parallelism times
// micro-batches; what has to be known of all samples is known of micro-batches apart), the
// estimate; those that fit into `memory_bytes` first, the fastest first, then the smallest first.
// Sets the options of `tables`.
absl::StatusOr<std::vector<ConfigEstimate>> EnumerateGrids(GridGraph* graphs,
                                                           const GridOptions& options,
                                                           int64_t memory_bytes,
                                                           CostTables* tables);

// The options of tables for one stage of a configuration; `by_hand`: that maps by hand, and needs
// no more of a call's choices than that it can be split.
CostOptions OptionsOfStage(const ParallelConfig& config, CostOptions options, bool by_hand = false);

// A mapping for the devices of a stage, onto all stages, cut by CutIntoChunks. REQUIRES: every call
// has a choice. Errors: NotFound, bound calls do not suit so many stages, or results of a chunk
// pass over the next.
absl::Status SpreadOverStages(const ParallelConfig& config, const BoundStages& bound,
                              CostTables* tables, MappedModel* mapped);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PARALLEL_CONFIG_H_
