// How many tokens each expert of a mixture got in a run: isomer-run counts, and isomer-optimize
// plans with it.
#ifndef ISOMER_PCG_PROFILE_EXPERT_LOADS_H_
#define ISOMER_PCG_PROFILE_EXPERT_LOADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace isomer {

// Of one call that sends tokens to experts, over the steps of a run.
struct ExpertLoad {
  std::string node;             // its name
  int64_t groups = 0;           // of tokens, over all steps; each expert has room for some of each
  double even = 0;              // what an expert gets of a group if all get the same
  std::vector<int64_t> tokens;  // by expert: those that chose it, had it room or not
  int64_t most = 0;             // that an expert got of one group

  // The busiest expert of the worst group over the mean.
  double imbalance() const { return even > 0 ? static_cast<double>(most) / even : 1; }
};

struct ExpertLoads {
  std::string model;
  std::vector<ExpertLoad> calls = {};

  // The largest of any call, rounded up to hundredths, at least 1: with room for that, none of the
  // run's tokens would have been dropped.
  double Imbalance() const;
};

// Files of kind "expert_loads". Reading refuses what no run can have counted.
absl::Status SaveExpertLoads(const std::string& path, const ExpertLoads& loads);
absl::StatusOr<ExpertLoads> LoadExpertLoads(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_EXPERT_LOADS_H_
