#include "pcg/schedule/redistribution.h"

#include <algorithm>
#include <utility>

namespace isomer {
namespace {

// The buffers whose sum, put together, is shard `shard` of `to`.
std::vector<BufferId> Sources(const ScheduleBuilder& builder, const ShardSource& source,
                              const TensorType& to, int64_t shard, int32_t device) {
  const TensorType& type = builder.graph().type(source.from);
  const std::vector<BufferId>& shards = builder.schedule().shards.at(source.from);
  const ShardCoordinates at = CoordinatesOfShard(to, shard);
  const Box box = ShardBox(to, at.dims);
  const std::vector<std::vector<int64_t>> pieces = OverlappingPieces(type, box);
  auto sources_from_copy = [&](int64_t copy) {
    std::vector<BufferId> sources;
    for (const std::vector<int64_t>& dims : pieces) {
      for (int64_t p = source.first_partial; p < source.first_partial + source.reduced; ++p) {
        sources.push_back(shards[ShardAt(type, {dims, copy, p})]);
      }
    }
    return sources;
  };
  // Of the equal copies, the one with most pieces on this device; else the one that Replicate's
  // numbering assigns.
  std::vector<BufferId> best = sources_from_copy(at.copy / (to.copies / type.copies));
  auto here = [&](const std::vector<BufferId>& sources) {
    return std::count_if(sources.begin(), sources.end(),
                         [&](BufferId id) { return builder.buffer(id).device == device; });
  };
  for (int64_t copy = 0; copy < type.copies; ++copy) {
    std::vector<BufferId> sources = sources_from_copy(copy);
    if (here(sources) > here(best)) best = std::move(sources);
  }
  return best;
}

}  // namespace

ShardSource SourceInChain(TensorRef from, const TensorType& type, int64_t partials,
                          int64_t partial) {
  const int64_t reduced = type.partials / partials;
  return {from, partial * reduced, reduced};
}

void Redistribute(ScheduleBuilder* builder, absl::Span<const ShardSource> sources, TensorRef to,
                  absl::Span<const int64_t> devices) {
  const TensorType& type = builder->graph().type(to);
  std::vector<Transfer> transfers;
  std::vector<BufferId> shards;
  for (size_t s = 0; s < devices.size(); ++s) {
    const int64_t shard = static_cast<int64_t>(s);
    const int32_t device = static_cast<int32_t>(devices[s]);
    const std::vector<BufferId> from = Sources(*builder, sources[s], type, shard, device);
    const Box box = ShardBox(type, CoordinatesOfShard(type, shard).dims);
    const Buffer& first = builder->buffer(from[0]);
    if (from.size() == 1 && first.device == device && first.box == box) {
      shards.push_back(from[0]);  // It stays where it is.
      continue;
    }
    shards.push_back(builder->AddShard(BufferRole::kActivation, to, shard, device));
    for (BufferId id : from) transfers.push_back({id, shards.back()});
  }
  builder->schedule().shards[to] = std::move(shards);
  builder->AddTransfers(transfers, Phase::kForward, to.node);
}

}  // namespace isomer
