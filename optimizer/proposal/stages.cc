#include "optimizer/proposal/stages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/stage_cut.h"
#include "pcg/ir/weight_cuts.h"
#include "pcg/profile/work.h"
#include "pcg/support/check.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class Estimator {
 public:
  Estimator(const MappedModel& mapped, CostTables* tables)
      : mapped_(mapped), graph_(mapped.graph), tables_(*tables) {}

  absl::StatusOr<MappedEstimate> Run() {
    result_.compute = AnalyzeCompute(graph_, tables_.options().training);
    const std::vector<int> batch_dims = BatchDims(graph_);
    for (const auto& node : result_.compute.nodes) {
      const auto choice = mapped_.choices.find(node.id);
      ISOMER_CHECK(choice != mapped_.choices.end());
      ISOMER_ASSIGN_OR_RETURN(
          const CallTables* call,
          tables_.Call(graph_.node(node.id).op, node.operand_types, batch_dims[node.id.value]));
      classes_.push_back(ClassOf(call, choice->second, node));
      result_.calls.push_back(classes_.back()->estimate);
      AddEdges(node);
    }
    KeepWhatIsNeeded();
    return std::move(result_);
  }

 private:
  // Calls that cost the same.
  struct Class {
    int id;
    const ShardingChoice* choice;
    CallEstimate estimate;
    GradientNeeds needs;
  };

  const Class* ClassOf(const CallTables* call, const ShardingChoice& choice,
                       const ComputeGraph::ComputeNode& node) {
    std::string key = absl::StrCat(choice.start);
    for (const Axis& axis : choice.axes) absl::StrAppend(&key, " ", axis.dim, ":", axis.degree);
    for (const auto& o : node.operands) absl::StrAppend(&key, o.stored ? "s" : "", o.gradient);
    const auto [it, added] = by_key_.try_emplace({call, key});
    if (!added) return &it->second;
    it->second = {.id = static_cast<int>(by_key_.size()),
                  .choice = &choice,
                  .estimate = EstimateOf(call->space, choice, node),
                  .needs = NeedsOfGradient(call->space.op, call->space.sharding.declaration,
                                           call->space.operands)};
    return &it->second;
  }

  CallEstimate EstimateOf(const ChoiceSpace& space, const ShardingChoice& choice,
                          const ComputeGraph::ComputeNode& node) {
    CallEstimate estimate;
    const ChoiceCost cost =
        ChoicePricer(tables_.cost(), tables_.options(), space, node).CostOf(choice);
    estimate.us = cost.us;
    estimate.synchronisation_us = cost.synchronisation_us;
    estimate.kept_bytes = cost.saved_bytes;
    for (size_t o = 0; o < choice.operands.size(); ++o) {
      if (!node.operands[o].stored) continue;
      const Placement& stored = choice.operands[o];
      if (!tables_.options().training || !node.operands[o].gradient) {
        estimate.fixed_bytes += stored.type.LocalBytes();
        continue;
      }
      estimate.weights += stored.type.LocalElements();
      estimate.shards.push_back(stored.type.LocalShape());
      const size_t axis = stored.type.dims.size();
      estimate.copies = stored.type.copies / stored.view.MomentsOfAxis(axis);
    }
    estimate.SetCopies(estimate.copies);
    for (const Placement& output : choice.outputs) estimate.output_bytes += BytesOf(output.type);
    return estimate;
  }

  // Of one shard, as it is computed.
  int64_t BytesOf(TensorType type) const {
    type.dtype = ComputedIn(tables_.options().precision, type.dtype);
    return type.LocalBytes();
  }

  // An output of a call that several devices compute, for a user that reads it otherwise: one
  // device's.
  static Placement MadeFor(const ShardingChoice& choice, int output, const Placement& as_read) {
    const Placement& made = choice.outputs[output];
    return choice.copies() == 1 || made == as_read ? made : WithoutCopies(choice).outputs[output];
  }

  void AddEdges(const ComputeGraph::ComputeNode& node) {
    const Class* to = classes_.back();
    for (int o = 0; o < static_cast<int>(node.operands.size()); ++o) {
      const auto& operand = node.operands[o];
      if (operand.producer < 0) continue;
      const Class* from = classes_[operand.producer];
      const auto [it, added] =
          edges_.try_emplace({from->id, operand.output, to->id, o, operand.gradient});
      if (added) {
        const Placement& as_read = to->choice->operands[o];
        it->second = tables_
                         .EdgeUs(tables_.Intern({MadeFor(*from->choice, operand.output, as_read)}),
                                 tables_.Intern({as_read}), operand.gradient)
                         .at(0, 0);
      }
      result_.calls.back().us += it->second;
    }
  }

  // A tensor is kept for the backward pass if the gradient of the call that makes it needs it, or
  // that of one that reads it; where that is placed otherwise, as it is read.
  void KeepWhatIsNeeded() {
    if (!tables_.options().training) return;
    const auto& nodes = result_.compute.nodes;
    std::vector<std::vector<bool>> kept;  // per node and output
    for (const Class* of_node : classes_) kept.emplace_back(of_node->choice->outputs.size(), false);
    std::set<std::tuple<int, int, PlacementSetId>> read;
    for (size_t i = 0; i < nodes.size(); ++i) {
      bool any = false;
      for (const auto& operand : nodes[i].operands) any |= operand.gradient;
      if (!any) continue;
      for (size_t t = 0; t < kept[i].size(); ++t) {
        if (classes_[i]->needs.outputs[t]) kept[i][t] = true;
      }
      for (size_t o = 0; o < nodes[i].operands.size(); ++o) {
        const auto& operand = nodes[i].operands[o];
        if (operand.producer < 0 || !classes_[i]->needs.operands[o]) continue;
        const Placement& as_read = classes_[i]->choice->operands[o];
        const Placement made =
            MadeFor(*classes_[operand.producer]->choice, operand.output, as_read);
        if (made == as_read) {
          kept[operand.producer][operand.output] = true;
        } else if (read.emplace(operand.producer, operand.output, tables_.Intern({as_read}))
                       .second) {
          result_.calls[i].gathered_bytes += BytesOf(as_read.type);
          result_.calls[i].gather_us +=
              tables_.EdgeUs(tables_.Intern({made}), tables_.Intern({as_read}), false).at(0, 0);
        }
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (size_t t = 0; t < kept[i].size(); ++t) {
        if (!kept[i][t]) continue;
        result_.calls[i].kept_bytes += BytesOf(classes_[i]->choice->outputs[t].type);
      }
    }
  }

  const MappedModel& mapped_;
  const Graph& graph_;
  CostTables& tables_;
  MappedEstimate result_;
  std::vector<const Class*> classes_;  // per call
  std::map<std::pair<const CallTables*, std::string>, Class> by_key_;
  std::map<std::tuple<int, int, int, int, bool>, float> edges_;
};

