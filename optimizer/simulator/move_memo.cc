#include "optimizer/simulator/move_memo.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/ir/weight_update.h"
#include "pcg/schedule/lowering/weight_homes.h"
#include "pcg/support/status_macros.h"

namespace isomer {

int MoveMemo::Intern(Placement placement) {
  placement.type.dtype = ComputedIn(precision_, placement.type.dtype);
  const auto [type, new_type] =
      type_ids_.try_emplace(placement.type.ToString(), static_cast<int>(type_ids_.size()));
  const auto [it, added] = place_ids_.try_emplace(
      absl::StrCat(type->first, "@", placement.view.ToString()), static_cast<int>(places_.size()));
  if (!added) return it->second;
  auto place = std::make_unique<Place>();
  place->type = type->second;
  const int64_t bytes = placement.type.LocalBytes();
  const int64_t numbers = bytes / BytesPerElement(placement.type.dtype);
  // Task graphs train by SGD (task_graph.h).
  const WeightBytes each = BytesOfWeight(placement.type.dtype, OptimizerKind::kSgd, gradient_sums_);
  place->sum_bytes = numbers * each.reduced;
  for (int64_t device : DevicesOf(placement.view, placement.type)) {
    place->devices.push_back(static_cast<int32_t>(device));
    place->accumulate.push_back(
        PicosecondsOf(cost_.ElementwiseTime(TaskKind::kAccumulate, 3 * bytes, device).us));
    place->adding.push_back(PicosecondsOf(cost_.AddingUs(bytes, device)));
    place->fill.push_back(PicosecondsOf(cost_.ElementwiseTime(TaskKind::kFill, bytes, device).us));
    place->update.push_back(
        PicosecondsOf(cost_.ElementwiseTime(TaskKind::kUpdate, numbers * each.update, device).us));
  }
  place->placement = std::move(placement);
  places_.push_back(std::move(place));
  return it->second;
}

const std::vector<MoveTask>& MoveMemo::SynchronisationOf(int id) {
  Place& place = *places_[id];
  if (place.synchronise.has_value()) return *place.synchronise;
  place.synchronise.emplace();
  const auto copies = static_cast<size_t>(place.placement.type.copies);
  for (size_t first = 0; copies > 1 && first < place.devices.size(); first += copies) {
    Task task{.kind = TaskKind::kAllReduce, .phase = Phase::kBackward, .node = {}};
    task.devices.assign(place.devices.begin() + first, place.devices.begin() + first + copies);
    std::sort(task.devices.begin(), task.devices.end());
    task.bytes = place.sum_bytes;
    task.of_weights = true;
    MoveTask move;
    move.duration = PicosecondsOf(TimeOfTask(cost_, Graph(), Schedule(), task).us);
    move.communicates = true;
    AppendQueues(cost_, Schedule(), task, &move.queues);
    move.reads = move.writes = task.devices;
    place.synchronise->push_back(std::move(move));
  }
  return *place.synchronise;
}

absl::StatusOr<const MoveFragment*> MoveMemo::Chain(int from, int to, bool training) {
  std::unique_ptr<MoveFragment>& slot = chains_[{from, to, training}];
  if (slot == nullptr) {
    ISOMER_ASSIGN_OR_RETURN(MoveFragment chain, ChainFragment(cost_, place(from).placement,
                                                              place(to).placement, training));
    slot = std::make_unique<MoveFragment>(std::move(chain));
  }
  return slot.get();
}

absl::StatusOr<const CallFragment*> MoveMemo::Call(const Operator& op,
                                                   const std::vector<int>& operands,
                                                   const MachineView& output_view,
                                                   const std::vector<bool>& wanted, bool stored) {
  std::unique_ptr<CallFragment>& slot =
      calls_[{op.ToString(), operands, output_view.ToString(), wanted, stored}];
  if (slot == nullptr) {
    std::vector<Placement> placements;
    for (int operand : operands) placements.push_back(place(operand).placement);
    ISOMER_ASSIGN_OR_RETURN(CallFragment call,
                            FragmentOfCall(cost_, op, placements, output_view, wanted, stored));
    slot = std::make_unique<CallFragment>(std::move(call));
  }
  return slot.get();
}

int MoveMemo::HomeAmong(const std::vector<int>& places) {
  const auto [home, added] = homes_.try_emplace(places);
  if (added) {
    std::vector<HeldBoxes> wanted;
    for (int id : places) {
      const std::vector<int64_t> devices(place(id).devices.begin(), place(id).devices.end());
      wanted.push_back(HeldBoxesOf(place(id).placement.type, devices));
    }
    home->second = places[BestHome(wanted)];
  }
  return home->second;
}

}  // namespace isomer
