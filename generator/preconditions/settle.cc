#include "generator/preconditions/settle.h"

#include <algorithm>
#include <set>

#include "generator/assignments/trial.h"
#include "generator/assignments/vocabulary.h"
#include "pcg/ir/operator_call.h"

namespace isomer {
namespace {

// One rank vector and one value for every axis variable.
struct Case {
  Binding base;
  Sampler sampler;
  int failures = 0, successes = 0;
  Case(const Rule& rule, Binding binding, TypeOracle* oracle)
      : base(binding), sampler(rule, std::move(binding), oracle) {}
};

// `found` at other ranks: dims are kept from the end; more are put in front, of the size that
// another input has there.
Binding AtRanks(const Binding& found, const std::vector<int>& ranks) {
  constexpr int64_t kNewSize = 4;
  Binding binding = found;
  for (size_t i = 0; i < ranks.size(); ++i) {
    std::vector<Dim>& dims = binding.inputs[i].dims;
    while (static_cast<int>(dims.size()) > ranks[i]) dims.erase(dims.begin());
    while (static_cast<int>(dims.size()) < ranks[i]) {
      int64_t size = kNewSize;
      for (const TensorType& type : found.inputs) {
        const int at = type.rank() - static_cast<int>(dims.size()) - 1;
        if (at >= 0) size = type.dims[at].size;
      }
      dims.insert(dims.begin(), Dim{size, 1});
    }
  }
  return binding;
}

// With all sizes equal, so that what was found among dims of size 1 is seen without them.
std::optional<Binding> Squared(Binding binding) {
  constexpr int64_t kSize = 4;
  bool has_one = false;
  for (TensorType& type : binding.inputs) {
    for (Dim& dim : type.dims) {
      has_one |= dim.size == 1;
      dim.size = kSize;
    }
  }
  return has_one ? std::optional(binding) : std::nullopt;
}

// Moves an axis variable: what the dims of `from` were, those of `to` become.
void MoveAxis(const std::string& variable, int64_t to, Binding* binding) {
  const int64_t from = binding->variables[variable];
  for (TensorType& type : binding->inputs) {
    if (-from <= type.rank() && -to <= type.rank()) {
      std::swap(type.dims[type.rank() + from], type.dims[type.rank() + to]);
    }
  }
  binding->variables[variable] = to;
}

void AddCases(const Rule& rule, const Binding& base, const std::vector<std::string>& axes,
              size_t next, TypeOracle* oracle, std::vector<Case>* cases) {
  if (next == axes.size()) {
    Case one(rule, base, oracle);
    if (one.sampler.usable()) cases->push_back(std::move(one));
    return;
  }
  int rank = 0;
  for (const TensorType& type : base.inputs) rank = std::max(rank, type.rank());
  for (int64_t axis = -1; axis >= -rank; --axis) {
    // Either the sizes move with the axis (a Concat's sum) or they stay.
    Binding moved = base;
    MoveAxis(axes[next], axis, &moved);
    const size_t before = cases->size();
    AddCases(rule, moved, axes, next + 1, oracle, cases);
    if (cases->size() > before) continue;
    Binding stayed = base;
    stayed.variables[axes[next]] = axis;
    AddCases(rule, stayed, axes, next + 1, oracle, cases);
  }
}

std::vector<Case> CasesOf(const Rule& rule, const Binding& found,
                          const std::vector<std::vector<int>>& ranks, TypeOracle* oracle) {
  std::vector<std::string> axes;
  const bool splits_dim = HasCondition(rule, Condition::Kind::kSplitsDim);
  for (const RuleVariable& variable : rule.variables) {
    // Under kSplitsDim the axes belong to the shapes and attributes at hand.
    if (variable.kind == VariableKind::kAxis && !splits_dim) axes.push_back(variable.name);
  }
  std::vector<Case> cases;
  for (const std::vector<int>& vector : ranks) {
    const Binding base = AtRanks(found, vector);
    AddCases(rule, base, axes, 0, oracle, &cases);
    const std::optional<Binding> squared = Squared(base);
    if (squared.has_value()) AddCases(rule, *squared, axes, 0, oracle, &cases);
  }
  return cases;
}

class Settler {
 public:
  Settler(const Rule& rule, const Binding& found, const SettleOptions& options, TypeOracle* oracle,
          Random* random)
      : rule_(rule),
        found_(found),
        oracle_(oracle),
        random_(random),
        samples_(options.samples),
        failures_(options.failures) {
    rule_.ranks = options.ranks;
  }

