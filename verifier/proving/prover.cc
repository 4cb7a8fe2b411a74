#include "verifier/proving/prover.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/domains.h"
#include "verifier/families/family_proof.h"
#include "verifier/proving/algebra_proof.h"
#include "verifier/proving/value_proof.h"
#include "verifier/terms/rule_instance.h"
#include "verifier/terms/smt.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

// A proof that evaluation contradicts must not be believed, and neither must any other proof.
[[noreturn]] void AbortOnContradiction(const Rule& rule, const std::string& difference) {
  std::fprintf(stderr, "bug: rule %s is proved but evaluation differs: %s\n%s\n", rule.id.c_str(),
               difference.c_str(), rule.ToString().c_str());
  std::abort();
}

// The instances of a rule, made when they are asked for, and once: a rule of many ranks has
// thousands.
class Instances {
 public:
  explicit Instances(const Rule& rule) : rule_(rule) {}
  const absl::StatusOr<std::vector<RuleInstance>>& Get() {
    if (!made_) made_ = InstancesOf(rule_);
    return *made_;
  }

 private:
  const Rule& rule_;
  std::optional<absl::StatusOr<std::vector<RuleInstance>>> made_;
};

std::optional<Counterexample> Search(const Rule& rule, const std::vector<Binding>& bindings) {
  for (const Binding& binding : bindings) {
    for (uint64_t seed : {1, 2}) {
      absl::StatusOr<std::optional<Counterexample>> found = TryBinding(rule, binding, seed);
      if (!found.ok()) break;  // The source does not admit it.
      if (!*found) found = TryApart(rule, binding, seed);
      if (found.ok() && *found) return *std::move(found);
    }
  }
  return std::nullopt;
}

// Assignments at which the source and its gradients are finite and the target's are not.
std::optional<Counterexample> SearchUndefined(const Rule& rule, Instances* of_rule) {
  constexpr size_t kMostBindings = 8;
  constexpr uint64_t kSeeds = 48;
  std::vector<Binding> bindings;
  if (const auto& instances = of_rule->Get(); instances.ok()) {
    for (size_t i = 0; i < instances->size() && i < kMostBindings; ++i) {
      for (Binding& binding : SmallBindings((*instances)[i], 1, i + 1)) {
        bindings.push_back(std::move(binding));
      }
    }
  }
  for (Binding& binding : RepresentativeBindings(rule)) {
    if (bindings.size() == 2 * kMostBindings) break;
    bindings.push_back(std::move(binding));
  }
  for (const Binding& binding : bindings) {
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      absl::StatusOr<std::optional<Counterexample>> found = TryAtEdges(rule, binding, seed);
      if (!found.ok()) break;
      if (*found) return *std::move(found);
    }
  }
  return std::nullopt;
}

bool HasParallel(const Rule& rule) {
  for (const Pattern* side : {&rule.source, &rule.target}) {
    if (std::any_of(side->nodes.begin(), side->nodes.end(),
                    [](const PatternNode& node) { return IsParallel(node.kind); })) {
      return true;
    }
  }
  return false;
}

}  // namespace

class Prover::Impl {
 public:
  Judgement Judge(const Rule& rule) {
    const auto start = std::chrono::steady_clock::now();
    Judgement judgement = JudgeDirection(rule);
    if (judgement.record.verdict == ProofRecord::Verdict::kProved && rule.reversible) {
      Judgement inverse = JudgeDirection(Inverse(rule));
      if (inverse.record.verdict == ProofRecord::Verdict::kProved) {
        std::set<std::string> lemmas(judgement.record.lemmas.begin(),
                                     judgement.record.lemmas.end());
        lemmas.insert(inverse.record.lemmas.begin(), inverse.record.lemmas.end());
        judgement.record.lemmas.assign(lemmas.begin(), lemmas.end());
      } else {
        judgement = std::move(inverse);
        judgement.record.note = absl::StrCat("from target to source: ", judgement.record.note);
      }
    }
    const std::vector<std::string>& lemmas = judgement.record.lemmas;
    const bool rests_on_checks = std::any_of(
        lemmas.begin(), lemmas.end(),
        [](const std::string& lemma) { return absl::StartsWith(lemma, kCheckedPrefix); });
    if (judgement.record.verdict == ProofRecord::Verdict::kProved && rests_on_checks) {
      judgement.record.verdict = ProofRecord::Verdict::kChecked;
      judgement.record.note = absl::StrCat("evaluated at representative calls, not proved: ",
                                           absl::StrJoin(lemmas, ", "));
    }
    judgement.record.solver = SolverName();
    judgement.record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return judgement;
  }

