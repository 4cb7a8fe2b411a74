#include "verifier/family_proof.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "verifier/piece_check.h"
#include "verifier/sample_calls.h"

namespace isomer {
namespace {

// A rule taken apart as a family.
struct Family {
  const PatternNode* call = nullptr;       // of the source; the target's has the same attributes
  std::vector<const PatternNode*> before;  // per operand, or null
  std::vector<const PatternNode*> after;   // per output of the rule, or null
  const PatternNode* wrap = nullptr;       // after the source's call
  const Condition* split = nullptr;        // null: no dim is split
  std::vector<int> outputs;                // of the call, per output of the rule
};

const IntExpr* AttributeOf(const PatternNode& node, const char* name) {
  for (const AttributePattern& attribute : node.attributes) {
    if (attribute.name == name) return std::get_if<IntExpr>(&attribute.value);
  }
  return nullptr;
}

// The parallel operator of one operand that `ref` is, over what it is applied to; or null if `ref`
// itself is that.
const PatternNode* ParallelAt(const Pattern& pattern, PatternRef* ref) {
  if (ref->node < 0) return nullptr;
  const PatternNode& node = pattern.nodes[ref->node];
  if (!IsParallel(node.kind) || node.inputs.size() != 1) return nullptr;
  *ref = node.inputs[0];
  return &node;
}

std::optional<Family> TakeApart(const Rule& rule) {
  Family family;
  const PatternNode& call = rule.source.nodes[0];
  if (IsParallel(call.kind)) return std::nullopt;
  family.call = &call;
  for (size_t o = 0; o < call.inputs.size(); ++o) {
    if (call.inputs[o] != PatternRef::Input(static_cast<int>(o))) return std::nullopt;
  }
  for (PatternRef ref : rule.source.outputs) {
    const PatternNode* wrap = ParallelAt(rule.source, &ref);
    if (wrap != nullptr && rule.source.outputs.size() != 1) return std::nullopt;
    if (ref.node != 0) return std::nullopt;
    family.wrap = wrap;
    family.outputs.push_back(ref.index);
  }
  if (rule.source.nodes.size() != (family.wrap ? 2u : 1u)) return std::nullopt;
  int inner = -1;
  size_t parallel = 0;
  for (size_t o = 0; o < rule.target.outputs.size(); ++o) {
    PatternRef ref = rule.target.outputs[o];
    family.after.push_back(ParallelAt(rule.target, &ref));
    parallel += family.after.back() != nullptr;
    if (ref.node < 0 || (inner >= 0 && ref.node != inner)) return std::nullopt;
    inner = ref.node;
    if (ref.index != family.outputs[o]) return std::nullopt;
  }
  if (inner < 0) return std::nullopt;
  const PatternNode& other = rule.target.nodes[inner];
  if (other.kind != call.kind || other.attributes != call.attributes ||
      other.inputs.size() != call.inputs.size()) {
    return std::nullopt;
  }
  for (size_t o = 0; o < other.inputs.size(); ++o) {
    PatternRef ref = other.inputs[o];
    family.before.push_back(ParallelAt(rule.target, &ref));
    parallel += family.before.back() != nullptr;
    if (ref != PatternRef::Input(static_cast<int>(o))) return std::nullopt;
  }
  if (rule.target.nodes.size() != parallel + 1 || rule.conditions.size() > 1) return std::nullopt;
  if (!rule.conditions.empty()) {
    family.split = &rule.conditions[0];
    if (family.split->kind != Condition::Kind::kSplitsDim || family.split->node != 0) {
      return std::nullopt;
    }
  }
  return family;
}

// Types, in exponents of any prime. The call's split dim has degree v; operand o has copies
// c + shared[o] (+ v, if the dim does not lead an axis of it), where shared[o] counts the tasks of
// all other dims and of partials; output t has partials rest[t] (+ v, if the dim is a sum dim).
class FamilyTypes {
 public:
  FamilyTypes(const Rule& rule, const Family& family) : rule_(rule), family_(family) {}

