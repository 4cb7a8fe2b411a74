// isomer-optimize: what is the fastest equal plan?
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "models/load.h"
#include "models/loss.h"
#include "models/onnx/export/onnx_export.h"
#include "models/prepare_model.h"
#include "models/zoo/listing.h"
#include "models/zoo/zoo.h"
#include "optimizer/comparison/baseline_summaries.h"
#include "optimizer/comparison/compare_plans.h"
#include "optimizer/comparison/why.h"
#include "optimizer/export_main.h"
#include "optimizer/machine/machine.h"
#include "optimizer/objective_main.h"
#include "optimizer/page/report_page.h"
#include "optimizer/proposal/proposers.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/report/devices_text.h"
#include "optimizer/report/machine_text.h"
#include "optimizer/report/node_times.h"
#include "optimizer/report/plan_dot.h"
#include "optimizer/report/report.h"
#include "optimizer/report/timeline_svg.h"
#include "optimizer/report/trace.h"
#include "optimizer/request/misfit_text.h"
#include "optimizer/request/optimize_request.h"
#include "optimizer/search/enough_devices.h"
#include "optimizer/search/optimizer.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/weight_update.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/messages.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/certificate/equal_sides.h"

ABSL_FLAG(std::string, machine, "",
          "a machine file or a preset, or nodes of several (dgx_h100:2+dgx_a100:2); a name that is "
          "neither lists them");
#define ISOMER_OPTION_FLAG(type, name, value, help) ABSL_FLAG(type, name, value, help);
ISOMER_MACHINE_OPTIONS(ISOMER_OPTION_FLAG)
ISOMER_SEARCH_OPTIONS(ISOMER_OPTION_FLAG)
#undef ISOMER_OPTION_FLAG
ABSL_FLAG(int64_t, batch_size, 0, "batch size; 0: as the model has it");
ABSL_FLAG(std::vector<std::string>, dim, {},
          "name=N: the size of a symbolic dim of an .onnx file; may be given several times");
ABSL_FLAG(bool, list_unsupported, false,
          "list what of an .onnx file is not supported, and nothing else; exit 1 if there is any");
ABSL_FLAG(std::string, price, "",
          "a plan file, which is priced on --machine, with --profile if there is one, and no more; "
          "without MODEL");
ABSL_FLAG(bool, explain, false,
          "say why this plan: what is split, where the difference to other plans comes from, what "
          "each decision gains, what would have to change for the next best to win");
ABSL_FLAG(bool, verbose, false, "list the rules that made the plan, and say more of the search");
ABSL_FLAG(bool, list_proposers, false,
          "after the search, what each proposer of plans gained in it; without MODEL, a list of "
          "them");
ABSL_FLAG(bool, list_policy, false,
          "print the thresholds of the search with --policy, what each decides and why, and end");
ABSL_FLAG(std::string, out, "", "the plan file to write");
ABSL_FLAG(bool, list_models, false,
          "print the networks of the zoo and end; with --out=FILE as a page of Markdown");
ABSL_FLAG(bool, describe, false,
          "print the size of MODEL, or without one what is known of --machine, and end");
ABSL_FLAG(std::string, svg, "", "file for a drawing of --machine; with --describe");
ABSL_FLAG(std::string, export_onnx, "",
          "file for the plan's graph as an .onnx file (opset 17, or the first later one that it "
          "needs): for inference on one device");
ABSL_FLAG(std::string, dot, "", "file for the plan's graph in DOT");
ABSL_FLAG(std::string, trace, "",
          "file for the simulated step as a Chrome/Perfetto trace; .json.gz: compressed");
ABSL_FLAG(std::string, timeline, "", "file for the simulated step as an SVG timeline");
ABSL_FLAG(std::string, report, "",
          "file for the plan, its step, its derivation and the baselines as one page of HTML");

