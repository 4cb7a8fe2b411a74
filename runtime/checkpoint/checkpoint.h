// Checkpoints of a training: what it has made of the weights and of the optimizer's states, by
// leaf of the model, so that it goes on under any plan, on any number of devices.
//
// A folder has one folder of each: `step-000000300`, with
//   checkpoint         what it is of (checkpoint.proto), written last
//   state.safetensors  all tensors (state_file.h)
// While it is written its name begins with a dot; what is under another name is whole.
#ifndef ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_
#define ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"
#include "runtime/checkpoint/checkpoint.pb.h"
#include "runtime/checkpoint/state_file.h"
#include "runtime/execution/job.h"
#include "runtime/execution/leaf_values.h"

namespace isomer {

inline constexpr char kManifestFile[] = "checkpoint", kManifestKind[] = "checkpoint";
inline constexpr char kStateFile[] = "state.safetensors";

std::string CheckpointName(int64_t step);
std::string UnfinishedName(int64_t step);
bool IsUnfinishedName(absl::string_view name);
// The steps of which the folder has checkpoints, ascending; none if there is no such folder.
std::vector<int64_t> CheckpointSteps(const std::string& folder);

// Makes the folder where there is none, and finds out whether it can be written to, and whether all
// processes see what the first writes there: "--checkpoint_dir=d: rank 1 does not see what rank 0
// writes there". `stall_timeout`: for a disk that does not answer (disk_progress.h). `control`: of
// the processes that all do this; null: there is one.
absl::Status TryFolder(const std::string& folder, std::chrono::milliseconds stall_timeout,
                       ControlPlane* control);

// The tensors that a job's checkpoints have, without values: of each trained leaf the weight, and
// its states where there are any, in the order of the graph.
CheckpointManifest ManifestOf(const Graph& graph, const Schedule& schedule);
// Error: it is of no optimizer that there is.
absl::StatusOr<StateLayout> LayoutOf(const CheckpointManifest& manifest);

// One that is read.
class Checkpoint {
 public:
  // `path`: of its folder. Errors name the file: it is missing, damaged, of another size.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  // That every tensor with a number equal to `share` modulo `shares` is what was written.
  absl::Status Verify(int64_t share, int64_t shares) const;
  // That a job trains what this is of; averages may be there or not. Errors name the first tensor
  // that is not alike.
  absl::Status CheckFits(const CheckpointManifest& job) const;
  // Sets the job to what it was. `initial`: of leaves that are not trained.
  absl::Status Restore(const LeafValues& initial, Job* job) const;

  // Whether it has averages of the weights.
  bool has_averages() const;
  const CheckpointManifest& manifest() const { return manifest_; }
  const std::string& path() const { return path_; }

 private:
  Checkpoint(std::string path, CheckpointManifest manifest, StateLayout layout, StateFile file)
      : path_(std::move(path)),
        manifest_(std::move(manifest)),
        layout_(std::move(layout)),
        file_(std::move(file)) {}

  const std::string path_;  // of its folder
  const CheckpointManifest manifest_;
  const StateLayout layout_;
  const StateFile file_;
};

// One that is opened and verified. `control`: of the processes that all do this, each with a share
// of the work; null: there is one. DataLoss, on all of them: it is damaged.
absl::StatusOr<std::unique_ptr<Checkpoint>> WholeCheckpoint(const std::string& path,
                                                            ControlPlane* control);
// The newest that is whole; null: there is none. Of those that are not, `notes` gets a line each.
absl::StatusOr<std::unique_ptr<Checkpoint>> NewestCheckpoint(const std::string& folder,
                                                             ControlPlane* control,
                                                             std::vector<std::string>* notes);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINT_CHECKPOINT_H_
