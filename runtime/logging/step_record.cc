#include "runtime/logging/step_record.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace isomer {
namespace {

// Waits below this part of the time are not worth a word.
constexpr double kWorthTelling = 0.01;

constexpr RecordField kFields[] = {
    {"loss", "train/loss", &StepRecord::loss},
    {"learning_rate", "train/learning_rate", &StepRecord::learning_rate},
    {"gradient_norm", "train/gradient_norm", &StepRecord::gradient_norm},
    {"step_us", "speed/step_us", &StepRecord::step_us},
    {"samples_per_s", "speed/samples_per_s", &StepRecord::samples_per_s},
    {"tokens_per_s", "speed/tokens_per_s", &StepRecord::tokens_per_s},
    {"flops_per_s", "speed/flops_per_s", &StepRecord::flops_per_s},
    {"mfu", "speed/mfu", &StepRecord::mfu},
    {"data_wait_us", "wait/data_us", &StepRecord::data_wait_us},
    {"checkpoint_wait_us", "wait/checkpoint_us", &StepRecord::checkpoint_wait_us},
    {"resident_bytes", "memory/resident_bytes", &StepRecord::resident_bytes},
    {"device_bytes", "memory/device_bytes", &StepRecord::device_bytes},
};

}  // namespace

absl::Span<const RecordField> RecordFields() { return kFields; }

std::string StepRecord::ToString() const {
  std::string text = absl::StrCat("step ", step, ":");
  const auto add = [&](const std::optional<double>& value, const char* name) {
    if (value.has_value()) absl::StrAppendFormat(&text, " %s %.6g,", name, *value);
  };
  add(loss, "loss");
  add(learning_rate, "learning rate");
  add(gradient_norm, "gradient norm");
  if (tokens_per_s.has_value()) {
    absl::StrAppendFormat(&text, " %.0f tokens/s,", *tokens_per_s);
  } else if (samples_per_s.has_value()) {
    absl::StrAppendFormat(&text, " %.0f samples/s,", *samples_per_s);
  }
  if (flops_per_s.has_value()) absl::StrAppendFormat(&text, " %.3g GFLOP/s,", *flops_per_s / 1e9);
  if (mfu.has_value()) absl::StrAppendFormat(&text, " %.3g %% MFU,", *mfu * 100);
  if (resident_bytes.has_value()) {
    absl::StrAppendFormat(&text, " %.0f MB resident,", *resident_bytes / 1e6);
  }
  if (device_bytes.has_value()) {
    absl::StrAppendFormat(&text, " %.0f MB on a device,", *device_bytes / 1e6);
  }
  for (const auto& [what, waited] :
       {std::pair("data", data_wait_us), std::pair("checkpoints", checkpoint_wait_us)}) {
    if (!waited.has_value() || !step_us.has_value() || *waited < kWorthTelling * *step_us) continue;
    absl::StrAppendFormat(&text, " %.3f ms for %s,", *waited / 1e3, what);
  }
  if (step_us.has_value()) absl::StrAppendFormat(&text, " %.0f us a step", *step_us);
  return text;
}

}  // namespace isomer
