#include "generator/inspect/instances.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "generator/bases.h"
#include "generator/sample_calls.h"
#include "generator/sampler.h"
#include "pcg/support/hash.h"
#include "rules/conditions.h"

namespace isomer {
namespace {

constexpr int kMostRank = 4;
// Above this many inputs, permutations are too many to try; names are as the rule has them.
constexpr int kMostPermuted = 6;
constexpr int kDraws = 24;

const Condition* SplitOf(const Rule& rule) {
  for (const Condition& condition : rule.conditions) {
    if (condition.kind == Condition::Kind::kSplitsDim) return &condition;
  }
  return nullptr;
}

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
  std::erase_if(fixed.variables, [](const auto& v) { return v.kind == VariableKind::kAxis; });
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

// Gives the inputs types at which the rule applies: none parallel if that is possible.
bool FindInputTypes(const Rule& rule, TypeOracle* oracle, Random* random, Binding* binding) {
  if (Holds(rule, *binding, oracle)) return true;
  const Binding sequential = *binding;
  for (int draw = 0; draw < kDraws; ++draw) {
    *binding = sequential;
    if (DrawInputTypes(rule.source, {1, 1, 2}, oracle, random, binding) &&
        Holds(rule, *binding, oracle)) {
      return true;
    }
  }
  return false;
}

// The example calls of a rule whose source is one call: they have the broadcasts and the attributes
// that matter.
std::vector<Binding> BasesOfExamples(const Rule& rule) {
  const PatternNode& node = rule.source.nodes[0];
  std::vector<Binding> bases;
  for (const SampleCall& call : SampleCalls(node.kind)) {
    if (static_cast<int>(call.operands.size()) != rule.num_inputs) continue;
    Binding binding;
    binding.inputs = call.operands;
    for (const AttributePattern& a : node.attributes) {
      auto* variable = std::get_if<AttributeVariable>(&a.value);
      if (variable != nullptr) binding.attributes[variable->name] = *call.op.Find(a.name);
      auto* number = std::get_if<NumberExpr>(&a.value);
      if (number != nullptr && number->variables.size() == 1) {
        binding.numbers[number->variables[0]] = call.op.Number(a.name);
      }
    }
    bases.push_back(std::move(binding));
  }
  return bases;
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

// One side, its attributes instantiated.
struct ConcreteSide {
  const Pattern* pattern;
  std::vector<uint64_t> ops;  // hashes of operators
};

// The hash of an operator without what depends on sizes, axes counted from the end.
uint64_t HashOf(Operator op, int rank) {
  if (const AttributeValue* sizes = op.Find("sizes");
      sizes != nullptr && std::holds_alternative<std::vector<Extent>>(*sizes)) {
    op.Set("sizes", std::vector<Extent>(op.Extents("sizes").size(), 1));
  }
  if (const AttributeValue* axis = op.Find("axis");
      axis != nullptr && std::holds_alternative<int64_t>(*axis) && op.Int("axis") >= 0) {
    op.Set("axis", op.Int("axis") - rank);
  }
  return op.Hash();
}

uint64_t HashOf(const ConcreteSide& side, const std::vector<uint64_t>& inputs) {
  std::vector<uint64_t> nodes;
  auto hash_of = [&](PatternRef ref) {
    return ref.node < 0 ? inputs[ref.index] : HashCombine(nodes[ref.node], ref.index);
  };
  for (size_t n = 0; n < side.ops.size(); ++n) {
    const PatternNode& node = side.pattern->nodes[n];
    std::vector<uint64_t> operands;
    for (PatternRef ref : node.inputs) operands.push_back(hash_of(ref));
    if (node.kind == OpKind::kAdd || node.kind == OpKind::kMul) {
      std::sort(operands.begin(), operands.end());
    }
    uint64_t hash = side.ops[n];
    for (uint64_t operand : operands) hash = HashCombine(hash, operand);
    nodes.push_back(hash);
  }
  uint64_t hash = 0;
  for (PatternRef ref : side.pattern->outputs) hash = HashCombine(hash, hash_of(ref));
  return hash;
}

std::optional<ConcreteSide> Concrete(const Pattern& pattern, const Binding& binding,
                                     TypeOracle* oracle) {
  const std::optional<TypedPattern> typed = InferPattern(pattern, binding, oracle);
  if (!typed.has_value()) return std::nullopt;
  ConcreteSide side{&pattern, {}};
  for (size_t n = 0; n < typed->ops.size(); ++n) {
    const int rank = typed->TypeOf(binding, pattern.nodes[n].inputs[0]).rank();
    side.ops.push_back(HashOf(typed->ops[n], rank));
  }
  return side;
}

}  // namespace

std::optional<uint64_t> InstanceHash(const Rule& rule, const Binding& binding, TypeOracle* oracle) {
  const auto source = Concrete(rule.source, binding, oracle);
  const auto target = Concrete(rule.target, binding, oracle);
  if (!source.has_value() || !target.has_value()) return std::nullopt;
  std::vector<int> names(rule.num_inputs);
  std::iota(names.begin(), names.end(), 0);
  std::optional<uint64_t> least;
  do {
    std::vector<uint64_t> inputs;
    for (int i = 0; i < rule.num_inputs; ++i) {
      inputs.push_back(HashCombine(names[i], binding.inputs[i].rank()));
    }
    const uint64_t hash = HashCombine(HashOf(*source, inputs), HashOf(*target, inputs));
    least = std::min(least.value_or(hash), hash);
  } while (rule.num_inputs <= kMostPermuted && std::next_permutation(names.begin(), names.end()));
  return least;
}

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
    std::vector<Binding> bases = BasesOf(low, size, oracle);
    for (Binding& base : BasesOfExamples(low)) bases.push_back(std::move(base));
    for (Binding& base : bases) {
      SetDegrees(low, &base);
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

bool InstanceCounter::Insert(const Rule& rule, const Binding& binding) {
  const std::optional<uint64_t> hash = InstanceHash(rule, binding, &oracle_);
  if (!hash.has_value() || !known_.insert(*hash).second) return false;
  if (!rule.reversible) return true;
  const std::optional<uint64_t> inverse = InstanceHash(Inverse(rule), binding, &oracle_);
  return !inverse.has_value() || known_.insert(*inverse).second || *inverse == *hash;
}

int64_t InstanceCounter::Add(const Rule& rule) {
  int64_t added = 0;
  for (const Binding& binding : InstancesAtDegreeTwo(rule, &oracle_)) {
    added += Insert(rule, binding);
  }
  return added;
}

}  // namespace isomer
