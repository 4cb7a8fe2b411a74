// The tasks of one step of a mapped computation, for the simulator, kept so that the choice of one
// operator can be changed at the cost of what that changes.
//
// A computation is mapped by a choice for each of its operators (sharding_choice.h). Its tasks are
// put together from fragments that are made once for each call, choice and pair of placements
// (move_fragment.h), in the order in which the lowering (pcg/schedule) would put them into a
// schedule; so this timeline is that of the schedule, to the last bit (the tests compare them). The
// order, with the blocks of block_timeline.h that each node has:
//
//   forward, nodes in order    chain per operand, arrival per operand, compute
//   backward, in reverse       fill, gradient, accumulation per operand, arrivals reversed, chains
//                              reversed, synchronisation per operand
//   update, in reverse         one per stored operand
//
// In training the chains of outputs are behind the gradient of what made them. That of the loss is
// not reversed: the gradient is filled in where the loss comes from
// (pcg/schedule/lowering/loss_seeds.h). A chain is what the parallel operators between two calls
// do, an arrival what a call's device lacks beyond that. What several calls need of a value in one
// form is brought there once, at the first of them. A stored tensor is kept as its users need it,
// or, if they differ, as one of them does (pcg/schedule/lowering/weight_homes.h).
//
// In lower precision than float32 it is near the schedule, and no more: all that is float32 in the
// graph counts as low, weights have float32 masters, and no casts lie between (pcg/ir/precision.h).
//
// Limits: one micro-batch, SGD with an all-reduce per weight and no buckets; an order of calls that
// does not follow their choices (plans have branches side by side, by the exchanges in them,
// pcg/schedule/order/execution_order.h). Where two calls need one value in one form on different
// devices, shards that both ask for are counted twice unless all are the same.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_H_
#define ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optimizer/cost/timeline.h"
#include "optimizer/mapping/cost_tables.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/simulator/block_timeline.h"
#include "optimizer/simulator/move_memo.h"

namespace isomer {

class ValueBuilder;

class TaskGraph {
 public:
  // `mapped` gives every compute node of its graph a choice; a node without one is whole on device
  // 0. The loss is that of `model`, whose graph may be another. Choices are those that
  // `restrictions`, unless null, leave. `tables` must outlive this.
  // `kFixed`: with no choices but those of `mapped`; what takes most of the time is not done then.
  enum class Lists { kChoices, kFixed };
  // `kInterleaved`: calls in the order of the plan that has the choices of `mapped`, by the
  // exchanges before them; it stays, whatever choices change.
  enum class Order { kGraph, kInterleaved };
  // `moves`: what other task graphs under the same cost model know; null: this one has its own.
  static absl::StatusOr<std::unique_ptr<TaskGraph>> Create(
      const Model& model, const MappedModel& mapped, CostTables* tables,
      const Restrictions* restrictions = nullptr, Lists lists = Lists::kChoices,
      Order order = Order::kGraph, MoveMemo* moves = nullptr);
  TaskGraph(const TaskGraph&) = delete;

  // Nodes are those of compute(), in its order: AnalyzeCompute's, unless it is interleaved. Choices
  // are those of the call's tables, and behind them those that `mapped` brought.
  int num_nodes() const { return num_nodes_; }
  int num_choices(int node) const;
  int choice(int node) const { return choices_[node]; }
  const ShardingChoice& ChoiceOf(int node, int choice) const;
  MappedModel Mapped() const;
  const ComputeGraph& compute() const { return compute_; }
  const Graph& graph() const { return graph_; }

  // Changes the choice of one node and brings the timeline up to date.
  absl::Status SetChoice(int node, int choice);
  // Takes back what SetChoice did since the last Commit.
  void Rollback();
  void Commit();

  const BlockTimeline& timeline() const { return timeline_; }
  Picoseconds makespan() const { return timeline_.makespan(); }

