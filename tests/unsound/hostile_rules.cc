#include "tests/unsound/hostile_rules.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "generator/checking/check_rules.h"
#include "pcg/ir/examples.h"
#include "rules/matching/conditions.h"
#include "tests/unsound/hostile_terms.h"
#include "verifier/mutation/pattern_changes.h"
#include "verifier/refutation/counterexample.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

constexpr int kMostChanges = 3, kMostDepth = 3, kTries = 40;

// Every call of the term, parents first.
void Collect(DrawnTerm* term, std::vector<DrawnTerm*>* calls) {
  if (!term->kind) return;
  calls->push_back(term);
  for (DrawnTerm& operand : term->operands) Collect(&operand, calls);
}

PatternRef AddTo(const DrawnTerm& term, Pattern* pattern) {
  if (!term.kind) return PatternRef::Input(term.input);
  PatternNode node = {*term.kind, term.attributes, {}};
  for (const DrawnTerm& operand : term.operands) node.inputs.push_back(AddTo(operand, pattern));
  const auto same = std::find(pattern->nodes.begin(), pattern->nodes.end(), node);
  const int id = static_cast<int>(same - pattern->nodes.begin());
  if (same == pattern->nodes.end()) pattern->nodes.push_back(std::move(node));
  return PatternRef::Node(id);
}

// Draws terms over two or three inputs of one rank, and what may be thought to equal them.
class Terms {
 public:
  explicit Terms(std::mt19937_64* random) : random_(*random) {}

