// What the processes and threads of a job tell each other beside what their devices compute: that
// they are there, sizes, times, outputs, errors. Bytes of the host, a few at a time; tensors go
// from device to device (communicator.h).
#ifndef ISOMER_RUNTIME_DEVICE_CONTROL_PLANE_H_
#define ISOMER_RUNTIME_DEVICE_CONTROL_PLANE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace isomer {

// A message between two ranks: they arrive in the order in which they are listed.
struct Send {
  int32_t to;
  const void* data;
  int64_t bytes;
};
struct Receive {
  int32_t from;
  void* data;
  int64_t bytes;
};

// Of one rank, which has one device. All ranks make the same calls in one order, none while its
// device runs. Any error is final for the whole job: it reaches all ranks, those that wait
// included. A rank that fails elsewhere must call Abort. Nothing waits for ever.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t num_ranks() const = 0;
  // Among the ranks of this computer, which share its cores.
  virtual int32_t local_rank() const { return rank(); }
  virtual int32_t num_local_ranks() const { return num_ranks(); }

  // Leaves when all have come.
  virtual absl::Status Meet() = 0;
  // The bytes of all, by rank; they need not be of one size.
  virtual absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine) = 0;
  // Every rank lists what it sends and what it gets.
  virtual absl::Status Exchange(absl::Span<const Send> sends,
                                absl::Span<const Receive> receives) = 0;

  // Ends the job with `status` on every rank.
  virtual void Abort(const absl::Status& status) = 0;

  // What follows may be called while the device runs. The error of the job, if it has one; does not
  // wait.
  virtual absl::Status Poll() { return absl::OkStatus(); }
  // Tells the others how far this rank is, and how far they said they are: a number that rises. Who
  // never said so, or cannot be heard, is at kUnknown.
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  virtual void Post(int64_t /*progress*/) {}
  virtual int64_t Posted(int32_t /*rank*/) const { return kUnknown; }
  // Whether the other ranks are other processes.
  virtual bool has_own_process() const { return false; }
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_CONTROL_PLANE_H_
