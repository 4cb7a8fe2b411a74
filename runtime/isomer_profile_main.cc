// isomer-profile: what the tasks of a model's plans cost on this device.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/load_plan.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/profile/fp8_errors.h"
#include "pcg/profile/profile.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/file.h"
#include "pcg/support/program.h"
#include "pcg/support/program_flags.h"
#include "pcg/support/progress.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/measure_fp8_errors.h"
#include "runtime/communication/process_communicator.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/backend.h"
#include "runtime/device/caches.h"
#include "runtime/device/pinning.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/make_backend.h"
#include "runtime/profiler/operator_page.h"
#include "runtime/profiler/profile_calls.h"
#include "runtime/profiler/profile_page.h"
#include "runtime/profiler/profile_session.h"
#include "runtime/profiler/profiler.h"
#include "runtime/profiler/reuse.h"

ABSL_FLAG(std::string, backend, "cpu", "cpu, or cuda: GPUs (docs/gpu.md)");
ABSL_FLAG(std::string, out, "",
          "the profile file, text if it ends in .txt; what it has already is not measured again");
ABSL_FLAG(
    int64_t, devices, 0,
    "measure the parts of every call that plans for so many devices can have, on so many at "
    "once; 0: those of a PLAN, 2 for a MODEL; with mpi or tcp, as many as there are processes");
ABSL_FLAG(std::string, communicator, "threads",
          "whose collectives to measure: threads; mpi, under mpirun; or tcp, under torchrun or "
          "srun. Those of GPUs are NCCL's, whoever starts processes");
ABSL_FLAG(std::string, mode, "training", "of a MODEL: training or inference; a plan has its own");
ABSL_FLAG(std::string, precision, "float32",
          "of a MODEL: float32, bfloat16, float16 or fp8; a plan has its own");
ABSL_FLAG(int64_t, batch_size, 0, "of a MODEL that leaves it open");
ABSL_FLAG(std::vector<std::string>, dim, {},
          "name=N: the size of a symbolic dim of an .onnx file; may be given several times");
ABSL_FLAG(bool, pin, true, "keep each device to a core of its own, if there are as many");
ABSL_FLAG(bool, remeasure, false, "forget what the profile file has");
ABSL_FLAG(std::string, cache, "step",
          "what a kernel finds in caches: step, what its tasks find in a step; cold, nothing in "
          "the nearest; hot, everything");
ABSL_FLAG(double, seconds_per_kernel, 0.5, "the most time to spend on one");
ABSL_FLAG(
    bool, fp8_errors, false,
    "of one MODEL, in place of times: how far each product with a weight takes the step if it "
    "is in 8 bits, on the cpu backend, for isomer-optimize --fp8_errors");
ABSL_FLAG(std::string, fp8_scaling, "tensor",
          "of --fp8_errors, what has a scale of its own: tensor, row or block");
ABSL_FLAG(uint64_t, seed, 1, "of --fp8_errors: of initial weights and of random inputs");
ABSL_FLAG(std::string, show, "", "print this profile file and end");
ABSL_FLAG(bool, list_operators, false,
          "print docs/operators.md: what operators compute, what may be split, which have kernels");

namespace isomer {
namespace {

PlanOptions OptionsOfModel() {
  PlanOptions options;
  options.load.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.load.dims = absl::GetFlag(FLAGS_dim);
  options.mode = absl::GetFlag(FLAGS_mode);
  options.precision = absl::GetFlag(FLAGS_precision);
  return options;
}

// Adds the kernels of a plan, or of the plans that a model can have, and where its updates find
// what they update.
absl::Status AddKernelsOfFile(const std::string& spec, int64_t devices, const CacheSizes& caches,
                              std::string* name, ProfiledKernels* kernels,
                              CacheLevel* found_by_updates) {
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlanOrModel(spec, OptionsOfModel()));
  const bool is_plan = plan.seal != 0;
  *name = plan.model.name;
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerPlan(plan));
  ProfiledKernels own;
  const std::vector<FoundByTask> found =
      FindInCaches(lowered.mapped.graph, lowered.schedule, caches);
  *found_by_updates = std::min(*found_by_updates, FoundByUpdates(lowered.schedule, found));
  AddKernelsOf(lowered.mapped.graph, lowered.schedule, found, &own);
  if (!is_plan) ISOMER_RETURN_IF_ERROR(AddShardsOf(devices, &own));
  kernels->merge(own);
  return absl::OkStatus();
}

