#include "optimizer/bound/relaxed_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace isomer {
RelaxedStep::RelaxedStep(const BoundedCalls& calls, EdgeBounds* edge_bounds, CostTables* tables)
    : calls_(calls), training_(tables->options().training) {
  FindEdges(edge_bounds);
  FindOutputs(edge_bounds, *tables);
  FindIntervals();
  FindTrained(tables->cost());
}

void RelaxedStep::FindOutputs(EdgeBounds* edge_bounds, const CostTables& tables) {
  output_us_.assign((*calls_.parts[calls_.end]).size(), 0);
  // A transfer for one reader may serve the others.
  for (int output : calls_.outputs) {
    const std::vector<float> us = edge_bounds->OutputUs(calls_.calls[calls_.end]->outputs[output]);
    for (size_t k = 0; k < us.size(); ++k) output_us_[k] += us[k];
  }
  if (!training_ || calls_.outputs.empty()) return;
  seed_us_ = tables.cost().ElementwiseTime(TaskKind::kFill, sizeof(float), 0).us;
}

void RelaxedStep::FindTrained(const CostModel& cost) {
  if (!training_) return;
  const DeviceGroup all = {0, 1, static_cast<int64_t>(calls_.devices)};
  message_us_ = cost.CollectiveUs(Collective::kAllReduce, 1, all);
  for (int n = calls_.end; n-- > 0;) {
    const auto& operands = calls_.compute->nodes[n].operands;
    const bool trains = std::any_of(operands.begin(), operands.end(), [](const auto& operand) {
      return operand.stored && operand.gradient;
    });
    if (trains && relevant_[n]) trained_ = n;
  }
}

void RelaxedStep::FindEdges(EdgeBounds* edge_bounds) {
  const auto& nodes = calls_.compute->nodes;
  std::map<std::pair<int, int>, int> values;
  edges_to_.resize(nodes.size());
  edges_from_.resize(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::set<std::pair<int, int>> read;
    for (size_t o = 0; o < nodes[n].operands.size(); ++o) {
      const ComputeGraph::Operand& operand = nodes[n].operands[o];
      if (operand.producer < 0) continue;
      // A value that several operands need may be transferred once.
      if (!read.insert({operand.producer, operand.output}).second) continue;
      const int value =
          values.try_emplace({operand.producer, operand.output}, num_values_).first->second;
      num_values_ = static_cast<int>(values.size());
      const EdgeParts& us =
          edge_bounds->Parts(calls_.calls[operand.producer]->outputs[operand.output],
                             calls_.calls[n]->operands[o], training_ && operand.gradient);
      edges_to_[n].push_back(static_cast<int>(edges_.size()));
      edges_from_[operand.producer].push_back(static_cast<int>(edges_.size()));
      edges_.push_back({operand.producer, static_cast<int>(n), &us, value});
    }
  }
}

double RelaxedStep::PartUs(int call, int choice, Part part) const {
  const ChoiceParts& p = (*calls_.parts[call])[choice];
  switch (part) {
    case kForward:
      return p.forward_us;
    case kGradient:
      return p.gradient_us;
    case kWeights:
      return p.weights_us;
    case kUpdate:
      return p.update_us + p.sums_us;
    case kSync:
      return p.sync_us;
    case kHaloThere:
      return training_ ? p.halo_us / 2 : p.halo_us;
    case kHaloBack:
      return training_ ? p.halo_us / 2 : 0;
    case kLast:
      return p.last_us;
    case kSeed:
      return call == calls_.end ? seed_us_ : 0;
    case kOutput:
      return call == calls_.end ? output_us_[choice] : 0;
    case kBehind:
      return call == trained_ && p.sync_us > 0 ? seed_us_ : 0;
    case kApart:
      if (p.sync_us <= 0) return 0;
      return (call == trained_ ? message_us_ : 0) - std::max(0.0, message_us_ - p.sync_latency_us);
    case kNumParts:
      break;
  }
  return 0;
}

double RelaxedStep::FactorOf(int call, int choice, Where where) const {
  const ChoiceParts& p = (*calls_.parts[call])[choice];
  switch (where) {
    case kAnywhere:
      return 1;
    case kFirst:
      return p.on_first ? 1 : 0;
    case kOnAll:
      return p.devices == calls_.devices ? 1 : 0;
    case kAverage:
      return p.devices / calls_.devices;
    case kUpper:
      return p.on_upper ? 1 : 0;
    case kNumWheres:
      break;
  }
  return 0;
}

