// The registry of proposers: one line each (proposers.cc), in the order in which they are asked.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PROPOSERS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PROPOSERS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "optimizer/proposal/proposer.h"
#include "optimizer/proposal/proposer_ledger.h"

namespace isomer {

// Runs of the optimizer of their own (optimizer/search): one that rewrites for one device and then
// maps, those on the fewer devices of plans near the best, and those for clusters of one kind.
extern const Proposer kAlgebraFirst, kPartSearches, kEvenClusters;

absl::Span<const Proposer* const> AllProposers();

// Errors name those that there are.
absl::StatusOr<const Proposer*> ParseProposer(absl::string_view name);

// Asks all whose turn it is, but for those that the user switched off.
absl::Status AskProposers(Proposer::When when, SearchContext* context, Submachine* on);

// The table for people to read; and with what each did in a run.
std::string ProposerList();
std::string LedgerText(const ProposerLedger& ledger, const std::set<std::string>& without);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PROPOSERS_H_
