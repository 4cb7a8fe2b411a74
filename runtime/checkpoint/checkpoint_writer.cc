#include "runtime/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/atomic_file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "pcg/support/utf8.h"
#include "runtime/checkpoint/disk_progress.h"
#include "runtime/device/us_since.h"
#include "runtime/device/whereabouts.h"
#include "runtime/execution/arrangement.h"
#include "runtime/execution/host_memory.h"

namespace isomer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kShareKind[] = "share";
// How often rank 0 looks whether the others have written theirs.
constexpr std::chrono::milliseconds kLook{10};
// How often processes that wait say how far they are.
constexpr std::chrono::milliseconds kTell{500};
constexpr char kDone[] = "done";
// What is copied in one go, by one of the threads that copy.
constexpr int64_t kPieceBytes = int64_t{16} << 20;

std::string ShareFile(int32_t rank) { return absl::StrCat("rank-", rank); }

absl::Status FileSystemError(const std::string& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
}

}  // namespace

CheckpointWriter::CheckpointWriter(const Graph& graph, Job* job, CheckpointOptions options)
    : graph_(graph),
      job_(*job),
      options_(std::move(options)),
      control_(job->options().control),
      tensors_(ManifestOf(graph, job->schedule())) {}

absl::StatusOr<std::unique_ptr<CheckpointWriter>> CheckpointWriter::Make(
    const Graph& graph, Job* job, CheckpointOptions options) {
  std::unique_ptr<CheckpointWriter> writer(new CheckpointWriter(graph, job, std::move(options)));
  ISOMER_RETURN_IF_ERROR(writer->FindParts());
  if (writer->options_.prepares) {
    writer->thread_.Begin([memory = writer->memory_.get()] {
      memory->Touch();
      return absl::OkStatus();
    });
  }
  return writer;
}

CheckpointWriter::~CheckpointWriter() {
  is_given_up_ = true;
  thread_.Wait().IgnoreError();
  // Not before: others that do not find it would have an error that hides the first.
  if (!status_.ok() && IsFirst()) RemoveUnfinished();
}

absl::Status CheckpointWriter::FindParts() {
  const Schedule& schedule = job_.schedule();
  for (int t = 0; t < tensors_.tensors_size(); ++t) {
    if (!IsUtf8(tensors_.tensors(t).name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight '", absl::CEscape(tensors_.tensors(t).name()),
                       "': its name is not UTF-8, which checkpoints need"));
    }
    tensor_of_[{tensors_.tensors(t).name(), tensors_.tensors(t).slot()}] = t;
  }
  int64_t bytes = 0, in_use = 0, devices = 0;
  for (int32_t device = 0; device < schedule.options.num_devices; ++device) {
    if (!job_.IsHere(device)) continue;
    ++devices;
    in_use += job_.memory().host_bytes[device];
    if (job_.CanReadBesideSteps()) in_use += job_.memory().arena_bytes[device];
  }
  for (const StatePart& part : StatePartsOf(schedule, /*each_once=*/true)) {
    const Buffer& buffer = schedule.buffers[part.buffer];
    const Schedule::HostTensor& parameter = schedule.parameters[part.parameter];
    if (!job_.IsHere(buffer.device)) continue;
    const bool is_known = !parts_.empty() && parts_.back().part.parameter == part.parameter;
    absl::StatusOr<Arrangement> arrangement =
        is_known ? parts_.back().arrangement : job_.ArrangementOf(parameter);
    ISOMER_RETURN_IF_ERROR(arrangement.status());
    std::vector<std::pair<NodeId, size_t>> tensors;
    for (NodeId leaf : arrangement->leaves()) {
      tensors.emplace_back(leaf, tensor_of_.at({graph_.node(leaf).name, part.slot}));
    }
    part_of_[part.buffer] = parts_.size();
    parts_.push_back({part, bytes, *std::move(arrangement), std::move(tensors)});
    bytes += BytesOfPart(schedule, part);
  }
  ISOMER_RETURN_IF_ERROR(
      CheckFitsHost("the devices of this process, and a copy of what they train for checkpoints,",
                    bytes + in_use));
  ISOMER_ASSIGN_OR_RETURN(memory_, StagingMemory::Allocate(bytes));
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (int64_t i = 0; job_.CanReadBesideSteps() && i < std::min(cores, devices); ++i) {
    copiers_.push_back(std::make_unique<Worker>());
  }
  return absl::OkStatus();
}

// What a run that was killed, or this one, did not finish.
void CheckpointWriter::RemoveUnfinished() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, ignored)) {
    if (IsUnfinishedName(entry.path().filename().string())) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
}