absl::StatusOr<ProfilerOptions> OptionsFromFlags() {
  ProfilerOptions options;
  ISOMER_ASSIGN_OR_RETURN(options.state, ParseCacheState(absl::GetFlag(FLAGS_cache)));
  options.seconds_per_kernel = absl::GetFlag(FLAGS_seconds_per_kernel);
  if (!(options.seconds_per_kernel > 0)) {
    return absl::InvalidArgumentError("--seconds_per_kernel must be positive");
  }
  return options;
}

// The work of one process: all threads, or one rank of several.
absl::StatusOr<int> Measure(const std::vector<std::string>& arguments, int64_t devices,
                            ProcessCommunicator* processes) {
  constexpr int64_t kMostDevices = 64;
  if (devices < 1 || devices > kMostDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", devices, ": 1 to ", kMostDevices, " are expected"));
  }
  const std::string path = absl::GetFlag(FLAGS_out);
  std::string communicator = absl::GetFlag(FLAGS_communicator);
  const bool reports = processes == nullptr || processes->rank() == 0;
  if (reports) ISOMER_RETURN_IF_ERROR(TryOutputs());
  const bool pin = absl::GetFlag(FLAGS_pin) && (processes != nullptr || devices <= UsableCores());
  ISOMER_ASSIGN_OR_RETURN(const ProfilerOptions options, OptionsFromFlags());
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                          MakeBackend(absl::GetFlag(FLAGS_backend)));
  const bool is_of_host = backend->operations().shares_host_memory();
  if (!is_of_host) {
    // As one GPU would be all of them.
    if (processes == nullptr && devices > 1 && backend->operations().reaches_other_devices()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--devices=", devices, ": this machine has 1 GPU"));
    }
    communicator = "nccl";
  }
  if (processes != nullptr)
    backend->EnterDevice(processes->local_rank(), processes->num_local_ranks());
  ISOMER_ASSIGN_OR_RETURN(const std::string processor, backend->DeviceName());
  ISOMER_ASSIGN_OR_RETURN(const CacheSizes caches, backend->Caches(devices));
  ProfiledKernels kernels;
  std::vector<std::string> models(arguments.size());
  CacheLevel found_by_updates = CacheLevel::kNear;  // the farthest of all
  for (size_t i = 0; i < arguments.size(); ++i) {
    ISOMER_RETURN_IF_ERROR(
        AddKernelsOfFile(arguments[i], devices, caches, &models[i], &kernels, &found_by_updates));
  }
  std::vector<ProfiledTask> tasks = TasksToProfile(devices);
  for (ProfiledTask& task : tasks) task.found = found_by_updates;
  const ProfiledDevice device = {.backend = std::string(backend->name()),
                                 .processor = processor,
                                 .libraries = backend->Libraries(),
                                 .busy_devices = static_cast<int>(devices),
                                 .pinned = pin && is_of_host};
  ISOMER_ASSIGN_OR_RETURN(Profile profile,
                          OpenProfile(path, device, absl::GetFlag(FLAGS_remeasure)));
  for (const std::string& model : models) {
    if (std::find(profile.models.begin(), profile.models.end(), model) == profile.models.end()) {
      profile.models.push_back(model);
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const MissingTimes missing,
                          FindMissing(profile, kernels, tasks, communicator));
  auto measure = [&](const ProfileRank& of_host) -> absl::Status {
    std::unique_ptr<Communicator> of_device;
    ISOMER_ASSIGN_OR_RETURN(const ProfileRank rank, WithDeviceCommunicator(of_host, &of_device));
    Profile own = profile;                // Threads do not share it.
    ISOMER_RETURN_IF_ERROR(rank.Meet());  // All have read the file before one writes it.
    ISOMER_RETURN_IF_ERROR(MeasureMissing(rank, missing, communicator, options, path, &own));
    if (rank.rank() == 0) profile = std::move(own);
    return absl::OkStatus();
  };
  if (processes != nullptr) {
    std::vector<int32_t> all(devices);
    std::iota(all.begin(), all.end(), 0);
    if (pin) PinThisThread(processes->local_rank(), processes->num_local_ranks());
    ISOMER_RETURN_IF_ERROR(measure({backend.get(), processes, processes, all}));
  } else {
    ISOMER_RETURN_IF_ERROR(
        RunOnThreads(static_cast<int32_t>(devices), pin, backend.get(), measure));
  }
  if (!reports) return kExitDone;
  absl::PrintF("%s: %d kernels, %d of them new, and %d tables, %d of them new, of %s\n", path,
               profile.kernels.size(), missing.num_kernels(), profile.tables.size(),
               missing.tasks.size(), device.ToString());
  Json summary;
  summary["models"] = profile.models;
  summary["device"] = device.ToString();
  summary["kernels"] = profile.kernels.size();
  summary["kernels_measured"] = missing.num_kernels();
  summary["tables"] = profile.tables.size();
  summary["tables_measured"] = missing.tasks.size();
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return kExitDone;
}

