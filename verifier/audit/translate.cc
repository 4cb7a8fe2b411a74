#include "verifier/audit/translate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "verifier/audit/foreign_shapes.h"
#include "verifier/audit/translate_operator.h"

namespace isomer {
namespace {

// Unifying ties one symbol at a time; a rule has no more.
constexpr int kMaxUnifications = 256;

// The ranks of a rule's inputs: what operators say, and what they need equal.
class RankFinder {
 public:
  RankFinder(const ForeignRule& rule, ForeignFormat format, bool arrays,
             const std::map<ForeignTensor, int>& inputs)
      : inputs_(inputs), unity_(format == ForeignFormat::kUnity), arrays_(arrays) {
    slots_ = static_cast<int>(inputs.size());
    const int source = slots_;
    slots_ += static_cast<int>(rule.source.size());
    const int target = slots_;
    slots_ += static_cast<int>(rule.target.size());
    parent_.resize(slots_);
    std::iota(parent_.begin(), parent_.end(), 0);
    rank_.assign(slots_, -1);
    for (int side = 0; side < 2; ++side) {
      const auto& ops = side == 0 ? rule.source : rule.target;
      for (size_t i = 0; i < ops.size(); ++i) Add(ops[i], side == 0 ? source : target, i);
    }
  }

  bool IsScalar(int input) const { return scalars_.contains(input); }

  // The rank of an input; `otherwise` where the rule does not say.
  int RankOf(int input, int otherwise, bool* is_open) {
    const int rank = rank_[Root(input)];
    *is_open |= rank < 0;
    return rank < 0 ? otherwise : rank;
  }

 private:
  void Add(const ForeignOperator& op, int first, size_t index) {
    const int slot = first + static_cast<int>(index);
    for (size_t j = 0; j < op.inputs.size(); ++j) {
      const ForeignTensor t = op.inputs[j];
      const int operand = t.op < 0 ? inputs_.at(t) : first + t.op;
      if (op.type == "OP_MUL" && j == 1) {
        if (t.op < 0) scalars_.insert(operand);
        continue;
      }
      const int known = std::max(rank_[Root(slot)], rank_[Root(operand)]);
      parent_[Root(operand)] = Root(slot);
      rank_[Root(slot)] = known;
    }
    const bool windows = op.type == "OP_CONV2D" || op.type == "OP_ENLARGE" ||
                         op.type == "OP_POOL2D_MAX" || op.type == "OP_POOL2D_AVG";
    if (windows && !unity_) rank_[Root(slot)] = 4;
    if (const auto dims = op.Find("PM_NUMDIM")) {
      rank_[Root(slot)] = static_cast<int>(*dims) - (unity_ && !arrays_ ? 1 : 0);
    }
  }

  int Root(int slot) {
    while (parent_[slot] != slot) slot = parent_[slot] = parent_[parent_[slot]];
    return slot;
  }

  const std::map<ForeignTensor, int> inputs_;
  const bool unity_, arrays_;
  int slots_ = 0;
  std::vector<int> parent_, rank_;
  std::set<int> scalars_;
};

// Inputs in order of first use, the source's first.
std::map<ForeignTensor, int> InputsOf(const ForeignRule& rule, int* of_source) {
  std::map<ForeignTensor, int> inputs;
  for (const auto* side : {&rule.source, &rule.target}) {
    for (const ForeignOperator& op : *side) {
      for (const ForeignTensor& t : op.inputs) {
        if (t.op < 0) inputs.emplace(t, static_cast<int>(inputs.size()));
      }
    }
    if (side == &rule.source) *of_source = static_cast<int>(inputs.size());
  }
  return inputs;
}

// The rank that all inputs have.
std::optional<int> OneRank(const std::vector<int>& ranks) {
  const bool same = std::all_of(ranks.begin(), ranks.end(), [&](int r) { return r == ranks[0]; });
  return same ? std::optional(ranks[0]) : std::nullopt;
}

Untranslated::Why WhyOf(const absl::Status& status, bool is_source) {
  if (absl::IsUnimplemented(status)) return Untranslated::Why::kOutside;
  if (absl::IsUnknown(status)) return Untranslated::Why::kUnknown;
  return is_source ? Untranslated::Why::kSourceIllTyped : Untranslated::Why::kTargetIllTyped;
}

class Translator {
 public:
  Translator(const ForeignRule& rule, ForeignFormat format, const Reading& reading)
      : rule_(rule), format_(format), reading_(reading) {
    inputs_ = InputsOf(rule, &source_inputs_);
  }

