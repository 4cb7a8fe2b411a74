// isomer-run: runs a plan, or a model as it is, on virtual devices; trains, checks, traces.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "models/evaluation_form.h"
#include "models/experts_room.h"
#include "models/load.h"
#include "models/load_plan.h"
#include "models/zoo/zoo.h"
#include "pcg/ir/expert_room.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/weight_update.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/profile/expert_loads.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/program/program.h"
#include "pcg/support/file.h"
#include "pcg/support/gzip.h"
#include "pcg/support/hash.h"
#include "pcg/support/json.h"
#include "pcg/support/messages.h"
#include "pcg/support/output_files.h"
#include "pcg/support/program.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/check_executions.h"
#include "runtime/checkpoint/disk_progress.h"
#include "runtime/checkpoints_main.h"
#include "runtime/communication/process_communicator.h"
#include "runtime/cuda/routes.h"
#include "runtime/data/batch_groups.h"
#include "runtime/data/element_type.h"
#include "runtime/data/feeder.h"
#include "runtime/device/last_resort.h"
#include "runtime/device/statistics.h"
#include "runtime/evaluation_main.h"
#include "runtime/execution/host_memory.h"
#include "runtime/execution/job.h"
#include "runtime/execution/learning_rate.h"
#include "runtime/execution/make_backend.h"
#include "runtime/fetch_main.h"
#include "runtime/generate_main.h"
#include "runtime/launch/children.h"
#include "runtime/launch_main.h"
#include "runtime/logging/process_memory.h"
#include "runtime/logs_main.h"
#include "runtime/steps_main.h"
#include "runtime/test_data_main.h"
#include "runtime/training_main.h"
#include "runtime/weights_main.h"

ABSL_DECLARE_FLAG(std::string, log_csv);
ABSL_DECLARE_FLAG(std::string, prefill);

ABSL_FLAG(std::string, backend, "cpu", "cpu, or cuda: GPUs (docs/gpu.md)");
ABSL_FLAG(std::string, communicator, "threads",
          "threads: one thread per device; processes: one process each, on this computer; mpi: one "
          "process each, started by mpirun; tcp: one process each, started by torchrun, srun or a "
          "script (docs/running.md)");
ABSL_FLAG(
    std::string, execution, "",
    "how a device runs its queues, of computation, of communication, and of gradients and "
    "weights: inline, one task after the other (what cores do unless it is said); threaded, side "
    "by side, in a thread each or, on GPUs, which do this unless it is said, in streams; "
    "adversarial, in an order drawn from --execution_seed, over memory that is watched (slow; "
    "finds races)");
ABSL_FLAG(uint64_t, execution_seed, 1, "of --execution=adversarial");
ABSL_FLAG(double, stall_timeout, 5,
          "seconds after which a process that is not heard any more, or a disk that does not go on "
          "while a checkpoint is waited for, ends the run; 0: never (docs/running.md)");
ABSL_FLAG(bool, pin, true, "keep each device to a core of its own, where there are as many");
ABSL_FLAG(int64_t, devices, 0, "virtual devices, at least those of the plan; 0: just those");
ABSL_FLAG(std::string, mode, "training", "of a MODEL: training or inference; a plan has its own");
ABSL_FLAG(std::string, precision, "float32",
          "of a MODEL: float32, bfloat16, float16 or fp8; a plan has its own");
ABSL_FLAG(std::string, optimizer, "sgd",
          "of a MODEL: sgd, momentum, adam, lion, adagrad, lamb or muon; a plan has its own");
ABSL_FLAG(int64_t, batch_size, 0, "of a MODEL that leaves it open");
ABSL_FLAG(std::vector<std::string>, dim, {},
          "name=N: the size of a symbolic dim of an .onnx file; may be given several times");
ABSL_FLAG(
    std::vector<std::string>, carry, {},
    "of a MODEL in inference: OUTPUT:INPUT of what a step leaves to the next, or none; without, "
    "outputs present.* and inputs past.* are paired (docs/inference.md)");
ABSL_FLAG(bool, list_unsupported, false,
          "list what of an .onnx file is not supported, and run nothing; exit 1 if there is any");
ABSL_FLAG(bool, list_kernels, false,
          "list what a GPU would be given to do in a step, by operator: cuBLASLt's products, "
          "generated kernels and others, and run nothing. Needs no GPU");
ABSL_FLAG(
    std::string, test_data, "",
    "folder of an ONNX test case (input_0.pb, output_0.pb, .., or test_data_set_* of such; of "
    "a training step target_0.pb and gradient_0.pb, ..): run the PLAN or the .onnx MODEL on "
    "it and compare; exit 1 if anything differs, 2 if something is refused. The MODEL may be "
    "left out where model.onnx lies there or beside it");
ABSL_FLAG(int64_t, steps, 0, "steps to run; 0: 10, or what --epochs says");
ABSL_FLAG(int64_t, epochs, 0, "passes over the training rows of --data");
ABSL_FLAG(std::string, loss_scale, "auto",
          "of training in float16: auto, as large as gradients stay finite (steps in which they do "
          "not are skipped); or N, always");
