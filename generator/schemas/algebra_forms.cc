#include "generator/schemas/algebra_forms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/assignments/call_attributes.h"

namespace isomer {
namespace {

class FormBuilder {
 public:
  FormBuilder(AlgebraForm form, const OperatorCall& call, const std::vector<TensorType>& outputs,
              const ShapeCut& cut, const Generality& generality, const OperatorCall* f,
              const At& at)
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
      case AlgebraForm::kSumSplitRest:
      case AlgebraForm::kSumSplitFirst:
        SumOfParts();
        break;
      case AlgebraForm::kSplit:
      case AlgebraForm::kSplitBack:
        SplitBoth();
        break;
      case AlgebraForm::kMerge:
        Merge();
        break;
      case AlgebraForm::kAdd:
      case AlgebraForm::kSub:
      case AlgebraForm::kScale:
      case AlgebraForm::kPointwise:
      case AlgebraForm::kPointwise2:
        Distribute();
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

  bool AddAttributes(const OperatorCall& call, const std::string& prefix,
                     const std::set<std::string>& constants,
                     std::vector<AttributePattern>* attributes) {
    std::optional<CallAttributes> added = AttributesOfCall(call, {.prefix = prefix}, constants);
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

  // As X and Y, not as what is split.
  bool IsJoined(size_t o) const {
    if (!TakesPart(o) || !HasTwo(form_)) return false;
    return !SplitsOthers(form_) ||
           (o == FirstThatTakesPart()) == (form_ == AlgebraForm::kSumSplitRest);
  }

  // Of operands that take part X, and Y of another size along the axis; what is split is as large
  // as both.
  void AddInputs() {
    std::vector<TensorType>& inputs = result_.binding.inputs;
    auto add = [&](const TensorType& type) {
      inputs.push_back(type);
      return PatternRef::Input(static_cast<int>(inputs.size()) - 1);
    };
    for (size_t o = 0; o < call_.operands.size(); ++o) {
      TensorType type = call_.operands[o], second = type;
      if (TakesPart(o) && HasAxes(form_)) {
        const size_t i = type.rank() + *cut_.operand_axes[o];
        int64_t& size = second.dims[i].size;
        const bool halved = generality_.alike != Alike::kTypes && !at_.equal_parts && size > 1;
        if (halved) size /= 2;
        if (SplitsOthers(form_) && !IsJoined(o)) type.dims[i].size += size;
      }
      x_.push_back(add(type));
      y_.push_back(IsJoined(o) ? add(second) : x_.back());
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
      if (!IsJoined(o)) continue;
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

  // op(concat(X, Y), Z) -> add(op(X, split(Z).0), op(Y, split(Z).1))
  void SumOfParts() {
    result_.rule.source = JoinedCall();
    split_node_ = static_cast<int>(result_.rule.source.nodes.size()) - 1;
    size_t joined = 0;
    while (!IsJoined(joined)) ++joined;
    sizes_ = {SizeAlong(x_[joined], *operand_axes_[joined]),
              SizeAlong(y_[joined], *operand_axes_[joined])};
    Pattern& target = result_.rule.target;
    std::vector<PatternRef> first = x_, second = y_;
    for (size_t o = 0; o < x_.size(); ++o) {
      if (!TakesPart(o) || IsJoined(o)) continue;
      first[o] = Add(&target, OpKind::kSplit, SplitAttributes(*operand_axes_[o]), {x_[o]});
      second[o] = OutputOf(first[o], 1);
    }
    const PatternRef parts[] = {AddCall(&target, first), AddCall(&target, second)};
    for (size_t t = 0; t < outputs_.size(); ++t) {
      target.outputs.push_back(
          Add(&target, OpKind::kAdd, {}, {OutputOf(parts[0], t), OutputOf(parts[1], t)}));
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
  void Distribute() {
    const OpKind kind = form_ == AlgebraForm::kAdd     ? OpKind::kAdd
                        : form_ == AlgebraForm::kSub   ? OpKind::kSub
                        : form_ == AlgebraForm::kScale ? OpKind::kScale
                                                       : f_->op.kind();
    const bool two = HasTwo(form_);
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
      if (!IsJoined(o)) continue;
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
      if (o == led || SplitsOthers(form_) || generality_.alike == Alike::kTypes) continue;
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
  const OperatorCall& call_;
  const std::vector<TensorType>& outputs_;
  const ShapeCut& cut_;
  const Generality& generality_;
  const OperatorCall* const f_;
  const At& at_;
  FormRule result_;
  std::vector<AttributePattern> attributes_, f_attributes_;
  std::vector<PatternRef> x_, y_;  // per operand; those that take no part are the same
  Axes operand_axes_, output_axes_;
  std::vector<IntExpr> sizes_;
  int split_node_ = 0;
};

}  // namespace

std::optional<FormRule> RuleOfForm(AlgebraForm form, const OperatorCall& call,
                                   const std::vector<TensorType>& outputs, const ShapeCut& cut,
                                   const Generality& generality, const OperatorCall* f,
                                   const At& at) {
  return FormBuilder(form, call, outputs, cut, generality, f, at).Build();
}

}  // namespace isomer
