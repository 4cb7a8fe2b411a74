// isomer-profile: what the kernels of a model cost on this machine.
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "models/load.h"
#include "models/loss.h"
#include "pcg/plan.h"
#include "pcg/profile.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "runtime/backend.h"
#include "runtime/operator_page.h"
#include "runtime/profiler.h"

ABSL_FLAG(std::string, backend, "cpu", "cpu");
ABSL_FLAG(std::string, out, "", "the profile file to write (text if it ends in .txt)");
ABSL_FLAG(int64_t, batch_size, 0, "of a MODEL that leaves it open");
ABSL_FLAG(std::vector<std::string>, degrees, {},
          "also measure each call with one dim cut into so many pieces, e.g. 2,4,8");
ABSL_FLAG(bool, list_operators, false,
          "print docs/operators.md: what operators compute, what may be split, which have kernels");
ABSL_FLAG(int32_t, repetitions, 10, "measured runs of each kernel, after two that are not");

namespace isomer {
namespace {

// The graph whose calls are measured: of a plan, or of a model with its loss.
absl::Status LoadGraph(const std::string& spec, std::string* name, Graph* graph) {
  if (spec.rfind("zoo:", 0) != 0) {
    ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(spec));
    if (DeclaredKind(contents) == "plan") {
      ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlan(spec));
      *name = plan.model.name;
      *graph = std::move(plan.graph);
      return absl::OkStatus();
    }
  }
  LoadOptions options;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  ISOMER_ASSIGN_OR_RETURN(Model model, LoadAnyModel(spec, options));
  ISOMER_RETURN_IF_ERROR(AttachLoss(&model, "auto"));
  *name = model.name;
  *graph = std::move(model.graph);
  return absl::OkStatus();
}

absl::StatusOr<ProfilerOptions> OptionsFromFlags() {
  ProfilerOptions options;
  options.repetitions = absl::GetFlag(FLAGS_repetitions);
  if (options.repetitions < 1) {
    return absl::InvalidArgumentError("--repetitions must be positive");
  }
  for (const std::string& text : absl::GetFlag(FLAGS_degrees)) {
    int64_t degree;
    if (!absl::SimpleAtoi(text, &degree) || degree < 1) {
      return absl::InvalidArgumentError(absl::StrCat("--degrees: '", text, "' is no degree"));
    }
    options.degrees.push_back(degree);
  }
  return options;
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (absl::GetFlag(FLAGS_list_operators)) {
    ISOMER_ASSIGN_OR_RETURN(const std::string page, OperatorPage());
    absl::PrintF("%s", page);
    return kExitDone;
  }
  if (arguments.size() != 1) {
    return absl::InvalidArgumentError("one MODEL or PLAN is expected (see --help)");
  }
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) return absl::InvalidArgumentError("--out=FILE is needed");
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                          MakeBackend(absl::GetFlag(FLAGS_backend)));
  ISOMER_ASSIGN_OR_RETURN(const ProfilerOptions options, OptionsFromFlags());
  Profile profile;
  profile.device = {.backend = std::string(backend->name()), .processor = HostProcessor()};
  Graph graph;
  profile.models.resize(1);
  ISOMER_RETURN_IF_ERROR(LoadGraph(arguments[0], &profile.models[0], &graph));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<ProfiledCall> calls,
                          CallsToProfile(graph, options.degrees));
  backend->EnterDevice(0, 1);
  Progress progress("profile", static_cast<int64_t>(calls.size()));
  for (const ProfiledCall& call : calls) {
    ISOMER_RETURN_IF_ERROR(ProfileCall(call, options, backend.get(), &profile));
    progress.Advance();
  }
  ISOMER_RETURN_IF_ERROR(SaveProfile(out, profile));
  absl::PrintF("%s: %d kernels of %d calls, on the %s backend\n", out, profile.kernels.size(),
               calls.size(), profile.device.backend);
  Json summary;
  summary["model"] = profile.models[0];
  summary["backend"] = profile.device.backend;
  summary["calls"] = calls.size();
  summary["kernels"] = profile.kernels.size();
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return kExitDone;
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-profile",
       .purpose = "Measures the kernels of a model on this machine.",
       .usage = "MODEL|PLAN --out=FILE [--backend=cpu] [--degrees=2,4]",
       .example = "isomer-profile models/data/bert_tiny.onnx --degrees=2,4,8 --out=cpu.profile"},
      argc, argv, isomer::Run);
}
