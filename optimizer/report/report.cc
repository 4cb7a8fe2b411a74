#include "optimizer/report/report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/machine/machine_units.h"
#include "optimizer/report/against_text.h"
#include "optimizer/report/explanation.h"
#include "optimizer/report/folded_name.h"
#include "optimizer/report/headline.h"
#include "optimizer/report/inference_facts.h"
#include "optimizer/report/node_times.h"
#include "optimizer/report/plan_facts.h"
#include "optimizer/report/report_json.h"
#include "optimizer/report/split_text.h"
#include "optimizer/report/throughput.h"
#include "optimizer/report/unlike_devices.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/precision.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// To be compared with others: four digits.
std::string StepText(double us) {
  constexpr double kLongUs = 1e10;
  return us >= kLongUs ? absl::StrFormat("%.0f s", us / 1e6) : TimeText(us, /*digits=*/4);
}

// The rule's text, cut to one line.
std::string Shortened(const std::string& text) {
  constexpr size_t kWidth = 100;
  return text.size() <= kWidth ? text : text.substr(0, kWidth - 3) + "...";
}

struct Row {
  std::string what, split;
  int64_t count = 0;
  double us = 0;  // compute time on the busiest device
};

bool IsWhole(const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [](const TensorType& type) {
    return type.partials == 1 && type.copies == 1 &&
           std::all_of(type.dims.begin(), type.dims.end(),
                       [](const Dim& dim) { return dim.degree == 1; });
  });
}

absl::StatusOr<std::vector<Row>> Rows(const LoweredPlan& lowered,
                                      const std::vector<NodeTimes>& times, const Machine& machine,
                                      const RuleIndex& rules, bool folds_stages) {
  const Graph& graph = lowered.mapped.graph;
  const std::vector<bool> of_data = OfData(graph);
  const int64_t devices = machine.num_devices();
  std::vector<Row> rows;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    // Load-time operators have no compute task.
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind()) || times[id.value].us() == 0) continue;
    // Stages of a pipeline do the same on other devices.
    ISOMER_ASSIGN_OR_RETURN(const CallSplit of_call, SplitOf(lowered.mapped, id, machine));
    std::string split = of_call.ToString(!folds_stages);
    if (devices > 1 && of_data[id.value] && IsWhole(node)) {
      std::vector<TensorType> operands;
      for (TensorRef input : node.inputs) {
        operands.push_back(SequentialType(graph.type(input).Sizes(), graph.type(input).dtype));
      }
      ISOMER_ASSIGN_OR_RETURN(const std::string why, WhyWhole(node.op, operands, devices, rules));
      absl::StrAppend(&split, ", ", why);
    }
    const std::string what =
        absl::StrCat(FoldedName(node.name), node.name.empty() ? "" : " ", node.op.name());
    const auto [it, added] = places.try_emplace({what, split}, rows.size());
    if (added) rows.push_back({what, split});
    ++rows[it->second].count;
    rows[it->second].us += times[id.value].us();
  }
  return rows;
}

// A report is read on one screen: of long tables the rows that take most of the time. --verbose has
// all.
constexpr size_t kMostRows = 16;
constexpr size_t kMostExchanges = 8;

// The `most` largest of `us`; all of them if there are no more than one above.
std::vector<bool> LargestOf(const std::vector<double>& us, size_t most) {
  if (us.size() <= most + 1) return std::vector<bool>(us.size(), true);
  std::vector<size_t> order(us.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return us[a] > us[b]; });
  std::vector<bool> shown(us.size(), false);
  for (size_t i = 0; i < most; ++i) shown[order[i]] = true;
  return shown;
}

// "  12 others, 1.3 % of the time (--verbose lists them)", or nothing if all are shown.
std::string OthersText(const std::vector<double>& us, const std::vector<bool>& shown) {
  const auto others = std::count(shown.begin(), shown.end(), false);
  if (others == 0) return "";
  double all = 0, hidden = 0;
  for (size_t i = 0; i < us.size(); ++i) {
    all += us[i];
    if (!shown[i]) hidden += us[i];
  }
  return absl::StrFormat("  %d others, %.1f %% of the time (--verbose lists them)\n", others,
                         all > 0 ? 100 * hidden / all : 0);
}

