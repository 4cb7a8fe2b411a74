// isomer-generate: finds rules, has them proved, and writes those that are.
#include <algorithm>
#include <memory>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "generator/checking/check_command.h"
#include "generator/enumeration/configuration.h"
#include "generator/inspect/commands.h"
#include "generator/pipeline/generate_command.h"
#include "generator/pipeline/steps.h"
#include "generator/workers/local_workers.h"
#include "generator/workers/rank_link.h"
#include "generator/workers/rank_workers.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "verifier/families/lemma_text.h"
#include "verifier/proving/prover.h"

ABSL_FLAG(std::string, ops, "all", "operators, separated by commas, or all");
ABSL_FLAG(int, max_ops, 3,
          "largest number of operators on one side of a rule: 1 to 4, or with "
          "--configurations=derived more");
ABSL_FLAG(std::string, configurations, "written",
          "sets of operators that are enumerated together: written (those written down), derived "
          "(all that share a type), or both, the derived ones with two operators a side");
ABSL_FLAG(int, composition_steps, 1,
          "an equation that so many rewrites of either side by smaller rules derive is no rule");
ABSL_FLAG(std::vector<std::string>, out, {},
          "the rules file to write; several, separated by commas, hold the same (binary and text)");
ABSL_FLAG(std::string, work_dir, "",
          "folder for what was pruned, refuted or unknown, and why, and for all results so far: a "
          "run that was stopped goes on from there, and after a change only what it touches is "
          "done again");
ABSL_FLAG(int, jobs, 0,
          "processes that work, or threads that check; 0: as many as there are cores, or with "
          "--communicator=mpi one for each rank");
ABSL_FLAG(std::string, communicator, "processes",
          "processes: of this computer; mpi: of each rank that mpirun started");
ABSL_FLAG(uint64_t, seed, 1, "of all random inputs");
ABSL_FLAG(int, instances, 1000, "check: random instances of each rule");
ABSL_FLAG(std::vector<std::string>, ids, {},
          "check: only these rules, by their ids or the beginnings of them, separated by commas");
ABSL_FLAG(int, sample, 0, "check: that many rules, spread over the file; 0: all");
ABSL_FLAG(std::string, markdown, "", "stats: also write the counts as a page to this file");
ABSL_FLAG(std::vector<std::string>, use, {},
          "stats: plan files, separated by commas: which rules they use, and which match their "
          "models");
ABSL_FLAG(std::string, id, "", "show: the rule, by its id or the beginning of it");
ABSL_FLAG(std::string, dot, "", "show: draw the rule in this file, for dot");
ABSL_FLAG(std::string, svg, "", "show: draw the rule in this file");

