#include "generator/algebra_forms.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/call_attributes.h"

namespace isomer {
namespace {

bool HasAxes(AlgebraForm form) { return form < AlgebraForm::kAdd; }

// Forms in which two operands of the call take the place of one: X and Y.
bool HasTwo(AlgebraForm form) {
  return form != AlgebraForm::kSplit && form != AlgebraForm::kSplitBack &&
         form != AlgebraForm::kScale && form != AlgebraForm::kPointwise;
}

// What the target of a form has and its source does not must be unpartitioned by condition.
bool PutsTogether(AlgebraForm form) {
  return form == AlgebraForm::kMerge || form == AlgebraForm::kSumBack ||
         form == AlgebraForm::kConcatBack;
}

class FormBuilder {
 public:
  FormBuilder(AlgebraForm form, const SampleCall& call, const std::vector<TensorType>& outputs,
              const Cut& cut, const Generality& generality, const SampleCall* f, const At& at)
      : form_(form),
        call_(call),
        outputs_(outputs),
        cut_(cut),
        generality_(generality),
        f_(f),
        at_(at) {}

  std::optional<FormRule> Build() {
    if (!AddAttributes(call_, "", generality_.constants, &attributes_)) return std::nullopt;
    if (f_ != nullptr && !AddAttributes(*f_, "f_", {}, &f_attributes_)) return std::nullopt;
    if (form_ == AlgebraForm::kScale) {
      DeclareVariable("f", VariableKind::kNumber);
      result_.binding.numbers["f"] = 3;
      f_attributes_ = {{"factor", NumberExpr{1, {"f"}}}};
    }
    AddInputs();
    if (!AddAxes()) return std::nullopt;
    switch (form_) {
      case AlgebraForm::kConcat:
      case AlgebraForm::kConcatBack:
        Join(JoinedCall(), OpKind::kConcat);
        break;
      case AlgebraForm::kSum:
      case AlgebraForm::kSumBack:
        Join(JoinedCall(), OpKind::kAdd);
        break;
      case AlgebraForm::kSplit:
      case AlgebraForm::kSplitBack:
        SplitBoth();
        break;
      case AlgebraForm::kMerge:
        Merge();
        break;
      case AlgebraForm::kAdd:
        Distribute(OpKind::kAdd, true);
        break;
      case AlgebraForm::kSub:
        Distribute(OpKind::kSub, true);
        break;
      case AlgebraForm::kScale:
        Distribute(OpKind::kScale, false);
        break;
      case AlgebraForm::kPointwise:
        Distribute(f_->op.kind(), false);
        break;
      case AlgebraForm::kPointwise2:
        Distribute(f_->op.kind(), true);
        break;
    }
    AddConditions();
    Rule& rule = result_.rule;
    rule.num_inputs = static_cast<int>(result_.binding.inputs.size());
    rule.origin = absl::StrCat("algebra, family: ", AlgebraFormName(form_));
    return std::move(result_);
  }

 private:
  using Axes = std::vector<std::optional<IntExpr>>;

  void DeclareVariable(const std::string& name, VariableKind kind) {
    result_.rule.variables.push_back({name, kind});
  }

  bool AddAttributes(const SampleCall& call, const std::string& prefix,
                     const std::set<std::string>& constants,
                     std::vector<AttributePattern>* attributes) {
    std::optional<CallAttributes> added = AttributesOfCall(call, prefix, constants);
    if (!added.has_value()) return false;
    *attributes = std::move(added->attributes);
    for (RuleVariable& variable : added->variables) {
      result_.rule.variables.push_back(std::move(variable));
    }
    result_.binding.variables.merge(added->binding.variables);
    result_.binding.numbers.merge(added->binding.numbers);
    result_.binding.attributes.merge(added->binding.attributes);
    return true;
  }

  bool TakesPart(size_t o) const { return cut_.operand_axes[o].has_value(); }

  // Of operands that take part X, and Y of another size along the axis.
  void AddInputs() {
    std::vector<TensorType>& inputs = result_.binding.inputs;
    auto add = [&](const TensorType& type) {
      inputs.push_back(type);
      return PatternRef::Input(static_cast<int>(inputs.size()) - 1);
    };
    for (size_t o = 0; o < call_.operands.size(); ++o) {
      TensorType type = call_.operands[o];
      x_.push_back(add(type));
      y_.push_back(x_.back());
      if (!TakesPart(o) || !HasTwo(form_)) continue;
      if (HasAxes(form_) && generality_.alike != Alike::kTypes && !at_.equal_parts) {
        int64_t& size = type.dims[type.rank() + *cut_.operand_axes[o]].size;
        if (size > 1) size /= 2;
      }
      y_.back() = add(type);
    }
  }

