#include "generator/assignments/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "pcg/support/check.h"
#include "rules/matching/conditions.h"

namespace isomer {
namespace {

constexpr size_t kMostConditions = 5;

std::vector<IntExpr> VariablesOf(const Rule& rule, VariableKind kind) {
  std::vector<IntExpr> result;
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == kind) result.push_back(IntExpr::Variable(variable.name));
  }
  return result;
}

// Axes that the patterns name: variables and constants. A Linear sums over the last of x as a
// whole.
std::vector<IntExpr> AxesOf(const Rule& rule) {
  std::vector<IntExpr> axes = VariablesOf(rule, VariableKind::kAxis);
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      const IntExpr last = IntExpr::Constant(-1);
      if (node.kind == OpKind::kLinear && std::find(axes.begin(), axes.end(), last) == axes.end()) {
        axes.push_back(last);
      }
      for (const AttributePattern& attribute : node.attributes) {
        std::vector<IntExpr> named;
        if (auto* expr = std::get_if<IntExpr>(&attribute.value)) named = {*expr};
        if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) named = *list;
        if (attribute.name != "axis" && attribute.name != "axes") continue;
        for (const IntExpr& axis : named) {
          if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
        }
      }
    }
  }
  return axes;
}

IntExpr SizeAt(int input, const IntExpr& axis) {
  return axis.kind == IntExpr::Kind::kVariable ? IntExpr::SizeOf(input, axis.variable)
                                               : IntExpr::SizeOf(input, axis.constant);
}

bool HoldsAt(const Condition& condition, const Binding& binding) {
  return ConditionHolds(condition, binding,
                        [](int) -> std::pair<Operator, std::vector<TensorType>> {
                          ISOMER_CHECK(false);  // The vocabulary has no kSplitsDim.
                          return {};
                        });
}

// A set of bindings, by place. Search takes intersections of these again and again.
using BindingSet = absl::InlinedVector<uint64_t, 8>;
constexpr size_t kWordBits = 64;

BindingSet EmptySet(size_t bindings) { return BindingSet((bindings + kWordBits - 1) / kWordBits); }
void Insert(size_t binding, BindingSet* set) {
  (*set)[binding / kWordBits] |= uint64_t{1} << binding % kWordBits;
}
bool Contains(const BindingSet& set, size_t binding) {
  return (set[binding / kWordBits] >> binding % kWordBits & 1) != 0;
}
BindingSet AllOf(size_t bindings) {
  BindingSet set = EmptySet(bindings);
  for (size_t i = 0; i < bindings; ++i) Insert(i, &set);
  return set;
}
int CountOf(const BindingSet& set) {
  return std::accumulate(set.begin(), set.end(), 0,
                         [](int sum, uint64_t word) { return sum + std::popcount(word); });
}
std::optional<size_t> FirstOf(const BindingSet& set) {
  for (size_t w = 0; w < set.size(); ++w) {
    if (set[w] != 0) return w * kWordBits + static_cast<size_t>(std::countr_zero(set[w]));
  }
  return std::nullopt;
}
void Intersect(const BindingSet& with, BindingSet* set) {
  for (size_t w = 0; w < set->size(); ++w) (*set)[w] &= with[w];
}

// Where each condition holds.
std::vector<BindingSet> Tabulate(const std::vector<Condition>& conditions,
                                 const std::vector<Binding>& bindings) {
  std::vector<BindingSet> table;
  for (const Condition& condition : conditions) {
    BindingSet& row = table.emplace_back(EmptySet(bindings.size()));
    for (size_t i = 0; i < bindings.size(); ++i) {
      if (HoldsAt(condition, bindings[i])) Insert(i, &row);
    }
  }
  return table;
}

class ConditionSearch {
 public:
  ConditionSearch(const std::vector<Condition>& vocabulary, const std::vector<Binding>& successes,
                  const std::vector<Binding>& failures)
      : all_successes_(AllOf(successes.size())),
        all_failures_(AllOf(failures.size())),
        successes_(Tabulate(vocabulary, successes)),
        failures_(Tabulate(vocabulary, failures)) {}

  // The best set of at most `size` conditions, as places in the vocabulary.
  std::optional<std::vector<int>> Best(size_t size) {
    best_.reset();
    best_admitted_ = 0;
    chosen_.clear();
    Extend(size, all_failures_, all_successes_);
    return best_;
  }
  // How many successes the last answer admits.
  int admitted() const { return best_admitted_; }

