// Extraction: the calls of an e-graph that compute a piece's outputs in the least time.
//
// The time of a selection (one call per class) is the sum over the calls that the outputs need,
// each once: shared results and calls of several outputs make this NP-hard, and greedy choice per
// class never takes a merged matrix product, whose full cost each of its users would have to bear.
// TENSAT solves an integer program. Here a local search starts from the piece's own calls; its
// moves are the rules' applications: a move takes a full target pattern, however many classes that
// touches. At a local optimum it makes some random moves; the best selections are kept.
//
// A call costs as much as its best sharding (CostTables); resharding between calls is left to the
// mapping of the candidates.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_EXTRACT_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_EXTRACT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/substitution/egraph_selection.h"
#include "rules/equality/egraph.h"

namespace isomer {

struct ExtractionOptions {
  int kept = 3;       // selections
  int restarts = 20;  // random perturbations of the best, each followed by a descent
  uint64_t seed = 1;
};

// Forward time of the unsplit call on one device.
double WholeCallUs(const CostModel& cost, const Operator& op,
                   const std::vector<TensorType>& operands);

class Extraction {
 public:
  // `wants_gradient`: nodes, besides weights, whose gradient is computed in training.
  Extraction(const EGraph& egraph, const Graph& graph, const std::vector<NodeId>& wants_gradient,
             CostTables* tables);

  // Selections, cheapest first. Never empty: the piece's own calls are a selection. `stop` is
  // polled.
  std::vector<Selection> Run(const ExtractionOptions& options, absl::FunctionRef<bool()> stop);

  // Whether the class is loaded before the step, and so free, however it is computed.
  bool IsStored(ClassId id) const { return stored_[egraph_.Find(id)]; }

 private:
  bool IsLoaded(ENodeId id) const;
  // Time of the best sharding; slow on many devices.
  double UsOf(ENodeId id);
  // WholeCallUs, a first estimate.
  double WholeUsOf(ENodeId id) const;
  std::vector<ENodeId> Start(const Graph& graph) const;
  void FindMoves();
  // Makes improving moves until there are none.
  void Descend(absl::FunctionRef<bool()> stop);

  const EGraph& egraph_;
  CostTables& tables_;
  std::vector<bool> stored_, gradient_;  // by canonical class
  std::vector<ENodeId> start_;           // by canonical class
  std::vector<SelectionMove> moves_;
  std::unique_ptr<CountedSelection> selection_;  // the current selection
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_EXTRACT_H_
