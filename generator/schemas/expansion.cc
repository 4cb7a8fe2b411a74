#include "generator/schemas/expansion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/assignments/sample_calls.h"
#include "generator/assignments/spread.h"
#include "generator/schemas/family_forms.h"
#include "generator/schemas/family_trial.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_traits.h"
#include "rules/calls/calls_of_ranks.h"
#include "rules/matching/match.h"

namespace isomer {
namespace {

// The spreads of one form, at all calls that have one, and calls of their kind that have none.
struct Family {
  CallSpread spread;
  CallPattern call;
  std::vector<FamilyCall> calls;
  std::set<std::vector<int>> ranks;
  bool fails_somewhere = false;
};
using Families = std::map<std::string, Family>;

void Add(const OperatorCall& sample, const CallSpread& spread, bool pinned, Family* family) {
  CallPattern call = PatternOfCall(sample, pinned);
  FamilyCall added{spread, call.binding};
  BindForm(spread, &added.binding);
  family->ranks.insert(RanksOf(sample.operands));
  if (family->calls.empty()) {
    family->spread = spread;
    family->call = std::move(call);
  }
  family->calls.push_back(std::move(added));
}

// Operands of commutative operators in an order of their own, so that no two rules differ in that.
void Order(OperatorCall* call, CallSpread* spread) {
  if (!IsCommutative(call->op.kind())) return;
  if (spread->operands[0].Letter() <= spread->operands[1].Letter()) return;
  std::swap(spread->operands[0], spread->operands[1]);
  std::swap(call->operands[0], call->operands[1]);
}

// A spread of pieces is of the calls that have the dim, which the condition kSplitsDim says. Others
// are of all calls, or of those with certain attributes.
class Gatherer {
 public:
  Gatherer(OpKind kind, TypeOracle* oracle, Statistics* statistics)
      : kind_(kind), oracle_(oracle), statistics_(statistics) {
    for (const OperatorCall& call : SampleCalls(kind)) {
      samples_.push_back({call, FindSpreads(call, oracle_, statistics_), 0});
      if (const auto* types = oracle_->Infer(call.op, call.operands)) {
        samples_.back().outputs = types->size();
      }
    }
  }

  Families Run() const {
    Families families;
    for (const Sample& sample : samples_) {
      for (const CallSpread& spread : sample.spreads) {
        const bool pinned =
            !spread.Has(SpreadShare::Kind::kPieces) && !HasEverywhere(sample, spread);
        std::string key = absl::StrCat(spread.Form(), ":", sample.outputs);
        if (pinned) absl::StrAppend(&key, ":", PinnedText(sample.call));
        Sample ordered = sample;
        CallSpread of_ordered = spread;
        Order(&ordered.call, &of_ordered);
        if (ordered.call.operands != sample.call.operands) {
          key = absl::StrCat(of_ordered.Form(), ":", sample.outputs);
        }
        ++statistics_->candidates;
        Add(ordered.call, of_ordered, pinned, &families[key]);
        families[key].fails_somewhere = pinned && !HasWherePinned(sample, spread);
      }
    }
    AddRanks(&families);
    return families;
  }

 private:
  struct Sample {
    OperatorCall call;
    std::vector<CallSpread> spreads;
    size_t outputs = 0;
  };

  // What has a family's form has its rules: at ranks that no sample has they are stated, too, and
  // not tried. The proof is of all of them.
  void AddRanks(Families* families) const {
    std::vector<OperatorCall> seeds;
    std::vector<CallSpread> others;
    for (const Sample& sample : samples_) {
      seeds.push_back(sample.call);
      for (const CallSpread& spread : sample.spreads) {
        const bool known = std::any_of(others.begin(), others.end(), [&](const CallSpread& other) {
          return other.operands == spread.operands;
        });
        if (!known && !spread.Has(SpreadShare::Kind::kPieces)) others.push_back(spread);
      }
    }
    for (const OperatorCall& call : CallsOfRanks(WithExamples(kind_, std::move(seeds)))) {
      const auto* types = oracle_->Infer(call.op, call.operands);
      if (types == nullptr) continue;
      const size_t outputs = types->size();
      for (CallSpread& spread : SpreadsAlongDims(call, others, oracle_)) {
        OperatorCall ordered = call;
        Order(&ordered, &spread);
        const std::string key = absl::StrCat(spread.Form(), ":", outputs);
        const std::string pinned_key = absl::StrCat(key, ":", PinnedText(call));
        if (auto family = families->find(key); family != families->end()) {
          family->second.ranks.insert(RanksOf(ordered.operands));
        } else if (family = families->find(pinned_key); family != families->end()) {
          family->second.ranks.insert(RanksOf(ordered.operands));
        } else if (spread.Has(SpreadShare::Kind::kPieces)) {
          Add(ordered, spread, false, &(*families)[key]);
        }
      }
    }
  }

