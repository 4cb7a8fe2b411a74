#include "rules/theorems/domains.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/exact_number.h"
#include "pcg/ir/operator_facts.h"
#include "rules/theorems/declaration_facts.h"
#include "rules/theorems/needed_operands.h"

namespace isomer {
namespace {

using Domain = PartialFunction::Domain;
using TermId = int;
// What must lie in a domain: the domain, the operator where that says which, and tensors whose
// elements at one place are meant together.
using Claim = std::tuple<Domain, std::string, std::vector<TermId>>;

// A tensor of either side; parallel operators are left out, and equal calls are one.
struct Term {
  const CallWithDomain* call = nullptr;  // null: an input
  std::vector<TermId> operands;
  int output = 0;
};

class Terms {
 public:
  // The calls' outputs, as far as they are used: [call] -> operands' terms.
  std::vector<std::vector<TermId>> Add(absl::Span<const CallWithDomain> calls) {
    std::vector<std::vector<TermId>> operands;
    for (const CallWithDomain& call : calls) {
      operands.emplace_back();
      for (PatternRef ref : call.inputs) operands.back().push_back(At(calls, operands, ref));
    }
    return operands;
  }
  const Term& operator[](TermId id) const { return terms_[id]; }
  TermId OutputOf(const CallWithDomain& call, const std::vector<TermId>& operands, int output) {
    const auto [at, is_new] =
        ids_.emplace(std::tuple(call.op, operands, output), static_cast<TermId>(terms_.size()));
    if (is_new) {
      terms_.push_back({&call, operands, output});
    } else if (terms_[at->second].call->declaration == nullptr) {
      terms_[at->second].call = &call;
    }
    return at->second;
  }
  // What `ref` is on the side of these calls, whose operands' terms Add gave.
  TermId At(absl::Span<const CallWithDomain> calls,
            const std::vector<std::vector<TermId>>& operands, PatternRef ref) {
    if (ref.node < 0) {
      const auto [at, is_new] = inputs_.emplace(ref.index, static_cast<TermId>(terms_.size()));
      if (is_new) terms_.push_back({});
      return at->second;
    }
    const CallWithDomain& call = calls[ref.node];
    const bool is_identity = IsParallel(call.kind) && call.inputs.size() == 1;
    return is_identity ? operands[ref.node][0] : OutputOf(call, operands[ref.node], ref.index);
  }

 private:
  std::vector<Term> terms_;
  std::map<int, TermId> inputs_;
  std::map<std::tuple<std::string, std::vector<TermId>, int>, TermId> ids_;
};

// Terms as multiples of others, wherever floats that are not zero have multiples that are none: 2 y
// and y - 3 y are multiples of y, 2 z - 2 x is one of x - z. Kept out is what rounding may make
// zero of what is not: 3 x - 3 z where both are the same float, 1.00000001 y - y, x - (x + y).
class Multiples {
 public:
  explicit Multiples(const Terms& terms) : terms_(terms) {}

  // Of the terms seen so far and those that they are made of, the first that `id` is a multiple of.
  TermId FirstOf(TermId id) { return Of(id).of; }

 private:
  struct Multiple {
    ExactNumber factor;  // not zero
    TermId of = 0;
    bool is_exact = true;  // nothing is rounded: the factor is a power of two, or minus one
  };

  const Multiple& Of(TermId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    const auto& [call, operands, output] = terms_[id];
    const OpKind kind = call == nullptr ? OpKind::kInput : call->kind;
    std::optional<Multiple> multiple;
    if (const std::optional<ExactNumber> factor = FactorOf(call)) {
      multiple = Times(Of(operands[0]), *factor);
    } else if (kind == OpKind::kAdd || kind == OpKind::kSub) {
      const ExactNumber sign = kind == OpKind::kAdd ? 1 : -1;
      const Multiple a = Of(operands[0]), b = Times(Of(operands[1]), sign);
      multiple = a.of == b.of ? SumOfSame(a, b)
                              : SumOf(id, Exactly(operands[0]), Times(Exactly(operands[1]), sign));
    }
    const bool is_moderate = multiple && IsModerate(multiple->factor);
    return known_[id] = is_moderate ? *std::move(multiple) : Multiple{1, id};
  }

  Multiple Exactly(TermId id) { return Of(id).is_exact ? Of(id) : Multiple{1, id}; }

