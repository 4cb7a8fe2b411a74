// Every declaration, checked against what it must be: gradients against finite differences, and
// tasks over pieces of the iteration space against the whole.
#include "pcg/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <random>

#include "pcg/parallel_operator.h"
#include "pcg/type_inference.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

struct Call {
  std::string name;
  Operator op;
  std::vector<TensorType> operands;
};

void PrintTo(const Call& call, std::ostream* out) { *out << call.op.ToString(); }

std::vector<Call> Calls() {
  auto f = [](Ints sizes) { return SequentialType(std::move(sizes)); };
  auto i = [](Ints sizes) { return SequentialType(std::move(sizes), DataType::kInt64); };
  auto conv = [](Ints stride, Ints padding, int64_t groups) {
    return Operator(
        OpKind::kConv2d,
        {{"stride", stride}, {"padding", padding}, {"dilation", Ints{1, 1}}, {"groups", groups}});
  };
  auto pool = [](OpKind kind, Ints padding, int64_t include) {
    Operator op(kind, {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", padding}});
    if (kind == OpKind::kAvgPool) op.Set("count_include_pad", include);
    return op;
  };
  auto axes = [](OpKind kind, Ints axes, int64_t keepdims) {
    return Operator(kind, {{"axes", axes}, {"keepdims", keepdims}});
  };
  auto shape = [](Ints to) { return Operator(OpKind::kReshape, {{"shape", to}}); };
  const Operator norm(OpKind::kLayerNorm, {{"epsilon", 1e-2}});
  const Operator batch_norm(OpKind::kBatchNorm, {{"epsilon", 1e-2}});
  return {
      {"MatMul", OpKind::kMatMul, {f({4, 6}), f({6, 2})}},
      {"MatMulBatched", OpKind::kMatMul, {f({2, 4, 6}), f({2, 6, 2})}},
      {"MatMulByWeight", OpKind::kMatMul, {f({2, 4, 6}), f({6, 2})}},
      {"MatMulBroadcastBatch", OpKind::kMatMul, {f({1, 4, 6}), f({2, 6, 2})}},
      {"Conv2d", conv({1, 1}, {1, 1, 1, 1}, 1), {f({2, 4, 4, 4}), f({6, 4, 3, 3})}},
      {"Conv2dStrided", conv({2, 1}, {0, 1, 1, 0}, 1), {f({2, 2, 5, 4}), f({2, 2, 3, 2})}},
      {"Conv2dGroups", conv({1, 1}, {1, 1, 1, 1}, 2), {f({2, 4, 3, 3}), f({6, 2, 3, 3})}},
      {"Add", OpKind::kAdd, {f({4, 6}), f({4, 6})}},
      {"AddBroadcast", OpKind::kAdd, {f({2, 4, 6}), f({6})}},
      {"SubBroadcast", OpKind::kSub, {f({4, 1}), f({2, 4, 6})}},
      {"Mul", OpKind::kMul, {f({4, 6}), f({1, 6})}},
      {"Div", OpKind::kDiv, {f({4, 6}), f({4, 6})}},
      {"Scale", Operator(OpKind::kScale, {{"factor", 0.3}}), {f({4, 6})}},
      {"Relu", OpKind::kRelu, {f({4, 6})}},
      {"Gelu", OpKind::kGelu, {f({4, 6})}},
      {"Tanh", OpKind::kTanh, {f({4, 6})}},
      {"Sigmoid", OpKind::kSigmoid, {f({4, 6})}},
      {"Exp", OpKind::kExp, {f({4, 6})}},
      {"Swish", OpKind::kSwish, {f({4, 6})}},
      {"Softmax", OpKind::kSoftmax, {f({2, 4, 6})}},
      {"SoftmaxFirstAxis", Operator(OpKind::kSoftmax, {{"axis", int64_t{0}}}), {f({4, 6})}},
      {"LayerNorm", norm, {f({2, 4, 6}), f({6}), f({6})}},
      {"BatchNorm", batch_norm, {f({2, 4, 2, 2}), f({4}), f({4}), f({4}), f({4})}},
      {"MaxPool", pool(OpKind::kMaxPool, {1, 1, 0, 0}, 0), {f({2, 2, 6, 6})}},
      {"AvgPool", pool(OpKind::kAvgPool, {1, 1, 1, 1}, 0), {f({2, 2, 5, 5})}},
      {"AvgPoolCountingPad", pool(OpKind::kAvgPool, {1, 1, 1, 1}, 1), {f({2, 2, 5, 5})}},
      {"ReduceSum", axes(OpKind::kReduceSum, {0, -1}, 0), {f({4, 6, 2})}},
      {"ReduceMeanKeepingDims", axes(OpKind::kReduceMean, {1}, 1), {f({4, 6, 2})}},
      {"Transpose", Operator(OpKind::kTranspose, {{"perm", Ints{2, 0, 1}}}), {f({4, 6, 2})}},
      {"ReshapeSplit", shape({4, 2, 3, 2}), {f({4, 6, 2})}},
      {"ReshapeMerge", shape({24, 2}), {f({4, 6, 2})}},
      {"ReshapeIncommensurable", shape({6, 4}), {f({4, 6})}},
      {"Concat",
       Operator(OpKind::kConcat, {{"axis", int64_t{1}}}),
       {f({4, 6}), f({4, 2}), f({4, 1})}},
      {"Split",
       Operator(OpKind::kSplit, {{"axis", int64_t{1}}, {"sizes", Ints{2, 4}}}),
       {f({4, 6})}},
      {"Embedding", OpKind::kEmbedding, {f({4, 6}), i({2, 6})}},
      {"CrossEntropy", OpKind::kCrossEntropy, {f({2, 4, 6}), i({2, 4})}},
      {"MeanSquaredError", OpKind::kMeanSquaredError, {f({4, 6}), f({4, 6})}},
  };
}

template <typename T>
Array<T> RandomArray(const TensorType& type, std::mt19937_64& random) {
  Array<T> array(type.Sizes());
  for (T& value : array.data) {
    if (type.dtype == DataType::kInt64) {
      value = T::FromRaw(random() % 4);
    } else {
      value = T::FromRaw(random() % PrimeField::kPrime);
    }
  }
  return array;
}
template <>
Array<double> RandomArray<double>(const TensorType& type, std::mt19937_64& random) {
  Array<double> array(type.Sizes());
  std::uniform_real_distribution<double> real(0.2, 2.0);  // positive: Div, BatchNorm's variance
  for (double& value : array.data) {
    value = type.dtype == DataType::kInt64 ? static_cast<double>(random() % 4) : real(random);
  }
  return array;
}

template <typename T>
std::vector<const Array<T>*> Pointers(const std::vector<Array<T>>& arrays) {
  std::vector<const Array<T>*> pointers;
  for (const Array<T>& array : arrays) pointers.push_back(&array);
  return pointers;
}

class CallTest : public testing::TestWithParam<Call> {
 protected:
  void SetUp() override {
    op_ = GetParam().op;
    ASSERT_TRUE(NormalizeAttributes(&op_).ok());
    std::vector<Shape> shapes;
    for (const TensorType& type : GetParam().operands) shapes.push_back(type.GlobalShape());
    absl::StatusOr<Declaration> declaration = Declare(op_, shapes);
    ASSERT_TRUE(declaration.ok()) << declaration.status();
    declaration_ = *std::move(declaration);
  }
  template <typename T>
  std::vector<Array<T>> RandomOperands(std::mt19937_64& random) {
    std::vector<Array<T>> operands;
    for (const TensorType& type : GetParam().operands)
      operands.push_back(RandomArray<T>(type, random));
    return operands;
  }
  bool IsIndex(size_t o) const { return GetParam().operands[o].dtype == DataType::kInt64; }

  Operator op_;
  Declaration declaration_;
};

TEST_P(CallTest, GradientIsTheFiniteDifference) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::vector<Array<double>> operands = RandomOperands<double>(random);
  const IterationBox box = FullBox(declaration_);
  auto outputs = Evaluate<double>(declaration_, box, Pointers(operands));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::vector<Array<double>> seeds;
  for (const Array<double>& output : *outputs) {
    seeds.push_back(RandomArray<double>(SequentialType(output.shape), random));
  }
  auto loss = [&] {
    double sum = 0;
    const auto y = *Evaluate<double>(declaration_, box, Pointers(operands));
    for (size_t t = 0; t < y.size(); ++t) {
      for (size_t e = 0; e < y[t].data.size(); ++e) sum += y[t].data[e] * seeds[t].data[e];
    }
    return sum;
  };
  std::vector<Array<double>> gradients;
  for (const Array<double>& operand : operands) gradients.emplace_back(operand.shape);
  std::vector<Array<double>*> wanted;
  for (size_t o = 0; o < gradients.size(); ++o)
    wanted.push_back(IsIndex(o) ? nullptr : &gradients[o]);
  ASSERT_TRUE(
      EvaluateGradient<double>(declaration_, box, Pointers(operands), Pointers(seeds), wanted)
          .ok());
  for (size_t o = 0; o < operands.size(); ++o) {
    if (IsIndex(o)) continue;
    for (size_t e = 0; e < operands[o].data.size(); ++e) {
      constexpr double kStep = 1e-5;
      double& x = operands[o].data[e];
      const double saved = x;
      x = saved + kStep;
      const double up = loss();
      x = saved - kStep;
      const double down = loss();
      x = saved;
      const double difference = (up - down) / (2 * kStep);
      EXPECT_NEAR(gradients[o].data[e], difference, 1e-5 * std::max(1.0, std::abs(difference)))
          << "operand " << o << " element " << e;
    }
  }
}

// Cuts each partitionable dim in two and runs both tasks: parallel dims must give the pieces of
// the whole, sum dims partial sums of it, exactly (in the field).
TEST_P(CallTest, PiecesOfPartitionableDimsMakeTheWhole) {
  std::mt19937_64 random(11);
  const std::vector<Array<PrimeField>> operands = RandomOperands<PrimeField>(random);
  auto whole = Evaluate<PrimeField>(declaration_, FullBox(declaration_), Pointers(operands));
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (size_t v = 0; v < declaration_.dims.size(); ++v) {
    const IterationDim& dim = declaration_.dims[v];
    if (!declaration_.IsPartitionable(static_cast<int>(v)) || dim.size.value() % 2 != 0) continue;
    SCOPED_TRACE(dim.name);
    std::vector<Array<PrimeField>> assembled;
    for (const Array<PrimeField>& output : *whole) assembled.emplace_back(output.shape);
    for (int64_t piece : {0, 1}) {
      std::vector<int64_t> degrees(declaration_.dims.size(), 1), at(declaration_.dims.size(), 0);
      degrees[v] = 2;
      at[v] = piece;
      auto outputs = Evaluate<PrimeField>(declaration_, TaskBox(declaration_, degrees, at),
                                          Pointers(operands));
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      for (size_t t = 0; t < outputs->size(); ++t) {
        const Array<PrimeField>& part = (*outputs)[t];
        for (int64_t e = 0; e < part.size(); ++e) {
          int64_t rest = e, offset = 0, stride = 1;
          for (int i = static_cast<int>(part.shape.size()) - 1; i >= 0; --i) {
            offset += (part.origin[i] + rest % part.shape[i]) * stride;
            rest /= part.shape[i];
            stride *= assembled[t].shape[i];
          }
          assembled[t].data[offset] += part.data[e];
        }
      }
    }
    for (size_t t = 0; t < whole->size(); ++t) EXPECT_EQ(assembled[t].data, (*whole)[t].data);
  }
}

// If the declaration is said to be linear in an operand, the sum of its values on two operands is
// its value on their sum.
TEST_P(CallTest, LinearOperandsAreLinear) {
  std::mt19937_64 random(13);
  const std::vector<Array<PrimeField>> a = RandomOperands<PrimeField>(random);
  const size_t n = a.size();
  for (size_t subset = 1; subset < (size_t{1} << n); ++subset) {
    std::vector<bool> members;
    for (size_t o = 0; o < n; ++o) members.push_back(subset >> o & 1);
    if (!declaration_.IsLinearIn(members)) continue;
    std::vector<Array<PrimeField>> b = a, sum = a;
    for (size_t o = 0; o < n; ++o) {
      if (!members[o]) continue;
      b[o] = RandomArray<PrimeField>(GetParam().operands[o], random);
      for (size_t e = 0; e < b[o].data.size(); ++e) sum[o].data[e] += b[o].data[e];
    }
    const IterationBox box = FullBox(declaration_);
    const auto ya = *Evaluate<PrimeField>(declaration_, box, Pointers(a));
    const auto yb = *Evaluate<PrimeField>(declaration_, box, Pointers(b));
    const auto ysum = *Evaluate<PrimeField>(declaration_, box, Pointers(sum));
    for (size_t t = 0; t < ya.size(); ++t) {
      for (size_t e = 0; e < ya[t].data.size(); ++e) {
        ASSERT_EQ(ya[t].data[e] + yb[t].data[e], ysum[t].data[e]) << "subset " << subset;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CallTest, testing::ValuesIn(Calls()),
                         [](const auto& info) { return info.param.name; });

TEST(CallTable, HasEveryDeclaredOperator) {
  for (OpKind kind : kAllOpKinds) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    bool found = false;
    for (const Call& call : Calls()) found |= call.op.kind() == kind;
    EXPECT_TRUE(found) << OpName(kind);
  }
}

TEST(Evaluate, LookUpOutsideOfTheTableIsAnError) {
  const Declaration d = *Declare(OpKind::kEmbedding, std::vector<Shape>{{4, 2}, {1}});
  Array<double> table({4, 2}), indices({1}, 9.0);
  absl::Status status = Evaluate<double>(d, FullBox(d), {&table, &indices}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("index 9"), std::string::npos) << status;
}

// A parallel graph has the meaning and the gradients of the sequential one: a column- then
// row-parallel MLP with partials, and the same with micro-batches.
TEST(EvaluateGraph, ParallelGraphsKeepMeaningAndGradients) {
  auto build = [](int64_t d, int64_t micro_batches) {
    Graph g;
    auto must = [](absl::StatusOr<TensorRef> r) {
      EXPECT_TRUE(r.ok()) << r.status();
      return *r;
    };
    TensorRef x = g.AddInput("x", SequentialType({8, 4}));
    TensorRef w1 = g.AddWeight("w1", SequentialType({4, 6}));
    TensorRef w2 = g.AddWeight("w2", SequentialType({6, 4}));
    if (micro_batches > 1) x = must(g.AddOp(Pipeline(0, micro_batches), {x}));
    TensorRef xs = must(g.AddOp(Replicate(d), {x}));
    TensorRef h = must(g.AddOp(OpKind::kMatMul, {xs, must(g.AddOp(Partition(1, d), {w1}))}));
    h = must(g.AddOp(OpKind::kRelu, {h}));
    TensorRef y = must(g.AddOp(OpKind::kMatMul, {h, must(g.AddOp(Partition(0, d), {w2}))}));
    y = must(g.AddOp(Reduce(d), {y}));
    if (micro_batches > 1) y = must(g.AddOp(Batch(0, micro_batches), {y}));
    g.AddOutput("y", y);
    EXPECT_TRUE(g.Validate().ok()) << g.Validate();
    return g;
  };
  std::mt19937_64 random(5);
  std::map<NodeId, Value<PrimeField>> leaves;
  for (int id : {0, 1, 2}) {
    const TensorType type = build(1, 1).node(id).outputs[0];
    leaves[NodeId{id}] = {type, {RandomArray<PrimeField>(type, random)}};
  }
  const std::vector<std::vector<Array<PrimeField>>> seeds = {
      {RandomArray<PrimeField>(SequentialType({8, 4}), random)}};
  auto run = [&](const Graph& g) {
    const auto values = EvaluateGraph(g, leaves);
    EXPECT_TRUE(values.ok()) << values.status();
    const TensorRef y = g.outputs()[0].tensor;
    auto gradients = EvaluateGradients(g, *values, seeds);
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    return std::make_pair(Meaning((*values)[y.node.value][0])[0].data, *gradients);
  };
  const auto [expected, expected_gradients] = run(build(1, 1));
  for (const auto& [d, micro_batches] :
       {std::pair<int64_t, int64_t>{2, 1}, {3, 1}, {1, 4}, {2, 2}}) {
    SCOPED_TRACE(testing::Message() << "degree " << d << ", micro-batches " << micro_batches);
    const auto [meaning, gradients] = run(build(d, micro_batches));
    EXPECT_EQ(meaning, expected);
    for (const auto& [leaf, gradient] : expected_gradients) {
      EXPECT_EQ(gradients.at(leaf)[0].data, gradient[0].data) << "leaf " << leaf.value;
    }
  }
}

TEST(PrimeField, MapsDyadicNumbersExactly) {
  EXPECT_EQ(PrimeField::FromDouble(0.125) * PrimeField::FromRaw(8), PrimeField::FromRaw(1));
  EXPECT_EQ(PrimeField::FromDouble(-3) + PrimeField::FromRaw(3), PrimeField());
  EXPECT_EQ(PrimeField::FromDouble(0), PrimeField());
  EXPECT_EQ(PrimeField::FromRaw(12345) / PrimeField::FromRaw(12345), PrimeField::FromRaw(1));
}

}  // namespace
}  // namespace isomer
