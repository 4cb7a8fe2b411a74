#include "verifier/family_calls.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/operator_facts.h"
#include "verifier/rule_instance.h"
#include "verifier/sample_calls.h"
#include "verifier/type_form.h"

namespace isomer {
namespace {

// The rule "call -> call", for what rules know of calls.
Rule BareRule(const Rule& rule, const PatternNode& call) {
  Rule bare;
  bare.num_inputs = rule.num_inputs;
  bare.ranks = rule.ranks;
  std::set<std::string> used;
  for (const AttributePattern& attribute : call.attributes) {
    if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      used.insert(variable->name);
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      used.insert(number->variables.begin(), number->variables.end());
    } else if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      used.insert(expr->variable);
    } else if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
      for (const IntExpr& item : *list) used.insert(item.variable);
    }
  }
  for (const RuleVariable& variable : rule.variables) {
    if (used.contains(variable.name)) bare.variables.push_back(variable);
  }
  PatternNode node = call;
  node.inputs.clear();
  for (int o = 0; o < rule.num_inputs; ++o) node.inputs.push_back(PatternRef::Input(o));
  bare.source.nodes = {std::move(node)};
  bare.source.outputs = {PatternRef::Node(0)};
  bare.target = bare.source;
  return bare;
}

// Binds the variables in the pattern's attributes to the call's attributes. False: they differ.
bool BindCall(const PatternNode& node, const RepresentativeCall& call, Binding* binding) {
  binding->inputs = call.operands;
  const int rank = call.operands[0].rank();
  for (const AttributePattern& attribute : node.attributes) {
    const AttributeValue* value = call.op.Find(attribute.name);
    if (value == nullptr) return false;
    if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      binding->attributes[variable->name] = *value;
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      const double known = std::get<double>(*value);
      if (number->variables.empty() && number->constant == known) continue;
      if (number->variables.size() != 1 || number->constant != 1) return false;
      binding->numbers[number->variables[0]] = known;
    } else if (auto* expr = std::get_if<IntExpr>(&attribute.value)) {
      const int64_t known = std::get<int64_t>(*value);
      if (*expr == IntExpr::Constant(known)) continue;
      if (expr->kind != IntExpr::Kind::kVariable) return false;
      binding->variables[expr->variable] =
          attribute.name == "axis" && known >= 0 ? known - rank : known;
    } else {
      return false;
    }
  }
  return call.operands.size() == node.inputs.size();
}

// An instance at small sizes, not parallel.
Binding SmallBase(const RuleInstance& instance) {
  auto small = [](const Extent& size) {
    int64_t value = size.constant();
    for (const auto& [symbol, coefficient] : size.terms()) {
      value += coefficient * (symbol % 2 == 0 ? 4 : 2);
    }
    return value;
  };
  Binding base;
  const std::vector<DataType> types = DataTypesTaken(*instance.rule);
  for (const Shape& shape : instance.inputs) {
    std::vector<int64_t> sizes;
    for (const Extent& size : shape) sizes.push_back(small(size));
    base.inputs.push_back(SequentialType(std::move(sizes), types[base.inputs.size()]));
  }
  for (const auto& [name, axis] : instance.axes) base.variables[name] = axis;
  for (const auto& [name, size] : instance.sizes) base.variables[name] = small(size);
  for (const RuleVariable& variable : instance.rule->variables) {
    if (variable.kind == VariableKind::kNumber) base.numbers[variable.name] = 3;
  }
  return base;
}

}  // namespace

bool FamilyCallBook::AllCalls(const Rule& bare, PieceLemmas* pieces, FamilyCalls* calls) {
  const absl::StatusOr<std::vector<RuleInstance>> instances = InstancesOf(bare);
  if (!instances.ok() || instances->empty()) return false;
  for (const RuleInstance& instance : *instances) {
    const Call& call = instance.source[0];
    pieces->Add(call, &calls->lemmas);
    calls->facts.Add(*call.declaration, call.passes_partials);
    calls->bases.push_back(SmallBase(instance));
  }
  return true;
}

const FamilyCalls& FamilyCallBook::CallsOf(const Rule& rule, const PatternNode& call) {
  const Rule bare = BareRule(rule, call);
  std::string key = bare.ToString();
  for (const std::vector<int>& ranks : bare.ranks) {
    absl::StrAppend(&key, ";", absl::StrJoin(ranks, ","));
  }
  auto [at, is_new] = known_.emplace(std::move(key), FamilyCalls());
  FamilyCalls& calls = at->second;
  if (!is_new) return calls;
  calls.all = AllCalls(bare, &pieces_, &calls);
  if (calls.all) return calls;
  calls = FamilyCalls();
  for (const RepresentativeCall& sample : RepresentativeCalls(call.kind)) {
    Binding base;
    if (!BindCall(bare.source.nodes[0], sample, &base)) continue;
    std::vector<Shape> shapes;
    for (const TensorType& operand : sample.operands) shapes.push_back(operand.GlobalShape());
    const absl::StatusOr<Declaration> declaration = Declare(sample.op, shapes);
    if (!declaration.ok()) continue;
    calls.facts.Add(*declaration, PassesPartials(sample.op));
    calls.bases.push_back(std::move(base));
  }
  return calls;
}

namespace {

// Binds the axes that the condition names to those that the dim leads. False: they differ.
bool BindAxes(const Condition& split, const SplittableDim& dim, Binding* binding) {
  auto bind = [&](const auto& expressions, const auto& axes) {
    if (expressions.size() != axes.size()) return false;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (expressions[i].has_value() != axes[i].has_value()) return false;
      if (!axes[i].has_value() || expressions[i]->kind != IntExpr::Kind::kVariable) continue;
      const int64_t axis = *axes[i];
      if (binding->variables.emplace(expressions[i]->variable, axis).first->second != axis) {
        return false;
      }
    }
    return true;
  };
  return bind(split.operand_axes, dim.operand_axes) && bind(split.output_axes, dim.output_axes);
}