namespace isomer {
namespace {

MachineRequest MachineRequestOfFlags() {
  MachineRequest request;
  request.machine = absl::GetFlag(FLAGS_machine);
#define ISOMER_TAKE_FLAG(type, name, value, help) request.name = absl::GetFlag(FLAGS_##name);
  ISOMER_MACHINE_OPTIONS(ISOMER_TAKE_FLAG)
#undef ISOMER_TAKE_FLAG
  return request;
}

OptimizeRequest RequestOfFlags() {
  OptimizeRequest request;
#define ISOMER_TAKE_FLAG(type, name, value, help) \
  request.name = absl::GetFlag(FLAGS_##name);     \
  if (WasGiven(#name)) request.given.insert(#name);
  ISOMER_SEARCH_OPTIONS(ISOMER_TAKE_FLAG)
#undef ISOMER_TAKE_FLAG
  return request;
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) PrintNote(note);
}

// `notes` receives what the user should see.
LoadOptions LoadOptionsOfFlags(std::vector<std::string>* notes) {
  LoadOptions options;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.dims = absl::GetFlag(FLAGS_dim);
  options.notes = notes;
  return options;
}

absl::StatusOr<int> ListUnsupported(const std::string& spec) {
  std::vector<std::string> notes;
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                          ListUnsupportedOf(spec, LoadOptionsOfFlags(&notes)));
  PrintNotes(notes);
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  return lines.empty() ? kExitDone : kExitNo;
}

// `request`: what of the model is to be planned.
absl::StatusOr<Model> ModelOfFlags(const std::string& spec, const OptimizeRequest& request,
                                   int64_t batch = 0) {
  std::vector<std::string> notes;
  Progress progress("read the model", 0);
  LoadOptions options = LoadOptionsOfFlags(&notes);
  if (batch > 0) options.batch_size = batch;
  ISOMER_ASSIGN_OR_RETURN(Model model, LoadAnyModel(spec, options));
  if (batch > 0 && BatchSize(model.graph) != batch) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec, ": its batch is ", BatchSize(model.graph),
                     ", and --objective=throughput wants to choose it"));
  }
  PrintNotes(std::exchange(notes, {}));
  ISOMER_RETURN_IF_ERROR(PrepareModel(spec,
                                      {.training = request.mode == "training",
                                       .loss = request.loss,
                                       .loss_alone = request.loss_alone,
                                       .carry = request.carry,
                                       .unfused_attention = request.attention == "unfused",
                                       .expert_imbalance = request.expert_imbalance,
                                       .expert_loads = request.expert_loads},
                                      &model, &notes));
  PrintNotes(notes);
  return model;
}

// Before the search, which may take minutes.
absl::Status CheckReportFlag() {
  return absl::GetFlag(FLAGS_report).empty() ? absl::OkStatus() : CheckHasPage();
}

absl::Status WriteReportPage(const OptimizeResult& result, const Report& report,
                             const RuleSet& rules, const CostModel& cost,
                             BaselineSummaries* baselines) {
  const std::string page = absl::GetFlag(FLAGS_report);
  if (page.empty()) return absl::OkStatus();
  Progress progress("report", 0);
  ISOMER_ASSIGN_OR_RETURN(const Json data, PageJson(result, report, rules, cost, baselines));
  return WriteFileAtomically(page, PageWith(data, result.plan.model.name, report.text));
}

absl::Status WriteOutputs(const OptimizeResult& result, const CostModel& cost) {
  Progress progress("write", 0);
  if (result.fits && !absl::GetFlag(FLAGS_out).empty()) {
    ISOMER_RETURN_IF_ERROR(SavePlan(absl::GetFlag(FLAGS_out), result.plan));
  }
  if (const std::string onnx = absl::GetFlag(FLAGS_export_onnx); !onnx.empty()) {
    ISOMER_ASSIGN_OR_RETURN(
        const std::string contents,
        OnnxFileOf(result.plan.model, result.plan.graph, StoredWeights::kPrepared));
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(onnx, contents));
  }
  if (const std::string dot = absl::GetFlag(FLAGS_dot); !dot.empty()) {
    ISOMER_ASSIGN_OR_RETURN(
        const std::string picture,
        PlanDot(result.lowered.mapped, TimesOfNodes(result.lowered, result.simulation, cost),
                cost.machine()));
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(dot, picture));
  }
  const std::string trace = absl::GetFlag(FLAGS_trace);
  const std::string timeline = absl::GetFlag(FLAGS_timeline);
  if (trace.empty() && timeline.empty()) return absl::OkStatus();
  const LoweredPlan& lowered = result.lowered;
  const Graph& graph = lowered.mapped.graph;
  if (!trace.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteTrace(trace, lowered, result.simulation, cost));
  }
  if (!timeline.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(
        timeline, TimelineSvg(graph, lowered.schedule, result.simulation, cost.machine())));
  }
  return absl::OkStatus();
}

