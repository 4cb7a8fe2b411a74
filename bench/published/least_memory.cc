#include "bench/published/least_memory.h"

#include <utility>
#include <vector>

#include "models/load.h"
#include "models/prepare_model.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/simulator/stored_bytes.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<std::unique_ptr<LeastMemory>> LeastMemory::Make(const std::string& model,
                                                               int64_t batch_size,
                                                               const MachineRequest& machine,
                                                               const OptimizeRequest& request) {
  std::unique_ptr<LeastMemory> made(new LeastMemory);
  ISOMER_ASSIGN_OR_RETURN(made->model_, LoadAnyModel(model, {.batch_size = batch_size}));
  std::vector<std::string> notes;
  ISOMER_RETURN_IF_ERROR(PrepareModel(model,
                                      {.training = request.mode == "training",
                                       .loss = request.loss,
                                       .loss_alone = request.loss_alone,
                                       .unfused_attention = request.attention == "unfused"},
                                      &made->model_, &notes));
  ISOMER_ASSIGN_OR_RETURN(made->options_, OptionsOf(request));
  ISOMER_ASSIGN_OR_RETURN(Machine devices, MachineOf(machine, request.search));
  ISOMER_ASSIGN_OR_RETURN(made->costs_, CostsOf(request, std::move(devices)));
  ISOMER_ASSIGN_OR_RETURN(made->rules_, RulesOf(request));
  made->index_ = std::make_unique<RuleIndex>(made->rules_);
  made->context_ = std::make_unique<SearchContext>(made->model_, *made->index_, *made->costs_.model,
                                                   made->options_, &made->shared_);
  return made;
}

absl::StatusOr<std::optional<int64_t>> LeastMemory::BytesOf(const OptimizeRequest& request) {
  ISOMER_ASSIGN_OR_RETURN(const OptimizeOptions options, OptionsOf(request));
  const absl::StatusOr<ParallelConfig> asked = ConfigOf(*options.grid, model_, context_->devices);
  if (!asked.ok()) return std::nullopt;
  ParallelConfig config = *asked;
  config.update = options.update.method;
  context_->tables.set_options(context_->BaseOptions());
  absl::StatusOr<GridPlan> made =
      PlanOfConfig(&context_->graphs, options.training, config, &context_->tables);
  if (!made.ok()) return std::nullopt;
  context_->SetOptions(&made->plan);
  config.SetOptions(&made->plan);
  return LeastStoredBytes(made->plan, made->plan.update, &costs_.model->machine());
}

}  // namespace isomer
