#include "generator/assignments/vocabulary.h"

#include <algorithm>

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

// Which conditions hold where.
using Table = std::vector<std::vector<bool>>;  // [condition][binding]
Table Tabulate(const std::vector<Condition>& conditions, const std::vector<Binding>& bindings) {
  Table table;
  for (const Condition& condition : conditions) {
    std::vector<bool> row;
    for (const Binding& binding : bindings) row.push_back(HoldsAt(condition, binding));
    table.push_back(std::move(row));
  }
  return table;
}

class ConditionSearch {
 public:
  ConditionSearch(Table at_successes, Table at_failures)
      : successes_(std::move(at_successes)), failures_(std::move(at_failures)) {}

  // The best set of at most `size` conditions, as places in the vocabulary.
  std::optional<std::vector<int>> Best(size_t size) {
    best_.reset();
    best_admitted_ = 0;
    chosen_.clear();
    Extend(size, std::vector<bool>(failures_.empty() ? 0 : failures_[0].size(), true),
           std::vector<bool>(successes_.empty() ? 0 : successes_[0].size(), true));
    return best_;
  }
  // How many successes the last answer admits.
  int admitted() const { return best_admitted_; }

 private:
  // Some condition must exclude the first failure that is left, so only those are tried.
  void Extend(size_t left, const std::vector<bool>& failing, const std::vector<bool>& holding) {
    const int admitted = static_cast<int>(std::count(holding.begin(), holding.end(), true));
    if (admitted <= best_admitted_) return;  // Earlier in the vocabulary is better.
    const auto first = std::find(failing.begin(), failing.end(), true);
    if (first == failing.end()) {
      best_ = chosen_;
      best_admitted_ = admitted;
      return;
    }
    if (left == 0) return;
    const size_t at = first - failing.begin();
    for (size_t c = 0; c < failures_.size(); ++c) {
      if (failures_[c][at]) continue;
      std::vector<bool> f = failing, h = holding;
      for (size_t i = 0; i < f.size(); ++i) f[i] = f[i] && failures_[c][i];
      for (size_t i = 0; i < h.size(); ++i) h[i] = h[i] && successes_[c][i];
      chosen_.push_back(static_cast<int>(c));
      Extend(left - 1, f, h);
      chosen_.pop_back();
    }
  }

  const Table successes_, failures_;
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
  ConditionSearch search(Tabulate(vocabulary, successes), Tabulate(vocabulary, failures));
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
