#include "optimizer/proposal/overlap_search.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "optimizer/proposal/refinement.h"
#include "optimizer/proposal/turns.h"
#include "optimizer/walk/guided_walk.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// How much of the gradient synchronisation the tables count: all of it, or what may be left when
// it overlaps with the backward pass. The simulator, which knows the overlap, picks the best.
constexpr double kSyncWeights[] = {1, 0.5, 0.25, 0.1, 0};

// With branches that only meet beside each other or not, and with which weights, a graph is mapped
// in one piece.
constexpr std::pair<bool, double> kInOnePiece[] = {{true, 1}, {true, 0.5}, {true, 0}, {false, 1}};

// A plan that needs so much more memory than there is does not get faster: it has to get smaller.
constexpr int64_t kFarTooLarge = 2;

// On part of the machine other weights of synchronisation are tried if the first is no slower than
// the best by so much; so is what is refined, anywhere.
constexpr double kSlack = 1.2;

// Another order of calls is tried for plans that are slower than the best by so much at most.
constexpr double kWorthReordering = 1.01;

// On more, changes of pairs of calls take a second and gained nothing.
constexpr int64_t kMostDevicesOfPairs = 64;

}  // namespace

absl::Status OverlapSearch::Run(Strategy strategy, int64_t devices) {
  strategy_ = strategy;
  devices_ = devices;
  mappings_.clear();
  is_far_too_large_ = false;
  ISOMER_RETURN_IF_ERROR(SearchWithWeights());
  ISOMER_RETURN_IF_ERROR(Reorder());
  return Refine();
}

absl::StatusOr<std::optional<Plan>> OverlapSearch::Find(Strategy strategy,
                                                        const CostOptions& options) {
  if (const auto reason = run_.deadline.Reached(); reason.has_value() && !run_.contest.empty()) {
    search_.Stopped(*reason);
    return std::nullopt;
  }
  ISOMER_ASSIGN_OR_RETURN(MappedModel mapped, search_.Search(strategy, options));
  ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped));
  mappings_[options.sync_weight] = std::move(mapped);
  return plan;
}

absl::StatusOr<Prediction> OverlapSearch::Consider(const MappedModel& mapped) {
  ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped));
  ISOMER_ASSIGN_OR_RETURN(const Prediction found, run_.contest.Consider(std::move(plan), kFound));
  Remember(mapped, found);
  ISOMER_RETURN_IF_ERROR(ConsiderOtherwiseArranged(mapped, found));
  return found;
}

absl::Status OverlapSearch::ConsiderOtherwiseArranged(MappedModel mapped,
                                                      const Prediction& as_mapped) {
  if (!run_.arranges_weights || !run_.Asks(Proposer::kArrangedWeights)) return absl::OkStatus();
  if (as_mapped.step_us > kWorthReordering * run_.contest.step_us()) return absl::OkStatus();
  const Proposing proposing(&run_.contest.ledger(), Proposer::kArrangedWeights);
  mapped.copies_arranged = !mapped.copies_arranged;
  ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped));
  return run_.contest.Consider(std::move(plan), kFound).status();
}

void OverlapSearch::Forget() {
  fastest_ = best_ = as_it_is_ = Start{};
  run_.entered.clear();
}

// Enters what is found into the contest; nothing: there was no time.
absl::StatusOr<std::optional<int>> OverlapSearch::SearchAt(int weight) {
  CostOptions options = run_.BaseOptions();
  options.num_devices = devices_;
  options.sync_weight = kSyncWeights[weight];
  ISOMER_ASSIGN_OR_RETURN(std::optional<Plan> plan, Find(strategy_, options));
  if (!plan.has_value()) return std::nullopt;
  const int entry = run_.contest.Enter(*std::move(plan), kFound);
  run_.entered.emplace_back(entry, mappings_.at(options.sync_weight));
  return entry;
}

absl::StatusOr<Prediction> OverlapSearch::PredictionOf(std::optional<int> entry) {
  if (!entry.has_value()) return Prediction{};
  return run_.contest.PredictionOf(*entry);
}