  bool Proved(std::string* why) {
    const bool sums = family_.split != nullptr && OutputAxis(0) == nullptr;
    const Extent v = family_.split != nullptr ? Fresh() : Extent(0), copies = Fresh();
    if (!ReadDegree()) return Fail("the degree is not one variable throughout", why);
    // The target's call: its split dim has degree v + split, and `copies_after` copies.
    const Extent v_after = family_.split != nullptr ? v + degree_ : v;
    Extent copies_after;
    for (size_t o = 0; o < family_.before.size(); ++o) {
      const IntExpr* axis = family_.split ? OperandAxis(o) : nullptr;
      Extent have = copies + Fresh();  // shared[o] is the same on both sides
      const Extent shared = have - copies;
      if (axis == nullptr) have += v;
      const PatternNode* before = family_.before[o];
      Extent led = v;
      if (before != nullptr && before->kind == OpKind::kPartition) {
        const IntExpr* at = AttributeOf(*before, "axis");
        if (axis == nullptr || at == nullptr || !(*at == *axis)) {
          return Fail("an operand is partitioned along another axis", why);
        }
        led += degree_;
      } else if (before != nullptr && before->kind == OpKind::kReplicate) {
        have += degree_;
      } else if (before != nullptr) {
        return Fail("an operand is neither partitioned nor replicated", why);
      }
      if (axis != nullptr) Require(led, v_after);
      const Extent needed_less_copies = shared + (axis == nullptr ? v_after : Extent(0));
      if (o == 0) copies_after = have - needed_less_copies;
      Require(have, copies_after + needed_less_copies);
    }
    for (size_t t = 0; t < family_.after.size(); ++t) {
      const IntExpr* axis = family_.split ? OutputAxis(t) : nullptr;
      if (family_.split && !sums && axis == nullptr) return Fail("an output is not led", why);
      Extent led = v_after, partials = sums ? v_after : Extent(0), had_copies = copies;
      const PatternNode* after = family_.after[t];
      if (after != nullptr && after->kind == OpKind::kCombine) {
        const IntExpr* at = AttributeOf(*after, "axis");
        if (axis == nullptr || at == nullptr || !(*at == *axis)) {
          return Fail("an output is combined along another axis", why);
        }
        led -= degree_;
      } else if (after != nullptr && after->kind == OpKind::kReduce) {
        partials -= degree_;
      } else if (after != nullptr) {
        return Fail("an output is neither combined nor reduced", why);
      }
      if (family_.wrap != nullptr) {
        if (family_.wrap->kind != OpKind::kReplicate) return Fail("not carried copies", why);
        had_copies += degree_;
      }
      if (axis != nullptr) Require(led, v);
      Require(partials, sums ? v : Extent(0));
      Require(copies_after, had_copies);
    }
    const ExponentAnswer answer = DecideExponents({}, facts_);
    return answer.verdict == SmtVerdict::kValid || Fail("degrees or copies differ", why);
  }

 private:
  static bool Fail(const char* text, std::string* why) {
    *why = absl::StrCat("types: ", text);
    return false;
  }
  Extent Fresh() { return Extent::Symbol(next_++); }
  void Require(const Extent& left, const Extent& right) {
    ExponentFact fact;
    fact.left = left;
    fact.right = right;
    facts_.push_back(std::move(fact));
  }
  const IntExpr* OperandAxis(size_t o) const { return At(family_.split->operand_axes, o); }
  const IntExpr* OutputAxis(size_t t) const {
    return At(family_.split->output_axes, static_cast<size_t>(family_.outputs[t]));
  }
  static const IntExpr* At(const std::vector<std::optional<IntExpr>>& axes, size_t i) {
    return i < axes.size() && axes[i] ? &*axes[i] : nullptr;
  }

  // All parallel operators and the condition have the same degree, a variable.
  bool ReadDegree() {
    const IntExpr* degree = family_.split ? &family_.split->left : nullptr;
    std::vector<const PatternNode*> nodes = family_.before;
    nodes.insert(nodes.end(), family_.after.begin(), family_.after.end());
    nodes.push_back(family_.wrap);
    for (const PatternNode* node : nodes) {
      const IntExpr* found = node == nullptr ? degree : AttributeOf(*node, "degree");
      if (node == nullptr) continue;
      if (found == nullptr || (degree != nullptr && !(*found == *degree))) return false;
      degree = found;
    }
    degree_ = Fresh();
    return degree != nullptr && degree->kind == IntExpr::Kind::kVariable;
  }