// The summary, with where each operator runs. (The page of --report, which is bounded in size, has
// the summary without that.)
absl::Status WriteSummary(const Report& report, const Plan& plan) {
  Json summary = report.json;
  summary["placements"] = PlacementsJson({plan.graph, plan.views});
  return WriteJsonSummary(summary);
}

absl::StatusOr<int> PrintModels() {
  const std::string out = absl::GetFlag(FLAGS_out);
  ISOMER_ASSIGN_OR_RETURN(const std::string text,
                          out.empty() ? ModelListText() : ModelListMarkdown());
  if (out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(out, text));
  }
  return kExitDone;
}

absl::StatusOr<int> Describe(const std::vector<std::string>& arguments) {
  const bool of_machine = !absl::GetFlag(FLAGS_machine).empty();
  if (arguments.size() + (of_machine ? 1 : 0) != 1) {
    return absl::InvalidArgumentError("--describe needs one MODEL, or --machine and none");
  }
  if (!of_machine) {
    ISOMER_RETURN_IF_ERROR(RefuseFlagsBut(
        {"describe", "batch_size", "dim", "carry", "attention", "expert_imbalance", "expert_loads"},
        "is not for --describe of a MODEL"));
    OptimizeRequest request = RequestOfFlags();
    request.mode = "inference";
    ISOMER_RETURN_IF_ERROR(CheckExpertOptions(request));
    ISOMER_ASSIGN_OR_RETURN(const Model model, ModelOfFlags(arguments[0], request));
    std::fputs(DescribeModel(model).c_str(), stdout);
    return kExitDone;
  }
  ISOMER_RETURN_IF_ERROR(RefuseFlagsBut(
      {"describe", "machine", "nodes", "devices_per_node", "device_memory_gib", "svg"},
      "is not for --describe of a machine"));
  ISOMER_ASSIGN_OR_RETURN(const Machine machine,
                          MachineOf(MachineRequestOfFlags(), absl::GetFlag(FLAGS_search)));
  std::fputs(DescribeMachine(machine).c_str(), stdout);
  if (const std::string svg = absl::GetFlag(FLAGS_svg); !svg.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteFileAtomically(svg, MachineSvg(machine)));
  }
  return kExitDone;
}

// With --explain, what WhyOf says is a part of the report.
absl::Status Explained(const OptimizeResult& result, const CostModel& cost,
                       BaselineSummaries* baselines, Report* report) {
  if (!absl::GetFlag(FLAGS_explain)) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(Why why, WhyOf(result, *report, cost, baselines));
  absl::StrAppend(&report->text, "\n", why.text);
  report->json["why"] = std::move(why.json);
  return absl::OkStatus();
}

// Of the flags.
absl::StatusOr<MachineCosts> CostsOfFlags() {
  ISOMER_ASSIGN_OR_RETURN(Machine machine,
                          MachineOf(MachineRequestOfFlags(), absl::GetFlag(FLAGS_search)));
  return CostsOf(RequestOfFlags(), std::move(machine));
}

ProgramCommand DiffCommand() {
  return {.name = "diff",
          .usage = "PLAN PLAN --machine=PRESET|FILE",
          .purpose =
              "Says where the difference of two plans' steps comes from, and what would have "
              "to change for the slower one to win (docs/explaining.md).",
          .flags = {"machine", "nodes", "devices_per_node", "device_memory_gib", "profile",
                    "profile_of_another_device"}};
}

absl::StatusOr<int> Diff(const std::vector<std::string>& files) {
  if (files.size() != 2) return absl::InvalidArgumentError("diff takes two plan files");
  ISOMER_RETURN_IF_ERROR(RefuseFlagsBut(DiffCommand().flags, "is of a search, and diff has plans"));
  if (absl::GetFlag(FLAGS_machine).empty()) {
    return absl::InvalidArgumentError("diff needs --machine");
  }
  ISOMER_ASSIGN_OR_RETURN(const MachineCosts costs, CostsOfFlags());
  ISOMER_ASSIGN_OR_RETURN(const ComparedPlans comparison,
                          ComparePlans(files[0], files[1], *costs.model));
  if (!comparison.note.empty()) PrintNote(comparison.note);
  std::fputs(comparison.text.c_str(), stdout);
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(comparison.json));
  return kExitDone;
}

