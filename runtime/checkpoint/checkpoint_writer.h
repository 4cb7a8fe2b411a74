#ifndef ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_WRITER_H_
#define ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint.pb.h"
#include "runtime/checkpoint/staging_memory.h"
#include "runtime/checkpoint/state_file.h"
#include "runtime/execution/arrangement.h"
#include "runtime/execution/job.h"
#include "runtime/execution/worker.h"

namespace isomer {

struct CheckpointOptions {
  std::string folder;
  int64_t keep = 3;        // the newest so many; 0: all
  int64_t keep_every = 0;  // and those of steps that are multiples; 0: none
  // There will be several: memory for the copy is made ready before the first, beside the steps.
  bool prepares = false;
  // A disk that is waited for, and does not go on for so long, ends the job; 0: none does.
  std::chrono::milliseconds stall_timeout{0};
};

// Writes checkpoints of a job while it goes on. Its numbers are copied while the next step computes
// gradients, which does not change them: what is not copied when that step is about to update, the
// step waits for. Where numbers cannot be read beside a step (Job::CanReadBesideSteps) they are
// copied at first. A thread then brings the copy to the disk. Each process writes what its devices
// have, every number once; rank 0 waits for all, and gives the checkpoint its name.
class CheckpointWriter {
 public:
  // Error: memory for the copy. REQUIRES: `graph` and `job` outlive it. All processes make the same
  // calls.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Make(const Graph& graph, Job* job,
                                                                CheckpointOptions options);
  // What is being written is given up, unless it was waited for.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Begins one of the job as it is, after `step` steps, when the one before is written. `stopping`:
  // of its tests; that of the best stays, too. Errors are final for the job.
  absl::Status Begin(int64_t step, uint64_t seed, const std::string& data,
                     const std::optional<CheckpointManifest::Stopping>& stopping = std::nullopt);
  // The error of what is being written, if it has one by now; does not wait.
  absl::Status Poll();
  // Until what was begun is on the disk, all of it. All processes call it.
  absl::Status Wait();

  // The newest that is written; -1: none. On rank 0.
  int64_t newest() const { return newest_; }
  // The longest that training stood still for one of those that were waited for, and the longest
  // that one took in all. The wait of a step for one that is written when the next is due is not in
  // it: `waited_us` has the longest of those.
  double stall_us() const { return stall_us_; }
  double write_us() const { return write_us_; }
  double waited_us() const { return waited_us_; }
  // How long training stood still so far, for all that were waited for, and waiting for them.
  double total_us() const { return total_us_; }

 private:
  // Of a buffer: where its copy is, and what of which tensor of the file that is.
  struct Part {
    StatePart part;
    int64_t place = 0;  // in bytes of the staging memory
    Arrangement arrangement;
    std::vector<std::pair<NodeId, size_t>> tensors;  // of each leaf: which one of the file
  };

  CheckpointWriter(const Graph& graph, Job* job, CheckpointOptions options);
  bool IsFirst() const { return control_ == nullptr || control_->rank() == 0; }
  int32_t num_ranks() const { return control_ == nullptr ? 1 : control_->num_ranks(); }
  std::string PathOf(const std::string& name) const { return options_.folder + "/" + name; }
  absl::Status FindParts();
  absl::Status GiveUp(const absl::Status& status);
  void RemoveUnfinished() const;
  absl::Status MakeFolder(int64_t step, const StateLayout& layout);
  absl::Status TakeCopies();
  // Of a device's thread that is about to update: until all is copied.
  absl::Status WaitForCopies();
  // In the thread.
  absl::Status Write(const CheckpointManifest& manifest, const StateLayout& layout);
  absl::Status CopyBesideStep();
  absl::Status CheckIsFinite(const Part& part, int64_t step) const;
  absl::Status WriteShare(int64_t step, const StateLayout& layout, const std::string& folder,
                          std::vector<uint64_t>* sums);
  absl::Status WriteUnheld(const StateLayout& layout, StateFileWriter* file,
                           std::vector<PositionSum>* sums);
  absl::Status GatherShares(const std::string& folder, CheckpointManifest* manifest);
  absl::Status Finish(const std::string& folder, const CheckpointManifest& manifest);
  void DropOld(const CheckpointManifest& newest);

  const Graph& graph_;
  Job& job_;
  const CheckpointOptions options_;
  ControlPlane* const control_;
  const CheckpointManifest tensors_;
  std::map<std::pair<std::string, int32_t>, size_t> tensor_of_;  // of a leaf and a slot
  std::vector<Part> parts_;
  std::map<BufferId, size_t> part_of_;
  std::unique_ptr<StagingMemory> memory_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_writing_ = false, is_copying_ = false;
  absl::Status status_;
  double begin_us_ = 0, held_us_ = 0;  // of the one that is written: how long steps stood still
  std::atomic<bool> is_given_up_ = false;
  std::atomic<int64_t> newest_ = -1;
  std::atomic<double> stall_us_ = 0, write_us_ = 0, waited_us_ = 0;
  double total_us_ = 0;
  // The last: they use what is above.
  std::vector<std::unique_ptr<Worker>> copiers_;
  Worker thread_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_WRITER_H_