 private:
  // A choice, with what it amounts to.
  struct ChoiceInfo {
    const ShardingChoice* choice = nullptr;
    std::vector<int> operands, outputs;  // places
    const CallFragment* call = nullptr;  // with operands at their places
    // Per task, of the class's `weights` and of the others.
    std::vector<Picoseconds> weight_gradient, data_gradient;
  };
  // A call whose gradients of certain operands are wanted.
  struct NodeClass {
    const ChoiceSpace* space = nullptr;
    std::vector<bool> wanted;
    // Operands whose gradients may be a task of their own (split_gradients.h); or none.
    std::vector<bool> weights;
    bool stored = false;                                       // operand 0 is a stored tensor
    std::vector<std::unique_ptr<ShardingChoice>> own_choices;  // behind those of the tables
    std::vector<std::unique_ptr<ChoiceInfo>> infos;            // per choice, once it was asked for
  };
  struct Use {
    int node, operand;
  };
  enum class Origin { kComputed, kStored, kFed };
  struct Value {
    Origin origin = Origin::kComputed;
    TensorType type;  // sequential
    int producer = -1, output = 0;
    std::vector<Use> uses;         // ascending
    std::map<int64_t, int> whole;  // by device: the place of the whole value there
    bool wants_gradient = false;
    bool contracted = false;  // it is stored, and read by contractions alone
    bool stays = false;       // where it is stored: all read it there
    // What the gradient tasks of its producer wait for: per task, the communication that brings
    // the gradient, or none; and devices where no share arrives, with the time to fill in zeros.
    std::vector<TaskRef> gradient_deps;
    std::vector<std::pair<int32_t, Picoseconds>> no_gradient;
  };
  // Per node and operand.
  struct Operand {
    int value = -1;
    bool gradient = false;
    bool sends_back = false;    // its gradient goes to other devices
    std::vector<TaskRef> deps;  // per task: the communication that brings the operand, or none
    // Per task: what its gradient takes longer by adding to that of others who read the operand.
    std::vector<Picoseconds> adding;
  };
  struct NodeState {
    NodeClass* node_class = nullptr;  // null: the graph's outputs
    std::vector<Operand> operands;
    std::vector<int> outputs;  // values
    bool has_gradient = false;
    int32_t forward = 0, backward = 0, update = 0;  // first blocks
    // A contraction that has gradients, or, on the way back, the last one before this node; -1:
    // none. Gradients of its weights may be behind this node's. First block of these.
    int contraction = -1;
    int32_t weights = 0;
    int weights_behind = -1;  // of a contraction: the node that they are behind; -1: not split
  };
  friend class ValueBuilder;

  TaskGraph(const MappedModel& mapped, CostTables* tables, MoveMemo* moves);
  // Puts the calls in the order of the plan that `mapped` is.
  void Interleave();
  absl::Status AddNodes(const Restrictions* restrictions, Lists lists);
  int ValueOf(TensorRef tensor, Origin origin);
  absl::Status AddChoice(int node, const ShardingChoice* choice, const CallRestriction* restriction,
                         Lists lists);
  void FindGradients(const Model& model);
  void FindContractions();
  // Numbers the blocks of all nodes; returns how many there are.
  int32_t NumberBlocks();

  // Of one task of the call for each of its devices.
  absl::StatusOr<std::vector<Picoseconds>> GradientTimes(const ChoiceInfo& info,
                                                         const NodeClass& node_class,
                                                         const std::vector<bool>& wanted) const;
  int WholeAt(int value, int64_t device);
  absl::StatusOr<const ChoiceInfo*> InfoOf(int node);
  // What the use lacks of its operand when that is at `place`.
  absl::StatusOr<const MoveFragment*> ArrivalAt(Use use, int place);

  // Makes the blocks of these values and nodes again, and of the nodes that wait for something else
  // then.
  absl::Status Rebuild(const std::vector<int>& values, std::vector<int> nodes);
  BlockTasks ComputeTasks(int node, const ChoiceInfo& info) const;
  BlockTasks GradientTasks(int node, const ChoiceInfo& info) const;
  BlockTasks WeightGradientTasks(int node, const ChoiceInfo& info) const;
  // What task `s` of the gradients of a node takes longer by adding to sums: those of weights that
  // are a task of their own, or the others.
  Picoseconds AddingTime(int node, size_t s, bool of_weights) const;
  // The node that the gradients of weights are behind, by what moves now.
  int PlaceOfWeights(int contraction) const;
  // After `values` were built: takes the gradients of weights to where they belong. Returns the
  // values whose blocks change with that.
  std::vector<int> MoveWeights(const std::vector<int>& values, std::vector<int>* nodes,
                               std::vector<BlockTimeline::Change>* changes);
  // Of several changes of a block.
  static void KeepLast(std::vector<BlockTimeline::Change>* changes);
  BlockTasks FillTasks(int node) const;
  std::vector<int> ValuesAround(int node) const;

