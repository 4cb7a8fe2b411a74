#include "optimizer/mapping/call_restriction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/machine_view.h"

namespace isomer {
namespace {

// The choices with exactly these degrees; all other devices idle.
std::vector<ShardingChoice> ChoicesWithDegrees(const ChoiceSpace& space,
                                               const CallRestriction& restriction,
                                               const ChoiceOptions& options) {
  std::vector<Axis> axes;
  int64_t used = 1;
  for (const auto& [dim, degree] : restriction.degrees) {
    if (degree > 1) axes.push_back({dim, degree});
    used *= degree;
  }
  if (used > options.num_devices || options.num_devices % used != 0) return {};
  if (used < options.num_devices) axes.push_back({kIdleAxis, options.num_devices / used});
  const auto by_dim = [](const Axis& a, const Axis& b) { return a.dim < b.dim; };
  std::sort(axes.begin(), axes.end(), by_dim);
  std::vector<ShardingChoice> choices;
  do {
    auto choice = MakeChoice(space, axes, options.start);
    if (!choice.ok()) continue;
    RecordedSteps steps;
    SplitCall call;
    if (!SplitByRules(space, *choice, &steps, &call).ok()) continue;
    choices.push_back(*std::move(choice));
  } while (std::next_permutation(axes.begin(), axes.end(), by_dim));
  return choices;
}

}  // namespace

bool CallRestriction::Allows(const ShardingChoice& choice) const {
  for (const auto& [dim, degree] : degrees) {
    if (choice.DegreeOf(dim) != degree) return false;
  }
  if (!devices) return true;
  const auto used = DevicesOf(choice.outputs[0].view, choice.outputs[0].type);
  return std::all_of(used.begin(), used.end(), [&](int64_t device) {
    return device >= devices->first && device < devices->first + devices->count;
  });
}

std::string CallRestriction::Key() const {
  std::string key;
  for (const auto& [dim, degree] : degrees) absl::StrAppend(&key, dim, ":", degree, ",");
  if (devices) absl::StrAppend(&key, "@", devices->first, "+", devices->count);
  if (whole_machine) key += "w";
  return key;
}

absl::Status RestrictChoices(const CallRestriction& restriction, const ChoiceOptions& options,
                             ChoiceSpace* space, std::vector<Share>* shares) {
  std::vector<ShardingChoice> choices;
  std::vector<Share> kept;
  for (size_t c = 0; c < space->choices.size(); ++c) {
    if (!restriction.Allows(space->choices[c])) continue;
    choices.push_back(std::move(space->choices[c]));
    kept.push_back((*shares)[c]);
  }
  if (std::find(kept.begin(), kept.end(), Share::kWhole) == kept.end()) {
    for (ShardingChoice& choice : ChoicesWithDegrees(*space, restriction, options)) {
      choices.push_back(std::move(choice));
      kept.push_back(Share::kWhole);
    }
  }
  if (std::find(kept.begin(), kept.end(), Share::kWhole) == kept.end()) {
    return absl::NotFoundError("no choice of the call is within the restriction");
  }
  space->choices = std::move(choices);
  *shares = std::move(kept);
  return absl::OkStatus();
}

}  // namespace isomer
