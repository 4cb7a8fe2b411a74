// The queues of a device that runs what it is given while the host goes on.
#ifndef ISOMER_RUNTIME_DEVICE_DEVICE_QUEUES_H_
#define ISOMER_RUNTIME_DEVICE_DEVICE_QUEUES_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace isomer {

// Of one device, whose thread alone uses them. Queue 0 is the first and the last: others begin
// behind it, and it ends behind the others, by marks.
class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;

  // What this thread asks of the device from now on (DeviceOperations, kernels, communicators) is
  // given to that queue; after Leave, to none of them.
  virtual absl::Status Enter(int32_t queue) = 0;
  virtual void Leave() = 0;
  // A mark stands for what the entered queue was given so far, until it is made again. Marks are
  // numbers from 0 on, which may be any.
  virtual absl::Status Mark(int32_t mark) = 0;
  // The entered queue goes on when what the mark stands for is done.
  virtual absl::Status WaitFor(int32_t mark) = 0;

  // What the entered queue is given next begins when Release is called, which any must be: so all
  // of it is there when it begins. For a few pieces of work: a device may hold no more of them.
  virtual absl::Status Hold() = 0;
  virtual void Release() = 0;

  // Until queue 0 has done all that it was given; the first error of that. `poll`, called now and
  // then meanwhile, may give up with an error.
  virtual absl::Status Finish(const std::function<absl::Status()>& poll) = 0;
  // How long after one mark the other was reached. REQUIRES: both were.
  virtual absl::StatusOr<double> ElapsedUs(int32_t from_mark, int32_t to_mark) = 0;

  // What the queues are given, from queue 0 on and back to it, is noted and not done. Errors of
  // what is given need EndRecording, too. A recording is a number.
  virtual absl::Status BeginRecording() = 0;
  virtual absl::StatusOr<int32_t> EndRecording() = 0;
  // Gives queue 0 all that was noted.
  virtual absl::Status Replay(int32_t recording) = 0;
  // There are none any more, replayed ones excepted that are not over yet.
  virtual void DropRecordings() = 0;
};

// Leaves the queues when it ends.
class LeavesQueues {
 public:
  explicit LeavesQueues(DeviceQueues* queues) : queues_(*queues) {}
  ~LeavesQueues() { queues_.Leave(); }
  LeavesQueues(const LeavesQueues&) = delete;
  LeavesQueues& operator=(const LeavesQueues&) = delete;

 private:
  DeviceQueues& queues_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DEVICE_DEVICE_QUEUES_H_
