// Finds the maximal terms of an assignment, or of a mixture (relaxed_step.h).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "optimizer/bound/relaxed_step.h"

namespace isomer {
// Longest paths through calls, forward and backward, on the first device and anywhere.
class RelaxedStep::Walk {
 public:
  Walk(const RelaxedStep& step, const Means& means, Messages messages)
      : step_(step),
        means_(means),
        messages_(messages),
        num_calls_(step.num_calls()),
        us_(4 * means.calls.size(), kNever),
        arcs_(4 * means.calls.size()) {}

  std::vector<Term> Greatest() {
    Forward();
    const int end = step_.calls_.end;
    const State first = {false, true, end}, anywhere = {false, false, end};
    if (!step_.training_) {
      const double first_us = us_[At(first)] + TurnUs(kFirst);
      const double any_us = us_[At(anywhere)] + TurnUs(kAnywhere);
      Term term = first_us >= any_us ? TermOf(first) : TermOf(anywhere);
      term.calls[end][first_us >= any_us ? kFirst : kAnywhere] |= Bit(TurnPart());
      return {std::move(term)};
    }
    Reach({true, true, end}, {first, Arc::kTurn},
          us_[At(first)] + TurnUs(kFirst) + OwnUs(end, true, kFirst));
    for (const State& from : {first, anywhere}) {
      Reach({true, false, end}, {from, Arc::kTurn},
            us_[At(from)] + TurnUs(kAnywhere) + OwnUs(end, true, kAnywhere));
    }
    Back();
    std::vector<Term> terms = {EndingWithPath(), EndingWith(kUpdate), EndingWith(kSync),
                               EndingBehindForward()};
    if (messages_ == Messages::kOne) terms.push_back(EndingWithOneMessage());
    return terms;
  }

 private:
  static constexpr double kNever = -1e30;
  // The end of a call, forward or backward, on the first device or anywhere.
  struct State {
    bool back, on_first;
    int call;
  };
  // A transition between states: an edge (also of the backward pass), the turn at the loss, or an
  // interval's compute or transfers.
  struct Arc {
    State from = {false, false, -1};
    enum Kind { kStart, kEdge, kTurn, kCompute, kNetwork } kind = kStart;
    int edge = -1;  // or the interval's index
  };

  size_t At(const State& s) const {
    return (s.back * 2 + s.on_first) * means_.calls.size() + static_cast<size_t>(s.call);
  }
  double PartUs(int call, Part part, Where where) const { return means_.calls[call][where][part]; }
  double EdgeUs(int e, Move move) const { return means_.edges[e][move]; }
  // After the forward pass: gathering outputs, or filling the loss's gradient.
  Part TurnPart() const { return step_.training_ ? kSeed : kOutput; }
  double TurnUs(Where where) const { return PartUs(step_.calls_.end, TurnPart(), where); }
  // Time of a call on a path.
  double OwnUs(int call, bool back, Where where) const {
    return PartUs(call, back ? kGradient : kForward, where) +
           PartUs(call, back ? kHaloBack : kHaloThere, where);
  }
  static Move MoveOf(bool back, bool on_first) {
    if (on_first) return back ? kWaitedBack : kWaitedThere;
    return back ? kBack : kThere;
  }

  void Reach(const State& state, const Arc& arc, double us) {
    if (us <= us_[At(state)]) return;
    us_[At(state)] = us;
    arcs_[At(state)] = arc;
  }

  void Forward() {
    for (int call = 0; call < num_calls_; ++call) {
      if (!step_.relevant_[call]) continue;
      for (bool on_first : {true, false}) {
        Reach({false, on_first, call}, Arc(), OwnUs(call, false, on_first ? kFirst : kAnywhere));
      }
      for (int e : step_.edges_to_[call]) PassEdge(e, step_.edges_[e].from, call, false);
      for (int interval : step_.intervals_to_[call]) PassInterval(interval, false);
    }
  }

  void Back() {
    for (int call = num_calls_; call-- > 0;) {
      if (!step_.relevant_[call]) continue;
      for (int e : step_.edges_from_[call]) {
        const int to = step_.edges_[e].to;
        if (step_.relevant_[to]) PassEdge(e, to, call, true);
      }
      for (int interval : step_.intervals_from_[call]) PassInterval(interval, true);
    }
  }

  void PassEdge(int e, int from, int to, bool back) {
    const double on_first = us_[At({back, true, from})], anywhere = us_[At({back, false, from})];
    Reach({back, true, to}, {{back, true, from}, Arc::kEdge, e},
          on_first + EdgeUs(e, MoveOf(back, true)) + OwnUs(to, back, kFirst));
    const double us = EdgeUs(e, MoveOf(back, false)) + OwnUs(to, back, kAnywhere);
    Reach({back, false, to}, {{back, true, from}, Arc::kEdge, e}, on_first + us);
    Reach({back, false, to}, {{back, false, from}, Arc::kEdge, e}, anywhere + us);
  }

