#include "verifier/audit/audit.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/process_pool.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "verifier/audit/array_degrees.h"
#include "verifier/audit/foreign.pb.h"
#include "verifier/audit/judge_translation.h"
#include "verifier/audit/translate.h"
#include "verifier/proving/prover.h"

namespace isomer {
namespace {

using Kind = TranslationVerdict::Kind;

// Ranks at which a rule is judged whose operators do not say theirs.
constexpr int kRanks[] = {2, 3, 4};
// More groups of a convolution than one.
constexpr int64_t kSeveralGroups = 2;

struct Read {
  Reading reading;
  std::variant<TranslationVerdict, Untranslated> verdict;
  bool depends_on_rank = false, has_convolutions = false;
  std::vector<Condition> shapes = {};  // Translation::shapes
  DegreesVerdict degrees = {};         // of arrays, unless the values settle it

  const TranslationVerdict* judged() const { return std::get_if<TranslationVerdict>(&verdict); }
  bool has_proved_values() const { return judged() != nullptr && judged()->kind == Kind::kProved; }
  bool proved() const { return has_proved_values() && degrees.kind == DegreesVerdict::Kind::kHold; }
  // The source has no such instance: nothing is claimed.
  bool is_void() const {
    if (degrees.kind == DegreesVerdict::Kind::kSourceImpossible) return true;
    if (judged() != nullptr) return judged()->kind == Kind::kSourceIllTyped;
    return std::get<Untranslated>(verdict).why == Untranslated::Why::kSourceIllTyped;
  }
  AuditVerdict Verdict() const;
  std::string Reason() const {
    if (degrees.kind != DegreesVerdict::Kind::kHold) {
      return absl::StrCat(
          has_proved_values() ? "the values agree, the degrees do not: " : "degrees: ",
          degrees.reason);
    }
    return judged() != nullptr ? judged()->reason : std::get<Untranslated>(verdict).reason;
  }
};

AuditVerdict Read::Verdict() const {
  switch (degrees.kind) {
    case DegreesVerdict::Kind::kSourceImpossible:
    case DegreesVerdict::Kind::kTargetImpossible:
      return AuditVerdict::kIllTyped;
    case DegreesVerdict::Kind::kTargetFails:  // The values are proved.
      return AuditVerdict::kRefuted;
    case DegreesVerdict::Kind::kHold:
      break;
  }
  if (judged() == nullptr) {
    switch (std::get<Untranslated>(verdict).why) {
      case Untranslated::Why::kOutside:
        return AuditVerdict::kOutside;
      case Untranslated::Why::kSourceIllTyped:
      case Untranslated::Why::kTargetIllTyped:
        return AuditVerdict::kIllTyped;
      case Untranslated::Why::kUnknown:
        return AuditVerdict::kUnknown;
    }
  }
  switch (judged()->kind) {
    case Kind::kProved:
      return AuditVerdict::kProved;
    case Kind::kRefuted:
      return AuditVerdict::kRefuted;
    case Kind::kSourceIllTyped:
    case Kind::kTargetIllTyped:
      return AuditVerdict::kIllTyped;
    case Kind::kUnknown:
      break;
  }
  return AuditVerdict::kUnknown;
}

class Auditor {
 public:
  // `arrays`: Reading::arrays.
  Auditor(const ForeignRule& rule, const AuditOptions& options, bool arrays, Prover* prover)
      : rule_(rule), options_(options), arrays_(arrays), prover_(prover) {}

  AuditResult Run() {
    for (int rank : kRanks) {
      Take({.rank = rank, .arrays = arrays_});
      if (!reads_.back().depends_on_rank) break;
    }
    const bool has_convolutions =
        std::any_of(reads_.begin(), reads_.end(), [](const Read& r) { return r.has_convolutions; });
    const Read* best = Best();
    if (has_convolutions && best->proved()) {
      Take({.rank = best->reading.rank, .groups = kSeveralGroups});
      best = Best();
    }
    AuditResult result;
    result.as_arrays = arrays_;
    result.verdict = best->Verdict();
    result.reason = best->Reason();
    if (best->judged() != nullptr) {
      result.equation = Equation(*best->judged());
      Explain(*best, &result);
    }
    return result;
  }

 private:
  void Take(const Reading& reading) {
    Read read{.reading = reading, .verdict = Untranslated()};
    auto translated = Translate(rule_, options_.format, reading);
    if (auto* failed = std::get_if<Untranslated>(&translated)) {
      // What fails at one rank may fit at another.
      read.depends_on_rank = failed->why == Untranslated::Why::kSourceIllTyped ||
                             failed->why == Untranslated::Why::kTargetIllTyped;
      if (arrays_ && failed->rank > 0) read.degrees = CheckDegrees(rule_, failed->rank);
      read.verdict = std::move(*failed);
    } else {
      const Translation& translation = std::get<Translation>(translated);
      read.depends_on_rank = translation.depends_on_rank;
      read.has_convolutions = translation.has_convolutions;
      read.shapes = translation.shapes;
      read.verdict = arrays_ ? JudgeOfWhole(translation, prover_)
                             : JudgeTranslation(translation, options_.format, prover_);
      if (arrays_) DecideDegrees(translation.rule.ranks[0], &read);
      if (translation.narrower && !IsSettled(*read.judged())) {
        read.verdict = Untranslated{
            Untranslated::Why::kOutside,
            absl::StrCat("repeats or adds pieces of a logical dim, where our types do not fit: ",
                         read.Reason())};
      }
    }
    reads_.push_back(std::move(read));
  }

