#include "rules/equality/saturation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"
#include "rules/matching/conditions.h"
#include "rules/matching/match.h"

namespace isomer {
namespace {

// All nodes are outputs, and of one kind: matches differ only in their order, so one order is
// enough.
bool IsSymmetric(const Rule& rule) {
  const Pattern& source = rule.source;
  if (source.outputs.size() < 2 || source.outputs.size() != source.nodes.size()) return false;
  return std::all_of(source.nodes.begin(), source.nodes.end(),
                     [&](const PatternNode& node) { return node.kind == source.nodes[0].kind; });
}

}  // namespace

Saturation::Saturation(const std::vector<const Rule*>& rules, const SaturationOptions& options,
                       CallUs us_of, absl::FunctionRef<bool()> stop, EGraph* egraph)
    : options_(options), us_of_(us_of), stop_(stop), egraph_(*egraph) {
  int num_visits = 0;
  for (const Rule* rule : rules) {
    if (!rule->source.nodes.empty()) plans_.push_back(PlanOf(*rule, &num_visits));
  }
  may_be_.resize(num_visits);
}

Saturation::Plan Saturation::PlanOf(const Rule& rule, int* num_visits) {
  Plan plan{&rule, HashBytes(rule.id), IsSymmetric(rule), {}};
  std::vector<bool> planned(rule.source.nodes.size(), false);
  const auto visit = [&](auto& self, PatternRef ref, int parent, int operand) -> void {
    if (ref.node < 0 || planned[ref.node]) return;
    planned[ref.node] = true;
    const PatternNode& pattern = rule.source.nodes[ref.node];
    plan.visits.push_back({ref.node, &pattern, parent, operand, ref.index, (*num_visits)++});
    for (size_t i = 0; i < pattern.inputs.size(); ++i) {
      self(self, pattern.inputs[i], ref.node, static_cast<int>(i));
    }
  };
  for (PatternRef output : rule.source.outputs) visit(visit, output, -1, 0);
  return plan;
}

bool Saturation::Usable(const Rule& rule) const {
  return std::all_of(rule.source.nodes.begin(), rule.source.nodes.end(),
                     [&](const PatternNode& node) { return !egraph_.NodesOf(node.kind).empty(); });
}

SaturationStop Saturation::Run() {
  bool left_out = false;
  for (int iteration = 0; iteration < options_.iterations; ++iteration) {
    found_.clear();
    for (const Plan& plan : plans_) {
      if (!Usable(*plan.rule)) continue;
      if (stop_()) return SaturationStop::kInterrupted;
      MatchRule(plan);
      if (interrupted_) return SaturationStop::kInterrupted;
    }
    if (found_.empty()) return SaturationStop::kSaturated;
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
      return a.instance->saves_us > b.instance->saves_us;
    });
    const int limit = options_.nodes * (iteration + 1) / options_.iterations;
    for (const Found& found : found_) {
      if (egraph_.num_nodes() < limit) {
        Apply(found);
      } else {
        seen_.erase(found.hash);  // For the next iteration.
        left_out = true;
      }
    }
    egraph_.Rebuild();
  }
  return left_out ? SaturationStop::kNodes : SaturationStop::kIterations;
}

void Saturation::MatchRule(const Plan& plan) {
  const Rule& rule = *plan.rule;
  left_ = rule.source.outputs.size() > 1 ? options_.joint_matches : options_.matches;
  tries_left_ = options_.tries;
  nodes_.assign(rule.source.nodes.size(), -1);
  swapped_.assign(rule.source.nodes.size(), false);
  inputs_.assign(rule.num_inputs, -1);
  Step(plan, 0);
}

ClassId Saturation::BoundOperand(const PatternNode& pattern) const {
  for (PatternRef ref : pattern.inputs) {
    if (ref.node < 0 && inputs_[ref.index] >= 0) return inputs_[ref.index];
    if (ref.node >= 0 && nodes_[ref.node] >= 0) {
      return egraph_.node(nodes_[ref.node]).outputs[ref.index];
    }
  }
  return -1;
}

// Binds the node of a visit, and all that come after it.
void Saturation::Step(const Plan& plan, size_t at) {
  if (at == plan.visits.size()) return Finish(plan);
  const Visit& visit = plan.visits[at];
  if (visit.parent >= 0) {
    const int operand = swapped_[visit.parent] ? 1 - visit.operand : visit.operand;
    const ClassId id = egraph_.node(nodes_[visit.parent]).operands[operand];
    for (const EGraph::Member& member : egraph_.members(id)) {
      if (left_ <= 0) return;
      if (member.output == visit.output) Bind(plan, at, member.node);
    }
    return;
  }
  const ClassId bound = BoundOperand(*visit.pattern);
  for (ENodeId id : bound < 0 ? egraph_.NodesOf(visit.pattern->kind) : egraph_.users(bound)) {
    if (left_ <= 0) return;
    if (at > 0 && plan.symmetric && id < nodes_[plan.visits[at - 1].node]) continue;
    Bind(plan, at, id);
  }
}

