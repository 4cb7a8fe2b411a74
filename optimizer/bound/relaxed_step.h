// A relaxation of the simulated step: the maximum of sums over calls and edges that must run
// sequentially under any choices.
//
// A step is the longest of the paths through its tasks: forward, the fill of the loss's gradient,
// and backward. A path follows calls and the transfers over their edges. From one call to a later
// one, it may take instead
//
//   compute   the device's compute for the calls between the two, after the one and before the
//             other
//   network   the transfers between them that the device waits for, for each value the slowest edge
//             (a value that several calls need in one form is transferred once)
//
// because devices run compute tasks one by one, in an order consistent with the graph, and
// transfers likewise. Which two calls is a heuristic (relaxed_intervals.cc). In the backward pass a
// path ends with the last synchronisation and update; or, from some call on, with one of
//
//   compute   gradients, also of weights, and updates of all calls before it
//   network   backward transfers, and synchronisation, of all calls before it
//
// or, after the forward pass, with all communication from then on, since updates and
// synchronisation have no fixed order. A path is on the first device, which every choice uses, and
// which waits for transfers if it lacks something (EdgeParts); then, from some call on, anywhere:
// on a device that waits for all transfers, but that only calls on all devices are known to keep
// busy.
//
// A term is such a sum: the parts of each call and edge that count, and on which devices. Every
// term is a lower bound on the step of any assignment of choices; so is their maximum.
#ifndef ISOMER_OPTIMIZER_BOUND_RELAXED_STEP_H_
#define ISOMER_OPTIMIZER_BOUND_RELAXED_STEP_H_

#include <array>
#include <cstdint>
#include <vector>

#include "optimizer/bound/bounded_calls.h"
#include "optimizer/bound/edge_bound.h"
#include "optimizer/mapping/cost_tables.h"

namespace isomer {

class RelaxedStep {
 public:
  // Parts of a call, and of an edge.
  enum Part {
    kForward,
    kGradient,
    kWeights,  // gradients that may be a task of their own (split_gradients.h)
    kUpdate,   // and sums of gradients that no path waits for
    kSync,
    kHaloThere,
    kHaloBack,
    kLast,    // synchronisation and update of the last weight
    kSeed,    // filling in the gradient of the loss
    kOutput,  // gathering outputs; the backward pass does not wait for it
    kBehind,  // where weights are synchronised: a task after the last communication
    kApart,   // additional time of a second message, if all weights are on all devices
    kNumParts
  };
  enum Move { kThere, kBack, kWaitedThere, kWaitedBack, kNumMoves };
  // The device on which a call's part counts: its own; the first; one that all calls on all devices
  // use; the average; the first of the upper half.
  enum Where { kAnywhere, kFirst, kOnAll, kAverage, kUpper, kNumWheres };

  // Number of messages in which the first device synchronises weights: several, or at most one if
  // it synchronises those of trained().
  enum class Messages { kAny, kOne, kSeveral };

  using Bits = uint16_t;
  static constexpr Bits Bit(int part) { return static_cast<Bits>(1 << part); }
  struct Term {
    std::vector<std::array<Bits, kNumWheres>> calls;  // of parts
    std::vector<Bits> edges;                          // of moves
    friend bool operator==(const Term&, const Term&) = default;
  };
  // A mixture of terms.
  struct Mixed {
    std::vector<std::array<std::array<float, kNumParts>, kNumWheres>> calls;
    std::vector<std::array<float, kNumMoves>> edges;
  };
  struct Edge {
    int from, to;
    const EdgeParts* us;
    int value;  // value transferred: equal for all its readers
  };

  // All must outlive this.
  RelaxedStep(const BoundedCalls& calls, EdgeBounds* edge_bounds, CostTables* tables);

  // The first call, other than the last one, that has weights; -1: none.
  int trained() const { return trained_; }
  // Latency of an all-reduce among all devices.
  double message_us() const { return message_us_; }
  int num_calls() const { return static_cast<int>(calls_.parts.size()); }
  const std::vector<Edge>& edges() const { return edges_; }
  // Terms of queues, for any assignment.
  std::vector<Term> QueueTerms() const;
  // The maximal terms of an assignment, one per kind of end.
  std::vector<Term> GreatestTerms(const std::vector<int>& choices,
                                  Messages messages = Messages::kAny) const;
  // The terms of maximal mean over a mixture of assignments with weights `shares`.
  std::vector<Term> GreatestTerms(const std::vector<std::vector<int>>& assignments,
                                  const std::vector<double>& shares,
                                  Messages messages = Messages::kAny) const;
  double Us(const Term& term, const std::vector<int>& choices) const;

  Mixed Mix(const std::vector<Term>& terms, const std::vector<double>& weights) const;
  double CallUs(const Mixed& mixed, int call, int choice) const;

 private:
  // Calls after one call (-1: all) and before another, with the latter, ascending; and the edges to
  // them from there.
  struct Interval {
    int from, to;
    std::vector<int> calls, edges;
    // Calls among these whose weight gradients precede the gradient of `from`: those followed by a
    // contraction in the backward pass (split_gradients.h).
    std::vector<int> weighed;
    bool computes = true, moves = true;  // paths may take its compute, and its transfers
    bool is_between_cuts = false;        // every other call is before or after both
  };
  class Walk;
  // Mean times of each part of a call, and of an edge, over a mixture of assignments.
  struct Means {
    std::vector<std::array<std::array<double, kNumParts>, kNumWheres>> calls;
    std::vector<std::array<double, kNumMoves>> edges;
  };

  void FindEdges(EdgeBounds* edge_bounds);
  void FindOutputs(EdgeBounds* edge_bounds, const CostTables& tables);
  void FindTrained(const CostModel& cost);
  void FindIntervals();
  void FindWeighed(Interval* interval) const;
  bool IsContraction(int call) const;
  std::vector<int> FindBorders(const std::vector<std::vector<bool>>& before,
                               std::vector<bool>* is_cut) const;
  double PartUs(int call, int choice, Part part) const;
  double FactorOf(int call, int choice, Where where) const;
  float EdgeUs(int edge, Move move, const std::vector<int>& choices) const;
  void AddTo(const std::vector<int>& choices, double share, Means* means) const;
  Term Empty() const;

  const BoundedCalls& calls_;
  const bool training_;
  std::vector<Edge> edges_;
  int num_values_ = 0;
  std::vector<std::vector<int>> edges_to_, edges_from_;  // per call
  double seed_us_ = 0;
  double message_us_ = 0;
  int trained_ = -1;
  std::vector<float>
      output_us_;               // per choice of the last call: gathering its outputs on one device
  std::vector<bool> relevant_;  // per call: whether it leads to the last one
  std::vector<Interval> intervals_;
  std::vector<std::vector<int>> intervals_to_, intervals_from_;  // per call
  std::vector<int> beginnings_;  // intervals from the start, which a path may end with
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_RELAXED_STEP_H_
