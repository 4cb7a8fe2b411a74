// isomer-generate: finds rules, has them proved, and writes those that are.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "generator/check_command.h"
#include "generator/generate.h"
#include "generator/inspect/commands.h"
#include "generator/settle.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/lemma_text.h"
#include "verifier/prover.h"

ABSL_FLAG(std::string, ops, "all", "operators, separated by commas, or all");
ABSL_FLAG(int, max_ops, 3, "largest number of operators on one side of a rule, 1 to 3");
ABSL_FLAG(std::string, out, "",
          "the rules file to write; several, separated by commas, hold the same (binary and text)");
ABSL_FLAG(std::string, work_dir, "", "folder for what was pruned, refuted or unknown, and why");
ABSL_FLAG(int, jobs, 0, "processes that prove; 0: as many as there are cores");
ABSL_FLAG(uint64_t, seed, 1, "of all random inputs");
ABSL_FLAG(int, instances, 1000, "check: random instances of each rule");
ABSL_FLAG(std::string, ids, "", "check: only these rules, separated by commas");
ABSL_FLAG(int, sample, 0, "check: that many rules, spread over the file; 0: all");
ABSL_FLAG(std::string, markdown, "", "stats: also write the counts as a page to this file");
ABSL_FLAG(std::string, id, "", "show: the rule, by its id or the beginning of it");
ABSL_FLAG(std::string, dot, "", "show: draw the rule in this file, for dot");
ABSL_FLAG(std::string, svg, "", "show: draw the rule in this file");

namespace isomer {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

absl::StatusOr<std::set<OpKind>> ParseOps(const std::string& text) {
  std::set<OpKind> kinds;
  if (text == "all") return std::set<OpKind>(std::begin(kAllOpKinds), std::end(kAllOpKinds));
  for (const absl::string_view name : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const absl::StatusOr<OpKind> kind = ParseOpKind(name);
    if (!kind.ok() || IsLeaf(*kind)) {
      return absl::InvalidArgumentError(absl::StrCat("--ops: there is no operator '", name, "'"));
    }
    kinds.insert(*kind);
  }
  if (kinds.empty()) return absl::InvalidArgumentError("--ops names no operator");
  return kinds;
}

// Proves a rule. Sampling can miss a case that needs a condition; the prover's counterexample shows
// it, and the rule is settled again with that in view, a few times.
Rule ProveOrRepair(const GeneralRule& general, Prover* prover, TypeOracle* oracle) {
  constexpr int kRepairs = 6;
  Rule rule = general.rule;
  Random random(rule.Digest());
  std::vector<Binding> counterexamples;
  for (int repair = 0;; ++repair) {
    const Judgement judgement = prover->Judge(rule);
    rule.proof = judgement.record;
    if (rule.proof.verdict == ProofRecord::Verdict::kUnknown && rule.reversible) {
      rule.reversible = false;  // One direction may be provable.
      SetId(&rule);
      continue;
    }
    if (!judgement.counterexample.has_value() || repair == kRepairs) return rule;
    counterexamples.push_back(judgement.counterexample->binding);
    const std::optional<Rule> repaired =
        Resettle(rule, general.found, counterexamples, oracle, &random);
    if (!repaired.has_value()) return rule;
    rule = *repaired;
  }
}

// The same; if the rule is refuted for good, what it generalises is tried with fewer variables.
Rule ProveSomeForm(GeneralRule general, Prover* prover, TypeOracle* oracle) {
  std::set<std::string> refuted;
  while (true) {
    const Rule judged = ProveOrRepair(general, prover, oracle);
    if (judged.proof.verdict != ProofRecord::Verdict::kRefuted ||
        general.candidate.inputs.empty()) {
      return judged;
    }
    refuted.insert(PatternsText(general.rule));
    Random random(general.rule.Digest());
    std::optional<GeneralRule> other = Generalize(general.candidate, oracle, &random, refuted);
    if (!other.has_value()) return judged;
    general = *std::move(other);
  }
}

// Proves every `jobs`-th rule from `first` on.
std::vector<Rule> ProveSlice(size_t first, size_t jobs, const std::vector<GeneralRule>& rules,
                             Progress* progress) {
  Prover prover;
  TypeOracle oracle;
  std::vector<Rule> judged;
  for (size_t i = first; i < rules.size(); i += jobs) {
    judged.push_back(ProveSomeForm(rules[i], &prover, &oracle));
    progress->Advance(static_cast<int64_t>(jobs));
  }
  return judged;
}

// In child processes, because Z3 is not made for threads; each hands its slice back as a file.
absl::StatusOr<std::vector<Rule>> ProveInProcesses(size_t jobs, const std::string& folder,
                                                   const std::vector<GeneralRule>& rules) {
  std::vector<pid_t> children;
  auto slice_path = [&](size_t job) { return absl::StrCat(folder, "/slice", job, ".rules"); };
  for (size_t job = 0; job < jobs; ++job) {
    const pid_t child = fork();
    if (child < 0) return absl::InternalError("cannot start a process to prove in");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // Nobody would read the proofs.
    RuleSet slice;
    {
      Progress progress("prove", static_cast<int64_t>(rules.size()),
                        job == 0 ? stderr : fopen("/dev/null", "w"));
      slice.rules = ProveSlice(job, jobs, rules, &progress);
    }
    _exit(SaveRules(slice_path(job), slice).ok() ? 0 : 1);
  }
  bool all_well = true;
  for (pid_t child : children) {
    int state = 0;
    all_well &= waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
  }
  if (!all_well) return absl::InternalError("a process that proves rules died");
  std::vector<Rule> judged(rules.size());
  for (size_t job = 0; job < jobs; ++job) {
    ISOMER_ASSIGN_OR_RETURN(const RuleSet slice, LoadRules(slice_path(job)));
    for (size_t i = job, s = 0; i < rules.size(); i += jobs, ++s) judged[i] = slice.rules[s];
  }
  return judged;
}

absl::StatusOr<std::vector<Rule>> Prove(size_t jobs, const std::vector<GeneralRule>& rules) {
  if (jobs <= 1) {
    Progress progress("prove", static_cast<int64_t>(rules.size()));
    return ProveSlice(0, 1, rules, &progress);
  }
  char folder[] = "/tmp/isomer-generate-XXXXXX";
  if (mkdtemp(folder) == nullptr) return absl::InternalError("cannot make a folder under /tmp");
  absl::StatusOr<std::vector<Rule>> judged = ProveInProcesses(jobs, folder, rules);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return judged;
}

absl::Status WriteWorkDir(const std::string& folder, const Statistics& statistics,
                          const std::vector<Rule>& rejected) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat(folder, ": ", error.message()));
  std::string pruned, verdicts;
  for (const auto& [reason, examples] : statistics.pruned_examples) {
    absl::StrAppend(&pruned, "# ", reason, ": ", statistics.pruned.at(reason), "\n");
    for (const std::string& example : examples) absl::StrAppend(&pruned, example, "\n");
  }
  for (const Rule& rule : rejected) {
    const bool refuted = rule.proof.verdict == ProofRecord::Verdict::kRefuted;
    absl::StrAppend(&verdicts, refuted ? "refuted " : "unknown ", rule.id, " ", rule.ToString(),
                    "\n  ", rule.proof.note, "\n");
  }
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(folder + "/pruned.txt", pruned));
  return WriteFileAtomically(folder + "/rejected.txt", verdicts);
}

