#include "verifier/families/family_types.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verifier/terms/smt.h"
#include "verifier/types/linear_facts.h"

namespace isomer {
namespace {

// How a tensor is held: exponents of one prime. `led`: the degree of the axis that the split dim
// leads, of tensors that have one.
struct Held {
  const IntExpr* axis = nullptr;
  Extent led, copies, partials;
};

class FamilyTypes {
 public:
  FamilyTypes(const Family& family, const CallFacts& facts) : family_(family), facts_(facts) {
    for (size_t o = 0; o < family.source.operands.size(); ++o) {
      const bool led = family.OperandAxis(o) != nullptr;
      inputs_.push_back({family.OperandAxis(o), led ? Fresh() : Extent(0), Fresh(), Fresh()});
      sharers_.push_back(Fresh());
    }
    sums_split_ = family.split != nullptr && family.OutputAxis(0) == nullptr;
  }

  bool Agree(std::string* why) {
    const bool proved = CheckForm() && Source() && Target() && Conclude();
    if (!proved) *why = absl::StrCat("types: ", why_);
    return proved;
  }

 private:
  Extent Fresh() { return Extent::Symbol(next_++); }
  bool Fail(std::string text) {
    why_ = std::move(text);
    return false;
  }
  static ExponentFact Fact(ExponentFact::Kind kind, const Extent& left, const Extent& right,
                           std::string text) {
    ExponentFact fact;
    fact.kind = kind;
    fact.left = left;
    fact.right = right;
    fact.text = std::move(text);
    return fact;
  }
  static ExponentFact Equal(const Extent& left, const Extent& right, std::string text) {
    return Fact(ExponentFact::Kind::kEqual, left, right, std::move(text));
  }
  static ExponentFact AtMost(const Extent& left, const Extent& right, std::string text) {
    return Fact(ExponentFact::Kind::kAtMost, left, right, std::move(text));
  }

  bool TakesPartials() const {
    return std::find(family_.reduced.begin(), family_.reduced.end(), true) != family_.reduced.end();
  }

  // What the proof takes for granted of the form.
  bool CheckForm() {
    const bool any_led = std::any_of(inputs_.begin(), inputs_.end(),
                                     [](const Held& input) { return input.axis != nullptr; });
    if (family_.split != nullptr && !any_led) return Fail("the dim leads no operand");
    for (size_t t = 0; family_.split != nullptr && t < family_.source.which.size(); ++t) {
      if ((family_.OutputAxis(t) == nullptr) != sums_split_) return Fail("not every output is led");
    }
    if (!TakesPartials()) return true;
    if (family_.split != nullptr) return Fail("a dim is split, and partials are taken");
    // Then partials are held by all operands of the set, or by none: no other set is linear, or it
    // has an operand that holds no partials.
    if (!facts_.AreLinearIn(family_.reduced)) return Fail("the call is not linear in the operands");
    for (size_t o = 0; o < inputs_.size(); ++o) {
      if (!family_.reduced[o] && facts_.takes_partials[o] && !family_.no_partials[o]) {
        return Fail("another operand may hold partials");
      }
    }
    return true;
  }

  // What a parallel operator makes of a tensor; what it requires is added to `needs`.
  bool Pass(const PatternNode* node, const Extent& degree, const Extent& room, Held* held,
            std::vector<ExponentFact>* needs) {
    if (node == nullptr) return true;
    if (node->kind == OpKind::kReplicate) {
      held->copies += degree;
      return true;
    }
    if (node->kind == OpKind::kReduce) {
      needs->push_back(AtMost(degree, held->partials, "partials that Reduce adds"));
      held->partials -= degree;
      return true;
    }
    const IntExpr* axis = AttributeOf(*node, "axis");
    if (axis == nullptr || held->axis == nullptr || !(*axis == *held->axis)) {
      return Fail("an axis is not the one that the dim leads");
    }
    if (node->kind == OpKind::kCombine) {
      needs->push_back(AtMost(degree, held->led, "a degree that Combine divides"));
      held->led -= degree;
    } else {
      held->led += degree;
      needs->push_back(AtMost(held->led, room, "a size that Partition divides"));
    }
    return true;
  }

  // Copies of the call, from operand o: less what shares a shard of it.
  Extent CopiesOf(size_t o, const Held& held, const Extent& split, const Extent& partials) const {
    Extent copies = held.copies - sharers_[o];
    if (family_.split != nullptr && held.axis == nullptr) copies -= split;
    if (TakesPartials() && !family_.reduced[o]) copies -= partials;
    return copies;
  }

