// The greatest terms of an assignment (relaxed_step.h).
#include <algorithm>
#include <utility>
#include <vector>

#include "optimizer/relaxed_step.h"

namespace isomer {
namespace {

// Whose moves are looked at together.
constexpr int kMostSegments = 4;

}  // namespace

// The greatest terms of one assignment: longest paths through calls, forward and back, on the first
// device and anywhere.
class RelaxedStep::Walk {
 public:
  Walk(const RelaxedStep& step, const std::vector<int>& choices)
      : step_(step),
        choices_(choices),
        num_calls_(step.num_calls()),
        us_(4 * choices.size(), kNever),
        arcs_(4 * choices.size()) {}

  std::vector<Term> Greatest() {
    Forward();
    const int end = step_.calls_.end;
    const State first = {false, true, end}, anywhere = {false, false, end};
    if (!step_.training_) {
      const double first_us = us_[At(first)] + OutputUs(kFirst);
      const double any_us = us_[At(anywhere)] + OutputUs(kAnywhere);
      Term term = first_us >= any_us ? TermOf(first) : TermOf(anywhere);
      term.calls[end][first_us >= any_us ? kFirst : kAnywhere] |= Bit(kOutput);
      return {std::move(term)};
    }
    Reach({true, true, end}, {first, Arc::kTurn},
          us_[At(first)] + OutputUs(kFirst) + OwnUs(end, true, kFirst));
    for (const State& from : {first, anywhere}) {
      Reach({true, false, end}, {from, Arc::kTurn},
            us_[At(from)] + OutputUs(kAnywhere) + OwnUs(end, true, kAnywhere));
    }
    Back();
    return {EndingWithPath(), EndingWith(kUpdate), EndingWith(kSync)};
  }

 private:
  static constexpr double kNever = -1e30;
  // When a call is done, forward or back, on the first device or anywhere.
  struct State {
    bool back, on_first;
    int call;
  };
  // From a state to another: an edge (also of the way back), a turn from the loss, or from cut to
  // cut: what is computed, or moved.
  struct Arc {
    State from = {false, false, -1};
    enum Kind { kStart, kEdge, kTurn, kCompute, kNetwork } kind = kStart;
    int edge = -1;  // or the first segment, and the last
    int last = -1;
  };

