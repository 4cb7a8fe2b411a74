// isomer-verify: proves the rules of a file, checks the certificate of a plan, audits the rules of
// other optimizers.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/load.h"
#include "models/loss.h"
#include "pcg/ir/plan.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/support/data_path.h"
#include "pcg/support/json.h"
#include "pcg/support/messages.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule.h"
#include "verifier/audit/audit.h"
#include "verifier/audit/read_rules.h"
#include "verifier/audit/report.h"
#include "verifier/gradients/gradient.h"
#include "verifier/lemmas/lemmas_command.h"
#include "verifier/mutation/command.h"
#include "verifier/own_model_main.h"
#include "verifier/plans/judge_plan.h"
#include "verifier/proving/judge_rules.h"
#include "verifier/proving/prover.h"

ABSL_FLAG(int, jobs, 0, "processes that prove; 0: one for each processor");
ABSL_FLAG(std::string, rules, "",
          "of a plan: the rules it was made with; of an audit: those to derive from; none: the "
          "shipped ones");
ABSL_FLAG(bool, reprove, false,
          "of a plan: prove besides, for all sizes, every rule that it was made with");
ABSL_FLAG(std::string, model, "",
          "of a plan: the model that it is to be of, as isomer-optimize takes it; none: the model "
          "inside of the plan is believed to be yours");
ABSL_FLAG(int64_t, batch_size, 0, "of --model, as isomer-optimize has it");
ABSL_FLAG(std::vector<std::string>, dim, {}, "of --model, as isomer-optimize has it");
ABSL_FLAG(std::string, schedule, "classes",
          "of a plan: lower it and check what one device of each class of devices that do the same "
          "does (classes), what every device does (all), or nothing (none)");
ABSL_FLAG(std::string, cache, "",
          "of rules: where verdicts are kept; none: $XDG_CACHE_HOME/isomer/proofs");
ABSL_FLAG(bool, no_cache, false, "of rules: prove every rule anew, and keep no verdicts");
ABSL_FLAG(bool, gradients, false, "of rules: prove besides that both sides have equal gradients");
ABSL_FLAG(bool, exhaustive, false,
          "of lemmas: evaluate them at all small shapes, too, by other code than the proofs'");
ABSL_FLAG(std::string, markdown, "", "of lemmas: write the table as this page");
ABSL_FLAG(int, max_steps, 3, "of an audit: the longest derivation sought; 0: none");
ABSL_FLAG(
    std::string, counterexample_dir, "",
    "write each refuted rule's two sides here as models, with the inputs at which they differ");