ABSL_FLAG(std::vector<std::string>, data, {},
          "FILE of rows to train on, or INPUT=FILE for an input of the model; may be given several "
          "times. CSV, .npy, .npz, IDX, raw tokens or Megatron's .bin and .idx (docs/training.md); "
          "none: random inputs from the seed");
ABSL_FLAG(std::vector<std::string>, eval_data, {},
          "rows that test and do not train, as --data has them; in place of --test_split");
ABSL_FLAG(std::string, data_dtype, "",
          "of files that are nothing but tokens: uint16, uint32, ..; else their name or contents "
          "say it");
ABSL_FLAG(std::string, label_column, "",
          "of CSV, whose first line has names: the labels; else 'label', 'labels', 'target', "
          "'class', 'y', or the last column");
ABSL_FLAG(double, data_scale, 0,
          "factor of the values of float inputs; 0: for CSV and integers one over the largest in "
          "the training rows, else 1");
ABSL_FLAG(std::string, test_split, "every_fifth",
          "which rows test and do not train: every_fifth; tail:N, the last N; or none");
ABSL_FLAG(bool, shuffle, true,
          "train on the rows of --data in another order in each epoch, drawn from the seed");
ABSL_FLAG(bool, scan_data, true,
          "look at all values of --data before the first step; else one that does not fit is an "
          "error of the step that reads it");
ABSL_FLAG(
    bool, check, false,
    "compare outputs and all gradients of the first step with the unoptimised model on one "
    "device; exit 1 if one differs by more than the rounding of the plan's precision and sums may "
    "do, which draws of random rounding in the model tell (docs/running.md)");
ABSL_FLAG(int64_t, check_executions, 0,
          "N: run the first step twice with each --execution, adversarial with seeds 1 to N, and "
          "compare outputs, gradients and parameters to the bit; exit 1 if any differs");
ABSL_FLAG(double, rtol, 1e-3, "of --test_data: how far an element may be off, of what is expected");
ABSL_FLAG(double, atol, -1,
          "of --test_data: how far it may be off besides; -1: 1e-7, or 1e-5 of the largest element "
          "that is expected");
ABSL_FLAG(std::string, expert_loads, "",
          "of mixtures: write how many tokens each expert got in the run to this file, for "
          "isomer-optimize --expert_loads");
ABSL_FLAG(bool, print_outputs, false,
          "print every output of the last step: its name, type and first values");
ABSL_FLAG(uint64_t, seed, 1, "of initial weights that the model lacks, and of random inputs");
ABSL_FLAG(bool, print_schedule, false, "print every task of the schedule first");
ABSL_FLAG(bool, print_program, false,
          "print first what each device runs: commands by queue, with the bytes that they read "
          "and write and what they wait for");
ABSL_FLAG(std::string, trace, "",
          "write a Chrome trace of the last steps to this file, compressed where it ends with .gz");
ABSL_FLAG(int64_t, trace_steps, 1, "how many of the last steps --trace shows");
namespace isomer {
namespace {

PlanOptions OptionsOfModel() {
  PlanOptions options;
  options.load.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.load.dims = absl::GetFlag(FLAGS_dim);
  options.mode = absl::GetFlag(FLAGS_mode);
  options.precision = absl::GetFlag(FLAGS_precision);
  options.optimizer = absl::GetFlag(FLAGS_optimizer);
  options.carry = absl::GetFlag(FLAGS_carry);
  return options;
}

// What does not apply is refused, before anything is read but the file's kind.
absl::Status RefuseFlagsThatDoNotApply(const std::string& spec) {
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(spec));
  if (is_plan) {
    ISOMER_RETURN_IF_ERROR(
        RefuseFlags({"mode", "precision", "optimizer", "batch_size", "dim", "carry"},
                    "is of a model; " + spec + " is a plan, which has its own"));
  }
  if (absl::GetFlag(FLAGS_data).empty()) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"data_scale", "data_dtype", "label_column", "eval_data",
                                        "test_split", "shuffle", "scan_data", "epochs"},
                                       "needs --data"));
  }
  if (!absl::GetFlag(FLAGS_eval_data).empty()) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"test_split"}, "does not go with --eval_data"));
  }
  if (absl::GetFlag(FLAGS_trace).empty()) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"trace_steps"}, "needs --trace"));
  }
  if (!is_plan && absl::GetFlag(FLAGS_mode) == "inference") {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"optimizer"}, "is for --mode=training"));
    return RefuseTrainingFlags("is for --mode=training");
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecutionKind> ExecutionKindFromFlags() {
  const std::string kind = absl::GetFlag(FLAGS_execution);
  if (!kind.empty()) return ParseExecutionKind(kind);
  return absl::GetFlag(FLAGS_backend) == "cuda" ? ExecutionKind::kThreaded : ExecutionKind::kInline;
}

absl::StatusOr<Execution> ExecutionFromFlags(const ProcessCommunicator* processes) {
  Execution execution = {.seed = absl::GetFlag(FLAGS_execution_seed)};
  ISOMER_ASSIGN_OR_RETURN(execution.kind, ExecutionKindFromFlags());
  if (execution.kind != ExecutionKind::kAdversarial) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"execution_seed"}, "is for --execution=adversarial"));
  }
  if (execution.kind == ExecutionKind::kThreaded && processes != nullptr &&
      !processes->serves_other_threads()) {
    return absl::FailedPreconditionError(
        "--execution=threaded: this MPI serves one thread of a process (MPI_THREAD_FUNNELED)");
  }
  return execution;
}

