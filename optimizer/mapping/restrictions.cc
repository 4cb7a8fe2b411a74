#include "optimizer/mapping/restrictions.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/constraint_names.h"
#include "optimizer/sharding/constraint_spread.h"
#include "pcg/support/status_macros.h"

namespace isomer {
class RestrictionResolver {
 public:
  RestrictionResolver(const Constraints& constraints, const Graph& graph, CostTables* tables)
      : constraints_(constraints),
        graph_(graph),
        tables_(*tables),
        compute_(AnalyzeCompute(graph)) {}

  absl::StatusOr<Restrictions> Run() {
    ISOMER_ASSIGN_OR_RETURN(const ConstraintSpread spread,
                            ConstraintSpread::Make(constraints_, graph_, compute_));
    for (const auto& node : constraints_.nodes) ISOMER_RETURN_IF_ERROR(Place(node));
    for (const auto& group : constraints_.colocations) ISOMER_RETURN_IF_ERROR(Colocate(group));
    ISOMER_RETURN_IF_ERROR(CheckStages());
    for (const auto& node : compute_.nodes) ISOMER_RETURN_IF_ERROR(Restrict(node, spread));
    return std::move(result_);
  }

 private:
  using Want = ConstraintSpread::Want;
  struct Devices {
    std::optional<DeviceRange> range;
    std::string source;
  };

  absl::Status SetDevices(NodeId id, const DeviceRange& range, const std::string& source) {
    Devices& devices = devices_[id];
    if (devices.range && *devices.range != range) {
      return ConstraintError(
          source, absl::StrCat(graph_.Label(id), " runs on devices ", RangeText(range), ", but on ",
                               RangeText(*devices.range), " at ", devices.source));
    }
    if (!devices.range) devices = {range, source};
    return absl::OkStatus();
  }

  static std::string RangeText(const DeviceRange& range) {
    return absl::StrCat(range.first, " to ", range.first + range.count - 1);
  }