float RelaxedStep::EdgeUs(int edge, Move move, const std::vector<int>& choices) const {
  const Edge& e = edges_[edge];
  const EdgeParts& us = *e.us;
  const CostTable* const tables[] = {&us.there, &us.back, &us.waited_there, &us.waited_back};
  return tables[move]->at(choices[e.from], choices[e.to]);
}

RelaxedStep::Term RelaxedStep::Empty() const {
  Term term;
  term.calls.resize(num_calls());
  for (auto& bits : term.calls) bits.fill(0);
  term.edges.assign(edges_.size(), 0);
  return term;
}

std::vector<RelaxedStep::Term> RelaxedStep::QueueTerms() const {
  std::vector<Term> terms;
  std::vector<Where> wheres = {kFirst};
  if (calls_.beside) wheres.insert(wheres.end(), {kAverage, kUpper});
  for (Where where : wheres) {
    terms.push_back(Empty());
    for (int n = 0; n < num_calls(); ++n) {
      terms.back().calls[n][where] = Bit(kForward);
      if (!relevant_[n]) continue;
      terms.back().calls[n][where] |= Bit(kGradient) | Bit(kWeights) | Bit(kUpdate) | Bit(kSeed);
    }
  }
  Term network = Empty();
  for (int n = 0; n < num_calls(); ++n) {
    if (!relevant_[n]) continue;
    network.calls[n][kFirst] = Bit(kSync) | Bit(kHaloThere) | Bit(kHaloBack) | Bit(kOutput);
  }
  const Bits moves =
      calls_.beside ? Bit(kWaitedThere) | Bit(kWaitedBack) : Bit(kThere) | Bit(kBack);
  std::set<int> moved;
  for (size_t e = 0; e < edges_.size(); ++e) {
    if (relevant_[edges_[e].to] && moved.insert(edges_[e].value).second) network.edges[e] = moves;
  }
  terms.push_back(std::move(network));
  return terms;
}

double RelaxedStep::Us(const Term& term, const std::vector<int>& choices) const {
  double us = 0;
  for (int n = 0; n < num_calls(); ++n) {
    for (int w = 0; w < kNumWheres; ++w) {
      if (term.calls[n][w] == 0) continue;
      double sum = 0;
      for (int p = 0; p < kNumParts; ++p) {
        if (term.calls[n][w] & Bit(p)) sum += PartUs(n, choices[n], static_cast<Part>(p));
      }
      us += FactorOf(n, choices[n], static_cast<Where>(w)) * sum;
    }
  }
  for (size_t e = 0; e < edges_.size(); ++e) {
    for (int m = 0; m < kNumMoves; ++m) {
      if (term.edges[e] & Bit(m)) us += EdgeUs(static_cast<int>(e), static_cast<Move>(m), choices);
    }
  }
  return us;
}

RelaxedStep::Mixed RelaxedStep::Mix(const std::vector<Term>& terms,
                                    const std::vector<double>& weights) const {
  Mixed mixed;
  mixed.calls.resize(num_calls());
  for (auto& call : mixed.calls) {
    for (auto& where : call) where.fill(0);
  }
  mixed.edges.resize(edges_.size());
  for (auto& edge : mixed.edges) edge.fill(0);
  for (size_t t = 0; t < terms.size(); ++t) {
    const float weight = static_cast<float>(weights[t]);
    if (weight <= 0) continue;
    for (int n = 0; n < num_calls(); ++n) {
      for (int w = 0; w < kNumWheres; ++w) {
        for (int p = 0; p < kNumParts && terms[t].calls[n][w] != 0; ++p) {
          if (terms[t].calls[n][w] & Bit(p)) mixed.calls[n][w][p] += weight;
        }
      }
    }
    for (size_t e = 0; e < edges_.size(); ++e) {
      for (int m = 0; m < kNumMoves && terms[t].edges[e] != 0; ++m) {
        if (terms[t].edges[e] & Bit(m)) mixed.edges[e][m] += weight;
      }
    }
  }
  return mixed;
}

double RelaxedStep::CallUs(const Mixed& mixed, int call, int choice) const {
  double us = 0;
  for (int w = 0; w < kNumWheres; ++w) {
    const double factor = FactorOf(call, choice, static_cast<Where>(w));
    if (factor == 0) continue;
    for (int p = 0; p < kNumParts; ++p) {
      const float weight = mixed.calls[call][w][p];
      if (weight > 0) us += factor * weight * PartUs(call, choice, static_cast<Part>(p));
    }
  }
  return us;
}

}  // namespace isomer
