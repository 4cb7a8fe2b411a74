#include "pcg/schedule/lowering/arrival.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace isomer {

std::vector<BufferId> Arrivals::CopiesOf(TensorRef tensor, const Need& need) const {
  const TensorType& type = builder_.graph().type(tensor);
  const std::vector<BufferId>& shards = builder_.schedule().shards.at(tensor);
  std::vector<BufferId> copies;
  for (int64_t c = 0; c < type.copies; ++c) {
    copies.push_back(shards[ShardAt(type, {need.dims, c, need.partial})]);
  }
  return copies;
}

BufferId Arrivals::AddReceived(TensorRef tensor, const Need& need, int32_t moment) {
  const TensorType& type = builder_.graph().type(tensor);
  const int64_t shard = ShardAt(type, {need.dims, 0, need.partial});
  return builder_.AddBuffer({.role = BufferRole::kReceived,
                             .tensor = tensor,
                             .shard = static_cast<int32_t>(shard),
                             .device = need.device,
                             .dtype = type.dtype,
                             .box = need.box,
                             .moment = moment});
}

std::vector<BufferId> Arrivals::Arrive(TensorRef tensor, const std::vector<Need>& needs,
                                       NodeId user) {
  std::vector<BufferId> arrived(needs.size(), kNoBuffer);
  std::vector<Transfer> transfers;
  ArriveWhole(tensor, needs, &arrived, &transfers);
  ArriveWithHalos(tensor, needs, &arrived, &transfers);
  builder_.AddTransfers(transfers, Phase::kForward, user);
  return arrived;
}

void Arrivals::ArriveWhole(TensorRef tensor, const std::vector<Need>& needs,
                           std::vector<BufferId>* arrived, std::vector<Transfer>* transfers) {
  const TensorType& type = builder_.graph().type(tensor);
  const std::vector<BufferId>& shards = builder_.schedule().shards.at(tensor);
  const auto first_copy = [&](const Need& need) {
    return ShardAt(type, {need.dims, 0, need.partial});
  };
  auto is_shard = [&](const Need& need) { return need.box == ShardBox(type, need.dims); };
  // Copies of a piece lie apart by the number of partials.
  // ((first copy, device), micro-batch, or kAny for the first of any).
  constexpr int32_t kAny = kNoMoment - 1;
  absl::flat_hash_map<std::pair<std::pair<int64_t, int32_t>, int32_t>, BufferId> of_moment;
  for (size_t s = 0; s < shards.size(); ++s) {
    const int64_t shard = static_cast<int64_t>(s);
    const int64_t copy = shard / type.partials % type.copies;
    const Buffer& buffer = builder_.buffer(shards[s]);
    const std::pair place(shard - copy * type.partials, buffer.device);
    of_moment.try_emplace({place, buffer.moment}, shards[s]);
    of_moment.try_emplace({place, kAny}, shards[s]);
  }
  absl::flat_hash_map<BufferId, int> readers;  // how often a copy is read so far
  // Own devices first, so that the copies nobody has are left for the others.
  std::vector<size_t> others;
  for (size_t i = 0; i < needs.size(); ++i) {
    if (!is_shard(needs[i])) continue;
    const int64_t first = first_copy(needs[i]);
    auto own = of_moment.find({{first, needs[i].device}, needs[i].moment});
    if (own == of_moment.end()) own = of_moment.find({{first, needs[i].device}, kAny});
    if (own == of_moment.end()) {
      others.push_back(i);
      continue;
    }
    (*arrived)[i] = own->second;
    ++readers[own->second];
  }
  for (size_t i : others) {
    // Another micro-batch of the device may have asked for it.
    const int64_t first = first_copy(needs[i]);
    BufferId& received =
        received_.try_emplace({shards[first], needs[i].device}, kNoBuffer).first->second;
    if (received == kNoBuffer) {
      const std::vector<BufferId> copies = CopiesOf(tensor, needs[i]);
      const BufferId from =
          *std::min_element(copies.begin(), copies.end(),
                            [&](BufferId a, BufferId b) { return readers[a] < readers[b]; });
      ++readers[from];
      received = AddReceived(tensor, needs[i], builder_.buffer(from).moment);
      transfers->push_back({from, received});
    }
    (*arrived)[i] = received;
  }
}

// Shards of one partial are disjoint, so that the sum of the parts that arrive, which is what a
// transfer writes, is the box.
void Arrivals::ArriveWithHalos(TensorRef tensor, const std::vector<Need>& needs,
                               std::vector<BufferId>* arrived, std::vector<Transfer>* transfers) {
  std::map<BufferId, int> readers;
  for (size_t i = 0; i < needs.size(); ++i) {
    const Need& need = needs[i];
    if ((*arrived)[i] != kNoBuffer) continue;
    auto [received, added] = received_boxes_.try_emplace(
        {CopiesOf(tensor, need)[0], need.device, need.box.ToString()}, kNoBuffer);
    if (added) {
      const std::vector<BufferId> sources = SourcesOf(tensor, need, &readers);
      received->second = AddReceived(tensor, need, builder_.buffer(sources[0]).moment);
      for (BufferId from : sources) {
        builder_.ShareBuffer(received->second, builder_.buffer(from).moment);
        transfers->push_back({from, received->second});
      }
    }
    (*arrived)[i] = received->second;
  }
}

// Of every shard that overlaps the box, the copy on the receiving device; else the copy whose
// number the device's own shard has, which is likely to be near; else the one that is read least.
std::vector<BufferId> Arrivals::SourcesOf(TensorRef tensor, const Need& need,
                                          std::map<BufferId, int>* readers) const {
  auto here = [&](BufferId id) { return builder_.buffer(id).device == need.device; };
  const std::vector<BufferId> own = CopiesOf(tensor, need);
  const auto own_copy = std::find_if(own.begin(), own.end(), here) - own.begin();
  std::vector<BufferId> sources;
  Need part = need;
  for (const std::vector<int64_t>& dims :
       OverlappingPieces(builder_.graph().type(tensor), need.box)) {
    part.dims = dims;
    const std::vector<BufferId> copies = CopiesOf(tensor, part);
    auto rank = [&](int64_t copy) {  // Less is better.
      return std::tuple(!here(copies[copy]), copy != own_copy, (*readers)[copies[copy]], copy);
    };
    int64_t best = 0;
    for (int64_t c = 1; c < static_cast<int64_t>(copies.size()); ++c) {
      if (rank(c) < rank(best)) best = c;
    }
    ++(*readers)[copies[best]];
    sources.push_back(copies[best]);
  }
  return sources;
}

}  // namespace isomer
