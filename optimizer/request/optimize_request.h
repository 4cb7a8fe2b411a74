// What a user asks of the optimizer, by the names of the options and as text, before any of it is
// looked at: what the flags of isomer-optimize and the keywords of the Python package become.
#ifndef ISOMER_OPTIMIZER_REQUEST_OPTIMIZE_REQUEST_H_
#define ISOMER_OPTIMIZER_REQUEST_OPTIMIZE_REQUEST_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/cost/cost.h"
#include "optimizer/machine/machine.h"
#include "optimizer/proposal/optimize_options.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/request/option_list.h"
#include "pcg/ir/plan.h"
#include "pcg/profile/profile.h"
#include "rules/language/rule.h"

namespace isomer {

#define ISOMER_OPTION_FIELD(type, name, value, help) type name = value;

struct MachineRequest {
  std::string machine;  // a file or a preset
  ISOMER_MACHINE_OPTIONS(ISOMER_OPTION_FIELD)
};

struct OptimizeRequest {
  ISOMER_SEARCH_OPTIONS(ISOMER_OPTION_FIELD)
  // Names of the options that the user stated: what does not apply is refused, if only to say what
  // it is without.
  std::set<std::string> given;
};

#undef ISOMER_OPTION_FIELD

// All errors below are one line that names the option as the program does, "--time_limit is 0 to
// 1e+09", or the file.

// An error if one of `options` was stated: "--tensor is for --plan=grid" for why = "is for
// --plan=grid".
absl::Status RefuseOptions(const OptimizeRequest& request,
                           std::initializer_list<absl::string_view> options, absl::string_view why);

// Checks the options that need no model, and reads the file of constraints. Left to the caller:
// OptimizeOptions::equal, keep_baselines and the watch.
absl::StatusOr<OptimizeOptions> OptionsOf(const OptimizeRequest& request);

absl::StatusOr<SearchPolicy> PolicyOf(const OptimizeRequest& request);

// --expert_imbalance and --expert_loads, which need no more than the model.
absl::Status CheckExpertOptions(const OptimizeRequest& request);

// Which weights' products keep bfloat16 in a plan with products in 8 bits.
absl::Status AddKeptWeights(const OptimizeRequest& request, const Model& model,
                            OptimizeOptions* options);

// Reads the user's own configuration, if `request` names one, for the search of `model` to beat.
// `notes` receives lines that the user should see.
absl::Status AddCompared(const OptimizeRequest& request, const Model& model,
                         OptimizeOptions* options, std::vector<std::string>* notes);

// `search`: as in OptimizeRequest; of some there is one device.
absl::StatusOr<Machine> MachineOf(const MachineRequest& machine, absl::string_view search);

// The user's rules, or those that come with Isomer.
absl::StatusOr<RuleSet> RulesOf(const OptimizeRequest& request);

// What times follow from. The cost model refers to the profile, so both stay where they are.
struct MachineCosts {
  std::unique_ptr<const Profile> profile;  // measured times; null: there are none
  std::unique_ptr<const CostModel> model;
};

// With the profile that `request` names, if any, checked against the machine.
absl::StatusOr<MachineCosts> CostsOf(const OptimizeRequest& request, Machine machine);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_REQUEST_OPTIMIZE_REQUEST_H_