  int Below(size_t end) { return static_cast<int>(random_() % end); }
  bool Chance(int of) { return Below(static_cast<size_t>(of)) == 0; }
  template <typename T>
  const T& Any(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(values.size()))];
  }

  DrawnTerm Input() { return {std::nullopt, Below(3)}; }

  DrawnTerm Draw(int depth) {
    if (depth == 0 || Chance(6)) return Input();
    switch (Below(10)) {
      case 0:
      case 1:
      case 2:
        return DrawnCall(Unary(), {Draw(depth - 1)});
      case 3:
      case 4:
      case 5:
        return DrawnCall(Binary(), {Draw(depth - 1), Draw(depth - 1)});
      case 6:
        return DrawnCall(OpKind::kWhere, {Condition(depth - 1), Draw(depth - 1), Draw(depth - 1)});
      case 7:
        return WithAttributes(Draw(depth - 1));
      case 8:
        return OfDims(Draw(depth - 1), Draw(depth - 1));
      default:
        return Parallel(Draw(depth - 1));
    }
  }

  // What `term` becomes where something is done to it that often changes nothing.
  std::string Change(DrawnTerm* term) {
    std::vector<DrawnTerm*> calls;
    Collect(term, &calls);
    if (calls.empty() || Chance(4)) return Wrap(calls.empty() ? term : Any(calls));
    DrawnTerm* const call = Any(calls);
    const std::string name(OpName(*call->kind));
    switch (Below(9)) {
      case 0:
        return Wrap(call);
      case 1:
        return Exchange(call);
      case 2: {
        DrawnTerm kept = call->operands[static_cast<size_t>(Below(call->operands.size()))];
        *call = std::move(kept);
        return name + " left out";
      }
      case 3:
        if (call->operands.size() < 2) return Wrap(call);
        std::swap(call->operands[0], call->operands.back());
        return "operands of " + name + " exchanged";
      case 4:
        return Associate(call);
      case 5:
        return Distribute(call);
      case 6:
        return ChangeNumber(call);
      case 7:
        if (call->operands.size() != 2) return Exchange(call);
        call->kind = Binary();
        call->attributes.clear();
        return absl::StrCat(OpName(*call->kind), " for ", name);
      default:
        call->operands[static_cast<size_t>(Below(call->operands.size()))] = Input();
        return "an operand of " + name + " replaced";
    }
  }

 private:
  OpKind Unary() {
    static const std::vector<OpKind> kinds = {
        OpKind::kRelu, OpKind::kGelu,       OpKind::kTanh,       OpKind::kSigmoid, OpKind::kExp,
        OpKind::kLog,  OpKind::kSwish,      OpKind::kSoftplus,   OpKind::kLog,     OpKind::kSqrt,
        OpKind::kSqrt, OpKind::kReciprocal, OpKind::kReciprocal, OpKind::kErf,     OpKind::kSin,
        OpKind::kAbs,  OpKind::kSign,       OpKind::kFloor};
    return Any(kinds);
  }
  OpKind Binary() {
    static const std::vector<OpKind> kinds = {OpKind::kAdd,     OpKind::kSub,     OpKind::kMul,
                                              OpKind::kMul,     OpKind::kDiv,     OpKind::kDiv,
                                              OpKind::kMaximum, OpKind::kMinimum, OpKind::kPow};
    return Any(kinds);
  }
  DrawnTerm Condition(int depth) {
    static const std::vector<OpKind> kinds = {OpKind::kLess, OpKind::kLessEqual, OpKind::kEqual};
    const DrawnTerm compared = DrawnCall(Any(kinds), {Draw(depth), Draw(depth)});
    return Chance(4) ? DrawnCall(OpKind::kNot, {compared}) : compared;
  }
  double AnyNumber() {
    static const std::vector<double> numbers = {
        0, 1, -1, 2, 0.5, 0.1, 10, 3, 1e-162, 1e162, 1e-300, 1e300, 1e36, 5e-324, 1 + 1e-15};
    return Any(numbers);
  }
  DrawnTerm WithAttributes(DrawnTerm t) {
    switch (Below(5)) {
      case 0:
        return DrawnCall(OpKind::kClip, {t},
                         {DrawnNumber("min", Below(5) - 2), DrawnNumber("max", Below(5) - 2)});
      case 1:
        return DrawnCall(OpKind::kLeakyRelu, {t}, {DrawnNumber("alpha", AnyNumber())});
      case 2:
        return DrawnCall(OpKind::kCast, {t}, {DrawnInteger("to", Below(6))});
      default:
        return DrawnCall(OpKind::kScale, {t}, {DrawnNumber("factor", AnyNumber())});
    }
  }
  int64_t Axis() { return Chance(2) ? -1 : -2; }
  DrawnTerm OfDims(DrawnTerm t, DrawnTerm u) {
    static const std::vector<OpKind> reductions = {OpKind::kReduceSum, OpKind::kReduceMean,
                                                   OpKind::kReduceMax, OpKind::kReduceMin,
                                                   OpKind::kReduceProd};
    switch (Below(8)) {
      case 0:
        return DrawnCall(OpKind::kMatMul, {t, u});
      case 1:
        return DrawnCall(OpKind::kTranspose, {t}, {{"perm", SwapAxes{-2, -1}}});
      case 2:
        return DrawnCall(Any(reductions), {t},
                         {DrawnIntegers("axes", {Axis()}), DrawnInteger("keepdims", 1)});
      case 3:
        return DrawnCall(Chance(2) ? OpKind::kSoftmax : OpKind::kLogSoftmax, {t},
                         {DrawnInteger("axis", Axis())});
      case 4:
        return DrawnCall(OpKind::kCumSum, {t},
                         {DrawnInteger("axis", Axis()), DrawnInteger("exclusive", Below(2)),
                          DrawnInteger("reverse", Below(2))});
      case 5:
        return DrawnCall(OpKind::kConcat, {t, u}, {DrawnInteger("axis", Axis())});
      case 6:
        return DrawnCall(OpKind::kSlice, {t},
                         {DrawnIntegers("starts", {0, Below(2)}), DrawnIntegers("sizes", {2, 1}),
                          DrawnIntegers("steps", {1, 1})});
      default:
        return DrawnCall(OpKind::kTrilu, {t},
                         {DrawnInteger("upper", Below(2)), DrawnInteger("k", Below(3) - 1)});
    }
  }
  DrawnTerm Parallel(DrawnTerm t) {
    switch (Below(4)) {
      case 0:
        return DrawnCall(OpKind::kPartition, {t},
                         {DrawnInteger("axis", Axis()), DrawnInteger("degree", 2)});
      case 1:
        return DrawnCall(OpKind::kCombine, {t},
                         {DrawnInteger("axis", Axis()), DrawnInteger("degree", 2)});
      case 2:
        return DrawnCall(OpKind::kReplicate, {t}, {DrawnInteger("degree", 2)});
      default:
        return DrawnCall(OpKind::kReduce, {t}, {DrawnInteger("degree", 2)});
    }
  }
  // t becomes what is t on paper.
  std::string Wrap(DrawnTerm* term) {
    const DrawnTerm t = *term;
    const DrawnTerm u = Draw(1);
    if (Chance(2)) return Tempt(term, u);
    const DrawnTerm f = DrawnCall(Unary(), {u});
    const double factor = AnyNumber();
    DrawnTerm inner, outer;
    switch (Below(22)) {
      case 0:
        *term = Scaled(t, 1);
        return "1 t";
      case 1:
        *term = Scaled(Scaled(t, factor), 1 / factor);
        return "a t / a";
      case 2:
        *term = DrawnCall(OpKind::kAdd, {t, Scaled(f, 0)});
        return "t + 0 f(u)";
      case 3:
        *term = DrawnCall(OpKind::kAdd, {t, DrawnCall(OpKind::kSub, {f, f})});
        return "t + (f(u) - f(u))";
      case 4:
        *term = DrawnCall(OpKind::kMul, {t, DrawnCall(OpKind::kDiv, {f, f})});
        return "t f(u) / f(u)";
      case 5:
        *term = DrawnCall(OpKind::kSub, {DrawnCall(OpKind::kAdd, {t, u}), u});
        return "t + u - u";
      case 6:
        *term = DrawnCall(OpKind::kDiv, {DrawnCall(OpKind::kMul, {t, u}), u});
        return "t u / u";
      case 7:
        *term = DrawnCall(OpKind::kMaximum, {t, t});
        return "max(t, t)";
      case 8:
        *term = DrawnCall(OpKind::kWhere, {DrawnCall(OpKind::kLess, {u, t}), t, t});
        return "where(c, t, t)";
      case 9:
        *term = DrawnCall(OpKind::kExp, {DrawnCall(OpKind::kLog, {t})});
        return "exp(log(t))";
      case 10:
        *term = DrawnCall(OpKind::kLog, {DrawnCall(OpKind::kExp, {t})});
        return "log(exp(t))";
      case 11:
        *term = DrawnCall(OpKind::kSqrt, {DrawnCall(OpKind::kMul, {t, t})});
        return "sqrt(t t)";
      case 12:
        *term =
            DrawnCall(OpKind::kMul, {DrawnCall(OpKind::kSqrt, {t}), DrawnCall(OpKind::kSqrt, {t})});
        return "sqrt(t) sqrt(t)";
      case 13:
        *term = DrawnCall(OpKind::kReciprocal, {DrawnCall(OpKind::kReciprocal, {t})});
        return "1 / (1 / t)";
      case 14:
        *term = DrawnCall(OpKind::kRelu, {t});
        return "relu(t)";
      case 15:
        *term = DrawnCall(OpKind::kCast,
                          {DrawnCall(OpKind::kCast, {t}, {DrawnInteger("to", Below(6))})},
                          {DrawnInteger("to", 0)});
        return "casts there and back";
      case 16:
        *term = DrawnCall(OpKind::kReduce,
                          {DrawnCall(OpKind::kReplicate, {t}, {DrawnInteger("degree", 2)})},
                          {DrawnInteger("degree", 2)});
        return "the sum of copies";
      case 17: {
        const int64_t axis = Axis();
        *term = DrawnCall(OpKind::kCombine,
                          {DrawnCall(OpKind::kPartition, {t},
                                     {DrawnInteger("axis", axis), DrawnInteger("degree", 2)})},
                          {DrawnInteger("axis", Chance(3) ? Axis() : axis),
                           DrawnInteger("degree", Chance(4) ? 4 : 2)});
        return "partitioned and combined";
      }
      case 18:
        *term = DrawnCall(OpKind::kTranspose,
                          {DrawnCall(OpKind::kTranspose, {t}, {{"perm", SwapAxes{-2, -1}}})},
                          {{"perm", SwapAxes{-2, -1}}});
        return "transposed twice";
      case 19:
        *term = DrawnCall(OpKind::kDiv,
                          {t, DrawnCall(OpKind::kPow, {u, DrawnCall(OpKind::kSub, {u, u})})});
        return "t / u^0";
      case 20:
        *term = DrawnCall(OpKind::kSub, {DrawnCall(OpKind::kRelu, {t}),
                                         DrawnCall(OpKind::kRelu, {Scaled(t, -1)})});
        return "relu(t) - relu(-t)";
      default:
        *term =
            DrawnCall(OpKind::kClip, {t}, {DrawnNumber("min", -1e300), DrawnNumber("max", 1e300)});
        return "clip of almost nothing";
    }
  }

  std::string Tempt(DrawnTerm* term, const DrawnTerm& u) {
    const double number = AnyNumber();
    Temptation tempting = Chance(2)
                              ? TemptingReduction(*term, u, Axis(), Below(kTemptingReductions))
                              : TemptingFraction(*term, u, Draw(1), number == 0 ? 3 : number,
                                                 Below(kTemptingFractions));
    *term = std::move(tempting.term);
    return tempting.what;
  }

  // f(g(a, b)) becomes g(f(a), f(b)), or, where only some operands are wanted, g(f(a), b).
  std::string Exchange(DrawnTerm* call) {
    if (call->operands.size() != 1 || !call->operands[0].kind) return Wrap(call);
    DrawnTerm g = call->operands[0];
    const std::string what = absl::StrCat(OpName(*call->kind), " and ", OpName(*g.kind));
    const bool first_only = Chance(3);
    for (size_t i = 0; i < g.operands.size(); ++i) {
      // The first of Where is its condition.
      if (*g.kind == OpKind::kWhere && i == 0) continue;
      if (first_only && i > (*g.kind == OpKind::kWhere ? 1u : 0u)) continue;
      g.operands[i] = DrawnCall(*call->kind, {g.operands[i]}, call->attributes);
    }
    *call = std::move(g);
    return what + " exchanged";
  }

  // (a o b) p c becomes a o (b p c).
  std::string Associate(DrawnTerm* call) {
    if (call->operands.size() != 2 || call->operands[0].operands.size() != 2) return Wrap(call);
    const DrawnTerm inner = call->operands[0], c = call->operands[1];
    *call = DrawnCall(
        *inner.kind,
        {inner.operands[0], DrawnCall(*call->kind, {inner.operands[1], c}, call->attributes)},
        inner.attributes);
    return absl::StrCat("associated to the right: ", OpName(*inner.kind));
  }

  // (a o b) p c becomes (a p c) o (b p c).
  std::string Distribute(DrawnTerm* call) {
    if (call->operands.size() != 2 || call->operands[0].operands.size() != 2) return Wrap(call);
    const DrawnTerm inner = call->operands[0], c = call->operands[1];
    *call = DrawnCall(*inner.kind,
                      {DrawnCall(*call->kind, {inner.operands[0], c}, call->attributes),
                       DrawnCall(*call->kind, {inner.operands[1], c}, call->attributes)},
                      inner.attributes);
    return absl::StrCat("distributed over ", OpName(*inner.kind));
  }

  std::string ChangeNumber(DrawnTerm* call) {
    for (AttributePattern& attribute : call->attributes) {
      if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
        number->constant = Chance(2) ? number->constant * (1 + 1e-15) : AnyNumber();
        return attribute.name + " changed";
      }
      if (auto* integer = std::get_if<IntExpr>(&attribute.value)) {
        integer->constant += Chance(2) ? 1 : -1;
        return attribute.name + " changed";
      }
    }
    return Wrap(call);
  }

  std::mt19937_64& random_;
};

