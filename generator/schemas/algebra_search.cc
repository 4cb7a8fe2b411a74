#include "generator/schemas/algebra_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "generator/assignments/trial.h"
#include "generator/preconditions/settle.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/type_inference.h"
#include "rules/theorems/declaration_facts.h"

namespace isomer {
namespace {

// Every way to make `count` of the attributes that a rule can hold as constants constant.
std::vector<std::set<std::string>> ConstantChoices(const Operator& op) {
  std::vector<std::string> names;
  for (const Attribute& a : op.attributes()) {
    if (std::holds_alternative<int64_t>(a.value) || std::holds_alternative<double>(a.value)) {
      names.push_back(a.name);
    }
  }
  std::vector<std::set<std::string>> choices;
  for (unsigned mask = 0; mask < (1u << names.size()); ++mask) {
    std::set<std::string> choice;
    for (size_t i = 0; i < names.size(); ++i) {
      if (mask >> i & 1) choice.insert(names[i]);
    }
    choices.push_back(std::move(choice));
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return choices;
}

// Strengths of condition to try, weakest first.
std::vector<Alike> AlikeChoices(AlgebraForm form) {
  switch (form) {
    case AlgebraForm::kConcatBack:
      return {Alike::kAny, Alike::kSizes, Alike::kTypes};
    case AlgebraForm::kMerge:
    case AlgebraForm::kSumBack:
      return {Alike::kSizes, Alike::kTypes};
    default:
      return {Alike::kAny};
  }
}

bool HasInverse(AlgebraForm form) { return form >= AlgebraForm::kAdd; }

}  // namespace

bool IsPointwise(const OperatorCall& call) {
  const absl::StatusOr<Declaration> d = DeclarationOf(call);
  if (!d.ok() || d->outputs.size() != 1 || d->statements.size() != 1) return false;
  const Statement& statement = d->statements[0];
  const size_t rank = d->dims.size();
  // Dims align from the right; a dim that is broadcast is not indexed.
  auto is_place = [&](const std::vector<Index>& indices) {
    bool place = indices.size() <= rank;
    for (size_t i = 0; place && i < indices.size(); ++i) {
      const int dim = static_cast<int>(rank - indices.size() + i);
      place = indices[i] == Index(dim) || indices[i] == Index();
    }
    return place;
  };
  const bool coordinates =
      std::any_of(statement.body.begin(), statement.body.end(),
                  [](const Instruction& i) { return i.op == ScalarOp::kIndex; });
  return statement.reduction == Reduction::kNone && !coordinates &&
         std::all_of(d->accesses.begin(), d->accesses.end(),
                     [&](const Access& access) { return is_place(access.indices); });
}

bool IsElementwise(const OperatorCall& call) {
  const absl::StatusOr<Declaration> d = DeclarationOf(call);
  return d.ok() && IsElementwise(*d);
}

bool Relabels(const OperatorCall& call) {
  const absl::StatusOr<Declaration> d = DeclarationOf(call);
  return d.ok() && std::all_of(d->statements.begin(), d->statements.end(), [](const auto& s) {
           return s.body.size() == 1 && s.body[0].op == ScalarOp::kLoad &&
                  (s.reduction == Reduction::kNone || s.reduced == std::vector<int>{s.select_dim});
         });
}

bool AddsUp(const OperatorCall& call) {
  const absl::StatusOr<Declaration> d = DeclarationOf(call);
  return d.ok() && std::any_of(d->statements.begin(), d->statements.end(), [](const Statement& s) {
           return s.reduction == Reduction::kSum && s.select_dim < 0;
         });
}

const std::vector<OperatorCall>& ElementwiseCalls(int operands) {
  static const auto* const known = [] {
    auto* calls = new std::map<int, std::vector<OperatorCall>>;
    for (OpKind kind : AllOpKinds()) {
      if (IsLeaf(kind) || IsParallel(kind)) continue;
      std::set<std::string> seen;
      for (const OperatorCall& call : SampleCalls(kind)) {
        const bool alike = std::all_of(call.operands.begin(), call.operands.end(),
                                       [&](const auto& t) { return t == call.operands[0]; });
        if (!alike || !IsElementwise(call)) continue;
        // With every data type, lest what it does to one be taken for what it does to all.
        for (const OperatorCall& typed : SampleCalls(kind)) {
          OperatorCall other = call;
          for (TensorType& type : other.operands) type.dtype = typed.operands[0].dtype;
          if (!InferTypes(other.op, other.operands).ok()) continue;
          const std::string text =
              other.op.ToString() + std::string(DataTypeName(other.operands[0].dtype));
          if (!seen.insert(text).second) continue;
          (*calls)[static_cast<int>(call.operands.size())].push_back(std::move(other));
        }
      }
    }
    return calls;
  }();
  static const auto* const none = new std::vector<OperatorCall>;
  const auto found = known->find(operands);
  return found == known->end() ? *none : found->second;
}

std::optional<FormRule> AlgebraSearch::Make(const Fact& fact, const Generality& generality,
                                            const At& at) {
  const std::vector<TensorType>* outputs = oracle_->Infer(fact.call.op, fact.call.operands);
  if (outputs == nullptr) return std::nullopt;
  std::optional<FormRule> made =
      RuleOfForm(fact.form, fact.call, *outputs, fact.cut, generality, fact.f, at);
  if (made.has_value()) made->rule.ranks = {RanksOf(made->binding.inputs)};
  return made;
}

AlgebraSearch::Outcome AlgebraSearch::TryAt(const FormRule& made) {
  ++statistics_->graphs_enumerated;
  if (!InferPattern(made.rule.source, made.binding, oracle_).has_value() ||
      !Admits(made.rule, made.binding)) {
    return Outcome::kNotAdmitted;
  }
  if (!TypesAgree(made.rule, made.binding, oracle_)) return Outcome::kFails;
  for (int draw = 0; draw < 2; ++draw) {
    const absl::StatusOr<bool> agree = ValuesAgree(made.rule, made.binding, random_);
    if (!agree.ok()) return Outcome::kNotAdmitted;  // A look-up outside of its table.
    if (!*agree) return Outcome::kFails;
  }
  return Outcome::kHolds;
}

bool AlgebraSearch::IsKnown(const FormRule& made) const {
  Candidate candidate;
  candidate.inputs = made.binding.inputs;
  CandidateGraphs graphs;
  const auto source = InstantiatePattern(made.rule.source, made.binding);
  const auto target = InstantiatePattern(made.rule.target, made.binding);
  if (!source.ok() || !target.ok()) return false;
  graphs.source = source->Canonical();
  graphs.target = target->Canonical();
  return graphs.source.StructuralHash() == graphs.target.StructuralHash() ||
         Derivations(std::move(graphs), 1).IsInstance(book_);
}

bool AlgebraSearch::AddFact(AlgebraForm form, const OperatorCall& call, const ShapeCut& cut,
                            const OperatorCall* f) {
  const Fact fact{form, call, cut, f};
  for (const Alike alike : AlikeChoices(form)) {
    const std::optional<FormRule> made = Make(fact, Generality{false, false, false, {}, alike});
    if (!made.has_value() || TryAt(*made) != Outcome::kHolds) continue;
    ++statistics_->candidates;
    // A rule may be one of operands of one type only.
    const std::optional<FormRule> same_types =
        Make(fact, Generality{false, false, false, {}, Alike::kTypes});
    if (IsKnown(*made) || (same_types.has_value() && IsKnown(*same_types))) {
      statistics_->Prune("instance of a more general rule", made->rule.ToString());
    } else if (!Generalise(fact)) {
      statistics_->Prune("does not generalise", made->rule.ToString());
    }
    return true;
  }
  return false;
}

bool AlgebraSearch::Generalise(const Fact& fact) {
  const bool has_axes = !HasInverse(fact.form);
  // Every dim of an elementwise operator is partitionable, so that constants say nothing more.
  const bool pointwise = IsPointwise(fact.call);
  bool one_axis = true;
  for (const OperatorCall& call : calls_) {
    if (!has_axes || call.operands.size() != fact.call.operands.size()) continue;
    for (const ShapeCut& cut : CutsAlike(fact, call, true)) one_axis &= cut.IsOneAxis();
  }
  // Few assignments show where parts must be alike that meet other parts, or windows.
  const bool form_puts_together = fact.form == AlgebraForm::kConcatBack;
  const bool alone = fact.call.operands.size() == 1;
  const absl::StatusOr<Declaration> declaration = DeclarationOf(fact.call);
  const bool windows =
      declaration.ok() &&
      std::any_of(declaration->dims.begin(), declaration->dims.end(),
                  [](const IterationDim& dim) { return dim.kind == DimKind::kSpatial; });
  for (const std::set<std::string>& constants : ConstantChoices(fact.call.op)) {
    for (const Alike alike : AlikeChoices(fact.form)) {
      for (const auto& [axis_variables, tied] :
           {std::pair(true, true), std::pair(false, true), std::pair(false, false)}) {
        if (tied && !has_axes) continue;
        // Which sizes must be equal can be said of axes that are constants alone.
        if (tied && !axis_variables && alike != Alike::kSizes) continue;
        if (has_axes && !axis_variables && pointwise) continue;
        if (alike == Alike::kAny && form_puts_together && !alone) continue;
        // Sizes of a window show in no other operand.
        if (alike == Alike::kSizes && axis_variables && windows) continue;
        const Generality generality{axis_variables, tied, axis_variables && one_axis, constants,
                                    alike};
        std::optional<Trial> trial = TryEverywhere(fact, generality);
        if (!trial.has_value() || !TryAround(*trial)) continue;
        Rule& rule = trial->rule;
        if (HasInverse(fact.form)) {
          rule.reversible = TryAround({Inverse(rule), trial->held});
        }
        SetId(&rule);
        book_.Add(rule);
        rules_.push_back({rule, trial->held[0], {}});
        return true;
      }
    }
  }
  return false;
}

// The cuts of a call that a rule made of `fact` speaks of.
std::vector<ShapeCut> AlgebraSearch::CutsAlike(const Fact& fact, const OperatorCall& call,
                                               bool axis_variables) const {
  if (!axis_variables) return {fact.cut};
  auto present = [](const auto& axes) {
    std::vector<bool> result;
    for (const auto& axis : axes) result.push_back(axis.has_value());
    return result;
  };
  std::vector<ShapeCut> cuts;
  for (const SplittableDim& dim : SplittableDims(call.op, call.operands)) {
    if (present(dim.operand_axes) == present(fact.cut.operand_axes) &&
        present(dim.output_axes) == present(fact.cut.output_axes)) {
      cuts.push_back({dim.operand_axes, dim.output_axes});
    }
  }
  return cuts;
}

// With other attributes and data types of the elementwise operator.
bool AlgebraSearch::HoldsForOthers(const Fact& fact, const Generality& generality) {
  if (fact.f == nullptr) return true;
  const std::vector<OperatorCall>& others =
      ElementwiseCalls(static_cast<int>(fact.f->operands.size()));
  for (const OperatorCall& other : others) {
    if (other.op.kind() != fact.f->op.kind()) continue;
    OperatorCall call = fact.call;
    for (size_t o = 0; o < call.operands.size(); ++o) {
      if (fact.cut.operand_axes[o].has_value()) call.operands[o].dtype = other.operands[0].dtype;
    }
    const std::optional<FormRule> made = Make({fact.form, call, fact.cut, &other}, generality);
    if (made.has_value() && TryAt(*made) == Outcome::kFails) return false;
  }
  return true;
}

std::optional<AlgebraSearch::Trial> AlgebraSearch::TryEverywhere(const Fact& fact,
                                                                 const Generality& generality) {
  const std::optional<FormRule> own = Make(fact, generality);
  if (!own.has_value() || TryAt(*own) != Outcome::kHolds) return std::nullopt;
  Trial trial{own->rule, {own->binding}};
  std::set<std::vector<int>> ranks = {RanksOf(own->binding.inputs)};
  if (!HoldsForOthers(fact, generality)) return std::nullopt;
  std::set<std::string> total, supporting;  // attributes of the calls, and of those that hold
  for (const OperatorCall& call : calls_) {
    if (call.operands.size() != fact.call.operands.size()) continue;
    total.insert(call.op.ToString());
    for (const ShapeCut& cut : CutsAlike(fact, call, generality.axis_variables)) {
      bool fits = true;  // Axes that are constants may be none of this call's.
      for (size_t o = 0; o < call.operands.size(); ++o) {
        fits &=
            !cut.operand_axes[o].has_value() || -*cut.operand_axes[o] <= call.operands[o].rank();
      }
      if (!fits) continue;
      for (const At& at : {At{false, false}, At{true, false}, At{false, true}}) {
        const std::optional<FormRule> other = Make({fact.form, call, cut, fact.f}, generality, at);
        if (!other.has_value() || other->rule.source != own->rule.source ||
            other->rule.target != own->rule.target ||
            other->rule.conditions != own->rule.conditions) {
          continue;
        }
        const Outcome outcome = TryAt(*other);
        if (outcome == Outcome::kFails) return std::nullopt;
        if (outcome == Outcome::kNotAdmitted) continue;
        trial.held.push_back(other->binding);
        ranks.insert(RanksOf(other->binding.inputs));
        supporting.insert(call.op.ToString());
      }
    }
  }
  // What holds for one axis or one value of an attribute must do so whatever the others are: a
  // single call may be one at which a window happens to cover its stride.
  const bool varies = !generality.axis_variables || !generality.constants.empty();
  const bool has_axes = !HasInverse(fact.form);
  if (((has_axes && varies) || !generality.constants.empty()) && total.size() > 1 &&
      supporting.size() < 2) {
    return std::nullopt;
  }
  trial.rule.ranks.assign(ranks.begin(), ranks.end());
  return trial;
}

// At assignments around those at which the rule held: one of each rank vector, and a few more.
bool AlgebraSearch::TryAround(const Trial& trial) {
  constexpr size_t kMost = 4;
  std::set<std::vector<int>> seen;
  size_t tried = 0;
  for (const Binding& binding : trial.held) {
    const bool many = !seen.insert(RanksOf(binding.inputs)).second && ++tried > kMost;
    if (!HoldsNearby(trial.rule, binding, !many)) return false;
    if (!many && !HoldsInParallel(trial.rule, binding)) return false;
  }
  return true;
}

// With one dim (or two) of another size or inputs of another data type, where the source takes
// that.
bool AlgebraSearch::HoldsNearby(const Rule& rule, const Binding& binding, bool two) {
  auto holds = [&](const Binding& near) {
    return !InferPattern(rule.source, near, oracle_).has_value() || !Admits(rule, near) ||
           TypesAgree(rule, near, oracle_);
  };
  for (DataType type : kAllDataTypes) {
    Binding all = binding;
    for (size_t x = 0; x < binding.inputs.size(); ++x) {
      for (size_t y = x; y < binding.inputs.size(); ++y) {
        Binding near = binding;
        near.inputs[x].dtype = near.inputs[y].dtype = type;
        if (!holds(near)) return false;
      }
      if (IsFloat(binding.inputs[x].dtype)) all.inputs[x].dtype = type;
    }
    if (!holds(all)) return false;
  }
  std::vector<std::pair<size_t, size_t>> dims;
  for (size_t x = 0; x < binding.inputs.size(); ++x) {
    for (size_t i = 0; i < binding.inputs[x].dims.size(); ++i) dims.emplace_back(x, i);
  }
  for (size_t a = 0; a < dims.size(); ++a) {
    for (size_t b = a; b < (two ? dims.size() : a + 1); ++b) {
      for (int change = 0; change < 4; ++change) {
        Binding near = binding;
        for (const auto& [x, i] : {dims[a], dims[b]}) {
          const int64_t old = binding.inputs[x].dims[i].size;
          const int64_t sizes[] = {1, old + 1, 2 * old, std::max<int64_t>(1, old - 1)};
          near.inputs[x].dims[i].size = sizes[change];
        }
        if (!holds(near)) return false;
      }
    }
  }
  return true;
}

// With random sizes, degrees, copies and partials.
bool AlgebraSearch::HoldsInParallel(Rule rule, const Binding& binding) {
  constexpr int kValues = 2;
  rule.ranks = {RanksOf(binding.inputs)};
  return HoldsAround(rule, binding, kValues, true, oracle_, random_);
}

}  // namespace isomer