  size_t At(const State& s) const {
    return (s.back * 2 + s.on_first) * choices_.size() + static_cast<size_t>(s.call);
  }
  double PartUs(int call, Part part, Where where) const {
    return step_.FactorOf(call, choices_[call], where) * step_.PartUs(call, choices_[call], part);
  }
  double EdgeUs(int e, Move move) const { return step_.EdgeUs(e, move, choices_); }
  double OutputUs(Where where) const { return PartUs(step_.calls_.end, kOutput, where); }
  // Of a call on a path.
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
      if (step_.segment_to_[call] >= 0) PassSegments(step_.segment_to_[call], false);
    }
  }

  void Back() {
    for (int call = num_calls_; call-- > 0;) {
      if (!step_.relevant_[call]) continue;
      for (int e : step_.edges_from_[call]) {
        const int to = step_.edges_[e].to;
        if (step_.relevant_[to]) PassEdge(e, to, call, true);
      }
      const int segment = step_.segment_to_[call] + 1;
      if (segment > 0 && segment < static_cast<int>(step_.segments_.size())) {
        PassSegments(segment, true);
      }
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

  // Over segment `s` from cut to cut; what moves, over it and some that come before.
  void PassSegments(int s, bool back) {
    const int behind = step_.segments_[s].last, before = CutBefore(s);
    const int from = back ? behind : before, to = back ? before : behind;
    const Part part = back ? kGradient : kForward;
    for (Where where : {kFirst, kOnAll}) {
      const bool on_first = where == kFirst;
      double us = 0;
      for (int call : step_.segments_[s].calls) us += PartUs(call, part, where);
      us += PartUs(to, part, where) - PartUs(back ? behind : to, part, where);
      const State state = {back, on_first, from};
      Reach({back, on_first, to}, {state, Arc::kCompute, s, s}, UsOf(state) + us);
    }
    // Back, `to` is where the first of them begins; forward, where the last ends.
    const int count = static_cast<int>(step_.segments_.size());
    for (int k = 0; k < kMostSegments; ++k) {
      const int first = back ? s : s - k, last = back ? s + k : s;
      if (first < 0 || last >= count) break;
      const int begin = CutBefore(first), end = step_.segments_[last].last;
      const State state = {back, true, back ? end : begin};
      const double us = NetworkUs(first, last, back) + PartUs(to, part, kFirst);
      Reach({back, true, to}, {state, Arc::kNetwork, first, last}, UsOf(state) + us);
    }
  }

  // Before the first segment there is none.
  int CutBefore(int s) const { return s == 0 ? -1 : step_.segments_[s - 1].last; }
  double UsOf(const State& state) const { return state.call < 0 ? 0 : us_[At(state)]; }

  double NetworkUs(int first, int last, bool back) const {
    double us = 0;
    for (int s = first; s <= last; ++s) {
      for (int call : step_.segments_[s].calls) {
        us += PartUs(call, back ? kHaloBack : kHaloThere, kFirst);
      }
    }
    const Move move = MoveOf(back, true);
    for (int e : Moved(first, last, move)) us += EdgeUs(e, move);
    return us;
  }

  // To calls of these segments from these or the cut before them: of each value, the one that takes
  // longest. What several calls need of it in one form is brought there once.
  std::vector<int> Moved(int first, int last, Move move, bool from_anywhere = false) const {
    std::vector<int>& longest = longest_;
    longest.assign(step_.num_values_, -1);
    for (int s = first; s <= last; ++s) {
      for (int e : step_.segments_[s].edges) {
        const Edge& edge = step_.edges_[e];
        if (!from_anywhere && step_.segment_of_[edge.from] < first &&
            (first == 0 || edge.from != step_.segments_[first - 1].last)) {
          continue;
        }
        int& best = longest[edge.value];
        if (best < 0 || EdgeUs(e, move) > EdgeUs(best, move)) best = e;
      }
    }
    std::vector<int> moved;
    for (int e : longest) {
      if (e >= 0 && EdgeUs(e, move) > 0) moved.push_back(e);
    }
    return moved;
  }

  // All that is left behind the gradient of cut `s`: gradients and updates, or what moves.
  double RestUs(int s, Part queue, bool on_first) const {
    const Where where = on_first ? kFirst : kOnAll;
    const int cut = step_.segments_[s].last;
    double us = 0;
    for (int i = 0; i <= s; ++i) {
      for (int call : step_.segments_[i].calls) {
        us += PartUs(call, queue, where);
        if (queue == kUpdate && call != cut) us += PartUs(call, kGradient, where);
        if (queue == kSync && on_first) us += PartUs(call, kHaloBack, where);
      }
    }
    if (queue != kSync || !on_first) return us;
    for (int e : Moved(0, s, RestMove(), true)) us += EdgeUs(e, RestMove());
    return us;
  }
  // What the first device sends keeps it busy, too, if it takes part in all that moves.
  Move RestMove() const { return step_.calls_.beside ? kWaitedBack : kBack; }

  Term EndingWith(Part queue) const {
    double best_us = kNever;
    State best = {true, true, step_.calls_.end};
    for (int s = 0; s < static_cast<int>(step_.segments_.size()); ++s) {
      for (bool on_first : {true, false}) {
        const State state = {true, on_first, step_.segments_[s].last};
        const double us = us_[At(state)] + RestUs(s, queue, on_first);
        if (us <= best_us) continue;
        best_us = us;
        best = state;
      }
    }
    Term term = TermOf(best);
    const Where where = best.on_first ? kFirst : kOnAll;
    const int last = step_.segment_to_[best.call];
    for (int s = 0; s <= last; ++s) {
      for (int call : step_.segments_[s].calls) {
        uint8_t& bits = term.calls[call][where];
        bits |= Bit(queue);
        if (queue == kUpdate && call != best.call) bits |= Bit(kGradient);
        if (queue == kSync && best.on_first && call != best.call) bits |= Bit(kHaloBack);
      }
    }
    if (queue != kSync || !best.on_first) return term;
    for (int e : Moved(0, last, RestMove(), true)) term.edges[e] |= Bit(RestMove());
    return term;
  }

  // And the last synchronisation and update.
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
          if (arc.kind == Arc::kTurn) term.calls[state.call][where] |= Bit(kOutput);
          break;
        case Arc::kCompute:
          for (int call : step_.segments_[arc.edge].calls) {
            if (!state.back || call != arc.from.call) {
              term.calls[call][state.on_first ? kFirst : kOnAll] |= Bit(part);
            }
          }
          term.calls[state.call][state.on_first ? kFirst : kOnAll] |= Bit(part);
          break;
        case Arc::kNetwork:
          for (int s = arc.edge; s <= arc.last; ++s) {
            for (int call : step_.segments_[s].calls) term.calls[call][kFirst] |= Bit(halo);
          }
          for (int e : Moved(arc.edge, arc.last, MoveOf(state.back, true))) {
            term.edges[e] |= Bit(MoveOf(state.back, true));
          }
          term.calls[state.call][kFirst] |= Bit(part);
          break;
      }
      state = arc.from;
    }
    return term;
  }

  const RelaxedStep& step_;
  const std::vector<int>& choices_;
  const int num_calls_;
  std::vector<double> us_;  // per state
  std::vector<Arc> arcs_;   // that it is reached by
  mutable std::vector<int> longest_;
};

std::vector<RelaxedStep::Term> RelaxedStep::GreatestTerms(const std::vector<int>& choices) const {
  return Walk(*this, choices).Greatest();
}

}  // namespace isomer
