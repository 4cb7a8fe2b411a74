#include "optimizer/bound/step_sums.h"

#include <algorithm>
#include <set>
#include <utility>

#include "optimizer/bound/bound_mixture.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Fractions of compute against communication: of the backward pass, of both passes.
constexpr double kPathParts[] = {1, 0.5, 0};
constexpr double kBackwardParts[] = {1, 0.5, 0};
constexpr double kQueueParts[] = {0.25, 0.5, 0.75};
// Mappings per mixture.
constexpr int kSolutions = 8;

}  // namespace

StepSums::StepSums(const Graph& graph, const std::string& loss, const ComputeGraph& compute,
                   const std::map<NodeId, std::string>& operators, CostTables* tables)
    : compute_(compute),
      operators_(operators),
      tables_(*tables),
      edges_(tables),
      bounded_(graph, loss, tables) {}

void StepSums::Make(const std::vector<int>& to_beat, double enough_us) {
  const std::vector<bool> on_path = HeaviestPath();
  for (double part : kPathParts) AddPath(part, on_path);
  for (double part : kBackwardParts) AddQueues(part, /*after_forward=*/true);
  for (double part : kQueueParts) AddQueues(part, /*after_forward=*/false);
  AddRelaxed(to_beat, enough_us);
}

absl::Status StepSums::FindCalls(int64_t devices) {
  ISOMER_ASSIGN_OR_RETURN(bounded_calls_, bounded_.On(devices, /*halves=*/false));
  std::map<NodeId, int> place_of;
  for (size_t n = 0; n < compute_.nodes.size(); ++n) {
    place_of[compute_.nodes[n].id] = static_cast<int>(n);
  }
  calls_.resize(compute_.nodes.size());
  parts_.resize(compute_.nodes.size());
  for (size_t n = 0; n < calls_.size(); ++n) {
    place_.push_back(place_of.at(bounded_.compute().nodes[n].id));
    calls_[place_[n]] = bounded_calls_.calls[n];
    parts_[place_[n]] = bounded_calls_.parts[n];
  }
  FindInnerEdges();
  return absl::OkStatus();
}

// Empty: an operator of its own.
const std::string& StepSums::OperatorOf(int call) const {
  static const std::string none;
  const auto found = operators_.find(compute_.nodes[call].id);
  return found == operators_.end() ? none : found->second;
}

void StepSums::FindInnerEdges() {
  inner_.resize(calls_.size());
  for (int n = 0; n < static_cast<int>(calls_.size()); ++n) {
    const auto& operands = compute_.nodes[n].operands;
    for (size_t o = 0; o < operands.size(); ++o) {
      const int producer = operands[o].producer;
      if (producer < 0 || OperatorOf(n).empty() || OperatorOf(n) != OperatorOf(producer)) continue;
      const bool gradient = tables_.options().training && operands[o].gradient;
      inner_[n].push_back({producer, &edges_.Us(calls_[producer]->outputs[operands[o].output],
                                                calls_[n]->operands[o], gradient)});
    }
  }
}

bool StepSums::MovesWithinOperator(int call, int choice, const std::vector<int>& choices) const {
  return std::any_of(inner_[call].begin(), inner_[call].end(), [&](const InnerEdge& edge) {
    return edge.us->at(choices[edge.producer], choice) > 0;
  });
}

double StepSums::CountAssignments() const {
  std::map<std::string, std::vector<int>> operators;
  double count = 1;
  for (int n = 0; n < static_cast<int>(calls_.size()); ++n) {
    const std::string& name = OperatorOf(n);
    if (!name.empty()) {
      operators[name].push_back(n);
    } else {
      count *= static_cast<double>(calls_[n]->space.choices.size());
    }
  }
  std::vector<int> choices(calls_.size(), 0);
  for (const auto& [name, calls] : operators) count *= CountFrom(0, calls, &choices);
  return count;
}

// Number of assignments of `calls` from position `at` on, given the choices before.
double StepSums::CountFrom(size_t at, const std::vector<int>& calls,
                           std::vector<int>* choices) const {
  if (at == calls.size()) return 1;
  double count = 0;
  const int call = calls[at];
  for (int k = 0; k < static_cast<int>(calls_[call]->space.choices.size()); ++k) {
    if (MovesWithinOperator(call, k, *choices)) continue;
    (*choices)[call] = k;
    count += CountFrom(at + 1, calls, choices);
  }
  return count;
}

