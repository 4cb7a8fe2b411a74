#include "generator/pipeline/settle_candidates.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "generator/enumeration/equation.h"
#include "generator/pipeline/step_records.h"
#include "generator/preconditions/settle.h"
#include "pcg/support/hash.h"
#include "pcg/support/in_order.h"

namespace isomer {
namespace {

// Operators of one side, shared ones counted at each use, and how often it uses each input.
struct Uses {
  int operators = 0;
  std::map<int, int> inputs;
};

void CountUses(const Pattern& pattern, PatternRef ref, Uses* uses) {
  if (ref.node < 0) {
    ++uses->inputs[ref.index];
    return;
  }
  ++uses->operators;
  for (PatternRef input : pattern.nodes[ref.node].inputs) CountUses(pattern, input, uses);
}

Uses UsesOf(const Pattern& pattern) {
  Uses uses;
  // The outputs of a Split are one use of it.
  std::set<int> nodes;
  for (PatternRef ref : pattern.outputs) {
    if (ref.node < 0 || nodes.insert(ref.node).second) CountUses(pattern, ref, &uses);
  }
  return uses;
}

// Whether one side uses every input once. An equation with no such side is nearly always another
// one with some of its inputs made equal, or a composition (generator/enumeration/enumerator.h).
bool HasLinearSide(const Candidate& candidate) {
  for (const Pattern* side : {&candidate.source, &candidate.target}) {
    const Uses uses = UsesOf(*side);
    if (std::all_of(uses.inputs.begin(), uses.inputs.end(),
                    [](const auto& use) { return use.second == 1; })) {
      return true;
    }
  }
  return false;
}

// Without the types: a pair that did not generalise does not do so at other types of its ranks.
std::string FormOf(const Candidate& candidate) {
  Candidate untyped = candidate;
  for (TensorType& type : untyped.inputs) type = SequentialType(type.Sizes());
  return CanonicalName(untyped);
}

bool SourceUsesAllInputs(const Candidate& candidate) {
  return UsesOf(candidate.source).inputs.size() == candidate.inputs.size();
}

// What is worked out ahead of a candidate's turn.
struct Appraisal {
  bool linear = false;
  std::string form;
  std::unique_ptr<Derivations> derivations;  // null: ill-typed
  std::optional<Generalized> forward;
  // The way back, under conditions of its own: null if its source lacks an input.
  std::unique_ptr<Derivations> back;
  std::optional<Generalized> backward;
};

class Settlement {
 public:
  Settlement(const std::vector<Candidate>& candidates, const SettleRun& run,
             AcceptedRules* accepted, Statistics* statistics)
      : candidates_(candidates), run_(run), statistics_(statistics), accepted_(accepted) {}

  void Run(absl::FunctionRef<void()> progress) {
    size_t first = 0;
    std::string before = StateText();
    // What an earlier run decided on the same candidates after the same ones.
    for (; first < candidates_.size(); first = EndOfRun(first)) {
      const MemoKey key = run_.keys->OfDecisions(before, RunOf(first));
      const std::optional<std::string> kept = run_.memo->Find("decide", key);
      if (!kept.has_value()) break;
      absl::StatusOr<Decisions> decisions = DecodeDecisions(*kept);
      if (!decisions.ok()) break;
      for (const GeneralRule& rule : decisions->rules) accepted_->Add(rule);
      hopeless_.insert(decisions->hopeless.begin(), decisions->hopeless.end());
      statistics_->Add(decisions->statistics);
      for (size_t i = first; i < EndOfRun(first); ++i) progress();
      before = KeyText(key);
    }
    InOrder<Appraisal> appraisals(run_.jobs, candidates_.size() - first, 8 * run_.jobs, [&] {
      return [this, first, oracle = std::make_shared<TypeOracle>()](size_t i) {
        return Appraise(candidates_[first + i], oracle.get());
      };
    });
    TypeOracle oracle;
    for (; first < candidates_.size(); first = EndOfRun(first)) {
      decisions_ = {};
      for (const Candidate& candidate : RunOf(first)) {
        Decide(candidate, appraisals.Take(), &oracle);
        progress();
      }
      const MemoKey key = run_.keys->OfDecisions(before, RunOf(first));
      run_.memo->Put(key, Encode(decisions_));
      statistics_->Add(decisions_.statistics);
      before = KeyText(key);
    }
  }

