// A user's constraints on one call, and the choices that satisfy them.
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
  // The call runs on these devices and is split as far as they allow.
  std::optional<DeviceRange> devices;
  bool whole_machine = false;  // not on half of it

  bool empty() const { return degrees.empty() && !devices && !whole_machine; }
  bool Allows(const ShardingChoice& choice) const;
  // Equal for equal restrictions.
  std::string Key() const;
  friend bool operator==(const CallRestriction&, const CallRestriction&) = default;
};

// Keeps, of the choices that EnumerateChoices made and of their shares, those that `restriction`
// allows. If it allows none on all devices of `options`, adds choices that leave the other devices
// idle. Errors: none of those is allowed, either.
absl::Status RestrictChoices(const CallRestriction& restriction, const ChoiceOptions& options,
                             ChoiceSpace* space, std::vector<Share>* shares);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_CALL_RESTRICTION_H_
