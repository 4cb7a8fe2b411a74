#ifndef ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_WRITER_H_
#define ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "pcg/ir/graph.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint.pb.h"
#include "runtime/execution/job.h"

namespace isomer {

struct CheckpointOptions {
  std::string folder;
  int64_t keep = 3;        // the newest so many; 0: all
  int64_t keep_every = 0;  // and those of steps that are multiples; 0: none
};

// Writes checkpoints of a job while it goes on: at first its numbers are copied, which takes as
// long as memory does; a thread then brings the copy to the disk. Each process writes what its
// devices have, every number once; rank 0 waits for all, and gives the checkpoint its name.
class CheckpointWriter {
 public:
  // REQUIRES: `graph` and `job` outlive this. All processes make the same calls.
  CheckpointWriter(const Graph& graph, Job* job, CheckpointOptions options);
  // What is being written is given up, unless it was waited for.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Begins one of the job as it is, after `step` steps, when the one before is written. Errors are
  // final for the job.
  absl::Status Begin(int64_t step, uint64_t seed, const std::string& data);
  // The error of what is being written, if it has one by now; does not wait.
  absl::Status Poll();
  // Until what was begun is on the disk, all of it. All processes call it.
  absl::Status Wait();

  // The newest that is written; -1: none. On rank 0.
  int64_t newest() const { return newest_; }
  // Of the last: how long training stood still for it, and how long it took in all.
  double stall_us() const { return stall_us_; }
  double write_us() const { return write_us_; }

 private:
  // What a buffer held.
  struct Copy {
    StatePart part;
    std::vector<float> elements;
  };

  bool IsFirst() const { return control_ == nullptr || control_->rank() == 0; }
  int32_t num_ranks() const { return control_ == nullptr ? 1 : control_->num_ranks(); }
  std::string PathOf(const std::string& name) const { return options_.folder + "/" + name; }
  absl::Status GiveUp(const absl::Status& status);
  absl::Status MakeFolder(int64_t step, const StateLayout& layout);
  absl::Status TakeCopies();
  // In the thread.
  absl::Status Write(const CheckpointManifest& manifest, const StateLayout& layout);
  absl::Status WriteShare(const StateLayout& layout, const std::string& folder,
                          std::vector<uint64_t>* sums);
  absl::Status GatherShares(const std::string& folder, CheckpointManifest* manifest);
  absl::Status Finish(const std::string& folder, const CheckpointManifest& manifest);
  void DropOld(int64_t step);

  const Graph& graph_;
  Job& job_;
  const CheckpointOptions options_;
  ControlPlane* const control_;
  const CheckpointManifest tensors_;
  std::vector<Copy> copies_;
  std::thread thread_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable is_done_;
  bool is_writing_ = false;
  absl::Status status_;
  std::atomic<bool> is_given_up_ = false;
  std::atomic<int64_t> newest_ = -1;
  std::atomic<double> stall_us_ = 0, write_us_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_WRITER_H_
