#include "tests/verifier/rule_from_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

class SideParser {
 public:
  SideParser(absl::string_view text, Rule* rule, Pattern* pattern)
      : text_(text), rule_(rule), pattern_(pattern) {}

  void Parse() {
    do {
      pattern_->outputs.push_back(Term());
      Skip();
    } while (Take('|'));
    ISOMER_CHECK(at_ == text_.size());
  }

 private:
  PatternRef Term() {
    const std::string word = Word();
    int64_t index;
    if (word[0] == 'x' && absl::SimpleAtoi(word.substr(1), &index)) {
      rule_->num_inputs = std::max<int>(rule_->num_inputs, static_cast<int>(index) + 1);
      return PatternRef::Input(static_cast<int>(index));
    }
    PatternNode node;
    absl::StatusOr<OpKind> kind = ParseOpKind(word);
    ISOMER_CHECK(kind.ok());
    node.kind = *kind;
    ISOMER_CHECK(Take('('));
    do {
      node.inputs.push_back(Term());
    } while (Take(','));
    if (Take(';')) {
      do {
        Attribute(&node);
      } while (Take(','));
    }
    ISOMER_CHECK(Take(')'));
    std::sort(node.attributes.begin(), node.attributes.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    int output = 0;
    if (Take('.')) output = text_[at_++] - '0';
    auto same = std::find(pattern_->nodes.begin(), pattern_->nodes.end(), node);
    const int id = static_cast<int>(same - pattern_->nodes.begin());
    if (same == pattern_->nodes.end()) pattern_->nodes.push_back(node);
    return PatternRef::Node(id, output);
  }

  void Attribute(PatternNode* node) {
    const std::string name = Word();
    ISOMER_CHECK(Take('='));
    if (name == "swap") {
      const int64_t a = Integer();
      ISOMER_CHECK(Take(':'));
      node->attributes.push_back({"perm", SwapAxes{a, Integer()}});
    } else if (IsNumber(name)) {
      NumberExpr number;
      do {
        const std::string word = Word();
        double constant;
        if (absl::SimpleAtod(word, &constant)) {
          number.constant *= constant;
        } else {
          Declare(word, VariableKind::kNumber);
          number.variables.push_back(word);
        }
      } while (Take('*'));
      std::sort(number.variables.begin(), number.variables.end());
      node->attributes.push_back({name, number});
    } else if (Take('[')) {
      std::vector<IntExpr> sizes;
      do {
        sizes.push_back(Expression(name == "axes" ? VariableKind::kAxis : VariableKind::kSize));
      } while (Take(','));
      ISOMER_CHECK(Take(']'));
      node->attributes.push_back({name, sizes});
    } else {
      const VariableKind kind = name == "axis" ? VariableKind::kAxis : VariableKind::kDegree;
      node->attributes.push_back({name, Expression(kind)});
    }
  }

  static bool IsNumber(const std::string& attribute) {
    constexpr const char* kNumbers[] = {"factor", "scale", "epsilon", "min",  "max",
                                        "alpha",  "beta",  "rate",    "value"};
    return std::find(std::begin(kNumbers), std::end(kNumbers), attribute) != std::end(kNumbers);
  }

  IntExpr Expression(VariableKind kind) {
    const std::string word = Word();
    int64_t number;
    if (absl::SimpleAtoi(word, &number)) return IntExpr::Constant(number);
    if (word == "size") {
      ISOMER_CHECK(Take('('));
      const std::string input = Word();
      ISOMER_CHECK(absl::SimpleAtoi(input.substr(1), &number) && Take(','));
      const int64_t axis = Integer();
      ISOMER_CHECK(Take(')'));
      return IntExpr::SizeOf(static_cast<int>(number), axis);
    }
    Declare(word, kind);
    if (!Take('*')) return IntExpr::Variable(word);
    const std::string other = Word();
    Declare(other, kind);
    return IntExpr::Product(word, other);
  }

  void Declare(const std::string& name, VariableKind kind) {
    for (const RuleVariable& known : rule_->variables) {
      if (known.name == name) return;
    }
    rule_->variables.push_back({name, kind});
  }

  int64_t Integer() {
    int64_t number = 0;
    ISOMER_CHECK(absl::SimpleAtoi(Word(), &number));
    return number;
  }
  std::string Word() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_' ||
                                  text_[at_] == '-' || text_[at_] == '.')) {
      ++at_;
    }
    ISOMER_CHECK(at_ > begin);
    return std::string(text_.substr(begin, at_ - begin));
  }
  void Skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  absl::string_view text_;
  Rule* rule_;
  Pattern* pattern_;
  size_t at_ = 0;
};

}  // namespace

Rule RuleFromText(const std::string& text, std::vector<std::vector<int>> ranks,
                  std::vector<Condition> conditions) {
  Rule rule;
  const std::vector<std::string> sides = absl::StrSplit(text, " -> ");
  ISOMER_CHECK(sides.size() == 2);
  SideParser(sides[0], &rule, &rule.source).Parse();
  SideParser(sides[1], &rule, &rule.target).Parse();
  std::sort(rule.variables.begin(), rule.variables.end(),
            [](const RuleVariable& a, const RuleVariable& b) { return a.name < b.name; });
  rule.ranks = std::move(ranks);
  rule.conditions = std::move(conditions);
  rule.origin = "test";
  SetId(&rule);
  return rule;
}

Condition Divides(const std::string& degree, int input, int64_t axis) {
  Condition condition;
  condition.kind = Condition::Kind::kDivides;
  condition.left = IntExpr::Variable(degree);
  condition.right = IntExpr::Constant(axis);
  condition.input = input;
  return condition;
}

Condition SameType(int a, int b) {
  Condition condition;
  condition.kind = Condition::Kind::kSameType;
  condition.input = a;
  condition.input_b = b;
  return condition;
}

Condition NoPartials(int input) {
  Condition condition;
  condition.kind = Condition::Kind::kNoPartials;
  condition.input = input;
  return condition;
}

Condition Unpartitioned(int input, int64_t axis) {
  Condition condition;
  condition.kind = Condition::Kind::kUnpartitioned;
  condition.right = IntExpr::Constant(axis);
  condition.input = input;
  return condition;
}

Condition ByStructure() { return {.kind = Condition::Kind::kByStructure}; }

Condition NotEqual(IntExpr left, IntExpr right) {
  Condition condition;
  condition.kind = Condition::Kind::kNotEqual;
  condition.left = std::move(left);
  condition.right = std::move(right);
  return condition;
}

Condition EqualTo(IntExpr left, IntExpr right) {
  Condition condition = NotEqual(std::move(left), std::move(right));
  condition.kind = Condition::Kind::kEqual;
  return condition;
}

}  // namespace isomer
