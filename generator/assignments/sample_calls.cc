#include "generator/assignments/sample_calls.h"

#include <utility>

#include "pcg/ir/examples.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

TensorType Float(Ints sizes) { return SequentialType(std::move(sizes)); }
TensorType BoolType(Ints sizes) { return SequentialType(std::move(sizes), DataType::kBool); }
TensorType IndexType(Ints sizes) { return SequentialType(std::move(sizes), DataType::kInt64); }

// Shapes with different sizes, so that no axis can be mistaken for another.
Ints ShapeOfRank(int rank) {
  static const Ints kSizes = {4, 2, 6, 8};
  return Ints(kSizes.end() - rank, kSizes.end());
}

std::vector<SampleCall> Unary(const Operator& op) {
  std::vector<SampleCall> calls;
  for (int rank : {2, 1, 3, 4}) calls.push_back({op, {Float(ShapeOfRank(rank))}});
  return calls;
}

std::vector<SampleCall> Binary(const Operator& op) {
  std::vector<SampleCall> calls;
  for (int rank : {2, 1, 3, 4}) {
    calls.push_back({op, {Float(ShapeOfRank(rank)), Float(ShapeOfRank(rank))}});
  }
  for (int rank : {2, 3, 4}) {  // biases and masks
    for (int other = 1; other < rank; ++other) {
      calls.push_back({op, {Float(ShapeOfRank(rank)), Float(ShapeOfRank(other))}});
      calls.push_back({op, {Float(ShapeOfRank(other)), Float(ShapeOfRank(rank))}});
    }
  }
  // Size 1 is broadcast as well.
  calls.push_back({op, {Float({4, 6}), Float({4, 1})}});
  calls.push_back({op, {Float({4, 6}), Float({1, 6})}});
  calls.push_back({op, {Float({4, 2, 6, 8}), Float({4, 1, 1, 8})}});
  calls.push_back(
      {op, {Float({2, 4, 6}), Float({1, 4, 6})}});  // positions, the same for all samples
  calls.push_back({op, {Float({2, 4, 6}), Float({2, 4, 1})}});
  // Each to the other.
  calls.push_back({op, {Float({4, 1}), Float({6})}});
  calls.push_back({op, {Float({6}), Float({4, 1})}});
  return calls;
}

std::vector<SampleCall> Wheres() {
  const Operator op(OpKind::kWhere);
  std::vector<SampleCall> calls;
  for (int rank : {2, 1, 3, 4}) {
    const Ints shape = ShapeOfRank(rank);
    calls.push_back({op, {BoolType(shape), Float(shape), Float(shape)}});
  }
  // Masks of rows and of columns, one for all samples; constants.
  calls.push_back({op, {BoolType({4, 1}), Float({4, 6}), Float({4, 6})}});
  calls.push_back({op, {BoolType({6}), Float({4, 6}), Float({4, 6})}});
  calls.push_back({op, {BoolType({4, 6}), Float({4, 6}), Float({1, 6})}});
  calls.push_back({op, {BoolType({4, 6}), Float({1, 6}), Float({4, 6})}});
  calls.push_back({op, {BoolType({4, 6}), Float({1, 6}), Float({1, 6})}});
  calls.push_back({op, {BoolType({4, 6}), Float({6}), Float({4, 6})}});
  calls.push_back({op, {BoolType({4, 6}), Float({2, 4, 6}), Float({2, 4, 6})}});
  calls.push_back({op, {BoolType({4, 1}), Float({2, 4, 6}), Float({6})}});
  calls.push_back({op, {BoolType({4, 1}), Float({6}), Float({6})}});
  return calls;
}

std::vector<SampleCall> MatMuls() {
  const Operator op(OpKind::kMatMul);
  return {{op, {Float({4, 6}), Float({6, 8})}},
          {op, {Float({2, 4, 6}), Float({6, 8})}},
          {op, {Float({2, 4, 6}), Float({2, 6, 8})}},
          {op, {Float({2, 4, 4, 6}), Float({2, 4, 6, 8})}},
          {op, {Float({2, 4, 4, 6}), Float({6, 8})}}};
}

