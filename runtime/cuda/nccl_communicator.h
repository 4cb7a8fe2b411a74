// Collectives between GPUs, by NCCL: each call only gives the thread's stream something to do.
#ifndef ISOMER_RUNTIME_CUDA_NCCL_COMMUNICATOR_H_
#define ISOMER_RUNTIME_CUDA_NCCL_COMMUNICATOR_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/nccl.h"
#include "runtime/device/communicator.h"
#include "runtime/device/control_plane.h"

namespace isomer {

// A communicator of NCCL's for each group, made once, and one of all ranks for messages. Sums are
// the same on all ranks of a call, in an order that is NCCL's; those of bfloat16 and float16 are
// rounded on the way.
class NcclCommunicator : public Communicator {
 public:
  // All ranks call this with the same groups, whose order is of no matter, from their device's
  // thread. Errors: of NCCL, or that a rank did not come in time. REQUIRES: all outlive it.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Make(const Nccl& nccl,
                                                                CudaDevice* device,
                                                                ControlPlane* control,
                                                                const CommunicationGroups& groups,
                                                                std::chrono::milliseconds timeout);
  // All ranks at one time, or after Abort.
  ~NcclCommunicator() override;

  int32_t rank() const override { return control_.rank(); }
  int32_t num_ranks() const override { return control_.num_ranks(); }
  absl::Status AllReduce(absl::Span<const int32_t> group, DataType dtype, void* data,
                         int64_t count) override;
  absl::Status Reduce(absl::Span<const int32_t> group, int32_t root, DataType dtype,
                      const void* send, void* receive, int64_t count) override;
  absl::Status Broadcast(absl::Span<const int32_t> group, int32_t root, void* data,
                         int64_t bytes) override;
  absl::Status ReduceScatter(absl::Span<const int32_t> group, DataType dtype, const void* send,
                             void* receive, int64_t count) override;
  absl::Status AllGather(absl::Span<const int32_t> group, const void* send, void* receive,
                         int64_t bytes) override;
  absl::Status AllToAll(absl::Span<const int32_t> group, const void* send, void* receive,
                        int64_t bytes) override;
  absl::Status SendReceive(absl::Span<const int32_t> group, absl::Span<const Send> sends,
                           absl::Span<const Receive> receives) override;
  void Abort(const absl::Status& status) override;
  // Itself: its calls meet in the order in which they are given.
  Communicator& Channel(int) override { return *this; }

  bool is_asynchronous() const override { return true; }
  bool can_be_recorded() const override;
  absl::Status CheckProgress(const Progress& progress) override;

 private:
  NcclCommunicator(const Nccl& nccl, CudaDevice* device, ControlPlane* control,
                   std::chrono::milliseconds timeout)
      : nccl_(nccl), device_(*device), control_(*control), timeout_(timeout) {}
  absl::Status Connect(const CommunicationGroups& groups);
  absl::StatusOr<Nccl::Comm> CommOf(absl::Span<const int32_t> group) const;
  // Until what the library was asked for is given to the stream, as it says with `result`.
  absl::Status Settle(Nccl::Comm comm, int result, const char* call,
                      absl::Span<const int32_t> group);
  absl::Status Failed(Nccl::Comm comm, int result, const char* call,
                      absl::Span<const int32_t> group) const;
  // Several messages as one call.
  template <typename Messages>
  absl::Status Grouped(Nccl::Comm comm, const char* call, absl::Span<const int32_t> group,
                       Messages messages);

  const Nccl nccl_;
  CudaDevice& device_;
  ControlPlane& control_;
  const std::chrono::milliseconds timeout_;
  std::map<std::vector<int32_t>, Nccl::Comm> comms_;  // by group
  std::atomic<bool> aborted_ = false;
  // Of the communication that has begun and not ended: which, since when, and whether others know.
  int64_t begun_ = 0;
  bool has_posted_ = false;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_NCCL_COMMUNICATOR_H_
