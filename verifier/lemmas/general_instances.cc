#include "verifier/lemmas/general_instances.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "verifier/size_unification.h"

namespace isomer {
namespace {

constexpr int kMaxRank = 4;
constexpr int64_t kLargestSize = 4;

// The letters of a lemma, by what they stand for.
struct Letters {
  std::set<char> tensors, axes, sizes, factors;

  void Add(const TermPattern& pattern) {
    if (pattern.letter != 0) tensors.insert(pattern.letter);
    for (const std::string& text : pattern.attributes) {
      for (char c : text) {
        if (absl::ascii_isupper(c)) {
          sizes.insert(c);
        } else if (absl::ascii_islower(c)) {
          (pattern.kind == OpKind::kScale ? factors : axes).insert(c);
        }
      }
    }
    for (const TermPattern& argument : pattern.arguments) Add(argument);
  }
};

// No size is a difference of others.
bool AllPositive(const std::vector<Extent>& extents) {
  return std::all_of(extents.begin(), extents.end(), [](const Extent& extent) {
    return extent.constant() >= 0 && std::all_of(extent.terms().begin(), extent.terms().end(),
                                                 [](const auto& term) { return term.second > 0; });
  });
}

class Explorer {
 public:
  Explorer(const Lemma& lemma, int most) : lemma_(lemma), most_(most) {
    letters_.Add(lemma.left);
    letters_.Add(lemma.right);
  }

  std::vector<GeneralInstance> Run() {
    // Ranks in order of their sum.
    std::vector<std::vector<int>> all = {{}};
    for (size_t i = 0; i < letters_.tensors.size(); ++i) {
      std::vector<std::vector<int>> longer;
      for (const std::vector<int>& ranks : all) {
        for (int rank = 1; rank <= kMaxRank; ++rank) {
          longer.push_back(ranks);
          longer.back().push_back(rank);
        }
      }
      all = std::move(longer);
    }
    auto total = [](const std::vector<int>& ranks) {
      return std::accumulate(ranks.begin(), ranks.end(), 0);
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const auto& a, const auto& b) { return total(a) < total(b); });
    for (const std::vector<int>& ranks : all) AtRanks(ranks);
    return std::move(found_);
  }

 private:
  bool full() const { return static_cast<int>(found_.size()) >= most_; }

  void AtRanks(const std::vector<int>& ranks) {
    GeneralInstance start;
    int symbol = 0;
    size_t next = 0;
    int longest = 0;
    for (char letter : letters_.tensors) {
      Shape& shape = start.shapes[letter];
      for (int i = 0; i < ranks[next]; ++i) shape.push_back(Extent::Symbol(symbol++));
      longest = std::max(longest, ranks[next++]);
    }
    for (char letter : letters_.sizes) {
      start.sizes[letter] = {Extent::Symbol(symbol), Extent::Symbol(symbol + 1)};
      symbol += 2;
    }
    // Factors whose values the lemma computes with are numbers; the others stand for any.
    const bool computes = absl::StrContains(lemma_.text, "+");
    double number = 2;
    for (char letter : letters_.factors) {
      start.factors[letter] =
          computes ? NumberExpr{number++, {}} : NumberExpr{1, {std::string(1, letter)}};
    }
    AtAxes(start, letters_.axes.begin(), longest);
  }

  void AtAxes(GeneralInstance start, std::set<char>::const_iterator letter, int longest) {
    if (letter == letters_.axes.end()) {
      AtSizes(start, {});
      return;
    }
    const char name = *letter++;
    for (int64_t axis = -1; axis >= -longest && !full(); --axis) {
      start.axes[name] = axis;
      AtAxes(start, letter, longest);
    }
  }

  // The two exchanged axes of one Transpose are different, the lower one first.
  bool AxesInOrder(const GeneralInstance& instance, const TermPattern& pattern) const {
    if (pattern.kind == OpKind::kTranspose && pattern.letter == 0) {
      const std::string &u = pattern.attributes[0], &v = pattern.attributes[1];
      if (u.size() == 1 && v.size() == 1 && absl::ascii_islower(u[0]) &&
          instance.axes.at(u[0]) >= instance.axes.at(v[0])) {
        return false;
      }
    }
    return std::all_of(pattern.arguments.begin(), pattern.arguments.end(),
                       [&](const TermPattern& a) { return AxesInOrder(instance, a); });
  }

