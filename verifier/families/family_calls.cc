#include "verifier/families/family_calls.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/operator_facts.h"
#include "rules/calls/bind_call.h"
#include "verifier/terms/instance_symmetry.h"
#include "verifier/terms/representative_calls.h"
#include "verifier/terms/rule_instance.h"
#include "verifier/types/type_form.h"

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

// Binds the inputs of a call and the variables in its attributes to those of `call`. False: the
// pattern is of other calls, or holds lists, which say more than that.
bool BindCall(const PatternNode& node, const OperatorCall& call, Binding* binding) {
  const bool has_lists = std::any_of(
      node.attributes.begin(), node.attributes.end(), [](const AttributePattern& attribute) {
        return std::holds_alternative<std::vector<IntExpr>>(attribute.value) ||
               std::holds_alternative<SwapAxes>(attribute.value);
      });
  binding->inputs = call.operands;
  return !has_lists && call.operands.size() == node.inputs.size() &&
         BindAttributes(node, call, binding);
}

// An instance at small sizes, not parallel.
Binding SmallBase(const Rule& rule, const RuleInstance& instance) {
  auto small = [](const Extent& size) {
    int64_t value = size.constant();
    for (const auto& [symbol, coefficient] : size.terms()) {
      value += coefficient * (symbol % 2 == 0 ? 4 : 2);
    }
    return value;
  };
  Binding base;
  const std::vector<DataType> types = DataTypesTaken(rule);
  for (const Shape& shape : instance.inputs) {
    std::vector<int64_t> sizes;
    for (const Extent& size : shape) sizes.push_back(small(size));
    base.inputs.push_back(SequentialType(std::move(sizes), types[base.inputs.size()]));
  }
  for (const auto& [name, axis] : instance.axes) base.variables[name] = axis;
  for (const auto& [name, size] : instance.sizes) base.variables[name] = small(size);
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kNumber) base.numbers[variable.name] = 3;
  }
  return base;
}

// Ranks up to which calls are looked at one by one, and tried.
constexpr int kMostTriedRank = 4;

int HighestOf(const std::vector<int>& ranks) {
  return ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
}

std::string WithRanks(const std::string& text, const std::vector<int>& ranks) {
  return absl::StrCat(text, ";", absl::StrJoin(ranks, ","));
}

// Calls visit(shapes) for operands of these ranks that broadcast as in NumPy: at each place,
// counted from the end, any of the operands that have it have a size there, and the others 1. Of
// calls that differ in the order of places alone, one. Until it returns false.
bool ForEachBroadcast(const std::vector<int>& ranks,
                      const std::function<bool(const std::vector<Shape>&)>& visit) {
  std::vector<Shape> shapes;
  for (const int rank : ranks) shapes.emplace_back(rank, Extent(1));
  const auto present = [&](int place) {
    uint64_t operands = 0;
    for (size_t o = 0; o < ranks.size(); ++o) {
      if (ranks[o] > place) operands |= uint64_t{1} << o;
    }
    return operands;
  };
  const int places = HighestOf(ranks);
  const std::function<bool(int, uint64_t)> choose = [&](int place, uint64_t least) {
    if (place == places) return visit(shapes);
    const uint64_t all = present(place);
    if (place > 0 && all != present(place - 1)) least = 1;
    for (uint64_t sized = least; sized <= all; ++sized) {
      if ((sized & ~all) != 0) continue;
      for (size_t o = 0; o < ranks.size(); ++o) {
        if (ranks[o] <= place) continue;
        shapes[o][ranks[o] - 1 - place] = sized >> o & 1 ? Extent::Symbol(place) : Extent(1);
      }
      if (!choose(place + 1, sized)) return false;
    }
    return true;
  };
  return choose(0, 1);
}

// The facts of an operator without attributes whose calls treat their dims alike, at these ranks.
// Nullopt: some call does not.
std::optional<CallFacts> FactsOfBroadcasts(const Operator& op, const std::vector<int>& ranks) {
  CallFacts facts;
  const bool alike = ForEachBroadcast(ranks, [&](const std::vector<Shape>& shapes) {
    const absl::StatusOr<Declaration> declaration = Declare(op, shapes);
    if (!declaration.ok() || !TreatsDimsAlike(*declaration)) return false;
    facts.Add(*declaration, PassesPartials(op));
    return true;
  });
  return alike ? std::optional(facts) : std::nullopt;
}

}  // namespace