  // What no tensors have the degrees for is of no use, whatever its values.
  void DecideDegrees(const std::vector<int>& ranks, Read* read) const {
    if (std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return rank != ranks[0]; })) {
      read->verdict = Untranslated{Untranslated::Why::kUnknown, "its inputs have several ranks"};
      return;
    }
    DegreesVerdict degrees = CheckDegrees(rule_, ranks[0]);
    const bool some_fit = degrees.kind == DegreesVerdict::Kind::kTargetFails;
    if (read->has_proved_values() || !some_fit) read->degrees = std::move(degrees);
  }

  // Whether a verdict stands where our types are narrower than the format's: pieces of a dim that
  // is not partitioned exist in neither.
  static bool IsSettled(const TranslationVerdict& judged) {
    if (judged.kind == Kind::kProved) return true;
    if (judged.kind != Kind::kRefuted) return false;
    return judged.counterexample->kind == Counterexample::Kind::kValues ||
           FirstIllTyped(judged.rule.target, judged.counterexample->binding) == OpKind::kCombine;
  }

  // The operator of the first call of `pattern` that has no type.
  static std::optional<OpKind> FirstIllTyped(const Pattern& pattern, const Binding& binding) {
    Pattern prefix;
    for (const PatternNode& node : pattern.nodes) {
      prefix.nodes.push_back(node);
      prefix.outputs = {PatternRef::Node(static_cast<int>(prefix.nodes.size()) - 1)};
      if (!InstantiatePattern(prefix, binding).ok()) return node.kind;
    }
    return std::nullopt;
  }

  // The reading to report: the first that is proved, else refuted, else the first of the rest;
  // those that are void last.
  const Read* Best() const {
    auto order = [](const Read& read) {
      if (read.proved()) return 0;
      if (read.is_void()) return 3;
      return read.Verdict() == AuditVerdict::kRefuted ? 1 : 2;
    };
    return &*std::min_element(reads_.begin(), reads_.end(),
                              [&](const Read& a, const Read& b) { return order(a) < order(b); });
  }

  // With the conditions that the format itself states.
  static std::string Equation(const TranslationVerdict& judged) {
    Rule rule = judged.rule;
    std::erase_if(rule.conditions, [&](const Condition& condition) {
      return std::find(judged.conditions.begin(), judged.conditions.end(), condition) !=
             judged.conditions.end();
    });
    return rule.ToString();
  }

  void Explain(const Read& best, AuditResult* result) {
    const TranslationVerdict& judged = *best.judged();
    result->values_differ = result->verdict == AuditVerdict::kRefuted &&
                            judged.kind == Kind::kRefuted &&
                            judged.counterexample->kind == Counterexample::Kind::kValues;
    if (judged.kind == Kind::kRefuted && !options_.counterexample_dir.empty()) {
      const std::string stem =
          absl::StrCat(options_.counterexample_dir, "/", absl::StrJoin(SafeName(rule_.name), ""));
      const absl::Status saved = SaveCounterexample(stem, judged.rule, *judged.counterexample);
      if (!saved.ok()) absl::StrAppend(&result->reason, " (", saved.message(), ")");
    }
    if (!best.proved()) return;
    if (!judged.complete) result->verdict = AuditVerdict::kChecked;
    for (const Condition& condition : judged.conditions) {
      (IsOfFormat(condition, best) ? result->conditions : result->here_also)
          .push_back(condition.ToString());
    }
    if (judged.whole_only && !arrays_) {
      result->here_also.push_back("no tensor is partitioned, copied or a partial sum");
    }
    std::vector<int> ranks;
    bool all_ranks = true, all_groups = true;
    for (const Read& read : reads_) {
      if (read.is_void()) continue;
      if (read.reading.groups != 1) {
        all_groups = read.proved();
      } else if (read.proved()) {
        ranks.push_back(read.reading.rank);
      } else {
        all_ranks = false;
      }
    }
    if (!all_ranks) {
      result->conditions.push_back(
          absl::StrCat("the tensors have rank ", absl::StrJoin(ranks, ", ")));
    }
    if (!all_groups) result->conditions.push_back("convolutions have one group");
    Derive(judged.rule, result);
  }

  // Whether a condition restricts the rule as the format means it: one on what it can say, and does
  // not say already.
  bool IsOfFormat(const Condition& condition, const Read& read) const {
    if (std::find(read.shapes.begin(), read.shapes.end(), condition) != read.shapes.end()) {
      return false;
    }
    return condition.kind == Condition::Kind::kEqual ||
           (options_.format != ForeignFormat::kTaso && !arrays_);
  }

