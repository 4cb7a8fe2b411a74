#include "optimizer/proposal/contest.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "optimizer/proposal/step_constraint.h"
#include "pcg/support/hash.h"
#include "pcg/support/progress.h"

namespace isomer {
namespace {

// Those from the first to the last that is used.
int64_t DevicesUsed(const Plan& plan) {
  int64_t used = 0;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    used = std::max(used, 1 + LastDevice(plan.views[id], plan.graph.node({id}).outputs[0]));
  }
  return used;
}

}  // namespace

Contest::~Contest() {
  for (const Entrant& entrant : entrants_) {
    if (entrant.known.simulation.valid()) entrant.known.simulation.wait();
  }
  for (const Prefetched& prefetched : prefetched_) prefetched.simulation.wait();
}

PredictionMemo::Future Contest::Begin(std::launch policy, Plan* plan) const {
  return std::async(policy, [this, plan] { return PredictPlanInSearch(cost_, plan); });
}

void Contest::Prefetch(Plan plan) {
  if (memo_ == nullptr || threads_ == 1 || plan.graph.num_nodes() > policy_.large_plan_nodes)
    return;
  Prefetched& prefetched = prefetched_.emplace_back();
  prefetched.what_runs = WhatRuns(cost_, &plan);
  prefetched.plan = std::move(plan);
  const PredictionMemo::Known known = memo_->FindOrBegin(
      prefetched.what_runs, [&] { return Begin(std::launch::async, &prefetched.plan); });
  if (known.step.has_value()) {
    prefetched_.pop_back();
  } else {
    prefetched.simulation = known.simulation;
  }
}

void Contest::ForgetPrefetched() {
  for (auto it = prefetched_.begin(); it != prefetched_.end();) {
    memo_->Forget(it->what_runs);
    const bool done = it->simulation.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    it = done ? prefetched_.erase(it) : std::next(it);
  }
}

int Contest::Enter(Plan plan, std::string origin, bool takes_part) {
  const uint64_t what = WhatRuns(cost_, &plan);
  const int number = static_cast<int>(entrants_.size());
  Entrant& entrant = entrants_.emplace_back();
  const auto [known, added] = known_.try_emplace(HashCombine(what, takes_part), number);
  if (!added) {
    entrant.same = known->second;
    return number;
  }
  entrant.takes_part = takes_part;
  if (takes_part && !step_.empty()) {
    entrant.refused = Refuses(DeviationWithoutSchedule(step_, plan), &entrant);
    if (entrant.refused) return number;
  }
  entrant.plan = std::move(plan);
  entrant.origin = std::move(origin);
  if (takes_part) {
    entrant.by = ledger_.current();
    ledger_.CountPlan(entrant.by);
  }
  entrant.what_runs = what;
  // Beside the caller, which may have to wait for it.
  int busy = 1;
  for (size_t i = judged_; i + 1 < entrants_.size(); ++i) {
    const auto& simulation = entrants_[i].known.simulation;
    if (!simulation.valid()) continue;
    if (busy + 1 > threads_) simulation.wait();
    busy += simulation.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  }
  const bool is_large = entrant.plan.graph.num_nodes() > policy_.large_plan_nodes;
  const bool beside = threads_ > 1 && !is_large;
  const auto begin = [&] {
    return Begin(beside ? std::launch::async : std::launch::deferred, &entrant.plan);
  };
  if (memo_ != nullptr) {
    entrant.known = memo_->FindOrBegin(what, begin);
  } else {
    entrant.known.simulation = begin();
  }
  // Nor are they kept until they are asked for.
  if (is_large) PredictionOf(number).IgnoreError();
  return number;
}

bool Contest::Refuses(const absl::StatusOr<std::string>& deviation, Entrant* entrant) {
  if (!deviation.ok()) {
    entrant->prediction = deviation.status();
    return true;
  }
  if (deviation->empty()) return false;
  deviation_ = *deviation;
  entrant->prediction = kNotAllowed;
  return true;
}

absl::StatusOr<Prediction> Contest::PredictionOf(int entry) {
  for (; judged_ <= static_cast<size_t>(entry); ++judged_) Judge(&entrants_[judged_]);
  return entrants_[entry].prediction;
}