// Of a plan in float16. --check compares the first step, which may not be skipped.
absl::Status SetLossScale(const Plan& plan, const Schedule& schedule, bool speaks,
                          JobOptions* options) {
  const std::string scale = absl::GetFlag(FLAGS_loss_scale);
  const bool is_scaled = plan.mode == "training" && plan.precision == DataType::kFloat16;
  if (!is_scaled) return RefuseFlags({"loss_scale"}, "is for training in float16");
  if (scale != "auto") {
    if (!absl::SimpleAtod(scale, &options->loss_scale) ||
        !(options->loss_scale >= DynamicLossScale::kLeast) ||
        !(options->loss_scale <= DynamicLossScale::kLargest)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--loss_scale=", scale, ": auto is expected, or a number from 2^-24 to 2^24"));
    }
    return absl::OkStatus();
  }
  if (absl::GetFlag(FLAGS_check)) return absl::OkStatus();
  options->finds_loss_scale = CanSkipUpdates(schedule);
  if (options->finds_loss_scale) {
    options->loss_scale = DynamicLossScale::kFirst;
  } else if (speaks) {
    PrintNote(absl::StrFormat(
        "the loss scale stays %g, as the plan updates weights before all gradients are known",
        schedule.options.seed));
  }
  return absl::OkStatus();
}

// `processes`: null where devices are threads.
absl::Status CheckFlags(const Communicator* processes, Plan* plan) {
  const int64_t devices = absl::GetFlag(FLAGS_devices);
  if (devices != 0 && devices < plan->num_devices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", devices, ": the plan needs ", plan->num_devices));
  }
  plan->num_devices = std::max(devices, plan->num_devices);
  if (processes != nullptr && processes->num_ranks() != plan->num_devices) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--communicator=", absl::GetFlag(FLAGS_communicator), ": the plan is for ",
        plan->num_devices, " devices, but there are ", processes->num_ranks(), " processes"));
  }
  if (processes == nullptr) ISOMER_RETURN_IF_ERROR(CheckRunsInThreads(*plan));
  if (absl::GetFlag(FLAGS_steps) < 0 || absl::GetFlag(FLAGS_epochs) < 0) {
    return absl::InvalidArgumentError("--steps and --epochs must not be negative");
  }
  if (absl::GetFlag(FLAGS_data_scale) < 0) {
    return absl::InvalidArgumentError("--data_scale must not be negative");
  }
  if (absl::GetFlag(FLAGS_check_executions) < 0) {
    return absl::InvalidArgumentError("--check_executions must not be negative");
  }
  if (processes != nullptr) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"check_executions"}, "is for --communicator=threads"));
  }
  ISOMER_RETURN_IF_ERROR(TrainingLogs::CheckFlags());
  if (absl::GetFlag(FLAGS_trace_steps) < 1) {
    return absl::InvalidArgumentError("--trace_steps must be positive");
  }
  return absl::OkStatus();
}

// `read`: files of other flags.
absl::StatusOr<Feeder> MakeFeeder(const Graph& graph, std::vector<NamedFile> read) {
  // Such as that of a variable that a script has not set.
  for (const auto& [flag, files] : {std::pair("data", absl::GetFlag(FLAGS_data)),
                                    std::pair("eval_data", absl::GetFlag(FLAGS_eval_data))}) {
    if (WasGiven(flag) && files.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": a file is expected"));
    }
  }
  DataOptions options = {.files = absl::GetFlag(FLAGS_data),
                         .eval_files = absl::GetFlag(FLAGS_eval_data),
                         .open = {.label_column = absl::GetFlag(FLAGS_label_column)},
                         .scale = absl::GetFlag(FLAGS_data_scale),
                         .test_split = absl::GetFlag(FLAGS_test_split),
                         .shuffle = absl::GetFlag(FLAGS_shuffle),
                         .scan = absl::GetFlag(FLAGS_scan_data),
                         .seed = absl::GetFlag(FLAGS_seed)};
  const std::string dtype = absl::GetFlag(FLAGS_data_dtype);
  if (!dtype.empty()) {
    options.open.raw_type = ElementTypeNamed(dtype);
    if (!options.open.raw_type.has_value() || IsFloatElement(*options.open.raw_type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--data_dtype=", dtype,
                       ": uint8, uint16, uint32, int32, int64 and the like are types of "
                       "tokens"));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(Feeder feeder, Feeder::OverFiles(graph, options));
  // Some of the files are found beside those that flags name.
  std::vector<NamedFile> written;
  for (const std::string& file : feeder.files()) read.push_back({"--data", file});
  for (const auto& [flag, path] : {std::pair("--out", absl::GetFlag(FLAGS_out)),
                                   std::pair("--trace", absl::GetFlag(FLAGS_trace)),
                                   std::pair("--expert_loads", absl::GetFlag(FLAGS_expert_loads)),
                                   std::pair("--log_csv", absl::GetFlag(FLAGS_log_csv)),
                                   std::pair("--json", absl::GetFlag(FLAGS_json))}) {
    if (!path.empty()) written.push_back({flag, path});
  }
  ISOMER_RETURN_IF_ERROR(CheckAreApart(written, read));
  return feeder;
}

