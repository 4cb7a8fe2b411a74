#include "runtime/launch_main.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "models/load_plan.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/precision.h"
#include "pcg/support/messages.h"
#include "pcg/support/program.h"
#include "pcg/support/program_flags.h"
#include "pcg/support/status_macros.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoints_main.h"
#include "runtime/launch/children.h"
#include "runtime/launch/restarts.h"

ABSL_DECLARE_FLAG(std::string, backend);
ABSL_DECLARE_FLAG(std::string, communicator);
ABSL_DECLARE_FLAG(int64_t, devices);
ABSL_DECLARE_FLAG(std::string, checkpoint_dir);

ABSL_FLAG(int64_t, restarts, 0,
          "how often a run that failed, or was killed, is started again from its newest checkpoint "
          "(docs/training.md)");
ABSL_FLAG(std::string, available_devices, "",
          "with --restarts: a command that prints how many devices there are; asked before each "
          "start but the first. Of GPUs, unless it is said: nvidia-smi --list-gpus | wc -l");
ABSL_FLAG(std::string, replan, "",
          "with --restarts: a command that plans the model for fewer devices, where some are gone: "
          "{model}, {devices} and {out} in it are replaced. Unless it is said, isomer-optimize for "
          "the plan's machine");

namespace isomer {
namespace {

// Flags of the parent alone.
const std::set<std::string>& FlagsOfParent() {
  static const auto* const flags =
      new std::set<std::string>{"communicator", "restarts", "available_devices", "replan"};
  return *flags;
}

bool HasProcesses() { return absl::GetFlag(FLAGS_communicator) == "processes"; }

// Of a shell command: what is within apostrophes.
std::string ShellQuoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

// In what the next plan must compute, as flags of isomer-optimize.
std::string FlagsOfPrecision(const Plan& plan) {
  std::string flags =
      absl::StrCat(" --precision=", PrecisionName(plan),
                   " --gradient_precision=", PrecisionName(plan.update.gradient_sums));
  if (!plan.fp8.any()) return flags;
  const std::string kept = plan.fp8.kept.empty() ? "none" : absl::StrJoin(plan.fp8.kept, ",");
  absl::StrAppend(&flags, " --fp8_scaling=", Fp8ScalingName(plan.fp8.scaling),
                  " --fp8_keep=", ShellQuoted(kept));
  if (plan.fp8.error_budget > 0) absl::StrAppend(&flags, " --fp8_error=", plan.fp8.error_budget);
  return flags;
}

// What the parent knows of a plan.
struct PlanFacts {
  int64_t num_devices = 1;
  std::string machine, optimizer, precision_flags;
  bool clips = false, averages = false;
};

class Parent {
 public:
  explicit Parent(std::string spec) : spec_(std::move(spec)), plan_(spec_) {}

  absl::StatusOr<int> Run() {
    if (HasProcesses() || absl::GetFlag(FLAGS_restarts) > 0) ISOMER_RETURN_IF_ERROR(ReadPlan());
    Restarts restarts(absl::GetFlag(FLAGS_restarts));
    while (true) {
      ISOMER_ASSIGN_OR_RETURN(const ChildrenEnd end, RunChildren(OptionsOf(restarts.so_far() > 0)));
      const bool is_lost = !end.killed.empty() || end.code == kExitStopped || end.code < 0;
      const int code = end.code > kExitNo   ? end.code
                       : FolderOf().empty() ? kExitBadInput
                                            : kExitStopped;
      if (!is_lost) return end.code;
      if (!end.stopped_by.empty()) return code;
      const std::string why_not = restarts.Failed(NewestStep());
      if (!why_not.empty()) return GiveUp(end, why_not, code);
      PrintNote(absl::StrCat(end.killed.empty() ? "the run failed" : end.killed, "; start ",
                             restarts.so_far() + 1, " of ", restarts.most() + 1, ", from step ",
                             NewestStep()));
      ISOMER_RETURN_IF_ERROR(FitToDevices());
    }
  }

 private:
  static std::string FolderOf() { return absl::GetFlag(FLAGS_checkpoint_dir); }
  static int64_t NewestStep() {
    const std::vector<int64_t> steps = CheckpointSteps(FolderOf());
    return steps.empty() ? 0 : steps.back();
  }