namespace isomer {
namespace {

absl::StatusOr<std::set<OpKind>> ParseOps(const std::string& text) {
  std::set<OpKind> kinds;
  if (text == "all") return std::set<OpKind>(AllOpKinds().begin(), AllOpKinds().end());
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

absl::StatusOr<ConfigurationChoice> ParseConfigurations(const std::string& text) {
  if (text == "written") return ConfigurationChoice::kWritten;
  if (text == "derived") return ConfigurationChoice::kDerived;
  if (text == "both") return ConfigurationChoice::kBoth;
  return absl::InvalidArgumentError(
      absl::StrCat("--configurations must be written, derived or both, not '", text, "'"));
}

// --jobs, with 0 resolved.
absl::StatusOr<int> Jobs() {
  const int jobs = absl::GetFlag(FLAGS_jobs);
  if (jobs < 0) return absl::InvalidArgumentError("--jobs is negative");
  return jobs > 0 ? jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

Judge MakeJudge() {
  return [prover = std::make_shared<Prover>()](const Rule& rule) {
    Judgement judgement = prover->Judge(rule);
    Verdict verdict{std::move(judgement.record), std::nullopt};
    if (judgement.counterexample.has_value()) {
      verdict.counterexample = judgement.counterexample->binding;
    }
    return verdict;
  };
}

// Of a list, without what is empty: "a,,b" names two.
std::vector<std::string> Named(std::vector<std::string> list) {
  std::erase(list, "");
  return list;
}

// Says what is to be done and does it, on rank 0 of many.
absl::StatusOr<int> RunGenerateWith(Workers* workers) {
  GenerateCommand command;
  command.workers = workers;
  command.files = Named(absl::GetFlag(FLAGS_out));
  if (command.files.empty()) return absl::InvalidArgumentError("--out names no file");
  GenerateOptions& options = command.options;
  options.max_operators = absl::GetFlag(FLAGS_max_ops);
  if (options.max_operators < 1) return absl::InvalidArgumentError("--max_ops must be 1 or more");
  ISOMER_ASSIGN_OR_RETURN(options.configurations,
                          ParseConfigurations(absl::GetFlag(FLAGS_configurations)));
  const bool is_derived = options.configurations == ConfigurationChoice::kDerived;
  if (is_derived && options.max_operators > kMostDerivedOperators) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_ops must be 1 to ", kMostDerivedOperators));
  }
  if (!is_derived && options.max_operators > kMostWrittenOperators) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_ops must be 1 to ", kMostWrittenOperators,
                     ", as far as the written configurations go (see --configurations)"));
  }
  options.composition_steps = absl::GetFlag(FLAGS_composition_steps);
  if (options.composition_steps < 1) {
    return absl::InvalidArgumentError("--composition_steps must be 1 or more");
  }
  options.seed = absl::GetFlag(FLAGS_seed);
  options.progress = stderr;
  ISOMER_ASSIGN_OR_RETURN(command.jobs, Jobs());
  ISOMER_ASSIGN_OR_RETURN(options.kinds, ParseOps(absl::GetFlag(FLAGS_ops)));
  command.work_dir = absl::GetFlag(FLAGS_work_dir);
  command.make_judge = MakeJudge;
  command.generator = absl::StrCat("isomer-generate --ops=", absl::GetFlag(FLAGS_ops),
                                   " --max_ops=", options.max_operators, " --seed=", options.seed);
  if (options.configurations != ConfigurationChoice::kWritten) {
    absl::StrAppend(&command.generator, " --configurations=", absl::GetFlag(FLAGS_configurations));
  }
  if (options.composition_steps != 1) {
    absl::StrAppend(&command.generator, " --composition_steps=", options.composition_steps);
  }
  ISOMER_ASSIGN_OR_RETURN(const GenerateOutcome outcome, RunGenerate(command));
  absl::PrintF("%d rules proved, %d refuted, %d unknown (%d graphs, %d candidates): %s\n",
               outcome.proved.rules.size(), outcome.refuted, outcome.unknown,
               outcome.statistics.graphs_enumerated, outcome.statistics.candidates,
               absl::StrJoin(absl::GetFlag(FLAGS_out), ", "));
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(SummaryOf(outcome)));
  return kExitDone;
}

absl::StatusOr<int> RunGenerateCommand(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", arguments[0], "'"));
  }
  const std::string communicator = absl::GetFlag(FLAGS_communicator);
  if (communicator == "processes") return RunGenerateWith(nullptr);
  if (communicator != "mpi") {
    return absl::InvalidArgumentError(
        absl::StrCat("--communicator=", communicator, ": there are processes and mpi"));
  }
  ISOMER_RETURN_IF_ERROR(CanOpenMpiLink());
  // Children are begun before there is anything of MPI's that they could inherit.
  ISOMER_RETURN_IF_ERROR(Jobs().status());
  ISOMER_ASSIGN_OR_RETURN(auto children, ChildWorkers::Make(std::max(1, absl::GetFlag(FLAGS_jobs)),
                                                            GeneratorSteps(MakeJudge)));
  ISOMER_ASSIGN_OR_RETURN(auto link, OpenMpiLink());
  if (link->rank() == 0) {
    RankWorkers workers(std::move(link), std::move(children), {});
    return RunGenerateWith(&workers);
  }
  ISOMER_RETURN_IF_ERROR(ServeRank(std::move(link), std::move(children), {}));
  return kExitDone;
}

absl::StatusOr<int> RunCheckCommand(const std::vector<std::string>& files) {
  if (files.size() != 1) return absl::InvalidArgumentError("check takes one rules file");
  CheckCommand command;
  command.options.instances = absl::GetFlag(FLAGS_instances);
  command.options.seed = absl::GetFlag(FLAGS_seed);
  ISOMER_ASSIGN_OR_RETURN(command.options.jobs, Jobs());
  if (command.options.instances < 1) {
    return absl::InvalidArgumentError("--instances must be 1 or more");
  }
  command.ids = Named(absl::GetFlag(FLAGS_ids));
  command.sample = absl::GetFlag(FLAGS_sample);
  return RunCheck(files[0], command);
}