 private:
  // Some condition must exclude the first failure that is left, so only those are tried.
  void Extend(size_t left, const BindingSet& failing, const BindingSet& holding) {
    const int admitted = CountOf(holding);
    if (admitted <= best_admitted_) return;  // Earlier in the vocabulary is better.
    const std::optional<size_t> first = FirstOf(failing);
    if (!first.has_value()) {
      best_ = chosen_;
      best_admitted_ = admitted;
      return;
    }
    if (left == 0) return;
    for (size_t c = 0; c < failures_.size(); ++c) {
      if (Contains(failures_[c], *first)) continue;
      BindingSet f = failing, h = holding;
      Intersect(failures_[c], &f);
      Intersect(successes_[c], &h);
      chosen_.push_back(static_cast<int>(c));
      Extend(left - 1, f, h);
      chosen_.pop_back();
    }
  }

  const BindingSet all_successes_, all_failures_;
  const std::vector<BindingSet> successes_, failures_;  // where each condition holds
  std::vector<int> chosen_;
  std::optional<std::vector<int>> best_;
  int best_admitted_ = 0;
};

}  // namespace

std::vector<Condition> Vocabulary(const Rule& rule) {
  std::vector<Condition> result;
  const std::vector<IntExpr> axes = AxesOf(rule);
  const std::vector<IntExpr> axis_variables = VariablesOf(rule, VariableKind::kAxis);
  const std::vector<IntExpr> degrees = VariablesOf(rule, VariableKind::kDegree);
  using Kind = Condition::Kind;
  for (const IntExpr& i : axis_variables) {
    for (int64_t value : {-1, -2, -3}) {
      result.push_back({.kind = Kind::kNotEqual, .left = i, .right = IntExpr::Constant(value)});
    }
    for (int64_t value : {-2, -3}) {
      result.push_back({.kind = Kind::kAtMost, .left = i, .right = IntExpr::Constant(value)});
    }
    for (const IntExpr& j : axis_variables) {
      if (i.variable < j.variable) {
        result.push_back({.kind = Kind::kNotEqual, .left = i, .right = j});
      }
    }
  }
  for (const IntExpr& degree : degrees) {
    for (const IntExpr& axis : axes) {
      for (int input = 0; input < rule.num_inputs; ++input) {
        result.push_back({.kind = Kind::kDivides, .left = degree, .right = axis, .input = input});
      }
    }
  }
  for (int a = 0; a < rule.num_inputs; ++a) {
    for (int b = a + 1; b < rule.num_inputs; ++b) {
      for (const IntExpr& axis : axes) {
        result.push_back({.kind = Kind::kEqual, .left = SizeAt(a, axis), .right = SizeAt(b, axis)});
      }
    }
  }
  for (int a = 0; a < rule.num_inputs && rule.num_inputs > 1; ++a) {
    for (const IntExpr& axis : axes) {
      result.push_back(
          {.kind = Kind::kEqual, .left = SizeAt(a, axis), .right = IntExpr::Constant(1)});
    }
  }
  for (int input = 0; input < rule.num_inputs; ++input) {
    result.push_back({.kind = Kind::kNoPartials, .input = input});
    for (const IntExpr& axis : axes) {
      result.push_back({.kind = Kind::kUnpartitioned, .right = axis, .input = input});
    }
  }
  for (int a = 0; a < rule.num_inputs; ++a) {
    for (int b = a + 1; b < rule.num_inputs; ++b) {
      result.push_back({.kind = Kind::kSameType, .input = a, .input_b = b});
    }
  }
  return result;
}

std::optional<std::vector<Condition>> ExcludeFailures(const Rule& rule,
                                                      const std::vector<Binding>& successes,
                                                      const std::vector<Binding>& failures) {
  if (successes.empty()) return std::nullopt;
  if (failures.empty()) return std::vector<Condition>();
  const std::vector<Condition> vocabulary = Vocabulary(rule);
  ConditionSearch search(vocabulary, successes, failures);
  // One condition more must be worth it.
  constexpr double kWorth = 1.2;
  std::optional<std::vector<int>> chosen;
  double chosen_admits = 0;
  for (size_t size = 1; size <= kMostConditions; ++size) {
    std::optional<std::vector<int>> best = search.Best(size);
    if (!best.has_value() || (chosen.has_value() && best->size() <= chosen->size())) continue;
    if (search.admitted() < chosen_admits * kWorth) continue;
    chosen = std::move(best);
    chosen_admits = search.admitted();
  }
  if (!chosen.has_value()) return std::nullopt;
  std::sort(chosen->begin(), chosen->end());
  std::vector<Condition> conditions;
  for (int c : *chosen) conditions.push_back(vocabulary[c]);
  return conditions;
}

int CountAdmitted(const std::vector<Condition>& conditions, const std::vector<Binding>& bindings) {
  return static_cast<int>(
      std::count_if(bindings.begin(), bindings.end(), [&](const Binding& binding) {
        return std::all_of(conditions.begin(), conditions.end(),
                           [&](const Condition& c) { return HoldsAt(c, binding); });
      }));
}

}  // namespace isomer
