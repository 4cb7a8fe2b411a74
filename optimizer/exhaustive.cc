#include "optimizer/exhaustive.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "optimizer/choice_parts.h"
#include "optimizer/edge_bound.h"
#include "optimizer/lower_bound.h"
#include "optimizer/prefix_bound.h"
#include "optimizer/task_graph.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of what is computed, against what is communicated: of the backward pass, of both passes.
constexpr double kPathParts[] = {1, 0.5, 0};
constexpr double kBackwardParts[] = {1, 0.5, 0};
constexpr double kQueueParts[] = {0.25, 0.5, 0.75};
constexpr int kNumBounds = 9;

// Of the space, for a bound of the whole before the first prefix (lower_bound.h).
constexpr int kCuts = 20;

// Sums of float32, in another order than the simulator's picoseconds.
constexpr double kRounding = 1e-5;

class AssignmentSearch {
 public:
  AssignmentSearch(const Model& model, const ExhaustiveOptions& options, CostTables* tables)
      : model_(model), options_(options), tables_(*tables) {}

  absl::StatusOr<ExhaustiveResult> Run(const MappedModel& start) {
    result_.best = start;
    ISOMER_RETURN_IF_ERROR(MakeGraph(start));
    compute_ = graph_->compute();
    summed_ = SummedGradients(model_.graph, compute_);
    ChargeFirstUses(model_.graph, &compute_);
    result_.step_us = MicrosecondsOf(graph_->makespan());
    result_.bound_us = kImpossibleUs;
    result_.proved = true;
    const int64_t all = tables_.cost().machine().num_devices();
    const CostOptions saved = tables_.options();
    absl::Status done;
    for (int64_t devices = all; devices >= 1 && done.ok(); --devices) {
      if (all % devices == 0) done = OnDevices(devices, start);
    }
    tables_.set_options(saved);
    ISOMER_RETURN_IF_ERROR(done);
    result_.bound_us = std::min(result_.bound_us, result_.step_us);
    return std::move(result_);
  }

 private:
  // A prefix of choices: its last, and the rest.
  struct Prefix {
    int parent, choice, length;
    std::array<float, kNumBounds> bounds;
  };