  Axes AddAxes(const char* prefix, const std::vector<std::optional<int64_t>>& axes) {
    Axes result(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].has_value()) continue;
      result[i] = IntExpr::Constant(*axes[i]);
      if (!generality_.axis_variables) continue;
      const std::string name = generality_.one_axis ? "i" : absl::StrCat(prefix, i);
      result[i] = IntExpr::Variable(name);
      const bool known = result_.binding.variables.contains(name);
      if (!known) DeclareVariable(name, VariableKind::kAxis);
      result_.binding.variables[name] = *axes[i];
    }
    return result;
  }

  bool AddAxes() {
    if (!HasAxes(form_)) return true;
    if (generality_.one_axis && !cut_.IsOneAxis()) return false;
    operand_axes_ = AddAxes("i", cut_.operand_axes);
    output_axes_ = AddAxes("j", cut_.output_axes);
    if (form_ != AlgebraForm::kSplit && form_ != AlgebraForm::kSplitBack) return true;
    // One list of sizes for all Splits.
    std::optional<int64_t> size;
    for (size_t o = 0; o < call_.operands.size(); ++o) {
      if (!TakesPart(o)) continue;
      const TensorType& type = call_.operands[o];
      const int64_t here = type.dims[type.rank() + *cut_.operand_axes[o]].size;
      if (size.has_value() && *size != here && !at_.sizes_of_output) return false;
      size = here;
    }
    if (at_.sizes_of_output)
      size = outputs_[0].dims[outputs_[0].rank() + *cut_.output_axes[0]].size;
    if (*size < 2) return false;
    const int64_t first = std::max<int64_t>(1, *size / 2 - 1);
    for (const auto& [name, value] : {std::pair("s0", first), std::pair("s1", *size - first)}) {
      DeclareVariable(name, VariableKind::kSize);
      result_.binding.variables[name] = value;
      sizes_.push_back(IntExpr::Variable(name));
    }
    return true;
  }

  static PatternRef Add(Pattern* side, OpKind kind, std::vector<AttributePattern> attributes,
                        std::vector<PatternRef> inputs) {
    side->nodes.push_back({kind, std::move(attributes), std::move(inputs)});
    return PatternRef::Node(static_cast<int>(side->nodes.size()) - 1);
  }
  PatternRef AddCall(Pattern* side, std::vector<PatternRef> inputs) const {
    return Add(side, call_.op.kind(), attributes_, std::move(inputs));
  }
  static PatternRef OutputOf(PatternRef node, size_t t) {
    return PatternRef::Node(node.node, static_cast<int>(t));
  }

  // op(concat(X, Y), W)
  Pattern JoinedCall() const {
    Pattern side;
    std::vector<PatternRef> operands = x_;
    for (size_t o = 0; o < operands.size(); ++o) {
      if (!TakesPart(o)) continue;
      operands[o] = Add(&side, OpKind::kConcat, {{"axis", *operand_axes_[o]}}, {x_[o], y_[o]});
    }
    const PatternRef call = AddCall(&side, operands);
    for (size_t t = 0; t < outputs_.size(); ++t) side.outputs.push_back(OutputOf(call, t));
    return side;
  }

  // `joined` -> kind(op(X, W), op(Y, W)), or the way back.
  void Join(Pattern joined, OpKind kind) {
    Pattern side;
    const PatternRef first = AddCall(&side, x_), second = AddCall(&side, y_);
    for (size_t t = 0; t < outputs_.size(); ++t) {
      std::vector<AttributePattern> attributes;
      if (kind == OpKind::kConcat) attributes = {{"axis", *output_axes_[t]}};
      side.outputs.push_back(
          Add(&side, kind, attributes, {OutputOf(first, t), OutputOf(second, t)}));
    }
    split_node_ = static_cast<int>(joined.nodes.size()) - 1;
    result_.rule.source = std::move(joined);
    result_.rule.target = std::move(side);
    if (form_ == AlgebraForm::kConcatBack || form_ == AlgebraForm::kSumBack) {
      std::swap(result_.rule.source, result_.rule.target);
      split_node_ = first.node;
    }
  }

