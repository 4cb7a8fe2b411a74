#include "optimizer/comparison/plan_summary.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "optimizer/proposal/grid_plan.h"
#include "optimizer/report/folded_name.h"
#include "optimizer/report/headline.h"
#include "optimizer/report/plan_facts.h"
#include "optimizer/report/split_text.h"
#include "pcg/ir/precision.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

void AddTo(const std::map<std::string, double>& from, std::map<std::string, double>* to) {
  for (const auto& [key, value] : from) (*to)[key] += value;
}

std::string YesOrNo(bool value) { return value ? "yes" : "no"; }

std::string MethodsText(const UpdateOptions& update) {
  std::string text = UpdateMethodName(update.method);
  std::map<UpdateMethod, int> others;
  for (const auto& [weight, method] : update.methods) {
    if (method != update.method) ++others[method];
  }
  for (const auto& [method, count] : others) {
    absl::StrAppend(&text, ", ", count, " weights ", UpdateMethodName(method));
  }
  return text;
}

std::string BucketsText(const UpdateOptions& update) {
  if (!update.bucket_ends.empty()) return absl::StrCat(update.bucket_ends.size(), " buckets");
  if (update.bucket_bytes == 0) return "each by itself";
  if (update.bucket_bytes >= UpdateOptions::kOneBucket) return "all at the end";
  return absl::StrCat("up to ", update.bucket_bytes >> 20, " MiB");
}

std::vector<std::pair<std::string, std::string>> SettingsOf(const OptimizeResult& result) {
  const Plan& plan = result.plan;
  const UpdateOptions& update = plan.update;
  const std::optional<PipelineSummary>& pipeline = result.pipeline;
  const bool training = plan.mode == "training";
  return {
      {"devices", absl::StrCat(plan.num_devices)},
      {"precision", std::string(PrecisionName(plan))},
      {"pipeline stages", absl::StrCat(pipeline.has_value() ? pipeline->stages : 1)},
      {"chunks of a stage", absl::StrCat(pipeline.has_value() ? pipeline->chunks : 1)},
      {"order of micro-batches", pipeline.has_value() ? OrderText(pipeline->shape) : "none"},
      {"micro-batches", absl::StrCat(pipeline.has_value() ? pipeline->micro_batches : 1)},
      {"optimizer", training ? OptimizerName(update.optimizer) : "none"},
      {"updates of weights", training ? MethodsText(update) : "none"},
      {"gradients summed over devices", training ? BucketsText(update) : "none"},
      {"updates as soon as gradients are summed", YesOrNo(update.immediate)},
      {"gradients are summed in",
       training ? std::string(PrecisionName(update.gradient_sums)) : "nothing"},
      {"norm of all gradients before updates", YesOrNo(update.clips)},
      {"averages of weights beside them", YesOrNo(update.averages)},
      {"states of the optimizer on the host", YesOrNo(update.states_on_host)},
      {"states of the optimizer in",
       training ? std::string(PrecisionName(update.state_precision)) : "nothing"},
      {"steps between flushes", absl::StrCat(update.steps_between_flushes)},
      {"operators computed again", absl::StrCat(RecomputedOperators(plan))},
      {"operators with results on the host", absl::StrCat(OffloadedOperators(plan))},
      {"short branches between exchanges of long ones", YesOrNo(plan.spread_branches)},
  };
}

