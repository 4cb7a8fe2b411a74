#include "generator/schemas/kernel_forms.h"

#include <algorithm>
#include <utility>

#include "pcg/ir/declaration.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

std::vector<IntExpr> ConstantList(const Ints& values) {
  std::vector<IntExpr> list;
  for (int64_t value : values) list.push_back(IntExpr::Constant(value));
  return list;
}

Condition SizeIsOne(int input, int64_t axis) {
  return {.kind = Condition::Kind::kEqual,
          .left = IntExpr::SizeOf(input, axis),
          .right = IntExpr::Constant(1)};
}

struct Draft : KernelRule {
  PatternRef AddInput(const TensorType& type) {
    binding.inputs.push_back(type);
    rule.num_inputs = static_cast<int>(binding.inputs.size());
    return PatternRef::Input(rule.num_inputs - 1);
  }

  // The attributes of a call: `constants` are named, the others variables; numbers are so apart.
  std::vector<AttributePattern> Attributes(const Operator& op, const std::string& prefix,
                                           const ListConstants& constants) {
    std::vector<AttributePattern> attributes;
    for (const Attribute& a : op.attributes()) {
      if (const auto named = constants.find(a.name); named != constants.end()) {
        Ints list(std::get<Ints>(a.value).size());
        for (size_t i = 0; i < list.size(); ++i) list[i] = named->second[i % named->second.size()];
        attributes.push_back({a.name, ConstantList(list)});
        continue;
      }
      const std::string variable = prefix + a.name;
      if (auto* number = std::get_if<double>(&a.value)) {
        attributes.push_back({a.name, NumberExpr{1, {variable}}});
        if (binding.numbers.emplace(variable, *number).second) {
          rule.variables.push_back({variable, VariableKind::kNumber});
        }
        continue;
      }
      attributes.push_back({a.name, AttributeVariable{variable}});
      if (binding.attributes.emplace(variable, a.value).second) {
        rule.variables.push_back({variable, VariableKind::kAttribute});
      }
    }
    return attributes;
  }
};

PatternRef AddNode(Pattern* side, OpKind kind, std::vector<AttributePattern> attributes,
                   std::vector<PatternRef> inputs) {
  side->nodes.push_back({kind, std::move(attributes), std::move(inputs)});
  return PatternRef::Node(static_cast<int>(side->nodes.size()) - 1);
}

// The exchange of the two axes of `ref`; itself if they are one.
PatternRef AddTurned(Pattern* side, PatternRef ref, int64_t axis, int64_t other) {
  if (axis == other) return ref;
  const SwapAxes swap{std::min(axis, other), std::max(axis, other)};
  return AddNode(side, OpKind::kTranspose, {{"perm", swap}}, {ref});
}

PatternRef AddZero(Pattern* side, PatternRef like) {
  return AddNode(side, OpKind::kScale, {{"factor", NumberExpr{0, {}}}}, {like});
}

// What is put together along `axis` is whole there, no partial sum, and of one size elsewhere.
void AddAlike(int first, int input, int64_t axis, int rank, std::vector<Condition>* conditions) {
  for (int64_t other = -1; first != input && other >= -rank; --other) {
    if (other == axis) continue;
    conditions->push_back({.kind = Condition::Kind::kEqual,
                           .left = IntExpr::SizeOf(first, other),
                           .right = IntExpr::SizeOf(input, other)});
  }
  conditions->push_back(
      {.kind = Condition::Kind::kUnpartitioned, .right = IntExpr::Constant(axis), .input = input});
  conditions->push_back({.kind = Condition::Kind::kNoPartials, .input = input});
}

}  // namespace