absl::Status CheckpointWriter::MakeFolder(int64_t step, const StateLayout& layout) {
  std::error_code error;
  NoteDiskCall("mkdir");
  RemoveUnfinished();
  const std::string folder = PathOf(UnfinishedName(step));
  std::filesystem::create_directory(folder, error);
  if (error) return FileSystemError(folder, error);
  const absl::Status status =
      StateFileWriter::Create(absl::StrCat(folder, "/", kStateFile), layout);
  if (!status.ok()) std::filesystem::remove_all(folder, error);
  return status;
}

absl::Status CheckpointWriter::TakeCopies() {
  // Each device copies its own.
  return job_.ReadState([&](const StatePart& part, const void* contents) {
    const Part& copied = parts_[part_of_.at(part.buffer)];
    std::memcpy(memory_->data() + copied.place, contents,
                static_cast<size_t>(BytesOfPart(job_.schedule(), part)));
    return absl::OkStatus();
  });
}

absl::Status CheckpointWriter::CopyBesideStep() {
  struct Piece {
    const Part* part;
    int64_t begin, bytes;
  };
  std::vector<Piece> pieces;
  for (const Part& part : parts_) {
    const int64_t bytes = BytesOfPart(job_.schedule(), part.part);
    for (int64_t begin = 0; begin < bytes; begin += kPieceBytes) {
      pieces.push_back({&part, begin, std::min(kPieceBytes, bytes - begin)});
    }
  }
  std::atomic<size_t> next = 0;
  const auto copy = [&]() -> absl::Status {
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const Piece& piece = pieces[i];
      char* const to = memory_->data() + piece.part->place + piece.begin;
      ISOMER_RETURN_IF_ERROR(job_.ReadPart(piece.part->part, [&](const void* contents) {
        std::memcpy(to, static_cast<const char*>(contents) + piece.begin,
                    static_cast<size_t>(piece.bytes));
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  };
  for (const auto& copier : copiers_) copier->Begin(copy);
  absl::Status status;
  for (const auto& copier : copiers_) status.Update(copier->Wait());
  return status;
}

absl::Status CheckpointWriter::WaitForCopies() {
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_copying_; });
  held_us_ = std::max(held_us_, UsSince(start));
  return status_;
}

absl::Status CheckpointWriter::Begin(int64_t step, uint64_t seed, const std::string& data,
                                     const std::optional<CheckpointManifest::Stopping>& stopping) {
  const Clock::time_point wait = Clock::now();
  ISOMER_RETURN_IF_ERROR(Wait());
  const double waited_us = UsSince(wait);
  waited_us_ = std::max<double>(waited_us_, waited_us);
  total_us_ += waited_us;
  const Clock::time_point start = Clock::now();
  EnterPart("checkpoint");
  const absl::Cleanup leaves = [] { EnterPart(""); };
  CheckpointManifest manifest = tensors_;
  manifest.set_step(step);
  manifest.set_updates(job_.updates());
  manifest.set_seed(seed);
  manifest.set_data(data);
  manifest.set_loss_scale(job_.loss_scale().value());
  manifest.set_loss_scale_in_a_row(job_.loss_scale().in_a_row());
  manifest.set_loss_scale_skipped(job_.loss_scale().skipped());
  if (stopping.has_value()) *manifest.mutable_stopping() = *stopping;
  ISOMER_ASSIGN_OR_RETURN(const auto statistics, job_.Statistics());
  for (const auto& [name, values] : statistics) {
    CheckpointManifest::Statistics& of = *manifest.add_statistics();
    of.set_name(name);
    of.mutable_values()->Add(values.begin(), values.end());
  }
  ISOMER_ASSIGN_OR_RETURN(StateLayout layout, LayoutOf(manifest));
  absl::Status status;
  if (IsFirst()) {
    status = DoInTime(options_.stall_timeout, control_, [&] { return MakeFolder(step, layout); });
  }
  if (control_ != nullptr) {
    // The others are told before they look for the file.
    ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, control_->Gather(status.message()));
    if (status.ok() && !all[0].empty()) status = absl::UnavailableError(all[0]);
  }
  ISOMER_RETURN_IF_ERROR(status);
  const bool is_beside = job_.CanReadBesideSteps();
  if (!is_beside) ISOMER_RETURN_IF_ERROR(TakeCopies());
  is_writing_ = true;
  is_copying_ = is_beside;
  status_ = absl::OkStatus();
  held_us_ = 0;
  if (is_beside) job_.HoldNextUpdate([this] { return WaitForCopies(); });
  thread_.Begin([this, manifest = std::move(manifest), layout = std::move(layout), start] {
    absl::Status written = job_.CanReadBesideSteps() ? CopyBesideStep() : absl::OkStatus();
    {
      const std::lock_guard lock(mutex_);
      status_ = written;
      is_copying_ = false;
      changed_.notify_all();
    }
    if (written.ok()) written = Write(manifest, layout);
    const std::lock_guard lock(mutex_);
    status_ = std::move(written);
    write_us_ = std::max<double>(write_us_, UsSince(start));
    is_writing_ = false;
    changed_.notify_all();
    return absl::OkStatus();
  });
  begin_us_ = UsSince(start);
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Poll() {
  const std::lock_guard lock(mutex_);
  return status_;
}

// Processes tell each other how far they are, so that all know whose disk does not go on.
absl::Status CheckpointWriter::Wait() {
  EnterPart("checkpoint");
  const absl::Cleanup leaves = [] { EnterPart(""); };
  DiskWatch watch(options_.stall_timeout);
  for (bool all_done = false; !all_done;) {
    std::string word;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kTell, [this] { return !is_writing_; });
      word = DiskWord();
      if (!is_writing_) word = status_.ok() ? kDone : std::string(status_.message());
    }
    std::vector<std::string> words = {word};
    if (control_ != nullptr) {
      auto gathered = control_->Gather(word);
      if (!gathered.ok()) return GiveUp(gathered.status());
      words = *std::move(gathered);
    }
    all_done = true;
    for (size_t rank = 0; rank < words.size(); ++rank) {
      const std::string& of = words[rank];
      if (of == kDone) continue;
      all_done = false;
      if (!IsDiskWord(of)) return GiveUp(absl::UnavailableError(of));
      if (const absl::Status status = watch.Check(static_cast<int32_t>(rank), of); !status.ok()) {
        GiveUpOnDisk(status, control_);
        return GiveUp(status);
      }
    }
  }
  const absl::Status ended = thread_.Wait();
  const double stood_us = std::exchange(begin_us_, 0) + std::exchange(held_us_, 0);
  stall_us_ = std::max<double>(stall_us_, stood_us);
  total_us_ += stood_us;
  return ended;
}