 private:
  static Judgement Unknown(std::string note) {
    Judgement judgement;
    judgement.record.verdict = ProofRecord::Verdict::kUnknown;
    judgement.record.note = std::move(note);
    return judgement;
  }

  static Judgement Refuted(Counterexample counterexample) {
    Judgement judgement;
    judgement.record.verdict = ProofRecord::Verdict::kRefuted;
    judgement.record.note = counterexample.Summary();
    judgement.counterexample = std::move(counterexample);
    return judgement;
  }

  Judgement JudgeDirection(const Rule& rule) {
    Instances instances(rule);
    Judgement judgement = JudgeEquality(rule, &instances);
    if (judgement.record.verdict == ProofRecord::Verdict::kRefuted) return judgement;
    const absl::Status defined = TargetIsDefined(rule, &instances);
    if (!defined.ok()) {
      if (std::optional<Counterexample> found = SearchUndefined(rule, &instances)) {
        return Refuted(*std::move(found));
      }
    }
    absl::Status shown = defined;
    if (!HasCondition(rule, Condition::Kind::kByStructure)) {
      shown.Update(CastsAreTheSame(rule.source, rule.target));
    }
    if (shown.ok() || judgement.record.verdict == ProofRecord::Verdict::kUnknown) return judgement;
    return Unknown(std::string(shown.message()));
  }

  // That the target is defined wherever the source is. Under the condition by_structure that is
  // asked of the calls at hand.
  static absl::Status TargetIsDefined(const Rule& rule, Instances* of_rule) {
    const absl::Status by_patterns = DefinedWhereSourceIs(rule.source, rule.target);
    if (by_patterns.ok() || HasCondition(rule, Condition::Kind::kByStructure)) {
      return absl::OkStatus();
    }
    const absl::StatusOr<std::vector<RuleInstance>>& instances = of_rule->Get();
    if (!instances.ok()) return by_patterns;
    for (const RuleInstance& instance : *instances) {
      ISOMER_RETURN_IF_ERROR(instance.target_status);  // Else the target is cut short.
      ISOMER_RETURN_IF_ERROR(DefinedWhereSourceIs({CallsOf(instance.source), rule.source.outputs},
                                                  {CallsOf(instance.target), rule.target.outputs}));
    }
    return absl::OkStatus();
  }

  static std::vector<CallWithDomain> CallsOf(const std::vector<Call>& side) {
    std::vector<CallWithDomain> calls;
    for (const Call& call : side) {
      calls.push_back({call.node->kind, OperatorText(*call.node), call.node->inputs,
                       call.declaration ? &*call.declaration : nullptr});
    }
    return calls;
  }

  Judgement JudgeEquality(const Rule& rule, Instances* instances) {
    if (absl::Status valid = ValidateRule(rule); !valid.ok()) {
      return Unknown(std::string(valid.message()));
    }
    // Families first: their proofs are shorter by far, where there are both.
    const bool is_family = HasParallel(rule) && TakeApart(rule).has_value();
    FamilyProof family;
    if (is_family) family = families_.Prove(rule);
    if (family.verdict == SmtVerdict::kUnknown) {
      Judgement judgement = JudgeInstances(rule, instances->Get());
      if (judgement.record.verdict != ProofRecord::Verdict::kUnknown) return judgement;
      if (!is_family) family = HasParallel(rule) ? families_.Prove(rule) : ProveAlgebra(rule);
      if (family.verdict == SmtVerdict::kUnknown) {
        if (!family.why.empty()) absl::StrAppend(&judgement.record.note, "; ", family.why);
        return judgement;
      }
    }
    if (family.verdict == SmtVerdict::kInvalid) return Refuted(*std::move(family.counterexample));
    if (family.counterexample) AbortOnContradiction(rule, family.counterexample->Summary());
    Judgement judgement;
    judgement.record.verdict = ProofRecord::Verdict::kProved;
    judgement.record.lemmas.assign(family.lemmas.begin(), family.lemmas.end());
    return judgement;
  }

