#include "generator/schemas/part_search.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/assignments/trial.h"
#include "generator/enumeration/equation.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;
using FieldArray = Array<PrimeField>;

// Operators between one statement and the next.
constexpr int kMostAtOnce = 3;
// Calls evaluated in all; what takes more is given up.
constexpr int kMostEvaluated = 40000;

std::optional<Declaration> DeclarationOf(const Operator& op, const std::vector<Ints>& shapes) {
  std::vector<Shape> operands;
  for (const Ints& shape : shapes) operands.emplace_back(shape.begin(), shape.end());
  absl::StatusOr<Declaration> declaration = Declare(op, operands);
  if (!declaration.ok() || declaration->outputs.size() != 1) return std::nullopt;
  return *std::move(declaration);
}

// What a declaration is made of: what its statements compute and how they reduce.
struct Ingredients {
  std::set<ScalarOp> operations;
  std::set<Reduction> reductions;
  bool adds_constants = false;
  Ingredients() = default;
  explicit Ingredients(const Declaration& d) { Add(d); }
  void Add(const Declaration& d) {
    for (const Statement& statement : d.statements) {
      reductions.insert(statement.reduction);
      for (const Instruction& instruction : statement.body) operations.insert(instruction.op);
      for (size_t i = 1; i < statement.body.size(); ++i) {
        adds_constants |= statement.body[i - 1].op == ScalarOp::kConstant &&
                          statement.body[i].op == ScalarOp::kAdd;
      }
    }
  }
  bool Include(const Ingredients& other) const {
    return std::includes(operations.begin(), operations.end(), other.operations.begin(),
                         other.operations.end()) &&
           std::includes(reductions.begin(), reductions.end(), other.reductions.begin(),
                         other.reductions.end()) &&
           (adds_constants || !other.adds_constants);
  }
};

std::optional<Declaration> DeclarationOf(const ExampleCall& example) {
  std::vector<Ints> shapes;
  for (const TensorType& type : example.operands) shapes.push_back(type.Sizes());
  return DeclarationOf(example.op, shapes);
}

bool MayBePart(OpKind kind) {
  if (IsLeaf(kind) || IsParallel(kind) || MinOperands(kind) > 2) return false;
  const std::vector<ExampleCall> examples = ExamplesOf(kind);
  if (examples.empty()) return false;
  const std::optional<Declaration> d = DeclarationOf(examples[0]);
  if (!d.has_value() || (d->num_operands() > 1 && d->statements.size() > 1)) return false;
  const std::vector<Attribute>& attributes = examples[0].op.attributes();
  return std::all_of(attributes.begin(), attributes.end(), [](const Attribute& a) {
    return a.name == "axis" || a.name == "axes" || a.name == "perm" || a.name == "keepdims" ||
           std::holds_alternative<double>(a.value);
  });
}

// The operators as parts of a call: along the last axis, with the call's numbers.
std::vector<Operator> PartsWith(const std::vector<double>& numbers, int rank) {
  std::vector<Operator> parts;
  for (OpKind kind : PartOperators()) {
    std::vector<Operator> made = {Operator(kind)};
    const Operator example = ExamplesOf(kind)[0].op;
    for (const Attribute& a : example.attributes()) {
      std::vector<AttributeValue> values;
      if (a.name == "axis") values = {int64_t{-1}};
      if (a.name == "axes") values = {Ints{-1}};
      if (a.name == "keepdims") values = {int64_t{1}};
      if (std::holds_alternative<double>(a.value)) values.assign(numbers.begin(), numbers.end());
      if (a.name == "perm") {
        Ints perm;
        for (int i = 0; i < rank; ++i) perm.push_back(i);
        if (rank > 1) std::swap(perm[rank - 1], perm[rank - 2]);
        values = {perm};
      }
      std::vector<Operator> more;
      for (const Operator& op : made) {
        for (const AttributeValue& value : values) {
          more.push_back(op);
          more.back().Set(a.name, value);
        }
      }
      made = std::move(more);
    }
    parts.insert(parts.end(), made.begin(), made.end());
  }
  return parts;
}

class PartSearch {
 public:
  PartSearch(const OperatorCall& call, const Declaration& declaration, Random* random)
      : call_(call), whole_(declaration), ingredients_(declaration) {
    std::vector<double> numbers;
    for (const Attribute& a : call.op.attributes()) {
      if (auto* number = std::get_if<double>(&a.value)) numbers.push_back(*number);
    }
    int rank = 0;
    for (const TensorType& type : call.operands) {
      rank = std::max(rank, type.rank());
      Tensor tensor;
      tensor.value = RandomValue<PrimeField>(type, random).parts[0];
      known_.push_back(static_cast<int>(tensors_.size()));
      tensors_.push_back(std::move(tensor));
    }
    for (Operator& op : PartsWith(numbers, rank)) {
      if (op.kind() != call.op.kind()) operators_.push_back(std::move(op));
    }
  }

