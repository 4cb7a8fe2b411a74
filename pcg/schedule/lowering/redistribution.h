// From one tensor to another of the same logical value, held otherwise: what a chain of parallel
// operators asks for. Internal to pcg/schedule and to those who price single moves.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_REDISTRIBUTION_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_REDISTRIBUTION_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// Where one shard of the new tensor comes from: partials [first_partial, first_partial + reduced)
// of `from` are summed.
struct ShardSource {
  TensorRef from;
  int64_t first_partial = 0, reduced = 1;
};
// Of every shard's source when the partials of `from` are summed to `partials`.
ShardSource SourceInChain(TensorRef from, const TensorType& type, int64_t partials,
                          int64_t partial);

// Of the copies of a piece that one device has, the first.
class OneOfCopies {
 public:
  explicit OneOfCopies(const TensorType& type) : type_(type) {}
  // REQUIRES: shards are asked for in order.
  size_t FirstAt(int64_t device, size_t shard) {
    const ShardCoordinates at = CoordinatesOfShard(type_, static_cast<int64_t>(shard));
    const int64_t first_copy = ShardAt(type_, {at.dims, 0, at.partial});
    return first_.emplace(std::pair(device, first_copy), shard).first->second;
  }

 private:
  const TensorType& type_;
  std::map<std::pair<int64_t, int64_t>, size_t> first_;  // (device, shard but for the copy)
};

// Gives `to` its shards, on `devices`, and adds the tasks that move their values there. A shard
// that stays where it is keeps its buffer. `sources`: per shard of `to`.
// `moments`: their micro-batches, or none. Copies at several moments of a device are one buffer.
// Where partials of several micro-batches are summed, every device first sums its own.
// REQUIRES: the tensors that values come from have their shards.
void Redistribute(ScheduleBuilder* builder, absl::Span<const ShardSource> sources, TensorRef to,
                  absl::Span<const int64_t> devices, absl::Span<const int32_t> moments = {});

// Adds the tasks that move the value of `from` to where `to`, of the same sizes and without
// partials, has its shards already. REQUIRES: both have their shards.
void MoveTo(ScheduleBuilder* builder, TensorRef from, TensorRef to);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_REDISTRIBUTION_H_
