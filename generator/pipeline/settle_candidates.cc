#include "generator/pipeline/settle_candidates.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "generator/enumeration/equation.h"
#include "generator/pipeline/step_items.h"
#include "generator/pipeline/step_records.h"
#include "pcg/support/check.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

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

bool SourceUsesAllInputs(const Candidate& candidate) {
  return UsesOf(candidate.source).inputs.size() == candidate.inputs.size();
}

// What is worked out ahead of a candidate's turn.
struct Appraisal {
  size_t number = 0;
  const Candidate* candidate = nullptr;
  bool is_done = false;
  bool linear = false;
  std::string form;
  std::unique_ptr<Derivations> derivations;  // null: ill-typed
  std::optional<Generalized> forward;
  // The way back, under conditions of its own: null if its source lacks an input.
  std::optional<Candidate> reversed;
  std::unique_ptr<Derivations> back;
  std::optional<Generalized> backward;
};

class Settlement {
 public:
  Settlement(const std::vector<Candidate>& candidates, const SettleRun& run,
             AcceptedRules* accepted, Statistics* statistics)
      : candidates_(candidates),
        run_(run),
        queue_(run.queue),
        statistics_(statistics),
        accepted_(accepted) {}

  absl::Status Run(absl::FunctionRef<void()> progress) {
    size_t first = 0;
    std::string before = StateText();
    // What an earlier run decided on the same candidates after the same ones.
    for (; first < candidates_.size(); first = EndOfRun(first)) {
      const MemoKey key = run_.keys->OfDecisions(before, RunOf(first));
      const std::optional<std::string> kept = queue_->memo()->Find("decide", key);
      if (!kept.has_value()) break;
      absl::StatusOr<Decisions> decisions = DecodeDecisions(*kept);
      if (!decisions.ok()) break;
      for (const GeneralRule& rule : decisions->rules) accepted_->Add(rule);
      hopeless_.insert(decisions->hopeless.begin(), decisions->hopeless.end());
      statistics_->Add(decisions->statistics);
      for (size_t i = first; i < EndOfRun(first); ++i) progress();
      before = KeyText(key);
    }
    next_ = first;
    if (next_ < candidates_.size()) {
      queue_->Tell(AllRulesItem(accepted_->rules()), /*anew=*/true);
    }
    for (; first < candidates_.size(); first = EndOfRun(first)) {
      decisions_ = {};
      for (size_t i = first; i < EndOfRun(first); ++i) {
        AppraiseAhead();
        Appraisal& appraisal = ahead_.front();
        ISOMER_RETURN_IF_ERROR(queue_->WaitUntil([&] { return appraisal.is_done; }));
        Decide(appraisal);
        ahead_.pop_front();
        progress();
      }
      const MemoKey key = run_.keys->OfDecisions(before, RunOf(first));
      queue_->memo()->Put(key, Encode(decisions_));
      statistics_->Add(decisions_.statistics);
      before = KeyText(key);
    }
    return absl::OkStatus();
  }

 private:
  // Candidates are remembered by runs of so many.
  static constexpr size_t kRun = 128;
  // So many are appraised before their turn, by several workers: few of them need to be
  // generalised, which takes long, and these should be known early.
  static constexpr size_t kAhead = 1024;
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

  void AppraiseAhead() {
    const size_t ahead = queue_->num_workers() > 1 ? kAhead : 1;
    while (ahead_.size() < ahead && next_ < candidates_.size()) {
      // Places in a deque stay what they are.
      Appraisal& appraisal = ahead_.emplace_back();
      appraisal.number = next_;
      appraisal.candidate = &candidates_[next_++];
      Appraise(&appraisal);
    }
    GeneralizeNext();
  }

  // One after the other: whether rules derive the candidate, what it generalises to, and the same
  // of the way back. Nothing more is asked for as soon as what comes cannot matter.
  void Appraise(Appraisal* a) {
    const Candidate& candidate = *a->candidate;
    a->linear = HasLinearSide(candidate);
    if (a->linear) a->form = FormOf(candidate);
    if (!a->linear || hopeless_.contains(a->form)) {
      a->is_done = true;
      return;
    }
    AskForDerivations(a, candidate, /*only_instance=*/false, &a->derivations);
  }

  void AskForDerivations(Appraisal* a, const Candidate& candidate, bool only_instance,
                         std::unique_ptr<Derivations>* derivations) {
    const StepItem item = DerivationItem(candidate, run_.composition_steps, only_instance);
    queue_->DoAnew(item, [this, a, candidate, derivations](const std::string& bytes) {
      absl::StatusOr<Derived> derived = DecodeDerived(bytes);
      if (!derived.ok()) return false;
      if (derived->well_typed) *derivations = DerivationsOf(candidate, &derived->state);
      if (!derived->well_typed || derived->commuted || derived->known) {
        a->is_done = true;
      } else {
        underived_[a->number] = a;
      }
      GeneralizeNext();
      return true;
    });
  }

