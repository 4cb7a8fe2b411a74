#include "optimizer/mapping/role_mapping.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class RoleMapper {
 public:
  RoleMapper(const Graph& graph, const PreferencesOfCall& preferences, bool by_place,
             CostTables* tables)
      : graph_(graph),
        wishes_(preferences),
        by_place_(by_place),
        tables_(*tables),
        roles_(RolesOf(graph)) {
    devices_ = tables->num_devices();
  }

  absl::StatusOr<MappedModel> Run() {
    MappedModel mapped;
    mapped.graph = graph_;
    std::vector<int> batch_dims(graph_.num_nodes(), -1);
    if (tables_.options().moments > 1) batch_dims = BatchDims(graph_);
    for (const auto& node : AnalyzeCompute(graph_, tables_.options().training).nodes) {
      const Operator& op = graph_.node(node.id).op;
      ISOMER_ASSIGN_OR_RETURN(const ChoiceSpace* space,
                              SpaceOf(op, node.operand_types, batch_dims[node.id.value]));
      ISOMER_ASSIGN_OR_RETURN(mapped.choices[node.id], Choose(node, *space));
    }
    return mapped;
  }

 private:
  struct Chosen {
    ShardingChoice choice;
    std::vector<DimRole> roles;  // with the tensor-parallel dim
  };

  // Choices tell into how many micro-batches the call splits.
  absl::StatusOr<const ChoiceSpace*> SpaceOf(const Operator& op,
                                             const std::vector<TensorType>& operands,
                                             int batch_dim) {
    if (tables_.options().moments == 1) return tables_.Space(op, operands);
    ISOMER_ASSIGN_OR_RETURN(const CallTables* call, tables_.Call(op, operands, batch_dim));
    return &call->space;
  }

  absl::StatusOr<ShardingChoice> Choose(const ComputeGraph::ComputeNode& node,
                                        const ChoiceSpace& space) {
    const Declaration& d = space.sharding.declaration;
    std::vector<DimRole> roles = roles_.OfCall(node.id, d);
    std::string key(roles.size(), '\0');
    for (size_t v = 0; v < roles.size(); ++v) key[v] = static_cast<char>(roles[v]);
    for (const auto& operand : node.operands) key += operand.stored ? 's' : '-';
    const auto [it, added] = chosen_.try_emplace({&space, key});
    if (added || by_place_) {
      ISOMER_ASSIGN_OR_RETURN(it->second, FirstPossible(node, space, std::move(roles)));
    }
    roles_.Mark(node.id, d, it->second.roles);
    return it->second.choice;
  }

  absl::StatusOr<Chosen> FirstPossible(const ComputeGraph::ComputeNode& node,
                                       const ChoiceSpace& space, std::vector<DimRole> roles) {
    for (ShardingPreference& wish : wishes_({node.id, node, space, roles, devices_})) {
      int64_t used = 1;
      for (const Axis& axis : wish.axes) used *= axis.degree;
      // Leftover devices idle: the outer ones, if the inner axes should be adjacent.
      const bool adjacent =
          wish.axes.size() > 1 || (wish.axes.size() == 1 && wish.axes[0].dim == kCopyAxis);
      wish.axes.insert(adjacent ? wish.axes.begin() : wish.axes.end(),
                       {kIdleAxis, devices_ / used});
      auto choice = MakeChoice(space, wish.axes, tables_.options().first_device + wish.start);
      if (!choice.ok()) continue;
      if (wish.model >= 0) roles[wish.model] = DimRole::kModel;
      if (wish.expert >= 0) roles[wish.expert] = DimRole::kExpert;
      // A dim that could not be split is unsplit again after this call, unless the wish is so.
      for (size_t v = 0; v < roles.size(); ++v) {
        const bool is_set = roles[v] == DimRole::kModel || roles[v] == DimRole::kExpert;
        const bool is_wished = static_cast<int>(v) == wish.model;
        if (is_set && !is_wished && choice->degrees[v] == 1) roles[v] = DimRole::kNone;
      }
      return Chosen{*std::move(choice), std::move(roles)};
    }
    return absl::InternalError(absl::StrCat(graph_.Label(node.id), ": cannot be mapped at all"));
  }

  const Graph& graph_;
  const PreferencesOfCall& wishes_;
  const bool by_place_;
  CostTables& tables_;
  DimRoles roles_;
  int64_t devices_ = 1;
  std::map<std::pair<const ChoiceSpace*, std::string>, Chosen> chosen_;
};

}  // namespace

int CallToMap::DimOf(DimRole role) const {
  for (int v = 0; v < static_cast<int>(roles.size()); ++v) {
    if (roles[v] == role && space.expansions.SplitOf(v) != nullptr) return v;
  }
  return kIdleAxis;
}

bool CallToMap::ByWeight() const {
  return space.op.kind() == OpKind::kMatMul && node.operands[1].stored && !node.operands[0].stored;
}

int64_t CallToMap::DegreeFor(int dim, int64_t degree) const {
  if (dim < 0) return 1;
  int64_t size = declaration().dims[dim].size.value();
  if (dim == space.moment_dim) size = std::max<int64_t>(1, size / space.moments);
  return std::gcd(size, degree);
}

void CallToMap::AddDataParallel(std::vector<ShardingPreference>* preferences) const {
  const int batch = DimOf(DimRole::kBatch);
  if (batch >= 0) preferences->push_back({{{batch, DegreeFor(batch, devices)}}});
  const auto is_stored = [](const auto& operand) { return operand.stored; };
  if (batch < 0 && std::all_of(node.operands.begin(), node.operands.end(), is_stored)) {
    AddArrangedWeight(preferences);
  }
  preferences->push_back({});
}

void CallToMap::AddArrangedWeight(std::vector<ShardingPreference>* preferences) const {
  int most = kIdleAxis;
  for (int v = 0; v < static_cast<int>(declaration().dims.size()); ++v) {
    if (space.expansions.SplitOf(v) == nullptr) continue;
    if (DegreeFor(v, devices) > DegreeFor(most, devices)) most = v;
  }
  if (most >= 0) preferences->push_back({{{most, DegreeFor(most, devices)}}});
}

absl::Status MapArrangedWeights(CostTables* tables, MappedModel* mapped) {
  const bool training = tables->options().training;
  const auto is_unmapped = [&](const auto& node) { return !mapped->choices.contains(node.id); };
  const ComputeGraph compute = AnalyzeCompute(mapped->graph, training);
  if (std::none_of(compute.nodes.begin(), compute.nodes.end(), is_unmapped)) {
    return absl::OkStatus();
  }
  const PreferencesOfCall preferences = [](const CallToMap& call) {
    std::vector<ShardingPreference> preferred;
    call.AddArrangedWeight(&preferred);
    preferred.push_back({});
    return preferred;
  };
  ISOMER_ASSIGN_OR_RETURN(MappedModel arranged,
                          MapByRoles(mapped->graph, preferences, false, tables));
  // Existing choices take precedence.
  mapped->choices.merge(arranged.choices);
  return absl::OkStatus();
}

absl::StatusOr<MappedModel> MapByRoles(const Graph& graph, const PreferencesOfCall& preferences,
                                       bool by_place, CostTables* tables) {
  return RoleMapper(graph, preferences, by_place, tables).Run();
}

}  // namespace isomer
