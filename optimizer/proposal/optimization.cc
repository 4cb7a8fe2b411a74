#include "optimizer/proposal/optimization.h"

#include <algorithm>
#include <thread>

#include "optimizer/mapping/arranged_weights.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

int ThreadsOf(const OptimizeOptions& options) {
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, options.threads > 0 ? options.threads : all);
}

CostOptions CostOptionsOf(const OptimizeOptions& options) {
  CostOptions cost{.training = options.training,
                   .precision = options.precision,
                   .optimizer = options.update.optimizer};
  cost.num_devices = options.devices;
  cost.low_precision_sums = options.update.low_precision_sums;
  cost.updates_together = options.update.bucket_bytes > 0;
  return cost;
}

}  // namespace

Optimization::Optimization(const Model& model, const RuleIndex& rules, const CostModel& cost,
                           const OptimizeOptions& options, PredictionMemo* predictions)
    : model(model),
      cost(cost),
      options(options),
      deadline(Deadline::In(options.search.time_limit_s)),
      devices(options.devices > 0 ? options.devices : cost.machine().num_devices()),
      tables(rules, cost, CostOptionsOf(options)),
      moves(cost),
      predictions(*predictions),
      contest(cost, ThreadsOf(options), predictions),
      arranges_weights(
          ArrangesWeights(model.graph, AnalyzeCompute(model.graph, options.training))) {}

int Optimization::threads() const { return ThreadsOf(options); }

CostOptions Optimization::BaseOptions() const { return CostOptionsOf(options); }

absl::StatusOr<Plan> Optimization::PlanOf(const MappedModel& mapped, const Grid* grid,
                                          CallOrder order) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, DerivePlan(model, mapped, options.training, &tables, order));
  SetOptions(&plan);
  if (grid != nullptr) grid->SetOptions(&plan);
  return plan;
}

void Optimization::SetOptions(Plan* plan) const {
  plan->precision = options.precision;
  plan->update = options.update;
}

bool Optimization::OnPartsToo() const {
  return restrictions.empty() && !Simulates(options.strategy) && !options.whole_machine;
}

}  // namespace isomer
