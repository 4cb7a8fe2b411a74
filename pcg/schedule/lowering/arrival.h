// How the operands of tasks come to be on their devices. Internal to pcg/schedule.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_ARRIVAL_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_ARRIVAL_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// A box of a tensor that a device must have: that of the shard at `dims`, any copy of which will
// do, or of it with a halo, or beside it.
struct Need {
  int32_t device;
  std::vector<int64_t> dims;
  int64_t partial;
  Box box;
  int32_t moment = kNoMoment;  // of who needs it: a device may have a copy for each
};

class Arrivals {
 public:
  // `builder` must outlive this.
  explicit Arrivals(ScheduleBuilder* builder) : builder_(*builder) {}

  // The buffers that fulfil the needs: shards that are there, else received ones, with the
  // transfers that fill them. What a device has received once, it has for all of its tasks.
  std::vector<BufferId> Arrive(TensorRef tensor, const std::vector<Need>& needs, NodeId user);

 private:
  std::vector<BufferId> CopiesOf(TensorRef tensor, const Need& need) const;
  BufferId AddReceived(TensorRef tensor, const Need& need, int32_t moment);
  void ArriveWhole(TensorRef tensor, const std::vector<Need>& needs, std::vector<BufferId>* arrived,
                   std::vector<Transfer>* transfers);
  void ArriveWithHalos(TensorRef tensor, const std::vector<Need>& needs,
                       std::vector<BufferId>* arrived, std::vector<Transfer>* transfers);
  // The shards of one copy each that make the box together.
  std::vector<BufferId> SourcesOf(TensorRef tensor, const Need& need,
                                  std::map<BufferId, int>* readers) const;

  ScheduleBuilder& builder_;
  // (the first copy's buffer, device)
  absl::flat_hash_map<std::pair<BufferId, int32_t>, BufferId> received_;
  // (the shard at the need's place, device, box)
  std::map<std::tuple<BufferId, int32_t, std::string>, BufferId> received_boxes_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_ARRIVAL_H_