void Contest::Judge(Entrant* entrant) {
  if (entrant->same >= 0) {
    entrant->prediction = entrants_[entrant->same].prediction;
    return;
  }
  if (entrant->refused) return;
  const PredictionMemo::Known known = std::exchange(entrant->known, {});
  SimulatedStep step;
  const Simulation* simulation = nullptr;
  if (known.step.has_value()) {
    step = *known.step;
  } else {
    const absl::StatusOr<Simulation>& made = known.simulation.get();
    if (absl::IsResourceExhausted(made.status())) {
      entrant->prediction = kNotSimulated;
      return;
    }
    if (!made.ok()) {
      entrant->prediction = made.status();
      return;
    }
    step = StepOf(*made);
    simulation = &*made;
    if (memo_ != nullptr) memo_->Keep(entrant->what_runs, step);
  }
  Plan plan = std::exchange(entrant->plan, Plan());  // no longer simulated
  if (entrant->takes_part && Refuses(DeviationOfPipeline(step_, cost_, plan), entrant)) return;
  entrant->compute_us = step.compute_us;
  AdvanceProgress();
  entrant->prediction = Prediction{step.step_us, step.peak_bytes};
  plan.predicted_step_us = step.step_us;
  plan.predicted_peak_bytes = step.peak_bytes;
  if (entrant->takes_part) {
    TakePart(std::move(plan), step, simulation, std::move(entrant->origin), entrant->by);
  }
}

void Contest::Contend(const Plan& plan, const SimulatedStep& now, const std::string& origin) {
  auto behind = contenders_.begin();
  while (behind != contenders_.end() && behind->step_us < now.step_us) ++behind;
  if (behind != contenders_.end() && behind->step_us == now.step_us) return;
  const int64_t most = now.tasks > policy_.many_tasks  ? 1
                       : now.tasks > policy_.few_tasks ? policy_.contenders
                                                       : policy_.small_contenders;
  if (behind - contenders_.begin() >= most) return;
  contenders_.insert(behind, Contender{plan, origin, now.step_us, now.exposed_tail_us});
  if (contenders_.size() > static_cast<size_t>(most)) contenders_.resize(most);
}

void Contest::TakePart(Plan plan, const SimulatedStep& now, const Simulation* simulation,
                       std::string origin, std::optional<std::string> by) {
  const Prediction prediction = {now.step_us, now.peak_bytes};
  if (now.tasks > policy_.slow_tasks) slow_us_ = std::min(slow_us_, now.step_us);
  const bool fits = Fits(prediction);
  if (watch_ != nullptr) {
    watch_->Count(fits ? now.step_us : std::numeric_limits<double>::infinity());
  }
  if (fits) {
    Contend(plan, now, origin);
    double& us = us_by_devices_.try_emplace(DevicesUsed(plan), now.step_us).first->second;
    us = std::min(us, now.step_us);
  }
  const bool fastest = empty() || now.step_us < fastest_us_;
  const bool better =
      empty() || Rank(prediction) < Rank({best_->step.step_us, best_->step.peak_bytes});
  if (fastest) {
    fastest_us_ = now.step_us;
    fastest_.reset();
    if (!better) {
      fastest_ = plan;
      fastest_origin_ = origin;
    }
  } else if (better && !fastest_.has_value()) {
    fastest_ = std::move(best_->plan);
    fastest_origin_ = best_->origin;
  }
  if (better) {
    const bool improves = fits && this->fits();
    ledger_.CountBest(by, improves ? std::optional(step_us()) : std::nullopt, now.step_us);
  }
  if (!better) return;
  best_ = Entry{std::move(plan), now, {}, std::move(origin), fits};
  if (simulation != nullptr) best_->simulation = *simulation;
}

bool Contest::BestIsSlow() const {
  return best_.has_value() && best_->step.tasks > policy_.slow_tasks;
}

double Contest::near_best_us() const {
  return best_.has_value() ? policy_.near_best * best_->step.step_us : 0;
}

double Contest::UsOn(int64_t most, int64_t fewer) const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [used, us] : us_by_devices_) {
    if (used <= most && used > fewer) least = std::min(least, us);
  }
  return least;
}

double Contest::step_us() const {
  return fits() ? best_->step.step_us : std::numeric_limits<double>::infinity();
}

}  // namespace isomer
