// A graph of cost tables under reduction, with the records to trace choices back.
//
// A composite is an edge that stands for the subgraph reduced into it. Its tables, one per share of
// the machine that the inner nodes may keep to, are made lazily. The table of a share has rows and
// columns for the choices that its ends may have: those of that share, or of one that contains it
// (a fork on the full machine before a branch on half).
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_REDUCTION_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_REDUCTION_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

// [node][share]: microseconds that every choice takes at least on each device of that share.
using MappingResources = std::vector<std::vector<float>>;

class MappingReduction {
 public:
  // The problem's edge tables and the memo must outlive this. With `resources`, branches on one
  // share overlap: together they cost the maximum of the one, the other and the resources of both,
  // a lower bound (lower_bound.h). `concurrent_branches`: branches that only meet may run on
  // separate shares (mapping_branches.h).
  MappingReduction(const MappingProblem& problem, MappingMemo* memo,
                   const MappingResources* resources = nullptr, bool concurrent_branches = false);

  // Applies series, parallel and fold reductions until none applies.
  void Reduce();
  // Relaxes a core node with one terminal as its only predecessor: it may take a different choice
  // for each composite that leaves it. Its time counts on all paths, its resources once.
  void Relax(int node);
  // Removes a node's choices on shares of the machine.
  void KeepToWhole(int node);
  // Fixes a node to a choice on the full machine.
  void Fix(int node, int choice);
  // Makes the tables of what is left now, for all copies.
  void MakeTables() const;
  // The table over the terminals. REQUIRES: reduced, and Core() is empty.
  CostTable Table() const;
  // A choice for every node, given those of the terminals. REQUIRES: as above.
  std::vector<int> Choices(int first, int second) const;

  // Inner nodes that did not reduce, ascending.
  std::vector<int> Core() const;
  int Degree(int node) const { return static_cast<int>(live_[node].size()); }
  // The choice of a core node with the least time if each neighbour answers with its best.
  int Promising(int node) const;
  // A core node's choices on the full machine; below, their own times, and the composites between
  // core nodes.
  const std::vector<int>& WholeChoices(int node) const { return ChoicesOf(node, 0); }
  float NodeUs(int node, int choice) const { return nodes_[node].us[choice]; }
  struct CoreEdge {
    int a, b;
    const CostTable* table;  // over WholeChoices(a) and WholeChoices(b)
  };
  std::vector<CoreEdge> CoreEdges() const;
  const std::vector<int>& terminals() const { return terminals_; }
  // Total microseconds of nodes without neighbours.
  float IsolatedUs() const;

 private:
  using TablePointer = std::shared_ptr<const CostTable>;

  // Per share: its choices, and the choices visible to a branch on it: those of shares that contain
  // it, then its own.
  struct NodeChoices {
    std::vector<std::vector<int>> own, visible;
  };
  struct NodeState {
    std::vector<float> us;         // including folded neighbours
    std::vector<float> resources;  // per share; empty: costs add up
    uint64_t shares_key = 0;
    bool gone = false;
    // Folds of branches that end here, which may run concurrently.
    std::vector<int> branches;
    std::vector<float> own_us;  // `us` without branches; empty
  };
  struct Composite {
    int a = -1, b = -1;  // rows are choices of a, columns of b
    // The end that data comes from; -1: neither, as it was reduced over a fork or a join and so is
    // no branch that could run concurrently with another.
    int from = -1;
    // Series: inner node and two parts (one at a, one at b); parallel: two parts; an edge: neither.
    int inner = -1;
    int left = -1, right = -1;
    const CostTable* edge = nullptr;
    uint64_t key = 0;
    std::vector<TablePointer> tables;  // per share
    std::vector<float> resources;      // per share, of all inner nodes
  };
  // Nodes folded into a neighbour (or into nothing: -1), in order of folding. Node -1: a composite
  // one end of which was fixed.
  struct Fold {
    int node, neighbour, composite;
    // Per share: the least time for each choice of the neighbour that is visible there; empty if
    // the branch cannot keep to the share.
    std::vector<std::vector<float>> us = {};
  };

  NodeChoices ChoicesByShare(const MappingProblem::MappingNode& node) const;
  int AddComposite(Composite composite);
  void RemoveLive(int composite);
  bool IsTerminal(int node) const;
  int NumShares() const { return static_cast<int>(contains_.size()); }
  const std::vector<int>& ChoicesOf(int node, int share) const {
    return (*choices_)[node].own[share];
  }
  const std::vector<int>& Visible(int node, int share) const {
    return (*choices_)[node].visible[share];
  }
  // Index of the share's own choices in Visible().
  int OwnBegin(int node, int share) const {
    return static_cast<int>(Visible(node, share).size() - ChoicesOf(node, share).size());
  }
  int ShareOf(int node, int choice) const;
  // The share that a fold's node keeps to, where its neighbour has that choice.
  int ShareOfFold(const Fold& fold, int choice) const;
  uint64_t NodeKey(int node) const;
  uint64_t EndsKey(int a, int b) const;

  bool ReduceNode(int m, bool any);
  void Series(int m, int left, int right);
  Composite Joined(int m, int left, int right) const;
  void FoldInto(int node, int composite);
  // Per choice of the composite's other end that is visible in the share: the node's best answer.
  std::vector<float> AnswersIn(int share, int node, int composite) const;
  // Time of the branches folded into the node under this choice; sets the share that each keeps to.
  float BranchesUs(int node, int choice, std::vector<int>* shares) const;
  void AddUs(int node, int choice, float us);
  // Index of the choice in Visible().
  int PlaceIn(int node, int choice, int share) const;
  int DirectedSource(int m, int left, int right) const;
  // Whether both composites have operators, so that they may run concurrently.
  bool RunBeside(int left, int right) const;

  const CostTable& Us(int composite, int share) const;
  // Towards(c, node): its table with `node`'s choices as columns.
  TablePointer Towards(int composite, int node, int share) const;
  TablePointer MakeTable(int composite, int share) const;
  TablePointer EdgeTable(const Composite& c, int share) const;
  TablePointer SeriesTable(const Composite& c, int share) const;
  TablePointer ParallelTable(const Composite& c, int share) const;

  friend class MappingTraceBack;

  std::shared_ptr<const std::vector<NodeChoices>> choices_;  // per node; of all copies
  std::vector<NodeState> nodes_;
  mutable std::vector<Composite> composites_;  // tables are made when asked for
  std::vector<std::vector<int>> live_;         // per node: composites that are left
  std::vector<Fold> folds_;
  std::vector<std::pair<int, int>> fixed_;
  std::vector<int> terminals_;
  std::vector<ShareSplit> splits_;
  std::vector<std::vector<int>> contains_;  // per share: itself and those that contain it
  MappingMemo* memo_;
  bool concurrent_branches_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_REDUCTION_H_
