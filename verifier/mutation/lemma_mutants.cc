#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/hash.h"
#include "verifier/elements/normal_form.h"
#include "verifier/lemma.h"
#include "verifier/mutation/mutants.h"

namespace isomer {
namespace {

std::string TextOf(const TermPattern& pattern) {
  if (pattern.letter != 0) return std::string(1, pattern.letter);
  std::string text(OpName(pattern.kind));
  if (!pattern.attributes.empty()) {
    absl::StrAppend(&text, "{", absl::StrJoin(pattern.attributes, ","), "}");
  }
  absl::StrAppend(&text, "(",
                  absl::StrJoin(pattern.arguments, ", ",
                                [](std::string* out, const TermPattern& argument) {
                                  out->append(TextOf(argument));
                                }),
                  ")");
  if (pattern.kind == OpKind::kSplit) absl::StrAppend(&text, ".", pattern.index);
  return text;
}

struct Change {
  std::string what;
  TermPattern side;
};

// Other patterns that may stand where `pattern` stands.
std::vector<Change> ChangesAt(const TermPattern& pattern, const std::set<char>& tensors) {
  std::vector<Change> changes;
  auto keep = [&](const std::string& what, TermPattern changed) {
    changes.push_back({absl::StrCat(what, " in ", TextOf(pattern)), std::move(changed)});
  };
  if (pattern.letter != 0) {
    for (char other : tensors) {
      TermPattern changed = pattern;
      changed.letter = other;
      if (other != pattern.letter) keep(absl::StrCat("tensor ", std::string(1, other)), changed);
    }
    return changes;
  }
  for (size_t i = 0; i + 1 < pattern.arguments.size(); ++i) {
    TermPattern changed = pattern;
    std::swap(changed.arguments[i], changed.arguments[i + 1]);
    keep("arguments exchanged", changed);
  }
  for (size_t i = 0; i < pattern.arguments.size(); ++i) {
    keep("operator dropped", pattern.arguments[i]);
  }
  const std::vector<std::vector<OpKind>> alike = {
      {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv},
      {OpKind::kRelu, OpKind::kGelu, OpKind::kTanh, OpKind::kSigmoid, OpKind::kExp}};
  for (const std::vector<OpKind>& kinds : alike) {
    const auto at = std::find(kinds.begin(), kinds.end(), pattern.kind);
    if (at == kinds.end()) continue;
    TermPattern changed = pattern;
    changed.kind = kinds[static_cast<size_t>(at - kinds.begin() + 1) % kinds.size()];
    keep("another operator", changed);
  }
  if (pattern.kind == OpKind::kSplit) {
    TermPattern changed = pattern;
    changed.index = 1 - pattern.index;
    keep("the other part", changed);
  }
  for (size_t a = 0; a < pattern.attributes.size(); ++a) {
    const bool computes_axis = pattern.attributes[a].find('^') != std::string::npos;
    std::vector<std::string> others;
    if (pattern.kind == OpKind::kScale) others = {"f", "4", "-1"};
    if (pattern.kind == OpKind::kLinear) others = {"0", "1", "2"};
    if (pattern.kind == OpKind::kConcat || (pattern.kind == OpKind::kSplit && a == 0)) {
      others = {"-1", "-2"};
      if (computes_axis) others.push_back(pattern.attributes[a].substr(0, 1));
    }
    if (pattern.kind == OpKind::kTranspose) others = {computes_axis ? "u" : "-1"};
    for (const std::string& other : others) {
      TermPattern changed = pattern;
      changed.attributes[a] = other;
      if (other != pattern.attributes[a]) keep("attribute " + other, changed);
    }
  }
  return changes;
}

void Letters(const TermPattern& pattern, std::set<char>* tensors, std::set<char>* axes,
             std::set<char>* sizes, std::set<char>* factors) {
  if (pattern.letter != 0) tensors->insert(pattern.letter);
  for (const std::string& attribute : pattern.attributes) {
    for (char c : attribute) {
      if (c >= 'A' && c <= 'Z') sizes->insert(c);
      if (c == 'f' || c == 'g') factors->insert(c);
      if (c == 'a' || c == 'b' || c == 'u' || c == 'v') axes->insert(c);
    }
  }
  for (const TermPattern& argument : pattern.arguments) {
    Letters(argument, tensors, axes, sizes, factors);
  }
}

// All sides that differ from `side` in one place.
std::vector<Change> ChangesWithin(const TermPattern& side, const std::set<char>& tensors) {
  std::vector<Change> changes = ChangesAt(side, tensors);
  for (size_t i = 0; i < side.arguments.size(); ++i) {
    for (Change& inner : ChangesWithin(side.arguments[i], tensors)) {
      TermPattern whole = side;
      whole.arguments[i] = std::move(inner.side);
      changes.push_back({std::move(inner.what), std::move(whole)});
    }
  }
  return changes;
}

// The assignments of a lemma's letters at which the lemma itself is proved: shapes of every rank up
// to 3 from few symbols, all axes, a bounded number of each lemma.
class ProvedInstances {
 public:
  ProvedInstances(const Lemma& lemma, TermPool* pool) : lemma_(lemma), pool_(*pool) {
    for (const TermPattern* side : {&lemma.left, &lemma.right}) {
      Letters(*side, &tensors_, &axes_, &sizes_, &factors_);
    }
  }

