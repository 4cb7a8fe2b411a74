#include "runtime/training_main.h"

#include <limits>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"

ABSL_FLAG(double, learning_rate, 0.1, "of the optimizer; the peak of a --schedule");
ABSL_FLAG(std::string, schedule, "constant",
          "of the learning rate: constant, linear or cosine down to --final_rate, inverse_sqrt; or "
          "FILE of lines 'STEP RATE', linear in between (docs/training.md)");
ABSL_FLAG(int64_t, warmup_steps, 0, "in which the learning rate rises, linearly, to its peak");
ABSL_FLAG(int64_t, decay_steps, 0,
          "of --schedule=linear and cosine: the step at which the final rate is reached, warm-up "
          "included; 0: the last");
ABSL_FLAG(double, final_rate, 0, "of --schedule=linear and cosine: a fraction of the peak");
ABSL_FLAG(double, momentum, 0.9, "of --optimizer=momentum");
ABSL_FLAG(bool, nesterov, false, "of --optimizer=momentum: Nesterov's way");
ABSL_FLAG(double, beta1, 0.9, "of --optimizer=adam and lion");
ABSL_FLAG(double, beta2, 0.999, "of --optimizer=adam, and of lion, where it is 0.99 unless said");
ABSL_FLAG(double, epsilon, 1e-8,
          "of --optimizer=adam, and of adagrad, where it is 1e-10 unless said");
ABSL_FLAG(double, weight_decay, 0,
          "of weights: decoupled from gradients with adam and lion (AdamW), else added to them");
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
  OptimizerSettings settings = traits.settings;
  if (WasGiven("momentum")) settings.momentum = absl::GetFlag(FLAGS_momentum);
  if (WasGiven("nesterov")) settings.nesterov = absl::GetFlag(FLAGS_nesterov);
  if (WasGiven("beta1")) settings.beta1 = absl::GetFlag(FLAGS_beta1);
  if (WasGiven("beta2")) settings.beta2 = absl::GetFlag(FLAGS_beta2);
  if (WasGiven("epsilon")) settings.epsilon = absl::GetFlag(FLAGS_epsilon);
  settings.weight_decay = absl::GetFlag(FLAGS_weight_decay);
  ISOMER_RETURN_IF_ERROR(CheckSettings(settings));
  if (settings.weight_decay == 0) {
    ISOMER_RETURN_IF_ERROR(RefuseFlags({"no_decay"}, "needs a --weight_decay above 0"));
  }
  return settings;
}

}  // namespace

absl::Status RefuseTrainingFlags(absl::string_view why) {
  return RefuseFlags({"learning_rate", "schedule", "warmup_steps", "decay_steps", "final_rate",
                      "momentum", "nesterov", "beta1", "beta2", "epsilon", "weight_decay",
                      "no_decay", "clip_norm", "gradient_norm", "late_updates"},
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
  if (!plan->update.immediate) {
    return absl::InvalidArgumentError(
        "--late_updates: the plan does not update weights as soon as their gradients are known");
  }
  plan->update.immediate = false;
  return absl::OkStatus();
}

absl::Status SetTraining(const Schedule& schedule, JobOptions* options) {
  ISOMER_ASSIGN_OR_RETURN(options->optimizer, SettingsFromFlags(schedule.options.update.optimizer));
  if (const std::string no_decay = absl::GetFlag(FLAGS_no_decay); no_decay != "auto") {
    options->no_decay = no_decay;
  }
  options->clip_norm = absl::GetFlag(FLAGS_clip_norm);
  options->finds_gradient_norm = absl::GetFlag(FLAGS_gradient_norm);
  if (!(options->clip_norm >= 0 && options->clip_norm <= std::numeric_limits<double>::max())) {
    return absl::InvalidArgumentError("--clip_norm must not be negative");
  }
  if (!options->needs_gradient_norm() || CanSkipUpdates(schedule)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options->clip_norm > 0 ? "--clip_norm" : "--gradient_norm",
                   ": the plan updates weights before all gradients are known",
                   schedule.options.update.immediate
                       ? "; with --late_updates they wait, for more memory than the plan says"
                       : ""));
}

}  // namespace isomer
