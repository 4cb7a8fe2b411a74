#include "optimizer/proposal/proposers.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

constexpr ProposerTraits kProposers[] = {
    {Proposer::kDataParallel, "data_parallel", "every device has a share of the batch"},
    {Proposer::kZero3, "zero3", "data parallelism with weights, gradients and states in parts"},
    {Proposer::kMegatron, "megatron", "tensor parallel blocks within nodes, by hand"},
    {Proposer::kExpert, "expert", "published plans of networks like this one"},
    {Proposer::kPipeline, "pipeline", "stages of equal work, where --plan=pipeline asks for them"},
    {Proposer::kAlgebraFirst, "algebra_first",
     "a search of its own that rewrites for one device, then maps"},
    {Proposer::kJointSearch, "joint_search", "rewrites and mappings as one space"},
    {Proposer::kSyncWeights, "sync_weights",
     "the joint search where less of the gradients' synchronisation counts, as it overlaps"},
    {Proposer::kCallOrder, "call_order", "calls in the model's order"},
    {Proposer::kArrangedWeights, "arranged_weights",
     "transposed and joined weights made anew by each device that reads them"},
    {Proposer::kTurns, "turns", "identical calls spread over idle devices"},
    {Proposer::kSplices, "splices",
     "the front of one mapping, the back of another that synchronises more"},
    {Proposer::kOnePiece, "one_piece", "the graph mapped without cuts, branches concurrent"},
    {Proposer::kGrids, "grids", "tensor x pipeline x data parallel degrees, with micro-batches"},
    {Proposer::kParts, "parts", "mappings that leave devices idle"},
    {Proposer::kWalks, "walks", "simulated annealing from the best mappings, by simulated steps"},
    {Proposer::kPairs, "pairs", "changes of two neighbouring calls at once"},
    {Proposer::kSpreadBranches, "spread_branches", "branches in an order that hides exchanges"},
    {Proposer::kUpdates, "updates",
     "ZeRO stages, buckets and times of weight updates for the best plans"},
    {Proposer::kMemory, "memory",
     "ZeRO, checkpointing, micro-batches, states on the host, where nothing fits"},
    {Proposer::kPartSearches, "part_searches",
     "whole searches on the fewer devices of plans that are near the best"},
};

}  // namespace

absl::Span<const ProposerTraits> AllProposers() { return kProposers; }

const char* NameOf(Proposer proposer) { return kProposers[static_cast<int>(proposer)].name; }

absl::StatusOr<Proposer> ParseProposer(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const ProposerTraits& traits : kProposers) {
    if (name == traits.name) return traits.proposer;
    names.push_back(traits.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no proposer '", name, "'; there are ", absl::StrJoin(names, ", ")));
}

std::string ProposerList() {
  std::string text;
  for (const ProposerTraits& traits : kProposers) {
    absl::StrAppendFormat(&text, "%-17s %s\n", traits.name, traits.description);
  }
  return text;
}

std::optional<Proposer> ProposerLedger::Switch(std::optional<Proposer> to) {
  const auto now = std::chrono::steady_clock::now();
  if (current_.has_value()) {
    rows_[*current_].seconds += std::chrono::duration<double>(now - since_).count();
  }
  since_ = now;
  const std::optional<Proposer> before = current_;
  current_ = to;
  return before;
}

void ProposerLedger::CountPlan(std::optional<Proposer> by) {
  if (by.has_value()) ++rows_[*by].plans;
}

void ProposerLedger::CountBest(std::optional<Proposer> by, std::optional<double> before_us,
                               double now_us) {
  if (!by.has_value()) return;
  Row& row = rows_[*by];
  ++row.best;
  if (before_us.has_value()) row.gain = 1 - (1 - row.gain) * now_us / *before_us;
}

void ProposerLedger::AddPartOf(const ProposerLedger& other) {
  for (const auto& [proposer, row] : other.rows_) {
    rows_[proposer].plans += row.plans;
    rows_[proposer].seconds += row.seconds;
  }
}

std::string ProposerLedger::ToString(const std::set<Proposer>& without) const {
  std::string text = absl::StrFormat("%-17s %8s %8s %8s %8s  %s\n", "proposer", "plans", "best",
                                     "gain", "seconds", "what it proposes");
  for (const ProposerTraits& traits : kProposers) {
    const auto at = rows_.find(traits.proposer);
    if (without.count(traits.proposer) > 0) {
      absl::StrAppendFormat(&text, "%-17s %35s  %s\n", traits.name, "switched off",
                            traits.description);
      continue;
    }
    const Row row = at == rows_.end() ? Row() : at->second;
    absl::StrAppendFormat(&text, "%-17s %8d %8d %7.1f%% %8.2f  %s\n", traits.name, row.plans,
                          row.best, 100 * row.gain, row.seconds, traits.description);
  }
  return text;
}

}  // namespace isomer
