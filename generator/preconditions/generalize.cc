#include "generator/preconditions/generalize.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "generator/assignments/vocabulary.h"
#include "generator/preconditions/settle.h"
#include "pcg/ir/operator_call.h"

namespace isomer {
namespace {

// A choice of variables: how constants of a candidate are replaced.
struct Variant {
  std::vector<int> degree_block;    // per occurrence of a degree; occurrences share variables
  std::set<int64_t> variable_axes;  // constants that become variables
  bool variable_numbers = true;
  std::vector<std::optional<IntExpr>> sizes;  // per occurrence of a size of a Split
};

// Calls `visit` for every integer attribute named `name`, and every element of `sizes`.
void ForEachInt(Rule* rule, const std::string& name, const std::function<void(IntExpr*)>& visit) {
  for (Pattern* side : {&rule->source, &rule->target}) {
    for (PatternNode& node : side->nodes) {
      for (AttributePattern& attribute : node.attributes) {
        const bool of_axes = name == "axis" && attribute.name == "axes";
        if (attribute.name != name && !of_axes) continue;
        if (auto* expr = std::get_if<IntExpr>(&attribute.value)) visit(expr);
        if (auto* list = std::get_if<std::vector<IntExpr>>(&attribute.value)) {
          for (IntExpr& item : *list) visit(&item);
        }
      }
    }
  }
}

void ForEachNumber(Rule* rule, const std::function<void(NumberExpr*)>& visit) {
  for (Pattern* side : {&rule->source, &rule->target}) {
    for (PatternNode& node : side->nodes) {
      for (AttributePattern& attribute : node.attributes) {
        if (auto* number = std::get_if<NumberExpr>(&attribute.value)) visit(number);
      }
    }
  }
}

std::vector<int64_t> Constants(Rule rule, const std::string& name) {
  std::vector<int64_t> values;
  ForEachInt(&rule, name, [&](IntExpr* expr) { values.push_back(expr->constant); });
  return values;
}

// All ways to divide `values` into blocks of equal values, most blocks first. A degree of 4 beside
// two of 2 is their product, block kProductBlock. Where operands are counted (ConcatPartials), the
// degree may be that count, kConstantBlock.
constexpr int kProductBlock = -1, kConstantBlock = -2;
std::vector<std::vector<int>> DegreeBlocks(const std::vector<int64_t>& values, bool counts) {
  std::vector<std::vector<int>> result;
  std::vector<int> blocks(values.size());
  constexpr size_t kMostOccurrences = 5;
  std::function<void(size_t, int)> extend = [&](size_t next, int used) {
    if (next == values.size()) {
      result.push_back(blocks);
      return;
    }
    for (int block = 0; block <= used; ++block) {
      if (values.size() > kMostOccurrences && block != 0 && values[next] == values[0]) continue;
      bool equal = true;
      for (size_t i = 0; i < next; ++i) equal &= blocks[i] != block || values[i] == values[next];
      if (!equal) continue;
      blocks[next] = block;
      extend(next + 1, std::max(used, block + 1));
    }
  };
  extend(0, 0);
  if (std::count(values.begin(), values.end(), 4) == 1 &&
      std::count(values.begin(), values.end(), 2) == 2) {
    std::vector<int> product;
    int next = 0;
    for (int64_t value : values) product.push_back(value == 4 ? kProductBlock : next++);
    result.insert(result.begin(), product);
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    auto count = [](const std::vector<int>& v) { return std::set<int>(v.begin(), v.end()).size(); };
    return count(a) > count(b);
  });
  if (counts) {
    for (size_t i = 0; i < values.size(); ++i) {
      std::vector<int> one_constant(values.size(), 0);
      one_constant[i] = kConstantBlock;
      result.push_back(one_constant);
    }
    result.push_back(std::vector<int>(values.size(), kConstantBlock));
  }
  return result;
}

std::vector<std::set<int64_t>> AxisChoices(const std::vector<int64_t>& values) {
  const std::set<int64_t> distinct(values.begin(), values.end());
  const std::vector<int64_t> axes(distinct.begin(), distinct.end());
  std::vector<std::set<int64_t>> result;
  for (unsigned mask = 0; mask < (1u << axes.size()); ++mask) {
    std::set<int64_t> choice;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (mask >> i & 1) choice.insert(axes[i]);
    }
    result.push_back(choice);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return result;
}

std::string AxisName(int64_t axis) {
  static constexpr const char* kNames[] = {"i", "j", "k", "l"};
  return axis >= -4 ? kNames[-1 - axis] : absl::StrCat("i", -axis);
}

// The axes along which inputs may have the sizes of parts: those of the Splits, and their exchange
// where something is transposed.
std::set<int64_t> SizeAxes(const Candidate& candidate) {
  std::set<int64_t> axes;
  for (const Pattern* side : {&candidate.source, &candidate.target}) {
    for (const PatternNode& node : side->nodes) {
      if (node.kind == OpKind::kTranspose) axes.insert({-1, -2});
      if (node.kind != OpKind::kSplit) continue;
      for (const AttributePattern& a : node.attributes) {
        if (a.name == "axis") axes.insert(std::get<IntExpr>(a.value).constant);
      }
    }
  }
  return axes;
}

// What a size of a Split may be: the size of an input along an axis that is in use, or a variable.
std::vector<std::vector<std::optional<IntExpr>>> SizeChoices(const Candidate& candidate,
                                                             const std::vector<int64_t>& sizes,
                                                             size_t parts) {
  if (sizes.empty()) return {{}};
  std::vector<std::vector<std::optional<IntExpr>>> result;
  // One list of variables for all Splits: sizes at equal places of the lists are equal.
  std::vector<std::optional<IntExpr>> variables;
  for (size_t s = 0; s < sizes.size(); ++s) {
    variables.push_back(IntExpr::Variable(absl::StrCat("s", s % parts)));
  }
  result.push_back(variables);
  std::vector<IntExpr> options;
  for (int64_t axis : SizeAxes(candidate)) {
    for (size_t i = 0; i < candidate.inputs.size(); ++i) {
      const TensorType& type = candidate.inputs[i];
      if (-axis <= type.rank() && type.dims[type.rank() + axis].size == sizes[0]) {
        options.push_back(IntExpr::SizeOf(static_cast<int>(i), axis));
      }
    }
  }
  if (sizes.size() > 2) return result;
  for (const IntExpr& a : options) {
    for (const IntExpr& b : options) {
      // Parts of different inputs first: parts of one need no such rule.
      if (a.input != b.input) result.push_back({a, b});
    }
  }
  return result;
}

class Variants {
 public:
  explicit Variants(const Candidate& candidate)
      : candidate_(candidate), constant_(ConstantRule(candidate)) {}