struct Outcome {
  RuleSet proved;
  std::vector<Rule> rejected;
  int64_t refuted = 0, unknown = 0;
};

Outcome Sort(std::vector<Rule> rules) {
  Outcome outcome;
  std::set<std::string> seen;
  for (Rule& rule : rules) {
    if (rule.proof.verdict == ProofRecord::Verdict::kProved) {
      // Two rules may have been repaired to one.
      if (seen.insert(rule.id).second) outcome.proved.rules.push_back(std::move(rule));
      continue;
    }
    ++(rule.proof.verdict == ProofRecord::Verdict::kRefuted ? outcome.refuted : outcome.unknown);
    outcome.rejected.push_back(std::move(rule));
  }
  return outcome;
}

Json Summary(const Statistics& statistics, const Outcome& outcome, double enumerate_seconds,
             double prove_seconds) {
  Json json;
  json["graphs_enumerated"] = statistics.graphs_enumerated;
  json["candidates"] = statistics.candidates;
  json["pruned"] = Json::EmptyObject();
  for (const auto& [reason, count] : statistics.pruned) json["pruned"][reason] = count;
  json["proved"] = outcome.proved.rules.size();
  json["refuted"] = outcome.refuted;
  json["unknown"] = outcome.unknown;
  json["rules"] = outcome.proved.rules.size();
  json["seconds"]["enumerate"] = enumerate_seconds;
  json["seconds"]["prove"] = prove_seconds;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  json["peak_rss_bytes"] = int64_t{usage.ru_maxrss} * 1024;
  return json;
}