// Calls f(binding, the dim or null) with all variables of the rule bound. Without `split` the dim
// is null, and if `all_dims` each dim in turn.
void ForEachDim(const Rule& rule, const FamilySide& source, const Condition* split, bool all_dims,
                Binding binding,
                const std::function<void(const Binding&, const SplittableDim*)>& f) {
  const absl::StatusOr<Operator> op =
      InstantiateOperator(rule.source.nodes[source.node], binding, binding.inputs[0].rank());
  if (!op.ok()) return;
  int64_t rank = 1;
  for (const TensorType& input : binding.inputs) rank = std::max<int64_t>(rank, input.rank());
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree) binding.variables[variable.name] = 2;
  }
  const std::function<void(const Binding&, const SplittableDim*)> bind_rest =
      [&](const Binding& bound, const SplittableDim* dim) {
        for (const RuleVariable& variable : rule.variables) {
          if (variable.kind != VariableKind::kAxis || bound.variables.contains(variable.name)) {
            continue;
          }
          Binding next = bound;
          for (int64_t axis = -rank; axis < 0; ++axis) {
            next.variables[variable.name] = axis;
            bind_rest(next, dim);
          }
          return;
        }
        f(bound, dim);
      };
  if (split == nullptr) bind_rest(binding, nullptr);
  if (split == nullptr && !all_dims) return;
  for (const SplittableDim& dim : SplittableDims(*op, binding.inputs)) {
    Binding bound = binding;
    if (split == nullptr || BindAxes(*split, dim, &bound)) bind_rest(bound, &dim);
  }
}

// How an operand is held: its degree along the axis that the dim leads, copies, partials.
struct Holding {
  int64_t degree = 1, copies = 1, partials = 1;
};

// The holding of a rule input from which `node` makes `wanted`, by a degree of 2; or nullopt.
std::optional<Holding> Before(const PatternNode* node, Holding wanted) {
  if (node == nullptr) return wanted;
  auto halve = [](int64_t* value) {
    if (*value % 2 != 0) return false;
    *value /= 2;
    return true;
  };
  switch (node->kind) {
    case OpKind::kPartition:
      return halve(&wanted.degree) ? std::optional(wanted) : std::nullopt;
    case OpKind::kReplicate:
      return halve(&wanted.copies) ? std::optional(wanted) : std::nullopt;
    case OpKind::kCombine:
      wanted.degree *= 2;
      return wanted;
    default:
      wanted.partials *= 2;
      return wanted;
  }
}

// False: there is no such type.
bool Hold(const Holding& holding, const SplittableDim* dim, size_t o, TensorType* type) {
  type->copies = holding.copies;
  type->partials = holding.partials;
  if (holding.degree == 1) return true;
  if (dim == nullptr || !dim->operand_axes[o].has_value()) return false;
  Dim& led = type->dims[type->dims.size() + *dim->operand_axes[o]];
  led.degree = holding.degree;
  return led.size % led.degree == 0;
}

}  // namespace

std::vector<Binding> TrialBindings(const Rule& rule, const FamilySide& source,
                                   const Condition* split, const Binding& base) {
  // Of the call: the degree of the dim, copies, and partials of the operands in `reduced`.
  struct Level {
    int64_t degree, copies, partials;
  };
  static constexpr Level kLevels[] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1},
                                      {1, 2, 1}, {2, 2, 1}, {1, 1, 2}};
  const std::optional<Family> family = TakeApart(rule);
  std::vector<Binding> bindings;
  ForEachDim(rule, source, split, false, base, [&](const Binding& bound, const SplittableDim* dim) {
    for (const Level& level : kLevels) {
      if (dim == nullptr && level.degree > 1) continue;
      Binding binding = bound;
      bool fits = true;
      for (size_t o = 0; fits && o < binding.inputs.size(); ++o) {
        const bool led = dim != nullptr && dim->operand_axes[o].has_value();
        const bool sums = !family || family->reduced[o];
        Holding wanted{led ? level.degree : 1, level.copies * (led ? 1 : level.degree), 1};
        (sums ? wanted.partials : wanted.copies) *= level.partials;
        const std::optional<Holding> holding = Before(source.operands[o], wanted);
        fits = holding.has_value() && Hold(*holding, dim, o, &binding.inputs[o]);
      }
      if (fits) bindings.push_back(std::move(binding));
    }
  });
  return bindings;
}

std::vector<Binding> WildBindings(const Rule& rule, const FamilySide& source,
                                  const Condition* split, const Binding& base) {
  // Those after the first five occur where tasks of several dims share a shard.
  static constexpr Holding kHoldings[] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2},
                                          {4, 1, 1}, {1, 4, 1}, {1, 2, 2}, {2, 2, 1}};
  const size_t count = base.inputs.size() > 3 ? 5 : std::size(kHoldings);
  std::vector<Binding> bindings;
  ForEachDim(rule, source, split, true, base, [&](const Binding& bound, const SplittableDim* dim) {
    Binding binding = bound;
    const std::function<void(size_t)> choose = [&](size_t o) {
      if (o == binding.inputs.size()) {
        bindings.push_back(binding);
        return;
      }
      const TensorType before = binding.inputs[o];
      for (size_t h = 0; h < count; ++h) {
        if (Hold(kHoldings[h], dim, o, &binding.inputs[o])) choose(o + 1);
        binding.inputs[o] = before;
      }
    };
    choose(0);
  });
  return bindings;
}

}  // namespace isomer