  Held OutputOf(size_t t, const Extent& split, const Extent& copies, const Extent& partials) const {
    Held output{family_.OutputAxis(t), {}, copies, partials + other_sums_};
    if (output.axis != nullptr) output.led = split;
    if (sums_split_) output.partials += split;
    return output;
  }

  // The source type-checks, so these hold.
  bool Source() {
    degree_ = Fresh();
    // The gcd of the sizes that degrees of the dim must divide, and its degree in the source.
    size_ = Fresh();
    const Extent split = family_.split != nullptr ? Fresh() : Extent(0);
    const Extent copies = Fresh(), unlimited = Fresh();
    partials_ = Fresh();
    other_sums_ = Fresh();
    Declared();
    if (family_.split != nullptr) {
      const bool more = family_.split->left != IntExpr::Constant(1);
      given_.push_back(AtMost(split + (more ? degree_ : Extent(0)), size_, "the condition"));
    }
    for (size_t o = 0; o < inputs_.size(); ++o) {
      Held held = inputs_[o];
      // A source's Partition says that degrees divide the operand's size, which may be a multiple.
      std::vector<ExponentFact> needs;
      if (!Pass(family_.source.operands[o], degree_, unlimited, &held, &needs)) return false;
      const PatternNode* node = family_.source.operands[o];
      if (node == nullptr || node->kind != OpKind::kPartition) Append(needs, &given_);
      if (held.axis != nullptr) given_.push_back(Equal(held.led, split, "one degree of the dim"));
      given_.push_back(Equal(CopiesOf(o, held, split, partials_), copies, "copies of the call"));
      if (family_.no_partials[o]) given_.push_back(Equal(inputs_[o].partials, 0, "no partials"));
      if (!TakesPartials()) continue;
      given_.push_back(Equal(held.partials, family_.reduced[o] ? partials_ : 0, "partials"));
    }
    for (size_t t = 0; t < family_.source.outputs.size(); ++t) {
      Held held = OutputOf(t, split, copies, partials_);
      std::vector<ExponentFact> needs;
      if (!Pass(family_.source.outputs[t], degree_, unlimited, &held, &needs)) return false;
      const PatternNode* node = family_.source.outputs[t];
      if (node == nullptr || node->kind != OpKind::kPartition) Append(needs, &given_);
      outputs_.push_back(held);
    }
    return true;
  }

  // What is known of the declaration.
  void Declared() {
    if (facts_.sum_dims == 0 || (sums_split_ && facts_.sum_dims == 1)) {
      given_.push_back(Equal(other_sums_, 0, "no other sum dim"));
    }
    bool may_hold = false;
    for (size_t o = 0; o < inputs_.size(); ++o) {
      may_hold |= facts_.takes_partials[o] && !family_.no_partials[o];
    }
    if (!may_hold) given_.push_back(Equal(partials_, 0, "no operand holds partials"));
    for (size_t o = 0; o < inputs_.size(); ++o) {
      // Tasks that differ in dims or in partials read different shards.
      if (facts_.led_by_all[o] && (facts_.always_takes_partials[o] || !may_hold)) {
        given_.push_back(Equal(sharers_[o], 0, "no shard is shared"));
      }
    }
  }

  // The target's unknowns follow from its operands; the rest is to be concluded.
  bool Target() {
    std::vector<Held> held = inputs_;
    for (size_t o = 0; o < held.size(); ++o) {
      if (!Pass(family_.target.operands[o], degree_, size_, &held[o], &wanted_)) return false;
    }
    Extent split, partials = partials_;
    for (size_t o = held.size(); o-- > 0;) {
      if (held[o].axis != nullptr) split = held[o].led;
      if (family_.reduced[o]) partials = held[o].partials;
    }
    const Extent copies = CopiesOf(0, held[0], split, partials);
    wanted_.push_back(AtMost(0, copies, "copies of the call"));
    wanted_.push_back(AtMost(split, size_, "a size that the dim's degree divides"));
    for (size_t o = 0; o < held.size(); ++o) {
      if (held[o].axis != nullptr) wanted_.push_back(Equal(held[o].led, split, "one degree"));
      wanted_.push_back(Equal(CopiesOf(o, held[o], split, partials), copies, "copies of operands"));
      if (family_.reduced[o]) wanted_.push_back(Equal(held[o].partials, partials, "partials"));
    }
    for (size_t t = 0; t < outputs_.size(); ++t) {
      Held output = OutputOf(t, split, copies, partials);
      if (!Pass(family_.target.outputs[t], degree_, size_, &output, &wanted_)) return false;
      wanted_.push_back(Equal(output.led, outputs_[t].led, "degrees of an output"));
      wanted_.push_back(Equal(output.copies, outputs_[t].copies, "copies of an output"));
      wanted_.push_back(Equal(output.partials, outputs_[t].partials, "partials of an output"));
    }
    return true;
  }