  std::optional<Candidate> Run() {
    if (!PartsCoverWhole()) return std::nullopt;
    const std::vector<Goal> goals = Goals();
    size_t known = 0;
    for (const auto& [goal, is_statement] : goals) {
      // Of what is known, the least that the output is found from gives the smallest graph.
      if (known_.size() > known) {
        const int output = Find(goals.back().value, true);
        if (output >= 0) return MakeEquation(output);
      }
      known = known_.size();
      const int found = Find(goal, false);
      if (found < 0 && is_statement) break;
      if (found >= 0) known_.push_back(found);
    }
    return std::nullopt;
  }

 private:
  // An operand of the call, or an operator's output.
  struct Tensor {
    int op = -1;
    std::vector<int> operands;
    FieldArray value;
  };

  // Everything that the declaration does, some operator does.
  bool PartsCoverWhole() {
    Ingredients covered;
    for (const Operator& op : operators_) {
      for (const ExampleCall& example : ExamplesOf(op.kind())) {
        const std::optional<Declaration> d = DeclarationOf(example);
        if (!d.has_value() || !ingredients_.Include(Ingredients(*d))) continue;
        covered.Add(*d);
      }
    }
    return covered.Include(ingredients_);
  }

  struct Goal {
    FieldArray value;
    bool is_statement;  // else what one reduces
  };

  // What each statement reduces and what it defines, in order; empty where evaluation fails.
  std::vector<Goal> Goals() const {
    std::vector<const FieldArray*> operands;
    for (const Tensor& tensor : tensors_) operands.push_back(&tensor.value);
    std::vector<Goal> goals;
    for (size_t s = 0; s < whole_.statements.size(); ++s) {
      for (const bool reduced : {false, true}) {
        Declaration until = whole_;
        until.statements.resize(s + 1);
        for (Statement& statement : until.statements) statement.output = -1;
        Statement& last = until.statements[s];
        last.output = 0;
        if (!reduced) {
          if (last.reduction == Reduction::kNone || last.select_dim >= 0) continue;
          last.indices.insert(last.indices.end(), last.reduced.begin(), last.reduced.end());
          last.reduced.clear();
          last.reduction = Reduction::kNone;
        }
        until.outputs = {until.StatementShape(last)};
        auto evaluated = Evaluate<PrimeField>(until, FullBox(until), operands);
        if (!evaluated.ok()) return {};
        goals.push_back({std::move((*evaluated)[0]), reduced});
      }
    }
    return goals;
  }

  // The same elements in the same order; dims of size 1 may be left out of a statement.
  static bool SameElements(const FieldArray& a, const FieldArray& b) { return a.data == b.data; }
  static Ints WithoutOnes(Ints shape) {
    std::erase(shape, 1);
    return shape;
  }

  // The tensor equal to `goal` that the fewest operators give, at most kMostAtOnce of them on top
  // of those known; -1 if there is none. `exact`: it has the goal's shape, too.
  int Find(const FieldArray& goal, bool exact) {
    levels_.assign(1, known_);
    seen_.clear();
    for (int t : known_) seen_.insert(Key(tensors_[t].value));
    int best = -1;
    for (int level = 1; level <= kMostAtOnce; ++level) {
      levels_.emplace_back();
      const bool last = level == kMostAtOnce;
      auto visit = [&](int op, const std::vector<int>& operands) {
        std::optional<Tensor> made = Apply(op, operands, last ? &goal : nullptr);
        if (!made.has_value()) return;
        const bool fits = !exact || made->value.shape == goal.shape;
        const bool reached = fits && SameElements(made->value, goal);
        if (!reached && (last || !seen_.insert(Key(made->value)).second)) return;
        tensors_.push_back(*std::move(made));
        const int t = static_cast<int>(tensors_.size()) - 1;
        if (!reached) {
          levels_.back().push_back(t);
        } else if (best < 0 || NodesOf(t).size() < NodesOf(best).size()) {
          best = t;
        }
      };
      for (size_t op = 0; op < operators_.size(); ++op) ForEachOperands(op, level, visit);
      if (best >= 0 && !exact) break;
    }
    return best;
  }

  template <typename Visit>
  void ForEachOperands(size_t op, int level, const Visit& visit) const {
    const OpKind kind = operators_[op].kind();
    if (MinOperands(kind) == 1) {
      for (int t : levels_[level - 1]) visit(static_cast<int>(op), {t});
    }
    if (MinOperands(kind) > 2 || MaxOperands(kind) < 2) return;
    for (int first = 0; first < level; ++first) {
      const int second = level - 1 - first;
      if (IsCommutative(kind) && first > second) continue;
      for (int a : levels_[first]) {
        for (int b : levels_[second]) visit(static_cast<int>(op), {a, b});
      }
    }
  }

