// Who proposes plans to the contest: one table, from which --without, --list_proposers, the report
// and ablations know them.
//
// Proposers are asked in the order of the table. Each may be switched off; what it gained in a run
// is what the best plan that fits got faster by when plans of its became the best (in the order in
// which they were entered, so that the first proposers are credited with what several would find).
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PROPOSERS_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PROPOSERS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace isomer {

enum class Proposer : int8_t {
  kDataParallel,
  kZero3,
  kMegatron,
  kExpert,
  kPipeline,
  kAlgebraFirst,
  kJointSearch,
  kSyncWeights,
  kCallOrder,
  kArrangedWeights,
  kTurns,
  kSplices,
  kOnePiece,
  kGrids,
  kParts,
  kWalks,
  kPairs,
  kSpreadBranches,
  kUpdates,
  kMemory,
  kPartSearches,
};

struct ProposerTraits {
  Proposer proposer;
  const char* name;
  const char* description;  // one line
};
// All, in the order in which they are asked.
absl::Span<const ProposerTraits> AllProposers();
const char* NameOf(Proposer proposer);
// Errors name those that there are.
absl::StatusOr<Proposer> ParseProposer(absl::string_view name);
// The table for people to read.
std::string ProposerList();

// What proposers did in a run. One of them proposes at a time.
class ProposerLedger {
 public:
  struct Row {
    int64_t plans = 0;   // that took part; of equal ones the first
    int64_t best = 0;    // that became the best
    double gain = 0;     // what the step lost by these, as a share of the step before each
    double seconds = 0;  // in which nobody else proposed
  };

  // Nobody: what is done is for all.
  std::optional<Proposer> current() const { return current_; }
  std::optional<Proposer> Switch(std::optional<Proposer> to);

  void CountPlan(std::optional<Proposer> by);
  // A plan became the best; `before_us`: the step of the one that was, if any fitted.
  void CountBest(std::optional<Proposer> by, std::optional<double> before_us, double now_us);
  // Plans and time of a run that was a part of this one: what is best there need not be here.
  void AddPartOf(const ProposerLedger& other);

  const std::map<Proposer, Row>& rows() const { return rows_; }
  // A table for people to read: what each gained, in the order of AllProposers.
  std::string ToString(const std::set<Proposer>& without) const;

 private:
  std::map<Proposer, Row> rows_;
  std::optional<Proposer> current_;
  std::chrono::steady_clock::time_point since_;
};

// As long as this lives, `proposer` proposes; then again who did before.
class Proposing {
 public:
  Proposing(ProposerLedger* ledger, Proposer proposer)
      : ledger_(*ledger), before_(ledger->Switch(proposer)) {}
  Proposing(const Proposing&) = delete;
  ~Proposing() { ledger_.Switch(before_); }

 private:
  ProposerLedger& ledger_;
  const std::optional<Proposer> before_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PROPOSERS_H_
