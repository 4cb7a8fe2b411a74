#include "optimizer/export_main.h"

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/frameworks/write_export.h"
#include "models/load_plan.h"
#include "optimizer/machine/machine.h"
#include "optimizer/proposal/launch_text.h"
#include "optimizer/search/grid_of_plan.h"
#include "optimizer/sharding/batch_dims.h"
#include "pcg/ir/precision.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/support/data_path.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/output_files.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "rules/language/rule.h"
#include "verifier/certificate/equal_sides.h"

ABSL_FLAG(std::string, to, "", "of export: pytorch, jax, megatron, deepspeed or torchtitan");
ABSL_DECLARE_FLAG(std::string, out);
ABSL_DECLARE_FLAG(std::string, machine);
ABSL_DECLARE_FLAG(int64_t, nodes);
ABSL_DECLARE_FLAG(int64_t, devices_per_node);

namespace isomer {
namespace {

constexpr char kHelp[] =
    "Writes a plan for a framework that people train with.\n\n"
    "Usage: isomer-optimize export PLAN --to=FRAMEWORK --out=FILE\n\n"
    "Flags:\n"
    "  --to: pytorch: a Python file that torchrun starts, with the plan as modules on DTensor\n"
    "    placements; weights that the plan holds go to a .safetensors file beside it.\n"
    "    jax: a Python file with the plan as a function of a device's parts, for jax.shard_map on "
    "a\n"
    "    mesh; weights likewise.\n"
    "    megatron, deepspeed, torchtitan: the settings of a plan that is a configuration\n"
    "    of tensor, pipeline, context, expert and data parallelism, which --compare reads\n"
    "  --machine, --nodes, --devices_per_node: of settings, what the plan was made for\n"
    "  --out: the file to write\n"
    "  --json: write the summary that scripts read to this file\n\n"
    "Exit code 1, and a line for each reason: the framework cannot express the plan.\n\n"
    "Example:\n"
    "  isomer-optimize export bert.plan --to=pytorch --out=bert_plan.py\n";

bool WritesSettings(const std::string& to) {
  return absl::c_find(kLaunchFrameworks, to) != std::end(kLaunchFrameworks);
}

// Of --json: `written` names the files.
Json SummaryOf(const std::string& path, const std::string& to,
               const std::vector<std::string>& written) {
  Json summary;
  summary["plan"] = path;
  summary["to"] = to;
  summary["written"] = written;
  return summary;
}

// Exit code 1: the answer is no, for each of these reasons.
absl::StatusOr<int> CannotSay(const std::string& path, const std::string& to,
                              const std::vector<std::string>& reasons) {
  for (const std::string& why : reasons) {
    std::fprintf(stderr, "%s cannot be said in %s: %s\n", path.c_str(), to.c_str(), why.c_str());
  }
  Json summary = SummaryOf(path, to, {});
  summary["reasons"] = reasons;
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return kExitNo;
}

absl::StatusOr<int> ExportSettings(const std::string& path, const Plan& plan, const std::string& to,
                                   const std::string& out) {
  if (absl::GetFlag(FLAGS_machine).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--to=", to, " needs --machine (and --nodes and the like), which the plan was made for"));
  }
  if (plan.mode != "training") return CannotSay(path, to, {"it is a plan for inference"});
  ISOMER_ASSIGN_OR_RETURN(Machine machine,
                          LoadMachine(absl::GetFlag(FLAGS_machine), absl::GetFlag(FLAGS_nodes),
                                      absl::GetFlag(FLAGS_devices_per_node)));
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(DataPath("rules/default.rules")));
  const RuleIndex index(rules);
  const CostModel cost(std::move(machine));
  OptimizeOptions options;
  options.equal = [](const ConcreteSide& source, const ConcreteSide& target,
                     const InputNumbers& numbers) {
    std::set<std::string> lemmas;
    return EqualSides(source, target, &lemmas, numbers).ok();
  };
  const absl::StatusOr<GridRequest> grid = GridOfPlan(plan, index, cost, options);
  if (absl::IsNotFound(grid.status())) {
    return CannotSay(path, to, {std::string(grid.status().message())});
  }
  ISOMER_RETURN_IF_ERROR(grid.status());
  ISOMER_ASSIGN_OR_RETURN(
      LaunchText launch,
      LaunchTextOf(to, *grid, plan.num_devices, BatchSize(plan.model.graph), plan.precision));
  if (plan.fp8.any()) launch.unsaid.push_back("products with weights in 8 bits (fp8)");
  if (plan.update.gradient_sums != DataType::kFloat32) {
    launch.unsaid.push_back(absl::StrCat("gradients summed over devices in ",
                                         PrecisionName(plan.update.gradient_sums)));
  }
  if (!launch.unsaid.empty()) return CannotSay(path, to, launch.unsaid);
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(out, launch.text));
  std::printf("%s: %s of %s\n%s", out.c_str(), to.c_str(), path.c_str(), launch.text.c_str());
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(SummaryOf(path, to, {out})));
  return kExitDone;
}

