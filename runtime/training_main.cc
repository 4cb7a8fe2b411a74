#include "runtime/training_main.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/messages.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/execution/muon_weights.h"

ABSL_FLAG(double, learning_rate, 0.1, "of the optimizer; the peak of a --schedule");
ABSL_FLAG(std::string, schedule, "constant",
          "of the learning rate: constant, linear or cosine down to --final_rate, inverse_sqrt; or "
          "FILE of lines 'STEP RATE', linear in between (docs/training.md)");
ABSL_FLAG(int64_t, warmup_steps, 0, "in which the learning rate rises, linearly, to its peak");
ABSL_FLAG(int64_t, decay_steps, 0,
          "of --schedule=linear and cosine: the step at which the final rate is reached, warm-up "
          "included; 0: the last");
ABSL_FLAG(double, final_rate, 0, "of --schedule=linear and cosine: a fraction of the peak");
ABSL_FLAG(double, momentum, 0.9,
          "of --optimizer=momentum, and of muon, where it is 0.95 unless said");
ABSL_FLAG(bool, nesterov, false,
          "of --optimizer=momentum, and of muon, which has it unless said: Nesterov's way");
ABSL_FLAG(double, beta1, 0.9, "of --optimizer=adam, lion, lamb and muon");
ABSL_FLAG(double, beta2, 0.999,
          "of --optimizer=adam, lamb and muon, and of lion, where it is 0.99 unless said");
ABSL_FLAG(double, epsilon, 1e-8,
          "of --optimizer=adam and muon, of adagrad, where it is 1e-10 unless said, and of lamb, "
          "where it is 1e-6");
ABSL_FLAG(double, weight_decay, 0,
          "of weights: decoupled from gradients with adam (AdamW), lion, lamb and muon, else added "
          "to them");
ABSL_FLAG(
    std::string, muon, "auto",
    "of --optimizer=muon, which weights of two dims it is for, the others being Adam's: auto, "
    "those of products but embeddings and the last (docs/training.md); or REGEX, which their "
    "names match somewhere");
ABSL_FLAG(std::string, muon_scale, "adam",
          "of --optimizer=muon: adam, updates as large as Adam's, 0.2 sqrt(max(rows, columns)); or "
          "spectral, sqrt(max(1, rows / columns))");
ABSL_FLAG(double, adam_rate, 1,
          "of --optimizer=muon: by what the learning rate of the other weights is multiplied");
ABSL_FLAG(int64_t, accumulate, 1,
          "batches whose gradients are summed, and divided by so many, before an update; that is a "
          "step");
ABSL_FLAG(
    std::string, average_decay, "",
    "keep a running average of the weights: a number such as 0.999, of an exponential one, or "
    "mean, in which all count alike (docs/training.md)");
ABSL_FLAG(int64_t, average_from, 1,
          "the first update after which weights count in the average; before, it is the weights");
ABSL_FLAG(int64_t, average_every, 1, "updates from one that counts in the average to the next");
ABSL_FLAG(bool, use_average, true,
          "test with the average that --average_decay keeps, and write it to --out; else with the "
          "weights themselves");
ABSL_FLAG(
    std::string, no_decay, "auto",
    "weights that do not decay: auto, those of fewer than two dims (biases, norms); or REGEX, "
    "which their names match somewhere; empty: none, as in PyTorch");
ABSL_FLAG(double, clip_norm, 0,
          "scale gradients down where their global norm is larger; 0: do not");
ABSL_FLAG(bool, late_updates, false,
          "update weights once all gradients are known, where the plan does so before: for "
          "--clip_norm; takes more memory than the plan says");
ABSL_FLAG(bool, gradient_norm, false, "say the global norm of the gradients of each step");

namespace isomer {
namespace {

// Steps, decays and rates that a schedule has not.
absl::Status RefuseFlagsOfSchedule(const std::string& schedule, LearningRate::Shape shape) {
  using Shape = LearningRate::Shape;
  const std::string why = absl::StrCat("does not apply to --schedule=", schedule);
  if (shape != Shape::kLinear && shape != Shape::kCosine) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"decay_steps", "final_rate"}, why));
  }
  if (shape != Shape::kFile) return absl::OkStatus();
  return RefuseFlags({"learning_rate", "warmup_steps"}, why);
}

LearningRate::Shape ShapeNamed(const std::string& name) {
  using Shape = LearningRate::Shape;
  const std::vector<std::string> names = LearningRate::Names();
  for (Shape shape : {Shape::kConstant, Shape::kLinear, Shape::kCosine, Shape::kInverseSqrt}) {
    if (names[static_cast<int>(shape)] == name) return shape;
  }
  return Shape::kFile;
}

