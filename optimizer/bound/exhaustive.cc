#include "optimizer/bound/exhaustive.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "optimizer/bound/lower_bound.h"
#include "optimizer/bound/step_sums.h"
#include "optimizer/simulator/task_graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Branchings of the space, for a bound of the full space before the first prefix (lower_bound.h).
constexpr int kCuts = 20;

// Prefixes between two checks of the deadline: some milliseconds.
constexpr int64_t kPrefixesPerLook = 256;

// Tolerance for float32 sums in another order than the simulator's picoseconds.
constexpr double kRounding = 1e-5;

class AssignmentSearch {
 public:
  AssignmentSearch(const Model& model, const ExhaustiveOptions& options, CostTables* tables)
      : model_(model), options_(options), tables_(*tables) {}

  absl::StatusOr<ExhaustiveResult> Run(const MappedModel& start) {
    result_.best = start;
    ISOMER_RETURN_IF_ERROR(MakeGraph(start));
    compute_ = graph_->compute();
    DropGradientsWithoutLoss(model_.graph, model_.loss, &compute_);
    result_.step_us = MicrosecondsOf(graph_->makespan());
    result_.bound_us = kImpossibleUs;
    result_.proved = true;
    const int64_t all = tables_.cost().machine().num_devices();
    const CostOptions saved = tables_.options();
    absl::Status done;
    for (int64_t devices = all; devices >= 1 && done.ok(); --devices) {
      if (all % devices != 0) continue;
      if (const auto reason = options_.deadline.Reached(); reason.has_value()) {
        Stop(*reason, 0);  // Nothing is known of unexplored spaces.
        break;
      }
      done = OnDevices(devices, start);
    }
    tables_.set_options(saved);
    ISOMER_RETURN_IF_ERROR(done);
    result_.bound_us = std::min(result_.bound_us, result_.step_us);
    return std::move(result_);
  }

 private:
  // A prefix of choices: the last one, and its parent.
  struct Prefix {
    int parent, choice, length;
  };

  void Stop(StopReason reason, double bound_us) {
    result_.proved = false;
    result_.stop = std::max(result_.stop, reason);
    result_.bound_us = std::min(result_.bound_us, bound_us);
  }

  // The calls in the order of the start's plan.
  absl::Status MakeGraph(const MappedModel& start) {
    ISOMER_ASSIGN_OR_RETURN(
        graph_, TaskGraph::Create(model_, start, &tables_, nullptr, TaskGraph::Lists::kChoices,
                                  TaskGraph::Order::kInterleaved));
    return absl::OkStatus();
  }

  absl::Status OnDevices(int64_t devices, const MappedModel& start) {
    CostOptions options = tables_.options();
    options.num_devices = devices;
    options.halves = false;
    options.moments = 1;
    options.updates_together = false;
    tables_.set_options(options);
    ISOMER_RETURN_IF_ERROR(MakeGraph(start));
    const BoundOptions of_step = {.loss = model_.loss,
                                  .devices = devices,
                                  .cuts = kCuts,
                                  .enough_us = result_.step_us,
                                  .deadline = options_.deadline};
    ISOMER_ASSIGN_OR_RETURN(const LowerBound bound, BoundStep(model_.graph, of_step, &tables_));
    tables_.set_options(options);
    sums_ = std::make_unique<StepSums>(model_.graph, model_.loss, compute_, options_.operators,
                                       &tables_);
    ISOMER_RETURN_IF_ERROR(sums_->FindCalls(devices));
    result_.assignments += sums_->CountAssignments();
    if (bound.step_us * (1 - kRounding) >= result_.step_us) return absl::OkStatus();
    sums_->Make(StartChoices(), result_.step_us);
    prefixes_.clear();
    bounds_.clear();
    open_ = {};
    std::vector<float> root;
    for (const auto& bound_of : sums_->bounds()) {
      root.push_back(static_cast<float>(bound_of->root_us()));
    }
    Push({-1, -1, 0}, root);
    int64_t taken = 0;
    while (!open_.empty()) {
      const auto [minus_us, length, at] = open_.top();
      if (-minus_us >= result_.step_us) break;
      std::optional<StopReason> reason;
      if (taken++ % kPrefixesPerLook == 0) reason = options_.deadline.Reached();
      if (result_.prefixes >= options_.budget) reason = StopReason::kBudget;
      if (reason.has_value()) {
        Stop(*reason, std::max(-minus_us, bound.step_us));
        break;
      }
      open_.pop();
      ISOMER_RETURN_IF_ERROR(Extend(at));
    }
    return absl::OkStatus();
  }