bool Saturation::MayBe(const Visit& visit, ENodeId id) {
  const ENode& node = egraph_.node(id);
  const Operator& op = egraph_.op(id);
  if (op.kind() != visit.pattern->kind || !egraph_.IsCanonical(id) ||
      node.operands.size() != visit.pattern->inputs.size() ||
      visit.output >= static_cast<int>(node.outputs.size())) {
    return false;
  }
  constexpr int kRanks = 8;
  const int rank = egraph_.type(node.operands[0]).rank();
  std::vector<int8_t>& known = may_be_[visit.number];
  const size_t place = static_cast<size_t>(node.op) * kRanks + std::min(rank, kRanks - 1);
  if (place >= known.size()) known.resize(place + kRanks, -1);
  if (known[place] < 0 || rank >= kRanks) {
    Binding binding;
    known[place] = UnifyAttributes(*visit.pattern, op, rank, &binding) ? 1 : 0;
  }
  return known[place] == 1;
}

// Whether the current rule may go on.
bool Saturation::Try() {
  constexpr int64_t kPoll = 1024;
  if (--tries_left_ % kPoll == 0) interrupted_ |= stop_();
  if (tries_left_ < 0 || interrupted_) left_ = 0;
  return left_ > 0;
}

void Saturation::Bind(const Plan& plan, size_t at, ENodeId id) {
  const Visit& visit = plan.visits[at];
  if (!Try() || !MayBe(visit, id)) return;
  if (!options_.shares_calls && std::find(nodes_.begin(), nodes_.end(), id) != nodes_.end()) return;
  nodes_[visit.node] = id;
  const std::vector<ClassId>& operands = egraph_.node(id).operands;
  BindOperands(plan, at, false);
  if (IsCommutative(visit.pattern->kind) &&
      egraph_.Find(operands[0]) != egraph_.Find(operands[1])) {
    BindOperands(plan, at, true);
  }
  nodes_[visit.node] = -1;
  swapped_[visit.node] = false;
}

void Saturation::BindOperands(const Plan& plan, size_t at, bool swap) {
  const Visit& visit = plan.visits[at];
  const std::vector<ClassId>& operands = egraph_.node(nodes_[visit.node]).operands;
  swapped_[visit.node] = swap;
  uint64_t fresh = 0;  // rule inputs bound here
  bool fits = true;
  for (size_t i = 0; fits && i < operands.size(); ++i) {
    const PatternRef ref = visit.pattern->inputs[i];
    const ClassId operand = egraph_.Find(operands[swap ? 1 - i : i]);
    if (ref.node < 0) {
      ClassId& input = inputs_[ref.index];
      if (input < 0) {
        input = operand;
        fresh |= uint64_t{1} << ref.index;
      } else {
        fits = egraph_.Find(input) == operand;
      }
    } else if (const ENodeId bound = nodes_[ref.node]; bound >= 0) {
      const std::vector<ClassId>& outputs = egraph_.node(bound).outputs;
      fits = ref.index < static_cast<int>(outputs.size()) &&
             egraph_.Find(outputs[ref.index]) == operand;
    }
  }
  if (fits) Step(plan, at + 1);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (fresh >> i & 1) inputs_[i] = -1;
  }
}

std::vector<TensorType> Saturation::OperandTypes(int pattern_node) const {
  std::vector<TensorType> types;
  for (ClassId operand : egraph_.node(nodes_[pattern_node]).operands) {
    types.push_back(egraph_.type(operand));
  }
  if (swapped_[pattern_node]) std::swap(types[0], types[1]);
  return types;
}

void Saturation::Finish(const Plan& plan) {
  for (ClassId input : inputs_) {
    if (input < 0) return;  // The source does not use this variable.
  }
  bool in_step = false;
  for (PatternRef output : plan.rule->source.outputs) {
    if (output.node < 0) continue;
    const std::vector<ClassId>& outputs = egraph_.node(nodes_[output.node]).outputs;
    if (output.index >= static_cast<int>(outputs.size())) return;
    in_step |= !egraph_.IsStored(outputs[output.index]);
  }
  if (!in_step) return;
  uint64_t hash = plan.hash;
  for (ENodeId node : nodes_) hash = HashCombine(hash, static_cast<uint64_t>(node));
  for (ClassId input : inputs_) hash = HashCombine(hash, static_cast<uint64_t>(input));
  if (!seen_.insert(hash).second) return;
  for (const Instance& instance : InstancesOf(plan)) {
    --left_;
    found_.push_back({&plan, nodes_, swapped_, inputs_, &instance, hash});
  }
}

