#include "runtime/checkpoint/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/file.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/disk_progress.h"

namespace isomer {
namespace {

// Elements that are verified at a time: so many stay in memory (64 MiB).
constexpr size_t kWindow = size_t{16} << 20;

// Like a checkpoint that is not finished, so that it goes when one is written.
constexpr char kProbeFile[] = ".step-seen-by-all";

// Behind a name that another tensor has.
constexpr char kTaken[] = "'";

constexpr char kPrefix[] = "step-", kUnfinishedPrefix[] = ".step-";

// Behind the states of the optimizer.
int32_t SlotOfAverage(OptimizerKind optimizer) { return NumStates(optimizer) + 1; }

std::string NameIn(const CheckpointManifest::Tensor& tensor, OptimizerKind optimizer) {
  if (tensor.slot() == 0) return tensor.name();
  return absl::StrCat(StateName(optimizer, tensor.slot() - 1), "/", tensor.name());
}

bool HasAverages(const CheckpointManifest& manifest) {
  const auto optimizer = ParseOptimizer(manifest.optimizer());
  return std::any_of(manifest.tensors().begin(), manifest.tensors().end(), [&](const auto& tensor) {
    return optimizer.ok() && tensor.slot() == SlotOfAverage(*optimizer);
  });
}

std::string DimsText(const CheckpointManifest::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.dims(), ","), "]");
}

// The tensors of one slot, as a job asks for them.
class CheckpointValues : public LeafValues {
 public:
  // Leaves that the checkpoint lacks are those of `others`, if there are any.
  CheckpointValues(const StateFile& file, const LeafValues* others)
      : file_(file), others_(others) {}

  void Add(const std::string& name, absl::Span<const float> elements) {
    leaves_[name] = std::make_unique<StoredLeaf>(file_, elements);
  }

  absl::StatusOr<const Leaf*> Find(const Graph& graph, NodeId leaf) const override {
    const auto found = leaves_.find(graph.node(leaf).name);
    if (found != leaves_.end()) return found->second.get();
    if (others_ != nullptr) return others_->Find(graph, leaf);
    return absl::NotFoundError(
        absl::StrCat(graph.Label(leaf), ": the checkpoint has no state of it"));
  }

 private:
  class StoredLeaf : public Leaf {
   public:
    StoredLeaf(const StateFile& file, absl::Span<const float> elements)
        : file_(file), elements_(elements) {}
    void Read(int64_t first, int64_t stride, int64_t count, double* to) const override {
      for (int64_t i = 0; i < count; ++i) to[i] = elements_[first + i * stride];
    }
    void LetGo() const override { file_.LetGo(elements_); }

   private:
    const StateFile& file_;
    const absl::Span<const float> elements_;
  };

  const StateFile& file_;
  const LeafValues* const others_;
  std::map<std::string, std::unique_ptr<const Leaf>> leaves_;
};

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  return CheckCanWrite(absl::StrCat(folder, "/", kManifestFile));
}

}  // namespace

std::string CheckpointName(int64_t step) { return absl::StrFormat("%s%09d", kPrefix, step); }
std::string UnfinishedName(int64_t step) { return absl::StrCat(".", CheckpointName(step)); }
bool IsUnfinishedName(absl::string_view name) { return absl::StartsWith(name, kUnfinishedPrefix); }

std::vector<int64_t> CheckpointSteps(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view number = name;
    int64_t step = 0;
    if (absl::ConsumePrefix(&number, kPrefix) && absl::SimpleAtoi(number, &step) &&
        CheckpointName(step) == name) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

absl::Status TryFolder(const std::string& folder, std::chrono::milliseconds stall_timeout,
                       ControlPlane* control) {
  const bool is_first = control == nullptr || control->rank() == 0;
  const std::string probe = absl::StrCat(folder, "/", kProbeFile);
  // What no file of another host, or of another run, has.
  const std::string word = absl::StrCat(getpid(), " ", absl::ToUnixNanos(absl::Now()), "\n");
  absl::Status status;
  if (is_first) {
    status = DoInTime(stall_timeout, control, [&] {
      ISOMER_RETURN_IF_ERROR(MakeFolder(folder));
      return control == nullptr ? absl::OkStatus() : WriteFileAtomically(probe, word);
    });
  }
  if (control == nullptr || control->num_ranks() == 1) return status;
  const absl::Cleanup removes = [&] {
    if (is_first) std::remove(probe.c_str());
  };
  const std::string told = status.ok() ? word : std::string(status.message());
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> words, control->Gather(told));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> fails,
                          control->Gather(status.ok() ? "" : "1"));
  // All end alike: none has begun to train.
  if (!fails[0].empty()) return is_first ? status : absl::UnavailableError(words[0]);
  bool sees_it = false;
  ISOMER_RETURN_IF_ERROR(DoInTime(stall_timeout, control, [&] {
    sees_it = ReadFile(probe).value_or("") == words[0];
    return absl::OkStatus();
  }));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, control->Gather(sees_it ? "1" : "0"));
  const auto blind = std::find(all.begin(), all.end(), "0");
  if (blind == all.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--checkpoint_dir=", folder, ": rank ", blind - all.begin(),
                   " does not see what rank 0 writes there; all need one folder"));
}