absl::StatusOr<int> Price(const std::string& path) {
  ISOMER_RETURN_IF_ERROR(
      RefuseFlagsBut({"price", "machine", "nodes", "devices_per_node", "device_memory_gib",
                      "profile", "profile_of_another_device", "rules", "trace", "timeline", "dot",
                      "report", "verbose", "explain"},
                     "is of a search, and --price has a plan"));
  if (absl::GetFlag(FLAGS_machine).empty()) {
    return absl::InvalidArgumentError("--price needs --machine");
  }
  ISOMER_RETURN_IF_ERROR(CheckReportFlag());
  ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlan(path));
  ISOMER_ASSIGN_OR_RETURN(const MachineCosts costs, CostsOfFlags());
  const CostModel& cost = *costs.model;
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, RulesOf(RequestOfFlags()));
  const absl::StatusOr<OptimizeResult> result = PricePlan(std::move(plan), cost);
  if (!result.ok()) {
    return absl::Status(result.status().code(),
                        absl::StrCat(path, ": ", result.status().message()));
  }
  ISOMER_ASSIGN_OR_RETURN(Report report,
                          ReportOf(*result, rules, cost, absl::GetFlag(FLAGS_verbose)));
  BaselineSummaries baselines(*result, cost);
  ISOMER_RETURN_IF_ERROR(Explained(*result, cost, &baselines, &report));
  std::fputs(report.text.c_str(), stdout);
  ISOMER_RETURN_IF_ERROR(WriteOutputs(*result, cost));
  ISOMER_RETURN_IF_ERROR(WriteReportPage(*result, report, rules, cost, &baselines));
  ISOMER_RETURN_IF_ERROR(WriteSummary(report, result->plan));
  if (result->fits) return kExitDone;
  std::fprintf(stderr, "%s\n", DoesNotFitText(*result, cost.machine(), std::nullopt).c_str());
  return kExitNo;
}

absl::StatusOr<OptimizeResult> OptimizeAndTell(const Model& model, const RuleIndex& rules,
                                               const CostModel& cost,
                                               const OptimizeOptions& options) {
  Progress progress("plan", 0);
  progress.CountIn("plans");
  if (options.search.time_limit_s > 0) progress.LimitTo(options.search.time_limit_s);
  return Optimize(model, rules, cost, options);
}

// What makes no plan.
bool OnlyLists() {
  return absl::GetFlag(FLAGS_list_models) || absl::GetFlag(FLAGS_describe) ||
         absl::GetFlag(FLAGS_list_policy) || absl::GetFlag(FLAGS_list_unsupported);
}