Condition Of(Condition::Kind kind, int a, int b = -1) {
  Condition condition;
  condition.kind = kind;
  condition.input = a;
  condition.input_b = b;
  return condition;
}

}  // namespace

HostileRule HostileRules::Draw() {
  for (;;) {
    const bool changed = !rules_.empty() && random_() % 2 == 0;
    std::optional<HostileRule> drawn = changed ? Changed() : Tempting();
    if (drawn.has_value()) return *std::move(drawn);
  }
}

std::optional<HostileRule> HostileRules::Changed() {
  HostileRule drawn = {rules_[random_() % rules_.size()], ""};
  drawn.how = drawn.rule.id;
  const int changes = 1 + static_cast<int>(random_() % kMostChanges);
  for (int change = 0; change < changes; ++change) {
    std::vector<ChangedRule> next = ChangesOf(drawn.rule);
    if (next.empty()) break;
    ChangedRule& taken = next[random_() % next.size()];
    absl::StrAppend(&drawn.how, "; ", taken.change);
    drawn.rule = std::move(taken.rule);
  }
  return drawn;
}

std::optional<HostileRule> HostileRules::Tempting() {
  Terms terms(&random_);
  DrawnTerm source = terms.Draw(1 + terms.Below(kMostDepth)), target = source;
  HostileRule drawn;
  const int changes = 1 + terms.Below(kMostChanges);
  for (int change = 0; change < changes; ++change) {
    absl::StrAppend(&drawn.how, change == 0 ? "" : "; ", terms.Change(&target));
  }
  if (source == target) return std::nullopt;
  if (terms.Chance(2)) std::swap(source, target);
  Rule& rule = drawn.rule;
  rule.source.outputs = {AddTo(source, &rule.source)};
  rule.target.outputs = {AddTo(target, &rule.target)};
  // Inputs in the order in which they are first named.
  std::vector<int> number(3, -1);
  for (Pattern* pattern : {&rule.source, &rule.target}) {
    auto renumber = [&](PatternRef* ref) {
      if (ref->node >= 0) return;
      int& renumbered = number[static_cast<size_t>(ref->index)];
      if (renumbered < 0) renumbered = rule.num_inputs++;
      ref->index = renumbered;
    };
    for (PatternNode& node : pattern->nodes) {
      for (PatternRef& ref : node.inputs) renumber(&ref);
    }
    for (PatternRef& ref : pattern->outputs) renumber(&ref);
  }
  rule.ranks = {std::vector<int>(static_cast<size_t>(rule.num_inputs), 2)};
  const bool no_partials = terms.Chance(2), same_types = terms.Chance(2);
  for (int x = 0; x < rule.num_inputs; ++x) {
    if (no_partials) rule.conditions.push_back(Of(Condition::Kind::kNoPartials, x));
    if (same_types && x > 0) rule.conditions.push_back(Of(Condition::Kind::kSameType, 0, x));
  }
  rule.origin = "attack";
  SetId(&rule);
  if (!ValidateRule(rule).ok()) return std::nullopt;
  return drawn;
}