  std::optional<Rule> Run() {
    if (!StartsWell()) return std::nullopt;
    for (Case& one : CasesOf(rule_, found_, rule_.ranks, oracle_)) cases_.push_back(std::move(one));
    const int per_case = std::max(10, samples_ / static_cast<int>(cases_.size()));
    for (Case& one : cases_) Try(&one, per_case);
    if (!DropRanks()) return std::nullopt;
    const std::vector<Condition> kept = rule_.conditions;
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      const auto conditions = ChooseConditions();
      if (!conditions.has_value()) return std::nullopt;
      rule_.conditions = kept;
      rule_.conditions.insert(rule_.conditions.end(), conditions->begin(), conditions->end());
      const size_t before = failures_.size();
      for (Case& one : cases_) {
        if (IsKept(one)) Try(&one, std::max(4, per_case / 2));
      }
      if (failures_.size() == before) return Finished();
    }
    return std::nullopt;
  }

 private:
  // Conditions for all ranks, if they cost little where the rule was found; else those that the
  // ranks at which it was found need, and only the other ranks that need no more.
  std::optional<std::vector<Condition>> ChooseConditions() {
    const std::vector<int> own = RanksOf(found_.inputs);
    auto at_own = [&](const std::vector<Binding>& bindings) {
      std::vector<Binding> result;
      std::copy_if(bindings.begin(), bindings.end(), std::back_inserter(result),
                   [&](const Binding& b) { return RanksOf(b.inputs) == own; });
      return result;
    };
    const std::vector<Binding> own_successes = at_own(successes_);
    auto all = ExcludeFailures(rule_, successes_, failures_);
    auto few = ExcludeFailures(rule_, own_successes, at_own(failures_));
    if (!few.has_value()) return all;
    constexpr double kCheap = 0.8;
    if (all.has_value() &&
        CountAdmitted(*all, own_successes) >= kCheap * CountAdmitted(*few, own_successes)) {
      return all;
    }
    std::set<std::vector<int>> failing;
    for (const Binding& binding : failures_) {
      if (CountAdmitted(*few, {binding}) > 0) failing.insert(RanksOf(binding.inputs));
    }
    std::erase_if(rule_.ranks, [&](const std::vector<int>& v) { return failing.count(v) > 0; });
    std::erase_if(failures_,
                  [&](const Binding& b) { return failing.count(RanksOf(b.inputs)) > 0; });
    return few;
  }

  // A rule that always fails where it was found is given up early.
  bool StartsWell() {
    cases_.emplace_back(rule_, found_, oracle_);
    if (!cases_[0].sampler.usable()) return false;
    Try(&cases_[0], 12);
    return cases_[0].successes > 0;
  }

  bool IsKept(const Case& one) const {
    const std::vector<int> ranks = RanksOf(one.base.inputs);
    return std::find(rule_.ranks.begin(), rule_.ranks.end(), ranks) != rule_.ranks.end();
  }

  // Draws assignments that the conditions so far admit and notes whether the rule holds there.
  void Try(Case* one, int count) {
    for (int i = 0; i < count; ++i) {
      const bool evaluate = i % 6 == 0;
      const std::optional<Binding> binding = one->sampler.Draw({.small = evaluate}, 12, random_);
      if (!binding.has_value() || !Admits(rule_, *binding)) continue;
      bool holds = TypesAgree(rule_, *binding, oracle_);
      if (holds && evaluate) {
        // A look-up outside of its table has no value to compare.
        const absl::StatusOr<bool> agree = ValuesAgree(rule_, *binding, random_);
        if (!agree.ok()) continue;
        holds = *agree;
      }
      (holds ? one->successes : one->failures) += 1;
      (holds ? successes_ : failures_).push_back(*binding);
    }
  }