CheckpointManifest ManifestOf(const Graph& graph, const Schedule& schedule) {
  CheckpointManifest manifest;
  manifest.set_optimizer(OptimizerName(schedule.options.update.optimizer));
  std::set<std::pair<NodeId, int32_t>> tensors;
  for (const StatePart& part : StatePartsOf(schedule, /*each_once=*/true)) {
    for (NodeId leaf : schedule.parameters[part.parameter].leaves) {
      tensors.insert({leaf, part.slot});
    }
  }
  for (const auto& [leaf, slot] : tensors) {
    CheckpointManifest::Tensor& tensor = *manifest.add_tensors();
    tensor.set_name(graph.node(leaf).name);
    tensor.set_slot(slot);
    for (int64_t size : graph.node(leaf).outputs[0].Sizes()) tensor.add_dims(size);
  }
  return manifest;
}

absl::StatusOr<StateLayout> LayoutOf(const CheckpointManifest& manifest) {
  ISOMER_ASSIGN_OR_RETURN(const OptimizerKind optimizer, ParseOptimizer(manifest.optimizer()));
  std::vector<StateTensor> tensors;
  std::set<std::string> names = {kMetadataName};
  for (const CheckpointManifest::Tensor& tensor : manifest.tensors()) {
    if (tensor.slot() < 0 || tensor.slot() > SlotOfAverage(optimizer)) {
      return absl::DataLossError(
          absl::StrCat("'", tensor.name(), "' has no state ", tensor.slot()));
    }
    // A leaf may be called as the state of another is here.
    std::string name = NameIn(tensor, optimizer);
    while (!names.insert(name).second) name += kTaken;
    tensors.push_back({.name = name, .dims = {tensor.dims().begin(), tensor.dims().end()}});
  }
  return LayOut(std::move(tensors));
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  CheckpointManifest manifest;
  ISOMER_RETURN_IF_ERROR(
      LoadProto(absl::StrCat(path, "/", kManifestFile), kManifestKind, &manifest));
  ISOMER_ASSIGN_OR_RETURN(StateLayout layout, LayoutOf(manifest));
  ISOMER_ASSIGN_OR_RETURN(StateFile file,
                          StateFile::Open(absl::StrCat(path, "/", kStateFile), layout));
  return std::unique_ptr<Checkpoint>(
      new Checkpoint(path, std::move(manifest), std::move(layout), std::move(file)));
}