// Processes on several computers may each find another file under one name.
absl::Status CheckAllReadTheSame(const Feeder& feeder, ProcessCommunicator* processes) {
  if (processes == nullptr || !feeder.has_rows()) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> fingerprints,
                          processes->Gather(DigestString(feeder.fingerprint())));
  for (size_t rank = 1; rank < fingerprints.size(); ++rank) {
    if (fingerprints[rank] == fingerprints[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--data: rank ", rank, " has other files than rank 0, or another seed"));
  }
  return absl::OkStatus();
}

// What is read, and how long steps waited for it.
void SummariseData(const Feeder& feeder, Json* summary) {
  if (!feeder.has_rows()) return;
  Json& data = (*summary)["data"];
  data["files"] = Json(feeder.files());
  data["fingerprint"] = DigestString(feeder.fingerprint());
  data["batches_per_epoch"] = feeder.batches_per_epoch();
  data["test_rows"] = feeder.test_rows();
  const Spread waits = SpreadOf(feeder.waits_us());
  (*summary)["data_wait_us"]["median"] = waits.median;
  (*summary)["data_wait_us"]["max"] = waits.max;
}

// What experts got in the run, to --expert_loads.
absl::Status SaveLoads(const std::string& model, bool writes, std::chrono::milliseconds stall,
                       ProcessCommunicator* processes, Job* job, Json* summary) {
  const std::string path = absl::GetFlag(FLAGS_expert_loads);
  if (path.empty()) return absl::OkStatus();
  ExpertLoads loads{.model = model};
  ISOMER_ASSIGN_OR_RETURN(loads.calls, job->ExpertLoadsSoFar());
  if (!writes) return absl::OkStatus();
  absl::PrintF("experts: the busiest got %g times the even load\n", loads.Imbalance());
  (*summary)["expert_imbalance"] = loads.Imbalance();
  constexpr int64_t kBytesPerExpert = 16;
  int64_t bytes = 0;
  for (const ExpertLoad& call : loads.calls) {
    bytes += kBytesPerExpert * static_cast<int64_t>(call.tokens.size());
  }
  return WriteInTime(stall, bytes, processes, [&] { return SaveExpertLoads(path, loads); });
}

absl::Status PrintOutputs(const Graph& graph, Job* job) {
  constexpr int64_t kShown = 8;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    ISOMER_ASSIGN_OR_RETURN(const Array<double> value, job->Output(output.name));
    absl::PrintF("%s %s:", output.name, graph.type(output.tensor).ToString());
    for (int64_t i = 0; i < std::min(value.size(), kShown); ++i) {
      absl::PrintF(" %.6g", value.data[i]);
    }
    absl::PrintF("%s\n", value.size() > kShown ? " .." : "");
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ListUnsupported(const std::string& spec) {
  std::vector<std::string> notes;
  LoadOptions options;
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.dims = absl::GetFlag(FLAGS_dim);
  options.notes = &notes;
  ISOMER_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ListUnsupportedOf(spec, options));
  for (const std::string& note : notes) PrintNote(note);
  for (const std::string& line : lines) absl::PrintF("%s\n", line);
  return lines.empty() ? kExitDone : kExitNo;
}

absl::StatusOr<int> ListKernels(const std::string& spec) {
  ISOMER_RETURN_IF_ERROR(RefuseFlagsThatDoNotApply(spec));
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlanOrModel(spec, OptionsOfModel()));
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerPlan(plan, /*keep_gradients=*/false));
  std::fputs(RoutesToString(RoutesOf(lowered.mapped.graph, lowered.schedule, /*device=*/0)).c_str(),
             stdout);
  return kExitDone;
}

// Neither data nor a rate were chosen, and nothing is kept of the run.
bool OnlyTimes() {
  for (const char* flag :
       {"data", "learning_rate", "schedule", "clip_norm", "out", "checkpoint_dir"}) {
    if (WasGiven(flag)) return false;
  }
  return true;
}

StepOptions StepOptionsFromFlags(const LearningRate& rate, bool speaks) {
  return {.steps = absl::GetFlag(FLAGS_steps),
          .epochs = absl::GetFlag(FLAGS_epochs),
          .learning_rate = rate,
          .check = absl::GetFlag(FLAGS_check),
          .trace_steps = absl::GetFlag(FLAGS_trace).empty() ? 0 : absl::GetFlag(FLAGS_trace_steps),
          .only_times = OnlyTimes(),
          .speaks = speaks};
}

absl::StatusOr<int> FetchFrom(const std::string& spec, Backend* backend,
                              ProcessCommunicator* processes) {
  ISOMER_RETURN_IF_ERROR(CheckFlagsOfFetch());
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(spec));
  if (is_plan) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"mode", "precision", "batch_size", "dim"},
                                       "is of a model; " + spec + " is a plan, which has its own"));
  }
  PlanOptions options = OptionsOfModel();
  // A model runs as its file says, unless it is to be trained.
  if (!WasGiven("mode")) options.mode = "inference";
  ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlanOrModel(spec, options));
  std::vector<NamedFile> read;
  const bool speaks = processes == nullptr || processes->rank() == 0;
  ISOMER_RETURN_IF_ERROR(LoadWeights(processes, speaks, &plan.model, &read));
  ISOMER_ASSIGN_OR_RETURN(const Execution execution, ExecutionFromFlags(processes));
  ISOMER_RETURN_IF_ERROR(RunFetch(std::move(plan), is_plan, execution, backend, processes));
  return kExitDone;
}

