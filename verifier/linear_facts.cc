#include "verifier/linear_facts.h"

#include <algorithm>

namespace isomer {
namespace {

bool HasNoNegativeTerm(const Extent& form) {
  return form.constant() >= 0 && std::all_of(form.terms().begin(), form.terms().end(),
                                             [](const auto& term) { return term.second >= 0; });
}

}  // namespace

LinearFacts::LinearFacts(const std::vector<ExponentFact>& facts) {
  for (const ExponentFact& fact : facts) {
    if (fact.kind != ExponentFact::Kind::kEqual) continue;
    const Extent difference = Reduced(fact.left - fact.right);
    for (const auto& [variable, coefficient] : difference.terms()) {
      if (coefficient != 1 && coefficient != -1) continue;
      solved_[variable] = (difference - Extent::Symbol(variable) * coefficient) * -coefficient;
      break;
    }
    // All that is known to be 0 has no negative terms, so each of its variables is 0.
    if (!HasNoNegativeTerm(difference) && !HasNoNegativeTerm(difference * -1)) continue;
    for (const auto& [variable, coefficient] : difference.terms()) solved_[variable] = 0;
  }
  for (const ExponentFact& fact : facts) {
    if (fact.kind == ExponentFact::Kind::kAtMost) {
      nonnegative_.push_back(Reduced(fact.right - fact.left));
    }
  }
}

Extent LinearFacts::Reduced(Extent form) const {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [variable, coefficient] : form.terms()) {
      auto at = solved_.find(variable);
      if (at == solved_.end()) continue;
      form += (at->second - Extent::Symbol(variable)) * int64_t{coefficient};
      changed = true;
      break;
    }
  }
  return form;
}

bool LinearFacts::Imply(const ExponentFact& fact) const {
  switch (fact.kind) {
    case ExponentFact::Kind::kEqual:
      return Reduced(fact.left - fact.right) == Extent(0);
    case ExponentFact::Kind::kAtMost: {
      const Extent rest = Reduced(fact.right - fact.left);
      return HasNoNegativeTerm(rest) ||
             std::any_of(nonnegative_.begin(), nonnegative_.end(),
                         [&](const Extent& known) { return HasNoNegativeTerm(rest - known); });
    }
    case ExponentFact::Kind::kAboveLeast:
      return false;
  }
  return false;
}

}  // namespace isomer