std::vector<SampleCall> Convolutions() {
  auto conv = [](Ints stride, Ints padding, int64_t groups) {
    return Operator(
        OpKind::kConv2d,
        {{"stride", stride}, {"padding", padding}, {"dilation", Ints{1, 1}}, {"groups", groups}});
  };
  return {{conv({1, 1}, {0, 0, 0, 0}, 1), {Float({4, 2, 4, 4}), Float({6, 2, 1, 1})}},
          {conv({1, 1}, {1, 1, 1, 1}, 1), {Float({2, 4, 4, 4}), Float({2, 4, 3, 3})}},
          {conv({2, 2}, {1, 1, 1, 1}, 1), {Float({2, 2, 4, 4}), Float({4, 2, 3, 3})}},
          {conv({1, 1}, {1, 1, 1, 1}, 2), {Float({2, 4, 4, 4}), Float({6, 2, 3, 3})}},
          {conv({1, 1}, {0, 0, 0, 0}, 4), {Float({2, 8, 2, 2}), Float({12, 2, 1, 1})}}};
}

std::vector<SampleCall> Pools(OpKind kind) {
  auto pool = [kind](Ints kernel, Ints stride, Ints padding) {
    Operator op(kind, {{"kernel", kernel}, {"stride", stride}, {"padding", padding}});
    if (kind == OpKind::kAvgPool) op.Set("count_include_pad", int64_t{0});
    return op;
  };
  return {{pool({2, 2}, {2, 2}, {0, 0, 0, 0}), {Float({2, 4, 4, 4})}},
          {pool({3, 3}, {2, 2}, {1, 1, 1, 1}), {Float({4, 2, 6, 6})}},
          {pool({4, 4}, {1, 1}, {0, 0, 0, 0}), {Float({6, 2, 4, 4})}}};
}

std::vector<SampleCall> Reductions(OpKind kind) {
  std::vector<SampleCall> calls;
  for (int64_t keepdims : {1, 0}) {
    for (int rank : {2, 1, 3, 4}) {
      for (const Ints& axes : {Ints{-1}, Ints{0}, Ints{-1, -2}}) {
        if (static_cast<int>(axes.size()) > rank) continue;
        calls.push_back(
            {Operator(kind, {{"axes", axes}, {"keepdims", keepdims}}), {Float(ShapeOfRank(rank))}});
      }
    }
  }
  return calls;
}

std::vector<SampleCall> Transposes() {
  std::vector<SampleCall> calls;
  for (const Ints& perm : {Ints{1, 0}, Ints{0, 2, 1}, Ints{2, 0, 1}, Ints{0, 2, 1, 3},
                           Ints{0, 1, 3, 2}, Ints{0, 2, 3, 1}}) {
    calls.push_back({Operator(OpKind::kTranspose, {{"perm", perm}}),
                     {Float(ShapeOfRank(static_cast<int>(perm.size())))}});
  }
  return calls;
}

std::vector<SampleCall> Reshapes() {
  auto reshape = [](Ints from, Ints to) {
    return SampleCall{Operator(OpKind::kReshape, {{"shape", to}}), {Float(std::move(from))}};
  };
  return {reshape({4, 8}, {4, 2, 4}),
          reshape({4, 2, 4}, {4, 8}),
          reshape({2, 4, 8}, {8, 8}),
          reshape({8, 8}, {2, 4, 8}),
          reshape({2, 4, 8}, {2, 4, 2, 4}),
          reshape({2, 4, 2, 4}, {2, 4, 8}),
          reshape({4, 2, 2, 2}, {4, 8}),
          reshape({4, 8}, {4, 2, 2, 2}),
          reshape({4, 8}, {4, 8, 1, 1}),
          reshape({4, 8, 1, 1}, {4, 8}),
          reshape({8}, {2, 4}),
          reshape({2, 4}, {8}),
          reshape({2, 4, 6}, {2, 1, 4, 6}),
          reshape({4, 6}, {4, 1, 6})};
}

std::vector<SampleCall> Expands() {
  auto expand = [](Ints from, Ints to) {
    return SampleCall{Operator(OpKind::kExpand, {{"shape", to}}), {Float(std::move(from))}};
  };
  return {expand({4, 1}, {2, 4, 6}), expand({6}, {4, 6})};
}

std::vector<SampleCall> Concats() {
  std::vector<SampleCall> calls;
  for (size_t parts : {2, 3, 4}) {
    for (int rank : {2, 1, 3, 4}) {
      for (int64_t axis = -1; axis >= -rank; --axis) {
        calls.push_back({Operator(OpKind::kConcat, {{"axis", axis}}),
                         std::vector<TensorType>(parts, Float(ShapeOfRank(rank)))});
      }
    }
  }
  return calls;
}