  std::vector<AttributePattern> SplitAttributes(const IntExpr& axis) const {
    return {{"axis", axis}, {"sizes", sizes_}};
  }

  void SplitBoth() {
    Pattern whole, parts;
    const PatternRef call = AddCall(&whole, x_);
    for (size_t t = 0; t < outputs_.size(); ++t) {
      const PatternRef split =
          Add(&whole, OpKind::kSplit, SplitAttributes(*output_axes_[t]), {OutputOf(call, t)});
      whole.outputs.push_back(OutputOf(split, 0));
      whole.outputs.push_back(OutputOf(split, 1));
    }
    std::vector<PatternRef> first = x_, second = x_;
    for (size_t o = 0; o < x_.size(); ++o) {
      if (!TakesPart(o)) continue;
      first[o] = Add(&parts, OpKind::kSplit, SplitAttributes(*operand_axes_[o]), {x_[o]});
      second[o] = OutputOf(first[o], 1);
    }
    const PatternRef calls[] = {AddCall(&parts, first), AddCall(&parts, second)};
    for (size_t t = 0; t < outputs_.size(); ++t) {
      for (PatternRef part : calls) parts.outputs.push_back(OutputOf(part, t));
    }
    split_node_ = call.node;
    result_.rule.source = std::move(whole);
    result_.rule.target = std::move(parts);
    if (form_ == AlgebraForm::kSplitBack) {
      std::swap(result_.rule.source, result_.rule.target);
      split_node_ = calls[0].node;
    }
  }

  IntExpr SizeAlong(PatternRef input, const IntExpr& axis) const {
    return axis.kind == IntExpr::Kind::kVariable ? IntExpr::SizeOf(input.index, axis.variable)
                                                 : IntExpr::SizeOf(input.index, axis.constant);
  }

  void Merge() {
    Pattern& source = result_.rule.source;
    const PatternRef first = AddCall(&source, x_), second = AddCall(&source, y_);
    split_node_ = first.node;
    Pattern& target = result_.rule.target = JoinedCall();
    const std::vector<PatternRef> wholes = std::exchange(target.outputs, {});
    const size_t led = FirstThatTakesPart();
    sizes_ = {SizeAlong(x_[led], *operand_axes_[led]), SizeAlong(y_[led], *operand_axes_[led])};
    for (size_t t = 0; t < outputs_.size(); ++t) {
      const PatternRef split =
          Add(&target, OpKind::kSplit, SplitAttributes(*output_axes_[t]), {wholes[t]});
      for (int part : {0, 1}) {
        source.outputs.push_back(OutputOf(part == 0 ? first : second, t));
        target.outputs.push_back(OutputOf(split, part));
      }
    }
  }

  // op(kind(X, Y), W) and kind(op(X, W), op(Y, W)).
  void Distribute(OpKind kind, bool two) {
    Pattern inside, outside;
    std::vector<PatternRef> operands = x_;
    for (size_t o = 0; o < operands.size(); ++o) {
      if (!TakesPart(o)) continue;
      std::vector<PatternRef> inputs = {x_[o]};
      if (two) inputs.push_back(y_[o]);
      operands[o] = Add(&inside, kind, f_attributes_, inputs);
    }
    const PatternRef call = AddCall(&inside, operands);
    const PatternRef first = AddCall(&outside, x_);
    const PatternRef second = two ? AddCall(&outside, y_) : first;
    for (size_t t = 0; t < outputs_.size(); ++t) {
      inside.outputs.push_back(OutputOf(call, t));
      std::vector<PatternRef> inputs = {OutputOf(first, t)};
      if (two) inputs.push_back(OutputOf(second, t));
      outside.outputs.push_back(Add(&outside, kind, f_attributes_, inputs));
    }
    const bool expands = form_ == AlgebraForm::kAdd || form_ == AlgebraForm::kSub;
    result_.rule.source = expands ? std::move(inside) : outside;
    result_.rule.target = expands ? std::move(outside) : inside;
  }

  size_t FirstThatTakesPart() const {
    size_t o = 0;
    while (!TakesPart(o)) ++o;
    return o;
  }

