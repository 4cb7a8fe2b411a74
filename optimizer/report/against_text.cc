#include "optimizer/report/against_text.h"

#include "absl/strings/str_format.h"

namespace isomer {

std::string AgainstText(double plan_us, double other_us) {
  const double saves = plan_us == other_us ? 0 : 100 * (1 - plan_us / other_us);
  if (saves >= 0.05) return absl::StrFormat("(the plan saves %.1f %%)", saves);
  if (saves > -0.05) return "(the plan takes as long)";
  return absl::StrFormat("(the plan takes %.1f %% longer)", 100 * (plan_us / other_us - 1));
}

}  // namespace isomer
