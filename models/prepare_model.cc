#include "models/prepare_model.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/carry_states.h"
#include "models/experts_room.h"
#include "models/full_precision.h"
#include "models/loss.h"
#include "models/padding_rows.h"
#include "models/unfused_attention.h"
#include "pcg/ir/precision.h"
#include "pcg/profile/expert_loads.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status CheckIsSequential(const std::string& spec, const Graph& graph) {
  for (int i = 0; i < graph.num_nodes(); ++i) {
    for (const TensorType& type : graph.node(i).outputs) {
      if (!type.IsParallel()) continue;
      return absl::InvalidArgumentError(absl::StrCat(spec, ": ", graph.Label(NodeId{i}),
                                                     " is parallel already: ", type.ToString()));
    }
  }
  return absl::OkStatus();
}

bool HasWeights(const Graph& graph) {
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (graph.node(i).op.kind() == OpKind::kWeight) return true;
  }
  return false;
}

absl::Status SetExpertsRoom(const PrepareOptions& options, Model* model,
                            std::vector<std::string>* notes) {
  double imbalance = options.expert_imbalance;
  std::string from = "--expert_imbalance";
  if (!options.expert_loads.empty()) {
    from = absl::StrCat("--expert_loads: ", options.expert_loads);
    ISOMER_ASSIGN_OR_RETURN(const ExpertLoads loads, LoadExpertLoads(options.expert_loads));
    if (const absl::Status of = CheckAreLoadsOf(*model, loads); !of.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(from, ": ", of.message()));
    }
    imbalance = loads.Imbalance();
    notes->push_back(absl::StrCat(options.expert_loads, ": the busiest expert got ", imbalance,
                                  " times the even load (--expert_imbalance)"));
  }
  if (imbalance == 0) return absl::OkStatus();
  if (const absl::Status given = GiveExpertsRoom(imbalance, model); !given.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(from, ": ", given.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareModel(const std::string& spec, const PrepareOptions& options, Model* model,
                          std::vector<std::string>* notes) {
  ISOMER_RETURN_IF_ERROR(CheckIsSequential(spec, model->graph));
  if (options.training && !HasWeights(model->graph)) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec, ": it has no weights to train; --mode=inference"));
  }
  if (!options.training && options.loss != "auto") {
    return absl::InvalidArgumentError("--loss is for --mode=training");
  }
  if (options.training && !options.carry.empty()) {
    return absl::InvalidArgumentError("--carry is for --mode=inference");
  }
  if (!options.training) {
    ISOMER_RETURN_IF_ERROR(CarryStates(options.carry, model, notes));
    OmitPaddingRows(model);
  }
  ISOMER_RETURN_IF_ERROR(SetExpertsRoom(options, model, notes));
  const auto [loss, of] =
      std::pair<std::string, std::string>(absl::StrSplit(options.loss, absl::MaxSplits(':', 1)));
  const bool is_guess = loss == "auto" && model->loss.empty() && !absl::StartsWith(spec, "zoo:");
  const DataType stated = StatedPrecision(*model);
  if (options.training) ISOMER_RETURN_IF_ERROR(AttachLoss(model, loss, of));
  if (options.unfused_attention) {
    ISOMER_ASSIGN_OR_RETURN(const int taken_apart, TakeAttentionApart(model));
    if (taken_apart == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--attention=unfused: ", model->name, " has no calls of fused attention"));
    }
  }
  if (options.training && stated != DataType::kFloat32) {
    const absl::string_view name = PrecisionName(stated);
    notes->push_back(absl::StrCat(spec, ": it is in ", name,
                                  ", of which training keeps float32; --precision=", name,
                                  " computes in it"));
  }
  if (options.training && is_guess) {
    notes->push_back(absl::StrCat(spec, ": the loss is ", LossText(*model), " (--loss)"));
  }
  if (options.training && options.loss_alone) ISOMER_RETURN_IF_ERROR(KeepLossAlone(model));
  return absl::OkStatus();
}

}  // namespace isomer