// A plan, or a model as one for inference, of --generate.
absl::StatusOr<Plan> DecoderOf(const std::string& spec, ProcessCommunicator* processes) {
  ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(spec));
  if (is_plan) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"mode", "precision", "batch_size", "dim", "carry"},
                                       "is of a model; " + spec + " is a plan, which has its own"));
  }
  PlanOptions options = OptionsOfModel();
  options.mode = "inference";
  ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlanOrModel(spec, options));
  std::vector<NamedFile> read;
  const bool speaks = processes == nullptr || processes->rank() == 0;
  ISOMER_RETURN_IF_ERROR(LoadWeights(processes, speaks, &plan.model, &read));
  return plan;
}

absl::StatusOr<int> Generate(const std::string& spec, Backend* backend,
                             ProcessCommunicator* processes) {
  ISOMER_RETURN_IF_ERROR(CheckFlagsOfGenerate());
  ISOMER_ASSIGN_OR_RETURN(Plan plan, DecoderOf(spec, processes));
  std::optional<Plan> prefill;
  if (const std::string path = absl::GetFlag(FLAGS_prefill); !path.empty()) {
    ISOMER_ASSIGN_OR_RETURN(prefill, DecoderOf(path, processes));
  }
  ISOMER_ASSIGN_OR_RETURN(const Execution execution, ExecutionFromFlags(processes));
  ISOMER_RETURN_IF_ERROR(
      RunGenerate(std::move(plan), std::move(prefill), execution, backend, processes));
  return kExitDone;
}