// The largest weight and the smallest, then those between if they differ.
absl::Status OverlapSearch::SearchWithWeights() {
  if (!run_.Asks(Proposer::kJointSearch)) return absl::OkStatus();
  const Proposing proposing(&run_.contest.ledger(), Proposer::kJointSearch);
  constexpr int kLast = std::size(kSyncWeights) - 1;
  ISOMER_ASSIGN_OR_RETURN(const std::optional<int> at_first, SearchAt(0));
  // Inference has no gradients to synchronise.
  if (!run_.options.training || Simulates(strategy_) || !run_.Asks(Proposer::kSyncWeights)) {
    return PredictionOf(at_first).status();
  }
  if (devices_ < run_.devices) {
    ISOMER_ASSIGN_OR_RETURN(const Prediction first, PredictionOf(at_first));
    if (first.step_us > kSlack * run_.contest.step_us()) return absl::OkStatus();
  }
  if (run_.contest.PredictionsAreSlow()) return PredictionOf(at_first).status();
  const Proposing with_weights(&run_.contest.ledger(), Proposer::kSyncWeights);
  // The first is predicted beside the search for the last.
  ISOMER_ASSIGN_OR_RETURN(const std::optional<int> at_last, SearchAt(kLast));
  ISOMER_ASSIGN_OR_RETURN(const Prediction first, PredictionOf(at_first));
  ISOMER_ASSIGN_OR_RETURN(const Prediction last, PredictionOf(at_last));
  is_far_too_large_ = std::min(first.peak_bytes, last.peak_bytes) / kFarTooLarge >
                      run_.cost.machine().memory_bytes();
  if (is_far_too_large_) return absl::OkStatus();
  return SearchBetween(0, first, kLast, last);
}

// By the tables, a plan's time is linear in the weight, so that one that is best at two weights
// is best at those between.
absl::Status OverlapSearch::SearchBetween(int low, const Prediction& at_low, int high,
                                          const Prediction& at_high) {
  if (high - low < 2 || at_low == at_high || run_.contest.PredictionsAreSlow()) {
    return absl::OkStatus();
  }
  const int middle = (low + high) / 2;
  ISOMER_ASSIGN_OR_RETURN(const std::optional<int> entry, SearchAt(middle));
  ISOMER_ASSIGN_OR_RETURN(const Prediction at_middle, PredictionOf(entry));
  ISOMER_RETURN_IF_ERROR(SearchBetween(low, at_low, middle, at_middle));
  return SearchBetween(middle, at_middle, high, at_high);
}

// The fastest that were entered, with calls in the model's order, and with copies of weights that
// calls arrange.
absl::Status OverlapSearch::Reorder() {
  if (run_.contest.PredictionsAreSlow() || !run_.Asks(Proposer::kCallOrder)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&run_.contest.ledger(), Proposer::kCallOrder);
  for (const auto& [entry, mapped] : run_.entered) {
    if (run_.deadline.Reached().has_value()) break;
    ISOMER_ASSIGN_OR_RETURN(const Prediction found, run_.contest.PredictionOf(entry));
    if (found.step_us > kWorthReordering * run_.contest.step_us()) continue;
    ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped, nullptr, CallOrder::kModel));
    ISOMER_RETURN_IF_ERROR(run_.contest.Consider(std::move(plan), kFound).status());
    ISOMER_RETURN_IF_ERROR(ConsiderOtherwiseArranged(mapped, found));
  }
  return absl::OkStatus();
}

// What the simulator finds better than what was found and entered.
absl::Status OverlapSearch::Refine() {
  for (const auto& [entry, mapped] : run_.entered) {
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, run_.contest.PredictionOf(entry));
    Remember(mapped, prediction);
  }
  run_.entered.clear();
  std::vector<MappedModel> mappings;
  for (auto& [weight, mapping] : mappings_) mappings.push_back(std::move(mapping));
  mappings_.clear();
  if (run_.contest.PredictionsAreSlow()) return absl::OkStatus();
  if (best_.us <= kSlack * run_.contest.step_us()) {
    ISOMER_RETURN_IF_ERROR(TakeTurnsIn(&mappings));
    ISOMER_RETURN_IF_ERROR(Splice(std::move(mappings)));
  }
  // However slow the others are: branches beside each other may be what part of a machine is for.
  ISOMER_RETURN_IF_ERROR(MapInOnePiece());
  starts_[devices_] = {fastest_, best_, as_it_is_};
  return absl::OkStatus();
}