// Of what prints alone.
absl::Status RefuseSummary() { return RefuseFlags({"json"}, "is of a plan"); }

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "diff") {
    return Diff({arguments.begin() + 1, arguments.end()});
  }
  if (OnlyLists()) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags(
        {"explain", "report", "dot", "trace", "timeline", "export_onnx"}, "is of a plan"));
  }
  if (absl::GetFlag(FLAGS_list_models)) {
    ISOMER_RETURN_IF_ERROR(RefuseFlagsBut({"list_models", "out"}, "is not for --list_models"));
    if (!arguments.empty()) return absl::InvalidArgumentError("--list_models takes no MODEL");
    ISOMER_RETURN_IF_ERROR(RefuseSummary());
    return PrintModels();
  }
  if (absl::GetFlag(FLAGS_describe)) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"out"}, "is for a plan, and not for --describe"));
    ISOMER_RETURN_IF_ERROR(RefuseSummary());
    return Describe(arguments);
  }
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"svg"}, "is for --describe"));
  if (absl::GetFlag(FLAGS_list_proposers) && arguments.empty()) {
    ISOMER_RETURN_IF_ERROR(RefuseSummary());
    std::fputs(ProposerList().c_str(), stdout);
    return kExitDone;
  }
  if (absl::GetFlag(FLAGS_list_policy)) {
    if (!arguments.empty()) return absl::InvalidArgumentError("--list_policy takes no MODEL");
    ISOMER_RETURN_IF_ERROR(RefuseSummary());
    ISOMER_ASSIGN_OR_RETURN(const SearchPolicy policy, PolicyOf(RequestOfFlags()));
    std::fputs(PolicyText(policy).c_str(), stdout);
    return kExitDone;
  }
  if (const std::string plan = absl::GetFlag(FLAGS_price); !plan.empty()) {
    if (!arguments.empty()) return absl::InvalidArgumentError("--price takes no MODEL");
    return Price(plan);
  }
  if (arguments.size() != 1) return absl::InvalidArgumentError("expected one MODEL (see --help)");
  if (absl::GetFlag(FLAGS_list_unsupported)) {
    ISOMER_RETURN_IF_ERROR(RefuseSummary());
    return ListUnsupported(arguments[0]);
  }
  if (absl::GetFlag(FLAGS_machine).empty() ||
      (absl::GetFlag(FLAGS_out).empty() && absl::GetFlag(FLAGS_export_onnx).empty())) {
    return absl::InvalidArgumentError(
        "--machine and --out (or --export_onnx) are needed (see --help)");
  }
  const OptimizeRequest request = RequestOfFlags();
  ISOMER_ASSIGN_OR_RETURN(OptimizeOptions options, OptionsOf(request));
  if (options.training && !absl::GetFlag(FLAGS_export_onnx).empty()) {
    return absl::InvalidArgumentError("--export_onnx is for --mode=inference");
  }
  ISOMER_RETURN_IF_ERROR(CheckReportFlag());
  options.keep_baselines = !absl::GetFlag(FLAGS_report).empty() || absl::GetFlag(FLAGS_explain);
  ISOMER_ASSIGN_OR_RETURN(Machine machine,
                          MachineOf(MachineRequestOfFlags(), absl::GetFlag(FLAGS_search)));
  ISOMER_RETURN_IF_ERROR(CheckObjective(options.training));
  const int64_t first_batch = SeeksThroughput() ? 1 : 0;
  ISOMER_ASSIGN_OR_RETURN(Model model, ModelOfFlags(arguments[0], request, first_batch));
  std::vector<std::string> notes;
  if (const auto text = LeftOutOutputsText(request, options, model, machine); text.has_value()) {
    notes.push_back(*text);
    ISOMER_RETURN_IF_ERROR(KeepLossAlone(&model));
  }
  if (const auto text = NoPlanFitsText(model, options, machine); text.has_value()) {
    std::fprintf(stderr, "%s: %s\n", arguments[0].c_str(), text->c_str());
    Json summary;
    summary["model"] = model.name;
    summary["fits"] = false;
    summary["reason"] = *text;
    ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
    return kExitNo;
  }
  ISOMER_RETURN_IF_ERROR(AddKeptWeights(request, model, &options));
  ISOMER_RETURN_IF_ERROR(AddCompared(request, model, &options, &notes));
  PrintNotes(notes);
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, RulesOf(request));
  ISOMER_ASSIGN_OR_RETURN(const MachineCosts costs, CostsOf(request, std::move(machine)));
  const CostModel& cost = *costs.model;
  const RuleIndex index(rules);
  EndSearchesOnInterrupt();
  // Calls of unfused attention would be found to be attention.
  if (request.attention == "flash") {
    options.equal = [](const ConcreteSide& source, const ConcreteSide& target,
                       const InputNumbers& numbers) {
      std::set<std::string> lemmas;
      return EqualSides(source, target, &lemmas, numbers).ok();
    };
  }
  std::vector<BatchTrial> trials;
  const auto of_batch = [&](int64_t batch) -> absl::StatusOr<OptimizeResult> {
    if (batch == 1) return OptimizeAndTell(model, index, cost, options);
    ISOMER_ASSIGN_OR_RETURN(const Model larger, ModelOfFlags(arguments[0], request, batch));
    return OptimizeAndTell(larger, index, cost, options);
  };
  ISOMER_ASSIGN_OR_RETURN(const OptimizeResult result,
                          SeeksThroughput()
                              ? PlanForThroughput(cost.machine().num_devices(), of_batch, &trials)
                              : OptimizeAndTell(model, index, cost, options));
  if (const std::string& note = result.searches.cache_note; !note.empty()) {
    PrintNote(note);
  }
  if (!result.misfit.empty()) {
    PrintNote(result.misfit);
  }
  ISOMER_ASSIGN_OR_RETURN(Report report,
                          ReportOf(result, rules, cost, absl::GetFlag(FLAGS_verbose)));
  BaselineSummaries baselines(result, cost);
  ISOMER_RETURN_IF_ERROR(Explained(result, cost, &baselines, &report));
  std::fputs(report.text.c_str(), stdout);
  if (!trials.empty()) {
    std::fputs(TrialsText(trials).c_str(), stdout);
    report.json["batches"] = TrialsJson(trials);
  }
  if (absl::GetFlag(FLAGS_list_proposers)) {
    std::printf("\n%s", LedgerText(result.proposers, options.without).c_str());
  }
  ISOMER_RETURN_IF_ERROR(WriteOutputs(result, cost));
  ISOMER_RETURN_IF_ERROR(WriteReportPage(result, report, rules, cost, &baselines));
  ISOMER_RETURN_IF_ERROR(WriteSummary(report, result.plan));
  if (result.fits) return kExitDone;
  std::string line;
  {
    Progress progress("how many nodes are enough", 0);
    ISOMER_ASSIGN_OR_RETURN(line, MisfitText(result, model, index, cost, options));
  }
  std::fprintf(stderr, "%s\n", line.c_str());
  return kExitNo;
}