  absl::Status ReadPlan() {
    ISOMER_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(spec_));
    if (!is_plan) {
      if (!HasProcesses()) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(
          spec_, ": --communicator=processes needs a plan; a model runs on one device"));
    }
    ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(spec_));
    facts_ = {plan.num_devices,
              plan.machine,
              std::string(OptimizerName(plan.update.optimizer)),
              FlagsOfPrecision(plan),
              plan.update.clips,
              plan.update.averages};
    is_plan_ = true;
    devices_ = facts_.num_devices;
    return absl::OkStatus();
  }

  // What the children are: this program, with its flags.
  ChildrenOptions OptionsOf(bool resumes) const {
    ChildrenOptions options = {.command = {OwnProgram()}, .are_ranks = HasProcesses()};
    const bool is_replanned = plan_ != spec_;
    if (HasProcesses()) {
      // --devices=N is for the plan that was given.
      const int64_t wanted = is_replanned ? 0 : absl::GetFlag(FLAGS_devices);
      options.count = static_cast<int32_t>(std::max(devices_, wanted));
    }
    for (const CommonFlag& flag : CommonFlags()) {
      if (flag.is_parsed) AddFlag(std::string(flag.name), &options.command);
    }
    for (const absl::CommandLineFlag* flag : ProgramFlags()) {
      const std::string name(flag->Name());
      if (FlagsOfParent().count(name) > 0 || (resumes && name == "resume")) continue;
      if (is_replanned && name == "devices") continue;
      // What waits in a plan of ours need not be told to.
      if (is_replanned && absl::GetFlag(FLAGS_replan).empty() && name == "late_updates") continue;
      AddFlag(name, &options.command);
    }
    if (HasProcesses()) options.command.push_back("--communicator=tcp");
    if (resumes) options.command.push_back("--resume");
    options.command.insert(options.command.end(), {"--", plan_});
    return options;
  }

  static void AddFlag(const std::string& name, std::vector<std::string>* command) {
    const absl::CommandLineFlag* const flag = FindFlag(name);
    if (flag == nullptr || !WasGiven(name)) return;
    command->push_back(absl::StrCat("--", name, "=", flag->CurrentValue()));
  }

  // One line: that of whoever knew best.
  static int GiveUp(const ChildrenEnd& end, const std::string& why_not, int code) {
    const std::string what = end.killed.empty() ? "the run failed" : end.killed;
    // A child that ended by itself has said why.
    if (absl::GetFlag(FLAGS_restarts) == 0 && end.code > kExitNo) {
      if (!end.killed.empty()) PrintNote(end.killed);
      return code;
    }
    absl::Status status = absl::UnavailableError(absl::StrCat(what, "; ", why_not));
    if (absl::GetFlag(FLAGS_restarts) == 0) status = absl::UnavailableError(what);
    ExitWith(FolderOf().empty() ? status : Checkpoints::WithAdvice(status));
    return code;
  }

  // The command's first word as a number.
  static absl::StatusOr<int64_t> CountDevices(const std::string& command) {
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return absl::UnavailableError("--available_devices cannot be run");
    std::array<char, 64> text = {};
    const size_t size = std::fread(text.data(), 1, text.size() - 1, pipe);
    const int status = pclose(pipe);
    int64_t count = 0;
    const std::string word(absl::StripAsciiWhitespace({text.data(), size}));
    if (status == 0 && absl::SimpleAtoi(word, &count) && count >= 0) return count;
    return absl::UnavailableError(absl::StrCat(
        "--available_devices=", command, ": a number is expected, but it prints '", word, "'"));
  }

  // Where devices are gone, a plan for those that are left takes the place of the one that was
  // given; and that one comes back with them.
  absl::Status FitToDevices() {
    std::string command = absl::GetFlag(FLAGS_available_devices);
    if (command.empty() && absl::GetFlag(FLAGS_backend) == "cuda") {
      command = "nvidia-smi --list-gpus | wc -l";
    }
    if (command.empty()) return absl::OkStatus();
    ISOMER_ASSIGN_OR_RETURN(const int64_t available, CountDevices(command));
    if (available == 0) return absl::UnavailableError("no device is left");
    if (available >= facts_.num_devices) {
      plan_ = spec_;
      devices_ = facts_.num_devices;
      return absl::OkStatus();
    }
    if (plan_ != spec_ && devices_ <= available) return absl::OkStatus();
    return Replan(available);
  }

  // What the next plan must have room for, as this one has or the run asks for: updates that wait
  // for all gradients, and averages.
  std::string FlagsOfUpdate() const {
    const bool waits = facts_.clips || WasGiven("clip_norm") || WasGiven("gradient_norm") ||
                       WasGiven("accumulate") || WasGiven("late_updates");
    const bool averages = facts_.averages || WasGiven("average_decay");
    return absl::StrCat(waits ? " --clip_norm" : "", averages ? " --average" : "");
  }

  absl::Status Replan(int64_t available) {
    if (!is_plan_) {
      return absl::UnavailableError(
          absl::StrCat(available, " devices are left; ", spec_, " is a model, which needs one"));
    }
    const std::string folder = FolderOf();
    const std::string model = absl::StrCat(folder, "/replanned.model");
    const std::string out = absl::StrCat(folder, "/replanned-", available, "-devices.plan");
    {
      ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(spec_));
      ISOMER_RETURN_IF_ERROR(SaveModel(model, plan.model));
    }
    std::string command = absl::GetFlag(FLAGS_replan);
    if (command.empty()) {
      const std::string optimize =
          (std::filesystem::path(OwnProgram()).parent_path() / "isomer-optimize").string();
      command =
          absl::StrCat(ShellQuoted(optimize), " {model} --machine=", ShellQuoted(facts_.machine),
                       " --nodes=1 --devices_per_node={devices} --optimizer=", facts_.optimizer,
                       facts_.precision_flags, FlagsOfUpdate(), " --out={out} --quiet >/dev/null");
    }
    command = absl::StrReplaceAll(command, {{"{model}", ShellQuoted(model)},
                                            {"{devices}", absl::StrCat(available)},
                                            {"{out}", ShellQuoted(out)}});
    const int status = std::system(command.c_str());
    std::error_code ignored;
    std::filesystem::remove(model, ignored);
    if (status != 0) {
      return absl::UnavailableError(absl::StrCat(available, " of ", facts_.num_devices,
                                                 " devices are left, and no plan for them was made "
                                                 "by ",
                                                 command));
    }
    ISOMER_ASSIGN_OR_RETURN(const Plan plan, LoadPlan(out));
    if (plan.num_devices > available) {
      return absl::InvalidArgumentError(absl::StrCat("--replan: ", out, " is for ",
                                                     plan.num_devices, " devices, but ", available,
                                                     " are left"));
    }
    PrintNote(absl::StrCat(available, " of ", facts_.num_devices,
                           " devices are left: it goes on under ", out));
    plan_ = out;
    devices_ = plan.num_devices;
    return absl::OkStatus();
  }

  const std::string spec_;
  std::string plan_;  // of the next start
  int64_t devices_ = 1;
  bool is_plan_ = false;
  PlanFacts facts_;  // of spec_
};

}  // namespace

absl::StatusOr<bool> IsParent() {
  const int64_t restarts = absl::GetFlag(FLAGS_restarts);
  if (restarts < 0) return absl::InvalidArgumentError("--restarts must not be negative");
  if (restarts == 0) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"available_devices", "replan"}, "needs --restarts"));
    return HasProcesses();
  }
  const std::string communicator = absl::GetFlag(FLAGS_communicator);
  if (communicator == "mpi" || communicator == "tcp") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--restarts: of --communicator=", communicator,
        " others start the processes (torchrun has --max-restarts, to be used with --resume); "
        "--communicator=processes starts them on this computer"));
  }
  if (absl::GetFlag(FLAGS_checkpoint_dir).empty() || !WasGiven("checkpoint_every")) {
    return absl::InvalidArgumentError("--restarts needs --checkpoint_dir and --checkpoint_every");
  }
  return true;
}

absl::StatusOr<int> RunAsParent(const std::string& spec) { return Parent(spec).Run(); }

}  // namespace isomer
