#include "pcg/schedule/check/check_updates.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/schedule/check/check_calls.h"
#include "pcg/schedule/check/check_host.h"
#include "pcg/schedule/task_error.h"
#include "pcg/support/status_macros.h"

namespace isomer {

bool IsOfUpdate(const Schedule& schedule, const Task& task) {
  const auto has = [&](const BufferList& ids, BufferRole role) {
    return absl::c_any_of(
        ids, [&](BufferId id) { return id != kNoBuffer && schedule.buffers[id].role == role; });
  };
  switch (task.kind) {
    case TaskKind::kAllReduce:
      return task.reads == task.writes;
    case TaskKind::kReduce:
    case TaskKind::kBroadcast:
    case TaskKind::kUpdate:
      return true;
    case TaskKind::kReduceScatter:
      return has(task.writes, BufferRole::kGradientShard);
    case TaskKind::kAllGather:
      return has(task.writes, BufferRole::kParameter);
    case TaskKind::kFill:
      return has(task.writes, BufferRole::kState);
    case TaskKind::kAccumulate:
    case TaskKind::kConvert:
      return has(task.writes, BufferRole::kGradientShard);
    default:
      return false;
  }
}

namespace {

constexpr char kSumsElse[] = "sums gradients of weights in another type than the plan says";
constexpr char kNotSummed[] = "updates a copy with a gradient that is not summed over all copies";

class UpdateChecker {
 public:
  UpdateChecker(const Graph& graph, const Schedule& schedule, const std::vector<int32_t>& position)
      : graph_(graph), schedule_(schedule), position_(position) {}