const std::vector<Saturation::Instance>& Saturation::InstancesOf(const Plan& plan) {
  const Rule& rule = *plan.rule;
  uint64_t key = plan.hash;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    key = HashCombine(key, static_cast<uint64_t>(egraph_.node(nodes_[n]).op));
    key = HashCombine(key, swapped_[n]);
    for (ClassId operand : egraph_.node(nodes_[n]).operands) {
      key = HashCombine(key, static_cast<uint64_t>(egraph_.type_id(operand)));
      key = HashCombine(key, egraph_.IsStored(operand));
    }
  }
  for (ClassId input : inputs_) {
    key = HashCombine(key, static_cast<uint64_t>(egraph_.type_id(input)));
    key = HashCombine(key, egraph_.IsStored(input));
  }
  auto [slot, added] = instances_.try_emplace(key);
  if (!added) return *slot->second;
  slot->second = std::make_unique<std::vector<Instance>>();
  std::vector<Instance>* instances = slot->second.get();
  Binding binding;
  for (ClassId input : inputs_) binding.inputs.push_back(egraph_.type(input));
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const int rank = egraph_.type(egraph_.node(nodes_[n]).operands[0]).rank();
    if (!UnifyAttributes(rule.source.nodes[n], egraph_.op(nodes_[n]), rank, &binding)) {
      return *instances;
    }
  }
  std::vector<std::string> free_axes, free_degrees;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kNumber) {
      if (binding.numbers.count(variable.name) == 0) return *instances;
    } else if (variable.kind != VariableKind::kAttribute &&
               binding.variables.count(variable.name) == 0) {
      if (variable.kind == VariableKind::kSize) return *instances;
      (variable.kind == VariableKind::kAxis ? free_axes : free_degrees).push_back(variable.name);
    }
  }
  ChooseDegrees(rule, std::move(binding), std::move(free_degrees), free_axes, instances);
  return *instances;
}

void Saturation::ChooseDegrees(const Rule& rule, Binding binding,
                               std::vector<std::string> free_degrees,
                               const std::vector<std::string>& free_axes,
                               std::vector<Instance>* instances) {
  if (free_degrees.empty()) return FindInstances(rule, std::move(binding), free_axes, instances);
  const std::string name = std::move(free_degrees.back());
  free_degrees.pop_back();
  for (int64_t degree : options_.degrees) {
    binding.variables[name] = degree;
    ChooseDegrees(rule, binding, free_degrees, free_axes, instances);
  }
}

void Saturation::FindInstances(const Rule& rule, Binding binding,
                               std::vector<std::string> free_axes,
                               std::vector<Instance>* instances) {
  if (free_axes.empty()) return TryInstance(rule, binding, instances);
  for (const Condition& condition : rule.conditions) {
    if (condition.kind != Condition::Kind::kSplitsDim) continue;
    const std::vector<Binding> bindings = BindSplit(condition, binding);
    for (const Binding& bound : bindings) {
      std::vector<std::string> rest;
      for (const std::string& name : free_axes) {
        if (bound.variables.count(name) == 0) rest.push_back(name);
      }
      FindAxes(rule, bound, std::move(rest), instances);
    }
    return;
  }
  FindAxes(rule, std::move(binding), std::move(free_axes), instances);
}

// The bindings under which the condition's axes are those of one iteration dim.
std::vector<Binding> Saturation::BindSplit(const Condition& condition,
                                           const Binding& binding) const {
  std::vector<Binding> result;
  const ENodeId id = nodes_[condition.node];
  for (const SplittableDim& dim : SplittableDims(egraph_.op(id), OperandTypes(condition.node))) {
    Binding bound = binding;
    bool fits = dim.operand_axes.size() == condition.operand_axes.size() &&
                dim.output_axes.size() == condition.output_axes.size();
    const auto bind = [&](const std::optional<IntExpr>& expr, const std::optional<int64_t>& axis) {
      fits = fits && expr.has_value() == axis.has_value();
      if (!fits || !axis.has_value() || expr->kind != IntExpr::Kind::kVariable) return;
      fits = bound.variables.emplace(expr->variable, *axis).first->second == *axis;
    };
    for (size_t o = 0; fits && o < dim.operand_axes.size(); ++o) {
      bind(condition.operand_axes[o], dim.operand_axes[o]);
    }
    for (size_t t = 0; fits && t < dim.output_axes.size(); ++t) {
      bind(condition.output_axes[t], dim.output_axes[t]);
    }
    if (fits) result.push_back(std::move(bound));
  }
  return result;
}

