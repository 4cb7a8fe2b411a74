#include "optimizer/export_main.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "models/frameworks/pytorch_export.h"
#include "models/load_plan.h"
#include "pcg/support/file.h"
#include "pcg/support/output_files.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(std::string, to, "", "of export: pytorch");
ABSL_DECLARE_FLAG(std::string, out);

namespace isomer {
namespace {

constexpr char kHelp[] =
    "Writes a plan for a framework that people train with.\n\n"
    "Usage: isomer-optimize export PLAN --to=FRAMEWORK --out=FILE\n\n"
    "Flags:\n"
    "  --to: pytorch: a Python file that torchrun starts, with the plan as modules on DTensor\n"
    "    placements; weights that the plan holds go to a .safetensors file beside it\n"
    "  --out: the file to write\n"
    "  --json: write the summary that scripts read to this file\n\n"
    "Exit code 1, and a line for each reason: the framework cannot express the plan.\n\n"
    "Example:\n"
    "  isomer-optimize export bert.plan --to=pytorch --out=bert_plan.py\n";

std::string FileNameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The file and its weights beside it, or neither.
absl::Status WriteExport(const FrameworkExport& file, const std::string& out,
                         const std::string& weights) {
  if (!file.weights.empty()) ISOMER_RETURN_IF_ERROR(WriteFileAtomically(weights, file.weights));
  return WriteFileAtomically(out, file.python);
}

absl::StatusOr<int> RunExport(const std::vector<std::string>& arguments) {
  ISOMER_RETURN_IF_ERROR(RefuseFlagsBut({"to", "out"}, "is not for export"));
  const std::string to = absl::GetFlag(FLAGS_to), out = absl::GetFlag(FLAGS_out);
  if (arguments.size() != 1 || to.empty() || out.empty()) {
    return absl::InvalidArgumentError(
        "export takes one PLAN, --to and --out (see isomer-optimize export --help)");
  }
  if (to != "pytorch") {
    return absl::InvalidArgumentError(absl::StrCat("--to=", to, ": there is pytorch"));
  }
  const std::string& path = arguments[0];
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(path));
  if (!is_plan) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it is no plan (isomer-optimize MODEL --out=PLAN makes one)"));
  }
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlanOrModel(path, {}));
  const std::string weights = absl::StrCat(absl::StripSuffix(out, ".py"), ".safetensors");
  const std::vector<NamedFile> outputs = {{"--out", out}, {"the weights", weights}};
  const std::vector<NamedFile> inputs = {{"PLAN", path}};
  ISOMER_RETURN_IF_ERROR(CheckAreApart(outputs, inputs));
  ISOMER_RETURN_IF_ERROR(CheckCanWriteAll(outputs));
  const absl::StatusOr<FrameworkExport> file =
      PytorchFileOf(plan, FileNameOf(out), FileNameOf(weights));
  if (absl::IsUnimplemented(file.status())) {
    std::fprintf(stderr, "%s cannot be said in %s: %s\n", path.c_str(), to.c_str(),
                 std::string(file.status().message()).c_str());
    return kExitNo;
  }
  ISOMER_RETURN_IF_ERROR(file.status());
  ISOMER_RETURN_IF_ERROR(WriteExport(*file, out, weights));
  std::printf("%s: %s of %s for %lld devices%s%s\n", out.c_str(), to.c_str(), path.c_str(),
              static_cast<long long>(plan.num_devices),
              file->weights.empty() ? "" : ", weights in ",
              file->weights.empty() ? "" : weights.c_str());
  for (const std::string& note : file->notes) std::printf("note: %s\n", note.c_str());
  return kExitDone;
}

}  // namespace

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
                     .outputs = {"out"}},
                    argc - 1, argv + 1, RunExport);
}

}  // namespace isomer