// Of every call: a stage is not before those of what it reads, nor behind those of what reads it.
std::vector<StageRange> RangesOf(const ComputeGraph& compute, const BoundStages& bound) {
  const auto& nodes = compute.nodes;
  std::vector<StageRange> ranges(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& operand : nodes[i].operands) {
      if (operand.producer < 0) continue;
      ranges[i].first = std::max(ranges[i].first, ranges[operand.producer].first);
    }
    if (const auto it = bound.find(nodes[i].id); it != bound.end()) {
      ranges[i].first = ranges[i].last = static_cast<int>(it->second);
    }
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    for (const auto& operand : nodes[i].operands) {
      if (operand.producer < 0) continue;
      StageRange& range = ranges[operand.producer];
      range.last = std::min(range.last, ranges[i].last);
    }
  }
  return ranges;
}

}  // namespace

void CallEstimate::SetCopies(int64_t devices) {
  copies = devices;
  in_parts = 0;
  for (const std::vector<int64_t>& shard : shards) {
    if (CutsOf(shard, copies).empty()) continue;
    in_parts += std::accumulate(shard.begin(), shard.end(), int64_t{1}, std::multiplies<>());
  }
}

absl::StatusOr<MappedEstimate> EstimateMapped(const MappedModel& mapped, CostTables* tables) {
  return Estimator(mapped, tables).Run();
}

namespace {

// The kinds of devices [first, first + count), each once.
std::vector<int> KindsOn(const Machine& machine, int64_t first, int64_t count) {
  std::set<int> kinds;
  for (int64_t d = first; d < first + count; ++d) kinds.insert(machine.kind_index(d));
  return {kinds.begin(), kinds.end()};
}

// Calls as long as on the slower of two places.
void TakeSlower(const MappedEstimate& other, MappedEstimate* estimate) {
  for (size_t i = 0; i < estimate->calls.size(); ++i) {
    CallEstimate& call = estimate->calls[i];
    const CallEstimate& there = other.calls[i];
    call.us = std::max(call.us, there.us);
    call.synchronisation_us = std::max(call.synchronisation_us, there.synchronisation_us);
    call.gather_us = std::max(call.gather_us, there.gather_us);
  }
}

}  // namespace

