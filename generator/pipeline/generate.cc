#include "generator/pipeline/generate.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "generator/enumeration/configuration.h"
#include "generator/enumeration/derived_configurations.h"
#include "generator/enumeration/equation.h"
#include "generator/pipeline/settle_candidates.h"
#include "generator/pipeline/step_items.h"
#include "generator/pipeline/step_keys.h"
#include "generator/pipeline/step_records.h"
#include "generator/pipeline/steps.h"
#include "generator/workers/local_workers.h"
#include "pcg/support/hash.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "rules/calls/calls_of_ranks.h"

namespace isomer {
namespace {

bool HasParallelOperatorsAlone(const Rule& rule) {
  for (const Pattern* side : {&rule.source, &rule.target}) {
    if (!std::all_of(side->nodes.begin(), side->nodes.end(),
                     [](const PatternNode& node) { return IsParallel(node.kind); })) {
      return false;
    }
  }
  return true;
}

// Chains of parallel operators are found at ranks up to 4. They move and undo what sharding rules
// put on tensors, so that they are stated at the ranks of these, too; the proof is of all.
void AddRanksOfSharding(Rule* rule) {
  constexpr int kFoundAt = 4;
  if (!HasParallelOperatorsAlone(*rule)) return;
  const std::vector<int> highest(rule->num_inputs, kFoundAt);
  if (std::find(rule->ranks.begin(), rule->ranks.end(), highest) == rule->ranks.end()) return;
  for (int rank = kFoundAt + 1; rank <= kMostShardedRank; ++rank) {
    rule->ranks.emplace_back(rule->num_inputs, rank);
  }
  SetId(rule);
}

class Pipeline {
 public:
  Pipeline(const GenerateOptions& options, WorkQueue* queue, Statistics* statistics)
      : options_(options),
        queue_(queue),
        statistics_(statistics),
        keys_(options.seed, options.meanings),
        accepted_([this](const GeneralRule& rule) { Found(rule); }) {}

  absl::StatusOr<std::vector<GeneralRule>> Run() {
    // Enumeration begins before families are done: a few of these take long.
    BeginFamilies();
    BeginEnumeration();
    ISOMER_RETURN_IF_ERROR(Timed("families", [&] { return AcceptFamilies(); }));
    std::vector<Candidate> candidates;
    ISOMER_RETURN_IF_ERROR(Timed("enumerate", [&] { return TakeEnumerated(&candidates); }));
    ISOMER_RETURN_IF_ERROR(Timed("settle", [&] {
      const std::unique_ptr<Progress> progress = Bar("settle", candidates.size());
      const SettleRun run{options_.composition_steps, &keys_, queue_};
      return SettleCandidates(candidates, run, &accepted_, statistics_, [&] { Advance(progress); });
    }));
    return std::move(rules_);
  }

 private:
  absl::Status Timed(const char* phase, const std::function<absl::Status()>& work) {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = work();
    statistics_->seconds[phase] +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return status;
  }

  std::unique_ptr<Progress> Bar(const char* phase, size_t total) const {
    if (options_.progress == nullptr) return nullptr;
    return std::make_unique<Progress>(phase, static_cast<int64_t>(total), options_.progress);
  }
  static void Advance(const std::unique_ptr<Progress>& progress) {
    if (progress != nullptr) progress->Advance();
  }

  // Asks for a result that `result` will have; `see` is called with it when it comes.
  template <typename Result>
  void Ask(const StepItem& item, absl::StatusOr<Result> (*decode)(const std::string&),
           std::optional<Result>* result, std::function<void(const Result&)> see) {
    queue_->Do(item, [decode, result, see = std::move(see)](const std::string& bytes) {
      absl::StatusOr<Result> decoded = decode(bytes);
      if (!decoded.ok()) return false;
      see(*decoded);
      *result = *std::move(decoded);
      return true;
    });
  }

  // Calls `take` with each result in turn, as soon as it and those before it are there.
  template <typename Result>
  absl::Status TakeInOrder(const char* phase, std::deque<std::optional<Result>>* results,
                           absl::FunctionRef<void(Result)> take) {
    const std::unique_ptr<Progress> progress = Bar(phase, results->size());
    for (std::optional<Result>& result : *results) {
      ISOMER_RETURN_IF_ERROR(queue_->WaitUntil([&] { return result.has_value(); }));
      take(*std::move(result));
      result.reset();
      Advance(progress);
    }
    return absl::OkStatus();
  }

  void Found(const GeneralRule& general) {
    rules_.push_back(general);
    AddRanksOfSharding(&rules_.back().rule);
    if (options_.on_rule != nullptr) options_.on_rule(rules_.back());
  }

