#include "runtime/checkpoint/checkpoint_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "runtime/execution/arrangement.h"

namespace isomer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kShareKind[] = "share";
// How often rank 0 looks whether the others have written theirs.
constexpr std::chrono::milliseconds kLook{10};
// How often processes that wait say so: well within the deadline of their messages.
constexpr std::chrono::seconds kTell{5};
constexpr char kDone[] = "done";

double UsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::string ShareFile(int32_t rank) { return absl::StrCat("rank-", rank); }

absl::Status FileSystemError(const std::string& path, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
}

// Until the disk has the names in it.
absl::Status SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  const bool is_synced = fsync(folder) == 0 || errno == EINVAL;  // Some have nothing to sync.
  const int error = errno;
  close(folder);
  if (is_synced) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(error)));
}

}  // namespace

CheckpointWriter::CheckpointWriter(const Graph& graph, Job* job, CheckpointOptions options)
    : graph_(graph),
      job_(*job),
      options_(std::move(options)),
      control_(job->options().control),
      tensors_(ManifestOf(graph, job->schedule())) {}

CheckpointWriter::~CheckpointWriter() {
  is_given_up_ = true;
  if (thread_.joinable()) thread_.join();
}

absl::Status CheckpointWriter::MakeFolder(int64_t step, const StateLayout& layout) {
  std::error_code error;
  // What a run that was killed did not finish.
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, error)) {
    if (IsUnfinishedName(entry.path().filename().string())) {
      std::filesystem::remove_all(entry.path(), error);
    }
  }
  const std::string folder = PathOf(UnfinishedName(step));
  std::filesystem::create_directory(folder, error);
  if (error) return FileSystemError(folder, error);
  const absl::Status status =
      StateFileWriter::Create(absl::StrCat(folder, "/", kStateFile), layout);
  if (!status.ok()) std::filesystem::remove_all(folder, error);
  return status;
}

absl::Status CheckpointWriter::TakeCopies() {
  copies_.clear();
  // Each device fills its own.
  std::map<BufferId, size_t> place;
  for (const StatePart& part : StatePartsOf(job_.schedule(), /*each_once=*/true)) {
    place[part.buffer] = copies_.size();
    copies_.push_back({part, {}});
  }
  return job_.ReadState([&](const StatePart& part, const void* contents) {
    const auto* elements = static_cast<const float*>(contents);
    const Buffer& buffer = job_.schedule().buffers[part.buffer];
    copies_[place.at(part.buffer)].elements.assign(elements, elements + buffer.box.Volume());
    return absl::OkStatus();
  });
}

absl::Status CheckpointWriter::Begin(int64_t step, uint64_t seed, const std::string& data) {
  const Clock::time_point start = Clock::now();
  ISOMER_RETURN_IF_ERROR(Wait());
  CheckpointManifest manifest = tensors_;
  manifest.set_step(step);
  manifest.set_updates(job_.updates());
  manifest.set_seed(seed);
  manifest.set_data(data);
  manifest.set_loss_scale(job_.loss_scale().value());
  manifest.set_loss_scale_in_a_row(job_.loss_scale().in_a_row());
  manifest.set_loss_scale_skipped(job_.loss_scale().skipped());
  ISOMER_ASSIGN_OR_RETURN(StateLayout layout, LayoutOf(manifest));
  absl::Status status = IsFirst() ? MakeFolder(step, layout) : absl::OkStatus();
  if (control_ != nullptr) {
    // The others are told before they look for the file.
    ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, control_->Gather(status.message()));
    if (status.ok() && !all[0].empty()) status = absl::UnavailableError(all[0]);
  }
  ISOMER_RETURN_IF_ERROR(status);
  ISOMER_RETURN_IF_ERROR(TakeCopies());
  is_writing_ = true;
  status_ = absl::OkStatus();
  thread_ = std::thread([this, manifest = std::move(manifest), layout = std::move(layout), start] {
    absl::Status written = Write(manifest, layout);
    if (!written.ok() && IsFirst()) {
      std::error_code ignored;
      std::filesystem::remove_all(PathOf(UnfinishedName(manifest.step())), ignored);
    }
    const std::lock_guard lock(mutex_);
    status_ = std::move(written);
    write_us_ = UsSince(start);
    is_writing_ = false;
    is_done_.notify_all();
  });
  stall_us_ = UsSince(start);
  return absl::OkStatus();
}

absl::Status CheckpointWriter::Poll() {
  const std::lock_guard lock(mutex_);
  return status_;
}

// Processes tell each other how far they are, so that none takes the others for lost.
absl::Status CheckpointWriter::Wait() {
  if (!thread_.joinable()) return absl::OkStatus();
  for (bool all_done = false; !all_done;) {
    std::string word;
    {
      std::unique_lock lock(mutex_);
      is_done_.wait_for(lock, kTell, [this] { return !is_writing_; });
      if (!is_writing_) word = status_.ok() ? kDone : std::string(status_.message());
    }
    std::vector<std::string> words = {word};
    if (control_ != nullptr) {
      auto gathered = control_->Gather(word);
      if (!gathered.ok()) return GiveUp(gathered.status());
      words = *std::move(gathered);
    }
    all_done = true;
    for (const std::string& of : words) {
      if (!of.empty() && of != kDone) return GiveUp(absl::UnavailableError(of));
      all_done &= !of.empty();
    }
  }
  thread_.join();
  return absl::OkStatus();
}