  std::vector<LemmaBinding> Run() {
    LemmaBinding binding;
    const bool computes = lemma_.text.find('+') != std::string::npos;
    double number = 3;
    for (char letter : factors_) {
      binding.factors[letter] =
          computes ? NumberExpr{number++, {}} : NumberExpr{1, {std::string(1, letter)}};
    }
    for (char letter : sizes_) {
      const int first = letter == 'S' ? 0 : 2;
      binding.sizes[letter] = {Extent::Symbol(first), Extent::Symbol(first + 1)};
    }
    for (int rank : {2, 1, 3}) Of(rank, OfOneRank(rank), binding);
    // Operands that are broadcast, or a batch of matrices.
    if (found_.empty()) Of(2, Broadcast(), binding);
    if (found_.empty()) Of(3, Batches(), binding);
    return std::move(found_);
  }

 private:
  static constexpr int kOfARank = 6, kTries = 4000;

  std::vector<Shape> OfOneRank(int rank) const {
    const Extent s0 = Extent::Symbol(0), s1 = Extent::Symbol(1), s2 = Extent::Symbol(2);
    std::vector<Extent> choices = {s0, s1, s2};
    if (!sizes_.empty()) choices = {s0 + s1, s2, s0, s2 + Extent::Symbol(3)};
    size_t count = 1;
    for (int i = 0; i < rank; ++i) count *= choices.size();
    std::vector<Shape> shapes;
    for (size_t code = 0; code < count; ++code) {
      Shape shape;
      size_t rest = code;
      // Different sizes first, so that few things fit by accident.
      for (int i = 0; i < rank; ++i, rest /= choices.size()) {
        shape.push_back(choices[(rest + static_cast<size_t>(i)) % choices.size()]);
      }
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }

  static std::vector<Shape> Broadcast() {
    const Extent s0 = Extent::Symbol(0), s1 = Extent::Symbol(1), s2 = Extent::Symbol(2);
    return {{s0, s2}, {s2, s0}, {s1, s2}, {s2, s1}, {s0 + s1, s2}, {s2, s0 + s1},
            {s2},     {s0},     {1},      {s2, 1},  {s0, 1},       {s0, s1}};
  }

  static std::vector<Shape> Batches() {
    const Extent s0 = Extent::Symbol(0), s1 = Extent::Symbol(1), s2 = Extent::Symbol(2),
                 s3 = Extent::Symbol(3), s4 = Extent::Symbol(4);
    return {{s0, s1, s2}, {s4, s1, s2}, {s0, s2, s3}, {s4, s2, s3}};
  }

  void Of(int rank, const std::vector<Shape>& shapes, const LemmaBinding& binding) {
    shapes_ = shapes;
    quota_ = kOfARank;
    ChooseAxes(axes_.begin(), rank, binding);
    ++batch_;
  }

  void ChooseAxes(std::set<char>::const_iterator next, int rank, LemmaBinding binding) {
    if (next == axes_.end()) {
      tries_ = kTries;
      return ChooseShapes(tensors_.begin(), binding);
    }
    for (int64_t axis = -1; axis >= -rank; --axis) {
      binding.axes[*next] = axis;
      ChooseAxes(std::next(next), rank, binding);
    }
  }

  void ChooseShapes(std::set<char>::const_iterator next, LemmaBinding binding) {
    if (next == tensors_.end()) return Judge(binding);
    for (size_t i = 0; i < shapes_.size() && quota_ > 0 && tries_ > 0; ++i) {
      // A pool knows a variable by its number alone.
      const int number = (*next * 8 + batch_) * 128 + static_cast<int>(i);
      binding.tensors[*next] = pool_.Variable(number, shapes_[i]);
      ChooseShapes(std::next(next), binding);
    }
  }

  void Judge(const LemmaBinding& binding) {
    --tries_;
    const absl::StatusOr<TermId> left = Instantiate(lemma_.left, binding, &pool_);
    if (!left.ok()) return;
    const absl::StatusOr<TermId> right = Instantiate(lemma_.right, binding, &pool_);
    if (!right.ok()) return;
    const absl::StatusOr<bool> equal = ProvablyEqual(pool_, *left, *right);
    if (!equal.ok() || !*equal) return;
    --quota_;
    found_.push_back(binding);
  }

  const Lemma& lemma_;
  TermPool& pool_;
  std::set<char> tensors_, axes_, sizes_, factors_;
  std::vector<Shape> shapes_;
  int batch_ = 0, quota_ = 0, tries_ = 0;
  std::vector<LemmaBinding> found_;
};

MutantVerdict JudgeLemma(const Lemma& original, const TermPattern& left, const TermPattern& right) {
  TermPool pool;
  const std::vector<LemmaBinding> instances = ProvedInstances(original, &pool).Run();
  int ill_typed = 0, different = 0, alike = 0, unproved = 0;
  std::string example;
  for (const LemmaBinding& binding : instances) {
    const absl::StatusOr<TermId> a = Instantiate(left, binding, &pool);
    const absl::StatusOr<TermId> b = Instantiate(right, binding, &pool);
    if (!a.ok() || !b.ok() || pool[*a].shape != pool[*b].shape) {
      ++ill_typed;
      continue;
    }
    const absl::StatusOr<bool> proved = ProvablyEqual(pool, *a, *b);
    bool equal = true;
    for (uint64_t seed : {1, 2, 3, 4}) {
      const absl::StatusOr<bool> seen = EqualAtSmallSizes(pool, *a, *b, seed);
      equal = equal && seen.ok() && *seen;
    }
    const bool is_proved = proved.ok() && *proved;
    const std::string text = absl::StrCat(pool.ToString(*a), " = ", pool.ToString(*b));
    if (is_proved && !equal) return Missed("normal forms agree, evaluation does not", text);
    if (example.empty() || !equal) example = text;
    ++(!equal ? different : is_proved ? alike : unproved);
  }
  const std::string counts = absl::StrCat(different, " false, ", ill_typed, " ill-typed, ", alike,
                                          " proved of ", instances.size(), " instances: ", example);
  if (instances.empty()) return Undecided("the lemma has no small instance", counts);
  if (different > 0) return Caught("no normal form in common", counts);
  if (alike == 0 && unproved == 0) return Caught("ill-typed at every instance", counts);
  if (unproved > 0) return Undecided("no normal form in common", counts);
  return Equal("proved from the definitions, and evaluates alike", counts);
}

}  // namespace

std::vector<Mutant> LemmaMutants(uint64_t seed) {
  constexpr size_t kMutantsOfALemma = 5;
  std::vector<Mutant> mutants;
  for (const Lemma& lemma : LemmaTable()) {
    std::set<char> tensors, axes, sizes, factors;
    Letters(lemma.left, &tensors, &axes, &sizes, &factors);
    Letters(lemma.right, &tensors, &axes, &sizes, &factors);
    std::vector<std::pair<uint64_t, Mutant>> of_lemma;
    std::set<std::string> seen = {TextOf(lemma.left) + TextOf(lemma.right)};
    for (bool is_left : {true, false}) {
      for (Change& change : ChangesWithin(is_left ? lemma.left : lemma.right, tensors)) {
        const TermPattern left = is_left ? change.side : lemma.left;
        const TermPattern right = is_left ? lemma.right : change.side;
        const std::string text = absl::StrCat(TextOf(left), " = ", TextOf(right));
        if (!seen.insert(text).second) continue;
        of_lemma.emplace_back(
            HashBytes(text, seed),
            Mutant{MutantKind::kLemma, absl::StrCat(lemma.id, ": ", text), change.what,
                   [&lemma, left, right](Prover*) { return JudgeLemma(lemma, left, right); }});
      }
    }
    std::sort(of_lemma.begin(), of_lemma.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < of_lemma.size() && i < kMutantsOfALemma; ++i) {
      mutants.push_back(std::move(of_lemma[i].second));
    }
  }
  return mutants;
}

}  // namespace isomer
