// What is done about plans that do not fit into the devices' memory.
#ifndef ISOMER_OPTIMIZER_FITTING_H_
#define ISOMER_OPTIMIZER_FITTING_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/contest.h"

namespace isomer {

struct FittingOptions {
  bool training = true;
  bool choose_update_method = false;  // of weights; else that of the plans stays
};

// Lets a plan take part that is searched for where a byte of memory has a price. False: that was
// the last one, as time is up or prices change nothing.
using SearchAtPrice = std::function<absl::StatusOr<bool>(double us_per_byte)>;

// The best plan so far with its weights updated in other ways.
absl::Status ConsiderUpdateMethods(const FittingOptions& options, Contest* contest);

// Until a plan fits: less is kept for the backward pass, weights are updated in parts, memory has a
// price in the search. REQUIRES: some plan took part.
absl::Status MakeFit(const FittingOptions& options, const SearchAtPrice& search, Contest* contest);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_FITTING_H_