absl::StatusOr<OptimizerSettings> SettingsFromFlags(OptimizerKind kind) {
  const OptimizerTraits& traits = TraitsOf(kind);
  const std::string why = absl::StrCat("does not apply to --optimizer=", traits.name);
  if (!traits.has_momentum) ISOMER_RETURN_IF_ERROR(RefuseFlags({"momentum", "nesterov"}, why));
  if (!traits.has_betas) ISOMER_RETURN_IF_ERROR(RefuseFlags({"beta1", "beta2"}, why));
  if (!traits.has_epsilon) ISOMER_RETURN_IF_ERROR(RefuseFlags({"epsilon"}, why));
  if (traits.needs != UpdateNeeds::kMatrix) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"muon", "muon_scale", "adam_rate"}, why));
  }
  const std::string scale = absl::GetFlag(FLAGS_muon_scale);
  if (scale != "adam" && scale != "spectral") {
    return absl::InvalidArgumentError(
        absl::StrCat("--muon_scale=", scale, ": there are adam and spectral"));
  }
  OptimizerSettings settings = traits.settings;
  if (WasGiven("momentum")) settings.momentum = absl::GetFlag(FLAGS_momentum);
  if (WasGiven("nesterov")) settings.nesterov = absl::GetFlag(FLAGS_nesterov);
  if (WasGiven("beta1")) settings.beta1 = absl::GetFlag(FLAGS_beta1);
  if (WasGiven("beta2")) settings.beta2 = absl::GetFlag(FLAGS_beta2);
  if (WasGiven("epsilon")) settings.epsilon = absl::GetFlag(FLAGS_epsilon);
  settings.weight_decay = absl::GetFlag(FLAGS_weight_decay);
  settings.matches_adam = scale == "adam";
  settings.adam_rate = absl::GetFlag(FLAGS_adam_rate);
  ISOMER_RETURN_IF_ERROR(CheckSettings(settings));
  if (settings.weight_decay == 0) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"no_decay"}, "needs a --weight_decay above 0"));
  }
  return settings;
}

absl::StatusOr<AverageOptions> AverageFromFlags() {
  AverageOptions average{.first = absl::GetFlag(FLAGS_average_from),
                         .every = absl::GetFlag(FLAGS_average_every)};
  const std::string decay = absl::GetFlag(FLAGS_average_decay);
  if (decay.empty()) {
    ISOMER_RETURN_IF_ERROR(
        RefuseFlags({"average_from", "average_every", "use_average"}, "needs --average_decay"));
    return average;
  }
  average.is_mean = decay == "mean";
  if (!average.is_mean &&
      (!absl::SimpleAtod(decay, &average.decay) || !(average.decay >= 0 && average.decay < 1))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--average_decay=", decay, ": a number from 0 and below 1 is expected, or mean"));
  }
  if (average.first < 1 || average.every < 1) {
    return absl::InvalidArgumentError("--average_from and --average_every must be positive");
  }
  return average;
}

bool KeepsAverage() { return !absl::GetFlag(FLAGS_average_decay).empty(); }

}  // namespace

absl::Status RefuseTrainingFlags(absl::string_view why) {
  return RefuseFlags(
      {"learning_rate", "schedule",      "warmup_steps", "decay_steps",   "final_rate",
       "momentum",      "nesterov",      "beta1",        "beta2",         "epsilon",
       "weight_decay",  "no_decay",      "clip_norm",    "gradient_norm", "late_updates",
       "muon",          "muon_scale",    "adam_rate",    "accumulate",    "average_decay",
       "average_from",  "average_every", "use_average"},
      why);
}

std::vector<std::string> ScheduleWords() {
  std::vector<std::string> words = LearningRate::Names();
  words.push_back("FILE");
  return words;
}

absl::StatusOr<LearningRate> LearningRateFromFlags() {
  const std::string schedule = absl::GetFlag(FLAGS_schedule);
  const LearningRate::Shape shape = ShapeNamed(schedule);
  ISOMER_RETURN_IF_ERROR(RefuseFlagsOfSchedule(schedule, shape));
  if (shape == LearningRate::Shape::kFile) {
    absl::StatusOr<LearningRate> rate = LearningRate::FromFile(schedule);
    if (rate.ok()) return rate;
    return absl::Status(rate.status().code(),
                        absl::StrCat("--schedule is ", absl::StrJoin(LearningRate::Names(), ", "),
                                     " or a file: ", rate.status().message()));
  }
  return LearningRate::Make({.shape = shape,
                             .peak = absl::GetFlag(FLAGS_learning_rate),
                             .warmup_steps = absl::GetFlag(FLAGS_warmup_steps),
                             .decay_steps = absl::GetFlag(FLAGS_decay_steps),
                             .final_rate = absl::GetFlag(FLAGS_final_rate)});
}