namespace isomer {
namespace {

Json RuleSummary(const Rule& rule, const ProofRecord& record) {
  Json json;
  json["id"] = rule.id;
  json["rule"] = rule.ToString();
  json["verdict"] = VerdictName(record.verdict);
  json["conditions"] = Json::EmptyArray();
  for (const Condition& condition : rule.conditions) {
    json["conditions"].Append(condition.ToString());
  }
  json["lemmas"] = Json(record.lemmas);
  json["seconds"] = record.seconds;
  json["counterexample"] =
      record.verdict == ProofRecord::Verdict::kRefuted ? Json(record.note) : Json();
  if (!record.note.empty() && record.verdict != ProofRecord::Verdict::kRefuted) {
    json["reason"] = record.note;
  }
  return json;
}

// --counterexample_dir, made if it is not there.
absl::StatusOr<std::string> CounterexampleDirectory() {
  const std::string directory = absl::GetFlag(FLAGS_counterexample_dir);
  std::error_code error;
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  if (error) return absl::InvalidArgumentError(directory + ": " + error.message());
  return directory;
}

int Jobs() {
  const int jobs = absl::GetFlag(FLAGS_jobs);
  return jobs > 0 ? jobs : static_cast<int>(std::thread::hardware_concurrency());
}

absl::StatusOr<RuleSet> RulesOfFlag() { return LoadRuleFiles(absl::GetFlag(FLAGS_rules)); }

// The cache of --cache, or null.
absl::StatusOr<std::unique_ptr<ProofCache>> CacheOfFlags() {
  const std::string path = absl::GetFlag(FLAGS_cache);
  if (absl::GetFlag(FLAGS_no_cache)) {
    if (path.empty()) return nullptr;
    return absl::InvalidArgumentError("--cache and --no_cache exclude each other");
  }
  const std::string place = path.empty() ? ProofCache::DefaultPath() : path;
  if (place.empty()) return nullptr;
  auto cache = std::make_unique<ProofCache>(place);
  if (!cache->note().empty()) PrintNote(cache->note());
  return cache;
}

// Of the rules' proofs, as each was proved, however long ago.
double MedianSeconds(const std::vector<ProofRecord>& records) {
  std::vector<double> seconds;
  for (const ProofRecord& record : records) seconds.push_back(record.seconds);
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<int64_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

// Of the rules that are proved. Returns whether the gradient theorem holds of all of them.
bool ReportGradients(const std::vector<Rule>& rules, const std::vector<ProofRecord>& records,
                     Json* summary) {
  GradientProver prover;
  int everywhere = 0, almost = 0, none = 0, open = 0;
  std::map<std::string, int> lemmas;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (records[i].verdict != ProofRecord::Verdict::kProved) continue;
    const GradientTheorem theorem = prover.Prove(rules[i]);
    for (const std::string& lemma : theorem.lemmas) ++lemmas[lemma];
    if (!theorem.status.ok()) {
      ++open;
      std::printf("gradients of %s: %s\n    %s\n", rules[i].id.c_str(), rules[i].ToString().c_str(),
                  std::string(theorem.status.message()).c_str());
    } else {
      ++(theorem.reach == GradientReach::kNone         ? none
         : theorem.reach == GradientReach::kEverywhere ? everywhere
                                                       : almost);
    }
  }
  Json gradients;
  gradients["everywhere"] = everywhere;
  gradients["almost_everywhere"] = almost;
  gradients["nothing_to_differentiate"] = none;
  gradients["not_proved"] = open;
  for (const auto& [lemma, count] : lemmas) gradients["lemmas"][lemma] = count;
  (*summary)["gradients"] = gradients;
  std::printf(
      "gradients: equal everywhere of %d rules, almost everywhere of %d; %d have nothing to "
      "differentiate; %d not proved\n",
      everywhere, almost, none, open);
  return open == 0;
}

constexpr ProofRecord::Verdict kVerdicts[] = {
    ProofRecord::Verdict::kProved, ProofRecord::Verdict::kChecked, ProofRecord::Verdict::kUnknown,
    ProofRecord::Verdict::kRefuted, ProofRecord::Verdict::kCrashed};

// The worst that is said of a rule: false, open, or evaluated only. Nothing but a proof is done.
constexpr int kExitUnknown = 3, kExitChecked = 4;
int ExitOf(const std::map<ProofRecord::Verdict, int>& counts) {
  auto any = [&](ProofRecord::Verdict verdict) {
    const auto found = counts.find(verdict);
    return found != counts.end() && found->second > 0;
  };
  if (any(ProofRecord::Verdict::kRefuted) || any(ProofRecord::Verdict::kCrashed)) return kExitNo;
  if (any(ProofRecord::Verdict::kUnknown) || any(ProofRecord::Verdict::kNone)) return kExitUnknown;
  return any(ProofRecord::Verdict::kChecked) ? kExitChecked : kExitDone;
}

absl::StatusOr<int> VerifyRules(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(path));
  JudgeOptions options;
  options.jobs = Jobs();
  ISOMER_ASSIGN_OR_RETURN(options.counterexample_dir, CounterexampleDirectory());
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<ProofCache> cache, CacheOfFlags());
  options.cache = cache.get();
  ISOMER_ASSIGN_OR_RETURN(const JudgedRules judged, JudgeRules(rules.rules, options));
  const std::vector<ProofRecord>& records = judged.records;
  if (!judged.cache_status.ok()) {
    // Asked for, it must be there; else it only would have saved time.
    if (!absl::GetFlag(FLAGS_cache).empty()) return judged.cache_status;
    PrintNote(absl::StrCat("no verdicts are kept: ", judged.cache_status.message()));
  }
  std::map<ProofRecord::Verdict, int> counts;
  Json summary;
  Json list = Json::EmptyArray();
  for (size_t i = 0; i < records.size(); ++i) {
    const Rule& rule = rules.rules[i];
    const ProofRecord& record = records[i];
    list.Append(RuleSummary(rule, record));
    ++counts[record.verdict];
    if (record.verdict == ProofRecord::Verdict::kProved) continue;
    std::printf("%s %s: %s\n    %s\n", VerdictName(record.verdict), rule.id.c_str(),
                rule.ToString().c_str(), record.note.c_str());
  }
  const double median = MedianSeconds(records);
  for (const ProofRecord::Verdict verdict : kVerdicts) {
    summary[VerdictName(verdict)] = counts[verdict];
  }
  summary["from_cache"] = judged.from_cache;
  summary["median_seconds"] = median;
  summary["rules"] = list;
  const bool gradients_agree =
      !absl::GetFlag(FLAGS_gradients) || ReportGradients(rules.rules, records, &summary);
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  std::printf("%d rules: %s; %d verdicts from the cache; median proof %.1f ms\n",
              static_cast<int>(records.size()),
              absl::StrJoin(kVerdicts, ", ",
                            [&](std::string* out, ProofRecord::Verdict verdict) {
                              absl::StrAppend(out, counts[verdict], " ", VerdictName(verdict));
                            })
                  .c_str(),
              judged.from_cache, 1000 * median);
  return gradients_agree ? ExitOf(counts) : kExitNo;
}