  Judgement JudgeInstances(const Rule& rule,
                           const absl::StatusOr<std::vector<RuleInstance>>& instances) {
    if (!instances.ok()) return Unknown(std::string(instances.status().message()));
    std::set<std::string> lemmas;
    std::string why;
    if (!DataTypesAgree(rule, &why)) {
      for (const RuleInstance& instance : *instances) {
        if (auto found = SearchDataTypes(rule, instance)) return Refuted(*std::move(found));
      }
    }
    for (const RuleInstance& instance : *instances) {
      std::string missing;
      std::vector<Binding> suspects;
      if (ProveInstance(instance, &lemmas, &missing, &suspects)) continue;
      if (why.empty()) why = missing;
      for (uint64_t seed : {1, 2}) {
        for (Binding& binding : SmallBindings(instance, 4, seed)) {
          suspects.push_back(std::move(binding));
        }
      }
      if (auto found = Search(rule, suspects)) return Refuted(*std::move(found));
    }
    if (!why.empty()) return Unknown(why);
    if (!Evaluates(rule, *instances)) return Unknown("the source never type-checks");
    Judgement judgement;
    judgement.record.verdict = ProofRecord::Verdict::kProved;
    judgement.record.lemmas.assign(lemmas.begin(), lemmas.end());
    return judgement;
  }

  bool ProveInstance(const RuleInstance& instance, std::set<std::string>* lemmas, std::string* why,
                     std::vector<Binding>* suspects) {
    TypeProof types = ProveTypes(instance);
    if (types.verdict != SmtVerdict::kValid) {
      *why = types.why;
      *suspects = std::move(types.suspects);
      return false;
    }
    const ValueProof values = values_.Prove(instance);
    *why = values.why;
    lemmas->insert(values.lemmas.begin(), values.lemmas.end());
    return values.verdict == SmtVerdict::kValid;
  }

  static std::optional<Counterexample> SearchDataTypes(const Rule& rule,
                                                       const RuleInstance& instance) {
    std::vector<Binding> bindings;
    for (const Binding& binding : SmallBindings(instance, 1, 1)) {
      for (DataType other : {DataType::kInt64, DataType::kBool, DataType::kBFloat16}) {
        for (int bits = 1; bits < (1 << rule.num_inputs); ++bits) {
          bindings.push_back(binding);
          for (int x = 0; x < rule.num_inputs; ++x) {
            if ((bits >> x) & 1) bindings.back().inputs[x].dtype = other;
          }
          // Of calls that round integers rules do not speak.
          for (auto& [name, number] : bindings.back().numbers) number = 2;
        }
      }
    }
    return Search(rule, bindings);
  }

  // Evaluates a proved rule at a few bindings, which must agree. False: no binding was found at
  // which the source type-checks, so the theorem may say nothing.
  static bool Evaluates(const Rule& rule, const std::vector<RuleInstance>& instances) {
    constexpr int kEnough = 3;
    int evaluated = 0;
    // Instances differ in ranks first: step through all of them.
    const size_t step = instances.size() / kEnough + 1;
    for (size_t begin = 0; begin < step && evaluated == 0; ++begin) {
      for (size_t i = begin; i < instances.size(); i += step) {
        for (const Binding& binding : SmallBindings(instances[i], 1, i + 1)) {
          const auto found = TryBinding(rule, binding, i + 1);
          if (!found.ok()) continue;
          // Doubles that differ may be rounded, (x + 1e162 y) - 1e162 y to 0; the field is exact.
          if (*found && (*found)->kind != Counterexample::Kind::kValues) {
            AbortOnContradiction(rule, (*found)->Summary());
          }
          const absl::Status equal = ExpectEqualInField(rule, binding, i + 1);
          if (!equal.ok()) AbortOnContradiction(rule, std::string(equal.message()));
          ++evaluated;
        }
        if (evaluated >= kEnough) return true;
      }
    }
    return evaluated > 0;
  }

  ValueProver values_;
  FamilyProver families_;
};

Prover::Prover() : impl_(std::make_unique<Impl>()) {}
Prover::~Prover() = default;
Judgement Prover::Judge(const Rule& rule) { return impl_->Judge(rule); }

}  // namespace isomer