absl::Status SetWhenUpdated(Plan* plan) {
  if (!absl::GetFlag(FLAGS_late_updates)) return absl::OkStatus();
  if (!plan->update.immediate || plan->update.all_gradients_first()) {
    return absl::InvalidArgumentError(
        "--late_updates: the plan does not update weights as soon as their gradients are known");
  }
  plan->update.immediate = false;
  return absl::OkStatus();
}

bool UsesAverage() { return KeepsAverage() && absl::GetFlag(FLAGS_use_average); }

absl::Status SetAverages(bool speaks, Plan* plan) {
  if (!KeepsAverage()) {
    plan->update.averages = false;
    return absl::OkStatus();
  }
  if (plan->mode != "training" || plan->update.averages) return absl::OkStatus();
  plan->update.averages = true;
  const absl::Status together = CheckGoTogether(plan->update);
  if (!together.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--average_decay: ", together.message()));
  }
  if (speaks && plan->predicted_step_us > 0) {
    PrintNote(
        "averages take 4 bytes more for each number that a device updates than the plan says "
        "(isomer-optimize --average counts them)");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> AccumulateFromFlags() {
  const int64_t accumulate = absl::GetFlag(FLAGS_accumulate);
  if (accumulate < 1) return absl::InvalidArgumentError("--accumulate must be positive");
  if (accumulate > 1) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"check", "check_executions"},
                                       "is of a step of one batch; not with --accumulate"));
  }
  return accumulate;
}

namespace {

// Bytes of the sums in which gradients accumulate, of the device that has most.
int64_t BytesOfSums(const Schedule& schedule) {
  std::map<int32_t, int64_t> bytes;
  int64_t most = 0;
  for (const Task& task : schedule.tasks) {
    if (task.kind != TaskKind::kUpdate) continue;
    int64_t& of_device = bytes[task.devices[0]];
    for (int32_t s = 0; s < task.segments; ++s) {
      of_device += schedule.buffers[task.writes[s]].box.Volume() * sizeof(float);
    }
    most = std::max(most, of_device);
  }
  return most;
}

// What waits until all gradients of a step are known; "" if nothing does.
std::string WaitsForGradients(const JobOptions& options, int64_t accumulate) {
  if (accumulate > 1) return "--accumulate";
  if (options.clip_norm > 0) return "--clip_norm";
  return options.finds_gradient_norm ? "--gradient_norm" : "";
}

}  // namespace

absl::Status SetTraining(const Plan& plan, const Schedule& schedule, int64_t accumulate,
                         bool speaks, JobOptions* options) {
  ISOMER_ASSIGN_OR_RETURN(options->average, AverageFromFlags());
  ISOMER_ASSIGN_OR_RETURN(options->optimizer, SettingsFromFlags(schedule.options.update.optimizer));
  if (const std::string no_decay = absl::GetFlag(FLAGS_no_decay); no_decay != "auto") {
    options->no_decay = no_decay;
  }
  options->clip_norm = absl::GetFlag(FLAGS_clip_norm);
  options->finds_gradient_norm = absl::GetFlag(FLAGS_gradient_norm);
  if (!(options->clip_norm >= 0 && options->clip_norm <= std::numeric_limits<double>::max())) {
    return absl::InvalidArgumentError("--clip_norm must not be negative");
  }
  if (TraitsOf(schedule.options.update.optimizer).needs == UpdateNeeds::kMatrix) {
    const std::string muon = absl::GetFlag(FLAGS_muon);
    ISOMER_ASSIGN_OR_RETURN(
        options->matrices,
        MuonWeights(plan.model.graph, muon == "auto" ? std::nullopt : std::optional(muon)));
  }
  const std::string waits = WaitsForGradients(*options, accumulate);
  if (!waits.empty() && !CanSkipUpdates(schedule)) {
    return absl::InvalidArgumentError(
        absl::StrCat(waits, ": the plan updates weights before all gradients are known",
                     schedule.options.update.immediate
                         ? "; with --late_updates they wait, for more memory than the plan says"
                         : ""));
  }
  if (accumulate > 1 && speaks && plan.predicted_step_us > 0) {
    PrintNote(absl::StrCat("--accumulate: sums of gradients take ",
                           BytesText(BytesOfSums(schedule)),
                           " of a device, which the plan does not count"));
  }
  return absl::OkStatus();
}

}  // namespace isomer