  // The order of calls is that of the plan that `start` is.
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
    ISOMER_RETURN_IF_ERROR(MakeBounds());
    ISOMER_RETURN_IF_ERROR(MakeGraph(start));
    double assignments = 1;
    for (const CallTables* call : calls_) {
      assignments *= static_cast<double>(call->space.choices.size());
    }
    result_.assignments += assignments;
    const BoundOptions of_step = {.devices = devices, .cuts = kCuts, .enough_us = result_.step_us};
    ISOMER_ASSIGN_OR_RETURN(const LowerBound bound, BoundStep(model_.graph, of_step, &tables_));
    tables_.set_options(options);
    if (bound.step_us * (1 - kRounding) >= result_.step_us) return absl::OkStatus();
    prefixes_.clear();
    open_ = {};
    Prefix empty = {-1, -1, 0, {}};
    for (int b = 0; b < kNumBounds; ++b) {
      empty.bounds[b] = static_cast<float>(bounds_[b]->root_us());
    }
    Push(empty);
    while (!open_.empty()) {
      const auto [minus_us, length, at] = open_.top();
      if (-minus_us >= result_.step_us) break;
      if (result_.prefixes >= options_.budget) {
        result_.proved = false;
        result_.bound_us = std::min(result_.bound_us, std::max(-minus_us, bound.step_us));
        break;
      }
      open_.pop();
      ISOMER_RETURN_IF_ERROR(Extend(at));
    }
    return absl::OkStatus();
  }

  absl::Status Extend(int at) {
    const int node = prefixes_[at].length;
    const int n = static_cast<int>(calls_.size());
    std::vector<int> choices(n, 0);
    for (int p = at; prefixes_[p].length > 0; p = prefixes_[p].parent) {
      choices[prefixes_[p].length - 1] = prefixes_[p].choice;
    }
    if (node == n) return Simulate(choices);
    for (int k = 0; k < static_cast<int>(calls_[node]->space.choices.size()); ++k) {
      Prefix next = {at, k, node + 1, prefixes_[at].bounds};
      for (int b = 0; b < kNumBounds; ++b) {
        next.bounds[b] += static_cast<float>(bounds_[b]->AddedUs(node, k, choices));
      }
      Push(next);
    }
    return absl::OkStatus();
  }

  void Push(const Prefix& prefix) {
    const double us =
        *std::max_element(prefix.bounds.begin(), prefix.bounds.end()) * (1 - kRounding);
    if (us >= result_.step_us) return;
    open_.push({-us, prefix.length, static_cast<int>(prefixes_.size())});
    prefixes_.push_back(prefix);
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

  absl::Status MakeBounds() {
    calls_.clear();
    parts_.clear();
    for (const auto& node : compute_.nodes) {
      ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                              tables_.Call(model_.graph.node(node.id).op, node.operand_types));
      calls_.push_back(call);
      std::vector<ChoiceParts> parts;
      for (const ShardingChoice& choice : call->space.choices) {
        parts.push_back(PartsOfChoice(call->space, choice, node, summed_[parts_.size()], tables_));
      }
      parts_.push_back(std::move(parts));
    }
    bounds_.clear();
    problems_.clear();
    scaled_.clear();
    const std::vector<bool> on_path = HeaviestPath();
    for (double part : kPathParts) AddPath(part, on_path);
    for (double part : kBackwardParts) AddQueues(part, /*after_forward=*/true);
    for (double part : kQueueParts) AddQueues(part, /*after_forward=*/false);
    return absl::OkStatus();
  }

  // The path with most to compute at least.
  std::vector<bool> HeaviestPath() const {
    const size_t n = parts_.size();
    std::vector<double> us(n, 0);
    std::vector<int> from(n, -1);
    int last = 0;
    for (size_t v = 0; v < n; ++v) {
      double own = kImpossibleUs;
      for (const ChoiceParts& p : parts_[v]) own = std::min(own, p.compute_us());
      for (const auto& operand : compute_.nodes[v].operands) {
        if (operand.producer < 0 || us[operand.producer] <= us[v]) continue;
        us[v] = us[operand.producer];
        from[v] = operand.producer;
      }
      us[v] += own;
      if (us[v] > us[last]) last = static_cast<int>(v);
    }
    std::vector<bool> on_path(n, false);
    for (int v = last; v >= 0; v = from[v]) on_path[v] = true;
    return on_path;
  }

  void AddPath(double part, const std::vector<bool>& on_path) {
    auto problem = std::make_unique<PairwiseProblem>();
    int before = -1;
    for (size_t n = 0; n < parts_.size(); ++n) {
      std::vector<float> us(parts_[n].size(), 0);
      for (size_t k = 0; k < us.size() && on_path[n]; ++k) {
        const ChoiceParts& p = parts_[n][k];
        us[k] = static_cast<float>(p.forward_us + p.halo_us + part * (p.gradient_us + p.update_us) +
                                   (1 - part) * p.sync_us);
      }
      problem->us.push_back(std::move(us));
      if (!on_path[n]) continue;
      if (before >= 0) AddEdge(n, before, 1, /*way_back=*/false, problem.get());
      before = static_cast<int>(n);
    }
    Finish(std::move(problem));
  }

  // `part` of what is computed, the rest of what is communicated; with `after_forward`, all of the
  // forward pass, behind which both of the backward pass come.
  void AddQueues(double part, bool after_forward) {
    auto problem = std::make_unique<PairwiseProblem>();
    std::set<std::pair<int, int>> moved;
    for (size_t n = 0; n < parts_.size(); ++n) {
      std::vector<float> us;
      for (const ChoiceParts& p : parts_[n]) {
        const double forward_us = (after_forward ? 1 : part) * p.forward_us;
        const double halo_us = after_forward ? p.halo_us / 2 : p.halo_us;
        us.push_back(static_cast<float>(forward_us + part * (p.compute_us() - p.forward_us) +
                                        (1 - part) * (p.sync_us + halo_us)));
      }
      problem->us.push_back(std::move(us));
      // What several calls need of a value may be brought there once.
      std::set<int> producers;
      for (const auto& operand : compute_.nodes[n].operands) {
        if (operand.producer < 0 || !moved.insert({operand.producer, operand.output}).second) {
          continue;
        }
        if (producers.insert(operand.producer).second) {
          AddEdge(n, operand.producer, 1 - part, after_forward, problem.get());
        }
      }
    }
    Finish(std::move(problem));
  }

  // The first edge from `producer` to node `n`, or its way back, times `weight`.
  void AddEdge(size_t n, int producer, double weight, bool way_back, PairwiseProblem* problem) {
    const auto& operands = compute_.nodes[n].operands;
    size_t place = 0;
    while (operands[place].producer != producer) ++place;
    const PlacementSetId from = calls_[producer]->outputs[operands[place].output];
    const PlacementSetId to = calls_[n]->operands[place];
    const bool gradient = tables_.options().training && operands[place].gradient;
    auto scaled = std::make_unique<CostTable>(edges_.Us(from, to, gradient));
    scaled->key = 0;
    const CostTable& forward = edges_.Us(from, to, false);
    for (size_t i = 0; i < scaled->us.size(); ++i) {
      float& us = scaled->us[i];
      if (us >= kImpossibleUs) continue;
      us = (us - (way_back ? forward.us[i] : 0)) * static_cast<float>(weight);
    }
    problem->edges.push_back({producer, static_cast<int>(n), scaled.get()});
    scaled_.push_back(std::move(scaled));
  }

  void Finish(std::unique_ptr<PairwiseProblem> problem) {
    bounds_.push_back(std::make_unique<PrefixBound>(*problem));
    problems_.push_back(std::move(problem));
  }

  const Model& model_;
  const ExhaustiveOptions& options_;
  CostTables& tables_;
  EdgeBounds edges_{&tables_};
  ComputeGraph compute_;
  std::vector<std::vector<bool>> summed_;  // per node and operand
  std::unique_ptr<TaskGraph> graph_;
  std::vector<const CallTables*> calls_;
  std::vector<std::vector<ChoiceParts>> parts_;
  std::vector<std::unique_ptr<PairwiseProblem>> problems_;
  std::vector<std::unique_ptr<CostTable>> scaled_;
  std::vector<std::unique_ptr<PrefixBound>> bounds_;
  std::vector<Prefix> prefixes_;
  // (-bound, length, prefix): the greatest first.
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
  return absl::StrFormat(
      "not proved: the budget ended with no assignment of %.3g below %.1f us, the best at %.1f us "
      "(%s)",
      assignments, bound_us, step_us, work);
}

absl::StatusOr<ExhaustiveResult> SearchExhaustively(const Model& model, const MappedModel& start,
                                                    const ExhaustiveOptions& options,
                                                    CostTables* tables) {
  return AssignmentSearch(model, options, tables).Run(start);
}

}  // namespace isomer