// The graph as it is, and the best that algebra has made of it. Cuts keep branches on either side
// of them from running beside each other; and what tables say of algebra may be wrong, for all that
// a fused call cannot be split into.
absl::Status OverlapSearch::MapInOnePiece() {
  const bool searches = strategy_ == Strategy::kHierarchical || strategy_ == Strategy::kSequential;
  if (!best_.mapping.has_value() || !searches || !run_.restrictions.empty() ||
      !run_.Asks(Proposer::kOnePiece)) {
    return absl::OkStatus();
  }
  if (!IsWorthWalking(static_cast<int64_t>(best_.mapping->choices.size()), devices_)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&run_.contest.ledger(), Proposer::kOnePiece);
  const Rewritten rewritten = {best_.mapping->steps, best_.mapping->graph};
  for (const Rewritten* graph : {static_cast<const Rewritten*>(nullptr), &rewritten}) {
    if (graph == nullptr ? !model_as_it_is_ : graph->steps.empty()) continue;
    for (const auto& [beside, weight] : kInOnePiece) {
      if (run_.deadline.Reached().has_value()) return absl::OkStatus();
      CostOptions options = run_.BaseOptions();
      options.num_devices = devices_;
      options.sync_weight = weight;
      ISOMER_ASSIGN_OR_RETURN(const MappedModel mapped,
                              search_.MapInOnePiece(graph, beside, options));
      ISOMER_RETURN_IF_ERROR(Consider(mapped).status());
      ISOMER_ASSIGN_OR_RETURN(const std::optional<MappedModel> turned,
                              TakeTurns(mapped, &run_.tables));
      if (turned.has_value()) ISOMER_RETURN_IF_ERROR(Consider(*turned).status());
    }
  }
  return absl::OkStatus();
}

// Adds those of `mappings` in which calls take turns on devices, where that is faster than all.
absl::Status OverlapSearch::TakeTurnsIn(std::vector<MappedModel>* mappings) {
  if (!run_.restrictions.empty() || Simulates(strategy_) || !run_.Asks(Proposer::kTurns)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&run_.contest.ledger(), Proposer::kTurns);
  for (size_t m = 0, found = mappings->size(); m < found; ++m) {
    if (run_.deadline.Reached().has_value()) break;
    ISOMER_ASSIGN_OR_RETURN(std::optional<MappedModel> turned,
                            TakeTurns((*mappings)[m], &run_.tables));
    if (!turned.has_value()) continue;
    const double best_us = run_.contest.step_us();
    ISOMER_ASSIGN_OR_RETURN(const Prediction prediction, Consider(*turned));
    if (prediction.step_us < best_us) mappings->push_back(*std::move(turned));
  }
  return absl::OkStatus();
}

// Splices of what is far too large are, too.
absl::Status OverlapSearch::Splice(std::vector<MappedModel> mappings) {
  if (best_.us == kImpossibleUs || is_far_too_large_ || !run_.Asks(Proposer::kSplices)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&run_.contest.ledger(), Proposer::kSplices);
  return ConsiderSplices(mappings, best_.us, run_.deadline,
                         [this](const MappedModel& mapped) { return ConsiderIfAllowed(mapped); });
}

// By simulated steps, in float32, which is what task graphs know. They do not know memory: a walk
// that begins too large may end so; then there is another, from the fastest mapping that fits.
absl::Status OverlapSearch::WalkUp() {
  if (Simulates(strategy_) || run_.options.precision != DataType::kFloat32 ||
      !run_.Asks(Proposer::kWalks)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&run_.contest.ledger(), Proposer::kWalks);
  Forget();
  const double slow_us = kSlack * run_.contest.step_us();
  Starts carried;
  for (const auto& [devices, starts] : starts_) {
    devices_ = devices;
    fastest_ = starts.fastest;
    best_ = starts.best;
    if (model_as_it_is_ && starts.as_it_is.us <= slow_us && starts.as_it_is.us > best_.us) {
      ISOMER_RETURN_IF_ERROR(WalkFrom(starts.as_it_is));
    }
    if (starts.best.us <= slow_us) ISOMER_RETURN_IF_ERROR(WalkFrom(starts.fastest, starts.best));
    // Walks end in different places: on fewer devices one may have come further.
    const bool is_further = carried.best.us < best_.us;
    if (carried.fastest.us < fastest_.us) fastest_ = carried.fastest;
    if (is_further) best_ = carried.best;
    if (is_further && best_.us <= slow_us) ISOMER_RETURN_IF_ERROR(WalkFrom(fastest_, best_));
    carried = {fastest_, best_, {}};
  }
  if (carried.best.us > slow_us) return absl::OkStatus();
  return ImprovePairsOf(carried.best);
}

