#include "generator/generate.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "generator/configuration.h"
#include "generator/enumerator.h"
#include "generator/equation.h"
#include "generator/expansion.h"
#include "generator/prune.h"
#include "generator/settle.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

size_t SizeOf(const Candidate& candidate) {
  return candidate.source.nodes.size() + candidate.target.nodes.size();
}

// Without the types: a pair that did not generalise does not do so at other types of its ranks.
std::string FormOf(const Candidate& candidate) {
  Candidate untyped = candidate;
  for (TensorType& type : untyped.inputs) type = SequentialType(type.Sizes());
  return CanonicalName(untyped);
}

bool SourceUsesAllInputs(const Candidate& candidate) {
  std::set<int> used;
  auto use = [&](PatternRef ref) {
    if (ref.node < 0) used.insert(ref.index);
  };
  for (const PatternNode& node : candidate.source.nodes) {
    for (PatternRef ref : node.inputs) use(ref);
  }
  for (PatternRef ref : candidate.source.outputs) use(ref);
  return used.size() == candidate.inputs.size();
}

class Pipeline {
 public:
  Pipeline(const GenerateOptions& options, Statistics* statistics)
      : options_(options), statistics_(statistics) {}

  std::vector<GeneralRule> Run(absl::FunctionRef<void(int64_t, int64_t)> progress) {
    for (OpKind kind : options_.kinds) Expand(kind);
    const std::vector<Candidate> candidates = Enumerated();
    const auto total = static_cast<int64_t>(candidates.size());
    for (int64_t i = 0; i < total; ++i) {
      Consider(candidates[i]);
      progress(i + 1, total);
    }
    return std::move(rules_);
  }

 private:
  void Expand(OpKind kind) {
    if (IsLeaf(kind) || IsParallel(kind)) return;
    Random random(HashCombine(options_.seed, static_cast<uint64_t>(kind)));
    for (GeneralRule& rule : FindExpansions(kind, &oracle_, &random, statistics_)) Accept(rule);
  }

  std::vector<Candidate> Enumerated() {
    std::vector<Candidate> candidates;
    for (const Configuration& c : Configurations(options_.kinds, options_.max_operators)) {
      Random random(HashBytes(c.name, options_.seed));
      for (Candidate& candidate : Enumerate(c, &oracle_, &random, statistics_)) {
        candidates.push_back(std::move(candidate));
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return SizeOf(a) < SizeOf(b); });
    return candidates;
  }

  void Consider(const Candidate& candidate) {
    const std::string form = FormOf(candidate);
    if (hopeless_.contains(form)) {
      statistics_->Prune("does not generalise", ConstantRule(candidate).ToString());
      return;
    }
    const absl::StatusOr<CandidateGraphs> graphs = GraphsOf(candidate);
    if (!graphs.ok()) {
      statistics_->Prune("ill-typed on a second look", ConstantRule(candidate).ToString());
      return;
    }
    if (Known(candidate, *graphs)) return;
    Random random(HashBytes(form, options_.seed));
    const std::optional<GeneralRule> rule = Generalize(candidate, &oracle_, &random);
    if (!rule.has_value() || !Recheck(rule->rule, rule->found, 8, &oracle_, &random)) {
      statistics_->Prune(rule.has_value() ? "refuted on fresh inputs" : "does not generalise",
                         ConstantRule(candidate).ToString());
      if (!rule.has_value()) hopeless_.insert(form);
      return;
    }
    Accept(*rule);
    if (!rule->rule.reversible) Reverse(candidate, &random);
  }

  // The way back, under conditions of its own.
  void Reverse(const Candidate& candidate, Random* random) {
    const Candidate reversed = Reversed(candidate);
    if (!SourceUsesAllInputs(reversed)) return;
    const absl::StatusOr<CandidateGraphs> graphs = GraphsOf(reversed);
    if (!graphs.ok() || book_.IsInstance(*graphs)) return;
    const std::optional<GeneralRule> rule = Generalize(reversed, &oracle_, random);
    if (rule.has_value() && Recheck(rule->rule, rule->found, 8, &oracle_, random)) Accept(*rule);
  }

  bool Known(const Candidate& candidate, const CandidateGraphs& graphs) {
    if (graphs.source.StructuralHash() == graphs.target.StructuralHash()) {
      statistics_->Prune("commuted operands", ConstantRule(candidate).ToString());
    } else if (book_.IsInstance(graphs)) {
      statistics_->Prune("instance of a more general rule", ConstantRule(candidate).ToString());
    } else if (book_.IsComposition(graphs)) {
      statistics_->Prune("composition of two rules", ConstantRule(candidate).ToString());
    } else {
      return false;
    }
    return true;
  }

  void Accept(const GeneralRule& rule) {
    if (!digests_.insert(rule.rule.Digest()).second) return;
    book_.Add(rule.rule);
    rules_.push_back(rule);
  }

  const GenerateOptions& options_;
  Statistics* const statistics_;
  TypeOracle oracle_;
  RuleBook book_;
  absl::flat_hash_set<std::string> hopeless_;
  absl::flat_hash_set<uint64_t> digests_;
  std::vector<GeneralRule> rules_;
};

}  // namespace

std::vector<GeneralRule> Generate(const GenerateOptions& options, Statistics* statistics,
                                  absl::FunctionRef<void(int64_t, int64_t)> progress) {
  return Pipeline(options, statistics).Run(progress);
}

}  // namespace isomer