  void Derive(const Rule& rule, AuditResult* result) {
    if (options_.rules == nullptr) return;
    const std::optional<Binding> binding = RepresentativeInstance(rule);
    if (!binding) return;
    const auto source = InstantiatePattern(rule.source, *binding);
    const auto target = InstantiatePattern(rule.target, *binding);
    if (!source.ok() || !target.ok()) return;
    auto used = Derivation(*options_.rules, *source, *target, options_.derivation);
    result->origin = used ? RuleOrigin::kDerivable : RuleOrigin::kNew;
    if (!used) return;
    result->steps = std::move(used->ids);
    result->by_saturation = used->by_saturation;
  }

  static std::vector<std::string> SafeName(const std::string& name) {
    std::vector<std::string> parts;
    for (char c : name.substr(0, 100)) {
      parts.push_back(absl::ascii_isalnum(c) ? std::string(1, c) : "_");
    }
    return parts;
  }

  const ForeignRule& rule_;
  const AuditOptions& options_;
  const bool arrays_;
  Prover* const prover_;
  std::vector<Read> reads_;
};

std::string Serialize(const AuditResult& result) {
  proto::AuditResult message;
  message.set_verdict(static_cast<int>(result.verdict));
  message.set_reason(result.reason);
  message.mutable_conditions()->Add(result.conditions.begin(), result.conditions.end());
  message.set_equation(result.equation);
  message.set_origin(static_cast<int>(result.origin));
  message.mutable_steps()->Add(result.steps.begin(), result.steps.end());
  message.mutable_here_also()->Add(result.here_also.begin(), result.here_also.end());
  message.set_as_arrays(result.as_arrays);
  message.set_values_differ(result.values_differ);
  message.set_by_saturation(result.by_saturation);
  message.set_seconds(result.seconds);
  return message.SerializeAsString();
}

// REQUIRES: Serialize made it.
AuditResult Deserialize(const std::string& bytes) {
  proto::AuditResult message;
  message.ParseFromString(bytes);
  AuditResult result;
  result.verdict = static_cast<AuditVerdict>(message.verdict());
  result.reason = message.reason();
  result.conditions.assign(message.conditions().begin(), message.conditions().end());
  result.equation = message.equation();
  result.origin = static_cast<RuleOrigin>(message.origin());
  result.steps.assign(message.steps().begin(), message.steps().end());
  result.as_arrays = message.as_arrays();
  result.values_differ = message.values_differ();
  result.by_saturation = message.by_saturation();
  result.seconds = message.seconds();
  result.here_also.assign(message.here_also().begin(), message.here_also().end());
  return result;
}

}  // namespace

absl::string_view AuditVerdictName(AuditVerdict verdict) {
  switch (verdict) {
    case AuditVerdict::kProved:
      return "proved";
    case AuditVerdict::kChecked:
      return "checked";
    case AuditVerdict::kRefuted:
      return "refuted";
    case AuditVerdict::kIllTyped:
      return "ill_typed";
    case AuditVerdict::kOutside:
      return "outside";
    case AuditVerdict::kUnknown:
      break;
  }
  return "unknown";
}

absl::string_view RuleOriginName(RuleOrigin origin) {
  switch (origin) {
    case RuleOrigin::kDerivable:
      return "derivable";
    case RuleOrigin::kNew:
      return "new";
    case RuleOrigin::kNotSought:
      break;
  }
  return "not sought";
}

AuditResult AuditRule(const ForeignRule& rule, const AuditOptions& options, Prover* prover) {
  const auto start = std::chrono::steady_clock::now();
  AuditResult result = Auditor(rule, options, /*arrays=*/false, prover).Run();
  if (options.format == ForeignFormat::kUnity && !IsTrue(result.verdict)) {
    // What our types do not say may be true of arrays with a dim of replicas; what they refuse,
    // only a proof overrules.
    AuditResult of_arrays = Auditor(rule, options, /*arrays=*/true, prover).Run();
    const bool is_open =
        result.verdict == AuditVerdict::kOutside || result.verdict == AuditVerdict::kUnknown;
    if (IsTrue(of_arrays.verdict) || (is_open && of_arrays.verdict != AuditVerdict::kOutside)) {
      result = std::move(of_arrays);
    }
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

absl::StatusOr<std::vector<AuditResult>> AuditRules(const std::vector<ForeignRule>& rules,
                                                    const AuditOptions& options) {
  std::vector<AuditResult> results(rules.size());
  Progress progress("audit", static_cast<int64_t>(rules.size()));
  auto make_worker = [&]() -> ItemWorker {
    auto prover = std::make_shared<Prover>();
    return [&, prover](size_t i) { return Serialize(AuditRule(rules[i], options, prover.get())); };
  };
  auto done = [&](size_t i, const std::string& bytes) {
    results[i] = Deserialize(bytes);
    progress.Advance();
  };
  ISOMER_RETURN_IF_ERROR(ForEachInProcesses(options.jobs, rules.size(), make_worker, done));
  return results;
}

}  // namespace isomer