std::optional<KernelRule> GrownKernel(const OperatorCall& call, const std::string& grown,
                                      const Ints& grows, int64_t number, ListConstants constants) {
  const auto rank = static_cast<size_t>(call.operands[1].rank());
  const Ints* list = std::get_if<Ints>(call.op.Find(grown));
  if (grows.size() > rank || list == nullptr || list->size() % grows.size() != 0) {
    return std::nullopt;
  }
  Ints padding(2 * rank, 0), smaller;
  for (size_t i = 0; i < grows.size(); ++i) {
    padding[rank - grows.size() + i] = padding[2 * rank - grows.size() + i] = grows[i];
    smaller.push_back(number - grows[i]);
  }
  constants[grown] = smaller;
  Draft draft;
  const PatternRef x = draft.AddInput(call.operands[0]), w = draft.AddInput(call.operands[1]);
  Rule& rule = draft.rule;
  rule.source.outputs = {
      AddNode(&rule.source, call.op.kind(), draft.Attributes(call.op, "", constants), {x, w})};
  const PatternRef larger = AddNode(&rule.target, OpKind::kPad,
                                    {{"mode", IntExpr::Constant(0)},
                                     {"padding", ConstantList(padding)},
                                     {"value", NumberExpr{0, {}}}},
                                    {w});
  constants[grown] = {number};
  rule.target.outputs = {
      AddNode(&rule.target, call.op.kind(), draft.Attributes(call.op, "", constants), {x, larger})};
  return draft;
}

std::optional<KernelRule> ScaledKernel(const OperatorCall& call, size_t operand, int64_t axis,
                                       int64_t output_axis) {
  if (operand >= call.operands.size()) return std::nullopt;
  TensorType factors = call.operands[operand];
  const int rank = factors.rank();
  const auto outputs = InferTypes(call.op, call.operands);
  if (!outputs.ok() || (*outputs)[0].rank() != rank) return std::nullopt;
  if (-axis > rank || -output_axis > rank) return std::nullopt;
  const int64_t size = factors.dims[rank + axis].size;
  for (Dim& dim : factors.dims) dim.size = 1;
  factors.dims[rank + output_axis].size = size;
  Draft draft;
  std::vector<PatternRef> operands;
  for (const TensorType& type : call.operands) operands.push_back(draft.AddInput(type));
  const PatternRef s = draft.AddInput(factors);
  Rule& rule = draft.rule;
  const std::vector<AttributePattern> attributes = draft.Attributes(call.op, "", {});
  const PatternRef result = AddNode(&rule.target, call.op.kind(), attributes, operands);
  rule.target.outputs = {AddNode(&rule.target, OpKind::kMul, {}, {result, s})};
  const PatternRef turned = AddTurned(&rule.source, s, axis, output_axis);
  operands[operand] = AddNode(&rule.source, OpKind::kMul, {}, {operands[operand], turned});
  rule.source.outputs = {AddNode(&rule.source, call.op.kind(), attributes, operands)};
  for (int64_t other = -1; other >= -rank; --other) {
    if (other != output_axis) rule.conditions.push_back(SizeIsOne(s.index, other));
  }
  rule.conditions.push_back({.kind = Condition::Kind::kEqual,
                             .left = IntExpr::SizeOf(s.index, output_axis),
                             .right = IntExpr::SizeOf(static_cast<int>(operand), axis)});
  rule.conditions.push_back({.kind = Condition::Kind::kNoPartials, .input = s.index});
  return draft;
}

