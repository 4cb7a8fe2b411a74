// Rules: source pattern -> target pattern over tensor and attribute variables.
//
// A rule's theorem has two halves, and a rule ships only if both are proved for every assignment
// that its conditions admit:
//   types:  whenever the source type-checks, so does the target, with the same output types;
//   values: the outputs of both sides are equal.
// Axes are counted from the end (-1 is the last), so that one rule serves tensors of any rank:
// leading batch dims do not move them.
#ifndef ISOMER_RULES_LANGUAGE_RULE_H_
#define ISOMER_RULES_LANGUAGE_RULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/operator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// An integer: a constant, a variable, the global size of a rule input along an axis, or the product
// of two variables (the degree of two Partitions made one).
struct IntExpr {
  enum class Kind { kConstant, kVariable, kSizeOf, kProduct };
  Kind kind = Kind::kConstant;
  int64_t constant = 0;       // kConstant; kSizeOf: the axis, if `variable` is empty
  std::string variable = {};  // kVariable; kProduct: a factor; kSizeOf: the axis variable, or empty
  std::string factor = {};    // kProduct: the other factor
  int input = -1;             // kSizeOf
  static IntExpr Constant(int64_t value);
  static IntExpr Variable(std::string name);
  static IntExpr SizeOf(int input, int64_t axis);
  static IntExpr SizeOf(int input, std::string axis_variable);
  static IntExpr Product(std::string a, std::string b);
  std::string ToString() const;  // "2", "d", "size(x0,-1)", "d*e"
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

// A whole attribute value, whatever it is (a kernel, a perm, a shape): the target copies it. Bound
// where the source names it; the rule must hold for every value under its conditions.
struct AttributeVariable {
  std::string name;
  friend bool operator==(const AttributeVariable&, const AttributeVariable&) = default;
};

// What a pattern says of one attribute. IntExpr: axis, degree; NumberExpr: factor;
// vector<IntExpr>: Split's sizes; SwapAxes: Transpose's perm; AttributeVariable: any attribute.
using AttributePatternValue =
    std::variant<IntExpr, NumberExpr, std::vector<IntExpr>, SwapAxes, AttributeVariable>;
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

enum class VariableKind { kAxis, kDegree, kSize, kNumber, kAttribute };
struct RuleVariable {
  std::string name;
  VariableKind kind;
  friend bool operator==(const RuleVariable&, const RuleVariable&) = default;
};

struct Condition {
  enum class Kind {
    kEqual,     // left == right
    kNotEqual,  // left != right (axes are compared counted from the end)
    kAtMost,    // left <= right
    kDivides,   // left * (degree of input at axis right) divides the size of input at axis right
    kSameType,  // inputs a and b have the same type
    // The call of source node `node` has a partitionable iteration dim v that leads exactly the
    // axes named here (LeadOfOperandDim(o, operand_axes[o]) == v, LeadOfOutputDim likewise; an
    // operand or output without an entry has no dim led by v), and left * (degree of v) divides
    // the size of v and of the operand dims it leads (which differ where v is spatial and leads
    // with a halo). No output axes: v is a sum dim. This states the premise of partitioning one
    // iteration dim for operators whose axes depend on attributes (Reshape, Conv2d, ...); it is
    // evaluated from the Declaration.
    kSplitsDim,
    kNoPartials,     // the input is no partial sum: its partials are 1
    kUnpartitioned,  // the input is not partitioned at axis right: its degree there is 1
    // The calls of both sides meet the premise of a theorem on the structure of declarations
    // (structure.h), which says that the sides are equal. For rules without parallel operators.
    kByStructure,
  };
  Kind kind;
  IntExpr left = {}, right = {};
  int input = -1;    // kDivides, kNoPartials, kUnpartitioned; kSameType: a
  int input_b = -1;  // kSameType: b
  int node = -1;     // kSplitsDim: a node of the source
  std::vector<std::optional<IntExpr>> operand_axes = {}, output_axes = {};  // kSplitsDim
  std::string ToString() const;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// How a rule was proved.
struct ProofRecord {
  enum class Verdict {
    kNone,
    kProved,
    kRefuted,
    kUnknown,
    kChecked,  // rests on lemmas that were evaluated at small sizes, and are not proved
    kCrashed,  // the prover ended at it: a defect
  };
  Verdict verdict = Verdict::kNone;
  std::vector<std::string> lemmas;  // ids, sorted
  std::string solver;               // "z3 4.8.12"
  double seconds = 0;
  std::string note;  // why unknown; the counterexample of a refutation
};

// "proved", "refuted", ..; kNone is "not tried".
const char* VerdictName(ProofRecord::Verdict verdict);

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

// The operator with its attributes as the pattern has them: "scale(factor=f)".
std::string OperatorText(const PatternNode& node);

bool HasCondition(const Rule& rule, Condition::Kind kind);

// Source and target exchanged. REQUIRES: rule.reversible. The id of the inverse is id + "^-1".
Rule Inverse(const Rule& rule);

// An assignment: a type for every input, a value for every variable.
struct Binding {
  std::vector<TensorType> inputs;
  std::map<std::string, int64_t> variables;
  std::map<std::string, double> numbers;
  std::map<std::string, AttributeValue> attributes;
};

// The dim of an input along an axis counted from the end, and that which a kSizeOf measures; null
// if the input has none.
const Dim* DimAt(const Binding& binding, int input, int64_t axis);
const Dim* DimOf(const IntExpr& size_of, const Binding& binding);

// The value of an expression. REQUIRES: its variables are bound, its axis is a dim of its input.
int64_t Evaluate(const IntExpr& expr, const Binding& binding);
// Not rounded: null if no double is the product.
std::optional<double> Evaluate(const NumberExpr& expr, const Binding& binding);

// True if the conditions (and the rank vectors) admit the binding, and no call of either side
// rounds integers (RoundsIntegers in pcg/ir/operator_facts.h): rules are equations over the reals.
// A rule with a kSplitsDim or kByStructure condition admits only bindings under which its source
// type-checks. Every variable of the rule must be bound; degrees must be positive, axes negative
// (counted from the end).
bool Admits(const Rule& rule, const Binding& binding);

// What a rule says at one place: calls of declared operators, each with its attributes and the
// shapes of its operands.
struct ConcreteCall {
  Operator op;
  std::vector<PatternRef> inputs;
  std::vector<Shape> operands;
  friend bool operator==(const ConcreteCall&, const ConcreteCall&) = default;
};
struct ConcreteSide {
  std::vector<ConcreteCall> calls;
  std::vector<PatternRef> outputs;
  friend bool operator==(const ConcreteSide&, const ConcreteSide&) = default;
};

// An iteration dim of a call that can be partitioned (further), and what it leads: per operand and
// per output the axis, counted from the end, that its pieces are pieces of.
struct SplittableDim {
  int dim = -1;        // in the Declaration
  int64_t size = 1;    // what degrees must divide: of the dim, and of a spatial dim's operand dims
  int64_t degree = 1;  // so far
  std::vector<std::optional<int64_t>> operand_axes, output_axes;
  friend bool operator==(const SplittableDim&, const SplittableDim&) = default;
};
// All of a call, in the order of the declaration; none for leaves, parallel operators, and calls
// that do not type-check.
std::vector<SplittableDim> SplittableDims(const Operator& op,
                                          const std::vector<TensorType>& operands);

// The attributes of a pattern node under a binding. `operand_rank` is the rank of its operand 0.
absl::StatusOr<Operator> InstantiateOperator(const PatternNode& node, const Binding& binding,
                                             int operand_rank);
// A graph of one side: inputs "x0", "x1", .. and outputs "y0", .. An error: it does not type-check.
absl::StatusOr<Graph> InstantiatePattern(const Pattern& pattern, const Binding& binding);

// Ok if the rule is well formed: references point backwards, operand counts fit, attributes are
// those of the operators, variables are declared and of one kind, an output count in common.
// The error is one line that names the rule.
absl::Status ValidateRule(const Rule& rule);

// Gives the rule its id from its digest.
void SetId(Rule* rule);

// A rules file: kind "rules".
struct RuleSet {
  std::vector<Rule> rules;
  std::string generator;  // command that made it
  // Of several files: how many of the rules are of the first one, of the first two, and so on.
  std::vector<size_t> file_ends;
  uint64_t Digest() const;

