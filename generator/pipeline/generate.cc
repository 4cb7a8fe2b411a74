#include "generator/pipeline/generate.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "generator/enumeration/configuration.h"
#include "generator/enumeration/enumerator.h"
#include "generator/pipeline/settle_candidates.h"
#include "generator/pipeline/step_keys.h"
#include "generator/pipeline/step_records.h"
#include "generator/schemas/algebra_families.h"
#include "generator/schemas/definition_families.h"
#include "generator/schemas/expansion.h"
#include "generator/schemas/kernel_families.h"
#include "pcg/support/hash.h"
#include "pcg/support/in_order.h"
#include "pcg/support/progress.h"
#include "rules/calls/calls_of_ranks.h"

namespace isomer {
namespace {

// Rules that hold for all calls of one operator, found from its declaration.
struct FamilyForm {
  const char* name;
  std::vector<GeneralRule> (*find)(OpKind, TypeOracle*, Random*, Statistics*);
  std::set<OpKind> around;  // declared operators that occur in them besides the operator
};
const std::vector<FamilyForm>& FamilyForms() {
  static const auto* const forms = new std::vector<FamilyForm>{
      {"expansions", FindExpansions, {}},
      {"algebra", FindAlgebraFamilies, OperatorsOfAlgebraFamilies()},
      {"kernels", FindKernelFamilies, OperatorsOfKernelFamilies()},
      {"definitions", FindDefinitionFamilies, OperatorsOfDefinitionFamilies()},
  };
  return *forms;
}

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
  Pipeline(const GenerateOptions& options, Statistics* statistics)
      : options_(options),
        statistics_(statistics),
        memo_(options.memo == nullptr ? &no_memo_ : options.memo),
        keys_(options.seed, options.meanings) {}

  std::vector<GeneralRule> Run() {
    Timed("families", [&] { AcceptFamilies(); });
    std::vector<Candidate> candidates;
    Timed("enumerate", [&] { candidates = Enumerated(); });
    Timed("settle", [&] {
      const std::unique_ptr<Progress> progress = Bar("settle", candidates.size());
      const SettleRun run{options_.seed, options_.jobs, options_.composition_steps, &keys_, memo_};
      SettleCandidates(candidates, run, &accepted_, statistics_, [&] { Advance(progress); });
    });
    std::vector<GeneralRule> rules = accepted_.rules();
    for (GeneralRule& general : rules) AddRanksOfSharding(&general.rule);
    return rules;
  }

 private:
  void Timed(const char* phase, const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    statistics_->seconds[phase] +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  std::unique_ptr<Progress> Bar(const char* phase, size_t total) const {
    if (options_.progress == nullptr) return nullptr;
    return std::make_unique<Progress>(phase, static_cast<int64_t>(total), options_.progress);
  }
  static void Advance(const std::unique_ptr<Progress>& progress) {
    if (progress != nullptr) progress->Advance();
  }

  // One result of a step: the memo's, or computed and put there.
  template <typename Result>
  Result Remembered(const std::string& step, const MemoKey& key,
                    absl::StatusOr<Result> (*decode)(const std::string&),
                    const std::function<Result()>& compute) {
    if (const std::optional<std::string> kept = memo_->Find(step, key)) {
      if (absl::StatusOr<Result> known = decode(*kept); known.ok()) return *std::move(known);
    }
    Result result = compute();
    memo_->Put(key, Encode(result));
    return result;
  }

  void AcceptFamilies() {
    std::vector<std::pair<const FamilyForm*, OpKind>> items;
    for (const FamilyForm& form : FamilyForms()) {
      for (OpKind kind : options_.kinds) {
        if (!IsLeaf(kind) && !IsParallel(kind)) items.push_back({&form, kind});
      }
    }
    InOrder<Families> results(options_.jobs, items.size(), items.size(), [&] {
      return [this, &items, oracle = std::make_shared<TypeOracle>()](size_t i) {
        return FamiliesOf(*items[i].first, items[i].second, oracle.get());
      };
    });
    const std::unique_ptr<Progress> progress = Bar("families", items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      const Families families = results.Take();
      statistics_->Add(families.statistics);
      for (const GeneralRule& rule : families.rules) {
        if (IsOfChosenKinds(rule.rule)) accepted_.Add(rule);
      }
      Advance(progress);
    }
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

  Families FamiliesOf(const FamilyForm& form, OpKind kind, TypeOracle* oracle) {
    return Remembered<Families>(
        "families", keys_.OfFamilies(form.name, kind, form.around), DecodeFamilies, [&] {
          Random random(HashCombine(options_.seed, uint64_t(kind)));
          Families families;
          families.rules = form.find(kind, oracle, &random, &families.statistics);
          return families;
        });
  }

  std::vector<Candidate> Enumerated() {
    const std::vector<Configuration> configurations =
        Configurations(options_.kinds, options_.max_operators);
    // Large ones one after another, each in several threads: one at a time is in memory.
    const bool large = options_.max_operators > 3;
    const int at_once = large ? 1 : options_.jobs, threads = large ? options_.jobs : 1;
    const size_t count = configurations.size();
    InOrder<EnumerationResult> results(at_once, count, count, [&] {
      return [this, &configurations, threads, oracle = std::make_shared<TypeOracle>()](size_t i) {
        return EnumeratedIn(configurations[i], threads, oracle.get());
      };
    });
    const std::unique_ptr<Progress> progress = Bar("enumerate", count);
    std::vector<Candidate> candidates;
    for (size_t i = 0; i < count; ++i) {
      EnumerationResult enumerated = results.Take();
      statistics_->Add(enumerated.statistics);
      std::move(enumerated.candidates.begin(), enumerated.candidates.end(),
                std::back_inserter(candidates));
      Advance(progress);
    }
    SortBySize(&candidates);
    return candidates;
  }

  EnumerationResult EnumeratedIn(const Configuration& c, int threads, TypeOracle* oracle) {
    return Remembered<EnumerationResult>(
        "enumerate", keys_.OfEnumeration(c), DecodeEnumeration, [&] {
          Random random(HashBytes(c.name, options_.seed));
          EnumerationResult enumerated;
          enumerated.candidates = Enumerate(c, oracle, &random, &enumerated.statistics, threads);
          return enumerated;
        });
  }

  // The more inputs are different, the more general: x*(y*z) before x*(x*x).
  static void SortBySize(std::vector<Candidate>* candidates) {
    std::stable_sort(candidates->begin(), candidates->end(), [](const auto& a, const auto& b) {
      const int a_size = SizeOf(a), b_size = SizeOf(b);
      return a_size != b_size ? a_size < b_size : a.inputs.size() > b.inputs.size();
    });
  }

  const GenerateOptions& options_;
  Statistics* const statistics_;
  Memo no_memo_;
  Memo* const memo_;
  const StepKeys keys_;
  AcceptedRules accepted_;
};

}  // namespace

std::vector<GeneralRule> Generate(const GenerateOptions& options, Statistics* statistics) {
  return Pipeline(options, statistics).Run();
}

}  // namespace isomer