  // Makes sizes equal, or 1, where the sides need it.
  void AtSizes(const GeneralInstance& start, const Substitution& substitution) {
    if (full() || !AxesInOrder(start, lemma_.left)) return;
    GeneralInstance instance = start;
    for (auto& [letter, shape] : instance.shapes) {
      for (Extent& size : shape) size = Substituted(size, substitution);
    }
    for (auto& [letter, sizes] : instance.sizes) {
      for (Extent& size : sizes) size = Substituted(size, substitution);
    }
    TermPool pool;
    LemmaBinding binding;
    for (const auto& [letter, shape] : instance.shapes) {
      binding.tensors[letter] = pool.Variable(letter, shape);
    }
    binding.axes = instance.axes;
    binding.sizes = instance.sizes;
    binding.factors = instance.factors;
    std::vector<TermId> sides;
    for (const TermPattern* side : {&lemma_.left, &lemma_.right}) {
      const absl::StatusOr<TermId> term = Instantiate(*side, binding, &pool);
      if (!term.ok()) {
        if (const auto conflict = ConflictOf(term.status())) Branch(start, substitution, *conflict);
        return;
      }
      sides.push_back(*term);
    }
    const Shape &left = pool[sides[0]].shape, &right = pool[sides[1]].shape;
    if (left.size() != right.size()) return;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] != right[i]) return Branch(start, substitution, {left[i], right[i], true});
    }
    // Sizes are made of sizes.
    for (const auto& [letter, shape] : instance.shapes) {
      if (!AllPositive(shape)) return;
    }
    for (const auto& [letter, sizes] : instance.sizes) {
      if (!AllPositive(sizes)) return;
    }
    if (book_.Status(lemma_, pool, binding) == LemmaStatus::kProved) {
      found_.push_back(std::move(instance));
    }
  }

  void Branch(const GeneralInstance& start, const Substitution& substitution,
              const SizeConflict& conflict) {
    Substitution equal = substitution;
    if (Unify(conflict.a, conflict.b, &equal) == Unification::kDone && equal != substitution) {
      AtSizes(start, equal);
    }
    for (const Extent* size : {&conflict.a, &conflict.b}) {
      if (!IsBareSymbol(*size)) continue;
      const int symbol = size->terms()[0].first;
      if (substitution.contains(symbol)) continue;
      Substitution one = substitution;
      one[symbol] = 1;
      AtSizes(start, one);
    }
  }

  const Lemma& lemma_;
  const int most_;
  Letters letters_;
  LemmaBook book_;
  std::vector<GeneralInstance> found_;
};

// Numbers for variable factors: neither integers nor of one sign.
double NumberFor(const NumberExpr& factor) {
  double number = factor.constant;
  for (const std::string& variable : factor.variables) number *= variable == "f" ? 0.75 : -3;
  return number;
}

void AddSymbols(const std::vector<Extent>& extents, std::set<int>* symbols) {
  for (const Extent& extent : extents) {
    for (const auto& [symbol, coefficient] : extent.terms()) symbols->insert(symbol);
  }
}

std::optional<std::vector<int64_t>> ValuesOf(const std::vector<Extent>& extents,
                                             const Substitution& sizes) {
  std::vector<int64_t> values;
  for (const Extent& extent : extents) {
    values.push_back(Substituted(extent, sizes).value());
    if (values.back() < 1) return std::nullopt;
  }
  return values;
}

}  // namespace

std::vector<GeneralInstance> ProvedInstances(const Lemma& lemma, int most) {
  return Explorer(lemma, most).Run();
}

std::vector<EquationBinding> SmallBindings(const GeneralInstance& instance, int most) {
  std::set<int> symbols;
  for (const auto& [letter, shape] : instance.shapes) AddSymbols(shape, &symbols);
  for (const auto& [letter, sizes] : instance.sizes) AddSymbols(sizes, &symbols);
  int64_t count = 1;
  for (size_t i = 0; i < symbols.size(); ++i) count *= kLargestSize;
  // Steps that are prime to the powers of four.
  const int64_t step = count <= most ? 1 : (count / most) | 1;
  std::vector<EquationBinding> bindings;
  for (int64_t place = 0, at = 0; place < std::min<int64_t>(count, most); ++place, at += step) {
    int64_t rest = at % count;
    Substitution sizes;
    for (int symbol : symbols) {
      sizes[symbol] = rest % kLargestSize + 1;
      rest /= kLargestSize;
    }
    EquationBinding binding;
    bool positive = true;
    auto set = [&](const std::vector<Extent>& extents, std::vector<int64_t>* values) {
      const auto found = ValuesOf(extents, sizes);
      positive &= found.has_value();
      if (found) *values = *found;
    };
    for (const auto& [letter, shape] : instance.shapes) set(shape, &binding.shapes[letter]);
    for (const auto& [letter, parts] : instance.sizes) set(parts, &binding.sizes[letter]);
    binding.axes = instance.axes;
    for (const auto& [letter, factor] : instance.factors) {
      binding.factors[letter] = NumberFor(factor);
    }
    if (positive) bindings.push_back(std::move(binding));
  }
  return bindings;
}

}  // namespace isomer