  // All but those that are found twice are accepted in their turn, for which the longest may be
  // waited for long.
  void ExpectAll(const Families& families) {
    if (options_.on_likely_rule == nullptr) return;
    for (GeneralRule general : families.rules) {
      if (!IsOfChosenKinds(general.rule)) continue;
      AddRanksOfSharding(&general.rule);
      options_.on_likely_rule(general);
    }
  }

  // Those that take longest first, wherever their turn to be accepted is.
  void BeginFamilies() {
    std::vector<std::pair<StepItem, std::optional<Families>*>> items;
    for (const FamilyForm& form : FamilyForms()) {
      for (OpKind kind : options_.kinds) {
        if (IsLeaf(kind) || IsParallel(kind)) continue;
        items.emplace_back(FamiliesItem(keys_, form, kind), &families_.emplace_back());
      }
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return a.first.cost > b.first.cost; });
    for (const auto& [item, place] : items) {
      Ask<Families>(item, DecodeFamilies, place,
                    [this](const Families& families) { ExpectAll(families); });
    }
  }

  absl::Status AcceptFamilies() {
    return TakeInOrder<Families>("families", &families_, [&](Families families) {
      statistics_->Add(families.statistics);
      for (const GeneralRule& rule : families.rules) {
        if (IsOfChosenKinds(rule.rule)) accepted_.Add(rule);
      }
    });
  }

  // Its declared operators are among those asked for.
  bool IsOfChosenKinds(const Rule& rule) const {
    for (const Pattern* side : {&rule.source, &rule.target}) {
      for (const PatternNode& node : side->nodes) {
        if (!IsParallel(node.kind) && options_.kinds.count(node.kind) == 0) return false;
      }
    }
    return true;
  }

  void BeginEnumeration() {
    configurations_ =
        ChosenConfigurations(options_.configurations, options_.kinds, options_.max_operators);
    enumerated_.resize(configurations_.size());
    for (size_t i = 0; i < configurations_.size(); ++i) {
      Ask<EnumerationResult>(ItemOf(configurations_[i]), DecodeEnumeration, &enumerated_[i],
                             [](const EnumerationResult&) {});
    }
  }

  // Derived configurations have much in common: of what several find the first stays.
  static void DropRepeated(std::vector<Candidate>* candidates) {
    absl::flat_hash_set<std::string> seen;
    std::erase_if(*candidates, [&](const Candidate& candidate) {
      std::string name = CanonicalName(candidate);
      for (const TensorType& type : candidate.inputs) absl::StrAppend(&name, " ", type.ToString());
      return !seen.insert(std::move(name)).second;
    });
  }

  StepItem ItemOf(const Configuration& configuration) const {
    return EnumerationItem(keys_, options_, configuration);
  }

  absl::Status TakeEnumerated(std::vector<Candidate>* candidates) {
    const auto take = [&](EnumerationResult enumerated) {
      statistics_->Add(enumerated.statistics);
      std::move(enumerated.candidates.begin(), enumerated.candidates.end(),
                std::back_inserter(*candidates));
    };
    ISOMER_RETURN_IF_ERROR(TakeInOrder<EnumerationResult>("enumerate", &enumerated_, take));
    if (options_.configurations != ConfigurationChoice::kWritten) DropRepeated(candidates);
    SortBySize(candidates);
    return absl::OkStatus();
  }

  // The more inputs are different, the more general: x*(y*z) before x*(x*x).
  static void SortBySize(std::vector<Candidate>* candidates) {
    std::stable_sort(candidates->begin(), candidates->end(), [](const auto& a, const auto& b) {
      const int a_size = SizeOf(a), b_size = SizeOf(b);
      return a_size != b_size ? a_size < b_size : a.inputs.size() > b.inputs.size();
    });
  }

  const GenerateOptions& options_;
  WorkQueue* const queue_;
  Statistics* const statistics_;
  const StepKeys keys_;
  std::vector<GeneralRule> rules_;  // as accepted, with the ranks of sharding
  AcceptedRules accepted_;
  // Results that are asked for; their places stay what they are.
  std::deque<std::optional<Families>> families_;
  std::vector<Configuration> configurations_;
  std::deque<std::optional<EnumerationResult>> enumerated_;
};

}  // namespace

absl::StatusOr<std::vector<GeneralRule>> Generate(const GenerateOptions& options,
                                                  Statistics* statistics) {
  if (options.queue != nullptr) return Pipeline(options, options.queue, statistics).Run();
  Memo memo;
  OwnWorker worker(GeneratorSteps(nullptr));
  WorkQueue queue(&worker, &memo);
  return Pipeline(options, &queue, statistics).Run();
}

}  // namespace isomer
