#include "models/frameworks/write_export.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/frameworks/jax_export.h"
#include "models/frameworks/pytorch_export.h"
#include "pcg/support/check.h"
#include "pcg/support/file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::string FileNameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string WeightsPathOf(const std::string& out) {
  return absl::StrCat(absl::StripSuffix(out, ".py"), ".safetensors");
}

absl::StatusOr<WrittenExport> WriteExport(const Plan& plan, absl::string_view to,
                                          const std::string& out) {
  ISOMER_CHECK(to == kPytorch || to == kJax);
  const std::string weights = WeightsPathOf(out);
  ISOMER_ASSIGN_OR_RETURN(FrameworkExport file, (to == kJax ? JaxFileOf : PytorchFileOf)(
                                                    plan, FileNameOf(out), FileNameOf(weights)));
  if (!file.weights.empty()) ISOMER_RETURN_IF_ERROR(WriteFileAtomically(weights, file.weights));
  ISOMER_RETURN_IF_ERROR(WriteFileAtomically(out, file.python));
  return WrittenExport{file.weights.empty() ? "" : weights, std::move(file.notes)};
}

}  // namespace isomer