  static Multiple Times(Multiple a, const ExactNumber& factor) {
    a.factor = a.factor * factor;
    a.is_exact &= IsPowerOfTwo(factor);
    return a;
  }

  // Rounding must not decide what is left where one is taken from the other.
  static std::optional<Multiple> SumOfSame(const Multiple& a, const Multiple& b) {
    const ExactNumber sum = a.factor + b.factor;
    if (IsSmaller(sum, a.factor) && IsSmaller(sum, b.factor)) return std::nullopt;
    return Multiple{sum, a.of, a.is_exact && b.is_exact && IsPowerOfTwo(sum)};
  }

  // The first sum of the same two seen, but for a sign and a power of two.
  Multiple SumOf(TermId id, const Multiple& a, const Multiple& b) {
    if (a.of > b.of) return SumOf(id, b, a);
    const auto [at, is_new] = sums_.emplace(
        std::tuple(a.of, b.of, (b.factor / a.factor).ToString()), std::pair(id, a.factor));
    return {a.factor / at->second.second, at->second.first};
  }

  static bool IsSmaller(const ExactNumber& a, const ExactNumber& b) {
    return (a * a - b * b).Sign() < 0;
  }
  static bool IsPowerOfTwo(const ExactNumber& number) {
    int exponent = 0;
    return std::abs(std::frexp(number.AsDouble().value_or(0), &exponent)) == 0.5;
  }
  // A float32 of which the least of these makes zero is so small that 1 divided by it is infinite;
  // nor are these the marks that stand for variables.
  static bool IsModerate(const ExactNumber& factor) {
    constexpr int64_t kMost = 1 << 22;
    return !IsSmaller(kMost, factor) && !IsSmaller(factor * kMost, 1);
  }

  // Of a Scale.
  static std::optional<ExactNumber> FactorOf(const CallWithDomain* call) {
    if (call == nullptr || call->kind != OpKind::kScale || call->declaration == nullptr) {
      return std::nullopt;
    }
    for (const Instruction& i : call->declaration->statements[0].body) {
      if (i.op != ScalarOp::kConstant || !std::isfinite(i.constant)) continue;
      const ExactNumber factor = ExactNumber::FromDouble(i.constant);
      if (IsModerate(factor)) return factor;
    }
    return std::nullopt;
  }

  const Terms& terms_;
  std::map<TermId, Multiple> known_;
  // By two terms and the second's factor, if the first's is 1: a sum, and the first's factor in it.
  std::map<std::tuple<TermId, TermId, std::string>, std::pair<TermId, ExactNumber>> sums_;
};

// The operands whose elements a call moves, where it does nothing else.
std::vector<int> MovedOperands(const CallWithDomain& call) {
  std::vector<int> moved;
  for (int o = 0; o < static_cast<int>(call.inputs.size()); ++o) {
    if (HoldsValues(call.kind, o)) moved.push_back(o);
  }
  return moved;
}

// A side over a table of terms.
struct SideOfTerms {
  SideOfTerms(const SideWithDomains& side, Terms* terms)
      : calls(side.calls), operands(terms->Add(side.calls)) {
    for (PatternRef ref : side.outputs) outputs.insert(terms->At(calls, operands, ref));
  }
  bool IsIdentity(size_t n) const { return IsParallel(calls[n].kind); }

  absl::Span<const CallWithDomain> calls;
  std::vector<std::vector<TermId>> operands;  // by call
  std::set<TermId> outputs;
};

class DomainCheck {
 public:
  DomainCheck(const SideWithDomains& source, const SideWithDomains& target)
      : source_(source, &terms_), target_(target, &terms_) {}

