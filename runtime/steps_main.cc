#include "runtime/steps_main.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/messages.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "runtime/check_main.h"
#include "runtime/device/statistics.h"
#include "runtime/device/us_since.h"
#include "runtime/device/whereabouts.h"
#include "runtime/execution/not_finite.h"

namespace isomer {
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
  return absl::OkStatus();
}

absl::Status StepRunner::NoteLoss(int64_t step, double loss, const HostValues* inputs) {
  if (std::isnan(loss)) loss = std::numeric_limits<double>::quiet_NaN();  // of no sign
  losses_.push_back(loss);
  if (std::isfinite(loss)) return absl::OkStatus();
  if (options_.only_times) {
    if (options_.speaks && !told_not_finite_) {
      PrintNote(
          absl::StrCat("the loss of step ", step + 1,
                       " is not finite: the data are random, and so "
                       "large a rate does not suit all networks; times are those of any numbers "
                       "(--data trains, --learning_rate sets the rate)"));
    }
    told_not_finite_ = true;
    return absl::OkStatus();
  }
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

bool StepRunner::EndEpochs(int64_t from, int64_t to, absl::string_view test) {
  if (!feeder_.has_rows() || plan_.model.loss.empty()) return false;
  const int64_t batches = groups_.steps_per_epoch();
  for (int64_t epoch = from / batches + 1; epoch <= to / batches; ++epoch) {
    double mean = 0;
    // Of the steps that this run took.
    const int64_t begin = std::max((epoch - 1) * batches, options_.first_step);
    const int64_t end = epoch * batches;
    for (int64_t step = begin; step < end; ++step) mean += losses_[step - options_.first_step];
    EraseProgressLine();
    absl::PrintF("epoch %d: mean loss %.4f%s%s\n", epoch, mean / static_cast<double>(end - begin),
                 test.empty() ? "" : ", ", test);
    std::fflush(stdout);
  }
  return from / batches < to / batches;
}

absl::StatusOr<std::optional<Evaluation>> StepRunner::TestAfter(int64_t from, int64_t to,
                                                                int64_t steps) {
  std::optional<Evaluation> test;
  std::string text;
  test_us_ = 0;
  if (tests_.IsDue(from, to, steps)) {
    const auto start = std::chrono::steady_clock::now();
    bool is_best = false;
    if (options_.tests_averages) ISOMER_RETURN_IF_ERROR(job_.SwapAverages());
    ISOMER_ASSIGN_OR_RETURN(test, tests_.Run(to, &job_, &is_best));
    if (options_.tests_averages) ISOMER_RETURN_IF_ERROR(job_.SwapAverages());
    text = tests_.Text(*test);
    if (tests_.StopsEarly() && is_best && keep_best_ != nullptr) {
      ISOMER_RETURN_IF_ERROR(keep_best_());
    }
    if (tests_.StopsEarly() && checkpoints_ != nullptr) {
      CheckpointManifest::Stopping stopping;
      stopping.set_monitor(tests_.monitor());
      stopping.set_best(tests_.stopping().best);
      stopping.set_best_step(tests_.stopping().best_step);
      stopping.set_without_better(tests_.stopping().without_better);
      checkpoints_->set_stopping(stopping);
    }
    test_us_ = UsSince(start);
  }
  const bool in_line = EndEpochs(from, to, tests_.CountsSteps() ? "" : text);
  if (!text.empty() && (!in_line || tests_.CountsSteps())) {
    EraseProgressLine();
    absl::PrintF("after step %d: %s\n", to, text);
    std::fflush(stdout);
  }
  return test;
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

bool StepRunner::HasStopped() {
  if (!tests_.StopsEarly() || checkpoints_ == nullptr || !checkpoints_->stopping().has_value()) {
    return false;
  }
  const CheckpointManifest::Stopping& before = *checkpoints_->stopping();
  if (before.monitor() != tests_.monitor()) {
    if (options_.speaks) {
      PrintNote(absl::StrCat("--monitor=", tests_.monitor(), ": the checkpoint's tests went by ",
                             before.monitor(), "; which is the best begins anew"));
    }
    return false;
  }
  tests_.SetStopping({before.best(), before.best_step(), before.without_better()});
  return tests_.ShouldStop();
}

absl::Status StepRunner::Run(const HostValues& weights, Json* summary) {
  const int64_t at_once = job_.num_steps();
  ISOMER_ASSIGN_OR_RETURN(const int64_t steps, NumSteps());
  const int64_t first = options_.first_step;
  ISOMER_RETURN_IF_ERROR(options_.learning_rate.SetSteps(steps));
  if (steps > first) losses_.reserve(static_cast<size_t>(steps - first));
  const int64_t traced = (options_.trace_steps + at_once - 1) / at_once * at_once;
  bool is_over = HasStopped();
  // Where nothing is to be told, stdout leads nowhere.
  std::optional<Progress> progress(std::in_place, "run", steps - std::min(first, steps),
                                   options_.speaks ? stderr : stdout);
  for (int64_t step = first; step < steps && !is_over; step += at_once) {
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
    if (step == first && options_.check) {
      EraseProgressLine();
      ISOMER_ASSIGN_OR_RETURN(
          agrees_, CheckAndPrintFirstStep(plan_, weights, inputs[0], backend_, &job_, summary));
    }
    ISOMER_ASSIGN_OR_RETURN(const std::optional<Evaluation> test, TestAfter(step, done, steps));
    ISOMER_RETURN_IF_ERROR(Log(done, test));
    is_over = tests_.StopsEarly() && tests_.ShouldStop() && done < steps;
    if (is_over) {
      EraseProgressLine();
      absl::PrintF("stopped early after step %d: %s\n", done, tests_.BestText());
    }
    if (checkpoints_ != nullptr) {
      ISOMER_ASSIGN_OR_RETURN(stopped_by_, checkpoints_->AfterStep(done, is_over ? done : steps));
      is_over = is_over || stopped_by_ != nullptr;
    }
  }
  progress.reset();
  if (checkpoints_ != nullptr) ISOMER_RETURN_IF_ERROR(checkpoints_->End(summary));
  tests_.Summarise(summary);
  if (step_us_.count() == 0) {
    if (is_over) {
      absl::PrintF("nothing is left to do: it stopped early before step %d, %s\n", first,
                   tests_.BestText());
    } else {
      absl::PrintF("nothing is left to do: the checkpoint is of step %d of %d\n", first, steps);
    }
    return absl::OkStatus();
  }
  return Summarise(summary);
}

absl::Status StepRunner::Log(int64_t done, const std::optional<Evaluation>& test) {
  TrainingLogs::Step step = {.done = done, .at_once = job_.num_steps(), .test_us = test_us_};
  if (!losses_.empty()) step.loss = losses_.back();
  if (plan_.mode == "training") step.learning_rate = options_.learning_rate.At(done - 1);
  if (job_.options().needs_gradient_norm()) step.gradient_norm = job_.gradient_norm();
  if (checkpoints_ != nullptr) step.checkpoint_wait_us = checkpoints_->stall_us();
  if (!backend_->operations().shares_host_memory()) {
    const std::vector<int64_t>& arenas = job_.memory().arena_bytes;
    step.device_bytes = static_cast<double>(*std::max_element(arenas.begin(), arenas.end()));
  }
  if (test.has_value()) step.test = &*test;
  return logs_.AfterStep(step);
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