  // Nullopt: the call has no meaning, or another shape than `like`.
  std::optional<Tensor> Apply(int op, const std::vector<int>& operands, const FieldArray* like) {
    std::vector<Ints> shapes;
    std::vector<const FieldArray*> values;
    for (int t : operands) {
      shapes.push_back(tensors_[t].value.shape);
      values.push_back(&tensors_[t].value);
    }
    auto [at, is_new] = declarations_.try_emplace({op, shapes});
    if (is_new) {
      at->second = DeclarationOf(operators_[op], shapes);
      const bool part = at->second.has_value() && ingredients_.Include(Ingredients(*at->second));
      if (!part) at->second.reset();
    }
    const std::optional<Declaration>& d = at->second;
    if (!d.has_value()) return std::nullopt;
    if (like != nullptr) {
      Ints shape;
      for (const Extent& size : d->outputs[0]) shape.push_back(size.value());
      if (WithoutOnes(shape) != WithoutOnes(like->shape)) return std::nullopt;
    }
    if (++evaluated_ > kMostEvaluated) return std::nullopt;
    auto evaluated = Evaluate<PrimeField>(*d, FullBox(*d), values);
    if (!evaluated.ok()) return std::nullopt;
    return Tensor{op, operands, std::move((*evaluated)[0])};
  }

  static uint64_t Key(const FieldArray& array) {
    uint64_t hash = array.shape.size();
    for (int64_t size : array.shape) hash = HashCombine(hash, static_cast<uint64_t>(size));
    for (const PrimeField& element : array.data) hash = HashCombine(hash, element.raw());
    return hash;
  }

  // The operators that give a tensor, in order.
  std::set<int> NodesOf(int t) const {
    std::set<int> nodes;
    if (tensors_[t].op < 0) return nodes;
    nodes.insert(t);
    for (int operand : tensors_[t].operands) nodes.merge(NodesOf(operand));
    return nodes;
  }

  Candidate MakeEquation(int output) const {
    Candidate candidate;
    candidate.inputs = call_.operands;
    candidate.origin = "definition, family";
    PatternNode whole{call_.op.kind(), PatternsOf(call_.op), {}};
    for (size_t o = 0; o < call_.operands.size(); ++o) {
      whole.inputs.push_back(PatternRef::Input(static_cast<int>(o)));
    }
    candidate.source = {{whole}, {PatternRef::Node(0)}};
    std::map<int, PatternRef> refs;
    for (size_t o = 0; o < call_.operands.size(); ++o) {
      refs[static_cast<int>(o)] = PatternRef::Input(static_cast<int>(o));
    }
    for (int t : NodesOf(output)) {
      const Operator& op = operators_[tensors_[t].op];
      PatternNode node{op.kind(), PatternsOf(op), {}};
      for (int operand : tensors_[t].operands) node.inputs.push_back(refs.at(operand));
      refs[t] = PatternRef::Node(static_cast<int>(candidate.target.nodes.size()));
      candidate.target.nodes.push_back(std::move(node));
    }
    candidate.target.outputs = {refs.at(output)};
    return candidate;
  }

  static std::vector<AttributePattern> PatternsOf(const Operator& op) {
    std::vector<AttributePattern> patterns;
    for (const Attribute& a : op.attributes()) patterns.push_back(ConstantAttribute(a));
    return patterns;
  }

  const OperatorCall& call_;
  const Declaration& whole_;
  const Ingredients ingredients_;
  std::vector<Operator> operators_;
  std::vector<Tensor> tensors_;
  std::vector<int> known_;                // operands, and what statements define
  std::vector<std::vector<int>> levels_;  // by the number of operators on top of those
  std::set<uint64_t> seen_;
  int evaluated_ = 0;
  std::map<std::pair<int, std::vector<Ints>>, std::optional<Declaration>> declarations_;
};

}  // namespace

std::vector<OpKind> PartOperators() {
  std::vector<OpKind> kinds;
  std::copy_if(AllOpKinds().begin(), AllOpKinds().end(), std::back_inserter(kinds), MayBePart);
  return kinds;
}

std::optional<Candidate> FindParts(const OperatorCall& call, Random* random) {
  std::vector<Ints> shapes;
  for (const TensorType& type : call.operands) {
    if (!IsFloat(type.dtype)) return std::nullopt;
    shapes.push_back(type.Sizes());
  }
  const std::optional<Declaration> declaration = DeclarationOf(call.op, shapes);
  if (!declaration.has_value()) return std::nullopt;
  for (const Attribute& a : call.op.attributes()) {
    const bool constant =
        std::holds_alternative<double>(a.value) || std::holds_alternative<int64_t>(a.value);
    if (!constant) return std::nullopt;
  }
  if (declaration->statements.size() < 2) return std::nullopt;
  return PartSearch(call, *declaration, random).Run();
}

}  // namespace isomer