// Low ranks first: if every case of sizes there treats its dims alike, there are sizes and ones at
// the places of higher ranks, too; else all cases are looked at there.
bool FamilyCallBook::AllCalls(const Rule& bare, FamilyCalls* calls) {
  const PatternNode& node = bare.source.nodes[0];
  bool alike = node.attributes.empty() && node.inputs.size() > 1, any_low = false;
  const auto add = [&](const CallsAtRanks& at) {
    calls->facts.Merge(at.calls.facts);
    calls->lemmas.insert(at.calls.lemmas.begin(), at.calls.lemmas.end());
    calls->bases.insert(calls->bases.end(), at.calls.bases.begin(), at.calls.bases.end());
    return at.calls.all;
  };
  for (const std::vector<int>& ranks : bare.ranks) {
    if (HighestOf(ranks) > kMostTriedRank) continue;
    const CallsAtRanks& at = CallsAt(bare, ranks, false);
    if (!add(at)) return false;
    alike = alike && at.alike;
    any_low = any_low || !at.calls.bases.empty();
  }
  alike = alike && any_low;
  for (const std::vector<int>& ranks : bare.ranks) {
    if (HighestOf(ranks) > kMostTriedRank && !add(CallsAt(bare, ranks, alike))) return false;
  }
  return !calls->bases.empty();
}

const FamilyCallBook::CallsAtRanks& FamilyCallBook::CallsAt(const Rule& bare,
                                                            const std::vector<int>& ranks,
                                                            bool alike) {
  const auto [found, is_new] =
      at_ranks_.try_emplace(WithRanks(bare.ToString(), ranks), CallsAtRanks());
  CallsAtRanks& at = found->second;
  if (!is_new) return at;
  FamilyCalls& calls = at.calls;
  const bool is_high = HighestOf(ranks) > kMostTriedRank;
  const OpKind kind = bare.source.nodes[0].kind;
  if (is_high) calls.lemmas.insert(absl::StrCat("pieces_of_", OpName(kind)));
  if (alike) {
    const std::optional<CallFacts> facts = FactsOfBroadcasts(Operator(kind), ranks);
    calls.all = facts.has_value();
    if (facts) calls.facts = *facts;
    return at;
  }
  Rule at_these = bare;
  at_these.ranks = {ranks};
  const absl::StatusOr<std::vector<RuleInstance>> instances = InstancesOf(at_these);
  calls.all = instances.ok();
  if (!instances.ok()) return at;
  for (const RuleInstance& instance : *instances) {
    const Call& call = instance.source[0];
    calls.facts.Add(*call.declaration, call.passes_partials);
    at.alike = at.alike && TreatsDimsAlike(*call.declaration);
    if (is_high) continue;
    pieces_.Add(call, &calls.lemmas);
    calls.bases.push_back(SmallBase(bare, instance));
  }
  return at;
}

// Representative calls, and for what is known of calls those of other ranks that are made of them.
void FamilyCallBook::RepresentativesOf(const Rule& bare, FamilyCalls* calls) {
  const PatternNode& node = bare.source.nodes[0];
  const auto [known, is_new] = representatives_.try_emplace(node.kind, std::vector<OperatorCall>());
  std::vector<OperatorCall>& ranked = known->second;
  const std::vector<OperatorCall>& samples = RepresentativeCalls(node.kind);
  if (is_new) ranked = CallsOfRanks(samples);
  const auto add = [&](const OperatorCall& sample, Binding* base) {
    if (!BindCall(node, sample, base)) return false;
    const absl::StatusOr<Declaration> declaration = DeclarationOf(sample);
    if (declaration.ok()) calls->facts.Add(*declaration, PassesPartials(sample.op));
    return declaration.ok();
  };
  for (const OperatorCall& sample : samples) {
    Binding base;
    if (add(sample, &base)) calls->bases.push_back(std::move(base));
  }
  for (const OperatorCall& call : ranked) {
    Binding base;
    add(call, &base);
  }
}

const FamilyCalls& FamilyCallBook::CallsOf(const Rule& rule, const PatternNode& call) {
  const Rule bare = BareRule(rule, call);
  std::string key = bare.ToString();
  for (const std::vector<int>& ranks : bare.ranks) key = WithRanks(key, ranks);
  auto [at, is_new] = known_.emplace(std::move(key), FamilyCalls());
  FamilyCalls& calls = at->second;
  if (!is_new) return calls;
  calls.all = AllCalls(bare, &calls);
  if (calls.all) return calls;
  calls = FamilyCalls();
  RepresentativesOf(bare, &calls);
  return calls;
}

namespace {

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