  absl::Status Run() {
    FindNeeded();
    for (size_t n = 0; n < source_.calls.size(); ++n) LearnOfCall(n);
    LearnSplits();
    for (size_t n = 0; n < target_.calls.size(); ++n) {
      const CallWithDomain& call = target_.calls[n];
      if (target_.IsIdentity(n) || IsAlikeInSource(n)) continue;
      if (call.declaration == nullptr) {
        if (MayBePartial(call.kind)) return Undefined(call);
        continue;
      }
      for (const PartialFunction& f : PartialFunctionsOf(*call.declaration)) {
        if (f.domain == Domain::kUnclear || !Holds(ClaimOf(call, target_.operands[n], f))) {
          return Undefined(call);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  // The terms that are numbers, with finite gradients, at every element, where the outputs are.
  void FindNeeded() {
    needed_ = source_.outputs;
    for (size_t n = source_.calls.size(); n-- > 0;) {
      const CallWithDomain& call = source_.calls[n];
      const std::vector<TermId>& operands = source_.operands[n];
      auto is_needed = [&](int output) {
        return needed_.count(terms_.OutputOf(call, operands, output)) > 0;
      };
      if (source_.IsIdentity(n) && operands.size() == 1) continue;
      const int outputs =
          call.declaration == nullptr ? 1 : static_cast<int>(call.declaration->outputs.size());
      if (call.kind == OpKind::kSplit) {
        bool all = call.declaration != nullptr;
        for (int o = 0; o < outputs; ++o) all &= is_needed(o);
        if (all) needed_.insert(operands[0]);
      } else if (source_.IsIdentity(n) || IsLayout(call.kind)) {
        if (is_needed(0)) needed_.insert(operands.begin(), operands.end());
      } else if (call.declaration != nullptr) {
        for (int o = 0; o < outputs; ++o) {
          if (!is_needed(o)) continue;
          const std::vector<bool> of_call = NeededOperands(*call.declaration, o);
          for (size_t i = 0; i < operands.size(); ++i) {
            if (of_call[i]) needed_.insert(operands[i]);
          }
        }
      }
    }
  }

  void LearnOfCall(size_t n) {
    const CallWithDomain& call = source_.calls[n];
    if (source_.IsIdentity(n) || call.declaration == nullptr) return;
    for (size_t o = 0; o < call.declaration->outputs.size(); ++o) {
      const TermId term = terms_.OutputOf(call, source_.operands[n], static_cast<int>(o));
      if (needed_.count(term) == 0) return;
    }
    for (const PartialFunction& f : PartialFunctionsOf(*call.declaration)) {
      if (f.of_all_elements) Learn(ClaimOf(call, source_.operands[n], f));
    }
    LearnOfMoved(call, source_.operands[n]);
  }

  // What moves elements of f(x) has f applied to the elements of x that it moves, as where(c,
  // log(x), log(y)) has log applied to where(c, x, y).
  void LearnOfMoved(const CallWithDomain& call, const std::vector<TermId>& operands) {
    const std::vector<int> moved = MovedOperands(call);
    std::vector<bool> subset(operands.size(), false);
    for (int o : moved) subset[o] = true;
    if (moved.empty() || call.declaration->outputs.size() != 1 ||
        MovesElementsOf(*call.declaration, subset) != Moves::kElements) {
      return;
    }
    const CallWithDomain* const f = terms_[operands[moved[0]]].call;
    for (int o : moved) {
      const CallWithDomain* const other = terms_[operands[o]].call;
      if (other == nullptr || other->declaration == nullptr || other->op != f->op ||
          !IsElementwise(*other->declaration) ||
          !SameBodies(*other->declaration, *f->declaration)) {
        return;
      }
    }
    for (const PartialFunction& partial : PartialFunctionsOf(*f->declaration)) {
      Claim claim = {partial.domain, partial.domain == Domain::kOfOperator ? f->op : "", {}};
      for (int i : partial.operands) {
        std::vector<TermId> of_operand = operands;
        for (int o : moved) of_operand[o] = terms_[operands[o]].operands[i];
        std::get<2>(claim).push_back(terms_.OutputOf(call, of_operand, 0));
      }
      if (partial.domain != Domain::kUnclear) Learn(claim);
    }
  }

  // The source has the same call, and needs what is used of it here; or all that uses it here is
  // alike in the source, too, which then has or drops the same.
  bool IsAlikeInSource(size_t n) {
    const auto same = [&](size_t m) {
      return source_.calls[m].op == target_.calls[n].op &&
             source_.operands[m] == target_.operands[n];
    };
    bool is_applied = false;
    for (size_t m = 0; m < source_.calls.size(); ++m) is_applied |= same(m);
    if (!is_applied) return false;
    const auto is_of_call = [&](TermId id) {
      const Term& term = terms_[id];
      return term.call != nullptr && term.call->op == target_.calls[n].op &&
             term.operands == target_.operands[n];
    };
    for (TermId id : target_.outputs) {
      if (is_of_call(id) && needed_.count(id) == 0) return false;
    }
    for (size_t user = 0; user < target_.calls.size(); ++user) {
      if (target_.IsIdentity(user) && target_.operands[user].size() == 1) continue;
      for (TermId id : target_.operands[user]) {
        if (is_of_call(id) && needed_.count(id) == 0 && !IsAlikeInSource(user)) return false;
      }
    }
    return true;
  }

  static absl::Status Undefined(const CallWithDomain& call) {
    return absl::FailedPreconditionError(absl::StrCat(
        OpName(call.kind), " may be undefined in the target where the source is defined"));
  }

  static Claim ClaimOf(const CallWithDomain& call, const std::vector<TermId>& operands,
                       const PartialFunction& f) {
    std::vector<TermId> terms;
    for (int o : f.operands) terms.push_back(operands[o]);
    return {f.domain, f.domain == Domain::kOfOperator ? call.op : "", std::move(terms)};
  }

  // One call in place of those that make the terms of a claim, if they are alike but for what they
  // move; null if they are not, or a term is an input.
  const CallWithDomain* CommonCall(const std::vector<TermId>& ids) const {
    const Term& first = terms_[ids[0]];
    if (first.call == nullptr || first.call->declaration == nullptr) return nullptr;
    const std::vector<int> moved = MovedOperands(*first.call);
    for (TermId id : ids) {
      const Term& term = terms_[id];
      if (term.call == nullptr || term.call->op != first.call->op || term.output != first.output ||
          term.call->declaration == nullptr ||
          !SameDeclaration(*term.call->declaration, *first.call->declaration)) {
        return nullptr;
      }
      for (int o = 0; o < static_cast<int>(term.operands.size()); ++o) {
        const bool is_moved = std::find(moved.begin(), moved.end(), o) != moved.end();
        if (!is_moved && term.operands[o] != first.operands[o]) return nullptr;
      }
    }
    return first.call;
  }

  // The same claim of what the common call moves.
  Claim OfOperand(const Claim& claim, int operand) const {
    Claim result = claim;
    for (TermId& id : std::get<2>(result)) id = terms_[id].operands[operand];
    return result;
  }

  // The operands that are not zero where the call's value is not, and the other way round.
  static std::vector<int> FactorsOf(const Term& term) {
    switch (term.call->kind) {
      case OpKind::kMul:
        return {0, 1};
      case OpKind::kDiv:
      case OpKind::kReduceProd:
        return {0};
      default:
        return {};
    }
  }

  // The claim holds, since the source is defined; so do those that follow from it.
  void Learn(const Claim& claim) {
    if (!known_.insert(claim).second) return;
    const auto& [domain, op, ids] = claim;
    const CallWithDomain* call = CommonCall(ids);
    if (call == nullptr) return;
    // Each element of the operands is an element of the result.
    const bool keeps_all =
        (IsLayout(call->kind) && call->kind != OpKind::kSplit) || call->kind == OpKind::kExpand;
    if (keeps_all) {
      for (int o : MovedOperands(*call)) Learn(OfOperand(claim, o));
    }
    if (domain != Domain::kNonzero) return;
    if (const TermId multiple = multiples_.FirstOf(ids[0]); multiple != ids[0]) {
      Learn({Domain::kNonzero, "", {multiple}});
    }
    for (int o : FactorsOf(terms_[ids[0]])) Learn(OfOperand(claim, o));
  }

  // What holds of all outputs of a Split holds of its operand.
  void LearnSplits() {
    for (bool more = true; more;) {
      const size_t before = known_.size();
      const std::set<Claim> known = known_;
      for (const Claim& claim : known) {
        const std::vector<TermId>& ids = std::get<2>(claim);
        const CallWithDomain* call = CommonCall(ids);
        if (call == nullptr || call->kind != OpKind::kSplit) continue;
        bool all = true;
        for (int o = 0; o < static_cast<int>(call->declaration->outputs.size()); ++o) {
          Claim of_output = claim;
          for (TermId& id : std::get<2>(of_output)) {
            id = terms_.OutputOf(*terms_[id].call, std::vector<TermId>(terms_[id].operands), o);
          }
          all &= known.count(of_output) > 0;
        }
        if (all) Learn(OfOperand(claim, 0));
      }
      more = known_.size() > before;
    }
  }

  bool Holds(const Claim& claim) {
    const auto& [domain, op, ids] = claim;
    if (known_.count(claim) > 0) return true;
    const bool implied = domain == Domain::kNonzero || domain == Domain::kNonnegative;
    if (implied && known_.count({Domain::kPositive, op, ids}) > 0) return true;
    // A root of what may be zero has no gradient there, though nothing is below zero.
    if (ids.size() == 1 && domain != Domain::kOfOperator && SignOf(ids[0]) == Sign::kPositive) {
      return true;
    }
    const CallWithDomain* call = CommonCall(ids);
    if (call == nullptr) return false;
    // What is small is rounded to zero.
    if (call->kind == OpKind::kCast && domain != Domain::kNonnegative) return false;
    auto of_all = [&](const std::vector<int>& operands) {
      return std::all_of(operands.begin(), operands.end(),
                         [&](int o) { return Holds(OfOperand(claim, o)); });
    };
    const std::vector<int> moved = MovedOperands(*call);
    std::vector<bool> subset(call->inputs.size(), false);
    for (int o : moved) subset[o] = true;
    const Moves moves = MovesElementsOf(*call->declaration, subset);
    const bool is_element =
        moves == Moves::kElements || IsLayout(call->kind) ||
        (ids.size() == 1 && (moves == Moves::kLargest || moves == Moves::kSmallest));
    if (is_element && of_all(moved)) return true;
    if (domain != Domain::kNonzero) return false;
    if (call->kind == OpKind::kReciprocal) return true;
    if (const TermId multiple = multiples_.FirstOf(ids[0]); multiple != ids[0]) {
      return Holds({Domain::kNonzero, "", {multiple}});
    }
    const std::vector<int> factors = FactorsOf(terms_[ids[0]]);
    return !factors.empty() && of_all(factors);
  }

  Sign SignOf(TermId id) {
    const Term& term = terms_[id];
    if (term.call == nullptr) return Sign::kUnknown;
    if (term.call->declaration == nullptr) return Sign::kUnknown;
    std::vector<Sign> operands;
    for (TermId operand : term.operands) operands.push_back(SignOf(operand));
    const Sign sign = SignOfOutput(*term.call->declaration, term.output, operands);
    const bool rounds = term.call->kind == OpKind::kCast && sign == Sign::kPositive;
    return rounds ? Sign::kNonnegative : sign;
  }

  Terms terms_;
  Multiples multiples_{terms_};
  const SideOfTerms source_, target_;
  std::set<TermId> needed_;
  std::set<Claim> known_;
};

std::vector<CallWithDomain> CallsOf(const Pattern& pattern) {
  std::vector<CallWithDomain> calls;
  for (const PatternNode& node : pattern.nodes) {
    calls.push_back({node.kind, OperatorText(node), node.inputs});
  }
  return calls;
}

}  // namespace

absl::Status DefinedWhereSourceIs(const SideWithDomains& source, const SideWithDomains& target) {
  return DomainCheck(source, target).Run();
}

absl::Status DefinedWhereSourceIs(const Pattern& source, const Pattern& target) {
  return DefinedWhereSourceIs({CallsOf(source), source.outputs}, {CallsOf(target), target.outputs});
}

absl::Status CastsAreTheSame(absl::Span<const CallWithDomain> source,
                             absl::Span<const CallWithDomain> target) {
  Terms terms;
  using Casts = std::set<std::pair<std::string, std::vector<TermId>>>;
  Casts casts[2];
  for (int side : {0, 1}) {
    const absl::Span<const CallWithDomain> calls = side == 0 ? source : target;
    const auto operands = terms.Add(calls);
    for (size_t n = 0; n < operands.size(); ++n) {
      if (calls[n].kind == OpKind::kCast) casts[side].emplace(calls[n].op, operands[n]);
    }
  }
  if (casts[0] == casts[1]) return absl::OkStatus();
  return absl::FailedPreconditionError("a cast may round: no theorem speaks of what is done to it");
}

absl::Status CastsAreTheSame(const Pattern& source, const Pattern& target) {
  return CastsAreTheSame(CallsOf(source), CallsOf(target));
}

}  // namespace isomer
