// The tasks of one step of a mapped computation, with incremental changes: changing one operator's
// choice costs as much as its tasks change.
//
// Every operator has a choice (sharding_choice.h). Tasks are assembled from fragments, memoised per
// call, choice and pair of placements (move_fragment.h), in the order in which the lowering
// (pcg/schedule) would schedule them; so this timeline equals that of the schedule to the last bit
// (the tests compare them). The order, with each node's blocks of block_timeline.h:
//
//   forward, nodes in order    chain per operand, arrival per operand, compute
//   backward, in reverse       fill, gradient, accumulation per operand, arrivals reversed, chains
//                              reversed, synchronisation per operand
//   update, in reverse         one per stored operand
//
// In training, the chains of outputs come after the gradient of their producer. The loss's chain is
// not reversed: the gradient is filled in at the loss's producer
// (pcg/schedule/lowering/loss_seeds.h). A chain is the parallel operators between two calls, an
// arrival the transfers of what a call's devices lack after that. A form of a value that several
// calls need is transferred once, for the first of them. A stored tensor is stored as its users
// read it or, if they differ, as one of them does (pcg/schedule/lowering/weight_homes.h).
//
// In lower precision than float32 it only approximates the schedule: all float32 tensors of the
// graph count as low-precision, weights have float32 masters, and there are no casts
// (pcg/ir/precision.h).
//
// Limits: one micro-batch, SGD with an all-reduce per weight, no buckets; an order of calls that
// does not follow their choices (plans interleave concurrent branches by their exchanges,
// pcg/schedule/order/execution_order.h). Where two calls need one form of a value on different
// devices, shards that both request count twice unless all are the same.
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
  // `mapped`: a choice for every compute node of its graph; a node without one runs unsplit on
  // device 0. The loss is that of `model`, whose graph may differ. `restrictions`, unless null,
  // limit the choices. `tables` must outlive this. `kFixed`: only the choices of `mapped`, which
  // skips most of the work.
  enum class Lists { kChoices, kFixed };
  // `kInterleaved`: calls in the order of the plan of `mapped`, by the exchanges before them; the
  // order stays when choices change.
  enum class Order { kGraph, kInterleaved };
  // `moves`: memo shared with other task graphs under the same cost model; null: an own one.
  static absl::StatusOr<std::unique_ptr<TaskGraph>> Create(
      const Model& model, const MappedModel& mapped, CostTables* tables,
      const Restrictions* restrictions = nullptr, Lists lists = Lists::kChoices,
      Order order = Order::kGraph, MoveMemo* moves = nullptr);
  TaskGraph(const TaskGraph&) = delete;

  // Nodes are those of compute(), in its order: AnalyzeCompute's, unless interleaved. Choices are
  // those of the call's tables, then those that only `mapped` has.
  int num_nodes() const { return num_nodes_; }
  int num_choices(int node) const;
  int choice(int node) const { return choices_[node]; }
  const ShardingChoice& ChoiceOf(int node, int choice) const;
  MappedModel Mapped() const;
  const ComputeGraph& compute() const { return compute_; }
  const Graph& graph() const { return graph_; }

  // Changes the choice of one node and updates the timeline.
  absl::Status SetChoice(int node, int choice);
  // Reverts every SetChoice since the last Commit.
  void Rollback();
  void Commit();

  const BlockTimeline& timeline() const { return timeline_; }
  Picoseconds makespan() const { return timeline_.makespan(); }

 private:
  // A choice with its tasks.
  struct ChoiceInfo {
    const ShardingChoice* choice = nullptr;
    std::vector<int> operands, outputs;  // ids of places
    const CallFragment* call = nullptr;  // for operands at these places
    // Per task: time of the gradients of the class's `weights`, and of the others.
    std::vector<Picoseconds> weight_gradient, data_gradient;
  };
  // A call with given wanted gradients.
  struct NodeClass {
    const ChoiceSpace* space = nullptr;
    Operator op;  // as computed
    std::vector<bool> wanted;
    // Operands whose gradients may be a task of their own (split_gradients.h); or empty.
    std::vector<bool> weights;
    bool stored = false;                                       // operand 0 is a stored tensor
    std::vector<std::unique_ptr<ShardingChoice>> own_choices;  // after those of the tables
    std::vector<std::unique_ptr<ChoiceInfo>> infos;            // per choice, made lazily
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
    std::map<int64_t, int> whole;  // by device: the place of the unsplit value there
    bool wants_gradient = false;
    bool contracted = false;  // stored, and read by contractions only
    bool stays = false;       // all uses read it where it is stored
    // Dependencies of the producer's gradient tasks: per task, the communication that brings the
    // gradient, or none; and devices that receive no summand, with the time to fill in zeros.
    std::vector<TaskRef> gradient_deps;
    std::vector<std::pair<int32_t, Picoseconds>> no_gradient;
  };
  // Per node and operand.
  struct Operand {
    int value = -1;
    bool gradient = false;
    bool sends_back = false;    // its gradient goes to other devices
    std::vector<TaskRef> deps;  // per task: the communication that brings the operand, or none
    // Per task: additional time of its gradient for adding to that of other readers of the operand.
    std::vector<Picoseconds> adding;
  };
  struct NodeState {
    NodeClass* node_class = nullptr;  // null: the graph's outputs
    std::vector<Operand> operands;
    std::vector<int> outputs;  // values
    bool has_gradient = false;
    int32_t forward = 0, backward = 0, update = 0;  // first blocks
    // This node, if it is a contraction with gradients, else the last such one before it in the
    // backward pass; -1: none. Its weight gradients may come after this node's. `weights`: first
    // block of these.
    int contraction = -1;
    int32_t weights = 0;
    int weights_behind = -1;  // of a contraction: the node that its weight gradients follow
  };
  friend class ValueBuilder;

  TaskGraph(const MappedModel& mapped, CostTables* tables, MoveMemo* moves);
  // Orders the calls as the plan of `mapped` does.
  void Interleave();
  absl::Status AddNodes(const Restrictions* restrictions, Lists lists);
  int ValueOf(TensorRef tensor, Origin origin);
  absl::Status AddChoice(int node, const ShardingChoice* choice, const CallRestriction* restriction,
                         Lists lists);
  void FindGradients(const Model& model);
  void FindContractions();
  // Numbers the blocks of all nodes; returns their count.
  int32_t NumberBlocks();

  // Per device of the choice, the time of one task of the call.
  absl::StatusOr<std::vector<Picoseconds>> GradientTimes(const ChoiceInfo& info,
                                                         const NodeClass& node_class,
                                                         const std::vector<bool>& wanted) const;
  int WholeAt(int value, int64_t device);
  absl::StatusOr<const ChoiceInfo*> InfoOf(int node);
  // Transfers that the use needs if its operand is at `place`.
  absl::StatusOr<const MoveFragment*> ArrivalAt(Use use, int place);

  // Rebuilds the blocks of these values and nodes, and of the nodes whose dependencies change.
  absl::Status Rebuild(const std::vector<int>& values, std::vector<int> nodes);
  BlockTasks ComputeTasks(int node, const ChoiceInfo& info) const;
  BlockTasks GradientTasks(int node, const ChoiceInfo& info) const;
  BlockTasks WeightGradientTasks(int node, const ChoiceInfo& info) const;
  // Additional time of gradient task `s` of a node for adding to sums: of weights that are a task
  // of their own, or of the others.
  Picoseconds AddingTime(int node, size_t s, bool of_weights) const;
  // The node that a contraction's weight gradients follow, given the current moves.
  int PlaceOfWeights(int contraction) const;
  // After `values` were built: moves weight gradients to their place in the order. Returns the
  // values whose blocks change with that.
  std::vector<int> MoveWeights(const std::vector<int>& values, std::vector<int>* nodes,
                               std::vector<BlockTimeline::Change>* changes);
  // Keeps the last of several changes of a block.
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
  // Weight gradients that follow node `behind`: their block, the sums, the synchronisation.
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
  const std::unique_ptr<MoveMemo> own_moves_;  // if none is shared
  MoveMemo& moves_;
  const CostModel& cost_;
  bool training_;
  int num_nodes_;                 // without the last one, for the graph's outputs
  std::vector<NodeState> nodes_;  // including it
  std::vector<int> choices_;
  std::vector<Value> values_;
  std::map<TensorRef, int> value_of_;
  int loss_operand_ = -1;  // operand of the outputs' node
  // Per output: block of its chain, which nothing waits for, after the gradient of its producer;
  // -1: none, or among the other blocks.
  std::vector<int32_t> late_output_;
  BlockTimeline timeline_{0, 0};

  using ClassKey =
      std::tuple<const ChoiceSpace*, Fp8Scaling, std::vector<bool>, std::vector<bool>, bool>;
  std::map<ClassKey, std::unique_ptr<NodeClass>> classes_;

  // State that Rollback restores: before each SetChoice, the choice and what is derived from it.
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
    std::vector<std::pair<int, int>> weights_behind;  // contractions' previous values
  };
  Undo::OfValue Derived(int value) const;
  std::vector<Undo> undo_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_TASK_GRAPH_H_