absl::StatusOr<int> RunExport(const std::vector<std::string>& arguments) {
  ISOMER_RETURN_IF_ERROR(RefuseFlagsBut(ExportCommand().flags, "is not for export"));
  const std::string to = absl::GetFlag(FLAGS_to), out = absl::GetFlag(FLAGS_out);
  if (arguments.size() != 1 || to.empty() || out.empty()) {
    return absl::InvalidArgumentError(
        "export takes one PLAN, --to and --out (see isomer-optimize export --help)");
  }
  if (to != kPytorch && to != kJax && !WritesSettings(to)) {
    return absl::InvalidArgumentError(absl::StrCat("--to=", to, ": there are pytorch, jax, ",
                                                   absl::StrJoin(kLaunchFrameworks, ", ")));
  }
  if (!WritesSettings(to)) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"machine", "nodes", "devices_per_node"},
                                       "is for settings (--to=megatron and the like)"));
  }
  const std::string& path = arguments[0];
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(path));
  if (!is_plan) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it is no plan (isomer-optimize MODEL --out=PLAN makes one)"));
  }
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlanOrModel(path, {}));
  if (WritesSettings(to)) return ExportSettings(path, plan, to, out);
  const std::vector<NamedFile> outputs = {{"--out", out}, {"the weights", WeightsPathOf(out)}};
  const std::vector<NamedFile> inputs = {{"PLAN", path}};
  ISOMER_RETURN_IF_ERROR(CheckAreApart(outputs, inputs));
  ISOMER_RETURN_IF_ERROR(CheckCanWriteAll(outputs));
  const absl::StatusOr<WrittenExport> file = WriteExport(plan, to, out);
  if (absl::IsUnimplemented(file.status())) {
    return CannotSay(path, to, {std::string(file.status().message())});
  }
  ISOMER_RETURN_IF_ERROR(file.status());
  std::printf("%s: %s of %s for %lld %s%s%s\n", out.c_str(), to.c_str(), path.c_str(),
              static_cast<long long>(plan.num_devices),
              plan.num_devices == 1 ? "device" : "devices",
              file->weights.empty() ? "" : ", weights in ", file->weights.c_str());
  for (const std::string& note : file->notes) std::printf("note: %s\n", note.c_str());
  std::vector<std::string> written = {out};
  if (!file->weights.empty()) written.push_back(file->weights);
  Json summary = SummaryOf(path, to, written);
  summary["notes"] = file->notes;
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return kExitDone;
}

}  // namespace

ProgramCommand ExportCommand() {
  return {
      .name = "export",
      .usage = "PLAN --to=FRAMEWORK --out=FILE",
      .purpose =
          "Writes a plan for a framework that people train with: for PyTorch as a file "
          "that torchrun starts, for JAX as a function on a mesh, for Megatron-LM, DeepSpeed and "
          "torchtitan as the settings that it is (docs/exports.md).",
      .flags = {"to", "out", "machine", "nodes", "devices_per_node"}};
}

bool IsExport(int argc, const char* const* argv) {
  return argc > 1 && std::string(argv[1]) == "export";
}

int ExportMain(int argc, const char* const* argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") break;
    if (argument == "--help" || argument == "-help" || argument == "-h") {
      std::fputs(kHelp, stdout);
      return kExitDone;
    }
  }
  return RunProgram({.name = "isomer-optimize export",
                     .purpose = "",
                     .usage = "",
                     .example = "",
                     .outputs = {"out"},
                     .load_operators = LoadOperators},
                    argc - 1, argv + 1, RunExport);
}

}  // namespace isomer