std::optional<KernelRule> MergedKernels(const OperatorCall& call, const SplittableDim& dim,
                                        int parts, bool joined) {
  if (call.operands.size() != dim.operand_axes.size()) return std::nullopt;
  Draft draft;
  Rule& rule = draft.rule;
  Condition splits{.kind = Condition::Kind::kSplitsDim,
                   .left = IntExpr::Constant(1),
                   .node = 0,
                   .operand_axes = {},
                   .output_axes = {IntExpr::Constant(*dim.output_axes[0])}};
  std::vector<std::vector<PatternRef>> operands(parts);  // of each call
  std::vector<PatternRef> whole;
  std::vector<IntExpr> sizes;
  for (size_t o = 0; o < call.operands.size(); ++o) {
    TensorType type = call.operands[o];
    const std::optional<int64_t>& axis = dim.operand_axes[o];
    splits.operand_axes.push_back(axis ? std::optional(IntExpr::Constant(*axis)) : std::nullopt);
    if (axis && -*axis > type.rank()) return std::nullopt;
    const PatternRef first = draft.AddInput(type);
    for (int p = 0; p < parts; ++p) {
      if (p == 1 && axis) type.dims[type.rank() + *axis].size *= 2;
      operands[p].push_back(p == 0 || !axis ? first : draft.AddInput(type));
    }
    whole.push_back(first);
    if (!axis) continue;
    std::vector<PatternRef> joined;
    const bool measures = sizes.empty();
    for (int p = 0; p < parts; ++p) {
      joined.push_back(operands[p].back());
      AddAlike(first.index, joined.back().index, *axis, type.rank(), &rule.conditions);
      if (measures) {
        sizes.push_back(IntExpr::SizeOf(joined.back().index, *axis));
      } else {
        rule.conditions.push_back({.kind = Condition::Kind::kEqual,
                                   .left = sizes[p],
                                   .right = IntExpr::SizeOf(joined.back().index, *axis)});
      }
    }
    whole.back() = AddNode(&rule.target, OpKind::kConcat, {{"axis", IntExpr::Constant(*axis)}},
                           std::move(joined));
  }
  rule.conditions.insert(rule.conditions.begin(), splits);
  const std::vector<AttributePattern> attributes = draft.Attributes(call.op, "", {});
  for (int p = 0; p < parts; ++p) {
    rule.source.outputs.push_back(AddNode(&rule.source, call.op.kind(), attributes, operands[p]));
  }
  const PatternRef result = AddNode(&rule.target, call.op.kind(), attributes, whole);
  const AttributePattern axis{"axis", IntExpr::Constant(*dim.output_axes[0])};
  if (joined) {
    rule.source.outputs = {
        AddNode(&rule.source, OpKind::kConcat, {axis}, std::move(rule.source.outputs))};
    rule.target.outputs = {result};
    return draft;
  }
  const PatternRef split =
      AddNode(&rule.target, OpKind::kSplit, {axis, {"sizes", sizes}}, {result});
  for (int p = 0; p < parts; ++p) rule.target.outputs.push_back(PatternRef::Node(split.node, p));
  return draft;
}

std::optional<KernelRule> PassedKernel(const OperatorCall& call, const OperatorCall& f, int ones,
                                       const ListConstants& constants) {
  TensorType kernel = call.operands[1];
  if (ones > kernel.rank() || f.operands[0].rank() != call.operands[0].rank()) {
    return std::nullopt;
  }
  Draft draft;
  for (int i = 0; i < ones; ++i) kernel.dims[kernel.rank() - 1 - i].size = 1;
  const PatternRef x = draft.AddInput(call.operands[0]), w = draft.AddInput(kernel);
  Rule& rule = draft.rule;
  const std::vector<AttributePattern> attributes = draft.Attributes(call.op, "", constants),
                                      f_attributes = draft.Attributes(f.op, "f_", {});
  const PatternRef first = AddNode(&rule.source, f.op.kind(), f_attributes, {x});
  rule.source.outputs = {AddNode(&rule.source, call.op.kind(), attributes, {first, w})};
  const PatternRef result = AddNode(&rule.target, call.op.kind(), attributes, {x, w});
  rule.target.outputs = {AddNode(&rule.target, f.op.kind(), f_attributes, {result})};
  for (int i = 1; i <= ones; ++i) rule.conditions.push_back(SizeIsOne(w.index, -i));
  return draft;
}

std::set<size_t> AffineOperands(const OperatorCall& f) {
  const absl::StatusOr<Declaration> d = DeclarationOf(f);
  if (!d.ok() || d->outputs.size() != 1) return {};
  const size_t count = f.operands.size();
  std::set<size_t> fewest;
  for (unsigned set = 1; set < (1u << count); set += 2) {
    std::vector<bool> together(count);
    std::set<size_t> others;
    for (size_t o = 0; o < count; ++o) {
      together[o] = (set >> o & 1) != 0;
      if (together[o] && o > 0) others.insert(o);
    }
    if (!d->IsLinearIn(together)) continue;
    if (others.empty() || others.size() + 1 == count) return {};
    if (fewest.empty() || others.size() < fewest.size()) fewest = others;
  }
  return fewest;
}

