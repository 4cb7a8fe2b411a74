// From one tensor to another of the same logical value, held otherwise: what a chain of parallel
// operators asks for. Internal to pcg/schedule and to those who price single moves.
#ifndef ISOMER_PCG_SCHEDULE_REDISTRIBUTION_H_
#define ISOMER_PCG_SCHEDULE_REDISTRIBUTION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "pcg/schedule/builder.h"

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

// Gives `to` its shards, on `devices`, and adds the tasks that move their values there. A shard
// that stays where it is keeps its buffer. `sources`: per shard of `to`.
// REQUIRES: the tensors that values come from have their shards.
void Redistribute(ScheduleBuilder* builder, absl::Span<const ShardSource> sources, TensorRef to,
                  absl::Span<const int64_t> devices);

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_REDISTRIBUTION_H_