  // Keeps the rank vectors at which the rule held at least once.
  bool DropRanks() {
    std::set<std::vector<int>> holding;
    for (const Case& one : cases_) {
      if (one.successes > 0) holding.insert(RanksOf(one.base.inputs));
    }
    std::erase_if(rule_.ranks, [&](const std::vector<int>& v) { return holding.count(v) == 0; });
    auto dropped = [&](const Binding& b) { return holding.count(RanksOf(b.inputs)) == 0; };
    std::erase_if(failures_, dropped);
    return !rule_.ranks.empty();
  }

  // Every variable must have been free: degrees above 1 and different from each other, axes of at
  // least two values. What holds only without that has fewer variables than it says.
  bool VariablesVary(const std::vector<Binding>& admitted) const {
    std::vector<std::string> degrees;
    for (const RuleVariable& v : rule_.variables) {
      std::set<int64_t> values;
      for (const Binding& b : admitted) {
        if (const auto found = b.variables.find(v.name); found != b.variables.end()) {
          values.insert(found->second);
        }
      }
      if (v.kind == VariableKind::kDegree) {
        values.erase(1);
        degrees.push_back(v.name);
      }
      const bool counts = v.kind == VariableKind::kDegree || v.kind == VariableKind::kAxis;
      if (counts && values.size() < (v.kind == VariableKind::kAxis ? 2 : 1)) return false;
    }
    for (size_t a = 0; a < degrees.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool differ = std::any_of(admitted.begin(), admitted.end(), [&](const Binding& at) {
          const int64_t x = at.variables.at(degrees[a]), y = at.variables.at(degrees[b]);
          return x > 1 && y > 1 && x != y;
        });
        if (!differ) return false;
      }
    }
    return true;
  }

  // Without the rank vectors that the conditions excluded.
  std::optional<Rule> Finished() {
    std::vector<Binding> admitted;
    std::set<std::vector<int>> ranks;
    for (const Binding& binding : successes_) {
      if (!Admits(rule_, binding)) continue;
      ranks.insert(RanksOf(binding.inputs));
      admitted.push_back(binding);
    }
    constexpr size_t kFewest = 8;
    if (admitted.size() < kFewest || !VariablesVary(admitted)) return std::nullopt;
    std::erase_if(rule_.ranks, [&](const std::vector<int>& v) { return ranks.count(v) == 0; });
    std::sort(rule_.ranks.begin(), rule_.ranks.end());
    return rule_;
  }

  Rule rule_;
  const Binding found_;
  TypeOracle* const oracle_;
  Random* const random_;
  const int samples_;
  std::vector<Case> cases_;
  std::vector<Binding> successes_, failures_;
};

}  // namespace

std::optional<Rule> Settle(const Rule& rule, const Binding& found, const SettleOptions& options,
                           TypeOracle* oracle, Random* random) {
  return Settler(rule, found, options, oracle, random).Run();
}

std::optional<Rule> Resettle(const Rule& rule, const Binding& found,
                             const std::vector<Binding>& counterexamples, TypeOracle* oracle,
                             Random* random) {
  std::optional<Rule> result = rule;
  if (rule.reversible) {
    result->reversible = false;
  } else {
    SettleOptions options{.ranks = rule.ranks, .samples = 480, .failures = counterexamples};
    // The ranks at which it was found come first.
    const auto at = std::find(options.ranks.begin(), options.ranks.end(), RanksOf(found.inputs));
    if (at != options.ranks.end()) std::rotate(options.ranks.begin(), at, at + 1);
    std::erase_if(result->conditions,
                  [](const Condition& c) { return c.kind != Condition::Kind::kSplitsDim; });
    result = Settle(*result, found, options, oracle, random);
  }
  if (result.has_value()) SetId(&*result);
  return result;
}