  // In order of generality; stops when `visit` returns true.
  bool ForEach(const std::function<bool(const GeneralRule&)>& visit) const {
    const auto sizes = SizeChoices(candidate_, Constants(constant_, "sizes"), SplitParts());
    const auto axes = AxisChoices(Constants(constant_, "axis"));
    const auto degrees = DegreeBlocks(Constants(constant_, "degree"), CountsOperands());
    Rule probe = constant_;
    bool has_numbers = false;
    ForEachNumber(&probe, [&](NumberExpr*) { has_numbers = true; });
    for (const bool numbers :
         has_numbers ? std::vector<bool>{true, false} : std::vector<bool>{true}) {
      for (const auto& size : sizes) {
        for (const auto& axis : axes) {
          for (const auto& degree : degrees) {
            const std::optional<GeneralRule> general = Apply({degree, axis, numbers, size});
            if (general.has_value() && visit(*general)) return true;
          }
        }
      }
    }
    return false;
  }

 private:
  bool CountsOperands() const {
    auto counts = [](const PatternNode& node) { return node.kind == OpKind::kConcatPartials; };
    return std::any_of(constant_.source.nodes.begin(), constant_.source.nodes.end(), counts) ||
           std::any_of(constant_.target.nodes.begin(), constant_.target.nodes.end(), counts);
  }

  // Into how many parts the Splits of the candidate split.
  size_t SplitParts() const {
    for (const Pattern* side : {&constant_.source, &constant_.target}) {
      for (const PatternNode& node : side->nodes) {
        for (const AttributePattern& a : node.attributes) {
          auto* list = std::get_if<std::vector<IntExpr>>(&a.value);
          if (list != nullptr && a.name == "sizes") return list->size();
        }
      }
    }
    return 2;
  }

  std::optional<GeneralRule> Apply(const Variant& variant) const {
    GeneralRule general{constant_, {}};
    general.found.inputs = candidate_.inputs;
    for (TensorType& type : general.found.inputs) type = SequentialType(type.Sizes(), type.dtype);
    ReplaceSizes(variant, &general);
    ReplaceAxes(variant, &general);
    ReplaceDegrees(variant, &general);
    if (variant.variable_numbers) ReplaceNumbers(&general);
    return general;
  }

  static void Declare(const std::string& name, VariableKind kind, Rule* rule) {
    for (const RuleVariable& variable : rule->variables) {
      if (variable.name == name) return;
    }
    rule->variables.push_back({name, kind});
  }

  static void ReplaceSizes(const Variant& variant, GeneralRule* general) {
    size_t next = 0;
    ForEachInt(&general->rule, "sizes", [&](IntExpr* expr) {
      const std::optional<IntExpr>& choice = variant.sizes[next++];
      if (!choice.has_value()) return;
      if (choice->kind == IntExpr::Kind::kVariable) {
        Declare(choice->variable, VariableKind::kSize, &general->rule);
        general->found.variables[choice->variable] = expr->constant;
      }
      *expr = *choice;
      if (expr->kind == IntExpr::Kind::kSizeOf && variant.variable_axes.count(expr->constant) > 0) {
        *expr = IntExpr::SizeOf(expr->input, AxisName(expr->constant));
      }
    });
  }

