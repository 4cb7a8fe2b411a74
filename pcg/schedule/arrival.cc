#include "pcg/schedule/arrival.h"

#include <algorithm>

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
  std::map<BufferId, int> readers;  // how often a copy is read so far
  auto is_shard = [&](const Need& need) { return need.box == ShardBox(type, need.dims); };
  // Own devices first, so that the copies nobody has are left for the others.
  for (size_t i = 0; i < needs.size(); ++i) {
    if (!is_shard(needs[i])) continue;
    BufferId own = kNoBuffer;
    for (BufferId copy : CopiesOf(tensor, needs[i])) {
      const auto received = received_.find({copy, needs[i].device});
      if (builder_.buffer(copy).device == needs[i].device) {
        const bool of_moment = builder_.buffer(copy).moment == needs[i].moment;
        if (own == kNoBuffer || of_moment) own = copy;
        if (of_moment || builder_.buffer(copy).moment == kNoMoment) break;
      }
      if (received != received_.end()) (*arrived)[i] = received->second;
    }
    if (own == kNoBuffer) continue;
    (*arrived)[i] = own;
    ++readers[own];
  }
  for (size_t i = 0; i < needs.size(); ++i) {
    if ((*arrived)[i] != kNoBuffer || !is_shard(needs[i])) continue;
    const std::vector<BufferId> copies = CopiesOf(tensor, needs[i]);
    // Another micro-batch of the device may have asked for it.
    for (BufferId copy : copies) {
      const auto received = received_.find({copy, needs[i].device});
      if (received != received_.end()) (*arrived)[i] = received->second;
    }
    if ((*arrived)[i] != kNoBuffer) continue;
    const BufferId from =
        *std::min_element(copies.begin(), copies.end(),
                          [&](BufferId a, BufferId b) { return readers[a] < readers[b]; });
    ++readers[from];
    (*arrived)[i] = received_[{from, needs[i].device}] =
        AddReceived(tensor, needs[i], builder_.buffer(from).moment);
    transfers->push_back({from, (*arrived)[i]});
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
