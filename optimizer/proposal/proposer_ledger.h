// What each proposer did in a run, and what it gained.
//
// The gain is what the best plan that fits got faster by when plans of the proposer became the
// best, in the order in which they were entered: where several would find a plan, the first is
// credited.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_PROPOSER_LEDGER_H_
#define ISOMER_OPTIMIZER_PROPOSAL_PROPOSER_LEDGER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace isomer {

// One of them proposes at a time.
class ProposerLedger {
 public:
  struct Row {
    int64_t plans = 0;   // that took part; of equal ones the first
    int64_t best = 0;    // that became the best
    double gain = 0;     // what the step lost by these, as a share of the step before each
    double seconds = 0;  // in which nobody else proposed
  };

  // Nobody: what is done is for all.
  const std::optional<std::string>& current() const { return current_; }
  std::optional<std::string> Switch(std::optional<std::string> to);

  void CountPlan(const std::optional<std::string>& by);
  // A plan became the best; `before_us`: the step of the one that was, if any fitted.
  void CountBest(const std::optional<std::string>& by, std::optional<double> before_us,
                 double now_us);
  // Plans and time of a run that was a part of this one: what is best there need not be here.
  void AddPartOf(const ProposerLedger& other);

  // By the proposer's name.
  const std::map<std::string, Row>& rows() const { return rows_; }

 private:
  std::map<std::string, Row> rows_;
  std::optional<std::string> current_;
  std::chrono::steady_clock::time_point since_;
};

// As long as this lives, `proposer` proposes; then again who did before.
class Proposing {
 public:
  Proposing(ProposerLedger* ledger, std::string proposer)
      : ledger_(*ledger), before_(ledger->Switch(std::move(proposer))) {}
  Proposing(const Proposing&) = delete;
  ~Proposing() { ledger_.Switch(before_); }

 private:
  ProposerLedger& ledger_;
  const std::optional<std::string> before_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_PROPOSER_LEDGER_H_
