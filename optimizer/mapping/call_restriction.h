// What is left of the choices of one call when a user has a say.
#ifndef ISOMER_OPTIMIZER_MAPPING_CALL_RESTRICTION_H_
#define ISOMER_OPTIMIZER_MAPPING_CALL_RESTRICTION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/mapping/mapping_problem.h"
#include "optimizer/sharding/constraints.h"
#include "optimizer/sharding/sharding_choice.h"

namespace isomer {

struct CallRestriction {
  std::map<int, int64_t> degrees;  // by iteration dim
  // It runs on these devices, and is split as far as they allow.
  std::optional<DeviceRange> devices;
  bool whole_machine = false;  // rather than on half of it

  bool empty() const { return degrees.empty() && !devices && !whole_machine; }
  bool Allows(const ShardingChoice& choice) const;
  // Equal for equal restrictions.
  std::string Key() const;
  friend bool operator==(const CallRestriction&, const CallRestriction&) = default;
};

// Leaves of the choices that EnumerateChoices made, and of their shares, what `restriction` allows.
// If that is none of the whole machine (`options`), choices are made that leave the other devices
// idle. Errors: none there, either.
absl::Status RestrictChoices(const CallRestriction& restriction, const ChoiceOptions& options,
                             ChoiceSpace* space, std::vector<Share>* shares);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_CALL_RESTRICTION_H_
