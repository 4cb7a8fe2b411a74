// Sums of unary and pairwise functions of calls, each a lower bound on the simulated step: A*
// completes them for its prefixes (prefix_bound.h). Internal to exhaustive.
//
//   path     along the heaviest path of the graph: forward, gradients and the transfers over its
//            edges, with updates, or with synchronisation in place of gradients, or halves of both
//   queues   of a device's compute and communication, several mixtures (lower_bound.h); or all of
//            the forward pass, then such mixtures of the backward pass
//   mixture  the one with the greatest minimum (bound_mixture.h)
//   terms    the maximal ones of the assignment to beat (relaxed_step.h)
#ifndef ISOMER_OPTIMIZER_BOUND_STEP_SUMS_H_
#define ISOMER_OPTIMIZER_BOUND_STEP_SUMS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/bound/bounded_calls.h"
#include "optimizer/bound/choice_parts.h"
#include "optimizer/bound/edge_bound.h"
#include "optimizer/bound/prefix_bound.h"
#include "optimizer/bound/relaxed_step.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/ir/graph.h"

namespace isomer {

class StepSums {
 public:
  // `compute`: the calls of `graph`, in the order of prefixes. Nodes with one name among
  // `operators` are one operator, within which nothing is resharded. All must outlive this. `loss`:
  // the model output that is the loss.
  StepSums(const Graph& graph, const std::string& loss, const ComputeGraph& compute,
           const std::map<NodeId, std::string>& operators, CostTables* tables);
  StepSums(const StepSums&) = delete;

  // Finds the choices on `devices` devices, all of them in use; sets the options of the tables, as
  // BoundedGraph does. Errors: a call does not type-check.
  absl::Status FindCalls(int64_t devices);
  const std::vector<const CallTables*>& calls() const { return calls_; }
  double CountAssignments() const;

  // Builds the sums. `to_beat`: an assignment, in the order of prefixes, whose step is `enough_us`.
  // REQUIRES: FindCalls().
  void Make(const std::vector<int>& to_beat, double enough_us);
  const std::vector<std::unique_ptr<PrefixBound>>& bounds() const { return bounds_; }
  // Whether choice `choice` of the call would reshard within an operator.
  bool MovesWithinOperator(int call, int choice, const std::vector<int>& choices) const;

 private:
  // An edge to a call from another of the same operator, with its transfer times.
  struct InnerEdge {
    int producer;
    const CostTable* us;
  };

  const std::string& OperatorOf(int call) const;
  void FindInnerEdges();
  double CountFrom(size_t at, const std::vector<int>& calls, std::vector<int>* choices) const;
  std::vector<bool> HeaviestPath() const;
  void AddPath(double part, const std::vector<bool>& on_path);
  void AddQueues(double part, bool after_forward);
  void AddRelaxed(const std::vector<int>& to_beat, double enough_us);
  void AddMixed(const RelaxedStep& step, const RelaxedStep::Mixed& mixed);
  void AddEdge(size_t call, int producer, double weight, bool way_back, PairwiseProblem* problem);
  const CostTable* Keep(CostTable table);
  void Finish(PairwiseProblem problem);

  const ComputeGraph& compute_;
  const std::map<NodeId, std::string>& operators_;
  CostTables& tables_;
  EdgeBounds edges_;
  BoundedGraph bounded_;        // calls in the order of the graph
  BoundedCalls bounded_calls_;  // likewise
  std::vector<int> place_;      // per call of these: its place in the order of prefixes
  std::vector<const CallTables*> calls_;
  std::vector<const std::vector<ChoiceParts>*> parts_;
  std::vector<std::vector<InnerEdge>> inner_;  // per call
  std::vector<std::unique_ptr<CostTable>> kept_;
  std::vector<std::unique_ptr<PrefixBound>> bounds_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_BOUND_STEP_SUMS_H_