absl::StatusOr<int> RunGenerate(const std::vector<std::string>& files_named) {
  if (!files_named.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", files_named[0], "'"));
  }
  GenerateOptions options;
  options.max_operators = absl::GetFlag(FLAGS_max_ops);
  options.seed = absl::GetFlag(FLAGS_seed);
  const std::string out = absl::GetFlag(FLAGS_out);
  const std::vector<std::string> files = absl::StrSplit(out, ',', absl::SkipEmpty());
  if (files.empty()) return absl::InvalidArgumentError("--out names no file");
  if (options.max_operators < 1 || options.max_operators > 3) {
    return absl::InvalidArgumentError("--max_ops must be 1, 2 or 3");
  }
  if (absl::GetFlag(FLAGS_jobs) < 0) return absl::InvalidArgumentError("--jobs is negative");
  ISOMER_ASSIGN_OR_RETURN(options.kinds, ParseOps(absl::GetFlag(FLAGS_ops)));

  Statistics statistics;
  const Clock::time_point start = Clock::now();
  std::vector<GeneralRule> rules;
  {
    std::unique_ptr<Progress> progress;
    rules = Generate(options, &statistics, [&](int64_t, int64_t total) {
      if (progress == nullptr) progress = std::make_unique<Progress>("settle", total);
      progress->Advance();
    });
  }
  const double enumerate_seconds = SecondsSince(start);
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t wanted = absl::GetFlag(FLAGS_jobs) == 0 ? cores : absl::GetFlag(FLAGS_jobs);
  const Clock::time_point prove_start = Clock::now();
  ISOMER_ASSIGN_OR_RETURN(std::vector<Rule> judged,
                          Prove(std::min(wanted, std::max<size_t>(rules.size(), 1)), rules));
  const double prove_seconds = SecondsSince(prove_start);

  Outcome outcome = Sort(std::move(judged));
  outcome.proved.generator =
      absl::StrCat("isomer-generate --ops=", absl::GetFlag(FLAGS_ops),
                   " --max_ops=", options.max_operators, " --seed=", options.seed);
  for (const std::string& file : files) {
    ISOMER_RETURN_IF_ERROR(SaveRules(file, outcome.proved));
  }
  const std::string work_dir = absl::GetFlag(FLAGS_work_dir);
  if (!work_dir.empty()) {
    ISOMER_RETURN_IF_ERROR(WriteWorkDir(work_dir, statistics, outcome.rejected));
  }
  const Json summary = Summary(statistics, outcome, enumerate_seconds, prove_seconds);
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  std::printf("%zu rules proved, %lld refuted, %lld unknown (%lld graphs, %lld candidates): %s\n",
              outcome.proved.rules.size(), static_cast<long long>(outcome.refuted),
              static_cast<long long>(outcome.unknown),
              static_cast<long long>(statistics.graphs_enumerated),
              static_cast<long long>(statistics.candidates), out.c_str());
  return kExitDone;
}

absl::StatusOr<int> RunCheckCommand(const std::vector<std::string>& files) {
  if (files.size() != 1) return absl::InvalidArgumentError("check takes one rules file");
  CheckCommand command;
  command.options.instances = absl::GetFlag(FLAGS_instances);
  command.options.seed = absl::GetFlag(FLAGS_seed);
  command.options.jobs = absl::GetFlag(FLAGS_jobs);
  if (command.options.jobs <= 0) {
    command.options.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  if (command.options.instances < 1) {
    return absl::InvalidArgumentError("--instances must be 1 or more");
  }
  command.ids = absl::StrSplit(absl::GetFlag(FLAGS_ids), ',', absl::SkipEmpty());
  command.sample = absl::GetFlag(FLAGS_sample);
  return RunCheck(files[0], command);
}

absl::StatusOr<int> RunStats(const std::vector<std::string>& arguments) {
  return StatsCommand(arguments, absl::GetFlag(FLAGS_markdown));
}

absl::StatusOr<int> RunShow(const std::vector<std::string>& arguments) {
  const ShowOptions options{.id = absl::GetFlag(FLAGS_id),
                            .dot = absl::GetFlag(FLAGS_dot),
                            .svg = absl::GetFlag(FLAGS_svg)};
  return ShowCommand(arguments, options, LemmaText);
}

// What the first argument asks for; `run` is given the arguments after it.
struct Command {
  absl::string_view name;
  absl::StatusOr<int> (*run)(const std::vector<std::string>& arguments);
};
constexpr Command kCommands[] = {
    {"generate", RunGenerate}, {"check", RunCheckCommand}, {"stats", RunStats},
    {"show", RunShow},         {"diff", DiffCommand},
};

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return RunGenerate({});
  std::vector<absl::string_view> names;
  for (const Command& command : kCommands) {
    if (arguments[0] == command.name) return command.run({arguments.begin() + 1, arguments.end()});
    names.push_back(command.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", arguments[0],
                                                 "'; commands: ", absl::StrJoin(names, ", ")));
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-generate",
       .purpose = "Finds small parallel computation graphs that are equal, proves that they are, "
                  "and writes them as rules.",
       .usage = "--ops=LIST|all --max_ops=N --out=FILE [--work_dir=DIR] [--jobs=N] | stats FILE "
                "[--markdown=FILE] | show FILE --id=ID [--svg=FILE] [--dot=FILE] | diff FILE FILE",
       .example = "isomer-generate --ops=matmul,add,concat,split --max_ops=3 --out=small.rules"},
      argc, argv, isomer::Run);
}