CompletionWords Words() {
  std::vector<std::string> plans(std::begin(kBaselines), std::end(kBaselines));
  plans.push_back(kGrid);
  std::vector<std::string> proposers, machines = MachinePresets();
  for (const Proposer* proposer : AllProposers()) proposers.emplace_back(proposer->name);
  machines.push_back("FILE");
  return {.of_flags = {{"attention", {"flash", "unfused"}},
                       {"context_exchange", {"auto", "all_gather", "all_to_all"}},
                       {"context_order", {"auto", "contiguous", "striped"}},
                       {"gradient_precision", {"float32", "bfloat16", "float16", "auto"}},
                       {"loss", {"auto", "cross_entropy", "mse", "none"}},
                       {"machine", machines},
                       {"mode", {"training", "inference"}},
                       {"objective", {"latency", "throughput"}},
                       {"optimizer", OptimizerNames()},
                       {"plan", plans},
                       {"precision", {"float32", "bfloat16", "float16", "fp8"}},
                       {"fp8_scaling", {"tensor", "row", "block"}},
                       {"offload", {"none", "auto"}},
                       {"state_precision", {"float32", "bfloat16"}},
                       {"recompute", {"none", "selective", "full"}},
                       {"schedule", {"1f1b", "zb_h1", "zb_h2", "zb_v", "auto"}},
                       {"search",
                        {"hierarchical", "enumeration", "egraph", "algebra", "sequential", "mcmc",
                         "exhaustive"}},
                       {"update",
                        {"auto", "all_reduce", "sharded", "sharded_gradients", "sharded_weights",
                         "owner"}},
                       {"to", {"pytorch", "jax", "megatron", "deepspeed", "torchtitan"}},
                       {"without", proposers}},
          .arguments = ZooWords()};
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  if (isomer::IsExport(argc, argv)) return isomer::ExportMain(argc, argv);
  return isomer::RunProgram(
      {.name = "isomer-optimize",
       .purpose = "Finds the fastest equal plan to run a model on a cluster.",
       .usage = "MODEL --machine=PRESET|FILE --out=FILE",
       .example = "isomer-optimize models/data/bert_tiny.onnx --machine=dgx_h100 --nodes=2 "
                  "--devices_per_node=4 --out=bert.plan",
       .outputs = {"out", "svg", "export_onnx", "dot", "trace", "timeline", "report"},
       .commands = {isomer::DiffCommand(), isomer::ExportCommand()},
       .version = isomer::BuiltVersions(),
       .more_examples = {"isomer-optimize --machine=k80_cluster --describe",
                         "isomer-optimize zoo:bert_large --machine=dgx_h100 --nodes=2 "
                         "--out=large.plan --report=large.html"},
       .words = isomer::Words,
       .load_operators = isomer::LoadOperators},
      argc, argv, isomer::Run);
}