absl::StatusOr<std::chrono::milliseconds> StallTimeoutFromFlags() {
  const double seconds = absl::GetFlag(FLAGS_stall_timeout);
  constexpr double kLeast = 0.1, kMost = 1e6;
  if (seconds != 0 && !(seconds >= kLeast && seconds <= kMost)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stall_timeout=", seconds, ": 0 is expected, or seconds from 0.1 to 1e6"));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// Ends of a run with an error, which one thread or another comes to first.
class RunEnd {
 public:
  // Says the error, and how to go on where it can, if nobody did; returns the exit code.
  int Say(const absl::Status& status) {
    const bool is_first = !is_said_.exchange(true);
    if (is_first) ExitWith(code == kExitStopped ? Checkpoints::WithAdvice(status) : status);
    return code;
  }
  // Nothing is to be said any more by this process.
  int SayNothing() {
    is_said_ = true;
    return code;
  }
  // Where the process does not end by itself. `processes` as RunSteps has it.
  void SetLastResort(const ProcessCommunicator* processes) {
    isomer::SetLastResort([this, processes](const absl::Status& why) {
      if (!is_said_ && (processes == nullptr || processes->speaks())) Say(why);
      // Who starts processes may end all when one has ended: the one that speaks comes first.
      if (processes != nullptr && !processes->speaks()) std::this_thread::sleep_for(kForTheSpeaker);
      std::_Exit(code);
    });
  }

  // With which a program ends for an error that may come now.
  std::atomic<int> code = kExitBadInput;

 private:
  static constexpr std::chrono::milliseconds kForTheSpeaker{500};
  std::atomic<bool> is_said_ = false;
};

// `processes`: null, or the communicator of the processes that all do this; rank 0 writes the
// files. `end`: how a program ends with the error that is returned.
absl::StatusOr<int> RunSteps(const std::string& spec, ProcessCommunicator* processes, RunEnd* end) {
  ISOMER_ASSIGN_OR_RETURN(const std::chrono::milliseconds stall_timeout, StallTimeoutFromFlags());
  const bool writes = processes == nullptr || processes->rank() == 0;
  if (writes) ISOMER_RETURN_IF_ERROR(DoInTime(stall_timeout, processes, TryOutputs));
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                          MakeBackend(absl::GetFlag(FLAGS_backend)));
  if (Fetches()) return FetchFrom(spec, backend.get(), processes);
  if (Generates()) return Generate(spec, backend.get(), processes);
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"prompt", "prefill"}, "needs --generate"));
  ISOMER_RETURN_IF_ERROR(RefuseFlagsThatDoNotApply(spec));
  ISOMER_ASSIGN_OR_RETURN(Plan plan, LoadPlanOrModel(spec, OptionsOfModel()));
  if (plan.mode == "inference") {
    const char* const why = "is for training; the plan is for inference";
    ISOMER_RETURN_IF_ERROR(RefuseTrainingFlags(why));
    ISOMER_RETURN_IF_ERROR(RefuseEvaluationFlags(why));
  }
  ISOMER_RETURN_IF_ERROR(CheckFlags(processes, &plan));
  if (!absl::GetFlag(FLAGS_expert_loads).empty()) {
    if (const absl::Status sends = CheckSendsToExperts(plan.model); !sends.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--expert_loads: ", sends.message()));
    }
  }
  ISOMER_RETURN_IF_ERROR(Checkpoints::CheckFlags(plan.mode));
  ISOMER_ASSIGN_OR_RETURN(const LearningRate rate, LearningRateFromFlags());
  ISOMER_RETURN_IF_ERROR(SetWhenUpdated(&plan));
  ISOMER_RETURN_IF_ERROR(SetAverages(writes, &plan));
  ISOMER_ASSIGN_OR_RETURN(const int64_t accumulate, AccumulateFromFlags());
  ISOMER_RETURN_IF_ERROR(CheckOut(plan.model));
  if (processes == nullptr && backend->operations().shares_host_memory()) {
    ISOMER_RETURN_IF_ERROR(CheckFitsHost(
        absl::StrCat(spec, ": weights", plan.mode == "training" ? " and their states" : ""),
        LeastBytesOfModel(plan)));
  }
  ISOMER_ASSIGN_OR_RETURN(const Execution execution, ExecutionFromFlags(processes));
  std::vector<NamedFile> read;
  ISOMER_RETURN_IF_ERROR(LoadWeights(processes, writes, &plan.model, &read));
  ISOMER_ASSIGN_OR_RETURN(const Feeder feeder, MakeFeeder(plan.model.graph, std::move(read)));
  ISOMER_RETURN_IF_ERROR(CheckAllReadTheSame(feeder, processes));
  ISOMER_ASSIGN_OR_RETURN(const BatchGroups groups, BatchGroups::Of(feeder, accumulate));
  ISOMER_ASSIGN_OR_RETURN(Tests tests, Tests::FromFlags(plan, feeder, groups));
  const int64_t seeds = absl::GetFlag(FLAGS_check_executions);
  ISOMER_ASSIGN_OR_RETURN(LoweredPlan lowered,
                          LowerPlan(plan, absl::GetFlag(FLAGS_check) || seeds > 0));
  const Graph& graph = lowered.mapped.graph;
  // One device goes where there is room: side by side, such runs would all keep to the first core.
  JobOptions options = {.pin = absl::GetFlag(FLAGS_pin) && plan.num_devices > 1,
                        .execution = execution,
                        .statistics = plan.model.statistics,
                        .expert_imbalance = AssumedImbalance(plan.model),
                        .counts_expert_loads = !absl::GetFlag(FLAGS_expert_loads).empty(),
                        .control = processes,
                        .communicator = processes};
  ISOMER_RETURN_IF_ERROR(SetLossScale(plan, lowered.schedule, writes, &options));
  if (plan.mode == "training") {
    ISOMER_RETURN_IF_ERROR(SetTraining(plan, lowered.schedule, accumulate, writes, &options));
  }
  const DeviceOperations& operations = backend->operations();
  // Threads are not lost, and cores may compute for long.
  if (processes == nullptr && operations.shares_host_memory()) {
    options.timeout = ProcessOptions{}.longest_work;
  }
  const bool is_one_for_all =
      !operations.shares_host_memory() && operations.reaches_other_devices();
  if (processes == nullptr && plan.num_devices > 1 && is_one_for_all) {
    PrintNote(absl::StrCat("one GPU is all ", plan.num_devices,
                           " devices: what it computes counts, not its times"));
  }
  if (absl::GetFlag(FLAGS_print_schedule)) {
    std::fputs(lowered.schedule.ToString(graph).c_str(), stdout);
  }
  Json summary;
  summary["model"] = plan.model.name;
  summary["backend"] = std::string(backend->name());
  summary["communicator"] = absl::GetFlag(FLAGS_communicator);
  summary["execution"] = ExecutionKindName(execution.kind);
  summary["devices"] = plan.num_devices;
  summary["mode"] = plan.mode;
  summary["precision"] = std::string(PrecisionName(plan));
  summary["optimizer"] = OptimizerName(plan.update.optimizer);
  if (accumulate > 1) summary["accumulate"] = accumulate;
  summary["scheduled_bytes"] = PeakBytes(lowered.schedule);
  summary["metrics"] = Json::EmptyObject();
  const InitialLeafValues initial(plan.model, absl::GetFlag(FLAGS_seed));
  HostValues weights;  // Whole, for who compares with the model.
  if (absl::GetFlag(FLAGS_check) || seeds > 0) {
    ISOMER_ASSIGN_OR_RETURN(weights, InitialWeights(plan.model, absl::GetFlag(FLAGS_seed)));
  }
  bool executions_agree = true;
  if (seeds > 0) {
    ISOMER_ASSIGN_OR_RETURN(const HostValues inputs, feeder.Batch(0));
    ISOMER_ASSIGN_OR_RETURN(const ExecutionsCheck check,
                            CheckExecutions(graph, lowered.schedule, weights, inputs, rate.At(0),
                                            seeds, backend.get(), options));
    executions_agree = check.difference.empty();
    absl::PrintF("executions: %s\n",
                 executions_agree ? absl::StrCat("inline, threaded and ", check.seeds,
                                                 " adversarial runs: ", check.tensors,
                                                 " tensors are equal to the bit")
                                  : absl::StrCat(check.difference, " DIFFERS from the inline run"));
    summary["executions"]["seeds"] = check.seeds;
    summary["executions"]["tensors"] = check.tensors;
    summary["executions"]["difference"] = check.difference;
  }
  if (writes) {
    for (const std::string& line : feeder.ToLines()) PrintNote(line);
    if (const std::string note = tests.Note(graph, plan.model); !note.empty()) PrintNote(note);
  }
  const int64_t resident_before = ResidentBytes();
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job,
                          Job::Start(graph, std::move(lowered.schedule), backend.get(), options));
  if (absl::GetFlag(FLAGS_print_program)) {
    const Program program = CompileProgram(job->schedule(), job->memory(), execution.num_queues());
    std::fputs(program.ToString(graph, job->schedule()).c_str(), stdout);
  }
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoints> checkpoints,
                          Checkpoints::FromFlags(graph, job.get(), stall_timeout, writes));
  StepOptions steps = StepOptionsFromFlags(rate, writes);
  if (checkpoints == nullptr) {
    ISOMER_RETURN_IF_ERROR(job->SetParameters(initial));
  } else {
    ISOMER_RETURN_IF_ERROR(
        checkpoints->Load(initial, absl::GetFlag(FLAGS_seed),
                          absl::StrCat(DigestString(feeder.fingerprint()),
                                       accumulate > 1 ? absl::StrCat(" x ", accumulate) : "")));
    steps.first_step = checkpoints->first_step();
    end->code = kExitStopped;
  }
  steps.tests_averages = UsesAverage();
  const bool goes_on = steps.first_step > 0;
  ISOMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainingLogs> logs,
      TrainingLogs::FromFlags(plan, feeder, accumulate, tests.metrics(), writes,
                              goes_on ? std::optional<int64_t>(steps.first_step) : std::nullopt));
  const auto save = [&]() -> absl::Status {
    const bool swaps = UsesAverage() && !absl::GetFlag(FLAGS_out).empty();
    if (swaps) ISOMER_RETURN_IF_ERROR(job->SwapAverages());
    ISOMER_RETURN_IF_ERROR(SaveTrainedModel(plan.model, initial, writes, stall_timeout, job.get()));
    return swaps ? job->SwapAverages() : absl::OkStatus();
  };
  StepRunner runner(plan, steps, feeder, groups, backend.get(), job.get(), checkpoints.get(),
                    &tests, logs.get(), save);
  ISOMER_RETURN_IF_ERROR(runner.Run(weights, &summary));
  SummariseData(feeder, &summary);
  ISOMER_RETURN_IF_ERROR(
      SaveLoads(plan.model.name, writes, stall_timeout, processes, job.get(), &summary));
  summary["resident_growth_bytes"] = MostResidentBytes() - resident_before;
  if (absl::GetFlag(FLAGS_print_outputs)) {
    ISOMER_RETURN_IF_ERROR(PrintOutputs(plan.model.graph, job.get()));
  }
  const int64_t best_step = tests.StopsEarly() ? tests.stopping().best_step : -1;
  const bool is_saved = best_step > steps.first_step;  // when it was found
  if (best_step >= 0 && !is_saved && !absl::GetFlag(FLAGS_out).empty()) {
    ISOMER_RETURN_IF_ERROR(checkpoints->LoadBest(initial));
  }
  if (!is_saved) ISOMER_RETURN_IF_ERROR(save());
  if (writes && !runner.trace().empty()) {
    ISOMER_RETURN_IF_ERROR(
        WriteInTime(stall_timeout, static_cast<int64_t>(runner.trace().size()), processes,
                    [&] { return WriteTextOrGzip(absl::GetFlag(FLAGS_trace), runner.trace()); }));
  }
  if (writes) {
    // Some numbers for each step.
    constexpr int64_t kBytesPerStep = 1000;
    ISOMER_RETURN_IF_ERROR(WriteInTime(stall_timeout, kBytesPerStep * absl::GetFlag(FLAGS_steps),
                                       processes, [&] { return WriteJsonSummary(summary); }));
  }
  if (runner.stopped_by() != nullptr) {
    absl::PrintF("stopped by %s; --resume goes on from there\n", runner.stopped_by());
    return kExitStopped;
  }
  return runner.agrees() && executions_agree ? kExitDone : kExitNo;
}

