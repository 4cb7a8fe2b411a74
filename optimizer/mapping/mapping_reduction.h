// A graph of cost tables, reduced step by step, with what is needed to go back.
//
// A composite is an edge between two nodes that stands for everything that was reduced into it. Its
// tables, one per share of the machine that the nodes inside may keep to, are made when they are
// asked for. The table of a share has rows and columns for what an end of it may be: a choice of
// that share, or of one that contains it (a fork on the whole machine before a branch on half).
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_REDUCTION_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_REDUCTION_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

// Per node and share: what every choice takes of each device of that share.
using MappingResources = std::vector<std::vector<float>>;

class MappingReduction {
 public:
  // What of the problem outlives this: edge tables, and the memo. With `resources`, branches that
  // keep to one share overlap: together they cost the largest of the one, the other and all
  // resources of both, which is never more than they do (lower_bound.h). `concurrent_branches`:
  // that only meet may, on shares of their own (mapping_branches.h).
  MappingReduction(const MappingProblem& problem, MappingMemo* memo,
                   const MappingResources* resources = nullptr, bool concurrent_branches = false);

  // Series, parallel and fold, until nothing is left to reduce.
  void Reduce();
  // Lets a node of the core that one terminal alone leads to be something else for each composite
  // that leaves it: its time counts on all paths, its resources once.
  void Relax(int node);
  // Takes a node's choices of shares away.
  void KeepToWhole(int node);
  // Gives a node a choice of the whole machine for good.
  void Fix(int node, int choice);
  // The tables of what is left. REQUIRES: reduced, and Core() is empty.
  CostTable Table() const;
  // A choice for every node, given those of the terminals. REQUIRES: as above.
  std::vector<int> Choices(int first, int second) const;

  // Inner nodes that are left, ascending.
  std::vector<int> Core() const;
  int Degree(int node) const { return static_cast<int>(live_[node].size()); }
  // The choice of a node of the core with the least time if the others answer as they like best.
  int Promising(int node) const;
  // Choices of the whole machine that a node of the core has; what they cost by themselves, and
  // what the composite between two nodes adds to that.
  const std::vector<int>& WholeChoices(int node) const { return ChoicesOf(node, 0); }
  float NodeUs(int node, int choice) const { return nodes_[node].us[choice]; }
  struct CoreEdge {
    int a, b;
    const CostTable* table;  // over WholeChoices(a) and WholeChoices(b)
  };
  std::vector<CoreEdge> CoreEdges() const;
  const std::vector<int>& terminals() const { return terminals_; }
  // What nodes without neighbours cost.
  float IsolatedUs() const;

 private:
  using TablePointer = std::shared_ptr<const CostTable>;

  struct NodeState {
    std::vector<float> us;  // with those of folded neighbours
    // Per share, the choices of just that share, and what the ends of a branch of that share may
    // be: those of shares that contain it, then its own.
    std::vector<std::vector<int>> own, visible;
    std::vector<float> resources;  // per share; empty: costs add up
    uint64_t shares_key = 0;
    bool gone = false;
    // Folds into this node of what only leads here: branches that may run beside each other.
    std::vector<int> branches;
    std::vector<float> own_us;  // `us` without those; empty: there are none
  };
  struct Composite {
    int a = -1, b = -1;  // rows are choices of a, columns of b
    // The end that data comes from; -1: neither, it was reduced over a fork or a join, and is no
    // branch that could run beside another.
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

  void AddNode(const MappingProblem::MappingNode& node);
  int AddComposite(Composite composite);
  void RemoveLive(int composite);
  bool IsTerminal(int node) const;
  int NumShares() const { return static_cast<int>(contains_.size()); }
  const std::vector<int>& ChoicesOf(int node, int share) const { return nodes_[node].own[share]; }
  const std::vector<int>& Visible(int node, int share) const { return nodes_[node].visible[share]; }
  // Where choices of `share` begin among those visible there.
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
  // The time of the branches that are folded into a node which has that choice of that share, and
  // the share that each of them keeps to.
  float BranchesUs(int node, int choice, std::vector<int>* shares) const;
  // Adds to the time of a choice.
  void AddUs(int node, int choice, float us);
  // Where the choice stands among those visible in the share.
  int PlaceIn(int node, int choice, int share) const;
  int DirectedSource(int m, int left, int right) const;
  // Two parallel composites are branches with operators of their own.
  bool RunBeside(int left, int right) const;

  const CostTable& Us(int composite, int share) const;
  // Towards(c, node): its table with `node`'s choices as columns.
  TablePointer Towards(int composite, int node, int share) const;
  TablePointer MakeTable(int composite, int share) const;
  TablePointer EdgeTable(const Composite& c, int share) const;
  TablePointer SeriesTable(const Composite& c, int share) const;
  TablePointer ParallelTable(const Composite& c, int share) const;

  friend class MappingTraceBack;

  std::vector<NodeState> nodes_;
  mutable std::vector<Composite> composites_;  // tables are made when asked for
  std::vector<std::vector<int>> live_;         // per node: composites that are left
  std::vector<Fold> folds_;
  std::vector<std::pair<int, int>> fixed_;
  std::vector<int> terminals_;
  std::vector<ShareSplit> splits_;
  std::vector<std::vector<int>> contains_;  // per share: those that contain it, and itself
  MappingMemo* memo_;
  bool concurrent_branches_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_REDUCTION_H_
