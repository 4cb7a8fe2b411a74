// Extraction: the calls of an e-graph that compute a piece's outputs in the least time.
//
// The time of a selection (a call per class) is the sum over the calls that the outputs need, each
// once: shared results and calls of several outputs make this NP-hard, and choosing class by class
// never takes a merged matrix product, whose whole cost each of its users would have to bear.
// TENSAT gives it to an integer program. Here a local search starts from the calls that the piece
// had, whose moves are the rules' applications: one move takes a whole target, however many classes
// that touches. Where no move is better, some random ones are made, and the best selections are
// kept.
//
// A call costs what its best sharding costs (CostTables): what lies between calls is left to the
// mapping of whole candidates.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_EXTRACT_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_EXTRACT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/substitution/egraph.h"
#include "optimizer/substitution/egraph_selection.h"

namespace isomer {

struct ExtractionOptions {
  int kept = 3;       // selections
  int restarts = 20;  // random moves from the best, and descents from there
  uint64_t seed = 1;
};

// Of a call as it is on one device, forward.
double WholeCallUs(const CostModel& cost, const Operator& op,
                   const std::vector<TensorType>& operands);

class Extraction {
 public:
  // `wants_gradient`: classes beside those of weights whose gradient is computed in training.
  Extraction(const EGraph& egraph, const Graph& graph, const std::vector<NodeId>& wants_gradient,
             CostTables* tables);

  // Best first; the first is the cheapest that was found. Never empty: the piece's own calls are a
  // selection. `stop` is asked now and then.
  std::vector<Selection> Run(const ExtractionOptions& options, absl::FunctionRef<bool()> stop);

  // Loaded before the step: costs nothing, however it is computed.
  bool IsStored(ClassId id) const { return stored_[egraph_.Find(id)]; }

 private:
  bool IsLoaded(ENodeId id) const;
  // Of the best sharding; which takes a while on many devices.
  double UsOf(ENodeId id);
  // WholeCallUs: to begin with.
  double WholeUsOf(ENodeId id) const;
  std::vector<ENodeId> Start(const Graph& graph) const;
  void FindMoves();
  // Until no move is better.
  void Descend(absl::FunctionRef<bool()> stop);

  const EGraph& egraph_;
  CostTables& tables_;
  std::vector<bool> stored_, gradient_;  // by canonical class
  std::vector<ENodeId> start_;           // by canonical class
  std::vector<SelectionMove> moves_;
  std::unique_ptr<CountedSelection> selection_;  // where the walk is
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_EGRAPH_EXTRACT_H_