std::vector<SampleCall> Splits() {
  std::vector<SampleCall> calls;
  for (int64_t parts : {2, 3, 4}) {
    for (int rank : {2, 1, 3, 4}) {
      for (int64_t axis = -1; axis >= -rank; --axis) {
        Ints shape(rank, 4);
        shape[rank + axis] = 2 * parts;
        calls.push_back(
            {Operator(OpKind::kSplit, {{"axis", axis}, {"sizes", std::vector<Extent>(parts, 2)}}),
             {Float(shape)}});
      }
    }
  }
  return calls;
}

}  // namespace

std::vector<SampleCall> SampleCalls(OpKind kind) {
  switch (kind) {
    case OpKind::kMatMul:
      return MatMuls();
    case OpKind::kConv2d:
      return Convolutions();
    case OpKind::kWhere:
      return Wheres();
    case OpKind::kScale:
      return Unary(Operator(kind, {{"factor", 3.0}}));
    case OpKind::kGeluTanh:
      return Unary(Operator(kind, {{"slope", 0.75}, {"cubic", 0.125}}));
    case OpKind::kHardSigmoid:
      return Unary(Operator(kind, {{"alpha", 0.75}, {"beta", 0.5}}));
    case OpKind::kLeakyRelu:
    case OpKind::kElu:
      return Unary(Operator(kind, {{"alpha", 0.125}}));
    case OpKind::kClip:
      return Unary(Operator(kind, {{"min", -0.5}, {"max", 1.25}}));
    case OpKind::kSoftmax: {
      std::vector<SampleCall> calls = Unary(Operator(kind, {{"axis", int64_t{-1}}}));
      calls.push_back({Operator(kind, {{"axis", int64_t{-2}}}), {Float({4, 6})}});
      return calls;
    }
    case OpKind::kLayerNorm: {
      std::vector<SampleCall> calls;
      for (int rank : {2, 1, 3, 4}) {
        calls.push_back({Operator(kind, {{"epsilon", 0.5}}),
                         {Float(ShapeOfRank(rank)), Float({8}), Float({8})}});
      }
      return calls;
    }
    case OpKind::kBatchNorm: {
      const Operator op(kind, {{"epsilon", 0.5}});
      std::vector<SampleCall> calls;
      for (const Ints& shape : {Ints{2, 4, 6, 8}, Ints{2, 4}}) {
        calls.push_back({op, {Float(shape), Float({4}), Float({4}), Float({4}), Float({4})}});
      }
      return calls;
    }
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return Pools(kind);
    case OpKind::kReduceSum:
    case OpKind::kReduceMean:
      return Reductions(kind);
    case OpKind::kTranspose:
      return Transposes();
    case OpKind::kReshape:
      return Reshapes();
    case OpKind::kExpand:
      return Expands();
    case OpKind::kConcat:
      return Concats();
    case OpKind::kSplit:
      return Splits();
    case OpKind::kEmbedding:
      return {{Operator(kind), {Float({6, 8}), IndexType({4})}},
              {Operator(kind), {Float({6, 8}), IndexType({4, 2})}},
              {Operator(kind), {Float({6, 8}), IndexType({4, 2, 2})}}};
    case OpKind::kGatherMatMul:
      return {{Operator(kind), {Float({4, 6}), Float({4, 6, 8}), IndexType({4})}},
              {Operator(kind), {Float({4, 2, 6}), Float({4, 6, 8}), IndexType({4, 2})}},
              {Operator(kind), {Float({4, 2, 2, 6}), Float({4, 6, 8}), IndexType({4, 2, 2})}}};
    case OpKind::kCrossEntropy:
      return {{Operator(kind), {Float({4, 6}), IndexType({4})}},
              {Operator(kind), {Float({2, 4, 6}), IndexType({2, 4})}}};
    case OpKind::kMeanSquaredError:
      return Binary(Operator(kind));
    default:
      break;
  }
  const OperatorClass op_class = TraitsOf(kind).op_class;
  if (op_class == OperatorClass::kBinary) return Binary(Operator(kind));
  std::vector<SampleCall> calls;
  for (ExampleCall& example : ExamplesOf(kind)) {
    calls.push_back({std::move(example.op), std::move(example.operands)});
  }
  const bool is_plain_unary = op_class == OperatorClass::kUnary &&
                              calls[0].op.attributes().empty() &&
                              calls[0].operands[0].dtype == DataType::kFloat32;
  return is_plain_unary ? Unary(Operator(kind)) : calls;
}

}  // namespace isomer
