// What of a step must come one after the other, whatever choices calls take: a relaxation of the
// simulated step that is the maximum of sums over calls and edges.
//
// A step is longest paths through its tasks: forward, where the loss's gradient is filled in, and
// back. A path follows calls and what moves over their edges. From one call to another that comes
// after it, it may take instead
//
//   compute   what the device computes of the calls between the two, those that come after the one
//             and before the other
//   network   what the device waits for that moves between them, of each value the edge that takes
//             longest (a value that several calls need in one form is moved once)
//
// because devices work through tasks one by one, in an order that the graph leads, and through
// moves likewise. Which two calls is a matter of what is worth it (relaxed_intervals.cc). On the
// way back a path ends with the last synchronisation and update; or, from some call on, with one of
//
//   compute   gradients, also of weights, and updates of all calls before it
//   network   what moves back, and synchronisation, of all calls before it
//
// or, when the forward pass is done, with all that is communicated from then on, since updates and
// synchronisation have no order of their own. A path is on the first device, which every choice
// uses, and which waits for what moves if it lacks something (EdgeParts); then, from some call on,
// anywhere: on a device that waits for all that moves, but that only calls on all devices are known
// to keep busy.
//
// A term is such a sum: which parts of each call and edge it counts, and on which devices. Every
// term is a bound from below of the step of any assignment of choices; so is their greatest.
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
    kWeights,  // what of the gradients may be a task of its own (split_gradients.h)
    kUpdate,   // and sums of gradients that no path waits for
    kSync,
    kHaloThere,
    kHaloBack,
    kLast,    // synchronisation and update of a weight that nothing comes behind
    kSeed,    // filling in the gradient of the loss
    kOutput,  // putting outputs together; nothing on the way back waits for it
    kBehind,  // where weights are synchronised: a task behind the last that is communicated
    kApart,   // what a second message takes beyond the first, if all weights are on all devices
    kNumParts
  };
  enum Move { kThere, kBack, kWaitedThere, kWaitedBack, kNumMoves };
  // On which device a call's part counts: where it is, on the first one, on one that all calls on
  // all devices use; on average; on the first device of the upper half.
  enum Where { kAnywhere, kFirst, kOnAll, kAverage, kUpper, kNumWheres };

  // In how many messages the first device synchronises weights: more than one, or, where it does so
  // with those of trained(), in one at most.
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
    int value;  // what is moved: equal for all that read it
  };

  // Everything outlives this.
  RelaxedStep(const BoundedCalls& calls, EdgeBounds* edge_bounds, CostTables* tables);

  // The first call but the last one that has weights; -1: none.
  int trained() const { return trained_; }
  // Of an all-reduce of next to nothing among all devices.
  double message_us() const { return message_us_; }
  int num_calls() const { return static_cast<int>(calls_.parts.size()); }
  const std::vector<Edge>& edges() const { return edges_; }
  // Terms that hold whatever is chosen: of queues.
  std::vector<Term> QueueTerms() const;
  // The greatest terms of an assignment, of each kind of end.
  std::vector<Term> GreatestTerms(const std::vector<int>& choices,
                                  Messages messages = Messages::kAny) const;
  // Of a mixture of assignments, each counted with its share: the terms whose mean is greatest.
  std::vector<Term> GreatestTerms(const std::vector<std::vector<int>>& assignments,
                                  const std::vector<double>& shares,
                                  Messages messages = Messages::kAny) const;
  double Us(const Term& term, const std::vector<int>& choices) const;

  Mixed Mix(const std::vector<Term>& terms, const std::vector<double>& weights) const;
  double CallUs(const Mixed& mixed, int call, int choice) const;

 private:
  // Calls that come after one call (-1: all) and before another, with the latter; ascending. And
  // the edges to them from there.
  struct Interval {
    int from, to;
    std::vector<int> calls, edges;
    // Of the calls, those whose gradients of weights are computed before the gradient of `from`:
    // where a contraction follows on the way back, before which they are (split_gradients.h).
    std::vector<int> weighed;
    bool computes = true, moves = true;  // paths take what is computed there, and what moves
    bool is_between_cuts = false;        // every other call comes before or after both
  };
  class Walk;
  // What each part of a call, and of an edge, takes on average over a mixture of assignments.
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
  std::vector<float> output_us_;  // per choice of the last call: bringing its outputs to one device
  std::vector<bool> relevant_;    // per call, whether the last one comes after it
  std::vector<Interval> intervals_;
  std::vector<std::vector<int>> intervals_to_, intervals_from_;  // per call
  std::vector<int> beginnings_;  // intervals from the beginning, which a path may end with
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_RELAXED_STEP_H_