  // The graph's current choices: those of the start.
  std::vector<int> StartChoices() const {
    std::vector<int> choices;
    for (int n = 0; n < graph_->num_nodes(); ++n) choices.push_back(graph_->choice(n));
    return choices;
  }

  absl::Status Extend(int at) {
    const int node = prefixes_[at].length;
    const int n = graph_->num_nodes();
    std::vector<int> choices(n, 0);
    for (int p = at; prefixes_[p].length > 0; p = prefixes_[p].parent) {
      choices[prefixes_[p].length - 1] = prefixes_[p].choice;
    }
    if (node == n) return Simulate(choices);
    const size_t count = sums_->bounds().size();
    std::vector<float> bounds(count);
    for (int k = 0; k < static_cast<int>(sums_->calls()[node]->space.choices.size()); ++k) {
      if (sums_->MovesWithinOperator(node, k, choices)) continue;
      for (size_t b = 0; b < count; ++b) {
        bounds[b] = bounds_[at * count + b] +
                    static_cast<float>(sums_->bounds()[b]->AddedUs(node, k, choices));
      }
      Push({at, k, node + 1}, bounds);
    }
    return absl::OkStatus();
  }

  void Push(const Prefix& prefix, const std::vector<float>& bounds) {
    const double us = *std::max_element(bounds.begin(), bounds.end()) * (1 - kRounding);
    if (us >= result_.step_us) return;
    open_.push({-us, prefix.length, static_cast<int>(prefixes_.size())});
    prefixes_.push_back(prefix);
    bounds_.insert(bounds_.end(), bounds.begin(), bounds.end());
    ++result_.prefixes;
  }

  absl::Status Simulate(const std::vector<int>& choices) {
    for (int n = 0; n < static_cast<int>(choices.size()); ++n) {
      if (graph_->choice(n) != choices[n]) {
        ISOMER_RETURN_IF_ERROR(graph_->SetChoice(n, choices[n]));
      }
    }
    graph_->Commit();
    ++result_.simulated;
    const double us = MicrosecondsOf(graph_->makespan());
    if (us >= result_.step_us) return absl::OkStatus();
    result_.step_us = us;
    result_.best = graph_->Mapped();
    return absl::OkStatus();
  }

  const Model& model_;
  const ExhaustiveOptions& options_;
  CostTables& tables_;
  ComputeGraph compute_;  // in the order of prefixes
  std::unique_ptr<TaskGraph> graph_;
  std::unique_ptr<StepSums> sums_;
  std::vector<Prefix> prefixes_;
  std::vector<float> bounds_;  // [prefix][sum]
  // (-bound, length, prefix): a max-heap.
  std::priority_queue<std::tuple<double, int, int>> open_;
  ExhaustiveResult result_;
};

}  // namespace

std::string ExhaustiveResult::ToString() const {
  const std::string work = absl::StrFormat("%d prefixes, %d simulations", prefixes, simulated);
  if (proved) {
    return absl::StrFormat("proved: %.1f us is the optimum of %.3g assignments (%s)", step_us,
                           assignments, work);
  }
  const std::string bound =
      bound_us > 0
          ? absl::StrFormat("with no assignment of %.3g below %.1f us", assignments, bound_us)
          : "before all numbers of devices were looked at";
  return absl::StrFormat("not proved: %s %s, the best at %.1f us (%s)",
                         stop == StopReason::kBudget      ? "the budget ended"
                         : stop == StopReason::kTimeLimit ? "the time ended"
                                                          : "it was interrupted",
                         bound, step_us, work);
}

absl::StatusOr<ExhaustiveResult> SearchExhaustively(const Model& model, const MappedModel& start,
                                                    const ExhaustiveOptions& options,
                                                    CostTables* tables) {
  return AssignmentSearch(model, options, tables).Run(start);
}

}  // namespace isomer