absl::StatusOr<std::map<std::string, BlockSummary>> OperatorsOf(const LoweredPlan& lowered,
                                                                const Explanation& explanation,
                                                                const std::vector<NodeTimes>& times,
                                                                const Machine& machine) {
  const MappedGraph& mapped = lowered.mapped;
  const std::set<NodeId> recomputed(mapped.recomputed.begin(), mapped.recomputed.end());
  std::map<std::string, BlockSummary> operators;
  for (int i = 0; i < mapped.graph.num_nodes(); ++i) {
    const NodeId id{i};
    const Node& node = mapped.graph.node(id);
    const NodeShare& share = explanation.nodes[i];
    BlockSummary one;
    one.compute_us = share.compute_us;
    one.exposed_us = share.exposed_us;
    one.sent_bytes = share.sent_bytes;
    if (!IsLeaf(node.op.kind()) && !IsParallel(node.op.kind()) && times[i].us() > 0) {
      one.calls[std::string(node.op.name())] = 1;
      one.recomputed = recomputed.contains(id) ? 1 : 0;
      ISOMER_ASSIGN_OR_RETURN(const CallSplit split, SplitOf(mapped, id, machine));
      // Stages of a pipeline do the same on other devices.
      one.splits_us[split.ToString(/*with_start=*/false)] = share.compute_us;
    }
    const bool matters = one.compute_us > 0 || !one.sent_bytes.empty() || !one.exposed_us.empty() ||
                         !one.calls.empty();
    if (!matters) continue;
    const std::string name = node.name.empty() ? std::string(node.op.name()) : BlockName(node.name);
    operators[name].Add(one);
  }
  return operators;
}

// The first parts of a name.
std::string CutTo(absl::string_view name, size_t parts) {
  const std::vector<absl::string_view> all = absl::StrSplit(name, '/');
  return absl::StrJoin(all.begin(), all.begin() + std::min(parts, all.size()), "/");
}

// Of an operator: the times of all plans, and how much more the last takes than the others.
struct OperatorTimes {
  double us = 0, difference_us = 0;
};

// Operators by name -> the block that each is in. From blocks of the first parts of names, the one
// that takes longest is divided by the next part, as long as there are at most `most`.
std::map<std::string, std::string> Divided(const std::map<std::string, OperatorTimes>& times,
                                           size_t most) {
  // Of calls whose differences add up to more than so many times the whole's, some cancel others:
  // what one plan has under a call's name, the other computes under its neighbour's.
  constexpr double kCancelling = 2;
  struct Block {
    size_t parts = 1;
    double us = 0, difference_us = 0;
    std::vector<std::string> operators;
  };
  std::map<std::string, Block> blocks;
  const auto add = [&times](const std::string& name, size_t parts,
                            std::map<std::string, Block>* into) {
    Block& block = (*into)[CutTo(name, parts)];
    block.parts = parts;
    block.us += times.at(name).us;
    block.difference_us += times.at(name).difference_us;
    block.operators.push_back(name);
  };
  for (const auto& [name, us] : times) add(name, 1, &blocks);
  while (true) {
    // Of blocks that may be divided: its name, and what becomes of it.
    std::string longest;
    std::map<std::string, Block> best;
    for (const auto& [name, block] : blocks) {
      if (!longest.empty() && block.us <= blocks.at(longest).us) continue;
      std::map<std::string, Block> finer;
      for (const std::string& of : block.operators) add(of, block.parts + 1, &finer);
      double of_parts_us = 0;
      bool has_calls = false;
      for (const auto& [part, of_part] : finer) {
        of_parts_us += std::abs(of_part.difference_us);
        has_calls = has_calls || times.contains(part);
      }
      if (has_calls && of_parts_us > kCancelling * std::abs(block.difference_us)) continue;
      const bool is_finer = finer.size() > 1 || finer.begin()->first != name;
      if (!is_finer || blocks.size() - 1 + finer.size() > most) continue;
      longest = name;
      best = std::move(finer);
    }
    if (best.empty()) break;
    blocks.erase(longest);
    blocks.merge(best);
  }
  std::map<std::string, std::string> block_of;
  for (const auto& [name, block] : blocks) {
    for (const std::string& of : block.operators) block_of[of] = name;
  }
  return block_of;
}

}  // namespace

double BlockSummary::TimeUs() const {
  double us = compute_us;
  for (const auto& [kind, exposed] : exposed_us) us += exposed;
  return us;
}