int64_t PeakRssBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

Json SecondsSummary(const CertificateReport& report, double load) {
  Json json;
  json["load"] = load;
  json["seal"] = report.seal;
  json["types"] = report.types;
  json["replay"] = report.replay;
  json["lower"] = report.lower;
  json["schedule"] = report.schedule;
  return json;
}

// What is said of an accepted plan besides.
struct Findings {
  std::optional<int> rules_proved;  // with --reprove
  OwnModelFindings of_model;
};

// Ok if the model inside of the plan is that of --model, as isomer-optimize reads it.
absl::Status ExpectModelOfFlag(const Plan& plan, Findings* findings) {
  const std::string spec = absl::GetFlag(FLAGS_model);
  LoadOptions options;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.dims = absl::GetFlag(FLAGS_dim);
  if (spec.empty()) {
    if (options.batch_size == 0 && options.dims.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--batch_size and --dim are of --model");
  }
  ISOMER_ASSIGN_OR_RETURN(const Model own, LoadAnyModel(spec, options));
  return ExpectOwnModel(own, spec, plan, &findings->of_model);
}

std::string JoinedDeviations(const Plan& plan) { return absl::StrJoin(DeviationsOf(plan), "; "); }

// "1522 steps: 1490 by same term, 32 by theorem".
std::string StepsText(const CertificateReport& report) {
  return absl::StrJoin(report.steps, ", ", [](std::string* out, const auto& decided) {
    absl::StrAppend(out, decided.second, " by ", EqualByName(decided.first));
  });
}

// Equal over the reals is equal of finite numbers: names the values of the model that are none, as
// masks of -infinity that exporters write. Those of a file are where training begins, and no part
// of what is equal.
std::string ValuesThatAreNotFinite(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, values] : model.weights) {
    const bool finite =
        values.file() != nullptr ||
        std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
    if (!finite) names.push_back(name);
  }
  return absl::StrJoin(names, ", ");
}

void PrintAccepted(const std::string& path, const Plan& plan, const CertificateReport& report,
                   const Findings& findings) {
  std::printf("accepted %s: %d nodes on %d devices (schedule of %d of them)\n", path.c_str(),
              plan.graph.num_nodes(), static_cast<int>(plan.num_devices),
              static_cast<int>(report.scheduled_devices));
  std::printf(
      "  %d steps%s%s\n", static_cast<int>(plan.steps.size()),
      report.steps.empty() ? "" : ", each shown equal on its own: ", StepsText(report).c_str());
  if (findings.rules_proved.has_value()) {
    std::printf("  its %d rules are proved for all sizes\n", *findings.rules_proved);
  }
  if (absl::GetFlag(FLAGS_model).empty()) {
    std::printf(
        "  equal to the model inside of the plan, '%s'; --model=FILE compares that with "
        "your own\n",
        absl::CHexEscape(plan.model.name).c_str());
  } else {
    std::printf("  equal to %s\n", absl::GetFlag(FLAGS_model).c_str());
  }
  for (const std::string& assumption : plan.model.assumptions) {
    std::printf("  assuming that %s\n", assumption.c_str());
  }
  if (findings.of_model.outputs_left_out > 0) {
    std::printf("  but for %d outputs: it gives back the loss alone\n",
                findings.of_model.outputs_left_out);
  }
  if (findings.of_model.unfused_attention) {
    std::printf("  with attention that writes and reads its scores\n");
  }
  if (findings.of_model.states_by_name > 0) {
    std::printf("  with %d outputs that are inputs of the next step, as their names say\n",
                findings.of_model.states_by_name);
  }
  if (const auto& carried = findings.of_model.carried; !carried.empty()) {
    std::printf("  with outputs that are inputs of the next step: %s\n",
                absl::StrJoin(carried, ", ").c_str());
  }
  if (!findings.of_model.loss.empty())
    std::printf("  its loss is %s\n", findings.of_model.loss.c_str());
  const std::string deviations = JoinedDeviations(plan);
  if (!deviations.empty()) {
    std::printf("  its steps are not the model's: %s\n", deviations.c_str());
  }
  if (const std::string names = ValuesThatAreNotFinite(plan.model); !names.empty()) {
    std::printf("  what is proved is of finite numbers, and some of %s are not\n", names.c_str());
  }
}