  void PassInterval(int i, bool back) {
    const Interval& interval = step_.intervals_[i];
    const int from = back ? interval.to : interval.from, to = back ? interval.from : interval.to;
    const Part part = back ? kGradient : kForward;
    for (Where where : {kFirst, kOnAll}) {
      if (!interval.computes || (where == kOnAll && !interval.is_between_cuts)) continue;
      const bool on_first = where == kFirst;
      double us = 0;
      for (int call : interval.calls) us += PartUs(call, part, where);
      us += PartUs(to, part, where) - PartUs(interval.to, part, where);
      for (int call : WeighedOn(interval, back)) us += PartUs(call, kWeights, where);
      const State state = {back, on_first, from};
      Reach({back, on_first, to}, {state, Arc::kCompute, i}, UsOf(state) + us);
    }
    if (!interval.moves) return;
    const State state = {back, true, from};
    const double us = NetworkUs(interval, back) + PartUs(to, part, kFirst);
    Reach({back, true, to}, {state, Arc::kNetwork, i}, UsOf(state) + us);
  }

  static absl::Span<const int> WeighedOn(const Interval& interval, bool back) {
    return back ? absl::MakeConstSpan(interval.weighed) : absl::Span<const int>();
  }

  double UsOf(const State& state) const { return state.call < 0 ? 0 : us_[At(state)]; }

  double NetworkUs(const Interval& interval, bool back) const {
    double us = 0;
    for (int call : interval.calls) us += PartUs(call, back ? kHaloBack : kHaloThere, kFirst);
    const Move move = MoveOf(back, true);
    for (int e : Moved(interval, move)) us += EdgeUs(e, move);
    return us;
  }

  // The slowest edge of each value: one form of it is transferred once for several calls.
  std::vector<int> Moved(const Interval& interval, Move move) const {
    std::vector<int>& longest = longest_;
    longest.assign(step_.num_values_, -1);
    for (int e : interval.edges) {
      int& best = longest[step_.edges_[e].value];
      if (best < 0 || EdgeUs(e, move) > EdgeUs(best, move)) best = e;
    }
    std::vector<int> moved;
    for (int e : longest) {
      if (e >= 0 && EdgeUs(e, move) > 0) moved.push_back(e);
    }
    return moved;
  }

  // All that remains after the gradient of the last call of `interval`, which is from the start:
  // gradients and updates, or transfers.
  double RestUs(const Interval& interval, Part queue, bool on_first) const {
    const Where where = on_first ? kFirst : kOnAll;
    double us = 0;
    for (int call : interval.calls) {
      us += PartUs(call, queue, where);
      if (queue == kUpdate) us += PartUs(call, kWeights, where);
      if (queue == kUpdate && call != interval.to) us += PartUs(call, kGradient, where);
      if (queue == kSync && on_first) us += PartUs(call, kHaloBack, where);
    }
    if (queue != kSync || !on_first) return us;
    for (int e : Moved(interval, RestMove())) us += EdgeUs(e, RestMove());
    return us;
  }
  // Sending keeps the first device busy, too, if it takes part in all transfers.
  Move RestMove() const { return step_.calls_.beside ? kWaitedBack : kBack; }

  Term EndingWith(Part queue) const {
    double best_us = kNever;
    State best = {true, true, -1};
    const Interval* rest = nullptr;
    for (int beginning : step_.beginnings_) {
      const Interval& interval = step_.intervals_[beginning];
      for (bool on_first : {true, false}) {
        const State state = {true, on_first, interval.to};
        const double us = us_[At(state)] + RestUs(interval, queue, on_first);
        if (us <= best_us) continue;
        best_us = us;
        best = state;
        rest = &interval;
      }
    }
    Term term = TermOf(best);
    const Where where = best.on_first ? kFirst : kOnAll;
    for (int call : rest->calls) {
      Bits& bits = term.calls[call][where];
      bits |= Bit(queue);
      if (queue == kUpdate) bits |= Bit(kWeights);
      if (queue == kUpdate && call != best.call) bits |= Bit(kGradient);
      if (queue == kSync && best.on_first && call != best.call) bits |= Bit(kHaloBack);
    }
    if (queue != kSync || !best.on_first) return term;
    for (int e : Moved(*rest, RestMove())) term.edges[e] |= Bit(RestMove());
    return term;
  }

  // All communication of the first device after the forward pass, and one task after that: the loss
  // is gathered before weights are synchronised, and updates follow.
  Term EndingBehindForward() const {
    const int end = step_.calls_.end;
    Term term = TermOf({false, true, end});
    for (int call = 0; call < num_calls_; ++call) {
      if (!step_.relevant_[call]) continue;
      term.calls[call][kFirst] |= Bit(kSync) | Bit(kHaloBack);
      if (messages_ == Messages::kSeveral) term.calls[call][kFirst] |= Bit(kApart);
    }
    term.calls[end][kFirst] |= Bit(kOutput);
    if (step_.trained_ >= 0) term.calls[step_.trained_][kFirst] |= Bit(kBehind);
    for (int beginning : step_.beginnings_) {
      const Interval& interval = step_.intervals_[beginning];
      if (interval.to != end) continue;
      for (int e : Moved(interval, RestMove())) term.edges[e] |= Bit(RestMove());
    }
    return term;
  }

