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
#ifndef ISOMER_OPTIMIZER_EGRAPH_EXTRACT_H_
#define ISOMER_OPTIMIZER_EGRAPH_EXTRACT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "optimizer/cost_tables.h"
#include "optimizer/egraph.h"

namespace isomer {

struct ExtractionOptions {
  int kept = 3;       // selections
  int restarts = 20;  // random moves from the best, and descents from there
  uint64_t seed = 1;
};

// A call per class; -1 for classes that no selection needs.
struct Selection {
  std::vector<ENodeId> calls;  // by canonical class
  double us = 0;
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
  using Move = std::vector<std::pair<ClassId, ENodeId>>;

  bool IsLoaded(ENodeId id) const;
  // Of the best sharding; found when it is asked for, since that takes a while on many devices.
  double UsOf(ENodeId id);
  // WholeCallUs: to begin with.
  double WholeUsOf(ENodeId id) const;
  Selection Start(const Graph& graph) const;
  void FindMoves();
  // Over all that the outputs need; kImpossibleUs if a call needs itself.
  double Evaluate(const std::vector<ENodeId>& calls);
  // What the selection that was evaluated last needs is what moves are made at.
  void NoteNeeded();
  bool Make(const Move& move, std::vector<ENodeId>* calls) const;
  void Descend(Selection* selection, absl::FunctionRef<bool()> stop);

  const EGraph& egraph_;
  CostTables& tables_;
  std::vector<ClassId> outputs_;
  Selection start_;
  std::vector<bool> stored_, gradient_;  // by canonical class
  std::vector<double> us_;               // by call; -1: not asked for yet
  std::vector<Move> moves_;
  std::vector<bool> needed_;  // by canonical class
  // Of the last Evaluate: classes that were visited; calls in progress, and done.
  std::vector<int32_t> stamp_, call_stamp_;
  int32_t now_ = 0;
  std::vector<std::pair<ENodeId, size_t>> stack_;  // of Evaluate, kept for its memory
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_EGRAPH_EXTRACT_H_