 private:
  // Candidates are remembered by runs of so many.
  static constexpr size_t kRun = 128;
  size_t EndOfRun(size_t first) const { return std::min(first + kRun, candidates_.size()); }
  absl::Span<const Candidate> RunOf(size_t first) const {
    return absl::MakeSpan(candidates_).subspan(first, EndOfRun(first) - first);
  }
  static std::string KeyText(const MemoKey& key) {
    return DigestString(key[0]) + DigestString(key[1]);
  }
  // Of the rules before the first candidate, and of how they are used.
  std::string StateText() const {
    std::string text = absl::StrCat(run_.composition_steps, "\n");
    for (const GeneralRule& rule : accepted_->rules()) absl::StrAppend(&text, rule.rule.id, "\n");
    return text;
  }

  Appraisal Appraise(const Candidate& candidate, TypeOracle* oracle) {
    Appraisal appraisal;
    appraisal.linear = HasLinearSide(candidate);
    if (!appraisal.linear) return appraisal;
    appraisal.form = FormOf(candidate);
    if (IsHopeless(appraisal.form)) return appraisal;
    appraisal.derivations = DerivationsOf(candidate);
    if (appraisal.derivations == nullptr || IsKnown(appraisal.derivations.get())) return appraisal;
    appraisal.forward = GeneralizeOnce(candidate, oracle);
    if (!NeedsWayBack(*appraisal.forward)) return appraisal;
    const Candidate reversed = Reversed(candidate);
    if (!SourceUsesAllInputs(reversed)) return appraisal;
    appraisal.back = DerivationsOf(reversed);
    if (appraisal.back != nullptr && !IsInstance(appraisal.back.get())) {
      appraisal.backward = GeneralizeOnce(reversed, oracle);
    }
    return appraisal;
  }

  void Decide(const Candidate& candidate, Appraisal appraisal, TypeOracle* oracle) {
    auto prune = [&](const std::string& reason, const std::vector<std::string>& by = {}) {
      std::string text = ConstantRule(candidate).ToString();
      if (!by.empty()) absl::StrAppend(&text, "  by ", absl::StrJoin(by, ", "));
      decisions_.statistics.Prune(reason, text);
    };
    if (!appraisal.linear) return prune("no side uses each input once");
    if (hopeless_.contains(appraisal.form)) return prune("does not generalise");
    if (appraisal.derivations == nullptr) return prune("ill-typed on a second look");
    const CandidateGraphs& graphs = appraisal.derivations->graphs();
    if (FormHash(graphs.source) == FormHash(graphs.target)) {
      return prune("commuted operands");
    }
    const Derivations::Result derivation = appraisal.derivations->Find(accepted_->book());
    if (derivation.kind == Derivations::Kind::kInstance) {
      return prune("instance of a more general rule", derivation.rules);
    }
    if (derivation.kind == Derivations::Kind::kComposition) {
      return prune("composition of rules", derivation.rules);
    }
    if (!appraisal.forward.has_value()) appraisal.forward = GeneralizeOnce(candidate, oracle);
    bool accepted = AcceptIfItHolds(*appraisal.forward);
    if (NeedsWayBack(*appraisal.forward)) accepted |= DecideWayBack(candidate, &appraisal, oracle);
    if (accepted) return;
    if (!appraisal.forward->rule.has_value()) prune("does not generalise");
    decisions_.hopeless.push_back(appraisal.form);
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    hopeless_.insert(appraisal.form);
  }

  static bool NeedsWayBack(const Generalized& forward) {
    return !forward.holds || !forward.rule->rule.reversible;
  }

