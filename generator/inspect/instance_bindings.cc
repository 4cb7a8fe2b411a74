// Where a rule applies with all degrees 2: bases, axes, and types of inputs.
#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "generator/assignments/bases.h"
#include "generator/assignments/call_bases.h"
#include "generator/assignments/sampler.h"
#include "generator/inspect/instances.h"
#include "pcg/support/hash.h"
#include "rules/calls/bind_call.h"
#include "rules/matching/conditions.h"

namespace isomer {
namespace {

constexpr int kMostRank = 4;
constexpr int kDraws = 24;

void Substitute(const std::map<std::string, int64_t>& axes, IntExpr* expr) {
  const auto axis = axes.find(expr->variable);
  if (axis == axes.end()) return;
  if (expr->kind == IntExpr::Kind::kVariable) *expr = IntExpr::Constant(axis->second);
  if (expr->kind == IntExpr::Kind::kSizeOf) *expr = IntExpr::SizeOf(expr->input, axis->second);
}

// The rule with its axis variables replaced, in the source alone: what bases are found from.
Rule AtAxes(const Rule& rule, const std::map<std::string, int64_t>& axes) {
  Rule fixed = rule;
  for (PatternNode& node : fixed.source.nodes) {
    for (AttributePattern& attribute : node.attributes) {
      if (auto* expr = std::get_if<IntExpr>(&attribute.value)) Substitute(axes, expr);
      if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
        for (IntExpr& expr : *list) Substitute(axes, &expr);
      }
    }
  }
  std::erase_if(fixed.variables, [&](const auto& v) { return axes.count(v.name) > 0; });
  return fixed;
}

// False if a condition between axes alone excludes them: cheap, and what excludes most.
bool AxesAgree(const Rule& rule, const std::map<std::string, int64_t>& axes) {
  Binding binding;
  binding.variables.insert(axes.begin(), axes.end());
  auto is_axis = [&](const IntExpr& expr) {
    return expr.kind == IntExpr::Kind::kConstant ||
           (expr.kind == IntExpr::Kind::kVariable && axes.count(expr.variable) > 0);
  };
  for (const Condition& c : rule.conditions) {
    if (!is_axis(c.left) || !is_axis(c.right)) continue;
    const int64_t left = Evaluate(c.left, binding), right = Evaluate(c.right, binding);
    if (c.kind == Condition::Kind::kEqual && left != right) return false;
    if (c.kind == Condition::Kind::kNotEqual && left == right) return false;
    if (c.kind == Condition::Kind::kAtMost && left > right) return false;
  }
  return true;
}

void ForEachAxes(const Rule& rule,
                 absl::FunctionRef<void(const std::map<std::string, int64_t>&)> f) {
  int highest = 0;
  for (const std::vector<int>& ranks : rule.ranks) {
    highest = std::max(highest, *std::max_element(ranks.begin(), ranks.end()));
  }
  std::vector<std::string> names;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kAxis) names.push_back(variable.name);
  }
  std::map<std::string, int64_t> axes;
  std::function<void(size_t)> choose = [&](size_t next) {
    if (next == names.size()) {
      if (AxesAgree(rule, axes)) f(axes);
      return;
    }
    for (int64_t axis = -1; axis >= -highest; --axis) {
      axes[names[next]] = axis;
      choose(next + 1);
    }
  };
  choose(0);
}

void SetDegrees(const Rule& rule, Binding* binding) {
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kDegree) binding->variables[variable.name] = 2;
  }
}

void SetNumbers(const Rule& rule, Binding* binding) {
  constexpr double kPrimes[] = {2, 3, 5, 7, 11, 13};
  size_t number = 0;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kNumber) {
      binding->numbers[variable.name] = kPrimes[number++ % std::size(kPrimes)];
    }
  }
}

bool Holds(const Rule& rule, const Binding& binding, TypeOracle* oracle) {
  for (const TensorType& type : binding.inputs) {
    if (!ValidateTensorType(type).ok()) return false;
    // Truth values do not add up.
    if (type.dtype == DataType::kBool && type.partials > 1) return false;
  }
  const std::optional<TypedPattern> source = InferPattern(rule.source, binding, oracle);
  if (!source.has_value()) return false;
  auto call = [&](int node) {
    std::vector<TensorType> operands;
    for (PatternRef ref : rule.source.nodes[node].inputs) {
      operands.push_back(source->TypeOf(binding, ref));
    }
    return std::make_pair(source->ops[node], operands);
  };
  return Admits(rule, binding, call) &&
         OutputTypes(rule.source, binding, oracle) == OutputTypes(rule.target, binding, oracle);
}

// What tells instances of one rule apart.
std::string KeyOf(const Binding& binding) {
  std::string key;
  for (const TensorType& type : binding.inputs) absl::StrAppend(&key, type.rank(), " ");
  for (const auto& [name, value] : binding.variables) absl::StrAppend(&key, value, " ");
  for (const auto& [name, value] : binding.attributes) {
    absl::StrAppend(&key, AttributeText(value), " ");
  }
  return key;
}

// Every input spread in one way: partial by 2, in 2 copies, or partitioned in 2 along one axis.
std::vector<Binding> SpreadAlike(const Binding& sequential) {
  int highest = 0;
  for (const TensorType& type : sequential.inputs) highest = std::max(highest, type.rank());
  std::vector<Binding> bindings(2 + highest, sequential);
  for (size_t i = 0; i < sequential.inputs.size(); ++i) {
    bindings[0].inputs[i].partials = 2;
    bindings[1].inputs[i].copies = 2;
    for (int from_end = 1; from_end <= sequential.inputs[i].rank(); ++from_end) {
      TensorType& type = bindings[1 + from_end].inputs[i];
      type.dims[type.rank() - from_end].degree = 2;
    }
  }
  return bindings;
}

