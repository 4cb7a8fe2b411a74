#include "optimizer/sharding/recompute_mode.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

constexpr const char* kNames[kNumRecomputeModes] = {"none", "selective", "full"};

}  // namespace

const char* RecomputeModeName(RecomputeMode mode) { return kNames[static_cast<int>(mode)]; }

absl::StatusOr<RecomputeMode> ParseRecomputeMode(const std::string& name) {
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<RecomputeMode>(found - std::begin(kNames));
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "': there are ", absl::StrJoin(kNames, ", ")));
}

}  // namespace isomer