  // A single message, which waits for the gradients of the first call's weights.
  Term EndingWithOneMessage() const {
    Term term = TermOf({true, true, step_.trained_});
    for (int call = 0; call < num_calls_; ++call) {
      if (step_.relevant_[call]) term.calls[call][kFirst] |= Bit(kSync);
    }
    term.calls[step_.trained_][kFirst] |= Bit(kBehind);
    return term;
  }

  // The path with the last synchronisation and update.
  Term EndingWithPath() const {
    double best_us = kNever;
    State best = {true, true, step_.calls_.end};
    for (int call = 0; call < num_calls_; ++call) {
      for (bool on_first : {true, false}) {
        const State state = {true, on_first, call};
        const double us = us_[At(state)] + PartUs(call, kLast, on_first ? kFirst : kAnywhere);
        if (us <= best_us) continue;
        best_us = us;
        best = state;
      }
    }
    Term term = TermOf(best);
    term.calls[best.call][best.on_first ? kFirst : kAnywhere] |= Bit(kLast);
    return term;
  }

  Term TermOf(State state) const {
    Term term = step_.Empty();
    while (state.call >= 0) {
      const Arc& arc = arcs_[At(state)];
      const Where where = state.on_first ? kFirst : kAnywhere;
      const Part part = state.back ? kGradient : kForward;
      const Part halo = state.back ? kHaloBack : kHaloThere;
      switch (arc.kind) {
        case Arc::kEdge:
          term.edges[arc.edge] |= Bit(MoveOf(state.back, state.on_first));
          [[fallthrough]];
        case Arc::kTurn:
        case Arc::kStart:
          term.calls[state.call][where] |= Bit(part) | Bit(halo);
          if (arc.kind == Arc::kTurn) term.calls[state.call][where] |= Bit(TurnPart());
          break;
        case Arc::kCompute:
          for (int call : step_.intervals_[arc.edge].calls) {
            if (!state.back || call != arc.from.call) {
              term.calls[call][state.on_first ? kFirst : kOnAll] |= Bit(part);
            }
          }
          for (int call : WeighedOn(step_.intervals_[arc.edge], state.back)) {
            term.calls[call][state.on_first ? kFirst : kOnAll] |= Bit(kWeights);
          }
          term.calls[state.call][state.on_first ? kFirst : kOnAll] |= Bit(part);
          break;
        case Arc::kNetwork: {
          const Interval& interval = step_.intervals_[arc.edge];
          for (int call : interval.calls) term.calls[call][kFirst] |= Bit(halo);
          for (int e : Moved(interval, MoveOf(state.back, true))) {
            term.edges[e] |= Bit(MoveOf(state.back, true));
          }
          term.calls[state.call][kFirst] |= Bit(part);
          break;
        }
      }
      state = arc.from;
    }
    return term;
  }

  const RelaxedStep& step_;
  const Means& means_;
  const Messages messages_;
  const int num_calls_;
  std::vector<double> us_;  // per state
  std::vector<Arc> arcs_;   // per state: the arc that reaches it
  mutable std::vector<int> longest_;
};

void RelaxedStep::AddTo(const std::vector<int>& choices, double share, Means* means) const {
  for (int n = 0; n < num_calls(); ++n) {
    for (int w = 0; w < kNumWheres; ++w) {
      const double factor = share * FactorOf(n, choices[n], static_cast<Where>(w));
      for (int p = 0; p < kNumParts && factor > 0; ++p) {
        means->calls[n][w][p] += factor * PartUs(n, choices[n], static_cast<Part>(p));
      }
    }
  }
  for (size_t e = 0; e < edges_.size(); ++e) {
    for (int m = 0; m < kNumMoves; ++m) {
      means->edges[e][m] += share * EdgeUs(static_cast<int>(e), static_cast<Move>(m), choices);
    }
  }
}

std::vector<RelaxedStep::Term> RelaxedStep::GreatestTerms(
    const std::vector<std::vector<int>>& assignments, const std::vector<double>& shares,
    Messages messages) const {
  Means means;
  means.calls.resize(num_calls());
  for (auto& call : means.calls) {
    for (auto& where : call) where.fill(0);
  }
  means.edges.resize(edges_.size());
  for (auto& edge : means.edges) edge.fill(0);
  for (size_t a = 0; a < assignments.size(); ++a) {
    if (shares[a] > 0) AddTo(assignments[a], shares[a], &means);
  }
  return Walk(*this, means, messages).Greatest();
}

std::vector<RelaxedStep::Term> RelaxedStep::GreatestTerms(const std::vector<int>& choices,
                                                          Messages messages) const {
  return GreatestTerms(std::vector<std::vector<int>>{choices}, {1}, messages);
}

}  // namespace isomer