absl::Status Checkpoint::Verify(int64_t share, int64_t shares) const {
  for (int t = 0; t < manifest_.tensors_size(); ++t) {
    if (t % shares != share) continue;
    PositionSum sum;
    const absl::Span<const float> elements = file_.ElementsOf(layout_.tensors[t]);
    for (size_t at = 0; at < elements.size(); at += kWindow) {
      const absl::Span<const float> window = elements.subspan(at, kWindow);
      sum.Add(static_cast<int64_t>(at), 1, window);
      file_.LetGo(window);
    }
    if (sum.value() == manifest_.tensors(t).sum()) continue;
    return absl::DataLossError(absl::StrCat(path_, "/", kStateFile, ": '", layout_.tensors[t].name,
                                            "' is not what was written"));
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::CheckFits(const CheckpointManifest& job) const {
  if (manifest_.optimizer() != job.optimizer()) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": it is of ", manifest_.optimizer(),
                                                   ", but the plan trains with ", job.optimizer()));
  }
  using Key = std::pair<std::string, int32_t>;
  std::map<Key, std::string> there, wanted;
  ISOMER_ASSIGN_OR_RETURN(const OptimizerKind optimizer, ParseOptimizer(job.optimizer()));
  const bool compares_averages = HasAverages(manifest_) && HasAverages(job);
  for (const auto* manifest : {&manifest_, &job}) {
    for (const CheckpointManifest::Tensor& tensor : manifest->tensors()) {
      if (tensor.slot() == SlotOfAverage(optimizer) && !compares_averages) continue;
      (manifest == &job ? wanted : there)[{tensor.name(), tensor.slot()}] = DimsText(tensor);
    }
  }
  for (const auto& [key, dims] : wanted) {
    const auto found = there.find(key);
    const std::string has = found == there.end()
                                ? absl::StrCat("has no '", key.first, "'")
                                : absl::StrCat("has '", key.first, "' of ", found->second);
    if (found == there.end() || found->second != dims) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, " ", has, "; the plan's model trains it as ", dims));
    }
  }
  for (const auto& [key, dims] : there) {
    if (wanted.count(key) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(path_, " has '", key.first, "' of ", dims,
                                                   ", which the plan's model does not train"));
  }
  return absl::OkStatus();
}

bool Checkpoint::has_averages() const { return HasAverages(manifest_); }

absl::Status Checkpoint::Restore(const LeafValues& initial, Job* job) const {
  std::map<int32_t, CheckpointValues> slots;
  slots.emplace(0, CheckpointValues(file_, &initial));
  for (int t = 0; t < manifest_.tensors_size(); ++t) {
    const CheckpointManifest::Tensor& tensor = manifest_.tensors(t);
    const auto [slot, is_new] = slots.try_emplace(tensor.slot(), file_, nullptr);
    slot->second.Add(tensor.name(), file_.ElementsOf(layout_.tensors[t]));
  }
  std::vector<std::vector<float>> statistics;
  statistics.reserve(manifest_.statistics_size());
  for (const CheckpointManifest::Statistics& of : manifest_.statistics()) {
    statistics.emplace_back(of.values().begin(), of.values().end());
    slots.at(0).Add(of.name(), statistics.back());
  }
  std::vector<const LeafValues*> states;
  for (const auto& [slot, values] : slots) {
    if (slot > 0) states.push_back(&values);
  }
  return job->RestoreState(slots.at(0), states, manifest_.updates(),
                           DynamicLossScale(manifest_.loss_scale(), manifest_.loss_scale_in_a_row(),
                                            manifest_.loss_scale_skipped()));
}

absl::StatusOr<std::unique_ptr<Checkpoint>> WholeCheckpoint(const std::string& path,
                                                            ControlPlane* control) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open(path);
  absl::Status status = checkpoint.status();
  if (status.ok()) {
    status = (*checkpoint)
                 ->Verify(control == nullptr ? 0 : control->rank(),
                          control == nullptr ? 1 : control->num_ranks());
  }
  std::string problem(status.message());
  if (control != nullptr) {
    ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> all, control->Gather(problem));
    const auto bad =
        std::find_if(all.begin(), all.end(), [](const std::string& of) { return !of.empty(); });
    problem = bad == all.end() ? "" : *bad;
  }
  if (problem.empty()) return checkpoint;
  return absl::DataLossError(problem);
}

absl::StatusOr<std::unique_ptr<Checkpoint>> NewestCheckpoint(const std::string& folder,
                                                             ControlPlane* control,
                                                             std::vector<std::string>* notes) {
  std::vector<int64_t> steps = CheckpointSteps(folder);
  for (; !steps.empty(); steps.pop_back()) {
    const std::string path = absl::StrCat(folder, "/", CheckpointName(steps.back()));
    absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = WholeCheckpoint(path, control);
    if (checkpoint.ok() && (*checkpoint)->manifest().step() != steps.back()) {
      checkpoint = absl::DataLossError(
          absl::StrCat(path, ": it is of step ", (*checkpoint)->manifest().step()));
    }
    if (checkpoint.ok()) return checkpoint;
    // Of others, such as that a process is gone, no other checkpoint is a way out.
    if (!absl::IsDataLoss(checkpoint.status())) return checkpoint;
    notes->push_back(
        absl::StrCat(checkpoint.status().message(), "; the checkpoint before it is taken"));
  }
  return nullptr;
}

}  // namespace isomer
