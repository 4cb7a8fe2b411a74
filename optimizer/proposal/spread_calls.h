// Identical calls that leave devices idle are spread over them.
//
// A mapping's cost is a sum over calls, so that it does not matter to it which devices a call is
// on: eight embedding tables, each split over some of the devices, end up on the same ones, and are
// worked on one after the other. Where such calls read nothing that is computed they are free to
// stand elsewhere; only the tensors they make travel from there.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_SPREAD_CALLS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_SPREAD_CALLS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/proposal/proposer.h"

namespace isomer {

extern const Proposer kSpreadCalls;

// The mapping with calls of the same choice, that read weights and inputs only, dealt out over the
// devices that the choice leaves idle. Nothing: there are no such calls.
absl::StatusOr<std::optional<MappedModel>> SpreadCalls(const MappedModel& mapped,
                                                       CostTables* tables);

// Such a mapping takes part in the contest, if there is one.
absl::Status ConsiderSpreadCalls(const MappedModel& mapped, SearchContext* context, Submachine* on);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_SPREAD_CALLS_H_
