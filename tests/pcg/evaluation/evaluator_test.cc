// Every declaration, checked against what it must be: gradients against finite differences, and
// tasks over pieces of the iteration space against the whole.
#include "pcg/evaluation/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <random>

#include "pcg/ir/examples.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"
#include "tests/pcg/random_operands.h"

namespace isomer {

void PrintTo(const ExampleCall& call, std::ostream* out) { *out << call.op.ToString(); }

namespace {

template <typename T>
std::vector<const Array<T>*> Pointers(const std::vector<Array<T>>& arrays) {
  std::vector<const Array<T>*> pointers;
  for (const Array<T>& array : arrays) pointers.push_back(&array);
  return pointers;
}

class CallTest : public testing::TestWithParam<ExampleCall> {
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
  // Indices, bools and integers have no gradient.
  bool HasGradient(size_t o) const { return IsFloat(GetParam().operands[o].dtype); }

  Operator op_;
  Declaration declaration_;
};

TEST_P(CallTest, GradientIsTheFiniteDifference) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::vector<Array<double>> operands = RandomOperands<double>(GetParam(), random);
  const IterationBox box = FullBox(declaration_);
  auto outputs = Evaluate<double>(declaration_, box, Pointers(operands));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  std::vector<Array<double>> seeds;
  for (const Array<double>& output : *outputs) {
    seeds.push_back(RandomArray<double>(output.shape, random));
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
    wanted.push_back(HasGradient(o) ? &gradients[o] : nullptr);
  ASSERT_TRUE(
      EvaluateGradient<double>(declaration_, box, Pointers(operands), Pointers(seeds), wanted)
          .ok());
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!HasGradient(o)) continue;
    if (!DifferentiableOperands(declaration_)[o]) {  // Its value jumps between constants.
      EXPECT_EQ(gradients[o].data, Array<double>(gradients[o].shape).data) << "operand " << o;
      continue;
    }
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
  const std::vector<Array<PrimeField>> operands = RandomOperands<PrimeField>(GetParam(), random);
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
  const std::vector<Array<PrimeField>> a = RandomOperands<PrimeField>(GetParam(), random);
  const size_t n = a.size();
  for (size_t subset = 1; subset < (size_t{1} << n); ++subset) {
    std::vector<bool> members;
    for (size_t o = 0; o < n; ++o) members.push_back(subset >> o & 1);
    if (!declaration_.IsLinearIn(members)) continue;
    std::vector<Array<PrimeField>> b = a, sum = a;
    for (size_t o = 0; o < n; ++o) {
      if (!members[o]) continue;
      b[o] = RandomOperand<PrimeField>(GetParam(), o, random);
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

INSTANTIATE_TEST_SUITE_P(Operators, CallTest, testing::ValuesIn(Examples()),
                         [](const auto& info) { return info.param.name; });

TEST(CallTable, HasEveryOperatorOfTheList) {
  for (OpKind kind : AllOpKinds()) {
    if (!IsBuiltIn(kind) || IsLeaf(kind) || IsParallel(kind)) continue;
    EXPECT_FALSE(ExamplesOf(kind).empty()) << OpName(kind);
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
    leaves[NodeId{id}] = {type, {RandomArray<PrimeField>(type.Sizes(), random)}};
  }
  const std::vector<std::vector<Array<PrimeField>>> seeds = {
      {RandomArray<PrimeField>({8, 4}, random)}};
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
  // Exponents on both sides of the 61 bits of the prime.
  for (int e : {1, 52, 53, 60, 61, 62, 122, 1000}) {
    EXPECT_EQ(
        PrimeField::FromDouble(std::ldexp(1.5, e)) * PrimeField::FromDouble(std::ldexp(1, -e)),
        PrimeField::FromDouble(1.5))
        << e;
  }
  EXPECT_EQ(PrimeField::FromRaw(12345) / PrimeField::FromRaw(12345), PrimeField::FromRaw(1));
}

}  // namespace
}  // namespace isomer
