#include "verifier/proving/algebra_proof.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/operator_call.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "pcg/support/check.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/structure.h"
#include "verifier/elements/normal_form.h"
#include "verifier/terms/representative_calls.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/evaluation_bound.h"
#include "verifier/values/piece_check.h"
#include "verifier/values/representative_bindings.h"
#include "verifier/values/small_evaluation.h"

namespace isomer {
namespace {

void CollectKinds(const TermPool& pool, TermId id, std::set<std::string>* names) {
  const Term& term = pool[id];
  if (term.symbol.kind == OpKind::kInput) return;
  names->insert(std::string(OpName(term.symbol.kind)));
  for (TermId argument : term.arguments) CollectKinds(pool, argument, names);
}

// The rule at definite types and attributes: one structure of its declarations.
absl::StatusOr<RuleInstance> InstanceAt(const Rule& rule, const Binding& binding) {
  RuleInstance instance;
  instance.rule = &rule;
  instance.inputs = ShapesOf(binding.inputs);
  for (const RuleVariable& variable : rule.variables) {
    if (variable.kind == VariableKind::kAxis) {
      instance.axes[variable.name] = binding.variables.at(variable.name);
    } else if (variable.kind == VariableKind::kSize) {
      instance.sizes[variable.name] = binding.variables.at(variable.name);
    }
  }
  for (const bool source : {true, false}) {
    std::vector<Call>& calls = source ? instance.source : instance.target;
    for (const PatternNode& node : (source ? rule.source : rule.target).nodes) {
      Call call;
      call.node = &node;
      call.symbol.kind = node.kind;
      std::vector<Shape> operands;
      for (const PatternRef& ref : node.inputs) operands.push_back(instance.ShapeOf(calls, ref));
      ISOMER_ASSIGN_OR_RETURN(
          const Operator op,
          InstantiateOperator(node, binding, static_cast<int>(operands[0].size())));
      ISOMER_ASSIGN_OR_RETURN(call.declaration, Declare(op, operands));
      call.passes_partials = PassesPartials(op);
      call.outputs = call.declaration->outputs;
      calls.push_back(std::move(call));
    }
  }
  return instance;
}

// Both sides have the same types at `binding`, as far as inference tells.
bool TypesAgreeAt(const Rule& rule, const Binding& binding) {
  const auto source = InstantiatePattern(rule.source, binding);
  const auto target = InstantiatePattern(rule.target, binding);
  if (!source.ok() || !target.ok()) return false;
  for (size_t o = 0; o < source->outputs().size(); ++o) {
    if (source->type(source->outputs()[o].tensor) != target->type(target->outputs()[o].tensor)) {
      return false;
    }
  }
  return true;
}

using FieldValue = Value<PrimeField>;

// The meanings of the outputs of one side. Integers are 0 or 1: indices of any dim.
absl::StatusOr<std::vector<Array<PrimeField>>> EvaluateSide(const Pattern& pattern,
                                                            const Binding& binding, uint64_t seed) {
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, binding));
  ISOMER_RETURN_IF_ERROR(ExpectFewPoints(graph));
  std::map<NodeId, FieldValue> leaves;
  for (size_t x = 0; x < binding.inputs.size(); ++x) {
    FieldValue value;
    value.type = binding.inputs[x];
    Array<PrimeField> array(value.type.Sizes());
    for (int64_t i = 0; i < array.size(); ++i) {
      const uint64_t drawn = HashCombine(seed, x, static_cast<uint64_t>(i));
      array.data[i] = PrimeField::FromRaw(IsFloat(value.type.dtype) ? drawn % PrimeField::kPrime
                                                                    : (drawn >> 7) % 2);
    }
    value.parts.push_back(std::move(array));
    leaves[NodeId{static_cast<int32_t>(x)}] = std::move(value);
  }
  ISOMER_ASSIGN_OR_RETURN(const Values<PrimeField> values,
                          EvaluateGraph<PrimeField>(graph, leaves));
  std::vector<Array<PrimeField>> outputs;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    for (auto& meaning : Meaning(values[output.tensor.node.value][output.tensor.output])) {
      outputs.push_back(std::move(meaning));
    }
  }
  return outputs;
}