std::string RowsText(const std::vector<Row>& rows, bool verbose) {
  size_t width = 9;
  for (const Row& row : rows) width = std::max(width, std::min<size_t>(row.what.size(), 72));
  const int w = static_cast<int>(width);
  std::vector<double> us;
  for (const Row& row : rows) us.push_back(row.us);
  const std::vector<bool> shown = LargestOf(us, verbose ? us.size() : kMostRows);
  std::string text = absl::StrFormat("%5s  %-*s  %9s  %s\n", "times", w, "operator", "each",
                                     "what is split, and where");
  for (size_t r = 0; r < rows.size(); ++r) {
    if (!shown[r]) continue;
    absl::StrAppendFormat(&text, "%5d  %-*s  %9s  %s\n", rows[r].count, w, rows[r].what,
                          TimeText(rows[r].us / static_cast<double>(rows[r].count)), rows[r].split);
  }
  return text + OthersText(us, shown);
}

std::string CommunicationText(const std::vector<NodeTimes>& nodes, bool verbose) {
  const auto exchanges = ExchangesOf(nodes);
  std::vector<double> us;
  for (const auto& [what, exchange] : exchanges) us.push_back(exchange.us);
  const std::vector<bool> shown = LargestOf(us, verbose ? us.size() : kMostExchanges);
  std::string text;
  size_t e = 0;
  for (const auto& [what, exchange] : exchanges) {
    if (!shown[e++]) continue;
    absl::StrAppendFormat(&text, "  %5.0f x %-44s %9s each\n", exchange.count, what,
                          TimeText(exchange.us / exchange.count));
  }
  return text.empty() ? "  none\n" : text + OthersText(us, shown);
}

// A line per category, and the method of weight updates.
std::string MemoryText(const MemoryPeak& peak, const LoweredPlan& lowered) {
  const Schedule& schedule = lowered.schedule;
  std::string text = "Memory of the fullest device";
  if (peak.task >= 0) {
    const Task& task = schedule.tasks[peak.task];
    absl::StrAppend(&text, ", at its peak in ", PhaseName(task.phase), " ", TaskKindName(task.kind),
                    " of ", lowered.mapped.graph.Label(task.node));
  }
  text += "\n";
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    if (peak.categories[c] == 0) continue;
    absl::StrAppendFormat(&text, "  %-22s %10s\n",
                          MemoryCategoryName(static_cast<MemoryCategory>(c)),
                          BytesText(peak.categories[c]));
  }
  if (!schedule.options.training) return text;
  std::map<UpdateMethod, int> methods;
  for (const Schedule::HostTensor& parameter : schedule.parameters) {
    if (parameter.trainable) ++methods[parameter.update];
  }
  absl::StrAppend(&text, "  weights are updated by ",
                  OptimizerName(schedule.options.update.optimizer));
  for (const auto& [method, count] : methods) {
    absl::StrAppend(&text, ", ", count, " of them ", UpdateMethodName(method));
  }
  const UpdateOptions& update = schedule.options.update;
  if (!update.bucket_ends.empty()) {
    absl::StrAppend(&text, ", gradients in ", update.bucket_ends.size(), " buckets");
  }
  if (update.immediate && schedule.num_moments == 1) {
    absl::StrAppend(&text, ", as soon as their gradients are summed");
  }
  if (update.gradient_sums != DataType::kFloat32) {
    absl::StrAppend(&text, "; gradients are summed over devices in ",
                    PrecisionName(update.gradient_sums));
  }
  if (update.state_precision != DataType::kFloat32) {
    absl::StrAppend(&text, "; its states are in ", PrecisionName(update.state_precision));
  }
  if (update.clips) absl::StrAppend(&text, "; the norm of all gradients is found before");
  if (update.averages) absl::StrAppend(&text, "; averages of weights are kept beside them");
  if (update.states_on_host)
    absl::StrAppend(&text, "; its states (and masters) are kept on the host");
  if (schedule.options.spread_branches) {
    absl::StrAppend(&text, "\n  short branches are computed between the exchanges of long ones");
  }
  return text + "\n";
}

// `fits`: the compared plan fits; one that does not is no alternative to a plan that does.
std::string PredictionLine(const std::string& name, const Prediction& p, bool fits,
                           const OptimizeResult& result) {
  if (p == kNotSimulated) {
    return absl::StrFormat("  %-22s not simulated: too few of its devices are alike\n", name);
  }
  return absl::StrFormat("  %-22s %10s a step  %10s per device  %s\n", name, StepText(p.step_us),
                         BytesText(p.peak_bytes),
                         result.fits && !fits
                             ? "(does not fit)"
                             : AgainstText(result.plan.predicted_step_us, p.step_us));
}