// The path with the greatest minimum of compute.
std::vector<bool> StepSums::HeaviestPath() const {
  const size_t n = parts_.size();
  std::vector<double> us(n, 0);
  std::vector<int> from(n, -1);
  int last = 0;
  for (size_t v = 0; v < n; ++v) {
    double own = kImpossibleUs;
    for (const ChoiceParts& p : *parts_[v]) own = std::min(own, p.compute_us());
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

void StepSums::AddPath(double part, const std::vector<bool>& on_path) {
  PairwiseProblem problem;
  int before = -1;
  for (size_t n = 0; n < parts_.size(); ++n) {
    std::vector<float> us(parts_[n]->size(), 0);
    for (size_t k = 0; k < us.size() && on_path[n]; ++k) {
      const ChoiceParts& p = (*parts_[n])[k];
      us[k] = static_cast<float>(p.forward_us + p.halo_us + part * (p.gradient_us + p.update_us) +
                                 (1 - part) * p.sync_us);
    }
    problem.us.push_back(std::move(us));
    if (!on_path[n]) continue;
    if (before >= 0) AddEdge(n, before, 1, /*way_back=*/false, &problem);
    before = static_cast<int>(n);
  }
  Finish(std::move(problem));
}

// Weighs compute by `part` and communication by the rest; with `after_forward`, all of the forward
// pass, then both of the backward pass.
void StepSums::AddQueues(double part, bool after_forward) {
  PairwiseProblem problem;
  std::set<std::pair<int, int>> moved;
  for (size_t n = 0; n < parts_.size(); ++n) {
    std::vector<float> us;
    for (const ChoiceParts& p : *parts_[n]) {
      const double forward_us = (after_forward ? 1 : part) * p.forward_us;
      const double halo_us = after_forward ? p.halo_us / 2 : p.halo_us;
      us.push_back(static_cast<float>(forward_us + part * (p.compute_us() - p.forward_us) +
                                      (1 - part) * (p.sync_us + halo_us)));
    }
    problem.us.push_back(std::move(us));
    // A value that several calls need may be transferred once.
    std::set<int> producers;
    for (const auto& operand : compute_.nodes[n].operands) {
      if (operand.producer < 0 || !moved.insert({operand.producer, operand.output}).second) {
        continue;
      }
      if (producers.insert(operand.producer).second) {
        AddEdge(n, operand.producer, 1 - part, after_forward, &problem);
      }
    }
  }
  Finish(std::move(problem));
}

// Adds the first edge from `producer` to the call, or its backward transfer, times `weight`.
void StepSums::AddEdge(size_t call, int producer, double weight, bool way_back,
                       PairwiseProblem* problem) {
  const auto& operands = compute_.nodes[call].operands;
  size_t place = 0;
  while (operands[place].producer != producer) ++place;
  const PlacementSetId from = calls_[producer]->outputs[operands[place].output];
  const PlacementSetId to = calls_[call]->operands[place];
  const bool gradient = tables_.options().training && operands[place].gradient;
  CostTable scaled = edges_.Us(from, to, gradient);
  const CostTable& forward = edges_.Us(from, to, false);
  for (size_t i = 0; i < scaled.us.size(); ++i) {
    float& us = scaled.us[i];
    if (us >= kImpossibleUs) continue;
    us = (us - (way_back ? forward.us[i] : 0)) * static_cast<float>(weight);
  }
  problem->edges.push_back({producer, static_cast<int>(call), Keep(std::move(scaled))});
}

void StepSums::AddRelaxed(const std::vector<int>& to_beat, double enough_us) {
  const RelaxedStep step(bounded_calls_, &edges_, &tables_);
  std::vector<int> choices;
  bool are_known = true;  // all choices are in the tables
  for (int at : place_) {
    choices.push_back(to_beat[at]);
    are_known &= to_beat[at] < static_cast<int>(parts_[at]->size());
  }
  BoundMixture mixture(step, bounded_calls_, &tables_);
  const BoundMixture::Best best = mixture.Find({}, nullptr, enough_us, kSolutions);
  AddMixed(step, step.Mix(best.terms, best.weights));
  if (!are_known) return;
  for (const RelaxedStep::Term& term : step.GreatestTerms(choices)) {
    AddMixed(step, step.Mix({term}, {1}));
  }
}

void StepSums::AddMixed(const RelaxedStep& step, const RelaxedStep::Mixed& mixed) {
  PairwiseProblem problem;
  problem.us.resize(place_.size());
  for (int n = 0; n < step.num_calls(); ++n) {
    std::vector<float>& us = problem.us[place_[n]];
    for (int k = 0; k < static_cast<int>(bounded_calls_.parts[n]->size()); ++k) {
      us.push_back(static_cast<float>(step.CallUs(mixed, n, k)));
    }
  }
  for (size_t e = 0; e < step.edges().size(); ++e) {
    const RelaxedStep::Edge& edge = step.edges()[e];
    problem.edges.push_back(
        {place_[edge.from], place_[edge.to], Keep(MixedTable(*edge.us, mixed.edges[e]))});
  }
  Finish(std::move(problem));
}

const CostTable* StepSums::Keep(CostTable table) {
  table.key = 0;
  kept_.push_back(std::make_unique<CostTable>(std::move(table)));
  return kept_.back().get();
}

void StepSums::Finish(PairwiseProblem problem) {
  for (size_t n = 0; n < inner_.size(); ++n) {
    for (const InnerEdge& edge : inner_[n]) {
      CostTable allowed = *edge.us;
      for (float& us : allowed.us) us = us > 0 ? kImpossibleUs : 0;
      problem.edges.push_back({edge.producer, static_cast<int>(n), Keep(std::move(allowed))});
    }
  }
  bounds_.push_back(std::make_unique<PrefixBound>(problem));
}

}  // namespace isomer