absl::Status OverlapSearch::WalkFrom(Start fastest, Start best) {
  if (best.us == kImpossibleUs) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(WalkFrom(fastest));
  if (fastest.us == best.us || best_.us < best.us) return absl::OkStatus();
  return WalkFrom(best);
}

absl::Status OverlapSearch::WalkFrom(const Start& start) {
  if (!start.mapping.has_value()) return absl::OkStatus();
  SetOptionsToWalk();
  return ConsiderWalks(run_.model, *start.mapping, start.us, run_.options.search.seed,
                       run_.deadline, restrictions(), &run_.tables, &run_.moves,
                       [this](const MappedModel& mapped, double without_buckets_us) {
                         return ConsiderWalk(mapped, without_buckets_us);
                       });
}

absl::Status OverlapSearch::ImprovePairsOf(const Start& start) {
  if (!start.mapping.has_value() || devices_ > kMostDevicesOfPairs ||
      !run_.Asks(Proposer::kPairs)) {
    return absl::OkStatus();
  }
  const Proposing proposing(&run_.contest.ledger(), Proposer::kPairs);
  SetOptionsToWalk();
  ISOMER_ASSIGN_OR_RETURN(const WalkedModel paired,
                          WithBetterPairs(run_.model, *start.mapping, restrictions(), run_.deadline,
                                          &run_.tables, &run_.moves));
  return ConsiderWalk(paired.mapped, MicrosecondsOf(paired.step)).status();
}

void OverlapSearch::SetOptionsToWalk() {
  CostOptions options = run_.BaseOptions();
  options.num_devices = devices_;
  run_.tables.set_options(options);
}

const Restrictions* OverlapSearch::restrictions() const {
  return run_.restrictions.empty() ? nullptr : &run_.restrictions;
}

absl::StatusOr<Prediction> OverlapSearch::ConsiderIfAllowed(const MappedModel& mapped) {
  if (!run_.restrictions.Violations(mapped).empty()) return Prediction{kImpossibleUs};
  return Consider(mapped);
}

// Task graphs synchronise every gradient by itself, with calls in the model's order: so may the
// plan of what was best there, or not.
absl::StatusOr<Prediction> OverlapSearch::ConsiderWalk(const MappedModel& mapped,
                                                       double without_buckets_us) {
  ISOMER_ASSIGN_OR_RETURN(Prediction best, ConsiderIfAllowed(mapped));
  if (best.step_us >= kImpossibleUs) return best;
  ISOMER_ASSIGN_OR_RETURN(Plan plan, run_.PlanOf(mapped, nullptr, CallOrder::kModel));
  const auto consider = [&](Plan other) -> absl::Status {
    ISOMER_ASSIGN_OR_RETURN(const Prediction found,
                            run_.contest.Consider(std::move(other), kFound));
    if (run_.contest.Rank(best) <= run_.contest.Rank(found)) return absl::OkStatus();
    Remember(mapped, found);
    best = found;
    return absl::OkStatus();
  };
  ISOMER_RETURN_IF_ERROR(consider(plan));
  if (run_.options.choose_buckets && run_.options.training && without_buckets_us < best.step_us) {
    plan.update.bucket_bytes = 0;
    ISOMER_RETURN_IF_ERROR(consider(std::move(plan)));
  }
  return best;
}

// Task graphs have no micro-batches.
void OverlapSearch::Remember(const MappedModel& mapped, const Prediction& prediction) {
  const auto has_moments = [](const auto& c) { return c.second.moments > 1; };
  if (std::any_of(mapped.choices.begin(), mapped.choices.end(), has_moments)) return;
  const bool walks = IsWorthWalking(static_cast<int64_t>(mapped.choices.size()), devices_);
  const auto remember = [&](Start* start) {
    if (prediction.step_us >= start->us) return;
    start->us = prediction.step_us;
    start->mapping.reset();
    if (walks) start->mapping = mapped;
  };
  remember(&fastest_);
  if (run_.contest.Fits(prediction)) remember(&best_);
  if (mapped.steps.empty()) remember(&as_it_is_);
}

}  // namespace isomer
