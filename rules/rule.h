// Rules: source pattern -> target pattern over tensor and attribute variables.
//
// A rule's theorem has two halves, and a rule ships only if both are proved for every assignment
// that its conditions admit:
//   types:  whenever the source type-checks, so does the target, with the same output types;
//   values: the outputs of both sides are equal.
// Axes are counted from the end (-1 is the last), so that one rule serves tensors of any rank:
// leading batch dims do not move them.
#ifndef ISOMER_RULES_RULE_H_
#define ISOMER_RULES_RULE_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/graph.h"
#include "pcg/operator.h"
#include "pcg/tensor_type.h"

namespace isomer {

// An integer: a constant, a variable, or the global size of a rule input along an axis.
struct IntExpr {
  enum class Kind { kConstant, kVariable, kSizeOf };
  Kind kind = Kind::kConstant;
  int64_t constant = 0;           // kConstant; kSizeOf: the axis, if axis_variable is empty
  std::string variable;           // kVariable; kSizeOf: the axis variable, or empty
  int input = -1;                 // kSizeOf
  static IntExpr Constant(int64_t value);
  static IntExpr Variable(std::string name);
  static IntExpr SizeOf(int input, int64_t axis);
  static IntExpr SizeOf(int input, std::string axis_variable);
  std::string ToString() const;   // "2", "d", "size(x0,-1)"
  friend bool operator==(const IntExpr&, const IntExpr&) = default;
};

// A number: constant * product of number variables (Scale factors).
struct NumberExpr {
  double constant = 1;
  std::vector<std::string> variables;  // sorted
  friend bool operator==(const NumberExpr&, const NumberExpr&) = default;
};

// The permutation that exchanges two axes, whatever the rank.
struct SwapAxes {
  int64_t a = -2, b = -1;
  friend bool operator==(const SwapAxes&, const SwapAxes&) = default;
};

// What a pattern says of one attribute. IntExpr: axis, degree; NumberExpr: factor;
// vector<IntExpr>: Split's sizes; SwapAxes: Transpose's perm.
using AttributePatternValue = std::variant<IntExpr, NumberExpr, std::vector<IntExpr>, SwapAxes>;
struct AttributePattern {
  std::string name;
  AttributePatternValue value;
  friend bool operator==(const AttributePattern&, const AttributePattern&) = default;
};

// Input `index` of the rule (node < 0), or output `index` of a node of the pattern.
struct PatternRef {
  int node = -1;
  int index = 0;
  static PatternRef Input(int i) { return {-1, i}; }
  static PatternRef Node(int node, int output = 0) { return {node, output}; }
  friend auto operator<=>(const PatternRef&, const PatternRef&) = default;
};

struct PatternNode {
  OpKind kind;
  std::vector<AttributePattern> attributes;  // sorted by name
  std::vector<PatternRef> inputs;
  friend bool operator==(const PatternNode&, const PatternNode&) = default;
};

// Nodes in topological order. An output may be an input variable (the identity side of a rule).
struct Pattern {
  std::vector<PatternNode> nodes;
  std::vector<PatternRef> outputs;
  friend bool operator==(const Pattern&, const Pattern&) = default;
};

enum class VariableKind { kAxis, kDegree, kSize, kNumber };
struct RuleVariable {
  std::string name;
  VariableKind kind;
  friend bool operator==(const RuleVariable&, const RuleVariable&) = default;
};

struct Condition {
  enum class Kind {
    kEqual,      // left == right
    kNotEqual,   // left != right (axes are compared counted from the end)
    kAtMost,     // left <= right
    kDivides,    // left * (degree of input at axis right) divides the size of input at axis right
    kSameType,   // inputs a and b have the same type
  };
  Kind kind;
  IntExpr left, right;
  int input = -1;    // kDivides; kSameType: a
  int input_b = -1;  // kSameType: b
  std::string ToString() const;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// How a rule was proved. `complete`: every lemma used is proved, none only checked.
struct ProofRecord {
  enum class Verdict { kNone, kProved, kRefuted, kUnknown };
  Verdict verdict = Verdict::kNone;
  std::vector<std::string> lemmas;  // ids, sorted
  std::string solver;               // "z3 4.8.12"
  double seconds = 0;
  std::string note;                 // why unknown; the counterexample of a refutation
};

struct Rule {
  std::string id;  // "r" + 12 hex digits of the digest
  int num_inputs = 0;
  std::vector<RuleVariable> variables;
  // The rank vectors of the inputs for which the rule is stated and proved.
  std::vector<std::vector<int>> ranks;
  std::vector<Condition> conditions;
  Pattern source, target;
  // The theorem also holds from target to source (then with the same conditions).
  bool reversible = false;
  std::string origin;  // provenance: the generator's run and how the rule was found
  ProofRecord proof;

  // Digest of what the theorem says: everything but id, origin and proof.
  uint64_t Digest() const;
  // "matmul(reduce(x0; degree=d), x1) -> reduce(matmul(x0, replicate(x1; degree=d)); degree=d)"
  std::string ToString() const;
};

// Source and target exchanged. REQUIRES: rule.reversible. The id of the inverse is id + "^-1".
Rule Inverse(const Rule& rule);

// An assignment: a type for every input, a value for every variable.
struct Binding {
  std::vector<TensorType> inputs;
  std::map<std::string, int64_t> variables;
  std::map<std::string, double> numbers;
};

// True if the conditions (and the rank vectors) admit the binding.
bool Admits(const Rule& rule, const Binding& binding);

// The attributes of a pattern node under a binding. `operand_rank` is the rank of its operand 0.
absl::StatusOr<Operator> InstantiateOperator(const PatternNode& node, const Binding& binding,
                                             int operand_rank);
// A graph of one side: inputs "x0", "x1", .. and outputs "y0", .. An error: it does not type-check.
absl::StatusOr<Graph> InstantiatePattern(const Pattern& pattern, const Binding& binding);

// A rules file: kind "rules".
struct RuleSet {
  std::vector<Rule> rules;
  std::string generator;  // command that made it
  uint64_t Digest() const;
  // The rule of an id, or its inverse for "id^-1"; null if there is none.
  const Rule* Find(const std::string& id) const;
};
absl::Status SaveRules(const std::string& path, const RuleSet& rules);
absl::StatusOr<RuleSet> LoadRules(const std::string& path);

}  // namespace isomer

#endif  // ISOMER_RULES_RULE_H_
