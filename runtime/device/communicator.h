#ifndef ISOMER_RUNTIME_DEVICE_COMMUNICATOR_H_
#define ISOMER_RUNTIME_DEVICE_COMMUNICATOR_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pcg/ir/tensor_type.h"
#include "runtime/device/control_plane.h"

namespace isomer {

// Who communicates with whom in a plan.
struct CommunicationGroups {
  std::set<std::vector<int32_t>> of_collectives;
  bool has_messages = false;
};

// The collectives of one rank, on the memory of its device. Every rank of `group` (ascending, this
// rank among them) must make the same call, and ranks that share several groups meet their calls in
// one order. Sums are in an order that depends on the group alone, so results are the same in every
// run and on every rank; those of floats are in float32, and rounded once.
//
// Any error is final for the whole job: it reaches all ranks, those that wait included. A rank that
// fails elsewhere must call Abort. Nothing waits for ever.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t num_ranks() const = 0;

  // data := sum over the group.
  virtual absl::Status AllReduce(absl::Span<const int32_t> group, DataType dtype, void* data,
                                 int64_t count) = 0;
  // `receive`, on `root` alone (null elsewhere), := the sum of the group's `send`s; it may be the
  // root's `send`. No other `send` changes.
  virtual absl::Status Reduce(absl::Span<const int32_t> group, int32_t root, DataType dtype,
                              const void* send, void* receive, int64_t count) = 0;
  // data := what it is on `root`.
  virtual absl::Status Broadcast(absl::Span<const int32_t> group, int32_t root, void* data,
                                 int64_t bytes) = 0;
  // `send` holds one piece of `count` numbers per member; `receive` := the sum of the group's
  // pieces for this rank. They do not overlap.
  virtual absl::Status ReduceScatter(absl::Span<const int32_t> group, DataType dtype,
                                     const void* send, void* receive, int64_t count) = 0;
  // `receive` := the `send`s of all members, side by side. They do not overlap.
  virtual absl::Status AllGather(absl::Span<const int32_t> group, const void* send, void* receive,
                                 int64_t bytes) = 0;
  // Piece m of `send` goes to member m; `receive` := the pieces for this rank, in group order.
  virtual absl::Status AllToAll(absl::Span<const int32_t> group, const void* send, void* receive,
                                int64_t bytes) = 0;
  virtual absl::Status SendReceive(absl::Span<const int32_t> group, absl::Span<const Send> sends,
                                   absl::Span<const Receive> receives) = 0;

  // Ends the job with `status` on every rank.
  virtual void Abort(const absl::Status& status) = 0;

  // Whether its calls only give their device something to do; and whether that may be recorded, to
  // be done again (device_queues.h).
  virtual bool is_asynchronous() const { return false; }
  virtual bool can_be_recorded() const { return false; }
  // How far a device's communications are, by numbers that rise and mean the same on all ranks: the
  // last that began, and the last that ended. `call`, `group`: of that which has begun.
  struct Progress {
    int64_t begun = 0, ended = 0;
    const char* call = "";
    absl::Span<const int32_t> group = {};
  };
  // Of an asynchronous one, while its device is at work: an error if what it does will not end.
  virtual absl::Status CheckProgress(const Progress&) { return absl::OkStatus(); }

  // Whether this rank computes meanwhile, on the cores of the threads that communicate; true unless
  // it is said. Who waits for messages may leave it the core. From any thread.
  virtual void SetComputes(bool /*computes*/) {}

  // Others of the same ranks and of the same job, whose calls meet their own alone: for threads
  // beside the one that uses this, which is channel 0. They live as long. REQUIRES: this is channel
  // 0; `channel` is below kMostChannels.
  static constexpr int kMostChannels = 4;
  virtual Communicator& Channel(int channel) = 0;
};

// Of devices whose memory is the host's: what carries tensors carries other bytes, too.
class HostCommunicator : public Communicator, public ControlPlane {
 public:
  int32_t rank() const override = 0;
  int32_t num_ranks() const override = 0;
  void Abort(const absl::Status& status) override = 0;

  absl::Status Meet() override;
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine) override;
  absl::Status Exchange(absl::Span<const Send> sends, absl::Span<const Receive> receives) override;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_COMMUNICATOR_H_
