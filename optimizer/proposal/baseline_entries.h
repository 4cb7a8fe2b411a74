// The baselines in the contest.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_BASELINE_ENTRIES_H_
#define ISOMER_OPTIMIZER_PROPOSAL_BASELINE_ENTRIES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/proposal/optimization.h"

namespace isomer {

class BaselineEntries {
 public:
  explicit BaselineEntries(Optimization* run) : run_(*run) {}

  // All that suit the model are predicted; those that keep the constraints take part, or, where a
  // baseline is asked for rather than a search, that one.
  absl::Status EnterAll();

  // A mapping by hand, on a grid if there is one, as one of the baseline's plans.
  absl::StatusOr<Prediction> Consider(const MappedModel& mapped, const std::string& name,
                                      const Grid* grid = nullptr);

  // By name. A baseline may be several plans: the fastest that fits counts, or the smallest.
  const std::map<std::string, Prediction>& predictions() const { return predictions_; }
  const Prediction& single_device() const { return single_device_; }
  // Those that do not keep the constraints.
  const std::vector<std::string>& ignoring() const { return ignoring_; }

  // The share of the step that devices would compute if the model's work were dealt out evenly.
  double BusyShare() const;

 private:
  absl::StatusOr<int> Enter(const MappedModel& mapped, const std::string& name, const Grid* grid);
  absl::StatusOr<Prediction> Settle(const std::string& name, int entry);

  Optimization& run_;
  std::map<std::string, Prediction> predictions_;
  Prediction single_device_;
  std::vector<std::string> ignoring_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_BASELINE_ENTRIES_H_