// Equal rules are one; which they are is for who wants to check them.
std::string RulesText(const Plan& plan, const RuleSet& rules, bool verbose) {
  const std::vector<RuleUse> used = RulesUsed(plan, rules);
  int64_t steps = 0;
  for (const RuleUse& use : used) steps += use.times;
  std::string text = absl::StrFormat("Made by %d steps of %d proved rules%s\n", steps, used.size(),
                                     verbose || used.empty() ? "" : " (--verbose lists them)");
  if (!verbose) return text;
  for (const RuleUse& use : used) {
    absl::StrAppendFormat(&text, "  %5d x %-8s %s  %s\n", use.times, use.kind, use.id,
                          Shortened(use.text));
  }
  return text;
}

std::string BoundText(const OptimizeResult& result, bool verbose) {
  return absl::StrFormat(
      "Lower bound: %s%s; at most %.1f %% of the step could be saved by another plan%s without "
      "other algebra.\n",
      StepText(result.bound->step_us),
      verbose ? absl::StrFormat(" by %s in %.2f s", result.bound->by, result.bound_seconds) : "",
      100 * result.Gap(), result.pipeline.has_value() ? "" : " of one micro-batch");
}

// A search goes on with what a baseline has.
std::string OriginText(const OptimizeResult& result) {
  if (result.origin == kFound) return "the search";
  if (result.origin == kPriced) return "a file";
  const auto as_it_is = result.baselines.find(result.origin);
  const bool is_improved = as_it_is != result.baselines.end() &&
                           as_it_is->second.step_us != result.plan.predicted_step_us;
  return absl::StrCat("the baseline ", result.origin, is_improved ? ", improved" : "");
}

