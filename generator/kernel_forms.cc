#include "generator/kernel_forms.h"

#include <algorithm>
#include <utility>

#include "pcg/type_inference.h"

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

  // The attributes of a call: `constants` are named, the others variables.
  std::vector<AttributePattern> Attributes(const Operator& op, const std::string& prefix,
                                           const ListConstants& constants) {
    std::vector<AttributePattern> attributes;
    for (const Attribute& a : op.attributes()) {
      if (const auto named = constants.find(a.name); named != constants.end()) {
        const Ints list(std::get<Ints>(a.value).size(), named->second);
        attributes.push_back({a.name, ConstantList(list)});
        continue;
      }
      const std::string variable = prefix + a.name;
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

std::optional<KernelRule> GrownKernel(const SampleCall& call, const std::string& grown, int padded,
                                      ListConstants constants) {
  const int rank = call.operands[1].rank();
  if (padded > rank) return std::nullopt;
  Ints padding(2 * rank, 0);
  for (int i = rank - padded; i < rank; ++i) padding[i] = padding[rank + i] = 1;
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
  ++constants[grown];
  rule.target.outputs = {
      AddNode(&rule.target, call.op.kind(), draft.Attributes(call.op, "", constants), {x, larger})};
  return draft;
}

std::optional<KernelRule> ScaledKernel(const SampleCall& call, size_t operand, int64_t axis,
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
  PatternRef turned = s;
  if (axis != output_axis) {
    const SwapAxes swap{std::min(axis, output_axis), std::max(axis, output_axis)};
    turned = AddNode(&rule.source, OpKind::kTranspose, {{"perm", swap}}, {s});
  }
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

std::optional<KernelRule> MergedKernels(const SampleCall& call, const SplittableDim& dim, int parts,
                                        bool joined) {
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

std::optional<KernelRule> PassedKernel(const SampleCall& call, const SampleCall& f, int ones,
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

}  // namespace isomer