void BlockSummary::Add(const BlockSummary& other) {
  compute_us += other.compute_us;
  recomputed += other.recomputed;
  AddTo(other.exposed_us, &exposed_us);
  AddTo(other.sent_bytes, &sent_bytes);
  AddTo(other.splits_us, &splits_us);
  for (const auto& [op, count] : other.calls) calls[op] += count;
}

std::string BlockSummary::MainSplit() const {
  const auto most =
      std::max_element(splits_us.begin(), splits_us.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == splits_us.end() ? "" : most->first;
}

double PlanSummary::sent_bytes() const {
  double bytes = 0;
  for (const auto& [name, block] : operators) {
    for (const auto& [kind, of_kind] : block.sent_bytes) bytes += of_kind;
  }
  return bytes;
}

std::string BlockName(absl::string_view name) {
  std::vector<std::string> parts;
  for (absl::string_view part : absl::StrSplit(name, absl::ByAnyChar("/."), absl::SkipEmpty())) {
    std::string folded = FoldedName(part);
    if (folded == "*" && !parts.empty()) {
      parts.back() += ".*";
    } else {
      parts.push_back(std::move(folded));
    }
  }
  return parts.empty() ? std::string(name) : absl::StrJoin(parts, "/");
}

absl::StatusOr<PlanSummary> SummaryOf(std::string name, const OptimizeResult& result,
                                      const Explanation& explanation,
                                      const std::vector<NodeTimes>& times, const Machine& machine) {
  PlanSummary summary{.name = std::move(name),
                      .headline = HeadlineOf(result, times, machine),
                      .step_us = result.simulation.step_us,
                      .peak_bytes = result.plan.predicted_peak_bytes,
                      .fits = result.plan.predicted_peak_bytes <= machine.memory_bytes(),
                      .compute_us = explanation.shares.compute_us,
                      .exposed_us = explanation.shares.exposed_communication_us,
                      .settings = SettingsOf(result),
                      .operators = {}};
  // Of the time in which nothing is done, what a pipeline of equal stages waits.
  const double idle_us = explanation.shares.idle_us;
  if (result.pipeline.has_value() && result.pipeline->ordered) {
    summary.bubble_us = std::min(idle_us, result.pipeline->bubble_share * summary.step_us);
  }
  summary.idle_us = idle_us - summary.bubble_us;
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    summary.memory[c] = result.simulation.memory.categories[c];
  }
  ISOMER_ASSIGN_OR_RETURN(summary.operators,
                          OperatorsOf(result.lowered, explanation, times, machine));
  return summary;
}

absl::StatusOr<PlanSummary> SummaryOf(std::string name, const OptimizeResult& result,
                                      const CostModel& cost) {
  const LoweredPlan& lowered = result.lowered;
  const Explanation explanation =
      Explain(cost, lowered.mapped.graph, lowered.schedule, result.simulation);
  return SummaryOf(std::move(name), result, explanation,
                   TimesOfNodes(lowered, result.simulation, cost), cost.machine());
}

absl::StatusOr<PlanSummary> SummaryOf(std::string name, Plan plan, const CostModel& cost) {
  ISOMER_ASSIGN_OR_RETURN(const OptimizeResult result, PricePlan(std::move(plan), cost));
  return SummaryOf(std::move(name), result, cost);
}

std::vector<std::map<std::string, BlockSummary>> BlocksOf(
    const std::vector<const PlanSummary*>& plans, int most) {
  std::map<std::string, OperatorTimes> times;
  for (const PlanSummary* plan : plans) {
    const double sign = plan == plans.back() ? 1 : -1;
    for (const auto& [name, block] : plan->operators) {
      times[name].us += block.TimeUs();
      times[name].difference_us += sign * block.TimeUs();
    }
  }
  const std::map<std::string, std::string> block_of = Divided(times, static_cast<size_t>(most));
  std::vector<std::map<std::string, BlockSummary>> blocks(plans.size());
  for (size_t p = 0; p < plans.size(); ++p) {
    for (const auto& [name, block] : plans[p]->operators) blocks[p][block_of.at(name)].Add(block);
  }
  return blocks;
}

}  // namespace isomer