  absl::Status Place(const Constraints::OfNode& constraint) {
    const int64_t devices = tables_.cost().machine().num_devices();
    if (constraint.devices && constraint.devices->first + constraint.devices->count > devices) {
      return ConstraintError(constraint.source,
                             absl::StrCat("there are no devices ", RangeText(*constraint.devices),
                                          ": the machine has ", devices));
    }
    ISOMER_ASSIGN_OR_RETURN(const auto nodes,
                            OperatorsNamed(graph_, compute_, constraint.name, constraint.source));
    for (NodeId id : nodes) {
      if (constraint.devices) {
        ISOMER_RETURN_IF_ERROR(SetDevices(id, *constraint.devices, constraint.source));
      }
      if (constraint.stage) {
        ISOMER_RETURN_IF_ERROR(SetStage(id, *constraint.stage, constraint.source));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SetStage(NodeId id, int64_t stage, const std::string& source) {
    const auto [it, added] = stages_.try_emplace(id, stage, source);
    if (added || it->second.first == stage) return absl::OkStatus();
    return ConstraintError(source,
                           absl::StrCat(graph_.Label(id), " is of stage ", stage, ", but of stage ",
                                        it->second.first, " at ", it->second.second));
  }

  absl::Status Colocate(const Constraints::Colocation& group) {
    std::vector<NodeId> nodes;
    for (const std::string& name : group.names) {
      ISOMER_ASSIGN_OR_RETURN(const auto some,
                              OperatorsNamed(graph_, compute_, name, group.source));
      nodes.insert(nodes.end(), some.begin(), some.end());
    }
    const Devices* known = nullptr;
    std::pair<int64_t, std::string> stage{-1, ""};
    for (NodeId id : nodes) {
      if (const auto it = stages_.find(id); it != stages_.end()) stage = it->second;
      const auto it = devices_.find(id);
      if (it == devices_.end() || !it->second.range) continue;
      if (known != nullptr && *known->range != *it->second.range) {
        return ConstraintError(
            group.source,
            absl::StrCat(graph_.Label(id), " is to be with others, but runs on devices ",
                         RangeText(*it->second.range), " at ", it->second.source,
                         " and one of those on ", RangeText(*known->range), " at ", known->source));
      }
      known = &it->second;
    }
    const Devices where = known == nullptr ? Devices{std::nullopt, group.source} : *known;
    for (NodeId id : nodes) {
      devices_.try_emplace(id, where);
      if (stage.first >= 0) ISOMER_RETURN_IF_ERROR(SetStage(id, stage.first, stage.second));
    }
    return absl::OkStatus();
  }

  // Data must not flow to earlier stages.
  absl::Status CheckStages() {
    std::vector<std::pair<int64_t, std::string>> reached(compute_.nodes.size(), {-1, ""});
    for (size_t n = 0; n < compute_.nodes.size(); ++n) {
      for (const auto& operand : compute_.nodes[n].operands) {
        if (operand.producer >= 0) reached[n] = std::max(reached[n], reached[operand.producer]);
      }
      const auto stage = stages_.find(compute_.nodes[n].id);
      if (stage == stages_.end()) continue;
      if (stage->second.first < reached[n].first) {
        return ConstraintError(stage->second.second,
                               absl::StrCat(graph_.Label(stage->first), " is of stage ",
                                            stage->second.first, ", but needs what stage ",
                                            reached[n].first, " makes, at ", reached[n].second));
      }
      reached[n] = stage->second;
    }
    for (const auto& [id, stage] : stages_) {
      result_.stages_[id] = stage.first;
      result_.of_node_[id] = {};
      ISOMER_RETURN_IF_ERROR(CheckNoDevices(stage));
    }
    return absl::OkStatus();
  }

  // Pipeline stages divide the devices equally, so they exclude device constraints.
  absl::Status CheckNoDevices(const std::pair<int64_t, std::string>& stage) const {
    if (stage.first == 0) return absl::OkStatus();
    for (const auto& [id, where] : devices_) {
      if (!where.range) continue;
      return ConstraintError(
          stage.second,
          absl::StrCat("a stage has devices of its own; take it back, or that ", graph_.Label(id),
                       " runs on ", RangeText(*where.range), " at ", where.source));
    }
    return absl::OkStatus();
  }

  // Constraints that reach a call, per iteration dim; stated ones first, then by distance.
  struct AtCall {
    int dim;
    Want want;
    std::string where;
  };

  absl::StatusOr<std::vector<AtCall>> WantsOf(const ComputeGraph::ComputeNode& node,
                                              const Declaration& d,
                                              const ConstraintSpread& spread) const {
    std::vector<AtCall> wants;
    const Node& call = graph_.node(node.id);
    auto add = [&](TensorRef tensor, int i, int lead, bool makes) -> absl::Status {
      const Want* known = spread.Find(tensor, i);
      if (known == nullptr) return absl::OkStatus();
      Want want = *known;
      if (!makes) ++want.hops;
      const std::string where = absl::StrCat("dim ", i, " of ", TensorLabel(graph_, tensor));
      if (lead >= 0) {
        wants.push_back({lead, want, where});
      } else if (want.hops == 0 && want.degree > 1) {
        return ConstraintError(want.source,
                               absl::StrCat(graph_.Label(node.id), " cannot be split in ", where));
      }
      return absl::OkStatus();
    };
    for (int o = 0; o < d.num_operands(); ++o) {
      const std::string* replicated = spread.Replicated(call.inputs[o]);
      for (int i = 0; i < static_cast<int>(d.operands[o].size()); ++i) {
        const int lead = d.LeadOfOperandDim(o, i);
        const bool makes = node.operands[o].producer < 0;  // stored or fed
        ISOMER_RETURN_IF_ERROR(add(call.inputs[o], i, lead, makes));
        if (replicated == nullptr || lead < 0) continue;
        wants.push_back({lead, {1, *replicated, 0}, TensorLabel(graph_, call.inputs[o])});
      }
    }
    for (int t = 0; t < static_cast<int>(d.outputs.size()); ++t) {
      for (int i = 0; i < static_cast<int>(d.outputs[t].size()); ++i) {
        ISOMER_RETURN_IF_ERROR(add({node.id, t}, i, d.LeadOfOutputDim(t, i), true));
      }
    }
    std::stable_sort(wants.begin(), wants.end(),
                     [](const AtCall& a, const AtCall& b) { return a.want.hops < b.want.hops; });
    return wants;
  }

  bool Possible(const ComputeGraph::ComputeNode& node, const CallRestriction& restriction) {
    return tables_.Call(graph_.node(node.id).op, node.operand_types, -1, &restriction).ok();
  }

  absl::Status Restrict(const ComputeGraph::ComputeNode& node, const ConstraintSpread& spread) {
    ISOMER_ASSIGN_OR_RETURN(const Sharding sharding,
                            InferSharding(graph_.node(node.id).op, node.operand_types));
    ISOMER_ASSIGN_OR_RETURN(const auto wants, WantsOf(node, sharding.declaration, spread));
    Restrictions::OfNode of;
    std::set<std::string> sources;
    if (const auto devices = devices_.find(node.id); devices != devices_.end()) {
      of.stated.devices = devices->second.range;
      of.stated.whole_machine = !devices->second.range;
      sources.insert(devices->second.source);
    }
    std::map<int, const AtCall*> stated;
    for (const AtCall& at : wants) {
      if (at.want.hops > 0) continue;
      const auto [it, added] = stated.try_emplace(at.dim, &at);
      const AtCall& other = *it->second;
      if (!added && other.want.degree != at.want.degree) {
        return ConstraintError(
            at.want.source, absl::StrCat(graph_.Label(node.id), " would split ", at.where, " by ",
                                         at.want.degree, ", but ", other.where, " by ",
                                         other.want.degree, " at ", other.want.source));
      }
      of.stated.degrees[at.dim] = at.want.degree;
      sources.insert(at.want.source);
    }
    of.sources = absl::StrJoin(sources, " and ");
    if (!of.stated.empty() && !Possible(node, of.stated)) {
      return ConstraintError(of.sources, absl::StrCat("no way to spread ", graph_.Label(node.id),
                                                      " over the machine keeps to this"));
    }
    of.all = of.stated;
    for (const AtCall& at : wants) {
      if (at.want.hops == 0 || of.all.degrees.count(at.dim) > 0) continue;
      of.all.degrees[at.dim] = at.want.degree;
      if (!Possible(node, of.all)) of.all.degrees.erase(at.dim);
    }
    if (!of.all.empty()) result_.of_node_[node.id] = std::move(of);
    return absl::OkStatus();
  }

  const Constraints& constraints_;
  const Graph& graph_;
  CostTables& tables_;
  const ComputeGraph compute_;
  std::map<NodeId, Devices> devices_;
  std::map<NodeId, std::pair<int64_t, std::string>> stages_;
  Restrictions result_;
};

absl::StatusOr<Restrictions> Restrictions::Resolve(const Constraints& constraints,
                                                   const Graph& graph, CostTables* tables) {
  return RestrictionResolver(constraints, graph, tables).Run();
}

const CallRestriction* Restrictions::Of(NodeId node) const {
  const auto it = of_node_.find(node);
  return it == of_node_.end() ? nullptr : &it->second.all;
}

Restrictions Restrictions::AnyChoice() const {
  Restrictions any;
  for (const auto& [id, of] : of_node_) any.of_node_[id] = {};
  return any;
}

bool Restrictions::restrict_calls() const {
  return std::any_of(of_node_.begin(), of_node_.end(),
                     [](const auto& of) { return !of.second.all.empty(); });
}

int64_t Restrictions::least_stages() const {
  int64_t stages = 1;
  for (const auto& [id, stage] : stages_) stages = std::max(stages, stage + 1);
  return stages;
}

std::vector<std::string> Restrictions::Violations(const MappedModel& mapped) const {
  std::vector<std::string> violations;
  if (of_node_.empty()) return violations;
  const ComputeGraph compute = AnalyzeCompute(mapped.graph);
  for (const auto& [id, of] : of_node_) {
    if (of.stated.empty()) continue;
    const auto choice = mapped.choices.find(id);
    if (compute.index[id.value] >= 0 && choice != mapped.choices.end() &&
        of.stated.Allows(choice->second)) {
      continue;
    }
    violations.push_back(
        absl::StrCat(of.sources, ": ", mapped.graph.Label(id), " does not keep to this"));
  }
  return violations;
}

}  // namespace isomer