absl::StatusOr<bool> EqualInField(const Rule& rule, const Binding& binding, uint64_t seed) {
  ISOMER_ASSIGN_OR_RETURN(const auto source, EvaluateSide(rule.source, binding, seed));
  ISOMER_ASSIGN_OR_RETURN(const auto target, EvaluateSide(rule.target, binding, seed));
  for (size_t o = 0; o < source.size(); ++o) {
    if (source[o].shape != target[o].shape || source[o].data != target[o].data) return false;
  }
  return true;
}

// That calls of one kind may be spread: every dim of every representative call, by a degree of 2.
absl::Status CheckPiecesOf(OpKind kind) {
  for (const OperatorCall& call : CallsToTry(kind)) {
    Binding binding;
    PatternNode node{kind, {}, {}};
    for (const Attribute& attribute : call.op.attributes()) {
      node.attributes.push_back({attribute.name, AttributeVariable{attribute.name}});
      binding.attributes[attribute.name] = attribute.value;
    }
    for (size_t o = 0; o < call.operands.size(); ++o) {
      node.inputs.push_back(PatternRef::Input(static_cast<int>(o)));
    }
    const Pattern pattern{{node}, {PatternRef::Node(0)}};
    for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
      const auto sharding = InferSharding(call.op, call.operands);
      if (!sharding.ok() || dim.size % 2 != 0) continue;
      std::vector<int64_t> degrees(sharding->degrees.size(), 1);
      degrees[dim.dim] = 2;
      const auto types = OperandTypesFor(call.op, call.operands, degrees);
      if (!types.ok()) continue;
      binding.inputs = *types;
      ISOMER_RETURN_IF_ERROR(CheckPieces(pattern, binding, 1));
    }
  }
  return absl::OkStatus();
}

class AlgebraProver {
 public:
  explicit AlgebraProver(const Rule& rule) : rule_(rule) {}

  FamilyProof Run() {
    const std::vector<Binding> bindings = RepresentativeBindings(rule_);
    if (bindings.empty()) return Unknown("no representative call is of this rule");
    for (const Binding& binding : bindings) {
      if (Refuted(binding)) return std::move(proof_);
    }
    for (const Binding& binding : bindings) {
      if (RefutedNear(binding)) return std::move(proof_);
    }
    for (const Binding& binding : bindings) {
      if (!TypesProved(binding)) return std::move(proof_);
    }
    std::set<std::string> names;
    for (const Pattern* side : {&rule_.source, &rule_.target}) {
      for (const PatternNode& node : side->nodes) {
        names.insert(std::string(OpName(node.kind)));
        if (!PiecesAreChecked(node.kind)) return std::move(proof_);
      }
    }
    if (!DataTypesAgree(rule_, &proof_.why)) return std::move(proof_);
    proof_.verdict = SmtVerdict::kValid;
    if (!HasCondition(rule_, Condition::Kind::kByStructure)) {
      proof_.lemmas.insert(absl::StrCat(kCheckedPrefix, "elements_of_", absl::StrJoin(names, "_")));
    } else {
      NameTheorems(bindings);
    }
    return std::move(proof_);
  }

 private:
  FamilyProof Unknown(std::string why) {
    proof_.why = std::move(why);
    return std::move(proof_);
  }

  // True if the verdict is known: a counterexample, or a difference that is none. Values that
  // differ where a theorem shows the sides equal contradict it: valid, with a counterexample.
  bool Refuted(const Binding& binding) {
    for (uint64_t seed : {1, 2}) {
      auto tried = TryBinding(rule_, binding, seed);
      if (tried.ok() && *tried) {
        const bool contradicted = HasCondition(rule_, Condition::Kind::kByStructure) &&
                                  (*tried)->kind == Counterexample::Kind::kValues;
        proof_.verdict = contradicted ? SmtVerdict::kValid : SmtVerdict::kInvalid;
        proof_.counterexample = **std::move(tried);
        return true;
      }
      const absl::StatusOr<bool> equal = EqualInField(rule_, binding, seed);
      if (equal.ok() && !*equal) {
        proof_.why = "values: the sides differ in a prime field";
        return true;
      }
    }
    return false;
  }

