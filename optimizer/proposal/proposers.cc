#include "optimizer/proposal/proposers.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/proposal/baseline_proposers.h"
#include "optimizer/proposal/call_order.h"
#include "optimizer/proposal/grid_search.h"
#include "optimizer/proposal/joint_search.h"
#include "optimizer/proposal/memory_reduction.h"
#include "optimizer/proposal/offload_choice.h"
#include "optimizer/proposal/one_piece.h"
#include "optimizer/proposal/parts.h"
#include "optimizer/proposal/search_context.h"
#include "optimizer/proposal/spread_branches.h"
#include "optimizer/proposal/spread_calls.h"
#include "optimizer/proposal/update_choice.h"
#include "optimizer/proposal/walks.h"
#include "optimizer/proposal/zero_bubble_orders.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr const Proposer* kProposers[] = {
    &kDataParallelProposer,
    &kZero3Proposer,
    &kMegatronProposer,
    &kPublishedProposer,
    &kGridProposer,
    &kAlgebraFirst,
    &kParts,
    &kJointSearch,
    &kSyncWeights,
    &kCallOrder,
    &kArrangedWeights,
    &kSpreadCalls,
    &kOnePiece,
    &kGrids,
    &kWalks,
    &kPairs,
    &kSpreadBranches,
    &kZeroBubbleOrders,
    &kUpdates,
    &kMemory,
    &kLeastRecomputation,
    &kOffload,
    &kPartSearches,
    &kEvenClusters,
};

}  // namespace

constinit const Proposer kAlgebraFirst = {
    "algebra_first", "a search of its own that rewrites for one device, then maps",
    Proposer::When::kOwnRun, nullptr, nullptr};

constinit const Proposer kPartSearches = {
    "part_searches", "whole searches on the fewer devices of plans that are near the best",
    Proposer::When::kOwnRun, nullptr, nullptr};

constinit const Proposer kEvenClusters = {
    "even_clusters", "of several kinds of devices: plans of clusters where all are of one kind",
    Proposer::When::kOwnRun, nullptr, nullptr};

absl::Span<const Proposer* const> AllProposers() { return kProposers; }

absl::StatusOr<const Proposer*> ParseProposer(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Proposer* proposer : kProposers) {
    if (name == proposer->name) return proposer;
    names.push_back(proposer->name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no proposer '", name, "'; there are ", absl::StrJoin(names, ", ")));
}

absl::Status AskProposers(Proposer::When when, SearchContext* context, Submachine* on) {
  for (const Proposer* proposer : kProposers) {
    if (proposer->when != when || proposer->applies == nullptr) continue;
    if (!context->Asks(*proposer) || !proposer->applies(*context, *on)) continue;
    // Baselines that are planned beside a search say nothing.
    if (context->options.plan.empty()) {
      SayProgress(absl::StrCat(proposer->name, " on ", on->devices,
                               on->devices == 1 ? " device" : " devices"));
    }
    const Proposing proposing(&context->contest.ledger(), proposer->name);
    ISOMER_RETURN_IF_ERROR(proposer->propose(context, on));
  }
  return absl::OkStatus();
}

std::string ProposerList() {
  std::string text;
  for (const Proposer* proposer : kProposers) {
    absl::StrAppendFormat(&text, "%-17s %s\n", proposer->name, proposer->description);
  }
  return text;
}

std::string LedgerText(const ProposerLedger& ledger, const std::set<std::string>& without) {
  std::string text = absl::StrFormat("%-17s %8s %8s %8s %8s  %s\n", "proposer", "plans", "best",
                                     "gain", "seconds", "what it proposes");
  for (const Proposer* proposer : kProposers) {
    if (without.count(proposer->name) > 0) {
      absl::StrAppendFormat(&text, "%-17s %35s  %s\n", proposer->name, "switched off",
                            proposer->description);
      continue;
    }
    const auto at = ledger.rows().find(proposer->name);
    const ProposerLedger::Row row = at == ledger.rows().end() ? ProposerLedger::Row() : at->second;
    absl::StrAppendFormat(&text, "%-17s %8d %8d %7.1f%% %8.2f  %s\n", proposer->name, row.plans,
                          row.best, 100 * row.gain, row.seconds, proposer->description);
  }
  return text;
}

}  // namespace isomer