absl::StatusOr<int> RunStats(const std::vector<std::string>& arguments) {
  const std::vector<std::string> plans = absl::GetFlag(FLAGS_use);
  if (plans.empty()) return StatsCommand(arguments, absl::GetFlag(FLAGS_markdown));
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"markdown"}, "does not go with --use"));
  return UseCommand(arguments, plans);
}

absl::StatusOr<int> RunShow(const std::vector<std::string>& arguments) {
  const ShowOptions options{.id = absl::GetFlag(FLAGS_id),
                            .dot = absl::GetFlag(FLAGS_dot),
                            .svg = absl::GetFlag(FLAGS_svg)};
  return ShowCommand(arguments, options, LemmaText);
}

// What the first argument asks for; `run` is given the arguments after it. Without one it is the
// first of them.
struct Command {
  ProgramCommand said;
  absl::StatusOr<int> (*run)(const std::vector<std::string>& arguments);
};
const std::vector<Command>& Commands() {
  static const auto* const commands = new std::vector<Command>{
      {{"generate",
        "--ops=LIST|all --max_ops=N --out=FILE [--work_dir=DIR] [--jobs=N]; mpirun -n N "
        "isomer-generate --communicator=mpi ..",
        "Finds rules, proves them and writes those that are proved. May be left out.",
        {"ops", "max_ops", "configurations", "composition_steps", "out", "work_dir", "jobs",
         "communicator", "seed"}},
       RunGenerateCommand},
      {{"check",
        "FILE [--instances=N] [--ids=LIST] [--sample=N]",
        "Evaluates both sides of rules, and their gradients, on random instances.",
        {"instances", "ids", "sample", "seed", "jobs"}},
       RunCheckCommand},
      {{"stats",
        "FILE [--markdown=FILE] [--use=PLAN,..]",
        "Counts the rules of a file, or where plans use them.",
        {"markdown", "use"}},
       RunStats},
      {{"show",
        "FILE --id=ID [--svg=FILE] [--dot=FILE]",
        "One rule: its equation, drawing, conditions, numbers.",
        {"id", "dot", "svg"}},
       RunShow},
      {{"diff", "FILE FILE", "What one file has and the other has not.", {}}, DiffCommand},
  };
  return *commands;
}

absl::StatusOr<int> Run(std::vector<std::string> arguments) {
  if (arguments.empty()) arguments = {"generate"};
  std::vector<absl::string_view> names;
  for (const Command& command : Commands()) {
    names.push_back(command.said.name);
    if (arguments[0] != command.said.name) continue;
    ISOMER_RETURN_IF_ERROR(RefuseFlagsBut(
        command.said.flags, absl::StrCat("is not of '", command.said.name, "' (see --help)")));
    return command.run({arguments.begin() + 1, arguments.end()});
  }
  return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", arguments[0],
                                                 "'; commands: ", absl::StrJoin(names, ", ")));
}

std::vector<ProgramCommand> CommandsSaid() {
  std::vector<ProgramCommand> said;
  for (const Command& command : Commands()) said.push_back(command.said);
  return said;
}

CompletionWords Words() {
  CompletionWords words;
  words.of_flags["ops"] = {"all"};
  for (OpKind kind : AllOpKinds()) {
    if (!IsLeaf(kind)) words.of_flags["ops"].emplace_back(OpName(kind));
  }
  words.of_flags["communicator"] = {"processes", "mpi"};
  words.of_flags["max_ops"] = {"1", "2", "3", "4"};
  words.of_flags["configurations"] = {"written", "derived", "both"};
  return words;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-generate",
       .purpose = "Finds small parallel computation graphs that are equal, proves that they are, "
                  "and writes them as rules.",
       .usage = "",
       .example = "isomer-generate --ops=matmul,add,concat,split --max_ops=3 --out=small.rules",
       .outputs = {"out", "markdown", "dot", "svg"},
       .commands = isomer::CommandsSaid(),
       .version = isomer::BuiltVersions(),
       .more_examples = {"mpirun -n 64 isomer-generate --communicator=mpi --work_dir=work "
                         "--out=all.rules\n"
                         "# as root: mpirun --allow-run-as-root -n 64 ...",
                         "isomer-generate check small.rules --instances=100",
                         "isomer-generate show small.rules --id=r1822be2 --svg=rule.svg"},
       .words = isomer::Words,
       .load_operators = isomer::LoadOperators},
      argc, argv, isomer::Run);
}
