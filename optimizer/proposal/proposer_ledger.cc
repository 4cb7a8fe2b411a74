#include "optimizer/proposal/proposer_ledger.h"

namespace isomer {

std::optional<std::string> ProposerLedger::Switch(std::optional<std::string> to) {
  const auto now = std::chrono::steady_clock::now();
  if (current_.has_value()) {
    rows_[*current_].seconds += std::chrono::duration<double>(now - since_).count();
  }
  since_ = now;
  return std::exchange(current_, std::move(to));
}

void ProposerLedger::CountPlan(const std::optional<std::string>& by) {
  if (by.has_value()) ++rows_[*by].plans;
}

void ProposerLedger::CountBest(const std::optional<std::string>& by,
                               std::optional<double> before_us, double now_us) {
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

}  // namespace isomer