  std::variant<Translation, Untranslated> Run() {
    if (source_inputs_ == 0) return Untranslated{Untranslated::Why::kUnknown, "it has no input"};
    if (static_cast<int>(inputs_.size()) > source_inputs_) return UsesNewInput();
    RankFinder finder(rule_, format_, reading_.arrays, inputs_);
    const int otherwise = reading_.rank + (reading_.arrays ? 1 : 0);
    for (auto& [tensor, input] : ByInput()) {
      if (finder.IsScalar(input)) {
        numbers_[tensor] = absl::StrCat("f", numbers_.size());
        result_.rule.variables.push_back({numbers_[tensor], VariableKind::kNumber});
        inputs_.erase(tensor);
        continue;
      }
      inputs_[tensor] = static_cast<int>(ranks_.size());
      ranks_.push_back(finder.RankOf(input, otherwise, &result_.depends_on_rank));
      if (ranks_.back() < 1 || ranks_.back() > kMaxRank) {
        return Untranslated{Untranslated::Why::kSourceIllTyped, "an input has no logical dim"};
      }
    }
    source_inputs_ = result_.rule.num_inputs = static_cast<int>(ranks_.size());
    result_.rule.ranks = {ranks_};
    if (auto failed = Unified(/*with_target=*/false)) return *failed;
    const Substitution of_source = substitution_;
    AddTies({}, of_source, &result_.stated, &result_.shapes);
    if (auto failed = Unified(/*with_target=*/true)) return *failed;
    std::vector<Condition> fixed;
    AddTies(of_source, substitution_, &fixed, &result_.needed);
    result_.needed.insert(result_.needed.begin(), fixed.begin(), fixed.end());
    if (NameSizes()) {
      fine_pieces_ = true;
      if (auto failed = Unified(/*with_target=*/true)) return *failed;
      if (auto failed = NameSizes()) return *failed;
    }
    const SizeTies ties(&substitution_);
    for (int x = 0; x < source_inputs_; ++x) {
      result_.input_shapes.push_back(InputTensor(x, ties).shape);
    }
    return std::move(result_);
  }

 private:
  Untranslated UsesNewInput() const {
    std::string reason;
    for (int i = 0; i < static_cast<int>(rule_.target.size()) && reason.empty(); ++i) {
      for (const ForeignTensor& t : rule_.target[i].inputs) {
        if (t.op >= 0 || inputs_.at(t) < source_inputs_) continue;
        reason = absl::StrCat(LabelOf("target", i, rule_.target[i]), ": uses input ", t.op,
                              ", which the source does not have");
      }
    }
    return {Untranslated::Why::kTargetIllTyped, reason};
  }

