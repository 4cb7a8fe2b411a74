#include "verifier/families/family_proof.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/families/family.h"
#include "verifier/families/family_types.h"
#include "verifier/values/piece_check.h"

namespace isomer {
namespace {

const Condition* SplitOf(const Rule& rule, const FamilySide& source) {
  for (const Condition& condition : rule.conditions) {
    if (condition.kind == Condition::Kind::kSplitsDim && condition.node == source.node) {
      return &condition;
    }
  }
  return nullptr;
}

void AddIdentities(const Pattern& pattern, std::set<std::string>* lemmas) {
  for (const PatternNode& node : pattern.nodes) {
    if (!IsParallel(node.kind)) continue;
    lemmas->insert(absl::StrCat(std::string(OpName(node.kind)), "_is_identity"));
  }
}

}  // namespace

// Both sides, since either may have the call that is spread.
absl::Status FamilyProver::PiecesOf(const Pattern& pattern, const Binding& binding) {
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, binding));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    std::vector<TensorType> types;
    std::string key = node.op.ToString();
    for (TensorRef input : node.inputs) {
      types.push_back(graph.type(input));
      absl::StrAppend(&key, " ", types.back().ToString());
    }
    auto known = pieces_.find(key);
    if (known == pieces_.end()) {
      known = pieces_.emplace(key, CheckPiecesOfCall(node.op, types, 1)).first;
    }
    ISOMER_RETURN_IF_ERROR(known->second);
  }
  return absl::OkStatus();
}

void FamilyProver::Try(const Rule& rule, const Binding& binding, bool check_pieces,
                       Trials* trials) {
  const auto tried = TryBinding(rule, binding, 1);
  if (!tried.ok()) return;
  ++trials->admitted;
  if (*tried) {
    if (!trials->found) trials->found = **tried;
    return;
  }
  for (const Pattern* side : {&rule.source, &rule.target}) {
    if (check_pieces && trials->pieces.ok()) trials->pieces = PiecesOf(*side, binding);
  }
}

// Proved lemmas need no checks, and a few bindings show that the source type-checks at all.
FamilyProver::Trials FamilyProver::TryCalls(const Rule& rule, const FamilySide& source,
                                            const FamilyCalls& calls) {
  constexpr int kEnough = 6;
  Trials trials;
  const size_t count = calls.bases.size(), step = calls.all ? count / kEnough + 1 : 1;
  // Calls differ in ranks first: step through all of them.
  for (size_t begin = 0; begin < step; ++begin) {
    for (size_t i = begin; i < count; i += step) {
      for (const Binding& binding :
           TrialBindings(rule, source, SplitOf(rule, source), calls.bases[i])) {
        Try(rule, binding, !calls.all, &trials);
        if (trials.found) return trials;
      }
      if (calls.all && trials.admitted >= kEnough) return trials;
    }
  }
  return trials;
}

FamilyProof FamilyProver::Prove(const Rule& rule) {
  FamilyProof proof;
  const std::optional<FamilySide> source = SideOf(rule, rule.source);
  if (!source) {
    proof.why = "the rule is no family";
    return proof;
  }
  const PatternNode& node = rule.source.nodes[source->node];
  const std::optional<Family> family = TakeApart(rule);
  const FamilyCalls& calls = calls_.CallsOf(rule, node);
  const bool types = family && FamilyTypesAgree(rule, *family, calls.facts, &proof.why);
  Trials trials = TryCalls(rule, *source, calls);
  if (!family) {
    proof.why = absl::StrCat(OpName(node.kind),
                             " needs known sizes or attributes, and the rule is no family");
  } else if (types && trials.admitted == 0) {
    proof.why = "no representative call is of this family";
  } else if (types && !trials.pieces.ok()) {
    proof.why = std::string(trials.pieces.message());
  } else if (types && (calls.all || !trials.found)) {
    proof.verdict = SmtVerdict::kValid;
    proof.counterexample = std::move(trials.found);
    proof.lemmas = calls.lemmas;
    if (!calls.all) {
      proof.lemmas.insert(absl::StrCat("pieces_of_", std::string(OpName(node.kind))));
    }
    AddIdentities(rule.source, &proof.lemmas);
    AddIdentities(rule.target, &proof.lemmas);
    return proof;
  }
  // What is not proved may be false at other degrees, copies or partials.
  for (size_t i = 0; i < calls.bases.size() && !trials.found; ++i) {
    for (const Binding& binding :
         WildBindings(rule, *source, SplitOf(rule, *source), calls.bases[i])) {
      Try(rule, binding, false, &trials);
      if (trials.found) break;
    }
  }
  if (trials.found) {
    proof.verdict = SmtVerdict::kInvalid;
    proof.counterexample = std::move(trials.found);
  }
  return proof;
}

}  // namespace isomer
