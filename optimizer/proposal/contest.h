// The plans that were considered, and the best of them.
//
// A plan that fits is better than one that does not; of those that fit the faster, of those that do
// not the smaller. Searches under several costs often end at one plan, which is predicted once.
// What does not do as a user says of the step takes no part, whoever proposed it.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_CONTEST_H_
#define ISOMER_OPTIMIZER_PROPOSAL_CONTEST_H_

#include <cstdint>
#include <deque>
#include <future>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cost/cost.h"
#include "optimizer/proposal/proposer_ledger.h"
#include "optimizer/proposal/search_policy.h"
#include "optimizer/sharding/constraints.h"
#include "optimizer/simulator/prediction_memo.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/plan.h"
#include "pcg/support/search_watch.h"

namespace isomer {

struct Prediction {
  double step_us = 0;
  int64_t peak_bytes = 0;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};
// Of plans on so many different devices that simulating one takes too much memory: none is chosen.
inline constexpr Prediction kNotSimulated = {std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<int64_t>::max()};
// Of plans that do not do as a user says.
inline constexpr Prediction kNotAllowed = kNotSimulated;

// The origin of what a search found; other plans have the name of their baseline.
inline constexpr char kFound[] = "search";

// A plan among the fastest few that fit.
struct Contender {
  Plan plan;
  std::string origin;
  double step_us = 0, exposed_tail_us = 0;  // as in Simulation
};

class Contest {
 public:
  struct Entry {
    Plan plan;
    SimulatedStep step;
    std::optional<Simulation> simulation;  // absent: another contest made it
    std::string origin;
    bool fits = false;
  };

  // `threads`: that predict plans. `memo`: what other contests predict, too; both outlive this.
  // `step`: what every plan that takes part does. `watch`: who is told of these plans, or null.
  explicit Contest(const CostModel& cost, int threads = 1, PredictionMemo* memo = nullptr,
                   const SearchPolicy& policy = {}, Constraints::OfStep step = {},
                   SearchWatch* watch = nullptr)
      : cost_(cost),
        policy_(policy),
        step_(std::move(step)),
        threads_(threads),
        memo_(memo),
        watch_(watch) {}
  // Others may wait for what was begun with plans of this one.
  ~Contest();

  // Begins to predict the plan, beside what the caller does next. It takes part, after those that
  // were entered before it, once it or a later one is asked for: what is best does not depend on
  // threads. `takes_part` false: it is predicted only.
  int Enter(Plan plan, std::string origin, bool takes_part = true);
  absl::StatusOr<Prediction> PredictionOf(int entry);
  // As in Simulation. REQUIRES: PredictionOf(entry) is one of a simulation.
  double ComputeUsOf(int entry) const {
    const int same = entrants_[entry].same;
    return entrants_[same >= 0 ? same : entry].compute_us;
  }
  // Both at once.
  absl::StatusOr<Prediction> Consider(Plan plan, std::string origin) {
    return PredictionOf(Enter(std::move(plan), std::move(origin)));
  }
  // Begins to predict a plan that will likely be entered, beside what the caller does and waits
  // for, if there is a thread and a memo for that. It takes no part.
  void Prefetch(Plan plan);
  // Of those that were not entered nothing is kept.
  void ForgetPrefetched();
  const CostModel& cost() const { return cost_; }
  const SearchPolicy& policy() const { return policy_; }
  bool empty() const { return !best_.has_value(); }
  // REQUIRES: not empty.
  const Entry& best() const { return *best_; }
  bool fits() const { return best_.has_value() && best_->fits; }
  bool Fits(const Prediction& prediction) const {
    return prediction.peak_bytes <= cost_.machine().memory_bytes();
  }
  // Of two plans the one that is better comes first.
  std::pair<int, double> Rank(const Prediction& prediction) const {
    return Fits(prediction) ? std::pair(0, prediction.step_us)
                            : std::pair(1, static_cast<double>(prediction.peak_bytes));
  }
  // A prediction of the best takes seconds.
  bool BestIsSlow() const;
  // One of it or of a plan near it does: only what promises most is worth one.
  bool PredictionsAreSlow() const { return slow_us_ <= near_best_us(); }
  // Of the best; infinity if there is none that fits.
  double step_us() const;
  // The fastest plan, whether it fits or not. REQUIRES: not empty.
  const Plan& fastest() const { return fastest_.has_value() ? *fastest_ : best_->plan; }
  const std::string& fastest_origin() const {
    return fastest_.has_value() ? fastest_origin_ : best_->origin;
  }

  // Of the fastest plan that fits and uses at most the first `most` devices, and more than the
  // first `fewer`; infinity if there is none.
  double UsOn(int64_t most, int64_t fewer) const;

  // The fastest plans that fit and differ in their steps, the fastest first; of plans of many tasks
  // the fastest alone may be there.
  const std::vector<Contender>& contenders() const { return contenders_; }

  Entry TakeBest() { return *std::move(best_); }

  // Of the last plan that was not allowed to take part: what it does otherwise. "": there was none.
  const std::string& deviation() const { return deviation_; }

  // Who proposed what; plans are those of the one who proposes as they are entered.
  ProposerLedger& ledger() { return ledger_; }

 private:
  struct Entrant {
    Plan plan;
    std::string origin;
    bool takes_part = true;
    std::optional<std::string> by = {};
    uint64_t what_runs = 0;
    int same = -1;         // an earlier one that runs alike
    bool refused = false;  // before it was predicted
    PredictionMemo::Known known = {};
    absl::StatusOr<Prediction> prediction = Prediction{};
    double compute_us = 0;
  };
  struct Prefetched {
    Plan plan;
    uint64_t what_runs = 0;
    PredictionMemo::Future simulation = {};
  };
  PredictionMemo::Future Begin(std::launch policy, Plan* plan) const;
  // Whether it may not take part, as what it does otherwise is not "": that is its prediction.
  bool Refuses(const absl::StatusOr<std::string>& deviation, Entrant* entrant);
  void Judge(Entrant* entrant);
  void Contend(const Plan& plan, const SimulatedStep& now, const std::string& origin);
  // `simulation`: null if another contest made it.
  void TakePart(Plan plan, const SimulatedStep& now, const Simulation* simulation,
                std::string origin, std::optional<std::string> by);
  double near_best_us() const;

  const CostModel& cost_;
  const SearchPolicy policy_;
  const Constraints::OfStep step_;
  const int threads_;
  PredictionMemo* const memo_;
  SearchWatch* const watch_;
  ProposerLedger ledger_;
  std::deque<Entrant> entrants_;      // where they are stays
  size_t judged_ = 0;                 // of these
  std::map<uint64_t, int> known_;     // the first entrant by what it runs
  std::list<Prefetched> prefetched_;  // where they are stays, too
  std::string deviation_;
  std::optional<Entry> best_;
  std::optional<Plan> fastest_;  // if it is another
  std::string fastest_origin_;
  double fastest_us_ = 0;
  double slow_us_ = std::numeric_limits<double>::infinity();  // fastest of slow predictions
  std::vector<Contender> contenders_;
  std::map<int64_t, double> us_by_devices_;  // the last that is used, and one
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_CONTEST_H_
