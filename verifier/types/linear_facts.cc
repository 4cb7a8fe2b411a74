#include "verifier/types/linear_facts.h"

#include <algorithm>
#include <optional>
#include <utility>

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
    // A solution that is seen not to be negative hides nothing that is known of its variable.
    std::optional<std::pair<int, Extent>> solution;
    for (const auto& [variable, coefficient] : difference.terms()) {
      if (coefficient != 1 && coefficient != -1) continue;
      Extent value = (difference - Extent::Symbol(variable) * coefficient) * -coefficient;
      const bool is_best = HasNoNegativeTerm(value);
      if (is_best || !solution) solution.emplace(variable, std::move(value));
      if (is_best) break;
    }
    if (solution) solved_[solution->first] = solution->second;
    // All that is known to be 0 has no negative terms, so each of its variables is 0.
    if (!HasNoNegativeTerm(difference) && !HasNoNegativeTerm(difference * -1)) continue;
    for (const auto& [variable, coefficient] : difference.terms()) solved_[variable] = 0;
  }
  for (const ExponentFact& fact : facts) {
    if (fact.kind == ExponentFact::Kind::kAtMost) {
      nonnegative_.push_back(Reduced(fact.right - fact.left));
    }
  }
  for (const auto& [variable, value] : solved_) {
    nonnegative_.push_back(Reduced(Extent::Symbol(variable)));
  }
  // Those of positive terms alone say nothing.
  std::erase_if(nonnegative_, HasNoNegativeTerm);
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