  static std::string PinnedText(const OperatorCall& call) {
    std::string text;
    for (const AttributePattern& a : PatternOfCall(call, true).attributes) {
      if (auto* integer = std::get_if<IntExpr>(&a.value);
          integer != nullptr && integer->kind == IntExpr::Kind::kConstant) {
        absl::StrAppend(&text, a.name, "=", integer->constant, ",");
      } else if (auto* number = std::get_if<NumberExpr>(&a.value)) {
        absl::StrAppend(&text, a.name, "=", number->constant, ",");
      }
    }
    return text;
  }

  bool Has(const Sample& sample, const CallSpread& spread) const {
    return std::any_of(sample.spreads.begin(), sample.spreads.end(),
                       [&](const CallSpread& s) { return s.Form() == spread.Form(); });
  }
  bool HasEverywhere(const Sample& like, const CallSpread& spread) const {
    return std::all_of(samples_.begin(), samples_.end(), [&](const Sample& sample) {
      return !SameArity(sample, like) || Has(sample, spread);
    });
  }
  bool HasWherePinned(const Sample& like, const CallSpread& spread) const {
    return std::all_of(samples_.begin(), samples_.end(), [&](const Sample& sample) {
      return !SameArity(sample, like) || PinnedText(sample.call) != PinnedText(like.call) ||
             Has(sample, spread);
    });
  }
  static bool SameArity(const Sample& a, const Sample& b) {
    return a.call.operands.size() == b.call.operands.size() && a.outputs == b.outputs;
  }

  const OpKind kind_;
  TypeOracle* const oracle_;
  Statistics* const statistics_;
  std::vector<Sample> samples_;
};

Condition NoPartials(int input) {
  Condition condition{.kind = Condition::Kind::kNoPartials};
  condition.input = input;
  return condition;
}

// The rule, if it holds; with no more conditions on partial sums than it needs. Where the family's
// operands hold partial sums no others may, so that to say so costs nothing.
std::optional<Rule> Tried(Rule rule, const Family& family, TypeOracle* oracle, Random* random) {
  const std::vector<Condition> conditions = rule.conditions;
  const bool reduces = family.spread.Has(SpreadShare::Kind::kPartials);
  rule.ranks.assign(family.ranks.begin(), family.ranks.end());
  for (const bool of_all : {false, true}) {
    rule.conditions = conditions;
    for (int o = 0; o < rule.num_inputs; ++o) {
      const bool holds = family.spread.operands[o].kind == SpreadShare::Kind::kPartials;
      if (of_all || (reduces && !holds)) rule.conditions.push_back(NoPartials(o));
    }
    if (HoldsAtCalls(rule, family.calls, oracle, random)) return rule;
  }
  return std::nullopt;
}

// Of two forms that differ in the order of a commutative operator's operands, one is enough.
bool IsCommuted(const Family& family, const SpreadForm& form) {
  return IsCommutative(family.call.kind) &&
         family.spread.operands[0].kind == family.spread.operands[1].kind &&
         form.operand_moved[0] < form.operand_moved[1];
}

}  // namespace

std::vector<GeneralRule> FindExpansions(OpKind kind, TypeOracle* oracle, Random* random,
                                        Statistics* statistics) {
  std::vector<GeneralRule> rules;
  for (const auto& [key, family] : Gatherer(kind, oracle, statistics).Run()) {
    std::vector<Rule> found;
    for (const SpreadForm& form : FormsOf(family.spread)) {
      if (IsCommuted(family, form)) continue;
      const Rule stated = RuleOfForm(family.call, family.spread, form);
      const std::optional<Rule> rule =
          family.fails_somewhere ? std::nullopt : Tried(stated, family, oracle, random);
      if (!rule.has_value()) {
        statistics->Prune("does not generalise", stated.ToString());
        continue;
      }
      // The way back of a rule without kSplitsDim is its inverse.
      const auto forth = std::find_if(found.begin(), found.end(), [&](const Rule& other) {
        return other.source == rule->target && other.target == rule->source &&
               other.conditions == rule->conditions;
      });
      if (form.back && forth != found.end()) {
        forth->reversible = true;
      } else {
        found.push_back(*rule);
      }
    }
    for (Rule& rule : found) {
      SetId(&rule);
      rules.push_back({std::move(rule), family.calls[0].binding, {}});
    }
  }
  return rules;
}

}  // namespace isomer
