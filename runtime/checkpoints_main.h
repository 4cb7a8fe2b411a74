#ifndef ISOMER_RUNTIME_CHECKPOINTS_MAIN_H_
#define ISOMER_RUNTIME_CHECKPOINTS_MAIN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/plan.h"
#include "pcg/support/json.h"
#include "runtime/checkpoint/checkpoint.pb.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/execution/job.h"
#include "runtime/execution/leaf_values.h"

namespace isomer {

// Ends of isomer-run beside those of all programs: the run was ended before its last step.
inline constexpr int kExitStopped = 3;

// What isomer-run's flags say of checkpoints: where to go on, when to write one.
class Checkpoints {
 public:
  // Refuses flags that do not go together, before anything is done.
  static absl::Status CheckFlags(const std::string& mode);
  // Null: no --checkpoint_dir. Refuses a folder that has some already, unless --resume goes on from
  // them. REQUIRES: `graph` and `job` outlive it.
  // `stall_timeout` as CheckpointOptions has it.
  static absl::StatusOr<std::unique_ptr<Checkpoints>> FromFlags(
      const Graph& graph, Job* job, std::chrono::milliseconds stall_timeout, bool speaks);

  // Sets the job to the newest one that is whole, or to the initial values. `data`: what the
  // batches are made of.
  absl::Status Load(const LeafValues& initial, uint64_t seed, const std::string& data);
  // Steps that it has.
  int64_t first_step() const { return first_step_; }
  // What its tests had found; nothing: it had none.
  const std::optional<CheckpointManifest::Stopping>& stopping() const { return stopping_; }
  // Of the tests so far: part of what is written from now on; the checkpoint of the best stays.
  void set_stopping(const CheckpointManifest::Stopping& stopping) { stopping_ = stopping; }

  // Between two steps, `done` of `steps`: writes one if it is time, or the best test's step, and
  // says which signal asked to stop, on all processes alike; null: go on.
  absl::StatusOr<const char*> AfterStep(int64_t done, int64_t steps);
  // Sets the job to what it was after the best test, of an earlier run. Errors: there is no such
  // checkpoint any more.
  absl::Status LoadBest(const LeafValues& initial);
  // How long training stood still for them, in total.
  double stall_us() const { return writer_->total_us(); }
  // Until all is written.
  absl::Status End(Json* summary);
  // An error of a run with --checkpoint_dir, and how to go on.
  static absl::Status WithAdvice(const absl::Status& status);

 private:
  Checkpoints(const Graph& graph, Job* job, std::string folder, int64_t every, bool resumes,
              bool speaks, std::unique_ptr<CheckpointWriter> writer)
      : graph_(graph),
        job_(*job),
        folder_(std::move(folder)),
        every_(every),
        resumes_(resumes),
        speaks_(speaks),
        writer_(std::move(writer)) {}

  const Graph& graph_;
  Job& job_;
  const std::string folder_;
  const int64_t every_;
  const bool resumes_, speaks_;
  int64_t first_step_ = 0;
  uint64_t seed_ = 0;
  std::string data_;
  int64_t begun_ = -1;  // of the newest
  std::optional<CheckpointManifest::Stopping> stopping_;
  const std::unique_ptr<CheckpointWriter> writer_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CHECKPOINTS_MAIN_H_
