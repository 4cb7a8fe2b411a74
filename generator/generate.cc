#include "generator/generate.h"

#include <algorithm>
#include <map>

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

int SizeOf(const Candidate& candidate) {
  return UsesOf(candidate.source).operators + UsesOf(candidate.target).operators;
}

// Whether one side uses every input once. An equation with no such side is, as a rule, another one
// with some of its inputs made equal, or a composition.
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
    // The more inputs are different, the more general: x*(y*z) before x*(x*x).
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return SizeOf(a) != SizeOf(b) ? SizeOf(a) < SizeOf(b) : a.inputs.size() > b.inputs.size();
    });
    return candidates;
  }

  void Consider(const Candidate& candidate) {
    if (!HasLinearSide(candidate)) {
      statistics_->Prune("no side uses each input once", ConstantRule(candidate).ToString());
      return;
    }
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
    bool accepted = false;
    if (rule.has_value()) {
      if (Recheck(rule->rule, rule->found, 8, &oracle_, &random)) {
        Accept(*rule);
        accepted = true;
      } else {
        statistics_->Prune("refuted on fresh inputs", rule->rule.ToString());
      }
    }
    if (!accepted || !rule->rule.reversible) accepted |= Reverse(candidate, &random);
    if (accepted) return;
    if (!rule.has_value()) {
      statistics_->Prune("does not generalise", ConstantRule(candidate).ToString());
    }
    hopeless_.insert(form);
  }

  // The way back, under conditions of its own.
  bool Reverse(const Candidate& candidate, Random* random) {
    const Candidate reversed = Reversed(candidate);
    if (!SourceUsesAllInputs(reversed)) return false;
    const absl::StatusOr<CandidateGraphs> graphs = GraphsOf(reversed);
    if (!graphs.ok() || book_.IsInstance(*graphs)) return false;
    std::optional<GeneralRule> rule = Generalize(reversed, &oracle_, random);
    if (!rule.has_value() || !Recheck(rule->rule, rule->found, 8, &oracle_, random)) return false;
    rule->rule.reversible = false;  // Its inverse is the rule that it reverses.
    SetId(&rule->rule);
    Accept(*rule);
    return true;
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
