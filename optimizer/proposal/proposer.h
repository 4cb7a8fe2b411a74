// One way to propose plans, and where it is asked.
//
// A proposer is a file of its own and one line in the registry (proposers.cc): from there
// --without, --list_proposers, the report and ablations know it. What proposers share is in the
// SearchContext, what was found on the devices in question in the Submachine.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PROPOSER_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PROPOSER_H_

#include <cstdint>

#include "absl/status/status.h"

namespace isomer {

struct SearchContext;
struct Submachine;

struct Proposer {
  enum class When : int8_t {
    kFirst,       // on all devices that may be used, before any search
    kSearch,      // on all of them, then on half as many, as long as that may be faster
    kRefine,      // after these on each submachine, of what was found there
    kAfterwards,  // once, of what was found on all submachines
    kOwnRun,      // is a run of the optimizer (optimizer/search)
  };

  const char* name;
  const char* description;  // one line
  When when;
  // Whether it has anything to propose there: every guard but the user's. Null: it is asked by
  // others, for what they propose.
  bool (*applies)(const SearchContext& context, const Submachine& on);
  // Offers plans to the contest; ends at the deadline.
  absl::Status (*propose)(SearchContext* context, Submachine* on);
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PROPOSER_H_