// Inputs spread as the Combines and Reduces that they go to need.
Binding SpreadAsNeeded(const Rule& rule, Binding binding) {
  for (const PatternNode& node : rule.source.nodes) {
    if (node.inputs.size() != 1 || node.inputs[0].node >= 0) continue;
    TensorType& type = binding.inputs[node.inputs[0].index];
    const absl::StatusOr<Operator> op = InstantiateOperator(node, binding, type.rank());
    if (!op.ok()) continue;
    if (node.kind == OpKind::kReduce) type.partials = op->Int("degree");
    if (node.kind != OpKind::kCombine) continue;
    const absl::StatusOr<int> axis = NormalizeAxis(op->Int("axis"), type.rank());
    if (axis.ok()) type.dims[*axis].degree = op->Int("degree");
  }
  return binding;
}

// Gives the inputs types at which the rule applies: none parallel if that is possible.
bool FindInputTypes(const Rule& rule, TypeOracle* oracle, Random* random, Binding* binding) {
  if (Holds(rule, *binding, oracle)) return true;
  const Binding sequential = *binding;
  std::vector<Binding> spreads = SpreadAlike(sequential);
  spreads.insert(spreads.begin(), SpreadAsNeeded(rule, sequential));
  for (Binding& spread : spreads) {
    *binding = std::move(spread);
    if (Holds(rule, *binding, oracle)) return true;
  }
  for (int draw = 0; draw < kDraws; ++draw) {
    *binding = sequential;
    if (DrawInputTypes(rule.source, {1, 1, 2}, oracle, random, binding) &&
        Holds(rule, *binding, oracle)) {
      return true;
    }
  }
  *binding = sequential;
  return false;
}

// A family's axes are those that one dim of its call leads.
std::vector<Binding> WithSplits(const Rule& rule, const Condition& split, const Binding& base,
                                TypeOracle* oracle) {
  std::vector<Binding> bindings;
  const std::optional<TypedPattern> typed = InferPattern(rule.source, base, oracle);
  if (!typed.has_value()) return bindings;
  std::vector<TensorType> operands;
  for (PatternRef ref : rule.source.nodes[split.node].inputs) {
    operands.push_back(typed->TypeOf(base, ref));
  }
  for (const SplittableDim& dim : SplittableDims(typed->ops[split.node], operands)) {
    Binding binding = base;
    auto bind = [&](const auto& expressions, const auto& axes) {
      for (size_t i = 0; i < std::min(expressions.size(), axes.size()); ++i) {
        if (!expressions[i].has_value() || !axes[i].has_value()) continue;
        if (expressions[i]->kind == IntExpr::Kind::kVariable) {
          binding.variables[expressions[i]->variable] = *axes[i];
        }
      }
    };
    bind(split.operand_axes, dim.operand_axes);
    bind(split.output_axes, dim.output_axes);
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

}  // namespace

std::vector<Binding> InstancesAtDegreeTwo(const Rule& rule, TypeOracle* oracle, int64_t size) {
  Rule low = rule;
  std::erase_if(low.ranks, [](const std::vector<int>& ranks) {
    return *std::max_element(ranks.begin(), ranks.end()) > kMostRank;
  });
  if (low.ranks.empty()) low.ranks = rule.ranks;
  std::vector<Binding> instances;
  Random random(HashBytes("instances"));
  absl::flat_hash_set<std::string> found;
  auto consider = [&](Binding binding) {
    SetDegrees(low, &binding);
    const std::string key = KeyOf(binding);
    if (found.contains(key)) return;
    Binding primes = binding;
    SetNumbers(low, &primes);
    if (FindInputTypes(low, oracle, &random, &primes)) {
      instances.push_back(std::move(primes));
      found.insert(key);
    } else if (primes.numbers != binding.numbers &&
               FindInputTypes(low, oracle, &random, &binding)) {
      instances.push_back(std::move(binding));  // A rate that must be below 1.
      found.insert(key);
    }
  };
  if (const Condition* split = SplitOf(low); split != nullptr) {
    // At degree 1 the axes that the dim ties are of no account: WithSplits gives them.
    std::map<std::string, int64_t> tied;
    for (const auto* axes : {&split->operand_axes, &split->output_axes}) {
      for (const std::optional<IntExpr>& axis : *axes) {
        if (axis.has_value()) tied[axis->variable] = -1;
      }
    }
    std::vector<Binding> bases = BasesOf(AtAxes(low, tied), size, oracle);
    for (Binding& base : bases) base.variables.insert(tied.begin(), tied.end());
    for (Binding& base : BasesAroundCall(low, split->node, oracle)) {
      bases.push_back(std::move(base));
    }
    for (const Binding& base : bases) {
      for (Binding& binding : WithSplits(low, *split, base, oracle)) consider(std::move(binding));
    }
    return instances;
  }
  ForEachAxes(low, [&](const std::map<std::string, int64_t>& axes) {
    for (Binding& base : BasesOf(AtAxes(low, axes), size, oracle)) {
      base.variables.insert(axes.begin(), axes.end());
      consider(std::move(base));
    }
  });
  return instances;
}

}  // namespace isomer