  static void ReplaceAxes(const Variant& variant, GeneralRule* general) {
    ForEachInt(&general->rule, "axis", [&](IntExpr* expr) {
      if (variant.variable_axes.count(expr->constant) == 0) return;
      const std::string name = AxisName(expr->constant);
      Declare(name, VariableKind::kAxis, &general->rule);
      general->found.variables[name] = expr->constant;
      *expr = IntExpr::Variable(name);
    });
  }

  static void ReplaceDegrees(const Variant& variant, GeneralRule* general) {
    static constexpr const char* kNames[] = {"d", "e", "f", "g", "h"};
    auto name = [](int block) { return std::string(kNames[block % 5]); };
    size_t next = 0;
    ForEachInt(&general->rule, "degree", [&](IntExpr* expr) {
      const int block = variant.degree_block[next++];
      if (block == kConstantBlock) return;
      if (block == kProductBlock) {
        *expr = IntExpr::Product(name(0), name(1));
        return;
      }
      Declare(name(block), VariableKind::kDegree, &general->rule);
      general->found.variables[name(block)] = 1;
      *expr = IntExpr::Variable(name(block));
    });
  }

  // Equal factors become equal variables; a factor that is the product of two others stays one.
  static void ReplaceNumbers(GeneralRule* general) {
    std::vector<double> values;
    ForEachNumber(&general->rule, [&](NumberExpr* number) {
      if (std::find(values.begin(), values.end(), number->constant) == values.end()) {
        values.push_back(number->constant);
      }
    });
    std::sort(values.begin(), values.end());
    auto name = [&](double value) {
      return absl::StrCat("a", std::find(values.begin(), values.end(), value) - values.begin());
    };
    ForEachNumber(&general->rule, [&](NumberExpr* number) {
      const double value = number->constant;
      number->constant = 1;
      if (values.size() == 3 && values[0] * values[1] == values[2] && value == values[2]) {
        number->variables = {name(values[0]), name(values[1])};
      } else {
        number->variables = {name(value)};
      }
      for (const std::string& variable : number->variables) {
        Declare(variable, VariableKind::kNumber, &general->rule);
        general->found.numbers[variable] = 1;
      }
    });
  }

  const Candidate& candidate_;
  const Rule constant_;
};

// How many of a fixed number of assignments of the source the conditions admit.
int Breadth(const Rule& rule, const Binding& found, TypeOracle* oracle) {
  constexpr int kAssignments = 100;
  Random random(1);
  Rule unconditional = rule;
  unconditional.conditions.clear();
  unconditional.ranks = {RanksOf(found.inputs)};
  const std::vector<Binding> assignments =
      DrawAdmitted(unconditional, found, kAssignments, {}, oracle, &random);
  return CountAdmitted(rule.conditions, assignments);
}

}  // namespace

Rule ConstantRule(const Candidate& candidate) {
  Rule rule;
  rule.num_inputs = static_cast<int>(candidate.inputs.size());
  rule.source = candidate.source;
  rule.target = candidate.target;
  rule.ranks = {RanksOf(candidate.inputs)};
  rule.origin = candidate.origin;
  return rule;
}

Candidate Reversed(const Candidate& candidate) {
  Candidate reversed = candidate;
  std::swap(reversed.source, reversed.target);
  return reversed;
}

std::string PatternsText(const Rule& rule) {
  Rule patterns;
  patterns.source = rule.source;
  patterns.target = rule.target;
  return patterns.ToString();
}

std::optional<GeneralRule> Generalize(const Candidate& candidate, TypeOracle* oracle,
                                      Random* random, const std::set<std::string>& except) {
  SettleOptions options;
  options.ranks = RankVectors(ConstantRule(candidate).ranks[0]);
  // Several inputs may have the size of a part where they were found; with the right one the rule
  // holds for the most shapes.
  const bool choice_of_sizes = !Constants(ConstantRule(candidate), "sizes").empty();
  std::optional<GeneralRule> result;
  int best_breadth = 0;
  Variants(candidate).ForEach([&](const GeneralRule& variant) {
    if (except.count(PatternsText(variant.rule)) > 0) return false;
    const std::optional<Rule> rule = Settle(variant.rule, variant.found, options, oracle, random);
    if (!rule.has_value()) return false;
    const int breadth = choice_of_sizes ? Breadth(*rule, variant.found, oracle) : 1;
    if (breadth > best_breadth) {
      result = GeneralRule{*rule, variant.found, candidate};
      best_breadth = breadth;
    }
    return !choice_of_sizes || rule->conditions.empty();
  });
  if (!result.has_value()) return std::nullopt;
  result->rule.reversible = HoldsInversely(result->rule, result->found, oracle, random);
  SetId(&result->rule);
  return result;
}

}  // namespace isomer