  // Prepares Find; to be called after `rules` changed. LoadRules calls it.
  void BuildIndex();
  // The rule of an id, or its inverse for "id^-1" if it is reversible; null if there is none.
  // REQUIRES: BuildIndex. The pointer lives as long as this set is neither changed nor moved.
  const Rule* Find(const std::string& id) const;
  // The inverses of the reversible rules, in order. REQUIRES: BuildIndex.
  const std::vector<Rule>& inverses() const { return inverses_; }

 private:
  std::vector<Rule> inverses_;
  absl::flat_hash_map<std::string, std::pair<bool, int>> index_;  // id -> (is an inverse, place)
};

// Binary, or text when `path` ends in .txt or .textproto. Loading validates every rule; errors name
// file and rule: "mine.rules: rule r0123456789ab: target node 2: variable 'e' is not declared".
absl::Status SaveRules(const std::string& path, const RuleSet& rules);
absl::StatusOr<RuleSet> LoadRules(const std::string& path);
// Those of --rules: of one file or several, separated by commas, of which "default" are the rules
// that come with Isomer; "" are these alone. What several have is there once, in the first of them.
absl::StatusOr<RuleSet> LoadRuleFiles(const std::string& list);

}  // namespace isomer

#endif  // ISOMER_RULES_LANGUAGE_RULE_H_