absl::StatusOr<BlockEstimates> BlockEstimates::Of(const MappedModel& mapped, int64_t block_devices,
                                                  int64_t blocks, CostTables* tables) {
  const CostModel& cost = tables->cost();
  if (cost.uniform()) {
    ISOMER_ASSIGN_OR_RETURN(MappedEstimate all, EstimateMapped(mapped, tables));
    return BlockEstimates(std::move(all));
  }
  const ComputeGraph compute = AnalyzeCompute(mapped.graph, tables->options().training);
  BlockEstimates result;
  std::map<std::vector<int>, int> known;  // by the kinds of a block's devices
  for (int64_t block = 0; block < blocks; ++block) {
    const auto [it, added] =
        known.try_emplace(KindsOn(cost.machine(), block * block_devices, block_devices),
                          static_cast<int>(result.distinct_.size()));
    if (added) {
      MappedModel there = mapped;
      MoveToBlocks(compute, std::vector<int64_t>(compute.nodes.size(), block), block_devices,
                   &there);
      ISOMER_ASSIGN_OR_RETURN(MappedEstimate estimate, EstimateMapped(there, tables));
      result.distinct_.push_back(std::move(estimate));
    }
    result.of_block_.push_back(it->second);
  }
  return result;
}

BlockEstimates BlockEstimates::Joined(int64_t parts) const {
  if (of_block_.empty() || parts == 1) return *this;
  BlockEstimates result;
  std::map<std::set<int>, int> known;  // by the estimates of a block's parts
  for (size_t first = 0; first + parts <= of_block_.size(); first += parts) {
    const std::set<int> different(of_block_.begin() + first, of_block_.begin() + first + parts);
    const auto [it, added] =
        known.try_emplace(different, static_cast<int>(result.distinct_.size()));
    if (added) {
      result.distinct_.push_back(distinct_[*different.begin()]);
      for (int part : different) TakeSlower(distinct_[part], &result.distinct_.back());
    }
    result.of_block_.push_back(it->second);
  }
  return result;
}

std::vector<int> StagesOfCalls(const BlockEstimates& estimates,
                               absl::Span<const int64_t> block_of_stage, const BoundStages& bound,
                               absl::Span<const StageRoom> rooms) {
  const auto& nodes = estimates.compute().nodes;
  const size_t count = nodes.size(), stages = block_of_stage.size();
  if (count == 0 || stages > count) return {};
  if (stages == 1 && rooms.empty()) return std::vector<int>(count, 0);
  const std::vector<StageRange> ranges = RangesOf(estimates.compute(), bound);
  // Ranges grow along edges, so this is a topological order.
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(ranges[a].first, ranges[a].last) < std::pair(ranges[b].first, ranges[b].last);
  });
  std::vector<size_t> place(count);
  for (size_t i = 0; i < count; ++i) place[order[i]] = i;
  std::vector<MadeByCall> made;
  std::vector<StageRange> allowed;
  for (size_t i = 0; i < count; ++i) {
    const size_t call = order[i];
    made.push_back({i, i, estimates.of(block_of_stage[0]).calls[call].output_bytes});
    if (!bound.empty()) allowed.push_back(ranges[call]);
    for (const auto& operand : nodes[call].operands) {
      if (operand.producer >= 0) made[place[operand.producer]].last_use = i;
    }
  }
  std::map<int64_t, std::vector<double>> us;  // by class of blocks
  std::vector<std::vector<int64_t>> bytes(rooms.size());
  std::vector<StageCosts> costs;
  for (size_t s = 0; s < stages; ++s) {
    std::vector<double>& of_class = us[estimates.ClassOf(block_of_stage[s])];
    for (size_t i = of_class.size(); i < count; ++i) {
      of_class.push_back(estimates.of(block_of_stage[s]).calls[order[i]].us);
    }
    costs.push_back({of_class});
    if (rooms.empty()) continue;
    for (size_t i = 0; i < count; ++i) bytes[s].push_back(rooms[s].bytes[order[i]]);
    costs.back().bytes = bytes[s];
    costs.back().most_bytes = rooms[s].most_bytes;
  }
  const std::vector<int> in_order = StagesOfCalls(costs, made, allowed);
  if (in_order.empty()) return {};
  std::vector<int> stage_of_call(count);
  for (size_t i = 0; i < count; ++i) stage_of_call[order[i]] = in_order[i];
  return stage_of_call;
}

bool LeadsThroughChunks(const ComputeGraph& compute, const std::vector<int>& chunk_of_call) {
  const auto& nodes = compute.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& operand : nodes[i].operands) {
      if (operand.producer < 0) continue;
      if (chunk_of_call[i] - chunk_of_call[operand.producer] > 1) return false;
    }
  }
  return true;
}

void MoveToBlocks(const ComputeGraph& compute, absl::Span<const int64_t> block_of_call,
                  int64_t block_devices, MappedModel* mapped) {
  for (size_t i = 0; i < compute.nodes.size(); ++i) {
    ShardingChoice& choice = mapped->choices.at(compute.nodes[i].id);
    const int64_t by = block_of_call[i] * block_devices;
    choice.start += by;
    for (Placement& operand : choice.operands) operand.view.start += by;
    for (Placement& output : choice.outputs) output.view.start += by;
  }
}

}  // namespace isomer