namespace {

// Numbers so far from 1 that doubles round away what stands beside them: (x + 1e162 y) - 1e162 y.
bool HasWideNumbers(const Rule& rule) {
  constexpr double kWide = 1e6;
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      for (const AttributePattern& attribute : node.attributes) {
        const auto* number = std::get_if<NumberExpr>(&attribute.value);
        if (number == nullptr || number->constant == 0) continue;
        const double size = std::abs(number->constant);
        if (size > kWide || size < 1 / kWide) return true;
      }
    }
  }
  return false;
}

std::string SeenForward(const Rule& rule, int assignments, uint64_t seed) {
  TypeOracle oracle;
  ShardedCalls calls;
  const RuleCheck check =
      CheckRule(rule, {.instances = assignments, .seed = seed}, &oracle, &calls);
  // Of such a rule the exact field decides, below.
  const bool is_rounding =
      absl::StartsWith(check.failure, "values differ by") && HasWideNumbers(rule);
  if (!check.failure.empty() && !is_rounding) return check.failure;
  std::vector<Binding> bindings;
  if (const auto instances = InstancesOf(rule); instances.ok()) {
    const size_t step = instances->size() / static_cast<size_t>(kTries) + 1;
    for (size_t i = 0; i < instances->size(); i += step) {
      for (Binding& binding : SmallBindings((*instances)[i], 3, seed + i)) {
        bindings.push_back(std::move(binding));
      }
    }
  } else {
    bindings = RepresentativeBindings(rule);
  }
  constexpr uint64_t kEdges = 12;
  for (size_t b = 0; b < bindings.size() && b < static_cast<size_t>(kTries); ++b) {
    for (uint64_t edge = 0; edge < kEdges; ++edge) {
      const auto found = TryAtEdges(rule, bindings[b], seed * kEdges + edge);
      if (!found.ok()) break;
      const bool is_rounded =
          *found && (*found)->kind == Counterexample::Kind::kValues && HasWideNumbers(rule);
      if (*found && !is_rounded) return (*found)->Summary();
    }
    const absl::Status equal = ExpectEqualInField(rule, bindings[b], seed + b);
    if (absl::IsInternal(equal)) return std::string(equal.message());
  }
  return "";
}

}  // namespace

std::string DifferenceSeen(const Rule& rule, int assignments, uint64_t seed) {
  std::string seen = SeenForward(rule, assignments, seed);
  if (!seen.empty() || !rule.reversible) return seen;
  seen = SeenForward(Inverse(rule), assignments, seed);
  return seen.empty() ? seen : "from target to source: " + seen;
}

}  // namespace isomer