// --devices, or what the largest plan needs.
absl::StatusOr<int64_t> DevicesFor(const std::vector<std::string>& arguments) {
  if (const int64_t devices = absl::GetFlag(FLAGS_devices); devices != 0) return devices;
  constexpr int64_t kOfModels = 2;
  int64_t devices = 0;
  for (const std::string& argument : arguments) {
    ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(argument));
    int64_t wanted = kOfModels;
    if (is_plan) {
      ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(argument));
      wanted = plan.num_devices;
    }
    devices = std::max(devices, wanted);
  }
  return devices;
}

absl::StatusOr<int> MeasureAsProcess(
    const std::vector<std::string>& arguments,
    absl::StatusOr<std::unique_ptr<ProcessCommunicator>> (*connect)(const ProcessOptions&)) {
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<ProcessCommunicator> processes, connect({}));
  const absl::StatusOr<int> result = Measure(arguments, processes->num_ranks(), processes.get());
  if (!result.ok()) processes->Abort(result.status());
  ISOMER_RETURN_IF_ERROR(processes->Finish(result.status()));
  return result;
}

// --fp8_errors.
absl::StatusOr<int> MeasureErrors(const std::vector<std::string>& arguments) {
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"devices", "communicator", "pin", "remeasure", "cache",
                                      "seconds_per_kernel", "backend", "precision"},
                                     "is for times, and not for --fp8_errors"));
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(arguments[0]));
  if (arguments.size() > 1 || is_plan) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fp8_errors: one MODEL is expected, not ",
                     is_plan ? absl::StrCat(arguments[0], ", a plan")
                             : absl::StrCat(arguments.size(), " of them")));
  }
  const auto scaling = ParseFp8Scaling(absl::GetFlag(FLAGS_fp8_scaling));
  if (!scaling.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--fp8_scaling: ", scaling.status().message()));
  }
  ISOMER_RETURN_IF_ERROR(TryOutputs());
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlanOrModel(arguments[0], OptionsOfModel()));
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  ISOMER_ASSIGN_OR_RETURN(const HostValues weights, InitialWeights(plan.model, seed));
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  std::optional<Progress> progress;
  ISOMER_ASSIGN_OR_RETURN(
      const Fp8Errors errors,
      MeasureFp8Errors(plan, *scaling, weights, RandomInputs(plan.model.graph, seed + 1),
                       backend.get(), [&](int64_t steps) {
                         if (!progress.has_value()) progress.emplace("measure errors", steps);
                         progress->Advance();
                       }));
  progress.reset();
  const std::string path = absl::GetFlag(FLAGS_out);
  ISOMER_RETURN_IF_ERROR(SaveFp8Errors(path, errors));
  absl::PrintF("bfloat16 %.3g\n", errors.bfloat16);
  for (const auto& [weight, error] : errors.of_weights) absl::PrintF("%s %.3g\n", weight, error);
  absl::PrintF(
      "%s: errors of products with %d weights of %s in 8 bits, a scale per %s; of all "
      "together %.3g\n",
      path, errors.of_weights.size(), errors.model, Fp8ScalingName(errors.scaling),
      errors.Predicted({}));
  Json summary;
  summary["models"] = std::vector<std::string>{errors.model};
  summary["bfloat16"] = errors.bfloat16;
  for (const auto& [weight, error] : errors.of_weights) summary["errors"][weight] = error;
  summary["error_of_all"] = errors.Predicted({});
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(summary));
  return kExitDone;
}

