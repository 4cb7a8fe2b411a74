#include "runtime/checkpoints_main.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/messages.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/execution/stop_signal.h"

ABSL_FLAG(std::string, checkpoint_dir, "",
          "write checkpoints into this folder: at the end, when SIGINT or SIGTERM stops the run "
          "(exit 3), and as --checkpoint_every says (docs/training.md)");
ABSL_FLAG(int64_t, checkpoint_every, 0, "steps from one checkpoint to the next");
ABSL_FLAG(int64_t, keep_checkpoints, 3, "the newest that stay; 0: all");
ABSL_FLAG(int64_t, keep_every, 0, "checkpoints of steps that are multiples stay, too");
ABSL_FLAG(bool, resume, false,
          "go on from the newest checkpoint that is whole, under this plan or another of the same "
          "model; if there is none, begin");

namespace isomer {

absl::Status Checkpoints::CheckFlags(const std::string& mode) {
  if (absl::GetFlag(FLAGS_checkpoint_dir).empty()) {
    return RefuseFlags({"checkpoint_every", "keep_checkpoints", "keep_every", "resume"},
                       "needs --checkpoint_dir");
  }
  if (mode != "training") {
    return RefuseFlags({"checkpoint_dir"}, "is for training; the plan is for inference");
  }
  if (absl::GetFlag(FLAGS_resume)) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"check", "check_executions"},
                                       "is of a training's first step; not with --resume"));
  }
  if (absl::GetFlag(FLAGS_checkpoint_every) < 0 || absl::GetFlag(FLAGS_keep_checkpoints) < 0 ||
      absl::GetFlag(FLAGS_keep_every) < 0) {
    return absl::InvalidArgumentError(
        "--checkpoint_every, --keep_checkpoints and --keep_every must not be negative");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Checkpoints>> Checkpoints::FromFlags(
    const Graph& graph, Job* job, std::chrono::milliseconds stall_timeout, bool speaks) {
  const std::string folder = absl::GetFlag(FLAGS_checkpoint_dir);
  if (folder.empty()) return nullptr;
  const bool resumes = absl::GetFlag(FLAGS_resume);
  if (const std::vector<int64_t> steps = CheckpointSteps(folder); !steps.empty() && !resumes) {
    return absl::FailedPreconditionError(
        absl::StrCat("--checkpoint_dir=", folder, " has checkpoints up to step ", steps.back(),
                     " already: --resume goes on from there, another folder begins anew"));
  }
  ISOMER_RETURN_IF_ERROR(TryFolder(folder, stall_timeout, job->options().control));
  const int64_t every = absl::GetFlag(FLAGS_checkpoint_every);
  ISOMER_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointWriter> writer,
                          CheckpointWriter::Make(graph, job,
                                                 {.folder = folder,
                                                  .keep = absl::GetFlag(FLAGS_keep_checkpoints),
                                                  .keep_every = absl::GetFlag(FLAGS_keep_every),
                                                  .prepares = every > 0,
                                                  .stall_timeout = stall_timeout}));
  return std::unique_ptr<Checkpoints>(
      new Checkpoints(graph, job, folder, every, resumes, speaks, std::move(writer)));
}