  absl::Status Run() {
    ISOMER_RETURN_IF_ERROR(CheckStored(graph_, schedule_));
    ISOMER_RETURN_IF_ERROR(Index());
    if (!schedule_.options.training) return absl::OkStatus();
    for (const Schedule::HostTensor& parameter : schedule_.parameters) {
      const std::vector<BufferId>& shards = parameter.stored;
      const size_t copies = graph_.type(parameter.tensor).copies;
      if (parameter.gradients.size() != shards.size()) {
        return ErrorOf(parameter, "has not as many gradients as shards");
      }
      for (size_t first = 0; first < shards.size(); first += copies) {
        std::vector<size_t> order(copies);
        std::iota(order.begin(), order.end(), first);
        absl::c_stable_sort(order, [&](size_t a, size_t b) {
          return buffer(shards[a]).device < buffer(shards[b]).device;
        });
        Piece piece{.parameter = &parameter, .copies = {}, .gradients = {}};
        for (size_t s : order) {
          // Copies at several moments of a device are one buffer, with one gradient.
          if (!piece.copies.empty() && piece.copies.back() == shards[s]) {
            if (piece.gradients.back() == parameter.gradients[s]) continue;
            return ErrorOf(parameter, absl::StrCat("has two gradients of buffer ", shards[s]));
          }
          piece.copies.push_back(shards[s]);
          piece.gradients.push_back(parameter.gradients[s]);
        }
        if (parameter.update != UpdateMethod::kShardedWeights) {
          ISOMER_RETURN_IF_ERROR(CheckPiece(&piece));
          continue;
        }
        // Parts have nothing in common: each is a parameter by itself.
        for (size_t m = 0; m < piece.copies.size(); ++m) {
          Piece part{&parameter, {piece.copies[m]}, {piece.gradients[m]}};
          ISOMER_RETURN_IF_ERROR(CheckPiece(&part));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  const Buffer& buffer(BufferId id) const { return schedule_.buffers[id]; }
  const Task& task(int32_t t) const { return schedule_.tasks[t]; }
  absl::Status Error(int32_t t, absl::string_view what) const {
    return TaskError(graph_, schedule_, t, what);
  }
  absl::Status ErrorOf(const Schedule::HostTensor& parameter, absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("schedule: parameter ", graph_.Label(parameter.tensor.node), " ", what));
  }

  // Which tasks change what, and that nothing else touches what belongs to updates.
  absl::Status Index();
  absl::Status CheckTouch(int32_t t, BufferId id, bool writes) const;
  // The copies of a shard, by device, with their gradients.
  struct Piece {
    const Schedule::HostTensor* parameter;
    std::vector<BufferId> copies, gradients;
    std::set<std::pair<int32_t, size_t>> sums = {};  // task and segment, when found to be right
    std::set<BufferId> shares = {};                  // that are in them
    int32_t gather = -1;                             // likewise
  };
  absl::Status CheckPiece(Piece* piece) const;
  absl::Status CheckGather(int32_t gather, size_t m, Piece* piece) const;
  absl::Status CheckBroadcast(int32_t broadcast, size_t m, const Piece& piece) const;
  absl::Status CheckUpdate(int32_t t, BufferId updated, BufferId parameter,
                           BufferId gradient) const;
  absl::Status CheckSum(int32_t update, BufferId gradient, Piece* piece) const;
  // Whether it is of the same part of a gradient.
  bool StandsFor(BufferId a, BufferId b) const {
    return buffer(a).role == buffer(b).role && buffer(a).tensor == buffer(b).tensor &&
           buffer(a).shard == buffer(b).shard && buffer(a).box == buffer(b).box;
  }
  absl::Status FindSums(BufferId gradient, std::vector<std::pair<int32_t, BufferId>>* sums) const;
  absl::Status CheckShares(int32_t update, std::pair<int32_t, size_t> sum, Piece* piece) const;
  // The one task that changes a parameter after it was loaded; -1: none.
  int32_t ChangeOf(BufferId parameter) const {
    return changes_[parameter].empty() ? -1 : changes_[parameter].back();
  }
  // Of a collective or update, the segment that has `id` among its writes, which it has.
  size_t SegmentOf(int32_t t, BufferId id) const {
    const BufferList& writes = task(t).writes;
    return (absl::c_find(writes, id) - writes.begin()) % task(t).segments;
  }
  std::vector<BufferId> ReadsOf(int32_t t, size_t segment) const {
    return OfSegment(task(t), task(t).reads, segment);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const std::vector<int32_t>& position_;
  // By buffer: tasks that write it, in order of position_; of parameters without the load.
  std::vector<std::vector<int32_t>> changes_;
  // By buffer of a parameter: where its device has the weights that are trained.
  std::vector<BufferId> trained_;
};

absl::Status UpdateChecker::CheckTouch(int32_t t, BufferId id, bool writes) const {
  const TaskKind kind = task(t).kind;
  switch (buffer(id).role) {
    case BufferRole::kParameter:
      if (!writes || kind == TaskKind::kLoad || kind == TaskKind::kUpdate ||
          kind == TaskKind::kAllGather || kind == TaskKind::kBroadcast) {
        return absl::OkStatus();
      }
      return Error(t, absl::StrCat("changes parameter buffer ", id));
    case BufferRole::kGradientShard:
      if (kind == TaskKind::kReduceScatter || kind == TaskKind::kUnload ||
          kind == TaskKind::kAccumulate || kind == TaskKind::kConvert ||
          (kind == TaskKind::kUpdate && !writes)) {
        return absl::OkStatus();
      }
      return Error(t, absl::StrCat("uses buffer ", id, ", a part of a parameter's gradient"));
    case BufferRole::kParameterShard:
      if (kind == TaskKind::kUpdate || (kind == TaskKind::kAllGather && !writes)) {
        return absl::OkStatus();
      }
      return Error(t, absl::StrCat("uses buffer ", id, ", a part of an updated parameter"));
    case BufferRole::kState:
      if (kind == TaskKind::kUpdate) return absl::OkStatus();
      if (kind == TaskKind::kFill && task(t).phase == Phase::kLoad && task(t).value == 0) {
        return absl::OkStatus();
      }
      return Error(t, absl::StrCat("uses buffer ", id, ", a state of the optimizer"));
    case BufferRole::kMaster:
      if (kind == TaskKind::kUpdate || (kind == TaskKind::kLoad && writes) ||
          (kind == TaskKind::kUnload && !writes)) {
        return absl::OkStatus();
      }
      return Error(t, absl::StrCat("uses buffer ", id, ", a master of a parameter"));
    default:
      return absl::OkStatus();
  }
}

absl::Status UpdateChecker::Index() {
  trained_.assign(schedule_.buffers.size(), kNoBuffer);
  for (const Schedule::HostTensor& parameter : schedule_.parameters) {
    if (parameter.trained.size() != parameter.stored.size()) {
      return ErrorOf(parameter, "is not trained in as many shards as it has");
    }
    for (size_t s = 0; s < parameter.stored.size(); ++s) {
      const BufferId stored = parameter.stored[s], trained = parameter.trained[s];
      if (trained_[stored] != kNoBuffer && trained_[stored] != trained) {
        return ErrorOf(parameter, absl::StrCat("is trained in two places for buffer ", stored));
      }
      trained_[stored] = trained;
    }
  }
  changes_.resize(schedule_.buffers.size());
  std::vector<int32_t> order(schedule_.tasks.size());
  for (size_t t = 0; t < order.size(); ++t) order[position_[t]] = static_cast<int32_t>(t);
  std::vector<int32_t> state_of(schedule_.buffers.size(), -1);  // the update that has it
  for (int32_t t : order) {
    for (bool writes : {false, true}) {
      for (BufferId id : writes ? task(t).writes : task(t).reads) {
        if (id == kNoBuffer) continue;
        ISOMER_RETURN_IF_ERROR(CheckTouch(t, id, writes));
        if (buffer(id).role == BufferRole::kState && task(t).kind == TaskKind::kUpdate) {
          if (state_of[id] >= 0 && state_of[id] != t) {
            return Error(t, absl::StrCat("uses buffer ", id, ", the state of task ", state_of[id]));
          }
          state_of[id] = t;
        }
        if (!writes || (task(t).kind == TaskKind::kLoad)) continue;
        std::vector<int32_t>& changes = changes_[id];
        if (buffer(id).role == BufferRole::kParameter && !changes.empty()) {
          return Error(t, absl::StrCat("changes parameter buffer ", id, " a second time"));
        }
        changes.push_back(t);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status UpdateChecker::CheckPiece(Piece* piece) const {
  const bool reached =
      absl::c_any_of(piece->gradients, [](BufferId id) { return id != kNoBuffer; });
  for (size_t m = 0; m < piece->copies.size(); ++m) {
    const BufferId copy = piece->copies[m], gradient = piece->gradients[m];
    const int32_t change = ChangeOf(copy);
    if (!reached && change < 0) {
      if (trained_[copy] == copy) continue;
      return ErrorOf(*piece->parameter, "has a master but no gradient");
    }
    if (!reached) return Error(change, "changes a parameter that has no gradient");
    if (change < 0) {
      return ErrorOf(*piece->parameter, absl::StrCat("never updates shard ", buffer(copy).shard));
    }
    if (task(change).kind == TaskKind::kAllGather) {
      ISOMER_RETURN_IF_ERROR(CheckGather(change, m, piece));
    } else if (task(change).kind == TaskKind::kBroadcast) {
      ISOMER_RETURN_IF_ERROR(CheckBroadcast(change, m, *piece));
    } else {
      ISOMER_RETURN_IF_ERROR(CheckUpdate(change, copy, copy, gradient));
      if (buffer(gradient).box != buffer(copy).box) {
        return Error(change, "updates a part of a copy");
      }
      ISOMER_RETURN_IF_ERROR(CheckSum(change, gradient, piece));
    }
  }
  return absl::OkStatus();
}

// All copies are gathered from parts that were updated where they lie.
absl::Status UpdateChecker::CheckGather(int32_t gather, size_t m, Piece* piece) const {
  if (gather == piece->gather) return absl::OkStatus();
  const std::vector<BufferId> parts = ReadsOf(gather, SegmentOf(gather, piece->copies[m]));
  const UpdateMethod method = piece->parameter->update;
  if ((method != UpdateMethod::kSharded && method != UpdateMethod::kShardedGradients) ||
      piece->gather >= 0 || parts.size() != piece->copies.size()) {
    return Error(gather, "gathers a parameter in another way than its method says");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (changes_[parts[i]].size() != 1) return Error(gather, "gathers what no task updates");
    const int32_t update = changes_[parts[i]][0];
    ISOMER_RETURN_IF_ERROR(CheckUpdate(update, parts[i], piece->copies[i], piece->gradients[i]));
    ISOMER_RETURN_IF_ERROR(CheckSum(update, piece->gradients[i], piece));
  }
  piece->gather = gather;
  return absl::OkStatus();
}

// Copy `m` becomes the owner's, which is updated before.
absl::Status UpdateChecker::CheckBroadcast(int32_t broadcast, size_t m, const Piece& piece) const {
  const auto owner = absl::c_find_if(piece.gradients, [](BufferId id) { return id != kNoBuffer; }) -
                     piece.gradients.begin();
  const BufferId owned = piece.copies[owner], copy = piece.copies[m];
  const int32_t update = ChangeOf(owned);
  if (trained_[copy] != (HasMaster(buffer(copy).dtype) ? kNoBuffer : copy)) {
    return Error(broadcast, absl::StrCat("leaves buffer ", copy, " with another master"));
  }
  if (piece.parameter->update != UpdateMethod::kOwner || update < 0 ||
      task(update).kind != TaskKind::kUpdate || position_[broadcast] < position_[update] ||
      ReadsOf(broadcast, SegmentOf(broadcast, piece.copies[m])) != std::vector<BufferId>{owned}) {
    return Error(broadcast, "does not bring the owner's copy, updated");
  }
  return absl::OkStatus();
}

// Task `t`, which writes `updated`, makes it of (a part of) `parameter` with `gradient`.
absl::Status UpdateChecker::CheckUpdate(int32_t t, BufferId updated, BufferId parameter,
                                        BufferId gradient) const {
  if (gradient == kNoBuffer) {
    return Error(t, "does not update with the gradient of its parameter");
  }
  const size_t states = schedule_.options.update.num_states();
  const size_t segment = SegmentOf(t, updated);
  const std::vector<BufferId> reads = ReadsOf(t, segment);
  const std::vector<BufferId> writes = OfSegment(task(t), task(t).writes, segment);
  const bool has_master = HasMaster(buffer(updated).dtype);
  if (task(t).kind != TaskKind::kUpdate || reads.size() != 2 + states ||
      writes.size() != 1 + states + has_master || writes[0] != updated) {
    return Error(t, "is no update by the optimizer");
  }
  const BufferId trained = trained_[parameter];
  if (trained == kNoBuffer || (has_master ? writes.back() : parameter) != trained) {
    return Error(t, "does not change what is trained of its parameter");
  }
  if (has_master &&
      (buffer(trained).role != BufferRole::kMaster || buffer(trained).dtype != DataType::kFloat32 ||
       buffer(trained).box != buffer(updated).box || changes_[trained].size() != 1)) {
    return Error(t, "has no master of its own");
  }
  if (reads[0] != trained || reads[1] != gradient ||
      buffer(gradient).tensor != buffer(parameter).tensor ||
      buffer(gradient).shard != buffer(parameter).shard) {
    return Error(t, "does not update with the gradient of its parameter");
  }
  for (size_t i = 0; i < states; ++i) {
    const BufferId state = writes[1 + i];
    if (reads[2 + i] != state || buffer(state).role != BufferRole::kState ||
        buffer(state).box != buffer(updated).box ||
        buffer(state).dtype != schedule_.options.update.TypeOfState(static_cast<int>(i)) ||
        changes_[state].size() != 2 || absl::c_count(writes, state) != 1) {
      return Error(t, absl::StrCat("has no state ", i, " of its own"));
    }
  }
  const bool is_of_parts =
      buffer(gradient).role == BufferRole::kGradientShard && changes_[gradient].size() > 1;
  if (is_of_parts && buffer(gradient).dtype != DataType::kFloat32) {
    return Error(t, "updates with a sum of parts that is not in float32");
  }
  if (changes_[gradient].empty() || position_[changes_[gradient].back()] > position_[t]) {
    return Error(t, "updates before the gradient is complete");
  }
  return absl::OkStatus();
}

// `gradient`, with which `update` updates, is summed just once over the gradients of all copies, or
// is the sum of such sums, of micro-batches.
absl::Status UpdateChecker::CheckSum(int32_t update, BufferId gradient, Piece* piece) const {
  const std::vector<int32_t>& changes = changes_[gradient];
  const UpdateMethod method = piece->parameter->update;
  std::vector<std::pair<int32_t, BufferId>> sums = {{changes.back(), gradient}};
  if (method == UpdateMethod::kShardedGradients && piece->copies.size() > 1) {
    ISOMER_RETURN_IF_ERROR(FindSums(gradient, &sums));
  } else {
    const auto count = absl::c_count_if(
        changes, [&](int32_t change) { return IsOfUpdate(schedule_, task(change)); });
    if (count > 1 || (count == 1 && piece->copies.size() == 1)) {
      return Error(changes.back(), "sums a gradient that is a sum of all copies already");
    }
  }
  if (piece->copies.size() == 1) return absl::OkStatus();
  for (const auto& [sum, result] : sums) {
    const TaskKind expected = method == UpdateMethod::kAllReduce ? TaskKind::kAllReduce
                              : method == UpdateMethod::kOwner   ? TaskKind::kReduce
                                                                 : TaskKind::kReduceScatter;
    if (task(sum).kind != expected) return Error(update, kNotSummed);
    ISOMER_RETURN_IF_ERROR(CheckShares(update, {sum, SegmentOf(sum, result)}, piece));
  }
  return absl::OkStatus();
}

// The scatters of which `gradient` is the sum: the one that made it, and those of the parts that
// are added to it, with what they made.
absl::Status UpdateChecker::FindSums(BufferId gradient,
                                     std::vector<std::pair<int32_t, BufferId>>* sums) const {
  // The first may be in another type than their sum.
  const Task& first = task(changes_[gradient][0]);
  const BufferId scattered = first.kind == TaskKind::kConvert ? first.reads[0] : gradient;
  if (scattered != gradient &&
      (!StandsFor(scattered, gradient) || changes_[scattered].size() != 1)) {
    return Error(changes_[gradient][0], "converts what is not the first part of its sum");
  }
  *sums = {{changes_[scattered][0], scattered}};
  std::set<BufferId> added = {scattered};
  for (size_t i = 1; i < changes_[gradient].size(); ++i) {
    const int32_t t = changes_[gradient][i];
    const BufferId part = task(t).reads[0];
    if (task(t).kind != TaskKind::kAccumulate || part == gradient || !added.insert(part).second ||
        !StandsFor(part, gradient) || changes_[part].size() != 1) {
      return Error(t, "adds to a part of a gradient what is not another micro-batch's");
    }
    sums->emplace_back(changes_[part][0], part);
  }
  return absl::OkStatus();
}

// The sum (task, segment) is over one gradient of each copy, complete.
absl::Status UpdateChecker::CheckShares(int32_t update, std::pair<int32_t, size_t> sum,
                                        Piece* piece) const {
  if (piece->sums.contains(sum)) return absl::OkStatus();
  const std::vector<BufferId> shares = ReadsOf(sum.first, sum.second);
  if (shares.size() != piece->copies.size()) return Error(update, kNotSummed);
  for (size_t i = 0; i < shares.size(); ++i) {
    const Buffer &share = buffer(shares[i]), &copy = buffer(piece->copies[i]);
    if (share.role != BufferRole::kGradient || share.tensor != copy.tensor ||
        share.shard != copy.shard || share.device != copy.device || share.box != copy.box) {
      return Error(update, kNotSummed);
    }
    if (share.dtype != schedule_.options.update.gradient_sums) return Error(sum.first, kSumsElse);
    if (!piece->shares.insert(shares[i]).second) {
      return Error(sum.first, "sums a gradient that is in a sum already");
    }
    // Nothing is added to a share once it is summed.
    if (position_[changes_[shares[i]].back()] > position_[sum.first]) {
      return Error(changes_[shares[i]].back(), "adds to a gradient that is summed already");
    }
  }
  piece->sums.insert(sum);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUpdates(const Graph& graph, const Schedule& schedule,
                          const std::vector<int32_t>& position) {
  return UpdateChecker(graph, schedule, position).Run();
}

}  // namespace isomer