  bool Conclude() {
    const LinearFacts linear(given_);
    std::vector<ExponentFact> rest;
    for (ExponentFact& fact : wanted_) {
      if (!linear.Imply(fact)) rest.push_back(std::move(fact));
    }
    if (rest.empty()) return true;
    const ExponentAnswer answer = DecideExponents(given_, rest);
    if (answer.verdict == SmtVerdict::kValid) return true;
    return Fail(answer.failed < 0 ? "not decided"
                                  : absl::StrCat(rest[answer.failed].text, " may differ"));
  }

  static void Append(const std::vector<ExponentFact>& from, std::vector<ExponentFact>* to) {
    to->insert(to->end(), from.begin(), from.end());
  }

  const Family& family_;
  const CallFacts& facts_;
  int next_ = 0;
  std::vector<Held> inputs_, outputs_;  // of the rule, its outputs as the source types them
  std::vector<Extent> sharers_;  // per operand: tasks that share a shard, but for what is split
  Extent degree_, size_, partials_, other_sums_;
  bool sums_split_ = false;
  std::vector<ExponentFact> given_, wanted_;
  std::string why_;
};

}  // namespace

void CallFacts::Add(const Declaration& d, bool passes_partials) {
  operands = d.num_operands();
  if (takes_partials.empty()) {
    takes_partials.assign(operands, false);
    always_takes_partials = led_by_all = std::vector<bool>(operands, true);
  }
  int sums = 0;
  for (int v = 0; v < static_cast<int>(d.dims.size()); ++v) {
    if (!d.IsPartitionable(v)) continue;
    std::vector<bool> leads(operands, false);
    for (int o = 0; o < operands; ++o) {
      for (int i = 0; i < static_cast<int>(d.operands[o].size()); ++i) {
        if (d.LeadOfOperandDim(o, i) == v) leads[o] = true;
      }
    }
    // A dim that leads no operand gets no degree.
    if (std::find(leads.begin(), leads.end(), true) == leads.end()) continue;
    sums += d.dims[v].kind == DimKind::kSum;
    for (int o = 0; o < operands; ++o) led_by_all[o] = led_by_all[o] && leads[o];
  }
  sum_dims = std::max(sum_dims, sums);
  std::vector<std::vector<bool>> sets;
  for (int bits = 1; passes_partials && bits < (1 << operands); ++bits) {
    std::vector<bool> set(operands);
    for (int o = 0; o < operands; ++o) set[o] = (bits >> o) & 1;
    if (!d.IsLinearIn(set)) continue;
    for (int o = 0; o < operands; ++o) {
      if (set[o]) takes_partials[o] = true;
      if (!set[o]) always_takes_partials[o] = false;
    }
    sets.push_back(std::move(set));
  }
  if (std::find(linear_sets.begin(), linear_sets.end(), sets) == linear_sets.end()) {
    linear_sets.push_back(std::move(sets));
  }
}

void CallFacts::Merge(const CallFacts& other) {
  if (other.operands == 0) return;
  if (operands == 0) {
    *this = other;
    return;
  }
  for (int o = 0; o < operands; ++o) {
    takes_partials[o] = takes_partials[o] || other.takes_partials[o];
    always_takes_partials[o] = always_takes_partials[o] && other.always_takes_partials[o];
    led_by_all[o] = led_by_all[o] && other.led_by_all[o];
  }
  sum_dims = std::max(sum_dims, other.sum_dims);
  for (const auto& sets : other.linear_sets) {
    if (std::find(linear_sets.begin(), linear_sets.end(), sets) == linear_sets.end()) {
      linear_sets.push_back(sets);
    }
  }
}

bool CallFacts::AreLinearIn(const std::vector<bool>& set) const {
  return std::all_of(linear_sets.begin(), linear_sets.end(), [&](const auto& sets) {
    bool has = false, smaller = false;
    for (const std::vector<bool>& other : sets) {
      has |= other == set;
      bool within = other != set;
      for (size_t o = 0; o < set.size(); ++o) within &= !other[o] || set[o];
      smaller |= within;
    }
    return has && !smaller;
  });
}

bool FamilyTypesAgree(const Rule& rule, const Family& family, const CallFacts& facts,
                      std::string* why) {
  if (facts.operands != rule.num_inputs) {
    *why = "types: no call of this family is known";
    return false;
  }
  return FamilyTypes(family, facts).Agree(why);
}

}  // namespace isomer