  bool DecideWayBack(const Candidate& candidate, Appraisal* appraisal, TypeOracle* oracle) {
    const Candidate reversed = Reversed(candidate);
    if (!SourceUsesAllInputs(reversed)) return false;
    if (appraisal->back == nullptr) appraisal->back = DerivationsOf(reversed);
    if (appraisal->back == nullptr || IsInstance(appraisal->back.get())) return false;
    if (!appraisal->backward.has_value()) appraisal->backward = GeneralizeOnce(reversed, oracle);
    std::optional<GeneralRule>& rule = appraisal->backward->rule;
    if (!rule.has_value() || !appraisal->backward->holds) return false;
    rule->rule.reversible = false;  // Its inverse is the rule that it reverses.
    SetId(&rule->rule);
    Accept(*rule);
    return true;
  }

  bool AcceptIfItHolds(const Generalized& generalized) {
    if (!generalized.rule.has_value()) return false;
    if (generalized.holds) {
      Accept(*generalized.rule);
    } else {
      decisions_.statistics.Prune("refuted on fresh inputs", generalized.rule->rule.ToString());
    }
    return generalized.holds;
  }

  // A function of the candidate alone.
  Generalized GeneralizeOnce(const Candidate& candidate, TypeOracle* oracle) {
    const MemoKey key = run_.keys->OfGeneralization(candidate);
    if (const std::optional<std::string> kept = run_.memo->Find("generalize", key)) {
      if (absl::StatusOr<Generalized> known = DecodeGeneralized(*kept); known.ok()) return *known;
    }
    Random random(HashBytes(FormOf(candidate), run_.seed));
    Generalized result;
    result.rule = Generalize(candidate, oracle, &random);
    result.holds = result.rule.has_value() &&
                   HoldsAround(result.rule->rule, result.rule->found, 8, false, oracle, &random);
    run_.memo->Put(key, Encode(result));
    return result;
  }

  std::unique_ptr<Derivations> DerivationsOf(const Candidate& candidate) const {
    absl::StatusOr<CandidateGraphs> graphs = GraphsOf(candidate);
    if (!graphs.ok()) return nullptr;
    return std::make_unique<Derivations>(*std::move(graphs), run_.composition_steps);
  }

  // The following look at the rules so far, of which more may come before the candidate's turn.
  bool IsKnown(Derivations* derivations) {
    const CandidateGraphs& graphs = derivations->graphs();
    if (FormHash(graphs.source) == FormHash(graphs.target)) return true;
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return derivations->Find(accepted_->book()).kind != Derivations::Kind::kNone;
  }
  bool IsInstance(Derivations* derivations) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return derivations->IsInstance(accepted_->book());
  }
  bool IsHopeless(const std::string& form) {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    return hopeless_.contains(form);
  }
  void Accept(const GeneralRule& rule) {
    decisions_.rules.push_back(rule);
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    accepted_->Add(rule);
  }

  const std::vector<Candidate>& candidates_;
  const SettleRun& run_;
  Statistics* const statistics_;
  Decisions decisions_;  // of the run at hand
  // Changed by the thread that decides, which alone reads them without the lock.
  std::shared_mutex mutex_;
  AcceptedRules* const accepted_;
  absl::flat_hash_set<std::string> hopeless_;
};

}  // namespace

bool AcceptedRules::Add(const GeneralRule& rule) {
  if (!digests_.insert(rule.rule.Digest()).second) return false;
  book_.Add(rule.rule);
  rules_.push_back(rule);
  return true;
}

void SettleCandidates(const std::vector<Candidate>& candidates, const SettleRun& run,
                      AcceptedRules* accepted, Statistics* statistics,
                      absl::FunctionRef<void()> progress) {
  Settlement(candidates, run, accepted, statistics).Run(progress);
}

int SizeOf(const Candidate& candidate) {
  return UsesOf(candidate.source).operators + UsesOf(candidate.target).operators;
}

}  // namespace isomer