  std::vector<std::pair<ForeignTensor, int>> ByInput() const {
    std::vector<std::pair<ForeignTensor, int>> sorted(inputs_.begin(), inputs_.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    return sorted;
  }

  // Reads the source, and the target, until their sizes agree.
  std::optional<Untranslated> Unified(bool with_target) {
    for (int i = 0; i < kMaxUnifications; ++i) {
      SizeTies ties(&substitution_);
      bool is_source = true;
      const absl::Status status = Attempt(with_target, &ties, &is_source);
      if (status.ok()) return std::nullopt;
      if (!ties.conflict()) return Untranslated{WhyOf(status, is_source), Text(status)};
      Substitution extended = substitution_;
      switch (Unify(ties.conflict()->a, ties.conflict()->b, &extended)) {
        case Unification::kDone:
          substitution_ = std::move(extended);
          break;
        case Unification::kImpossible:
          return Untranslated{WhyOf(status, is_source), Text(status)};
        case Unification::kInexpressible:
          return Untranslated{Untranslated::Why::kUnknown, Text(status)};
      }
    }
    return Untranslated{Untranslated::Why::kUnknown, "its sizes are tied in too many ways"};
  }

  static std::string Text(const absl::Status& status) { return std::string(status.message()); }

  absl::Status Attempt(bool with_target, SizeTies* ties, bool* is_source) {
    Pattern* const source = &result_.rule.source;
    Pattern* const target = &result_.rule.target;
    *source = {};
    *target = {};
    split_sizes_.clear();
    std::vector<std::vector<TypedTensor>> sources, targets;
    ISOMER_RETURN_IF_ERROR(
        AddSide("source", rule_.source, reading_.groups, ties, source, &sources));
    for (const auto& [from, to] : rule_.outputs) {
      source->outputs.push_back(sources[from.op][from.output].ref);
    }
    if (!with_target) return absl::OkStatus();
    *is_source = false;
    ISOMER_RETURN_IF_ERROR(AddSide("target", rule_.target, /*groups=*/0, ties, target, &targets));
    for (size_t o = 0; o < rule_.outputs.size(); ++o) {
      const auto& [from, to] = rule_.outputs[o];
      target->outputs.push_back(targets[to.op][to.output].ref);
      const absl::Status equal =
          ties->Equal(sources[from.op][from.output].shape, targets[to.op][to.output].shape);
      if (!equal.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("mapped output ", o, " of the target: ", equal.message()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddSide(const std::string& side, const std::vector<ForeignOperator>& ops,
                       int64_t groups, SizeTies* ties, Pattern* pattern,
                       std::vector<std::vector<TypedTensor>>* outputs) {
    OperatorTranslator translator(format_, reading_.arrays, groups, ties, pattern);
    if (fine_pieces_) translator.UseFinePieces();
    const bool of_source = pattern == &result_.rule.source;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      std::vector<TypedTensor> operands;
      for (const ForeignTensor& t : ops[i].inputs) {
        if (numbers_.contains(t)) {
          operands.push_back({.ref = {}, .shape = {}, .seams = {}, .number = numbers_.at(t)});
        } else {
          operands.push_back(t.op < 0 ? InputTensor(inputs_.at(t), *ties)
                                      : (*outputs)[t.op][t.output]);
        }
      }
      auto made = translator.Translate(ops[i], operands, OperatorSymbol(of_source, i));
      if (!made.ok()) {
        return absl::Status(made.status().code(),
                            absl::StrCat(LabelOf(side, i, ops[i]), ": ", made.status().message()));
      }
      outputs->push_back(*std::move(made));
    }
    result_.narrower |= translator.narrower();
    if (of_source) result_.has_convolutions = translator.has_convolutions();
    split_sizes_.push_back(translator.split_sizes());
    return absl::OkStatus();
  }

  TypedTensor InputTensor(int input, const SizeTies& ties) const {
    Shape shape;
    for (int i = 0; i < ranks_[input]; ++i) {
      shape.push_back(ties.Resolved(Extent::Symbol(InputSymbol(input, i))));
    }
    return PlainTensor(PatternRef::Input(input), std::move(shape));
  }

  // What `after` says of the sizes of inputs that `before` does not.
  void AddTies(const Substitution& before, const Substitution& after, std::vector<Condition>* fixed,
               std::vector<Condition>* equal) const {
    std::map<Extent, IntExpr> first;  // by size, the first dim that has it
    for (int x = 0; x < source_inputs_; ++x) {
      for (int i = 0; i < ranks_[x]; ++i) {
        const Extent symbol = Extent::Symbol(InputSymbol(x, i));
        const Extent was = Substituted(symbol, before), is = Substituted(symbol, after);
        const IntExpr dim = IntExpr::SizeOf(x, i - ranks_[x]);
        const auto [same, is_new] = first.emplace(is, dim);
        if (was == is && is_new) continue;
        if (is.known()) {
          if (!was.known()) {
            fixed->push_back({Condition::Kind::kEqual, dim, IntExpr::Constant(is.constant())});
          }
        } else if (!is_new && was != Before(same->second, before)) {
          equal->push_back({Condition::Kind::kEqual, dim, same->second});
        }
      }
    }
  }

  Extent Before(const IntExpr& dim, const Substitution& before) const {
    const int axis = static_cast<int>(dim.constant) + ranks_[dim.input];
    return Substituted(Extent::Symbol(InputSymbol(dim.input, axis)), before);
  }

  // Writes the sizes of Splits as sizes of inputs or variables.
  std::optional<Untranslated> NameSizes() {
    std::map<Extent, IntExpr> names;
    int sizes_named = -1;
    std::erase_if(result_.rule.variables, [](const RuleVariable& variable) {
      return variable.kind == VariableKind::kSize;
    });
    for (int x = 0; x < source_inputs_; ++x) {
      for (int i = 0; i < ranks_[x]; ++i) {
        names.emplace(Substituted(Extent::Symbol(InputSymbol(x, i)), substitution_),
                      IntExpr::SizeOf(x, i - ranks_[x]));
      }
    }
    for (size_t side = 0; side < 2; ++side) {
      Pattern* const pattern = side == 0 ? &result_.rule.source : &result_.rule.target;
      for (const OperatorTranslator::SplitSizes& split : split_sizes_[side]) {
        std::vector<IntExpr> sizes;
        for (const Extent& unresolved : split.sizes) {
          const Extent size = Substituted(unresolved, substitution_);
          if (size.known()) {
            sizes.push_back(IntExpr::Constant(size.constant()));
          } else if (names.contains(size)) {
            sizes.push_back(names[size]);
          } else if (side == 0) {
            const std::string name = absl::StrCat("n", ++sizes_named);
            result_.rule.variables.push_back({name, VariableKind::kSize});
            sizes.push_back(names[size] = IntExpr::Variable(name));
          } else {
            return Untranslated{Untranslated::Why::kUnknown,
                                absl::StrCat("a Split makes a part of size ", SizeText(size),
                                             ", which is the size of no input"),
                                OneRank(ranks_).value_or(-1)};
          }
        }
        for (AttributePattern& attribute : pattern->nodes[split.node].attributes) {
          if (attribute.name == "sizes") attribute.value = sizes;
        }
      }
    }
    return std::nullopt;
  }

  const ForeignRule& rule_;
  const ForeignFormat format_;
  const Reading reading_;
  std::map<ForeignTensor, int> inputs_;
  std::map<ForeignTensor, std::string> numbers_;  // inputs without dims
  int source_inputs_ = 0;
  std::vector<int> ranks_;
  Substitution substitution_;
  bool fine_pieces_ = false;  // OperatorTranslator::UseFinePieces
  std::vector<std::vector<OperatorTranslator::SplitSizes>> split_sizes_;  // per side
  Translation result_;
};

}  // namespace

std::variant<Translation, Untranslated> Translate(const ForeignRule& rule, ForeignFormat format,
                                                  const Reading& reading) {
  return Translator(rule, format, reading).Run();
}

}  // namespace isomer