  int32_t ChainBlock(Use use) const {
    if (use.node == num_nodes_ && late_output_[use.operand] >= 0) return late_output_[use.operand];
    return nodes_[use.node].forward + use.operand;
  }
  int32_t ArrivalBlock(Use use) const {
    return nodes_[use.node].forward + NumOperands(use.node) + use.operand;
  }
  int32_t ComputeBlockOf(int node) const { return nodes_[node].forward + 2 * NumOperands(node); }
  int32_t FillBlockOf(int node) const { return nodes_[node].backward; }
  int32_t GradientBlockOf(int node) const { return nodes_[node].backward + 1; }
  int32_t AccumulateBlock(Use use) const { return GradientBlockOf(use.node) + 1 + use.operand; }
  int32_t ReversedArrivalBlock(Use use) const {
    return GradientBlockOf(use.node) + 2 * NumOperands(use.node) - use.operand;
  }
  int32_t ReversedChainBlock(Use use) const {
    return ReversedArrivalBlock(use) + NumOperands(use.node);
  }
  int32_t SynchroniseBlock(Use use) const {
    return AccumulateBlock(use) + 3 * NumOperands(use.node);
  }
  // Of weights whose gradients are behind node `behind`: these, the sums, the synchronisation.
  int32_t WeightsBlock(int behind) const { return nodes_[behind].weights; }
  int32_t WeightsEnd(int behind) const {
    const int contraction = nodes_[behind].contraction;
    return WeightsBlock(behind) + 1 + 2 * (contraction < 0 ? 0 : NumOperands(contraction));
  }
  bool IsBehind(Use use) const {
    return nodes_[use.node].weights_behind >= 0 &&
           nodes_[use.node].node_class->weights[use.operand];
  }
  int32_t AccumulateBehind(Use use) const {
    return WeightsBlock(nodes_[use.node].weights_behind) + 1 + use.operand;
  }
  int32_t SynchroniseBehind(Use use) const { return AccumulateBehind(use) + NumOperands(use.node); }
  int32_t UpdateBlock(Use use) const { return nodes_[use.node].update + use.operand; }
  int NumOperands(int node) const { return static_cast<int>(nodes_[node].operands.size()); }

  MappedModel mapped_;
  const Graph& graph_;  // of mapped_
  ComputeGraph compute_;
  CostTables& tables_;
  const std::unique_ptr<MoveMemo> own_moves_;  // if there are no others
  MoveMemo& moves_;
  const CostModel& cost_;
  bool training_;
  int num_nodes_;                 // without the one for the graph's outputs, which is behind them
  std::vector<NodeState> nodes_;  // with it
  std::vector<int> choices_;
  std::vector<Value> values_;
  std::map<TensorRef, int> value_of_;
  int loss_operand_ = -1;  // of the node of outputs
  // By its operand, where the chain is that nothing waits for, behind the gradient of what made it;
  // -1: none, or its place is among the others.
  std::vector<int32_t> late_output_;
  BlockTimeline timeline_{0, 0};

  using ClassKey = std::tuple<const ChoiceSpace*, std::vector<bool>, std::vector<bool>, bool>;
  std::map<ClassKey, std::unique_ptr<NodeClass>> classes_;

  // What Rollback puts back: before each SetChoice, the choice and what is derived from it.
  struct Undo {
    struct OfValue {
      int value;
      std::vector<TaskRef> gradient_deps;
      std::vector<std::pair<int32_t, Picoseconds>> no_gradient;
      std::vector<std::vector<TaskRef>> deps;  // per use
      std::vector<bool> sends_back;
      std::vector<std::vector<Picoseconds>> adding;
      bool stays;
    };
    int node, choice;
    std::vector<OfValue> values;
    std::vector<std::pair<int, int>> weights_behind;  // of contractions, as they were
  };
  Undo::OfValue Derived(int value) const;
  std::vector<Undo> undo_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_H_