// All that is asked of a plan. An error that is no FailedPrecondition is of what was given besides.
absl::Status JudgePlanOfFlags(const Plan& plan, const RuleSet& rules, CertificateReport* report,
                              Findings* findings) {
  CertificateOptions options;
  ISOMER_ASSIGN_OR_RETURN(options.schedule, ParseScheduleCheck(absl::GetFlag(FLAGS_schedule)));
  Progress progress("verify the plan", 0);
  ISOMER_RETURN_IF_ERROR(ExpectModelOfFlag(plan, findings));
  progress.Say(absl::StrCat(plan.steps.size(), " steps, types, views and schedule"));
  const PlanJudgeOptions judge{.certificate = options, .reprove = absl::GetFlag(FLAGS_reprove)};
  return JudgePlan(plan, rules, judge, report, &findings->rules_proved);
}

absl::StatusOr<int> VerifyPlan(const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(path));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, RulesOfFlag());
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - start;
  CertificateReport report;
  Findings findings;
  const absl::Status verdict = JudgePlanOfFlags(plan, rules, &report, &findings);
  if (!verdict.ok() && !absl::IsFailedPrecondition(verdict)) return verdict;
  Json summary;
  summary["plan"] = path;
  summary["accepted"] = verdict.ok();
  summary["model"] = absl::GetFlag(FLAGS_model);
  summary["deviations"] = Json(DeviationsOf(plan));
  if (findings.rules_proved.has_value()) summary["rules_proved"] = *findings.rules_proved;
  summary["outputs_left_out"] = findings.of_model.outputs_left_out;
  summary["loss"] = findings.of_model.loss;
  summary["unfused_attention"] = findings.of_model.unfused_attention;
  for (const std::string& assumption : plan.model.assumptions) {
    summary["assumptions"].Append(assumption);
  }
  summary["steps"] = plan.steps.size();
  for (const auto& [by, count] : report.steps) summary["steps_by"][EqualByName(by)] = count;
  summary["reason"] = verdict.ok() ? Json() : Json(verdict.message());
  summary["devices"] = plan.num_devices;
  summary["scheduled_devices"] = report.scheduled_devices;
  summary["seconds"] = SecondsSummary(report, load.count());
  summary["peak_rss_bytes"] = PeakRssBytes();
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  if (verdict.ok()) {
    PrintAccepted(path, plan, report, findings);
    return kExitDone;
  }
  std::printf("refused %s: %s\n", path.c_str(), std::string(verdict.message()).c_str());
  return kExitNo;
}

absl::StatusOr<int> Audit(const std::string& path, ForeignFormat format) {
  ISOMER_ASSIGN_OR_RETURN(const std::vector<ForeignRule> rules, format == ForeignFormat::kTaso
                                                                    ? ReadTasoRules(path)
                                                                    : ReadUnityRules(path));
  RuleSet known;
  AuditOptions options;
  options.format = format;
  options.jobs = Jobs();
  options.derivation.max_steps = absl::GetFlag(FLAGS_max_steps);
  if (options.derivation.max_steps < 0) {
    return absl::InvalidArgumentError("--max_steps is negative");
  }
  if (options.derivation.max_steps > 0) {
    ISOMER_ASSIGN_OR_RETURN(known, RulesOfFlag());
    known.BuildIndex();
    options.rules = &known;
  }
  ISOMER_ASSIGN_OR_RETURN(options.counterexample_dir, CounterexampleDirectory());
  ISOMER_ASSIGN_OR_RETURN(const std::vector<AuditResult> results, AuditRules(rules, options));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(AuditJson(rules, results)));
  std::fputs(AuditText(rules, results).c_str(), stdout);
  return NothingIsFalse(results) ? kExitDone : kExitNo;
}

absl::StatusOr<int> AuditTaso(const std::string& path) { return Audit(path, ForeignFormat::kTaso); }
absl::StatusOr<int> AuditUnity(const std::string& path) {
  return Audit(path, ForeignFormat::kUnity);
}

