// How the gradients of parameters are synchronised, and parameters updated. Internal to
// pcg/schedule; schedule.h has the table of methods.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_UPDATE_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_UPDATE_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "pcg/schedule/lowering/builder.h"

namespace isomer {

// What an update takes.
void SetUpdateWork(const Schedule& schedule, Task* task);

class UpdateLowering {
 public:
  // `builder`, which has the forward tasks, must outlive this.
  explicit UpdateLowering(ScheduleBuilder* builder);

  // The copies of a shard of parameter `parameter`, of which shard `first` is the first, have their
  // shares of the gradient (empty: the loss does not depend on it). Adds the task that synchronises
  // them, now or when their bucket is closed. REQUIRES: called once for all copies; if the method
  // is kShardedGradients, once for each micro-batch, which it names.
  void GradientIsReady(size_t parameter, size_t first, std::vector<BufferId> gradients,
                       int32_t moment);
  // Adds the tasks of the update phase, and those that fill the states.
  void LowerUpdates();

 private:
  // The copies of a shard, by device, with their gradients. Copies at several moments of a device
  // are one buffer, and one here.
  struct Piece {
    size_t parameter;
    std::vector<std::vector<size_t>> shards;
    std::vector<BufferId> copies, gradients;
  };
  // Pieces that are synchronised together; one that has no copies is alone.
  struct Bucket {
    UpdateMethod method = UpdateMethod::kAllReduce;
    std::vector<int32_t> devices;
    size_t owner = 0;  // kOwner: a member
    std::vector<Piece> pieces;
    int64_t bytes = 0;  // on a device
  };
  using Key = std::tuple<UpdateMethod, std::vector<int32_t>, DataType, int32_t>;  // micro-batch
  struct Open {
    Bucket bucket;
    int64_t capacity = 0;
    int64_t pieces_to_come = 0;
  };

  UpdateMethod MethodOf(size_t parameter);
  void SetGradient(const Piece& piece, size_t member, BufferId gradient);
  void SetTrained(const Piece& piece, size_t member, BufferId master);
  Piece PieceAt(size_t parameter, size_t first, const std::vector<BufferId>& gradients) const;
  // Whether there are micro-batches, each of which has its own share of the gradient.
  bool IsReadByMicroBatches(const Schedule::HostTensor& parameter);
  Key KeyOf(const Piece& piece, int32_t moment) const;
  void PartsAreReady(const Piece& piece);
  // Adds the bucket's synchronisation, and keeps the bucket for its updates.
  void Close(Bucket* bucket);
  void CloseImmediate(Bucket bucket);
  void Synchronise(Bucket* bucket);
  void ScatterGradients(Bucket* bucket);
  // Adds parts of gradients to those of the first micro-batch, and leaves in the bucket those that
  // are the first.
  void AccumulateParts(Bucket* bucket);
  // Of what is closed, what has one copy becomes one bucket for each device, before the others.
  void JoinUnsynchronised();
  void LowerBucket(const Bucket& bucket);
  // Updates a member's copies, or the parts of them that its gradients are of: in place, or into
  // buffers for the parts. Returns what is updated.
  std::vector<BufferId> AddUpdate(const Bucket& bucket, size_t member);
  // A float32 buffer for what is kept of what is updated, and the task that sets it at first.
  BufferId AddKept(BufferRole role, BufferId updated, DataType dtype = DataType::kFloat32);
  Task& AddCollective(TaskKind kind, Phase phase, const Bucket& bucket, std::vector<BufferId> reads,
                      std::vector<BufferId> writes);

  ScheduleBuilder& builder_;
  std::vector<bool> read_by_all_;  // by buffer: by a task of no micro-batch; empty: not known yet
  std::map<Key, Open> open_;
  std::map<int32_t, int64_t> owned_bytes_;  // by device
  // kShardedGradients: the parts that those of later micro-batches are added to, by parameter and
  // first shard.
  std::map<std::pair<size_t, size_t>, std::vector<BufferId>> parts_;
  // To be updated, in order of their synchronisation. If that is immediate, of the same devices one
  // at most: the update of a bucket waits for the next, so that it does not wait for its sums.
  std::vector<Bucket> closed_;
};

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_UPDATE_H_
