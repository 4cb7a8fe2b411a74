#include "optimizer/search/grid_of_plan.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "optimizer/proposal/striped_order.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Chunks of a stage that are tried.
constexpr int64_t kChunks[] = {1, 2, 3, 4, 6, 8};
constexpr int64_t kMostTries = 200;

std::vector<int64_t> DivisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

// In how many shards weights are, which is what tensor parallelism is seen by.
std::set<int64_t> ShardsOfWeights(const Graph& graph) {
  std::set<int64_t> shards = {1};
  std::vector<bool> is_weight(static_cast<size_t>(graph.num_nodes()));
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const auto at = static_cast<size_t>(id.value);
    is_weight[at] = node.op.kind() == OpKind::kWeight ||
                    (!node.inputs.empty() && IsParallel(node.op.kind()) &&
                     is_weight[static_cast<size_t>(node.inputs[0].node.value)]);
    if (!is_weight[at]) continue;
    int64_t count = 1;
    for (const Dim& dim : node.outputs[0].dims) count *= dim.degree;
    shards.insert(count);
  }
  return shards;
}

struct SeenInPlan {
  int64_t stages = 1, micro_batches = 1;
  std::set<int64_t> tensor;
  bool has_experts = false;
};

absl::StatusOr<SeenInPlan> SeenIn(const Plan& plan) {
  SeenInPlan seen;
  ISOMER_ASSIGN_OR_RETURN(seen.micro_batches, NumMicroBatches(plan.graph, plan.views));
  std::set<int64_t> starts;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const OpKind kind = plan.graph.node(id).op.kind();
    seen.has_experts |= kind == OpKind::kTop2Gating || kind == OpKind::kTopKRouting;
    if (NumMoments(plan.views[static_cast<size_t>(id)]) > 1) {
      starts.insert(plan.views[static_cast<size_t>(id)].start);
    }
  }
  if (starts.size() > 1) seen.stages = static_cast<int64_t>(starts.size());
  seen.tensor = ShardsOfWeights(plan.graph);
  return seen;
}

// By how many micro-batches are in flight; none: as none of those with so many chunks.
std::optional<PipelineSchedule> ScheduleOf(const Plan& plan, const SeenInPlan& seen,
                                           int64_t chunks) {
  const PipelineShape shape{
      .num_stages = seen.stages, .num_moments = seen.micro_batches, .num_chunks = chunks};
  for (PipelineSchedule schedule : AllPipelineSchedules()) {
    const bool suits = ChunksOf(schedule) == 0 || ChunksOf(schedule) == chunks;
    if (suits && ZeroBubbleOf(schedule, shape).most_in_flight == plan.zero_bubble.most_in_flight) {
      return schedule;
    }
  }
  return std::nullopt;
}

std::vector<GridRequest> RequestsFor(const Plan& plan, const SeenInPlan& seen) {
  std::vector<GridRequest> requests;
  const int64_t batch = BatchSize(plan.model.graph);
  const bool overlaps = plan.update.bucket_bytes != UpdateOptions::kOneBucket;
  for (const int64_t tensor : seen.tensor) {
    if (plan.num_devices % (tensor * seen.stages) != 0) continue;
    const int64_t rest = plan.num_devices / (tensor * seen.stages);
    for (const int64_t context : DivisorsOf(rest)) {
      const int64_t data = rest / context;
      if (batch % (data * seen.micro_batches) != 0) continue;
      for (const int64_t expert : seen.has_experts ? DivisorsOf(data) : std::vector<int64_t>{1}) {
        for (const bool sequence : {true, false}) {
          if (tensor == 1 && !sequence) continue;
          for (const int64_t chunks : kChunks) {
            if (seen.stages == 1 && chunks > 1) continue;
            const std::optional<PipelineSchedule> schedule = ScheduleOf(plan, seen, chunks);
            if (!schedule.has_value()) continue;
            for (const RecomputeMode mode :
                 {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
              if ((mode == RecomputeMode::kNone) != plan.recomputed.empty()) continue;
              requests.push_back({.degrees = {.tensor = tensor,
                                              .context = context,
                                              .expert = expert,
                                              .sequence_parallel = sequence},
                                  .stages = seen.stages,
                                  .chunks = chunks,
                                  .micro_batch_size = seen.micro_batches == 1
                                                          ? 0
                                                          : batch / (data * seen.micro_batches),
                                  .recomputation = mode,
                                  .update = plan.update.method,
                                  .overlaps_gradients = overlaps,
                                  .schedule = schedule});
            }
          }
        }
      }
    }
  }
  const size_t by_sequence = requests.size();
  for (size_t i = 0; i < by_sequence; ++i) {
    if (requests[i].degrees.context == 1) continue;
    requests[i].degrees.in_stripes = HasStripes(plan.graph);
    requests.push_back(requests[i]);
    requests.back().degrees.context_by_heads = true;
  }
  // The plainest first.
  std::stable_sort(requests.begin(), requests.end(),
                   [](const GridRequest& a, const GridRequest& b) {
                     const auto rank = [](const GridRequest& r) {
                       return r.degrees.context * r.degrees.expert * r.chunks;
                     };
                     return rank(a) < rank(b);
                   });
  return requests;
}

bool IsThePlan(const Plan& made, const Plan& plan) {
  return made.views == plan.views && made.zero_bubble == plan.zero_bubble &&
         made.recomputed == plan.recomputed && made.graph.num_nodes() == plan.graph.num_nodes() &&
         made.graph.StructuralHash() == plan.graph.StructuralHash();
}

}  // namespace

absl::StatusOr<GridRequest> GridOfPlan(const Plan& plan, const RuleIndex& rules,
                                       const CostModel& cost, OptimizeOptions options) {
  const int64_t devices = cost.machine().num_devices();
  if (devices != plan.num_devices) {
    return absl::InvalidArgumentError(absl::StrCat("the plan is for ", plan.num_devices,
                                                   " devices, and --machine has ", devices));
  }
  if (!plan.update.methods.empty()) {
    return absl::NotFoundError("copies of its weights are kept equal in several ways");
  }
  if (plan.update.steps_between_flushes > 1) {
    return absl::NotFoundError("its pipeline is not drained after each step (2BW)");
  }
  options.plan = kGrid;
  options.training = plan.mode == "training";
  options.precision = plan.precision;
  options.fp8 = plan.fp8;
  options.update = plan.update;
  options.without = {"grids"};
  ISOMER_ASSIGN_OR_RETURN(const SeenInPlan seen, SeenIn(plan));
  int64_t tries = 0;
  for (const GridRequest& request : RequestsFor(plan, seen)) {
    if (++tries > kMostTries) break;
    options.grid = request;
    const auto made = Optimize(plan.model, rules, cost, options);
    if (made.ok() && IsThePlan(made->plan, plan)) return request;
  }
  return absl::NotFoundError(absl::StrCat(
      "it is none of the ", std::min(tries, kMostTries),
      " configurations of tensor, pipeline, "
      "context and data parallelism with ",
      seen.stages, seen.stages == 1 ? " stage and " : " stages and ", seen.micro_batches,
      seen.micro_batches == 1 ? " micro-batch" : " micro-batches"));
}

}  // namespace isomer
