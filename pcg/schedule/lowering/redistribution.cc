#include "pcg/schedule/lowering/redistribution.h"

#include <algorithm>
#include <map>
#include <set>
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
  // numbering assigns, or, where there are more than it makes (weight_homes.h), the first.
  const int64_t readers = to.copies / type.copies;
  std::vector<BufferId> best = sources_from_copy(readers == 0 ? 0 : at.copy / readers);
  auto here = [&](const std::vector<BufferId>& sources) {
    return std::count_if(sources.begin(), sources.end(),
                         [&](BufferId id) { return builder.buffer(id).device == device; });
  };
  int64_t most = here(best);
  for (int64_t copy = 0; copy < type.copies && most < std::ssize(best); ++copy) {
    std::vector<BufferId> sources = sources_from_copy(copy);
    const int64_t count = here(sources);
    if (count <= most) continue;
    most = count;
    best = std::move(sources);
  }
  return best;
}

// Sums of what a device has of several micro-batches.
class LocalSums {
 public:
  explicit LocalSums(ScheduleBuilder* builder) : builder_(*builder) {}

  // `sources` of a shard on `device`, with those that another device has of several micro-batches
  // replaced by their sum.
  std::vector<BufferId> Summed(const std::vector<BufferId>& sources, int32_t device) {
    std::vector<std::vector<BufferId>> groups;  // in the order of their first
    std::map<int32_t, size_t> group_of_device;
    for (BufferId id : sources) {
      const auto [group, is_new] =
          group_of_device.try_emplace(builder_.buffer(id).device, groups.size());
      if (!is_new && !Continues(groups[group->second], id)) group->second = groups.size();
      if (group->second == groups.size()) groups.emplace_back();
      groups[group->second].push_back(id);
    }
    std::vector<BufferId> result;
    for (const std::vector<BufferId>& group : groups) {
      const bool moves =
          builder_.buffer(group[0]).device != device || group.size() != sources.size();
      if (group.size() == 1 || !moves) {
        result.insert(result.end(), group.begin(), group.end());
        continue;
      }
      const auto [sum, is_new] = sums_.try_emplace({group[0], group.size()});
      if (is_new) {
        Buffer buffer = builder_.buffer(group[0]);
        buffer.role = BufferRole::kActivation;
        buffer.moment = kNoMoment;
        buffer.partials = static_cast<int32_t>(group.size());
        buffer.partial_step = builder_.buffer(group[1]).shard - buffer.shard;
        sum->second = builder_.AddBuffer(std::move(buffer));
        for (BufferId id : group) transfers_.push_back({id, sum->second});
      }
      result.push_back(sum->second);
    }
    return result;
  }

  // What makes the sums.
  const std::vector<Transfer>& transfers() const { return transfers_; }

 private:
  // `next` is the next partial, at the same distance, of the same piece and another micro-batch.
  bool Continues(const std::vector<BufferId>& group, BufferId next) const {
    const Buffer &first = builder_.buffer(group[0]), &last = builder_.buffer(group.back());
    const Buffer& b = builder_.buffer(next);
    const int64_t partials = builder_.graph().type(b.tensor).partials;
    const int32_t step = b.shard - last.shard;
    const bool same_step =
        group.size() == 1 ? step > 0 : step == builder_.buffer(group[1]).shard - first.shard;
    return same_step && last.moment != b.moment && last.tensor == b.tensor &&
           b.shard / partials == last.shard / partials;
  }

  ScheduleBuilder& builder_;
  std::map<std::pair<BufferId, size_t>, BufferId> sums_;  // (first partial, how many)
  std::vector<Transfer> transfers_;
};

}  // namespace

ShardSource SourceInChain(TensorRef from, const TensorType& type, int64_t partials,
                          int64_t partial) {
  const int64_t reduced = type.partials / partials;
  return {from, partial * reduced, reduced};
}

void Redistribute(ScheduleBuilder* builder, absl::Span<const ShardSource> sources, TensorRef to,
                  absl::Span<const int64_t> devices, absl::Span<const int32_t> moments) {
  const TensorType& type = builder->graph().type(to);
  std::vector<Transfer> transfers;
  std::vector<BufferId> shards;
  LocalSums sums(builder);
  OneOfCopies copies(type);
  for (size_t s = 0; s < devices.size(); ++s) {
    const int64_t shard = static_cast<int64_t>(s);
    const int32_t device = static_cast<int32_t>(devices[s]);
    if (!moments.empty()) {
      if (const size_t first = copies.FirstAt(device, s); first != s) {
        shards.push_back(shards[first]);
        builder->ShareBuffer(shards.back(), moments[s]);
        continue;
      }
    }
    std::vector<BufferId> from = Sources(*builder, sources[s], type, shard, device);
    if (moments.empty()) from = sums.Summed(from, device);
    const Box box = ShardBox(type, CoordinatesOfShard(type, shard).dims);
    const Buffer& first = builder->buffer(from[0]);
    if (from.size() == 1 && first.device == device && first.box == box) {
      shards.push_back(from[0]);  // It stays where it is.
    } else {
      shards.push_back(builder->AddShard(BufferRole::kActivation, to, shard, device,
                                         moments.empty() ? kNoMoment : moments[s]));
      for (BufferId id : from) transfers.push_back({id, shards.back()});
    }
  }
  builder->schedule().shards[to] = std::move(shards);
  builder->AddTransfers(sums.transfers(), Phase::kForward, to.node);
  builder->AddTransfers(transfers, Phase::kForward, to.node);
}

void MoveTo(ScheduleBuilder* builder, TensorRef from, TensorRef to) {
  const TensorType& type = builder->graph().type(to);
  const ShardSource source = SourceInChain(from, builder->graph().type(from), /*partials=*/1, 0);
  const std::vector<BufferId>& shards = builder->schedule().shards.at(to);
  std::vector<Transfer> transfers;
  std::set<BufferId> filled;
  for (size_t s = 0; s < shards.size(); ++s) {
    if (!filled.insert(shards[s]).second) continue;
    const int32_t device = builder->buffer(shards[s]).device;
    for (BufferId id : Sources(*builder, source, type, static_cast<int64_t>(s), device)) {
      transfers.push_back({id, shards[s]});
    }
  }
  builder->AddTransfers(transfers, Phase::kForward, to.node);
}

}  // namespace isomer
