#include "verifier/proving/value_proof.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/structure.h"
#include "verifier/certificate/equal_sides.h"
#include "verifier/proving/algebra_proof.h"
#include "verifier/terms/symbol_renaming.h"

namespace isomer {
namespace {

constexpr char kPartialsMeanTheirSum[] = "partials_mean_their_sum";

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

absl::StatusOr<ConcreteSide> CallsOfSide(const std::vector<Call>& calls, const Pattern& pattern,
                                         const RuleInstance& instance) {
  ConcreteSide side;
  for (const Call& call : calls) {
    std::vector<Shape> operands;
    for (PatternRef ref : call.node->inputs) operands.push_back(instance.ShapeOf(calls, ref));
    // Of a parallel operator nothing but its kind is asked.
    Operator op(call.node->kind);
    if (call.declaration) {
      ISOMER_ASSIGN_OR_RETURN(op, OperatorOf(call.symbol, operands));
    }
    side.calls.push_back({std::move(op), call.node->inputs, std::move(operands)});
  }
  side.outputs = pattern.outputs;
  return side;
}

// As one term, or by the structure of the declarations, which takes no time.
bool FollowsFromStructure(const RuleInstance& instance, ValueProof* proof) {
  const auto source = CallsOfSide(instance.source, instance.rule->source, instance);
  const auto target = CallsOfSide(instance.target, instance.rule->target, instance);
  if (!source.ok() || !target.ok()) return false;
  const ErasedSides sides = WithoutParallel(*source, *target);
  return sides.same || EqualByStructure(sides.source, sides.target, &proof->lemmas).ok();
}

ValueProof ProveGoals(const RuleInstance& instance, const TermPool& pool,
                      const std::vector<Goal>& goals) {
  ValueProof proof;
  if (FollowsFromStructure(instance, &proof)) {
    proof.verdict = SmtVerdict::kValid;
    return proof;
  }
  std::string lemma;
  const absl::StatusOr<bool> equal = ProveElements(pool, goals, &lemma);
  if (equal.ok() && *equal) {
    proof.verdict = SmtVerdict::kValid;
    proof.lemmas.insert(lemma);
    return proof;
  }
  proof.why =
      absl::StrCat("values: ", equal.ok() ? "no common normal form" : equal.status().message(),
                   ": ", pool.ToString(goals[0].left), " = ", pool.ToString(goals[0].right));
  return proof;
}

}  // namespace

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
    known = known_.emplace(key, ProveGoals(instance, pool, goals)).first;
  }
  ValueProof proof = known->second;
  if (proof.verdict != SmtVerdict::kValid) return proof;
  for (const std::vector<Call>* side : {&instance.source, &instance.target}) {
    for (const Call& call : *side) {
      if (!call.declaration) {
        proof.lemmas.insert(
            call.node->kind == OpKind::kConcatPartials
                ? std::string(kPartialsMeanTheirSum)
                : absl::StrCat(std::string(OpName(call.node->kind)), "_is_identity"));
        continue;
      }
      pieces_.Add(call, &proof.lemmas);
    }
  }
  return proof;
}

}  // namespace isomer
