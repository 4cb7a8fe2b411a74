// Memo shared by the task graphs of one run: placements, and the fragments of calls and moves
// between placements (move_fragment.h).
//
// A search makes many task graphs of the same model, and walks over them propose mostly the same
// choices, on this part of the machine or on another.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_MOVE_MEMO_H_
#define ISOMER_OPTIMIZER_SIMULATOR_MOVE_MEMO_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/cost/cost.h"
#include "optimizer/mapping/cost_options.h"
#include "optimizer/sharding/sharding_choice.h"
#include "optimizer/simulator/move_fragment.h"

namespace isomer {

class MoveMemo {
 public:
  // An interned placement, in the precision.
  struct Place {
    Placement placement;
    int type;  // equal for equal types
    // Per shard: its device, and the time to add to its gradient by a task or by the call that
    // computes the summand, to fill the gradient, and to update the shard.
    std::vector<int32_t> devices;
    std::vector<Picoseconds> accumulate, adding, fill, update;
    int64_t sum_bytes = 0;  // gradient of a stored tensor, per device
    // The all-reduces over its replicas, once requested.
    std::optional<std::vector<MoveTask>> synchronise;
  };

  // `cost` outlives this. `options`: float32 tensors count as `precision`; gradients of stored
  // tensors are reduced in `gradient_sums`.
  explicit MoveMemo(const CostModel& cost, const CostOptions& options = {})
      : cost_(cost), precision_(options.precision), gradient_sums_(options.gradient_sums) {}
  MoveMemo(const MoveMemo&) = delete;

  int Intern(Placement placement);
  // References stay valid.
  const Place& place(int id) const { return *places_[id]; }
  const std::vector<MoveTask>& SynchronisationOf(int place);
  absl::StatusOr<const MoveFragment*> Chain(int from, int to, bool training);
  // `operands`: ids of places; `stored`: the first is a stored tensor.
  absl::StatusOr<const CallFragment*> Call(const Operator& op, const std::vector<int>& operands,
                                           const MachineView& output_view,
                                           const std::vector<bool>& wanted, bool stored);
  // The place, of those where a stored value is read, where it is stored.
  int HomeAmong(const std::vector<int>& places);

 private:
  // Operator, operands, view of the output, wanted gradients, whether operand 0 is stored.
  using CallKey = std::tuple<std::string, std::vector<int>, std::string, std::vector<bool>, bool>;

  const CostModel& cost_;
  const DataType precision_;
  const DataType gradient_sums_;
  std::map<std::string, int> place_ids_, type_ids_;
  std::vector<std::unique_ptr<Place>> places_;
  std::map<std::tuple<int, int, bool>, std::unique_ptr<MoveFragment>> chains_;
  std::map<CallKey, std::unique_ptr<CallFragment>> calls_;
  std::map<std::vector<int>, int> homes_;  // by places, one of them
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_MOVE_MEMO_H_
