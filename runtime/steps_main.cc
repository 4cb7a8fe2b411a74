#include "runtime/steps_main.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "runtime/check_main.h"
#include "runtime/device/statistics.h"
#include "runtime/device/whereabouts.h"
#include "runtime/execution/not_finite.h"

namespace isomer {
namespace {

double UsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

std::vector<double> StepRunner::RatesOf(int64_t first, int64_t count) const {
  std::vector<double> rates;
  for (int64_t step = first; step < first + count; ++step) {
    rates.push_back(options_.learning_rate.At(step));
  }
  return rates;
}

absl::Status StepRunner::Steps(int64_t first, const std::vector<HostValues>& inputs) {
  const int64_t count = static_cast<int64_t>(inputs.size());
  EnterStep(first + 1);
  const auto start = std::chrono::steady_clock::now();
  ISOMER_RETURN_IF_ERROR(plan_.mode == "training" ? job_.TrainSteps(inputs, RatesOf(first, count))
                                                  : job_.Evaluate(inputs[0]));
  ISOMER_RETURN_IF_ERROR(NoteTimes(count, UsSince(start)));
  if (job_.options().finds_gradient_norm) TellGradientNorm(first);
  if (plan_.model.loss.empty()) return absl::OkStatus();
  for (int32_t step = 0; step < count; ++step) {
    ISOMER_ASSIGN_OR_RETURN(const Array<double> loss, job_.Output(plan_.model.loss, step));
    ISOMER_RETURN_IF_ERROR(NoteLoss(first + step, loss.data[0], &inputs[step]));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::AccumulatedStep(int64_t step) {
  double losses = 0, host_us = 0;
  for (int64_t i = 0; i < groups_.size(); ++i) {
    ISOMER_ASSIGN_OR_RETURN(const HostValues batch, feeder_.Batch(groups_.First(step) + i));
    const auto start = std::chrono::steady_clock::now();
    ISOMER_RETURN_IF_ERROR(job_.AddGradients(batch));
    host_us += UsSince(start);
    ISOMER_ASSIGN_OR_RETURN(const Array<double> loss, job_.Output(plan_.model.loss));
    losses += loss.data[0];
  }
  const auto start = std::chrono::steady_clock::now();
  ISOMER_RETURN_IF_ERROR(job_.UpdateWithMean(options_.learning_rate.At(step)));
  ISOMER_RETURN_IF_ERROR(NoteTimes(1, host_us + UsSince(start)));
  if (job_.options().finds_gradient_norm) TellGradientNorm(step);
  return NoteLoss(step, losses / static_cast<double>(groups_.size()), nullptr);
}

absl::Status StepRunner::NoteTimes(int64_t count, double host_us) {
  ISOMER_ASSIGN_OR_RETURN(const double step_us, job_.StepUs());
  for (int64_t i = 0; i < count; ++i) {
    host_us_.Add(host_us / static_cast<double>(count));
    step_us_.Add(step_us);
  }
  last_step_us_ = step_us;
  return absl::OkStatus();
}

absl::Status StepRunner::NoteLoss(int64_t step, double loss, const HostValues* inputs) {
  losses_.push_back(loss);
  if (std::isfinite(loss)) return absl::OkStatus();
  // Where steps that overflow are skipped, the scale is not to blame.
  const bool may_overflow = plan_.mode == "training" && plan_.precision == DataType::kFloat16 &&
                            !job_.options().finds_loss_scale;
  std::string what;
  if (plan_.mode == "training" && inputs != nullptr) {
    ISOMER_ASSIGN_OR_RETURN(what, WhatIsNotFinite(job_.graph(), *inputs, &job_));
  }
  return absl::OutOfRangeError(
      absl::StrCat("the loss of step ", step + 1, " is not finite", what.empty() ? "" : "; ", what,
                   "; try a lower ", may_overflow ? "--loss_scale or " : "", "--learning_rate"));
}

void StepRunner::TellGradientNorm(int64_t step) {
  gradient_norms_.push_back(job_.gradient_norm());
  EraseProgressLine();
  absl::PrintF("step %d: gradient norm %.6g\n", step + 1, job_.gradient_norm());
  std::fflush(stdout);
}

absl::Status StepRunner::EndEpochs(int64_t from, int64_t to, Json* summary) {
  const int64_t batches = groups_.steps_per_epoch();
  for (int64_t epoch = from / batches + 1; epoch <= to / batches; ++epoch) {
    EraseProgressLine();
    ISOMER_RETURN_IF_ERROR(EndEpoch(epoch, summary));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::EndEpoch(int64_t epoch, Json* summary) {
  const int64_t batches = groups_.steps_per_epoch();
  double mean = 0;
  // Of the steps that this run took.
  const int64_t begin = std::max((epoch - 1) * batches, options_.first_step);
  const int64_t end = epoch * batches;
  for (int64_t step = begin; step < end; ++step) mean += losses_[step - options_.first_step];
  ISOMER_ASSIGN_OR_RETURN(const std::string test, TestText(summary));
  absl::PrintF("epoch %d: mean loss %.4f%s\n", epoch, mean / static_cast<double>(end - begin),
               test);
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::StatusOr<std::string> StepRunner::TestText(Json* summary) {
  if (options_.tests_averages) ISOMER_RETURN_IF_ERROR(job_.SwapAverages());
  ISOMER_ASSIGN_OR_RETURN(const TestResult test, feeder_.Test(plan_.model.loss, &job_));
  if (options_.tests_averages) ISOMER_RETURN_IF_ERROR(job_.SwapAverages());
  std::string text;
  if (test.loss.has_value()) {
    absl::StrAppendFormat(&text, ", test loss %.4f", *test.loss);
    (*summary)["metrics"]["test_loss"] = *test.loss;
  }
  if (test.accuracy.has_value()) {
    absl::StrAppendFormat(&text, ", test accuracy %.2f %%", 100 * *test.accuracy);
    (*summary)["metrics"]["test_accuracy"] = *test.accuracy;
  }
  return text;
}

// All that are between two flushes are taken: of epochs, and if nothing is said, maybe some more.
absl::StatusOr<int64_t> StepRunner::NumSteps() const {
  const int64_t at_once = job_.num_steps();
  if (options_.steps % at_once != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--steps=", options_.steps,
                                                   ": the pipeline is drained after each ", at_once,
                                                   "; a multiple is expected"));
  }
  if (options_.steps > 0) return options_.steps;
  const int64_t steps =
      options_.epochs > 0 ? options_.epochs * groups_.steps_per_epoch() : int64_t{10};
  return (steps + at_once - 1) / at_once * at_once;
}

absl::Status StepRunner::Run(const HostValues& weights, Json* summary) {
  const bool epochs = feeder_.has_rows() && !plan_.model.loss.empty();
  const int64_t at_once = job_.num_steps();
  ISOMER_ASSIGN_OR_RETURN(const int64_t steps, NumSteps());
  const int64_t first = options_.first_step;
  ISOMER_RETURN_IF_ERROR(options_.learning_rate.SetSteps(steps));
  if (steps > first) losses_.reserve(static_cast<size_t>(steps - first));
  const int64_t traced = (options_.trace_steps + at_once - 1) / at_once * at_once;
  // Where nothing is to be told, stdout leads nowhere.
  std::optional<Progress> progress(std::in_place, "run", steps - std::min(first, steps),
                                   options_.speaks ? stderr : stdout);
  for (int64_t step = first; step < steps && stopped_by_ == nullptr; step += at_once) {
    std::vector<HostValues> inputs;
    for (int64_t i = 0; i < at_once && groups_.size() == 1; ++i) {
      ISOMER_ASSIGN_OR_RETURN(HostValues batch, feeder_.Batch(step + i));
      inputs.push_back(std::move(batch));
    }
    if (step == std::max(steps - traced, first)) job_.StartTrace();
    ISOMER_RETURN_IF_ERROR(groups_.size() > 1 ? AccumulatedStep(step) : Steps(step, inputs));
    progress->Advance(at_once);
    const int64_t done = step + at_once;
    if (options_.trace_steps > 0 && done == steps) {
      ISOMER_ASSIGN_OR_RETURN(trace_, job_.ChromeTrace());
    }
    Log(done);
    if (step == first && options_.check) {
      EraseProgressLine();
      ISOMER_ASSIGN_OR_RETURN(
          agrees_, CheckAndPrintFirstStep(plan_, weights, inputs[0], backend_, &job_, summary));
    }
    if (epochs) ISOMER_RETURN_IF_ERROR(EndEpochs(step, done, summary));
    if (checkpoints_ != nullptr) {
      ISOMER_ASSIGN_OR_RETURN(stopped_by_, checkpoints_->AfterStep(done, steps));
    }
  }
  progress.reset();
  if (checkpoints_ != nullptr) ISOMER_RETURN_IF_ERROR(checkpoints_->End(summary));
  if (step_us_.count() == 0) {
    absl::PrintF("nothing is left to do: the checkpoint is of step %d of %d\n", first, steps);
    return absl::OkStatus();
  }
  // Of an epoch that has not come to its end.
  if (epochs && options_.tests_at_end && stopped_by_ == nullptr &&
      steps % groups_.steps_per_epoch() != 0) {
    ISOMER_ASSIGN_OR_RETURN(const std::string test, TestText(summary));
    if (!test.empty()) absl::PrintF("after step %d%s\n", steps, test.substr(1));
  }
  return Summarise(summary);
}

void StepRunner::Log(int64_t done) {
  if (options_.log_every == 0 || done % options_.log_every >= job_.num_steps()) return;
  EraseProgressLine();
  absl::PrintF("step %d:", done);
  if (!losses_.empty()) absl::PrintF(" loss %.6g,", losses_.back());
  absl::PrintF(" %.0f us a step\n", last_step_us_);
  std::fflush(stdout);
}

// The first steps load code and touch memory for the first time.
absl::Status StepRunner::Summarise(Json* summary) {
  const int64_t steps = step_us_.count();
  const int64_t first = std::min<int64_t>(2, steps - 1);
  for (const auto& [name, all] :
       {std::pair("step_us", &step_us_), std::pair("host_us", &host_us_)}) {
    const Spread spread = SpreadOf({all->kept().begin() + first, all->kept().end()});
    (*summary)[name]["median"] = spread.median;
    (*summary)[name]["min"] = spread.min;
    (*summary)[name]["max"] = spread.max;
    (*summary)[name]["samples"] = steps - first;
  }
  (*summary)["steps"] = steps;
  (*summary)["first_step"] = options_.first_step;
  (*summary)["loss"] = Json(losses_);
  if (job_.options().finds_gradient_norm) (*summary)["gradient_norm"] = Json(gradient_norms_);
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Job::MemoryUse> memory, job_.UsedMemory());
  int64_t arena = 0, peak = 0, kernels = 0;
  for (const Job::MemoryUse& device : memory) {
    arena = std::max(arena, device.arena);
    peak = std::max(peak, device.peak);
    kernels = std::max(kernels, device.kernels);
    (*summary)["peak_bytes_per_device"].Append(device.peak);
  }
  (*summary)["arena_bytes"] = arena;
  (*summary)["peak_bytes"] = peak;
  (*summary)["kernel_bytes"] = kernels;
  const Spread spread = SpreadOf({step_us_.kept().begin() + first, step_us_.kept().end()});
  absl::PrintF("%d steps on %d devices, median %.0f us a step", steps, plan_.num_devices,
               spread.median);
  if (!losses_.empty()) absl::PrintF("; loss %.6g -> %.6g", losses_.front(), losses_.back());
  absl::PrintF("\n");
  if (job_.options().finds_loss_scale) {
    const DynamicLossScale& scale = job_.loss_scale();
    (*summary)["loss_scale"] = scale.value();
    (*summary)["skipped_steps"] = scale.skipped();
    absl::PrintF("loss scale %g; %d steps were skipped, as a gradient was not finite\n",
                 scale.value(), scale.skipped());
  }
  return absl::OkStatus();
}

}  // namespace isomer
