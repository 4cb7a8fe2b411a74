#include "optimizer/report/report_json.h"

#include <string>
#include <utility>

#include "optimizer/report/inference_facts.h"
#include "optimizer/report/plan_facts.h"
#include "optimizer/report/throughput.h"
#include "optimizer/report/unlike_devices.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/precision.h"

namespace isomer {
namespace {

// Tasks and time by origin, and the calibrations' errors on held-out kernels.
Json OriginsJson(const Simulation& simulation, const CostModel& cost) {
  Json json = Json::EmptyObject();
  for (const auto& [origin, sum] : simulation.origins) {
    json[TimeOriginName(origin)]["tasks"] = sum.tasks;
    json[TimeOriginName(origin)]["us"] = sum.us;
  }
  for (const Calibration::HeldOut& fit : cost.kernels().Calibrations()) {
    Json& entry = json["calibrations"][fit.from];
    entry["kernels"] = fit.samples;
    entry["held_out_median_error"] = fit.median_error;
  }
  return json;
}

void ThroughputJson(const OptimizeResult& result, const Explanation& explanation,
                    const Machine& machine, Json* json) {
  const Throughput throughput = ThroughputOf(result.plan, machine);
  (*json)["samples_per_s_per_device"] = throughput.samples_per_s;
  (*json)["tokens_per_s_per_device"] = throughput.tokens_per_s;
  (*json)["model_tflops_per_device"] = throughput.model_tflops;
  (*json)["mfu"] = throughput.mfu;
  (*json)["share_of_rate"] = throughput.share_of_rate;
  const StepShares& shares = explanation.shares;
  const double step_us = result.simulation.step_us;
  (*json)["bubble_share"] = step_us > 0 ? shares.idle_us / step_us : 0;
  (*json)["exposed_communication_us"] = Json::EmptyObject();
  for (const auto& [what, us] : shares.exposed_communication_us) {
    (*json)["exposed_communication_us"][what] = us;
  }
}

Json PredictionJson(const Prediction& p) {
  Json json;
  json["predicted_step_us"] = p.step_us;
  json["predicted_peak_bytes"] = p.peak_bytes;
  return json;
}

Json PipelineJson(const PipelineSummary& summary) {
  Json pipeline;
  pipeline["stages"] = summary.stages;
  pipeline["micro_batches"] = summary.micro_batches;
  pipeline["schedule"] = OrderText(summary.shape);
  pipeline["ordered"] = summary.ordered;
  pipeline["bubble_share"] = summary.bubble_share;
  pipeline["idle_share"] = summary.idle_share;
  return pipeline;
}

Json SearchJson(const OptimizeResult& result) {
  const SearchRecord& searches = result.searches;
  Json search;
  search["seconds"] = result.seconds;
  search["candidates"] = searches.candidates;
  search["stop_reason"] = StopReasonName(searches.stop);
  search["pieces"] = searches.pieces;
  search["distinct_pieces"] = searches.distinct_pieces;
  search["remembered_pieces"] = searches.remembered_pieces;
  search["exact_mappings"] = searches.exact_mappings;
  if (!searches.proof.empty()) search["proof"] = searches.proof;
  return search;
}

Json ProposersJson(const ProposerLedger& ledger) {
  Json json = Json::EmptyObject();
  for (const auto& [proposer, row] : ledger.rows()) {
    Json& one = json[proposer];
    one["plans"] = row.plans;
    one["best"] = row.best;
    one["gain"] = row.gain;
    one["seconds"] = row.seconds;
  }
  return json;
}

Json BoundJson(const OptimizeResult& result) {
  Json bound;
  bound["step_us"] = result.bound->step_us;
  bound["gap"] = result.Gap();
  bound["by"] = result.bound->by;
  bound["devices"] = result.bound->devices;
  bound["seconds"] = result.bound_seconds;
  return bound;
}

}  // namespace

Json ReportJson(const OptimizeResult& result, const std::string& headline,
                const Explanation& explanation, const RuleSet& rules, const CostModel& cost) {
  const Plan& plan = result.plan;
  Json json;
  json["headline"] = headline;
  json["model"] = plan.model.name;
  json["machine"] = cost.machine().name;
  json["devices"] = plan.num_devices;
  json["simulated_devices"] = result.simulation.devices;
  json["mode"] = plan.mode;
  json["precision"] = std::string(PrecisionName(plan));
  if (plan.fp8.any()) {
    json["fp8_scaling"] = std::string(Fp8ScalingName(plan.fp8.scaling));
    json["fp8_kept"] = plan.fp8.kept;
  }
  if (const double imbalance = AssumedImbalance(plan.model); imbalance > 0) {
    json["expert_imbalance"] = imbalance;
  }
  json["operators"] = plan.model.graph.num_nodes();
  json["plan"] = result.origin;
  json["fits"] = result.fits;
  json["predicted_step_us"] = plan.predicted_step_us;
  json["predicted_peak_bytes"] = plan.predicted_peak_bytes;
  ThroughputJson(result, explanation, cost.machine(), &json);
  if (const auto facts = InferenceFactsOf(plan, result.lowered, cost.machine());
      facts.has_value()) {
    json["inference"] = InferenceJson(*facts);
  }
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    json["memory"][MemoryCategoryName(static_cast<MemoryCategory>(c))] =
        result.simulation.memory.categories[c];
  }
  json["optimizer"] = OptimizerName(plan.update.optimizer);
  json["update"] = UpdateMethodName(plan.update.method);
  json["immediate_updates"] = plan.update.immediate;
  json["bucket_ends"] = static_cast<int64_t>(plan.update.bucket_ends.size());
  json["spread_branches"] = plan.spread_branches;
  json["states_on_host"] = plan.update.states_on_host;
  json["clip_norm"] = plan.update.clips;
  json["average"] = plan.update.averages;
  json["gradient_precision"] = std::string(PrecisionName(plan.update.gradient_sums));
  if (result.other_gradient_sums.has_value()) {
    json["with_other_gradient_precision"] = PredictionJson(*result.other_gradient_sums);
  }
  json["state_precision"] = std::string(PrecisionName(plan.update.state_precision));
  json["recomputed_operators"] = RecomputedOperators(plan);
  json["offloaded_operators"] = OffloadedOperators(plan);
  json["times_from"] = OriginsJson(result.simulation, cost);
  json["baselines"] = Json::EmptyObject();
  for (const auto& [name, p] : result.baselines) {
    if (p != kNotSimulated) json["baselines"][name] = PredictionJson(p);
  }
  json["baselines_that_ignore_constraints"] = Json::EmptyArray();
  for (const std::string& name : result.ignoring) {
    json["baselines_that_ignore_constraints"].Append(name);
  }
  if (result.origin != kPriced) json["single_device"] = PredictionJson(result.single_device);
  if (result.first_choice.has_value()) {
    json["first_choice"] =
        PredictionJson({result.first_choice->step_us, result.first_choice->peak_bytes});
    json["first_choice"]["configuration"] = result.first_choice->config.ToString();
  }
  json["step"] = ExplanationJson(explanation, cost.machine(), result.simulation.step_us);
  if (result.pipeline.has_value()) json["pipeline"] = PipelineJson(*result.pipeline);
  if (result.origin != kPriced) json["search"] = SearchJson(result);
  json["proposers"] = ProposersJson(result.proposers);
  for (const Threshold& threshold : AllThresholds()) {
    json["policy"][threshold.name] = ValueOf(result.policy, threshold);
  }
  if (const auto unlike = UnlikeDevicesOf(result, explanation, cost.machine());
      unlike.has_value()) {
    json["unlike_devices"] = UnlikeDevicesJson(*unlike, result);
  }
  if (result.bound.has_value()) json["lower_bound"] = BoundJson(result);
  json["steps"] = plan.steps.size();
  json["rules_used"] = Json::EmptyArray();
  for (const RuleUse& use : RulesUsed(plan, rules)) {
    Json entry;
    entry["id"] = use.id;
    entry["kind"] = use.kind;
    entry["times"] = use.times;
    json["rules_used"].Append(std::move(entry));
  }
  return json;
}

}  // namespace isomer
