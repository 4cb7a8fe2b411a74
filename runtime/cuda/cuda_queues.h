// Streams, events and graphs of one device of a plan.
#ifndef ISOMER_RUNTIME_CUDA_CUDA_QUEUES_H_
#define ISOMER_RUNTIME_CUDA_CUDA_QUEUES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/device_queues.h"

namespace isomer {

// A stream for what is computed, and one, more urgent, for all queues of communications: NCCL's
// communicators may wait for each other for ever where two streams have them at one time. Copies to
// the host and from it have one each. They run beside what a device is given in no queue.
class CudaQueues : public DeviceQueues {
 public:
  // REQUIRES: the device outlives them.
  static absl::StatusOr<std::unique_ptr<CudaQueues>> Make(CudaDevice* device);
  ~CudaQueues() override;

  absl::Status Enter(int32_t queue) override;
  void Leave() override;
  absl::Status Mark(int32_t mark) override;
  absl::Status WaitFor(int32_t mark) override;
  absl::Status Hold() override;
  void Release() override;
  absl::Status Finish(const std::function<absl::Status()>& poll) override;
  absl::StatusOr<double> ElapsedUs(int32_t from_mark, int32_t to_mark) override;
  absl::Status BeginRecording() override;
  absl::StatusOr<int32_t> EndRecording() override;
  absl::Status Replay(int32_t recording) override;
  void DropRecordings() override;

 private:
  explicit CudaQueues(CudaDevice* device) : device_(*device) {}
  void* stream() const { return streams_[entered_]; }

  CudaDevice& device_;
  std::vector<void*> streams_;
  size_t entered_ = 0;
  unsigned* gate_ = nullptr;  // in memory of the host that the device reaches; open when it is 1
  std::map<int32_t, void*> events_;  // by mark
  std::vector<void*> recordings_;    // executable graphs
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_CUDA_QUEUES_H_