  const Rule& rule_;
  const Family& family_;
  int next_ = 0;
  Extent degree_;
  std::vector<ExponentFact> facts_;
};

// Binds the variables in the pattern's attributes to the call's attributes. False: they differ.
bool BindCall(const Rule& rule, const PatternNode& node, const RepresentativeCall& call,
              Binding* binding) {
  binding->inputs = call.operands;
  const int rank = call.operands[0].rank();
  for (const AttributePattern& attribute : node.attributes) {
    const AttributeValue* value = call.op.Find(attribute.name);
    if (value == nullptr) return false;
    if (auto* variable = std::get_if<AttributeVariable>(&attribute.value)) {
      binding->attributes[variable->name] = *value;
    } else if (auto* number = std::get_if<NumberExpr>(&attribute.value)) {
      if (number->variables.size() != 1 || number->constant != 1) return false;
      binding->numbers[number->variables[0]] = std::get<double>(*value);
    } else if (auto* axis = std::get_if<IntExpr>(&attribute.value)) {
      if (axis->kind != IntExpr::Kind::kVariable) return false;
      const int64_t i = std::get<int64_t>(*value);
      binding->variables[axis->variable] = attribute.name == "axis" && i >= 0 ? i - rank : i;
    } else {
      return false;
    }
  }
  return static_cast<int>(call.operands.size()) == rule.num_inputs;
}

struct Trials {
  int admitted = 0;  // bindings
  std::optional<Counterexample> found;
  absl::Status pieces;  // the first task whose part is not that of the whole
};

// Tries the rule at every representative call, with every choice of axes and a degree of 2.
Trials TryCalls(const Rule& rule, const PatternNode& node) {
  Trials trials;
  for (const RepresentativeCall& call : RepresentativeCalls(node.kind)) {
    Binding binding;
    if (!BindCall(rule, node, call, &binding)) continue;
    int64_t largest_rank = 4;
    for (const TensorType& operand : call.operands) {
      largest_rank = std::max<int64_t>(largest_rank, operand.rank());
    }
    std::vector<std::string> axes;
    for (const RuleVariable& variable : rule.variables) {
      if (variable.kind == VariableKind::kDegree) binding.variables[variable.name] = 2;
      if (variable.kind == VariableKind::kAxis && !binding.variables.contains(variable.name)) {
        axes.push_back(variable.name);
      }
    }
    std::function<void(size_t)> each = [&](size_t i) {
      if (i == axes.size()) {
        const auto tried = TryBinding(rule, binding, 1);
        if (!tried.ok()) return;
        ++trials.admitted;
        if (*tried && !trials.found) trials.found = **tried;
        if (!*tried && trials.pieces.ok()) trials.pieces = CheckPieces(rule.target, binding, 1);
        return;
      }
      for (int64_t axis = -largest_rank; axis < 0; ++axis) {
        binding.variables[axes[i]] = axis;
        each(i + 1);
      }
    };
    each(0);
  }
  return trials;
}

}  // namespace

FamilyProof ProveFamily(const Rule& rule) {
  FamilyProof proof;
  if (rule.source.nodes.empty()) return proof;
  const PatternNode& node = rule.source.nodes[0];
  Trials trials = TryCalls(rule, node);
  if (trials.found) {
    proof.verdict = SmtVerdict::kInvalid;
    proof.counterexample = std::move(trials.found);
    return proof;
  }
  const std::optional<Family> family = TakeApart(rule);
  if (!family) {
    proof.why = absl::StrCat(OpName(node.kind),
                             " needs known sizes or attributes, and the rule is no family");
    return proof;
  }
  if (!FamilyTypes(rule, *family).Proved(&proof.why)) return proof;
  if (trials.admitted == 0) {
    proof.why = "no representative call is of this family";
    return proof;
  }
  if (!trials.pieces.ok()) {
    proof.why = std::string(trials.pieces.message());
    return proof;
  }
  // Both sides are the same call, up to identities on meanings.
  proof.verdict = SmtVerdict::kValid;
  proof.lemmas.insert(absl::StrCat(kCheckedPrefix, "pieces_of_", std::string(OpName(node.kind))));
  for (const std::vector<const PatternNode*>* nodes : {&family->before, &family->after}) {
    for (const PatternNode* parallel : *nodes) {
      if (parallel == nullptr) continue;
      proof.lemmas.insert(absl::StrCat(std::string(OpName(parallel->kind)), "_is_identity"));
    }
  }
  if (family->wrap != nullptr) {
    proof.lemmas.insert(absl::StrCat(std::string(OpName(family->wrap->kind)), "_is_identity"));
  }
  return proof;
}

}  // namespace isomer
