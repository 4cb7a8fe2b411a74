// What carries messages between the processes of a job.
#ifndef ISOMER_RUNTIME_COMMUNICATION_PROCESS_MESSAGES_H_
#define ISOMER_RUNTIME_COMMUNICATION_PROCESS_MESSAGES_H_

#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/device/communicator.h"
#include "runtime/device/control_plane.h"

namespace isomer {

struct ProcessOptions {
  // A call that waits longer for another rank, while all wait, aborts the job and says for whom it
  // waited.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  // And while others work: no computation between two messages takes so long.
  std::chrono::milliseconds longest_work = std::chrono::hours(1);
  // A rank that is not heard for so long is lost (liveness.h); 0: none is.
  std::chrono::milliseconds stall_timeout = std::chrono::seconds(5);
  // Larger messages of MPI's travel in parts: it counts bytes in an int.
  int64_t max_message_bytes = int64_t{1} << 30;
  // Of a rank, that may want a core each.
  int32_t threads_per_rank = 1;
};

class ProcessMessages {
 public:
  virtual ~ProcessMessages() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t num_ranks() const = 0;
  virtual int32_t local_rank() const = 0;
  virtual int32_t num_local_ranks() const = 0;
  // Whether they may be used from another thread than that which made them.
  virtual bool serves_other_threads() const = 0;

  // Sends and receives, and waits for all of them. `call` and `group` must be those of the ranks
  // at the other ends, and so must the channel, below kMostChannels, else they do not meet. From
  // any thread, if others than the first are served; of a channel, from one at a time.
  static constexpr int kMostChannels = Communicator::kMostChannels;
  virtual absl::Status Exchange(int channel, const char* call, absl::Span<const int32_t> group,
                                absl::Span<const Send> sends,
                                absl::Span<const Receive> receives) = 0;
  // See Communicator.
  virtual void SetComputes(bool computes) = 0;
  // The first error stays that of this rank, and is sent to the others. From any thread.
  virtual void Abort(const absl::Status& status) = 0;
  // See ProcessCommunicator.
  virtual absl::Status Finish(const absl::Status& status) = 0;
  // Whether this rank says what went wrong: the first that is left.
  virtual bool speaks() const { return rank() == 0; }
  // See ControlPlane.
  virtual absl::Status Poll() = 0;
  virtual void Post(int64_t /*progress*/) {}
  virtual int64_t Posted(int32_t /*rank*/) const { return ControlPlane::kUnknown; }

 protected:
  // Meets all ranks by messages to and from rank 0.
  absl::Status MeetToFinish();
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_COMMUNICATION_PROCESS_MESSAGES_H_