  bool RefutedNear(const Binding& binding) {
    constexpr int kMostEvaluated = 6;
    int evaluated = 0;
    for (const Binding& near : BindingsNear(rule_, binding)) {
      const bool agree = TypesAgreeAt(rule_, near);
      if ((!agree || evaluated++ < kMostEvaluated) && Refuted(near)) return true;
    }
    return false;
  }

  bool TypesProved(const Binding& binding) {
    const absl::StatusOr<RuleInstance> instance = InstanceAt(rule_, binding);
    if (!instance.ok()) {
      proof_.why = std::string(instance.status().message());
      return false;
    }
    const TypeProof types = ProveTypes(*instance);
    if (types.verdict == SmtVerdict::kValid) return true;
    proof_.why = types.why;
    for (Binding suspect : types.suspects) {
      // Attributes and axes are those of the call.
      suspect.attributes = binding.attributes;
      suspect.numbers = binding.numbers;
      suspect.variables = binding.variables;
      for (size_t x = 0; x < suspect.inputs.size(); ++x) {
        suspect.inputs[x].dtype = binding.inputs[x].dtype;
      }
      if (Refuted(suspect)) break;
    }
    return false;
  }

  // The rule admits no binding at which no theorem shows it; representative ones tell which do.
  void NameTheorems(const std::vector<Binding>& bindings) {
    for (const Binding& binding : bindings) {
      const auto source = SideAt(rule_.source, binding), target = SideAt(rule_.target, binding);
      ISOMER_CHECK(source.ok() && target.ok());
      ISOMER_CHECK(EqualByStructure(*source, *target, &proof_.lemmas).ok());
    }
  }

  bool PiecesAreChecked(OpKind kind) {
    static auto* const known = new std::map<OpKind, absl::Status>;
    auto [at, is_new] = known->try_emplace(kind);
    if (is_new) at->second = CheckPiecesOf(kind);
    proof_.lemmas.insert(absl::StrCat("pieces_of_", std::string(OpName(kind))));
    if (!at->second.ok()) proof_.why = std::string(at->second.message());
    return at->second.ok();
  }

  const Rule& rule_;
  FamilyProof proof_;
};

}  // namespace

absl::StatusOr<bool> ProveElements(const TermPool& pool, const std::vector<Goal>& goals,
                                   std::string* lemma) {
  std::set<std::string> names;
  for (const Goal& goal : goals) {
    // What the target divides by is asked of the rule besides (Prover).
    ISOMER_ASSIGN_OR_RETURN(const bool equal,
                            ProvablyEqual(pool, goal.left, goal.right, Divisors::kNotZero));
    if (!equal) return false;
    for (uint64_t seed : {1, 2}) {
      // Evaluation may lack an element (a look-up outside of its table), but must not contradict.
      const absl::StatusOr<bool> agree = EqualAtSmallSizes(pool, goal.left, goal.right, seed);
      ISOMER_CHECK(!agree.ok() || *agree);
    }
    CollectKinds(pool, goal.left, &names);
    CollectKinds(pool, goal.right, &names);
  }
  *lemma = absl::StrCat("elements_of_", absl::StrJoin(names, "_"));
  return true;
}

FamilyProof ProveAlgebra(const Rule& rule) {
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      if (IsParallel(node.kind)) {
        FamilyProof proof;
        proof.why = "the rule has parallel operators";
        return proof;
      }
    }
  }
  if (rule.source.nodes.empty()) return {};
  return AlgebraProver(rule).Run();
}

}  // namespace isomer