absl::StatusOr<int> Mutate(const std::string& path) {
  return RunMutateCommand(path.empty() ? DataPath("rules/default.rules") : path, Jobs());
}

absl::StatusOr<int> Lemmas(const std::string& path) {
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules,
                          LoadRules(path.empty() ? DataPath("rules/default.rules") : path));
  LemmasOptions options;
  options.jobs = Jobs();
  options.exhaustive = absl::GetFlag(FLAGS_exhaustive);
  options.markdown = absl::GetFlag(FLAGS_markdown);
  return LemmasCommand(rules, options);
}

// What the first argument asks for; `run` is given the file, "" for none.
struct Command {
  ProgramCommand said;
  bool has_shipped_file;  // the argument may be left out
  absl::StatusOr<int> (*run)(const std::string& path);
};
const std::vector<Command>& Commands() {
  static const auto* const commands = new std::vector<Command>{
      {{"rules",
        "FILE [--jobs=N] [--cache=FILE | --no_cache] [--gradients]",
        "Proves every rule of a file.",
        {"jobs", "cache", "no_cache", "gradients", "counterexample_dir"}},
       false,
       VerifyRules},
      {{"plan",
        "FILE [--model=MODEL [--batch_size=N] [--dim NAME=N]] [--rules=FILE] [--reprove] "
        "[--schedule=classes|all|none]",
        "Checks that a plan is equal to its model: steps, types, views and schedule.",
        {"model", "batch_size", "dim", "rules", "reprove", "schedule"}},
       false,
       VerifyPlan},
      {{"lemmas",
        "[FILE] [--exhaustive] [--markdown=FILE]",
        "Proves the premises that the rules of a file rest on.",
        {"jobs", "exhaustive", "markdown"}},
       true,
       Lemmas},
      {{"taso",
        "FILE.pb [--max_steps=N] [--rules=FILE]",
        "Audits the rules that TASO published.",
        {"jobs", "max_steps", "rules", "counterexample_dir"}},
       false,
       AuditTaso},
      {{"unity",
        "FILE.json [--max_steps=N] [--rules=FILE]",
        "Audits the rules that Unity published.",
        {"jobs", "max_steps", "rules", "counterexample_dir"}},
       false,
       AuditUnity},
      {{"mutate",
        "[FILE] [--list_equal]",
        "Changes declarations, rules, plans and schedules, and sees that what is false is refused.",
        {"jobs", "rule_mutants", "mutants", "mutation_seed", "list_equal", "mutation_table",
         "record_answers"}},
       true,
       Mutate},
  };
  return *commands;
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  std::vector<std::string> expected;
  for (const Command& command : Commands()) {
    const absl::string_view name = command.said.name;
    const absl::string_view file = command.said.usage.substr(0, command.said.usage.find(' '));
    expected.push_back(absl::StrCat("'", name, " ", file, "'"));
    const bool is_asked_for = !arguments.empty() && arguments[0] == name;
    const size_t fewest = command.has_shipped_file ? 1 : 2;
    if (!is_asked_for || arguments.size() < fewest || arguments.size() > 2) continue;
    ISOMER_RETURN_IF_ERROR(
        RefuseFlagsBut(command.said.flags, absl::StrCat("is not of '", name, "' (see --help)")));
    return command.run(arguments.size() == 2 ? arguments[1] : "");
  }
  const std::string last = expected.back();
  expected.pop_back();
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", absl::StrJoin(expected, ", "), " or ", last, " (see --help)"));
}

std::vector<ProgramCommand> CommandsSaid() {
  std::vector<ProgramCommand> said;
  for (const Command& command : Commands()) said.push_back(command.said);
  return said;
}

CompletionWords Words() { return {.of_flags = {{"schedule", {"classes", "all", "none"}}}}; }

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-verify",
       .purpose = "Proves the rules of a file, checks that a plan is equal to its model, or audits "
                  "the rules that TASO or Unity published.",
       .usage = "",
       .example = "isomer-verify rules rules/default.rules --json=verdicts.json",
       .outputs = {"markdown"},
       .commands = isomer::CommandsSaid(),
       .version = isomer::BuiltVersions(),
       .more_examples = {"isomer-verify plan bert.plan --model=models/data/bert_tiny.onnx",
                         "isomer-verify lemmas --exhaustive"},
       .words = isomer::Words,
       .load_operators = isomer::LoadOperators},
      argc, argv, isomer::Run);
}
