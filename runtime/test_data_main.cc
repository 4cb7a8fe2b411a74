#include "runtime/test_data_main.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/onnx_test_data.h"
#include "pcg/support/file.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/compare.h"
#include "runtime/host_values.h"

namespace isomer {
namespace {

// The first difference, or "".
absl::StatusOr<std::string> RunSet(const std::string& contents, const std::string& path,
                                   const OnnxTestSet& set, BoundInputs constants,
                                   Backend* backend) {
  ISOMER_ASSIGN_OR_RETURN(const BoundModel bound, BindOnnxModel(contents, path, set, constants));
  const Graph& graph = bound.model.graph;
  ISOMER_ASSIGN_OR_RETURN(const HostValues weights, InitialWeights(bound.model, /*seed=*/1));
  ISOMER_ASSIGN_OR_RETURN(
      const StepValues values,
      SequentialStep(bound.model, weights, bound.inputs, /*training=*/false, backend));
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Graph::NamedOutput& output = graph.outputs()[i];
    const std::string difference =
        DifferenceFrom(set.outputs[i], values.outputs.at(output.name), graph.type(output.tensor));
    if (!difference.empty()) return absl::StrCat("output '", output.name, "': ", difference);
  }
  return std::string();
}

// Inputs are data where that can be, and constants where an operator needs their values.
absl::StatusOr<std::string> RunSet(const std::string& contents, const std::string& path,
                                   const OnnxTestSet& set, Backend* backend) {
  absl::StatusOr<std::string> difference;
  for (BoundInputs constants : kAllBoundInputs) {
    difference = RunSet(contents, path, set, constants, backend);
    if (difference.ok()) break;
  }
  return difference;
}

}  // namespace

std::string ModelBeside(const std::string& folder) {
  const std::string inside = absl::StrCat(folder, "/model.onnx");
  std::error_code error;
  return std::filesystem::exists(inside, error) ? inside : absl::StrCat(folder, "/../model.onnx");
}

absl::StatusOr<int> RunTestData(const std::string& path, const std::string& folder,
                                Backend* backend) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  ISOMER_RETURN_IF_ERROR(CheckTensorTypes(contents, path));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<OnnxTestSet> sets, ReadOnnxTestSets(folder));
  Json summary;
  bool agrees = true;
  for (const OnnxTestSet& set : sets) {
    ISOMER_ASSIGN_OR_RETURN(const std::string difference, RunSet(contents, path, set, backend));
    agrees = agrees && difference.empty();
    summary["test_data"][set.folder] = difference.empty() ? std::string("agrees") : difference;
    absl::PrintF("%s: %s\n", set.folder,
                 difference.empty() ? absl::StrCat(set.outputs.size(), " outputs agree")
                                    : absl::StrCat("DIFFERS: ", difference));
  }
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return agrees ? kExitDone : kExitNo;
}

}  // namespace isomer