std::vector<Binding> DrawAdmitted(const Rule& rule, const Binding& found, int count,
                                  const SampleOptions& options, TypeOracle* oracle,
                                  Random* random) {
  std::vector<Case> cases = CasesOf(rule, found, rule.ranks, oracle);
  std::vector<Binding> bindings;
  if (cases.empty()) return bindings;
  for (int attempt = 0; attempt < 8 * count && static_cast<int>(bindings.size()) < count;
       ++attempt) {
    Case& one = cases[attempt % cases.size()];
    const std::optional<Binding> binding = one.sampler.Draw(options, 12, random);
    if (binding.has_value() && Admits(rule, *binding)) bindings.push_back(*binding);
  }
  return bindings;
}

bool HoldsAround(const Rule& rule, const Binding& found, int count, bool may_be_none,
                 TypeOracle* oracle, Random* random, int draws) {
  for (const bool small : {false, true}) {
    const std::vector<Binding> bindings =
        DrawAdmitted(rule, found, small ? count : 4 * count, {.small = small}, oracle, random);
    if (bindings.empty() && !may_be_none) return false;
    for (const Binding& binding : bindings) {
      if (!TypesAgree(rule, binding, oracle)) return false;
      for (int draw = 0; small && draw < draws; ++draw) {
        const absl::StatusOr<bool> agree = ValuesAgree(rule, binding, random);
        if (agree.ok() && !*agree) return false;
      }
    }
  }
  return true;
}

bool HoldsInversely(const Rule& rule, const Binding& found, TypeOracle* oracle, Random* random) {
  if (HasCondition(rule, Condition::Kind::kSplitsDim)) return false;
  std::set<int> used;
  for (PatternRef ref : rule.target.outputs) {
    if (ref.node < 0) used.insert(ref.index);
  }
  for (const PatternNode& node : rule.target.nodes) {
    for (PatternRef ref : node.inputs) {
      if (ref.node < 0) used.insert(ref.index);
    }
  }
  if (static_cast<int>(used.size()) < rule.num_inputs) return false;  // Nothing would bind it.
  return HoldsAround(Inverse(rule), found, 24, false, oracle, random);
}

std::vector<std::vector<int>> RankVectors(const std::vector<int>& ranks) {
  const int count = static_cast<int>(ranks.size());
  const int highest = *std::max_element(ranks.begin(), ranks.end());
  std::vector<std::vector<int>> result = {ranks};
  auto add = [&](const std::vector<int>& vector) {
    if (std::find(result.begin(), result.end(), vector) == result.end()) result.push_back(vector);
  };
  // Each vector is a proof of its own, and one with many cases where operands are broadcast, so
  // ranks thin out as inputs become many.
  const int highest_rank = count > 2 && highest < 4 ? 3 : 4;
  for (int rank : {2, 3, 4, 1}) {
    if (rank > highest_rank) continue;
    std::vector<int> vector = ranks;
    std::replace(vector.begin(), vector.end(), highest, rank);
    add(vector);
    add(std::vector<int>(count, rank));
  }
  if (count > 3) return result;
  for (int rank = 2; rank <= (count == 3 ? 3 : 4); ++rank) {
    for (int other : {2, 1}) {
      if (other >= rank) continue;
      for (int mask = 1; mask + 1 < (1 << count); ++mask) {
        std::vector<int> vector;
        for (int i = 0; i < count; ++i) vector.push_back(mask >> i & 1 ? other : rank);
        add(vector);
      }
    }
  }
  // Batches on some inputs alone: of features, and not of their weights and bias.
  for (int rank = highest + 1; rank <= highest_rank; ++rank) {
    for (int mask = 1; mask < 1 << count; ++mask) {
      std::vector<int> vector = ranks;
      bool is_of_highest = true;
      for (int i = 0; i < count; ++i) {
        if ((mask >> i & 1) == 0) continue;
        is_of_highest &= ranks[i] == highest;
        vector[i] = rank;
      }
      if (is_of_highest) add(vector);
    }
  }
  return result;
}

}  // namespace isomer
