// The plans that were considered, and the best of them.
//
// A plan that fits is better than one that does not; of those that fit the faster, of those that do
// not the smaller. Searches under several costs often end at one plan, which is predicted once.
#ifndef ISOMER_OPTIMIZER_CONTEST_H_
#define ISOMER_OPTIMIZER_CONTEST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/cost.h"
#include "optimizer/simulator.h"
#include "pcg/plan.h"

namespace isomer {

struct Prediction {
  double step_us = 0;
  int64_t peak_bytes = 0;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

class Contest {
 public:
  struct Entry {
    Plan plan;
    Simulation simulation;
    std::string origin;
    bool fits = false;
  };

  explicit Contest(const CostModel& cost) : cost_(cost) {}

  // Predicts the plan and takes part with it.
  absl::StatusOr<Prediction> Consider(Plan plan, std::string origin);
  bool empty() const { return !best_.has_value(); }
  // REQUIRES: not empty.
  const Entry& best() const { return *best_; }
  bool fits() const { return best_.has_value() && best_->fits; }
  // Of the best; infinity if there is none that fits.
  double step_us() const;
  // The fastest plan, whether it fits or not. REQUIRES: not empty.
  const Plan& fastest() const { return fastest_.has_value() ? *fastest_ : best_->plan; }
  const std::string& fastest_origin() const {
    return fastest_.has_value() ? fastest_origin_ : best_->origin;
  }

  Entry TakeBest() { return *std::move(best_); }

 private:
  const CostModel& cost_;
  std::optional<Entry> best_;
  std::optional<Plan> fastest_;  // if it is another
  std::string fastest_origin_;
  double fastest_us_ = 0;
  std::map<uint64_t, Prediction> known_;  // by what a plan runs
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_CONTEST_H_
