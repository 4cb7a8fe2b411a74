#include "runtime/logs_main.h"

#include <cstdio>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/input_binding.h"
#include "runtime/logging/model_work.h"
#include "runtime/logging/process_memory.h"

ABSL_FLAG(
    int64_t, log_every, 0,
    "steps from one line about the training, and from one row of --log_csv and --tensorboard, "
    "to the next; 0: no lines, and a row of each step");
ABSL_FLAG(std::string, log_csv, "",
          "write what is told of the training into this file: a line of names, a row after each "
          "--log_every steps; --resume goes on with it (docs/training.md)");
ABSL_FLAG(std::string, tensorboard, "",
          "write the same into a file of events in this folder, as TensorBoard reads them");

namespace isomer {
namespace {

std::string TestColumn(MetricKind kind) { return absl::StrCat("test_", TraitsOf(kind).name); }

}  // namespace

absl::Status TrainingLogs::CheckFlags() {
  if (absl::GetFlag(FLAGS_log_every) < 0) {
    return absl::InvalidArgumentError("--log_every must not be negative");
  }
  for (const auto& [flag, value] : {std::pair("log_csv", absl::GetFlag(FLAGS_log_csv)),
                                    std::pair("tensorboard", absl::GetFlag(FLAGS_tensorboard))}) {
    if (WasGiven(flag) && value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": a file is expected"));
    }
  }
  return absl::OkStatus();
}

TrainingLogs::TrainingLogs(const Plan& plan, const Feeder& feeder,
                           const std::vector<MetricKind>& metrics, bool speaks)
    : plan_(plan),
      feeder_(feeder),
      metrics_(metrics),
      speaks_(speaks),
      lines_every_(absl::GetFlag(FLAGS_log_every)),
      files_every_(lines_every_ == 0 ? 1 : lines_every_) {}

absl::StatusOr<std::unique_ptr<TrainingLogs>> TrainingLogs::FromFlags(
    const Plan& plan, const Feeder& feeder, int64_t batches, const std::vector<MetricKind>& metrics,
    bool speaks, std::optional<int64_t> first_step) {
  auto logs = absl::WrapUnique(new TrainingLogs(plan, feeder, metrics, speaks));
  if (!speaks) return logs;
  ISOMER_RETURN_IF_ERROR(logs->OpenFiles(first_step));
  if (!logs->files_.any() && logs->lines_every_ == 0) return logs;
  logs->flops_ = static_cast<double>(batches) *
                 ModelFlops(plan.model.graph, plan.mode == "training" ? plan.model.loss : "");
  logs->samples_ =
      static_cast<double>(batches) * static_cast<double>(RowsOfBatch(plan.model.graph).value_or(0));
  logs->tokens_ = TokensOfBatch(plan.model.graph);
  if (logs->tokens_.has_value()) *logs->tokens_ *= batches;
  return logs;
}

absl::Status TrainingLogs::OpenFiles(std::optional<int64_t> first_step) {
  if (const std::string path = absl::GetFlag(FLAGS_log_csv); !path.empty()) {
    std::vector<std::string> columns;
    for (const RecordField& field : RecordFields()) columns.emplace_back(field.column);
    for (MetricKind kind : metrics_) columns.push_back(TestColumn(kind));
    ISOMER_ASSIGN_OR_RETURN(files_.csv, CsvLog::Open(path, columns, first_step));
  }
  if (const std::string folder = absl::GetFlag(FLAGS_tensorboard); !folder.empty()) {
    absl::StatusOr<std::unique_ptr<EventFile>> events = EventFile::Create(folder, first_step);
    if (!events.ok()) {
      return absl::Status(events.status().code(),
                          absl::StrCat("--tensorboard: ", events.status().message()));
    }
    files_.events = *std::move(events);
  }
  return absl::OkStatus();
}

StepRecord TrainingLogs::RecordOf(const Step& step) {
  const Clock::time_point now = Clock::now();
  const double us =
      std::chrono::duration<double, std::micro>(now - time_).count() - tests_us_ - step.test_us;
  const double steps = static_cast<double>(steps_since_);
  StepRecord record = {.step = step.done,
                       .loss = step.loss,
                       .learning_rate = step.learning_rate,
                       .gradient_norm = step.gradient_norm,
                       .step_us = us / steps,
                       .device_bytes = step.device_bytes};
  const double steps_per_s = steps / us * 1e6;
  if (samples_ > 0) record.samples_per_s = steps_per_s * samples_;
  if (tokens_.has_value()) record.tokens_per_s = steps_per_s * static_cast<double>(*tokens_);
  if (flops_ > 0) {
    record.flops_per_s = steps_per_s * flops_;
    if (plan_.peak_flops > 0) record.mfu = *record.flops_per_s / plan_.peak_flops;
  }
  if (feeder_.has_rows()) {
    const double waited = feeder_.total_wait_us();
    record.data_wait_us = (waited - data_wait_us_) / steps;
    data_wait_us_ = waited;
  }
  if (step.checkpoint_wait_us > 0) {
    record.checkpoint_wait_us = (step.checkpoint_wait_us - checkpoint_wait_us_) / steps;
    checkpoint_wait_us_ = step.checkpoint_wait_us;
  }
  if (const int64_t resident = ResidentBytes(); resident > 0) {
    record.resident_bytes = static_cast<double>(resident);
  }
  time_ = now;
  steps_since_ = 0;
  tests_us_ = 0;
  return record;
}

absl::Status TrainingLogs::AfterStep(const Step& step) {
  if (!speaks_) return absl::OkStatus();
  steps_since_ += step.at_once;
  const auto is_time = [&](int64_t every) { return every > 0 && step.done % every < step.at_once; };
  const bool is_line = is_time(lines_every_);
  const bool is_row = files_.any() && (is_time(files_every_) || step.test != nullptr);
  if (!is_line && !is_row) {
    tests_us_ += step.test_us;
    return absl::OkStatus();
  }
  StepRecord record = {.step = step.done};
  const bool is_logged = is_time(files_every_);
  if (is_logged) {
    record = RecordOf(step);
  } else {
    tests_us_ += step.test_us;
  }
  if (step.test != nullptr) {
    for (const auto& [kind, value] : step.test->metrics) {
      record.test.emplace_back(TraitsOf(kind).name, value);
    }
  }
  if (is_line) {
    EraseProgressLine();
    absl::PrintF("%s\n", record.ToString());
    std::fflush(stdout);
  }
  return is_row ? AddToFiles(record, is_logged) : absl::OkStatus();
}

absl::Status TrainingLogs::AddToFiles(const StepRecord& record, bool is_logged) {
  if (files_.csv != nullptr) {
    std::vector<std::optional<double>> values;
    for (const RecordField& field : RecordFields()) values.push_back(record.*field.value);
    for (MetricKind kind : metrics_) {
      values.emplace_back();
      for (const auto& [name, value] : record.test) {
        if (name == TraitsOf(kind).name) values.back() = value;
      }
    }
    ISOMER_RETURN_IF_ERROR(files_.csv->Add(record.step, values));
  }
  if (files_.events == nullptr) return absl::OkStatus();
  std::vector<std::pair<std::string, double>> scalars;
  for (const RecordField& field : RecordFields()) {
    const std::optional<double>& value = record.*field.value;
    if (is_logged && value.has_value()) scalars.emplace_back(field.tag, *value);
  }
  for (const auto& [name, value] : record.test) {
    scalars.emplace_back(absl::StrCat("test/", name), value);
  }
  return files_.events->Add(record.step, scalars);
}

}  // namespace isomer
