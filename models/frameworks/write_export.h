#ifndef ISOMER_MODELS_FRAMEWORKS_WRITE_EXPORT_H_
#define ISOMER_MODELS_FRAMEWORKS_WRITE_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/plan.h"

namespace isomer {

inline constexpr absl::string_view kPytorch = "pytorch", kJax = "jax";

struct WrittenExport {
  std::string weights;             // the file beside it; "": the model holds no values
  std::vector<std::string> notes;  // what is not as the plan has it
};

// Where the weights of the file `out` lie: "net_plan.safetensors" of "net_plan.py".
std::string WeightsPathOf(const std::string& out);

// Writes the plan as a file of the framework, and its weights beside it, or neither. Unimplemented:
// the framework cannot say it. REQUIRES: `to` is kPytorch or kJax.
absl::StatusOr<WrittenExport> WriteExport(const Plan& plan, absl::string_view to,
                                          const std::string& out);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_WRITE_EXPORT_H_