absl::Status CheckpointWriter::GiveUp(const absl::Status& status) {
  is_given_up_ = true;
  thread_.join();
  return status;
}

absl::Status CheckpointWriter::Write(const CheckpointManifest& manifest,
                                     const StateLayout& layout) {
  const std::string folder = PathOf(UnfinishedName(manifest.step()));
  CheckpointShare share;
  std::vector<uint64_t> sums;
  ISOMER_RETURN_IF_ERROR(WriteShare(layout, folder, &sums));
  copies_.clear();
  share.mutable_sums()->Add(sums.begin(), sums.end());
  const int32_t rank = control_ == nullptr ? 0 : control_->rank();
  ISOMER_RETURN_IF_ERROR(SaveProto(absl::StrCat(folder, "/", ShareFile(rank)), kShareKind, share));
  if (!IsFirst()) return absl::OkStatus();
  CheckpointManifest whole = manifest;
  ISOMER_RETURN_IF_ERROR(GatherShares(folder, &whole));
  ISOMER_RETURN_IF_ERROR(Finish(folder, whole));
  newest_ = manifest.step();
  DropOld(manifest.step());
  return absl::OkStatus();
}

absl::Status CheckpointWriter::WriteShare(const StateLayout& layout, const std::string& folder,
                                          std::vector<uint64_t>* sums) {
  const std::string path = absl::StrCat(folder, "/", kStateFile);
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<StateFileWriter> file, StateFileWriter::Open(path));
  std::map<std::pair<std::string, int32_t>, size_t> tensor_of;
  for (int t = 0; t < tensors_.tensors_size(); ++t) {
    tensor_of[{tensors_.tensors(t).name(), tensors_.tensors(t).slot()}] = t;
  }
  std::vector<PositionSum> of_tensor(layout.tensors.size());
  const Schedule& schedule = job_.schedule();
  for (const Copy& copy : copies_) {
    if (copy.elements.empty()) continue;
    if (is_given_up_) return absl::CancelledError("the checkpoint was given up");
    const Schedule::HostTensor& parameter = schedule.parameters[copy.part.parameter];
    ISOMER_ASSIGN_OR_RETURN(const std::vector<LeafView> views, job_.ViewsOf(parameter));
    const Box& box = schedule.buffers[copy.part.buffer].box;
    for (NodeId leaf : parameter.leaves) {
      std::vector<LeafView> of_leaf;
      for (const LeafView& view : views) {
        if (view.leaf == leaf && !Intersection(view.box, box).empty()) of_leaf.push_back(view);
      }
      if (of_leaf.empty()) continue;
      const size_t t = tensor_of.at({graph_.node(leaf).name, copy.part.slot});
      const auto lines = [&](absl::FunctionRef<void(const StateLine&)> f) {
        ForEachLeafLine(of_leaf, box, [&](const LeafLine& line) {
          f({line.first, line.stride, line.count, line.place});
        });
      };
      ISOMER_RETURN_IF_ERROR(
          file->Write(layout.tensors[t], lines, copy.elements.data(), &of_tensor[t]));
    }
  }
  for (const PositionSum& sum : of_tensor) sums->push_back(sum.value());
  return file->Sync();
}

absl::Status CheckpointWriter::GatherShares(const std::string& folder,
                                            CheckpointManifest* manifest) {
  for (int32_t rank = 0; rank < num_ranks(); ++rank) {
    const std::string path = absl::StrCat(folder, "/", ShareFile(rank));
    std::error_code error;
    while (!std::filesystem::exists(path, error)) {
      if (is_given_up_) return absl::CancelledError("the checkpoint was given up");
      std::this_thread::sleep_for(kLook);
    }
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
  ISOMER_RETURN_IF_ERROR(
      SaveProto(absl::StrCat(folder, "/", kManifestFile), kManifestKind, manifest));
  std::error_code error;
  for (int32_t rank = 0; rank < num_ranks(); ++rank) {
    std::filesystem::remove(absl::StrCat(folder, "/", ShareFile(rank)), error);
  }
  ISOMER_RETURN_IF_ERROR(SyncFolder(folder));
  const std::string name = PathOf(CheckpointName(manifest.step()));
  std::filesystem::remove_all(name, error);  // One that is damaged, of the same step.
  std::filesystem::rename(folder, name, error);
  if (error) return FileSystemError(name, error);
  return SyncFolder(options_.folder);
}

void CheckpointWriter::DropOld(int64_t step) {
  if (options_.keep == 0) return;
  std::vector<int64_t> steps = CheckpointSteps(options_.folder);
  // Those behind this one are of a run that went on from another.
  std::erase_if(steps, [step](int64_t other) { return other > step; });
  for (size_t i = 0; i + options_.keep < steps.size(); ++i) {
    if (options_.keep_every > 0 && steps[i] % options_.keep_every == 0) continue;
    std::error_code ignored;
    std::filesystem::remove_all(PathOf(CheckpointName(steps[i])), ignored);
  }
}

}  // namespace isomer
