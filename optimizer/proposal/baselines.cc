#include "optimizer/proposal/baselines.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/role_mapping.h"
#include "optimizer/proposal/published_plans.h"
#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<MappedModel> MapTensorParallel(const Graph& graph, int64_t tensor_degree,
                                              CostTables* tables) {
  const PreferencesOfCall preferences = [&](const CallToMap& call) {
    std::vector<ShardingPreference> preferred;
    const Declaration& d = call.declaration();
    const int batch = call.DimOf(DimRole::kBatch);
    int model = call.DimOf(DimRole::kModel);
    if (model < 0 && call.IsProductWithWeight()) {
      model = d.LeadOfOutputDim(0, static_cast<int>(d.outputs[0].size()) - 1);  // column parallel
    }
    const int inner = model >= 0 ? model : call.DimOf(DimRole::kSequence);
    if (tensor_degree > 1 && inner >= 0 && inner != batch &&
        call.DegreeFor(inner, tensor_degree) == tensor_degree) {
      const int64_t outer = call.DegreeFor(batch, call.devices / tensor_degree);
      preferred.push_back({{{batch, outer}, {inner, tensor_degree}}, 0, model});
    }
    call.AddDataParallel(&preferred);
    return preferred;
  };
  ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, MapByRoles(graph, preferences, false, tables));
  mapped.copies_arranged = true;
  const auto is_row_parallel = [&](const auto& mapped_call) {
    const auto& [id, choice] = mapped_call;
    return graph.node(id).op.kind() == OpKind::kMatMul && choice.outputs[0].type.partials > 1;
  };
  if (tensor_degree > 1 &&
      std::none_of(mapped.choices.begin(), mapped.choices.end(), is_row_parallel)) {
    return absl::NotFoundError(
        "megatron: no matrix product of the model is followed by another without a reduction of "
        "its columns in between");
  }
  return mapped;
}

absl::StatusOr<MappedModel> MapBaseline(const std::string& name, const Graph& graph,
                                        CostTables* tables) {
  if (name == kSingleDevice) {
    MappedModel mapped;
    mapped.graph = graph;
    return mapped;
  }
  if (name == kDataParallel || name == kZero3) return MapTensorParallel(graph, 1, tables);
  const int64_t node = std::gcd(tables->cost().machine().devices_per_node(), tables->num_devices());
  if (name == kMegatron && node > 1) return MapTensorParallel(graph, node, tables);
  if (name == kMegatron) return absl::NotFoundError("megatron: a node has just one device");
  if (name == kPublished) return MapPublished(graph, tables);
  return absl::InvalidArgumentError(absl::StrCat("--plan=", name, ": there are ", kDataParallel,
                                                 ", ", kZero3, ", ", kMegatron, " and ",
                                                 kPublished));
}

}  // namespace isomer