namespace {

// The types of f's operands where operand 0 is `first`: each other dim is as large as that of
// operand 0 along which the same iteration dim goes. Nullopt: one goes along another than `axis`.
std::optional<std::vector<TensorType>> OperandsAlong(const OperatorCall& f, const TensorType& first,
                                                     int64_t axis) {
  const absl::StatusOr<Declaration> d = DeclarationOf(f);
  if (!d.ok() || first.rank() != f.operands[0].rank()) return std::nullopt;
  const int at = first.rank() + static_cast<int>(axis);
  const int led_by = d->LeadOfOperandDim(0, at);
  std::vector<TensorType> types = f.operands;
  types[0] = first;
  for (size_t o = 1; o < types.size(); ++o) {
    for (int i = 0; i < types[o].rank(); ++i) {
      if (led_by < 0 || d->LeadOfOperandDim(static_cast<int>(o), i) != led_by) return std::nullopt;
      types[o].dims[i].size = first.dims[at].size;
    }
  }
  return types;
}

}  // namespace

std::optional<KernelRule> FoldedKernel(const OperatorCall& call, const OperatorCall& f,
                                       size_t operand, int64_t axis, int64_t output_axis) {
  const auto outputs = InferTypes(call.op, call.operands);
  if (!outputs.ok() || operand >= call.operands.size()) return std::nullopt;
  const int rank = call.operands[operand].rank();
  if ((*outputs)[0].rank() != rank || -axis > rank || -output_axis > rank) return std::nullopt;
  const auto f_types = OperandsAlong(f, (*outputs)[0], output_axis);
  if (!f_types.has_value()) return std::nullopt;
  Draft draft;
  draft.has_inverse = false;  // Nobody writes such zeros.
  std::vector<PatternRef> operands, f_operands = {PatternRef()};
  for (const TensorType& type : call.operands) operands.push_back(draft.AddInput(type));
  for (size_t o = 1; o < f_types->size(); ++o) f_operands.push_back(draft.AddInput((*f_types)[o]));
  Rule& rule = draft.rule;
  const std::vector<AttributePattern> attributes = draft.Attributes(call.op, "", {}),
                                      f_attributes = draft.Attributes(f.op, "f_", {});
  auto add_f = [&](Pattern* side, PatternRef first, std::vector<PatternRef> others) {
    others[0] = first;
    return AddNode(side, f.op.kind(), f_attributes, std::move(others));
  };
  const PatternRef whole = AddNode(&rule.source, call.op.kind(), attributes, operands);
  rule.source.outputs = {add_f(&rule.source, whole, f_operands)};

  Pattern& target = rule.target;
  const PatternRef w = operands[operand];
  std::vector<PatternRef> zeros = f_operands;
  for (size_t o : AffineOperands(f)) zeros[o] = AddZero(&target, f_operands[o]);
  const PatternRef kernel =
      add_f(&target, AddTurned(&target, w, axis, output_axis), std::move(zeros));
  operands[operand] = AddTurned(&target, kernel, axis, output_axis);
  const PatternRef result = AddNode(&target, call.op.kind(), attributes, operands);
  Ints others;
  for (int64_t other = -rank; other < 0; ++other) {
    if (other != axis) others.push_back(other);
  }
  const PatternRef zero = AddNode(
      &target, OpKind::kReduceSum,
      {{"axes", ConstantList(others)}, {"keepdims", IntExpr::Constant(1)}}, {AddZero(&target, w)});
  const PatternRef bias = add_f(&target, AddTurned(&target, zero, axis, output_axis), f_operands);
  target.outputs = {AddNode(&target, OpKind::kAdd, {}, {result, bias})};
  const PatternRef shift = f_operands[*AffineOperands(f).begin()];
  rule.conditions.push_back({.kind = Condition::Kind::kNoPartials, .input = shift.index});
  return draft;
}

}  // namespace isomer
