#include "optimizer/proposal/spread_calls.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/sharding/compute_graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// How far the choice can be shifted so that it uses other devices in the same pattern: the digits
// that count idle devices, and what the axes leave over of the machine.
std::vector<int64_t> ShiftsOf(const ShardingChoice& choice, int64_t devices) {
  std::vector<int64_t> shifts = {0};
  const auto add_digit = [&](int64_t stride, int64_t count) {
    const std::vector<int64_t> inner = shifts;
    for (int64_t digit = 1; digit < count; ++digit) {
      for (int64_t shift : inner) shifts.push_back(shift + digit * stride);
    }
  };
  int64_t stride = 1;
  for (auto axis = choice.axes.rbegin(); axis != choice.axes.rend(); ++axis) {
    if (axis->dim == kIdleAxis) add_digit(stride, axis->degree);
    stride *= axis->degree;
  }
  if (choice.start == 0) add_digit(stride, devices / stride);
  return shifts;
}

bool ReadsWeightsAndInputsOnly(const ComputeGraph::ComputeNode& node) {
  bool any_stored = false;
  for (const auto& operand : node.operands) {
    if (operand.producer >= 0) return false;
    any_stored |= operand.stored;
  }
  return any_stored;
}

}  // namespace

absl::StatusOr<std::optional<MappedModel>> SpreadCalls(const MappedModel& mapped,
                                                       CostTables* tables) {
  const CostOptions& options = tables->options();
  const int64_t devices = tables->num_devices();
  const ComputeGraph compute = AnalyzeCompute(mapped.graph, options.training);
  std::map<std::string, std::vector<const ComputeGraph::ComputeNode*>> alike;
  for (const auto& node : compute.nodes) {
    const auto choice = mapped.choices.find(node.id);
    if (choice == mapped.choices.end() || !ReadsWeightsAndInputsOnly(node)) continue;
    std::string key =
        absl::StrCat(mapped.graph.node(node.id).op.ToString(), "@", choice->second.start);
    for (const Axis& axis : choice->second.axes) {
      absl::StrAppend(&key, " ", axis.dim, ":", axis.degree);
    }
    for (const TensorType& type : node.operand_types) absl::StrAppend(&key, " ", type.ToString());
    alike[key].push_back(&node);
  }
  const std::vector<int> batch_dims = BatchDims(mapped.graph);
  MappedModel turned = mapped;
  bool any = false;
  for (const auto& [key, nodes] : alike) {
    const int64_t count = static_cast<int64_t>(nodes.size());
    const ShardingChoice& choice = mapped.choices.at(nodes[0]->id);
    const std::vector<int64_t> shifts = ShiftsOf(choice, devices);
    const int64_t lanes = static_cast<int64_t>(shifts.size());
    if (count < 2 || lanes < 2) continue;
    ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                            tables->Call(mapped.graph.node(nodes[0]->id).op,
                                         nodes[0]->operand_types, batch_dims[nodes[0]->id.value]));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t lane = count < lanes ? i * lanes / count : i % lanes;
      auto shifted = MakeChoice(call->space, choice.axes, choice.start + shifts[lane]);
      if (!shifted.ok()) continue;
      turned.choices[nodes[i]->id] = *std::move(shifted);
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return turned;
}

namespace {

bool IsNear(const SearchContext& context, const Submachine& on) {
  return on.first_search.has_value() && context.restrictions.empty() &&
         !Simulates(context.options.strategy) && !context.contest.PredictionsAreSlow() &&
         context.IsNearBest(on.best.us);
}

absl::Status ProposeSpreadCalls(SearchContext* context, Submachine* on) {
  for (const auto& [entry, mapped] : on->entered) {
    if (context->deadline.Reached().has_value()) break;
    if (entry < *on->first_search) continue;
    ISOMER_RETURN_IF_ERROR(ConsiderSpreadCalls(mapped, context, on));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ConsiderSpreadCalls(const MappedModel& mapped, SearchContext* context,
                                 Submachine* on) {
  ISOMER_ASSIGN_OR_RETURN(const std::optional<MappedModel> spread,
                          SpreadCalls(mapped, &context->tables));
  return spread.has_value() ? context->Consider(*spread, on).status() : absl::OkStatus();
}

constinit const Proposer kSpreadCalls = {"spread_calls", "identical calls spread over idle devices",
                                         Proposer::When::kRefine, IsNear, ProposeSpreadCalls};

}  // namespace isomer