absl::Status CheckpointWriter::GiveUp(const absl::Status& status) {
  is_given_up_ = true;
  thread_.Wait().IgnoreError();
  return status;
}

absl::Status CheckpointWriter::Write(const CheckpointManifest& manifest,
                                     const StateLayout& layout) {
  const std::string folder = PathOf(UnfinishedName(manifest.step()));
  CheckpointShare share;
  std::vector<uint64_t> sums;
  ISOMER_RETURN_IF_ERROR(WriteShare(manifest.step(), layout, folder, &sums));
  share.mutable_sums()->Add(sums.begin(), sums.end());
  const int32_t rank = control_ == nullptr ? 0 : control_->rank();
  NoteDiskCall("fsync");
  ISOMER_RETURN_IF_ERROR(SaveProto(absl::StrCat(folder, "/", ShareFile(rank)), kShareKind, share));
  if (!IsFirst()) return absl::OkStatus();
  CheckpointManifest whole = manifest;
  ISOMER_RETURN_IF_ERROR(GatherShares(folder, &whole));
  ISOMER_RETURN_IF_ERROR(Finish(folder, whole));
  newest_ = manifest.step();
  DropOld(manifest);
  return absl::OkStatus();
}

// From weights that are NaN no training goes on: the checkpoint before them is worth more.
absl::Status CheckpointWriter::CheckIsFinite(const Part& part, int64_t step) const {
  const auto* const elements = reinterpret_cast<const float*>(memory_->data() + part.place);
  const int64_t bytes = BytesOfPart(job_.schedule(), part.part);
  const bool is_finite =
      std::all_of(elements, elements + bytes / static_cast<int64_t>(sizeof(float)),
                  [](float element) { return std::isfinite(element); });
  if (is_finite) return absl::OkStatus();
  const NodeId leaf = job_.schedule().parameters[part.part.parameter].leaves[0];
  return absl::OutOfRangeError(
      absl::StrCat(part.part.slot == 0 ? "weight '" : "the optimizer's state of '",
                   graph_.node(leaf).name, "' is not finite after step ", step,
                   "; no checkpoint is made of it; try a lower --learning_rate"));
}