absl::StatusOr<std::string> ReportText(const OptimizeResult& result, const LoweredPlan& lowered,
                                       const Explanation& explanation,
                                       const std::vector<NodeTimes>& times, const RuleSet& rules,
                                       const CostModel& cost, bool verbose) {
  const Plan& plan = result.plan;
  const RuleIndex index(rules);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                          Rows(lowered, times, cost.machine(), index, result.pipeline.has_value()));
  std::string text = absl::StrFormat("Plan of %s for %s (%s, %s), from %s\n\n", plan.model.name,
                                     cost.machine().ToString(), plan.mode, PrecisionName(plan),
                                     OriginText(result));
  absl::StrAppend(&text, RowsText(rows, verbose), "\nCommunication\n",
                  CommunicationText(times, verbose));
  if (result.pipeline.has_value()) {
    absl::StrAppend(&text, "\nPipeline\n  ", result.pipeline->ToString(), "\n");
  }
  const Simulation& simulation = result.simulation;
  if (simulation.devices < plan.num_devices) {
    absl::StrAppend(&text, "\nSimulated on ", simulation.devices, " devices that stand for ",
                    plan.num_devices);
    if (simulation.simulated_micro_batches < simulation.micro_batches) {
      absl::StrAppend(&text, ", in ", simulation.simulated_micro_batches,
                      " micro-batches that stand for ", simulation.micro_batches);
    }
    text += ".\n";
  }
  if (const auto facts = InferenceFactsOf(plan, lowered, cost.machine()); facts.has_value()) {
    absl::StrAppend(&text, "\n", InferenceText(*facts));
  }
  absl::StrAppend(
      &text, "\n",
      ThroughputText(ThroughputOf(plan, cost.machine()), explanation.shares, simulation.step_us));
  absl::StrAppend(&text, "\n", explanation.bound, "\n",
                  ExplanationText(explanation, cost.machine(), result.simulation.step_us));
  absl::StrAppend(&text, "\n", MemoryText(result.simulation.memory, lowered));
  if (const int64_t again = RecomputedOperators(plan); again > 0) {
    absl::StrAppend(&text, "  for the backward pass ", again, " operators are computed again\n");
  }
  if (const int64_t away = OffloadedOperators(plan); away > 0) {
    const MemoryPlan memory = PlanMemory(lowered.schedule);
    absl::StrAppend(&text, "  until the backward pass results of ", away,
                    " operators lie in the host's memory: ",
                    BytesText(*absl::c_max_element(memory.host_bytes)), " of a device\n");
  }
  if (const double imbalance = AssumedImbalance(plan.model); imbalance > 0) {
    absl::StrAppend(&text, "  experts have room for ", imbalance,
                    " times their even share of tokens; a run that would need more ends\n");
  }
  absl::StrAppend(&text, "\n", RulesText(plan, rules, verbose));
  absl::StrAppendFormat(&text, "\nPredicted (%s)\n  %-22s %10s a step  %10s per device of %s\n",
                        "times: " + TimesFrom(result.simulation), "plan",
                        StepText(plan.predicted_step_us), BytesText(plan.predicted_peak_bytes),
                        BytesText(cost.machine().memory_bytes()));
  const auto line = [&](const std::string& name, const Prediction& prediction) {
    const bool fits = prediction.peak_bytes <= cost.machine().memory_bytes();
    absl::StrAppend(&text, PredictionLine(name, prediction, fits, result));
  };
  if (result.other_gradient_sums.has_value()) {
    const bool is_exact = plan.update.gradient_sums == DataType::kFloat32;
    const DataType other = is_exact ? LowGradientSums(plan.precision) : DataType::kFloat32;
    line(absl::StrCat("gradients in ", PrecisionName(other)), *result.other_gradient_sums);
  }
  for (const auto& [name, prediction] : result.baselines) line(name, prediction);
  if (result.first_choice.has_value()) {
    const ConfigEstimate& first = *result.first_choice;
    absl::StrAppendFormat(&text,
                          "  The search would begin with %s,\n  estimated at %s a step and %s "
                          "per device.\n",
                          first.config.ToString(), StepText(first.step_us),
                          BytesText(first.peak_bytes));
  }
  if (!result.ignoring.empty()) {
    absl::StrAppend(&text, "  (", absl::StrJoin(result.ignoring, ", "),
                    ": without your constraints)\n");
  }
  const auto unlike = UnlikeDevicesOf(result, explanation, cost.machine());
  const std::string unlike_text =
      unlike.has_value() ? absl::StrCat("\n", UnlikeDevicesText(*unlike, result)) : "";
  if (result.origin == kPriced) return text + unlike_text;
  line("one device alone", result.single_device);
  if (result.single_device.step_us < plan.predicted_step_us) {
    absl::StrAppend(&text,
                    "  The model is too small for this machine: one device is predicted to be "
                    "faster\n  (--nodes=1 --devices_per_node=1 plans for it).\n");
  }
  text += unlike_text;
  const SearchRecord& searches = result.searches;
  absl::StrAppendFormat(&text, "\nSearch: %.2f s; stopped: %s", result.seconds,
                        StopReasonName(searches.stop));
  if (verbose) {
    absl::StrAppendFormat(&text, "; %d candidates over %d pieces, %d of them distinct; mappings %s",
                          searches.candidates, searches.pieces, searches.distinct_pieces,
                          searches.exact_mappings ? "exact" : "bounded");
  }
  text += ".\n";
  if (result.bound.has_value()) absl::StrAppend(&text, BoundText(result, verbose));
  if (!searches.proof.empty()) {
    absl::StrAppend(&text, "Without buckets, on the same devices for all: ", searches.proof, ".\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<Report> ReportOf(const OptimizeResult& result, const RuleSet& rules,
                                const CostModel& cost, bool verbose) {
  Report report;
  const LoweredPlan& lowered = result.lowered;
  report.explanation = Explain(cost, lowered.mapped.graph, lowered.schedule, result.simulation);
  report.times = TimesOfNodes(lowered, result.simulation, cost);
  report.headline = HeadlineOf(result, report.times, cost.machine());
  ISOMER_ASSIGN_OR_RETURN(report.text, ReportText(result, lowered, report.explanation, report.times,
                                                  rules, cost, verbose));
  report.text = absl::StrCat(report.headline, "\n", report.text);
  report.json = ReportJson(result, report.headline, report.explanation, rules, cost);
  return report;
}

std::string TimesFrom(const Simulation& simulation) {
  double total_us = 0;
  for (const auto& [origin, sum] : simulation.origins) total_us += sum.us;
  std::vector<std::string> parts;
  for (const auto& [origin, sum] : simulation.origins) {
    parts.push_back(absl::StrFormat("%s for %d tasks, %.0f %% of the time", TimeOriginName(origin),
                                    sum.tasks, 100 * sum.us / total_us));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace isomer