// Of a flag with which nothing is measured, and no summary written.
absl::Status CheckOnlyPrints(absl::string_view flag, const std::vector<std::string>& arguments) {
  const std::string why = absl::StrCat("does not go with --", flag);
  ISOMER_RETURN_IF_ERROR(RefuseFlagsBut({flag}, why));
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"json"}, why));
  if (arguments.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " takes no MODEL"));
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (absl::GetFlag(FLAGS_list_operators)) {
    ISOMER_RETURN_IF_ERROR(CheckOnlyPrints("list_operators", arguments));
    ISOMER_ASSIGN_OR_RETURN(const std::string page, OperatorPage());
    absl::PrintF("%s", page);
    return kExitDone;
  }
  if (const std::string shown = absl::GetFlag(FLAGS_show); !shown.empty()) {
    ISOMER_RETURN_IF_ERROR(CheckOnlyPrints("show", arguments));
    ISOMER_ASSIGN_OR_RETURN(const Profile profile, LoadProfile(shown));
    absl::PrintF("%s", ProfilePage(profile));
    return kExitDone;
  }
  if (arguments.empty()) {
    return absl::InvalidArgumentError("a MODEL or PLAN is expected (see --help)");
  }
  if (absl::GetFlag(FLAGS_out).empty()) return absl::InvalidArgumentError("--out=FILE is needed");
  if (absl::GetFlag(FLAGS_fp8_errors)) return MeasureErrors(arguments);
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"fp8_scaling", "seed"}, "is for --fp8_errors"));
  const std::string communicator = absl::GetFlag(FLAGS_communicator);
  if (communicator == "mpi") return MeasureAsProcess(arguments, MakeMpiCommunicator);
  if (communicator == "tcp") return MeasureAsProcess(arguments, MakeTcpCommunicator);
  if (communicator != "threads") {
    return absl::InvalidArgumentError(
        absl::StrCat("--communicator=", communicator, ": there are threads, mpi and tcp"));
  }
  ISOMER_ASSIGN_OR_RETURN(const int64_t devices, DevicesFor(arguments));
  return Measure(arguments, devices, nullptr);
}

CompletionWords Words() {
  return {.of_flags = {{"backend", {"cpu", "cuda"}},
                       {"cache", {"step", "cold", "hot"}},
                       {"communicator", {"threads", "mpi", "tcp"}},
                       {"fp8_scaling", {"tensor", "row", "block"}},
                       {"mode", {"training", "inference"}},
                       {"precision", {"float32", "bfloat16", "float16", "fp8"}}},
          .arguments = ZooWords()};
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-profile",
       .purpose = "Measures what a model's plans take on this device: kernels, collectives.",
       .usage = "MODEL|PLAN.. --out=FILE [--devices=2] [--communicator=mpi] | --show=FILE",
       .example = "isomer-profile models/data/bert_tiny.onnx --devices=2 --out=cpu.profile",
       .outputs = {"out"},
       .one_process_writes = true,
       .version = isomer::BuiltVersions(),
       .more_examples = {"isomer-profile --show=cpu.profile",
                         "isomer-profile models/data/bert_tiny.onnx --fp8_errors --out=bert.fp8",
                         "mpirun -n 2 isomer-profile bert.plan --communicator=mpi "
                         "--out=cpu.profile\n# as root: mpirun --allow-run-as-root -n 2 ..."},
       .words = isomer::Words,
       .load_operators = isomer::LoadOperators},
      argc, argv, isomer::Run);
}
