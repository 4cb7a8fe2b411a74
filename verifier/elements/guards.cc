#include "verifier/elements/guards.h"

#include <algorithm>

#include "pcg/support/status_macros.h"

namespace isomer {

bool IsNonNegative(const Extent& extent) {
  int64_t least = extent.constant();
  for (const auto& [symbol, coefficient] : extent.terms()) {
    if (coefficient < 0) return false;
    least += coefficient;
  }
  return least >= 0;
}

namespace {

// value in [lower, upper].
struct Limits {
  Extent lower, upper;
};

Limits LimitsOf(const Affine& value, const Ranges& ranges) {
  Limits limits{value.offset, value.offset};
  for (const auto& [v, coefficient] : value.terms) {
    const IndexRange& range = ranges.at(v);
    const Extent least = range.lower, most = range.upper - 1;
    limits.lower += (coefficient > 0 ? least : most) * coefficient;
    limits.upper += (coefficient > 0 ? most : least) * coefficient;
  }
  return limits;
}

// Takes up a guard of one bound index into its range, which then starts at 0 again.
bool Narrow(const Guard& guard, Monomial* monomial, Ranges* ranges) {
  if (guard.value.terms.size() != 1 || guard.value.terms.begin()->second != 1) return false;
  const int v = guard.value.terms.begin()->first;
  auto bound = std::find_if(monomial->bounds.begin(), monomial->bounds.end(),
                            [v](const Bound& b) { return b.index == v; });
  if (bound == monomial->bounds.end()) return false;
  Extent lower = guard.value.offset * -1, upper = lower + guard.size;
  if (IsNonNegative(lower * -1)) lower = 0;
  if (!IsNonNegative(lower)) return false;
  if (IsNonNegative(upper - bound->size)) upper = bound->size;
  if (!IsNonNegative(bound->size - upper)) return false;
  bound->size = upper - lower;
  (*ranges)[v] = {0, bound->size};
  Affine shifted = Affine::Variable(v);
  shifted.offset = lower;
  SubstituteIn(monomial, v, shifted);
  return true;
}

}  // namespace

bool DecideGuards(Monomial* monomial, Ranges* ranges) {
  for (const Bound& bound : monomial->bounds) (*ranges)[bound.index] = {0, bound.size};
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t g = 0; g < monomial->guards.size(); ++g) {
      const Guard guard = monomial->guards[g];
      const Limits limits = LimitsOf(guard.value, *ranges);
      if (IsNonNegative(limits.lower - guard.size) || IsNonNegative(limits.upper * -1 - 1)) {
        return false;
      }
      const bool is_below = IsNonNegative(guard.size - limits.upper - 1);
      const bool holds = IsNonNegative(limits.lower) && is_below;
      if (!holds && !Narrow(guard, monomial, ranges)) {
        // Of a guard that is always below its size, the size says nothing else.
        if (is_below) monomial->guards[g].size = limits.upper + 1;
        continue;
      }
      monomial->guards.erase(monomial->guards.begin() + g--);
      changed = true;
    }
  }
  // A range of one element.
  for (const auto& [v, range] : *ranges) {
    if (range.upper - range.lower == Extent(1)) {
      SubstituteIn(monomial, v, Affine{{}, range.lower});
      std::erase_if(monomial->bounds, [v = v](const Bound& bound) { return bound.index == v; });
    }
  }
  return true;
}

namespace {

// Beyond the cuts a guard of `v` and of indices with these ranges holds for none of their values.
void CutWhereItNeverHolds(const Guard& guard, int v, const Ranges& ranges, std::set<Extent>* cuts) {
  Affine rest = guard.value;
  const int64_t sign = rest.terms.at(v);
  rest.terms.erase(v);
  for (const auto& [other, coefficient] : rest.terms) {
    if (!ranges.contains(other)) return;
  }
  const auto [lower, upper] = LimitsOf(rest, ranges);
  if (sign > 0) {
    cuts->insert({upper * -1, guard.size - lower});
  } else {
    cuts->insert({lower - guard.size + 1, upper + 1});
  }
}

}  // namespace

void CollectCuts(const Polynomial& polynomial, int v, const Ranges& others,
                 std::set<Extent>* cuts) {
  for (const Monomial& monomial : polynomial.monomials) {
    for (const Guard& guard : monomial.guards) {
      const auto term = guard.value.terms.find(v);
      if (term == guard.value.terms.end()) continue;
      if (term->second == 1 || term->second == -1) {
        CutWhereItNeverHolds(guard, v, others, cuts);
        continue;
      }
      if (term->second < 1) continue;
      for (const Extent& cut : {guard.value.offset * -1, guard.size - guard.value.offset}) {
        if (cut.known() && cut.value() % term->second == 0) {
          cuts->insert(cut.value() / term->second);  // Of stride * v + i, with i below the stride.
        }
      }
    }
    for (const Factor& factor : monomial.factors) {
      for (const Polynomial& argument : factor.arguments) CollectCuts(argument, v, others, cuts);
    }
  }
}

absl::StatusOr<std::vector<IndexRange>> Pieces(const std::set<Extent>& cuts, const Extent& size) {
  std::vector<Extent> inside;
  for (const Extent& cut : cuts) {
    if (IsNonNegative(cut * -1) || IsNonNegative(cut - size)) continue;
    if (!IsNonNegative(cut) || !IsNonNegative(size - cut)) {
      return absl::UnimplementedError("the order of parts depends on their sizes");
    }
    inside.push_back(cut);
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!IsNonNegative(inside[i] - inside[j]) && !IsNonNegative(inside[j] - inside[i])) {
        return absl::UnimplementedError("the order of parts depends on their sizes");
      }
    }
  }
  std::sort(inside.begin(), inside.end(),
            [](const Extent& a, const Extent& b) { return a != b && IsNonNegative(b - a); });
  std::vector<IndexRange> pieces;
  Extent lower = 0;
  for (const Extent& cut : inside) {
    pieces.push_back({lower, cut});
    lower = cut;
  }
  pieces.push_back({lower, size});
  return pieces;
}

}  // namespace isomer