  // Generalisations take long, and many are of no use once a rule is found that derives the
  // candidate. So no more are begun than there are workers, those of earlier candidates first, and
  // none of a candidate that is derived by now.
  void GeneralizeNext() {
    while (!underived_.empty() && num_generalized_ < queue_->num_workers()) {
      Appraisal* const a = underived_.begin()->second;
      underived_.erase(underived_.begin());
      const bool is_back = a->forward.has_value();
      if (hopeless_.contains(a->form) || IsDerived(a)) {
        a->is_done = true;
        continue;
      }
      const Candidate& candidate = is_back ? *a->reversed : *a->candidate;
      ++num_generalized_;
      queue_->Do(GeneralizationItem(*run_.keys, candidate), [this, a](const std::string& bytes) {
        absl::StatusOr<Generalized> generalized = DecodeGeneralized(bytes);
        if (!generalized.ok()) return false;
        --num_generalized_;
        TakeGeneralized(a, *std::move(generalized));
        GeneralizeNext();
        return true;
      });
    }
  }

  // By the rules so far, as far as is asked for.
  bool IsDerived(Appraisal* a) const {
    const RuleBook& book = accepted_->book();
    return a->forward.has_value() ? a->back->IsInstance(book)
                                  : a->derivations->Find(book).kind != Derivations::Kind::kNone;
  }

  void TakeGeneralized(Appraisal* a, Generalized generalized) {
    if (a->forward.has_value()) {
      a->backward = std::move(generalized);
      a->is_done = true;
      return;
    }
    a->forward = std::move(generalized);
    if (NeedsWayBack(*a->forward)) a->reversed = Reversed(*a->candidate);
    if (!a->reversed.has_value() || !SourceUsesAllInputs(*a->reversed)) {
      a->is_done = true;
    } else {
      AskForDerivations(a, *a->reversed, /*only_instance=*/true, &a->back);
    }
  }

  void Decide(const Appraisal& appraisal) {
    const Candidate& candidate = *appraisal.candidate;
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
    // With the rules that came since it was appraised.
    const Derivations::Result derivation = appraisal.derivations->Find(accepted_->book());
    if (derivation.kind == Derivations::Kind::kInstance) {
      return prune("instance of a more general rule", derivation.rules);
    }
    if (derivation.kind == Derivations::Kind::kComposition) {
      return prune("composition of rules", derivation.rules);
    }
    // Nothing derives it, so that nothing did when it was appraised.
    bool accepted = AcceptIfItHolds(*appraisal.forward);
    if (NeedsWayBack(*appraisal.forward)) accepted |= DecideWayBack(appraisal);
    if (accepted) return;
    if (!appraisal.forward->rule.has_value()) prune("does not generalise");
    decisions_.hopeless.push_back(appraisal.form);
    hopeless_.insert(appraisal.form);
  }

  static bool NeedsWayBack(const Generalized& forward) {
    return !forward.holds || !forward.rule->rule.reversible;
  }

  bool DecideWayBack(const Appraisal& appraisal) {
    if (appraisal.back == nullptr || appraisal.back->IsInstance(accepted_->book())) return false;
    if (!appraisal.backward->rule.has_value() || !appraisal.backward->holds) return false;
    GeneralRule rule = *appraisal.backward->rule;
    rule.rule.reversible = false;  // Its inverse is the rule that it reverses.
    SetId(&rule.rule);
    Accept(rule);
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

  std::unique_ptr<Derivations> DerivationsOf(const Candidate& candidate,
                                             Derivations::State* state) const {
    absl::StatusOr<CandidateGraphs> graphs = GraphsOf(candidate);
    ISOMER_CHECK(graphs.ok());
    return std::make_unique<Derivations>(*std::move(graphs), run_.composition_steps,
                                         std::move(*state));
  }

  void Accept(const GeneralRule& rule) {
    decisions_.rules.push_back(rule);
    if (accepted_->Add(rule)) queue_->Tell(NewRulesItem({rule}), /*anew=*/false);
  }

  const std::vector<Candidate>& candidates_;
  const SettleRun& run_;
  WorkQueue* const queue_;
  Statistics* const statistics_;
  Decisions decisions_;  // of the run at hand
  AcceptedRules* const accepted_;
  absl::flat_hash_set<std::string> hopeless_;
  size_t next_ = 0;  // to be appraised
  std::deque<Appraisal> ahead_;
  std::map<size_t, Appraisal*> underived_;  // to be generalised, by number
  int num_generalized_ = 0;                 // at this time
};

}  // namespace

bool AcceptedRules::Add(const GeneralRule& rule) {
  if (!digests_.insert(rule.rule.Digest()).second) return false;
  book_.Add(rule.rule);
  rules_.push_back(rule);
  if (on_rule_ != nullptr) on_rule_(rule);
  return true;
}

absl::Status SettleCandidates(const std::vector<Candidate>& candidates, const SettleRun& run,
                              AcceptedRules* accepted, Statistics* statistics,
                              absl::FunctionRef<void()> progress) {
  return Settlement(candidates, run, accepted, statistics).Run(progress);
}

int SizeOf(const Candidate& candidate) {
  return UsesOf(candidate.source).operators + UsesOf(candidate.target).operators;
}

std::string FormOf(const Candidate& candidate) {
  Candidate untyped = candidate;
  for (TensorType& type : untyped.inputs) type = SequentialType(type.Sizes());
  return CanonicalName(untyped);
}

}  // namespace isomer