// Every process does the same; rank 0 alone speaks. All end together, with the first error of any.
absl::StatusOr<int> RunAsProcess(
    const std::string& spec,
    absl::StatusOr<std::unique_ptr<ProcessCommunicator>> (*connect)(const ProcessOptions&)) {
  ISOMER_ASSIGN_OR_RETURN(const ExecutionKind execution, ExecutionKindFromFlags());
  ISOMER_ASSIGN_OR_RETURN(const std::chrono::milliseconds stall_timeout, StallTimeoutFromFlags());
  static auto* const end = new RunEnd;  // for as long as the process
  auto connected = connect(
      {.stall_timeout = stall_timeout, .threads_per_rank = Execution{execution}.num_threads()});
  const bool has_parent = std::getenv(kParentVariable) != nullptr;
  if (has_parent && absl::IsAborted(connected.status())) return kExitUnmet;
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<ProcessCommunicator> processes,
                          std::move(connected));
  end->SetLastResort(processes.get());
  const bool speaks = processes->rank() == 0;
  if (!speaks && std::freopen("/dev/null", "w", stdout) == nullptr) {
    return absl::InternalError("/dev/null cannot be opened");
  }
  const absl::StatusOr<int> code = RunSteps(spec, processes.get(), end);
  const absl::Status status = processes->Finish(code.status());
  // Said before any process ends, because who started them then ends the others.
  if (!status.ok() && processes->speaks()) return end->Say(status);
  const int code_of_error = end->SayNothing();
  return status.ok() ? code : code_of_error;
}

