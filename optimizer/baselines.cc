#include "optimizer/baselines.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/batch_dims.h"
#include "optimizer/compute_graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class BaselineMapper {
 public:
  BaselineMapper(const Graph& graph, bool megatron, CostTables* tables)
      : graph_(graph), megatron_(megatron), tables_(*tables), roles_(graph) {
    const Machine& machine = tables->cost().machine();
    devices_ = machine.num_devices();
    tensor_degree_ = megatron ? machine.devices_per_node() : 1;
  }

  absl::StatusOr<MappedModel> Run() {
    MappedModel mapped;
    mapped.graph = graph_;
    for (const auto& node : AnalyzeCompute(graph_).nodes) {
      ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                              tables_.Call(graph_.node(node.id).op, node.operand_types));
      ISOMER_ASSIGN_OR_RETURN(ShardingChoice choice, Choose(node, call->space));
      mapped.choices[node.id] = std::move(choice);
    }
    if (megatron_ && row_parallel_ == 0) {
      return absl::NotFoundError(
          "megatron: no matrix product of the model is followed by another without a reduction of "
          "its columns in between");
    }
    return mapped;
  }

 private:
  absl::StatusOr<ShardingChoice> Choose(const ComputeGraph::ComputeNode& node,
                                        const ChoiceSpace& space) {
    const Declaration& d = space.sharding.declaration;
    std::vector<DimRole> roles = roles_.OfCall(node.id, d);
    auto dim_of = [&](DimRole role) {
      for (int v = 0; v < static_cast<int>(roles.size()); ++v) {
        if (roles[v] == role && space.expansions.SplitOf(v) != nullptr) return v;
      }
      return kIdleAxis;
    };
    const int batch = dim_of(DimRole::kBatch);
    int model = dim_of(DimRole::kModel);
    const bool product = node.operands.size() == 2 && node.operands[1].stored &&
                         !node.operands[0].stored &&
                         graph_.node(node.id).op.kind() == OpKind::kMatMul;
    const bool row_parallel = model >= 0 && d.dims[model].kind == DimKind::kSum && product;
    if (megatron_ && model < 0 && product) {
      model = d.LeadOfOutputDim(0, static_cast<int>(d.outputs[0].size()) - 1);  // column parallel
    }
    const int inner = model >= 0 ? model : dim_of(DimRole::kSequence);
    for (const auto& axes : Preferences(d, batch, inner)) {
      auto choice = MakeChoice(space, axes);
      if (!choice.ok()) continue;
      const bool as_meant = inner < 0 || choice->DegreeOf(inner) > 1;
      if (model >= 0 && as_meant) roles[model] = DimRole::kModel;
      if (row_parallel && as_meant) ++row_parallel_;
      // A dim that could not be split is whole again behind this call.
      for (size_t v = 0; v < roles.size(); ++v) {
        if (roles[v] == DimRole::kModel && choice->degrees[v] == 1) roles[v] = DimRole::kNone;
      }
      roles_.Mark(node.id, d, roles);
      return choice;
    }
    return absl::InternalError(absl::StrCat(graph_.Label(node.id), ": cannot be mapped at all"));
  }

  // Axes to try, best first: what is not split over devices leaves the inner ones idle.
  std::vector<std::vector<Axis>> Preferences(const Declaration& d, int batch, int inner) const {
    std::vector<std::vector<Axis>> preferences;
    auto divided = [&](int dim, int64_t degree) {
      return dim < 0 ? 1 : std::gcd(d.dims[dim].size.value(), degree);
    };
    auto add = [&](int64_t outer_degree, int64_t inner_degree) {
      const int64_t used = outer_degree * inner_degree;
      preferences.push_back(
          {{batch, outer_degree}, {inner, inner_degree}, {kIdleAxis, devices_ / used}});
    };
    if (tensor_degree_ > 1 && inner >= 0 && inner != batch) {
      const int64_t outer = divided(batch, devices_ / tensor_degree_);
      if (divided(inner, tensor_degree_) == tensor_degree_) add(outer, tensor_degree_);
    }
    add(divided(batch, devices_), 1);
    add(1, 1);
    return preferences;
  }

  const Graph& graph_;
  const bool megatron_;
  CostTables& tables_;
  DimRoles roles_;
  int64_t devices_ = 1, tensor_degree_ = 1;
  int row_parallel_ = 0;
};

}  // namespace

absl::StatusOr<MappedModel> MapBaseline(const std::string& name, const Graph& graph,
                                        CostTables* tables) {
  if (name == kSingleDevice) {
    MappedModel mapped;
    mapped.graph = graph;
    return mapped;
  }
  if (name != kDataParallel && name != kMegatron) {
    return absl::InvalidArgumentError(
        absl::StrCat("--plan=", name, ": there are ", kDataParallel, " and ", kMegatron));
  }
  return BaselineMapper(graph, name == kMegatron, tables).Run();
}

}  // namespace isomer