  void AddConditions() {
    std::vector<Condition>& conditions = result_.rule.conditions;
    if (HasAxes(form_) && generality_.tied) {
      conditions.push_back({.kind = Condition::Kind::kSplitsDim,
                            .left = IntExpr::Constant(1),
                            .node = split_node_,
                            .operand_axes = operand_axes_,
                            .output_axes = output_axes_});
    }
    const size_t led = FirstThatTakesPart();
    for (size_t o = 0; o < x_.size(); ++o) {
      if (!TakesPart(o) || !HasTwo(form_)) continue;
      const int x = x_[o].index, y = y_[o].index;
      if (!HasAxes(form_) || generality_.alike == Alike::kTypes) {
        conditions.push_back({.kind = Condition::Kind::kSameType, .input = x, .input_b = y});
      }
      if (!HasAxes(form_)) continue;
      const IntExpr& axis = *operand_axes_[o];
      if (PutsTogether(form_) && form_ != AlgebraForm::kConcatBack) {
        for (int input : {x, y}) {
          if (generality_.alike == Alike::kTypes && input == y) continue;
          conditions.push_back(
              {.kind = Condition::Kind::kUnpartitioned, .right = axis, .input = input});
        }
      }
      if (PutsTogether(form_) && generality_.alike == Alike::kSizes) {
        AddEqualSizes(o, &conditions);
        for (int input : {x, y}) {
          conditions.push_back({.kind = Condition::Kind::kNoPartials, .input = input});
        }
      }
      if (o == led || generality_.alike == Alike::kTypes) continue;
      // Pieces of one operand meet pieces of the other.
      conditions.push_back({.kind = Condition::Kind::kEqual,
                            .left = SizeAlong(x_[led], *operand_axes_[led]),
                            .right = SizeAlong(x_[o], axis)});
      if (!PutsTogether(form_)) continue;
      conditions.push_back({.kind = Condition::Kind::kEqual,
                            .left = SizeAlong(y_[led], *operand_axes_[led]),
                            .right = SizeAlong(y_[o], axis)});
    }
  }

  // Along the other axes, where they can be named.
  void AddEqualSizes(size_t o, std::vector<Condition>* conditions) const {
    if (generality_.axis_variables) return;
    for (int64_t axis = -1; axis >= -call_.operands[o].rank(); --axis) {
      if (axis == *cut_.operand_axes[o]) continue;
      conditions->push_back({.kind = Condition::Kind::kEqual,
                             .left = IntExpr::SizeOf(x_[o].index, axis),
                             .right = IntExpr::SizeOf(y_[o].index, axis)});
    }
  }

  const AlgebraForm form_;
  const SampleCall& call_;
  const std::vector<TensorType>& outputs_;
  const Cut& cut_;
  const Generality& generality_;
  const SampleCall* const f_;
  const At& at_;
  FormRule result_;
  std::vector<AttributePattern> attributes_, f_attributes_;
  std::vector<PatternRef> x_, y_;  // per operand; those that take no part are the same
  Axes operand_axes_, output_axes_;
  std::vector<IntExpr> sizes_;
  int split_node_ = 0;
};

}  // namespace

bool Cut::IsOneAxis() const {
  std::set<int64_t> distinct;
  for (const auto* axes : {&operand_axes, &output_axes}) {
    for (const std::optional<int64_t>& axis : *axes) {
      if (axis.has_value()) distinct.insert(*axis);
    }
  }
  return distinct.size() == 1;
}

const char* AlgebraFormName(AlgebraForm form) {
  static constexpr const char* kNames[] = {
      "concat", "concat, back", "sum of pieces", "sum of pieces, back",
      "split",  "split, back",  "merge",         "add",
      "sub",    "scale",        "elementwise",   "elementwise, two operands"};
  static_assert(std::size(kNames) == static_cast<size_t>(AlgebraForm::kPointwise2) + 1);
  return kNames[static_cast<size_t>(form)];
}

std::optional<FormRule> RuleOfForm(AlgebraForm form, const SampleCall& call,
                                   const std::vector<TensorType>& outputs, const Cut& cut,
                                   const Generality& generality, const SampleCall* f,
                                   const At& at) {
  return FormBuilder(form, call, outputs, cut, generality, f, at).Build();
}

}  // namespace isomer