absl::Status Checkpoints::Load(const LeafValues& initial, uint64_t seed, const std::string& data) {
  seed_ = seed;
  data_ = data;
  WatchStopSignals();
  std::unique_ptr<Checkpoint> checkpoint;
  if (resumes_) {
    std::vector<std::string> notes;
    ISOMER_ASSIGN_OR_RETURN(checkpoint, NewestCheckpoint(folder_, job_.options().control, &notes));
    for (const std::string& note : notes) {
      if (speaks_) PrintNote(note);
    }
    if (checkpoint == nullptr && !notes.empty()) {
      return absl::DataLossError(
          absl::StrCat("--resume: none of the checkpoints in ", folder_, " is whole"));
    }
  }
  if (checkpoint == nullptr) {
    if (resumes_ && speaks_) {
      PrintNote(
          absl::StrCat("--resume: there is no checkpoint in ", folder_, " yet; training begins"));
    }
    return job_.SetParameters(initial);
  }
  ISOMER_RETURN_IF_ERROR(checkpoint->CheckFits(ManifestOf(graph_, job_.schedule())));
  const CheckpointManifest& manifest = checkpoint->manifest();
  if (speaks_ && (manifest.seed() != seed || manifest.data() != data)) {
    PrintNote(absl::StrCat(checkpoint->path(), " was trained with other data or another ",
                           "--seed or batch: step ", manifest.step(), " of these comes next"));
  }
  const bool averages = job_.schedule().options.update.averages;
  if (averages && !checkpoint->has_averages()) {
    const AverageOptions& average = job_.options().average;
    if (average.is_mean && manifest.updates() > average.first) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint->path(), " has no averages; a mean begins with --average_from=",
                       manifest.updates() + 1, " or later"));
    }
    if (speaks_) {
      PrintNote(absl::StrCat(checkpoint->path(), " has no averages: they begin with its weights"));
    }
  } else if (!averages && checkpoint->has_averages() && speaks_) {
    PrintNote(absl::StrCat(checkpoint->path(),
                           " has averages, which end here: --average_decay goes on with them"));
  }
  ISOMER_RETURN_IF_ERROR(checkpoint->Restore(initial, &job_));
  // Who starts processes again gives both flags from the first start on, as --restarts does.
  if (speaks_ && WasGiven("weights")) {
    PrintNote(absl::StrCat("--weights is not taken, as training goes on with those of ",
                           checkpoint->path()));
  }
  if (manifest.has_stopping()) stopping_ = manifest.stopping();
  first_step_ = begun_ = manifest.step();
  if (speaks_) {
    absl::PrintF("resumed from %s, of step %d\n", checkpoint->path(), first_step_);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::StatusOr<const char*> Checkpoints::AfterStep(int64_t done, int64_t steps) {
  // What one of them knows, all must: they write together.
  const char* stop = AskedToStop();
  std::string problem(writer_->Poll().message());
  if (ControlPlane* const control = job_.options().control; control != nullptr) {
    const std::string mine = absl::StrCat(stop == nullptr ? "" : stop, "\n", problem);
    ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, control->Gather(mine));
    for (const std::string& words : all) {
      const size_t end = words.find('\n');
      const absl::string_view signal = absl::string_view(words).substr(0, end);
      if (stop == nullptr && !signal.empty()) stop = signal == "SIGINT" ? "SIGINT" : "SIGTERM";
      if (problem.empty()) problem = words.substr(end + 1);
    }
  }
  if (!problem.empty()) return absl::UnavailableError(problem);
  const int64_t at_once = job_.num_steps();
  const bool is_time = every_ > 0 && done / every_ != (done - at_once) / every_;
  const bool is_best = stopping_.has_value() && stopping_->best_step() == done;
  if (is_time || is_best || stop != nullptr || done >= steps) {
    ISOMER_RETURN_IF_ERROR(writer_->Begin(done, seed_, data_, stopping_));
    begun_ = done;
  }
  return stop;
}

absl::Status Checkpoints::End(Json* summary) {
  ISOMER_RETURN_IF_ERROR(writer_->Wait());
  Json& about = (*summary)["checkpoints"];
  about["first_step"] = first_step_;
  about["last_step"] = begun_;
  about["stall_us"] = writer_->stall_us();
  about["waited_us"] = writer_->waited_us();
  about["write_us"] = writer_->write_us();
  return absl::OkStatus();
}

absl::Status Checkpoints::LoadBest(const LeafValues& initial) {
  ISOMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<Checkpoint> checkpoint,
      Checkpoint::Open(absl::StrCat(folder_, "/", CheckpointName(stopping_->best_step()))));
  return checkpoint->Restore(initial, &job_);
}

absl::Status Checkpoints::WithAdvice(const absl::Status& status) {
  if (status.ok()) return status;
  const std::string folder = absl::GetFlag(FLAGS_checkpoint_dir);
  std::vector<int64_t> steps = CheckpointSteps(folder);
  // As far as can be told without reading all.
  while (!steps.empty() &&
         !Checkpoint::Open(absl::StrCat(folder, "/", CheckpointName(steps.back()))).ok()) {
    steps.pop_back();
  }
  if (steps.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), "; --resume goes on from step ",
                                                  steps.back(), " (", folder, ")"));
}

}  // namespace isomer