void Saturation::FindAxes(const Rule& rule, Binding binding, std::vector<std::string> free_axes,
                          std::vector<Instance>* instances) {
  if (free_axes.empty()) return TryInstance(rule, binding, instances);
  const std::string name = std::move(free_axes.back());
  free_axes.pop_back();
  int rank = 0;
  for (const TensorType& type : binding.inputs) rank = std::max(rank, type.rank());
  for (int64_t axis = -rank; axis < 0; ++axis) {
    binding.variables[name] = axis;
    FindAxes(rule, binding, free_axes, instances);
  }
}

void Saturation::TryInstance(const Rule& rule, const Binding& binding,
                             std::vector<Instance>* instances) {
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const int rank = egraph_.type(egraph_.node(nodes_[n]).operands[0]).rank();
    if (!AttributesAgree(rule.source.nodes[n], egraph_.op(nodes_[n]), rank, binding)) return;
  }
  const bool admitted = Admits(
      rule, binding, [&](int n) { return std::make_pair(egraph_.op(nodes_[n]), OperandTypes(n)); });
  if (!admitted) return;
  absl::StatusOr<Graph> target = InstantiatePattern(rule.target, binding);
  if (!target.ok()) return;
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    const PatternRef ref = rule.source.outputs[o];
    const ClassId from =
        ref.node < 0 ? inputs_[ref.index] : egraph_.node(nodes_[ref.node]).outputs[ref.index];
    if (egraph_.type(from) != target->type(target->outputs()[o].tensor)) return;
  }
  Instance instance;
  for (const RuleVariable& variable : rule.variables) {
    if (auto found = binding.variables.find(variable.name); found != binding.variables.end()) {
      instance.variables.insert(*found);
    } else if (auto number = binding.numbers.find(variable.name); number != binding.numbers.end()) {
      instance.numbers.insert(*number);
    }
  }
  instance.saves_us = SavesUs(*target);
  instance.target = *std::move(target);
  instances->push_back(std::move(instance));
}

double Saturation::UsOf(const Operator& op, const std::vector<TensorType>& operands) {
  std::string key = op.ToString();
  for (const TensorType& type : operands) absl::StrAppend(&key, "|", type.ToString());
  const auto [us, added] = us_.try_emplace(std::move(key), 0);
  if (added) us->second = us_of_(op, operands);
  return us->second;
}

// Time of the source, assuming that its inner nodes have no other users, minus that of the target.
double Saturation::SavesUs(const Graph& target) {
  double us = 0;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!egraph_.IsStored(egraph_.node(nodes_[n]).outputs[0])) {
      us += UsOf(egraph_.op(nodes_[n]), OperandTypes(static_cast<int>(n)));
    }
  }
  std::vector<bool> stored;
  for (ClassId input : inputs_) stored.push_back(egraph_.IsStored(input));
  for (int id = static_cast<int>(inputs_.size()); id < target.num_nodes(); ++id) {
    const Node& node = target.node(id);
    std::vector<TensorType> operands;
    bool all_stored = true;
    for (TensorRef input : node.inputs) {
      operands.push_back(target.type(input));
      all_stored &= stored[input.node.value];
    }
    stored.push_back(all_stored && egraph_.IsPrepared(node.op.kind()));
    if (!stored.back()) us -= UsOf(node.op, operands);
  }
  return us;
}

void Saturation::Apply(const Found& found) {
  const Rule& rule = *found.plan->rule;
  const Graph& target = found.instance->target;
  Application application{&rule,
                          found.nodes,
                          found.swapped,
                          found.inputs,
                          found.instance->variables,
                          found.instance->numbers,
                          {}};
  std::vector<std::vector<ClassId>> classes;
  for (ClassId input : found.inputs) classes.push_back({input});
  for (int id = rule.num_inputs; id < target.num_nodes(); ++id) {
    const Node& node = target.node(id);
    std::vector<ClassId> operands;
    for (TensorRef input : node.inputs) operands.push_back(classes[input.node.value][input.output]);
    application.target.push_back(egraph_.Add(node.op, std::move(operands), node.outputs));
    classes.push_back(egraph_.node(application.target.back()).outputs);
  }
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    const PatternRef ref = rule.source.outputs[o];
    const TensorRef to = target.outputs()[o].tensor;
    const ClassId from = ref.node < 0 ? found.inputs[ref.index]
                                      : egraph_.node(found.nodes[ref.node]).outputs[ref.index];
    egraph_.Merge(from, classes[to.node.value][to.output]);
  }
  egraph_.applications().push_back(std::move(application));
}

}  // namespace isomer
