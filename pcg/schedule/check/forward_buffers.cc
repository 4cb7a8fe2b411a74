#include "pcg/schedule/check/forward_buffers.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

uint64_t PlaceOf(const Buffer& b) {
  uint64_t place = HashCombine(static_cast<uint64_t>(b.tensor.node.value),
                               static_cast<uint64_t>(b.tensor.output),
                               static_cast<uint64_t>(b.shard), static_cast<uint64_t>(b.device));
  for (const auto* list : {&b.box.origin, &b.box.shape}) {
    for (int64_t number : *list) place = HashCombine(place, static_cast<uint64_t>(number));
  }
  return HashCombine(place, static_cast<uint64_t>(b.partials),
                     static_cast<uint64_t>(b.partial_step));
}

// A gradient is of the data type of its tensor, or a sum in float32, or in what devices sum it.
bool StandsFor(const Buffer& b, const Buffer& forward, DataType gradient_sums) {
  return b.tensor == forward.tensor && b.shard == forward.shard && b.device == forward.device &&
         b.box == forward.box && b.partials == forward.partials &&
         b.partial_step == forward.partial_step &&
         (b.dtype == forward.dtype ||
          (b.role == BufferRole::kGradient && IsFloat(forward.dtype) &&
           (b.dtype == DataType::kFloat32 || b.dtype == gradient_sums)));
}

}  // namespace

bool HoldsValue(const Buffer& buffer) {
  return buffer.role == BufferRole::kParameter || buffer.role == BufferRole::kInput ||
         buffer.role == BufferRole::kActivation || buffer.role == BufferRole::kReceived;
}

absl::StatusOr<std::vector<BufferId>> FindForwardBuffers(const Graph& graph,
                                                         const Schedule& schedule) {
  const BufferId count = static_cast<BufferId>(schedule.buffers.size());
  std::vector<bool> repeats(count, false);
  for (const Task& task : schedule.tasks) {
    for (BufferId id : task.writes) {
      if (task.phase == Phase::kBackward && id != kNoBuffer) {
        repeats[id] = HoldsValue(schedule.buffers[id]);
      }
    }
  }
  // By what a buffer says it holds, and where: a hash, as there are many; then looked at.
  absl::flat_hash_map<uint64_t, BufferId> forward;
  for (BufferId id = 0; id < count; ++id) {
    const Buffer& b = schedule.buffers[id];
    if (!graph.Contains(b.tensor) || b.shard < 0 || b.shard >= graph.type(b.tensor).NumShards() ||
        b.partials < 1 || b.partial_step < 1 ||
        b.shard % graph.type(b.tensor).partials + int64_t{b.partials - 1} * b.partial_step >=
            graph.type(b.tensor).partials) {
      return absl::FailedPreconditionError(
          absl::StrCat("schedule: buffer ", id, " is of a shard that there is not"));
    }
    if (HoldsValue(b) && !repeats[id]) forward.emplace(PlaceOf(b), id);
  }
  std::vector<BufferId> forward_of(count, kNoBuffer);
  for (BufferId id = 0; id < count; ++id) {
    const Buffer& b = schedule.buffers[id];
    if (b.role != BufferRole::kGradient && !repeats[id]) continue;
    const auto at = forward.find(PlaceOf(b));
    if (at == forward.end() ||
        !StandsFor(b, schedule.buffers[at->second], schedule.options.update.gradient_sums)) {
      return absl::FailedPreconditionError(
          repeats[id]
              ? absl::StrCat("schedule: buffer ", id, " is filled again for no buffer")
              : absl::StrCat("schedule: gradient buffer ", id, " is the gradient of no buffer"));
    }
    forward_of[id] = at->second;
  }
  return forward_of;
}

}  // namespace isomer