absl::StatusOr<int> RunInThreads(const std::string& spec) {
  static auto* const end = new RunEnd;  // for as long as the process
  end->SetLastResort(nullptr);
  const absl::StatusOr<int> code = RunSteps(spec, nullptr, end);
  return code.ok() ? code : end->Say(code.status());
}

absl::StatusOr<int> Run(const std::vector<std::string>& arguments) {
  if (const std::string folder = absl::GetFlag(FLAGS_test_data); !folder.empty()) {
    if (arguments.size() > 1) return absl::InvalidArgumentError("one PLAN or MODEL is expected");
    ISOMER_RETURN_IF_ERROR(
        RefuseFlagsBut({"test_data", "backend", "rtol", "atol"}, "does not go with --test_data"));
    const double rtol = absl::GetFlag(FLAGS_rtol), atol = absl::GetFlag(FLAGS_atol);
    if (rtol < 0 || (atol < 0 && atol != -1)) {
      return absl::InvalidArgumentError("--rtol and --atol must not be negative");
    }
    ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                            MakeBackend(absl::GetFlag(FLAGS_backend)));
    return RunTestData(arguments.empty() ? ModelBeside(folder) : arguments[0], folder, rtol, atol,
                       backend.get());
  }
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"rtol", "atol"}, "is for --test_data"));
  if (arguments.size() != 1) {
    return absl::InvalidArgumentError("one PLAN or MODEL is expected (see --help)");
  }
  if (absl::GetFlag(FLAGS_list_unsupported)) {
    ISOMER_RETURN_IF_ERROR(RefuseFlagsBut({"list_unsupported", "batch_size", "dim"},
                                          "does not go with --list_unsupported"));
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"json"}, "does not go with --list_unsupported"));
    return ListUnsupported(arguments[0]);
  }
  if (absl::GetFlag(FLAGS_list_kernels)) {
    ISOMER_RETURN_IF_ERROR(
        RefuseFlagsBut({"list_kernels", "mode", "precision", "optimizer", "batch_size", "dim"},
                       "does not go with --list_kernels"));
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"json"}, "does not go with --list_kernels"));
    return ListKernels(arguments[0]);
  }
  ISOMER_ASSIGN_OR_RETURN(const bool is_parent, IsParent());
  if (is_parent) return RunAsParent(arguments[0]);
  const std::string communicator = absl::GetFlag(FLAGS_communicator);
  if (communicator == "mpi") return RunAsProcess(arguments[0], MakeMpiCommunicator);
  if (communicator == "tcp") return RunAsProcess(arguments[0], MakeTcpCommunicator);
  if (communicator == "threads") return RunInThreads(arguments[0]);
  return absl::InvalidArgumentError(
      absl::StrCat("--communicator=", communicator, ": there are threads, processes, mpi and tcp"));
}

CompletionWords Words() {
  return {.of_flags = {{"backend", {"cpu", "cuda"}},
                       {"communicator", {"threads", "processes", "mpi", "tcp"}},
                       {"execution", {"inline", "threaded", "adversarial"}},
                       {"mode", {"training", "inference"}},
                       {"optimizer", OptimizerNames()},
                       {"precision", {"float32", "bfloat16", "float16", "fp8"}},
                       {"schedule", ScheduleWords()}},
          .arguments = ZooWords()};
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  return isomer::RunProgram(
      {.name = "isomer-run",
       .purpose = "Runs a plan, or a model as it is, on virtual devices: threads, or processes.",
       .usage = "PLAN|MODEL [--steps=N] [--data=FILE] [--check]; mpirun -n N "
                "isomer-run PLAN --communicator=mpi; torchrun --no-python --nproc_per_node=N "
                "isomer-run PLAN --communicator=tcp",
       .example = "isomer-run digits.plan --data=models/data/digits.csv "
                  "--epochs=20 --learning_rate=0.1",
       .outputs = {"out", "trace", "log_csv", "expert_loads"},
       .one_process_writes = true,
       .version = isomer::BuiltVersions(),
       .more_examples = {"mpirun -n 4 isomer-run bert.plan --communicator=mpi --check\n"
                         "# as root: mpirun --allow-run-as-root -n 4 ...",
                         "torchrun --no-python --nproc_per_node=4 isomer-run bert.plan "
                         "--communicator=tcp"},
       .environment = {{"RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT",
                        "which process it is with --communicator=tcp, as torchrun sets them; under "
                        "srun SLURM_PROCID and its like"},
                       {"ISOMER_PORT", "the port at which processes meet"},
                       {"CUDA_HOME", "where CUDA's libraries are, for --backend=cuda"}},
       .words = isomer::Words,
       .load_operators = isomer::LoadOperators},
      argc, argv, isomer::Run);
}