absl::Status CheckpointWriter::WriteShare(int64_t step, const StateLayout& layout,
                                          const std::string& folder, std::vector<uint64_t>* sums) {
  const std::string path = absl::StrCat(folder, "/", kStateFile);
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<StateFileWriter> file, StateFileWriter::Open(path));
  std::vector<PositionSum> of_tensor(layout.tensors.size());
  for (const Part& part : parts_) {
    if (is_given_up_) return absl::CancelledError("the checkpoint was given up");
    const Box& box = job_.schedule().buffers[part.part.buffer].box;
    const auto* elements = reinterpret_cast<const float*>(memory_->data() + part.place);
    ISOMER_RETURN_IF_ERROR(CheckIsFinite(part, step));
    for (const auto& [leaf, t] : part.tensors) {
      const auto lines = [&, leaf = leaf](absl::FunctionRef<void(const StateLine&)> f) {
        part.arrangement.ForEachLineOf(leaf, box, [&](const LeafLine& line) {
          f({line.first, line.stride, line.count, line.place});
        });
      };
      ISOMER_RETURN_IF_ERROR(file->Write(layout.tensors[t], lines, elements, &of_tensor[t]));
    }
  }
  if (IsFirst()) ISOMER_RETURN_IF_ERROR(WriteUnheld(layout, file.get(), &of_tensor));
  for (const PositionSum& sum : of_tensor) sums->push_back(sum.value());
  return file->Sync();
}

// What no device has, so that a leaf is whole.
absl::Status CheckpointWriter::WriteUnheld(const StateLayout& layout, StateFileWriter* file,
                                           std::vector<PositionSum>* sums) {
  for (const UnheldPart& part : job_.unheld()) {
    const size_t t = tensor_of_.at({graph_.node(part.leaf).name, part.slot});
    const auto lines = [&](absl::FunctionRef<void(const StateLine&)> f) {
      for (const LeafLine& line : part.lines) {
        f({line.first, line.stride, line.count, line.place});
      }
    };
    ISOMER_RETURN_IF_ERROR(file->Write(layout.tensors[t], lines, part.values.data(), &(*sums)[t]));
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::GatherShares(const std::string& folder,
                                            CheckpointManifest* manifest) {
  for (int32_t rank = 0; rank < num_ranks(); ++rank) {
    const std::string path = absl::StrCat(folder, "/", ShareFile(rank));
    std::error_code error;
    while (!std::filesystem::exists(path, error)) {
      if (is_given_up_) return absl::CancelledError("the checkpoint was given up");
      NoteDiskCall("stat");  // It is the other's turn.
      std::this_thread::sleep_for(kLook);
    }
    NoteDiskCall("read");
    CheckpointShare share;
    ISOMER_RETURN_IF_ERROR(LoadProto(path, kShareKind, &share));
    if (share.sums_size() != manifest->tensors_size()) {
      return absl::DataLossError(absl::StrCat(path, ": it is of another model"));
    }
    for (int t = 0; t < share.sums_size(); ++t) {
      CheckpointManifest::Tensor& tensor = *manifest->mutable_tensors(t);
      tensor.set_sum(tensor.sum() + share.sums(t));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Finish(const std::string& folder,
                                      const CheckpointManifest& manifest) {
  NoteDiskCall("fsync");
  ISOMER_RETURN_IF_ERROR(
      SaveProto(absl::StrCat(folder, "/", kManifestFile), kManifestKind, manifest));
  std::error_code error;
  for (int32_t rank = 0; rank < num_ranks(); ++rank) {
    std::filesystem::remove(absl::StrCat(folder, "/", ShareFile(rank)), error);
  }
  NoteDiskCall("fsync");
  ISOMER_RETURN_IF_ERROR(SyncFolder(folder));
  NoteDiskCall("rename");
  const std::string name = PathOf(CheckpointName(manifest.step()));
  std::filesystem::remove_all(name, error);  // One that is damaged, of the same step.
  std::filesystem::rename(folder, name, error);
  if (error) return FileSystemError(name, error);
  NoteDiskCall("fsync");
  return SyncFolder(options_.folder);
}

void CheckpointWriter::DropOld(const CheckpointManifest& newest) {
  if (options_.keep == 0) return;
  std::vector<int64_t> steps = CheckpointSteps(options_.folder);
  // Those behind this one are of a run that went on from another.
  std::erase_if(steps, [&](int64_t step) { return step > newest.step(); });
  for (size_t i = 0; i + options_.keep < steps.size(); ++i) {
    if (options_.keep_every > 0 && steps[i] % options_.keep_every == 0) continue;
    if (newest.has_stopping() && steps[i] == newest.stopping().best_step()) continue;
    std::error_code ignored;
    std::filesystem::remove_all(PathOf(CheckpointName(steps[i])), ignored);
  }
}

}  // namespace isomer
