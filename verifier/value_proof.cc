#include "verifier/value_proof.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/structure.h"
#include "verifier/algebra_proof.h"

namespace isomer {
namespace {

// The terms of a side's nodes: [node][output].
using NodeTerms = std::vector<std::vector<TermId>>;

absl::StatusOr<NodeTerms> TermsOf(const std::vector<Call>& calls, const std::vector<TermId>& inputs,
                                  SymbolRenaming* rename, TermPool* pool) {
  NodeTerms terms;
  for (const Call& call : calls) {
    std::vector<TermId> arguments;
    for (const PatternRef& ref : call.node->inputs) {
      arguments.push_back(ref.node < 0 ? inputs[ref.index] : terms[ref.node][ref.index]);
    }
    terms.emplace_back();
    for (size_t output = 0; output < call.outputs.size(); ++output) {
      Symbol symbol = call.symbol;
      symbol.index = static_cast<int>(output);
      for (Extent& size : symbol.sizes) size = (*rename)(size);
      ISOMER_ASSIGN_OR_RETURN(const TermId term, pool->Apply(symbol, arguments));
      terms.back().push_back(term);
    }
  }
  return terms;
}

void AddKinds(const TermPattern& pattern, std::set<OpKind>* kinds) {
  if (pattern.letter == 0) kinds->insert(pattern.kind);
  for (const TermPattern& argument : pattern.arguments) AddKinds(argument, kinds);
}

// Whether some lemma speaks of every operator of the term.
bool LemmasMention(const TermPool& pool, TermId id) {
  static const auto* const kinds = [] {
    auto* known = new std::set<OpKind>{OpKind::kInput};
    for (const Lemma& lemma : LemmaTable()) {
      AddKinds(lemma.left, known);
      AddKinds(lemma.right, known);
    }
    return known;
  }();
  const Term& term = pool[id];
  return kinds->count(term.symbol.kind) > 0 &&
         std::all_of(term.arguments.begin(), term.arguments.end(),
                     [&](TermId argument) { return LemmasMention(pool, argument); });
}

// Proves the goals as lemmas of their own.
bool ProveAsLemmas(const TermPool& pool, const std::vector<Goal>& goals, ValueProof* proof) {
  std::string lemma;
  const absl::StatusOr<bool> proved = ProveElements(pool, goals, &lemma);
  if (!proved.ok() || !*proved) return false;
  proof->verdict = SmtVerdict::kValid;
  proof->lemmas.insert(lemma);
  return true;
}

// Calls of a side without parallel operators.
absl::StatusOr<ConcreteSide> CallsOfSide(const std::vector<Call>& calls, const Pattern& pattern) {
  ConcreteSide side;
  for (const Call& call : calls) {
    if (!call.declaration) return absl::FailedPreconditionError("a parallel operator");
    const std::vector<Shape>& operands = call.declaration->operands;
    ISOMER_ASSIGN_OR_RETURN(Operator op, OperatorOf(call.symbol, operands));
    side.calls.push_back({std::move(op), call.node->inputs, operands});
  }
  side.outputs = pattern.outputs;
  return side;
}

// By the structure of the declarations, which takes no time.
bool FollowsFromStructure(const RuleInstance& instance, ValueProof* proof) {
  const auto source = CallsOfSide(instance.source, instance.rule->source);
  const auto target = CallsOfSide(instance.target, instance.rule->target);
  if (!source.ok() || !target.ok()) return false;
  return EqualByStructure(*source, *target, &proof->lemmas).ok();
}

}  // namespace

ValueProof ValueProver::ProveGoals(const std::vector<Goal>& goals, TermPool* pool) {
  ValueProof proof;
  const bool mentioned = std::all_of(goals.begin(), goals.end(), [&](const Goal& goal) {
    return LemmasMention(*pool, goal.left) && LemmasMention(*pool, goal.right);
  });
  if (!mentioned && ProveAsLemmas(*pool, goals, &proof)) return proof;
  const Saturation saturation = Saturate(goals, pool, &book_);
  if (!saturation.reached) {
    if (mentioned && ProveAsLemmas(*pool, goals, &proof)) return proof;
    proof.why = absl::StrCat("values: not derived from the lemmas in ", saturation.rounds,
                             " rounds: ", pool->ToString(goals[0].left), " = ",
                             pool->ToString(goals[0].right));
    return proof;
  }
  for (const Goal& goal : goals) {
    const EqualityAnswer answer = DecideEquality(*pool, saturation.instances, goal);
    if (answer.verdict != SmtVerdict::kValid) {
      proof.why = "values: the solver does not confirm the lemmas that were found";
      return proof;
    }
    for (int used : answer.used) proof.lemmas.insert(saturation.instances[used].lemma->id);
  }
  proof.verdict = SmtVerdict::kValid;
  return proof;
}

ValueProof ValueProver::Prove(const RuleInstance& instance) {
  SymbolRenaming rename;
  TermPool pool;
  std::vector<TermId> inputs;
  std::string key;
  for (size_t x = 0; x < instance.inputs.size(); ++x) {
    const Shape shape = rename(instance.inputs[x]);
    inputs.push_back(pool.Variable(static_cast<int>(x), shape));
    absl::StrAppend(&key, "x", x, "[");
    for (const Extent& size : shape) absl::StrAppend(&key, size.ToString(), ",");
    absl::StrAppend(&key, "] ");
  }
  ValueProof failed;
  const absl::StatusOr<NodeTerms> source = TermsOf(instance.source, inputs, &rename, &pool);
  const absl::StatusOr<NodeTerms> target = TermsOf(instance.target, inputs, &rename, &pool);
  for (const absl::Status& status : {source.status(), target.status()}) {
    if (status.ok()) continue;
    failed.why = std::string(status.message());
    return failed;
  }
  std::vector<Goal> goals;
  auto term_at = [&](const NodeTerms& terms, PatternRef ref) {
    return ref.node < 0 ? inputs[ref.index] : terms[ref.node][ref.index];
  };
  const Rule& rule = *instance.rule;
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    goals.push_back(
        {term_at(*source, rule.source.outputs[o]), term_at(*target, rule.target.outputs[o])});
    absl::StrAppend(&key, pool.ToString(goals.back().left), " = ",
                    pool.ToString(goals.back().right), "; ");
  }
  auto known = known_.find(key);
  if (known == known_.end()) {
    ValueProof proof;
    if (FollowsFromStructure(instance, &proof)) {
      proof.verdict = SmtVerdict::kValid;
    } else {
      proof = ProveGoals(goals, &pool);
    }
    known = known_.emplace(key, std::move(proof)).first;
  }
  ValueProof proof = known->second;
  if (proof.verdict != SmtVerdict::kValid) return proof;
  for (const std::vector<Call>* side : {&instance.source, &instance.target}) {
    for (const Call& call : *side) {
      if (!call.declaration) {
        if (call.node->kind != OpKind::kConcatPartials) {
          proof.lemmas.insert(absl::StrCat(std::string(OpName(call.node->kind)), "_is_identity"));
        }
        continue;
      }
      pieces_.Add(call, &proof.lemmas);
    }
  }
  return proof;
}

}  // namespace isomer
