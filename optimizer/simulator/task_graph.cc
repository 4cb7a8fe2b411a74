#include "optimizer/simulator/task_graph.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "optimizer/mapping/choice_pricer.h"
#include "optimizer/simulator/simulator.h"
#include "optimizer/simulator/task_graph_value.h"
#include "pcg/ir/states.h"
#include "pcg/support/status_macros.h"

namespace isomer {
TaskGraph::TaskGraph(const MappedModel& mapped, CostTables* tables, MoveMemo* moves)
    : mapped_(mapped),
      graph_(mapped_.graph),
      compute_(AnalyzeCompute(graph_, tables->options().training)),
      tables_(*tables),
      own_moves_(moves == nullptr ? std::make_unique<MoveMemo>(tables->cost(), tables->options())
                                  : nullptr),
      moves_(moves == nullptr ? *own_moves_ : *moves),
      cost_(tables->cost()),
      training_(tables->options().training),
      num_nodes_(static_cast<int>(compute_.nodes.size())) {}

absl::StatusOr<std::unique_ptr<TaskGraph>> TaskGraph::Create(
    const Model& model, const MappedModel& mapped, CostTables* tables,
    const Restrictions* restrictions, Lists lists, Order order, MoveMemo* moves) {
  std::unique_ptr<TaskGraph> graph(new TaskGraph(mapped, tables, moves));
  if (order == Order::kInterleaved) graph->Interleave();
  ISOMER_RETURN_IF_ERROR(graph->AddNodes(restrictions, lists));
  graph->FindGradients(model);
  graph->FindContractions();
  const Machine& machine = tables->cost().machine();
  graph->timeline_ =
      BlockTimeline(graph->NumberBlocks(), NumQueues(machine), LinkQueue(machine, 0));
  std::vector<int> all;
  for (int v = 0; v < static_cast<int>(graph->values_.size()); ++v) all.push_back(v);
  std::vector<int> nodes(graph->num_nodes_);
  std::iota(nodes.begin(), nodes.end(), 0);
  ISOMER_RETURN_IF_ERROR(graph->Rebuild(all, std::move(nodes)));
  graph->Commit();
  return graph;
}

// Nodes and values.

int TaskGraph::ValueOf(TensorRef tensor, Origin origin) {
  auto [it, added] = value_of_.try_emplace(tensor, static_cast<int>(values_.size()));
  if (added) {
    Value value;
    value.origin = origin;
    value.type = graph_.type(tensor);
    value.producer = compute_.index[tensor.node.value];
    value.output = tensor.output;
    values_.push_back(std::move(value));
  }
  return it->second;
}

absl::Status TaskGraph::AddNodes(const Restrictions* restrictions, Lists lists) {
  nodes_.resize(num_nodes_ + 1);
  choices_.assign(num_nodes_, 0);
  for (int n = 0; n < num_nodes_; ++n) {
    const ComputeGraph::ComputeNode& node = compute_.nodes[n];
    const Node& call = graph_.node(node.id);
    NodeState& state = nodes_[n];
    for (size_t o = 0; o < node.operands.size(); ++o) {
      const Origin origin = node.operands[o].producer >= 0 ? Origin::kComputed
                            : node.operands[o].stored      ? Origin::kStored
                                                           : Origin::kFed;
      const int value = ValueOf(call.inputs[o], origin);
      values_[value].uses.push_back({n, static_cast<int>(o)});
      state.operands.push_back({value, node.operands[o].gradient, false, {}, {}});
    }
    for (int t = 0; t < static_cast<int>(call.outputs.size()); ++t) {
      state.outputs.push_back(ValueOf({node.id, t}, Origin::kComputed));
    }
    const auto choice = mapped_.choices.find(node.id);
    ISOMER_RETURN_IF_ERROR(AddChoice(n, choice == mapped_.choices.end() ? nullptr : &choice->second,
                                     restrictions == nullptr ? nullptr : restrictions->Of(node.id),
                                     lists));
  }
  // States go where their inputs lie: nowhere, as a rule (pcg/schedule/memory/carries.h).
  for (const Graph::NamedOutput& output : OutputsForHost(graph_, training_)) {
    if (compute_.index[output.tensor.node.value] < 0) continue;
    const int value = ValueOf(output.tensor, Origin::kComputed);
    const int operand = static_cast<int>(nodes_.back().operands.size());
    values_[value].uses.push_back({num_nodes_, operand});
    nodes_.back().operands.push_back({value, false, false, {}, {}});
  }
  return absl::OkStatus();
}

absl::Status TaskGraph::AddChoice(int n, const ShardingChoice* choice,
                                  const CallRestriction* restriction, Lists lists) {
  const ComputeGraph::ComputeNode& node = compute_.nodes[n];
  const Operator& op = graph_.node(node.id).op;
  const ChoiceSpace* space = nullptr;
  if (lists == Lists::kFixed) {
    ISOMER_ASSIGN_OR_RETURN(space, tables_.Space(op, node.operand_types));
  } else {
    ISOMER_ASSIGN_OR_RETURN(const CallTables* call,
                            tables_.Call(op, node.operand_types, -1, restriction));
    space = &call->space;
  }
  std::vector<bool> wanted, weights;
  for (const auto& operand : node.operands) wanted.push_back(training_ && operand.gradient);
  if (training_) weights = SeparateGradients(op, node);
  const bool stored = !node.operands.empty() && node.operands[0].stored;
  const Operator computed = AsComputed(op, node, tables_.options());
  std::unique_ptr<NodeClass>& slot =
      classes_[{space, Fp8ScalingOf(computed), wanted, weights, stored}];
  if (slot == nullptr) {
    slot = std::make_unique<NodeClass>();
    slot->space = space;
    slot->op = computed;
    slot->wanted = wanted;
    slot->weights = weights;
    slot->stored = stored;
    slot->infos.resize(space->choices.size());
  }
  nodes_[n].node_class = slot.get();
  ShardingChoice whole;
  if (choice == nullptr) {
    ISOMER_ASSIGN_OR_RETURN(whole, MakeChoice(*space, {}));
    choice = &whole;
  }
  for (int c = 0; c < num_choices(n); ++c) {
    const ShardingChoice& other = ChoiceOf(n, c);
    if (other.operands == choice->operands && other.outputs == choice->outputs) {
      choices_[n] = c;
      return absl::OkStatus();
    }
  }
  slot->own_choices.push_back(std::make_unique<ShardingChoice>(*choice));
  slot->infos.emplace_back();
  choices_[n] = num_choices(n) - 1;
  return absl::OkStatus();
}

// A gradient is computed where the loss is reachable and the gradient is wanted.
void TaskGraph::FindGradients(const Model& model) {
  if (!training_) return;
  for (size_t k = 0; k < graph_.outputs().size(); ++k) {
    const Graph::NamedOutput& output = graph_.outputs()[k];
    const auto value = value_of_.find(output.tensor);
    if (output.name != model.loss || value == value_of_.end()) continue;
    for (const Use& use : values_[value->second].uses) {
      if (use.node == num_nodes_) loss_operand_ = use.operand;
    }
    values_[value->second].wants_gradient = true;
  }
  for (int n = num_nodes_ - 1; n >= 0; --n) {
    NodeState& node = nodes_[n];
    const bool reached = std::any_of(node.outputs.begin(), node.outputs.end(),
                                     [&](int value) { return values_[value].wants_gradient; });
    const std::vector<bool>& wanted = node.node_class->wanted;
    node.has_gradient = reached && std::find(wanted.begin(), wanted.end(), true) != wanted.end();
    for (Operand& operand : node.operands) {
      operand.gradient = operand.gradient && node.has_gradient;
      if (operand.gradient) values_[operand.value].wants_gradient = true;
    }
  }
}

int TaskGraph::num_choices(int node) const {
  return static_cast<int>(nodes_[node].node_class->infos.size());
}

const ShardingChoice& TaskGraph::ChoiceOf(int node, int choice) const {
  const NodeClass& node_class = *nodes_[node].node_class;
  const auto& listed = node_class.space->choices;
  const int num_listed = static_cast<int>(listed.size());
  return choice < num_listed ? listed[choice] : *node_class.own_choices[choice - num_listed];
}

MappedModel TaskGraph::Mapped() const {
  MappedModel mapped = mapped_;
  for (int n = 0; n < num_nodes_; ++n) {
    mapped.choices[compute_.nodes[n].id] = ChoiceOf(n, choices_[n]);
  }
  return mapped;
}

// Fragments.

int TaskGraph::WholeAt(int value, int64_t device) {
  const auto [it, added] = values_[value].whole.try_emplace(device);
  if (added) {
    Placement whole{values_[value].type, {}};
    whole.view.start = device;
    whole.view.strides.assign(whole.type.rank() + 2, 0);
    it->second = moves_.Intern(whole);
  }
  return it->second;
}

absl::StatusOr<const TaskGraph::ChoiceInfo*> TaskGraph::InfoOf(int node) {
  NodeClass& node_class = *nodes_[node].node_class;
  std::unique_ptr<ChoiceInfo>& info = node_class.infos[choices_[node]];
  if (info != nullptr) return info.get();
  auto made = std::make_unique<ChoiceInfo>();
  made->choice = &ChoiceOf(node, choices_[node]);
  for (const Placement& operand : made->choice->operands) {
    made->operands.push_back(moves_.Intern(operand));
  }
  for (const Placement& output : made->choice->outputs) {
    made->outputs.push_back(moves_.Intern(output));
  }
  ISOMER_ASSIGN_OR_RETURN(made->call,
                          moves_.Call(node_class.op, made->operands, made->choice->outputs[0].view,
                                      node_class.wanted, node_class.stored));
  if (!node_class.weights.empty()) {
    std::vector<bool> data = node_class.wanted;
    for (size_t o = 0; o < data.size(); ++o) data[o] = data[o] && !node_class.weights[o];
    ISOMER_ASSIGN_OR_RETURN(made->data_gradient, GradientTimes(*made, node_class, data));
    ISOMER_ASSIGN_OR_RETURN(made->weight_gradient,
                            GradientTimes(*made, node_class, node_class.weights));
  }
  info = std::move(made);
  return info.get();
}

absl::StatusOr<const MoveFragment*> TaskGraph::ArrivalAt(Use use, int place) {
  ISOMER_ASSIGN_OR_RETURN(const ChoiceInfo* info, InfoOf(use.node));
  if (info->operands[use.operand] == place) return &info->call->arrivals[use.operand];
  const NodeClass& node_class = *nodes_[use.node].node_class;
  std::vector<int> operands = info->operands;
  operands[use.operand] = place;
  ISOMER_ASSIGN_OR_RETURN(const CallFragment* call,
                          moves_.Call(node_class.op, operands, info->choice->outputs[0].view,
                                      node_class.wanted, node_class.stored));
  return &call->arrivals[use.operand];
}

// Changes.

BlockTasks TaskGraph::ComputeTasks(int node, const ChoiceInfo& info) const {
  BlockTasks tasks;
  tasks.Reserve(info.call->devices.size(), info.call->devices.size(), 0);
  for (size_t s = 0; s < info.call->devices.size(); ++s) {
    tasks.Add((nodes_[node].has_gradient ? info.call->saving : info.call->forward)[s]);
    tasks.AddQueue(ComputeQueue(info.call->devices[s]));
    for (const Operand& operand : nodes_[node].operands) {
      if (operand.deps[s].block >= 0) tasks.AddDep(operand.deps[s]);
    }
  }
  return tasks;
}

Picoseconds TaskGraph::AddingTime(int node, size_t s, bool of_weights) const {
  const NodeState& state = nodes_[node];
  Picoseconds time = 0;
  for (size_t o = 0; o < state.operands.size(); ++o) {
    const bool is_apart = state.weights_behind >= 0 && state.node_class->weights[o];
    if (is_apart == of_weights && !state.operands[o].adding.empty()) {
      time += state.operands[o].adding[s];
    }
  }
  return time;
}

BlockTasks TaskGraph::GradientTasks(int node, const ChoiceInfo& info) const {
  BlockTasks tasks;
  tasks.Reserve(info.call->devices.size(), info.call->devices.size(), 0);
  const bool is_split = nodes_[node].weights_behind >= 0;
  for (size_t s = 0; s < info.call->devices.size(); ++s) {
    tasks.Add((is_split ? info.data_gradient[s] : info.call->gradient[s]) +
              AddingTime(node, s, /*of_weights=*/false));
    tasks.AddQueue(ComputeQueue(info.call->devices[s]));
    for (int output : nodes_[node].outputs) {
      const std::vector<TaskRef>& deps = values_[output].gradient_deps;
      if (!deps.empty() && deps[s].block >= 0) tasks.AddDep(deps[s]);
    }
  }
  return tasks;
}

// Gradients of outputs without summands are zero.
BlockTasks TaskGraph::FillTasks(int node) const {
  BlockTasks tasks;
  for (int output : nodes_[node].outputs) {
    for (const auto& [device, duration] : values_[output].no_gradient) {
      tasks.Add(duration);
      tasks.AddQueue(ComputeQueue(device));
    }
  }
  return tasks;
}

absl::Status TaskGraph::Rebuild(const std::vector<int>& values, std::vector<int> nodes) {
  std::vector<BlockTimeline::Change> changes;
  for (int value : values) {
    ISOMER_RETURN_IF_ERROR(ValueBuilder(this, value, /*again=*/false, &changes, &nodes).Build());
  }
  const std::vector<int> moved = MoveWeights(values, &nodes, &changes);
  for (int value : moved) {
    ISOMER_RETURN_IF_ERROR(ValueBuilder(this, value, /*again=*/true, &changes, &nodes).Build());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (int node : nodes) {
    ISOMER_ASSIGN_OR_RETURN(const ChoiceInfo* info, InfoOf(node));
    changes.push_back({ComputeBlockOf(node), ComputeTasks(node, *info)});
    if (!nodes_[node].has_gradient) continue;
    changes.push_back({FillBlockOf(node), FillTasks(node)});
    changes.push_back({GradientBlockOf(node), GradientTasks(node, *info)});
    if (nodes_[node].weights_behind < 0) continue;
    changes.push_back(
        {WeightsBlock(nodes_[node].weights_behind), WeightGradientTasks(node, *info)});
  }
  if (!moved.empty()) KeepLast(&changes);
  timeline_.Update(std::move(changes));
  return absl::OkStatus();
}

std::vector<int> TaskGraph::ValuesAround(int node) const {
  std::vector<int> values = nodes_[node].outputs;
  for (const Operand& operand : nodes_[node].operands) values.push_back(operand.value);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

TaskGraph::Undo::OfValue TaskGraph::Derived(int value) const {
  Undo::OfValue derived{value, values_[value].gradient_deps, values_[value].no_gradient, {}, {},
                        {},    values_[value].stays};
  for (const Use& use : values_[value].uses) {
    const Operand& operand = nodes_[use.node].operands[use.operand];
    derived.deps.push_back(operand.deps);
    derived.sends_back.push_back(operand.sends_back);
    derived.adding.push_back(operand.adding);
  }
  return derived;
}

absl::Status TaskGraph::SetChoice(int node, int choice) {
  Undo undo{node, choices_[node], {}, {}};
  const std::vector<int> values = ValuesAround(node);
  for (int value : values) undo.values.push_back(Derived(value));
  undo_.push_back(std::move(undo));
  choices_[node] = choice;
  return Rebuild(values, {node});
}

void TaskGraph::Rollback() {
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
    choices_[undo->node] = undo->choice;
    for (Undo::OfValue& derived : undo->values) {
      Value& value = values_[derived.value];
      value.gradient_deps = std::move(derived.gradient_deps);
      value.no_gradient = std::move(derived.no_gradient);
      value.stays = derived.stays;
      for (size_t u = 0; u < value.uses.size(); ++u) {
        Operand& operand = nodes_[value.uses[u].node].operands[value.uses[u].operand];
        operand.deps = std::move(derived.deps[u]);
        operand.sends_back = derived.sends_back[u];
        operand.adding = std::move(derived.adding[u]);
      }
    }
    for (const auto& [contraction, behind] : undo->weights_behind) {
      nodes_[contraction].weights_behind = behind;
    }
  }
  undo_.clear();
  timeline_.Rollback();
}

void TaskGraph::Commit() {
  undo_.clear();
  timeline_.Commit();
}

}  // namespace isomer
