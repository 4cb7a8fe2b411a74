// Every kernel of the cpu backend against the reference evaluator in double: forward and gradient,
// the whole call and each of its shards when any one dim is partitioned.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "pcg/evaluator.h"
#include "pcg/work.h"
#include "runtime/backend.h"
#include "runtime/moves.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

struct Call {
  const char* name;
  Operator op;
  std::vector<TensorType> operands;
};

TensorType F(Ints sizes) { return SequentialType(std::move(sizes)); }
TensorType I(Ints sizes) { return SequentialType(std::move(sizes), DataType::kInt64); }

Operator Conv(Ints stride, Ints padding, Ints dilation, int64_t groups) {
  return Operator(
      OpKind::kConv2d,
      {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}});
}

Operator Pool(OpKind kind, Ints kernel, Ints stride, Ints padding) {
  return Operator(kind, {{"kernel", kernel}, {"stride", stride}, {"padding", padding}});
}

Operator CountingPad() {
  Operator op = Pool(OpKind::kAvgPool, {3, 3}, {2, 2}, {1, 1, 1, 1});
  op.Set("count_include_pad", int64_t{1});
  return op;
}

Operator Reducing(OpKind kind, Ints axes, int64_t keepdims) {
  return Operator(kind, {{"axes", axes}, {"keepdims", keepdims}});
}

std::vector<Call> Calls() {
  const Operator layer_norm(OpKind::kLayerNorm, {{"epsilon", 1e-2}});
  const Operator batch_norm(OpKind::kBatchNorm, {{"epsilon", 1e-2}});
  return {
      {"MatMul", OpKind::kMatMul, {F({4, 6}), F({6, 2})}},
      {"MatMulBatched", OpKind::kMatMul, {F({2, 4, 6}), F({2, 6, 2})}},
      {"MatMulByWeight", OpKind::kMatMul, {F({2, 4, 6}), F({6, 2})}},
      {"MatMulBroadcastLeft", OpKind::kMatMul, {F({1, 4, 6}), F({2, 6, 2})}},
      {"MatMulBroadcastBoth", OpKind::kMatMul, {F({2, 1, 4, 6}), F({4, 6, 2})}},
      {"Conv2d", Conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 1), {F({2, 4, 5, 5}), F({6, 4, 3, 3})}},
      {"Conv2dStrided", Conv({2, 1}, {0, 1, 1, 0}, {1, 1}, 1), {F({2, 2, 5, 4}), F({2, 2, 3, 2})}},
      {"Conv2dDilated", Conv({1, 1}, {2, 2, 2, 2}, {2, 2}, 1), {F({2, 2, 6, 6}), F({2, 2, 3, 3})}},
      {"Conv2dGroups", Conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 2), {F({2, 4, 3, 3}), F({6, 2, 3, 3})}},
      {"Conv2dDepthwise",
       Conv({1, 1}, {1, 1, 1, 1}, {1, 1}, 4),
       {F({2, 4, 3, 3}), F({4, 1, 3, 3})}},
      {"Add", OpKind::kAdd, {F({4, 6}), F({4, 6})}},
      {"AddBias", OpKind::kAdd, {F({2, 4, 6}), F({6})}},
      {"AddChannelBias", OpKind::kAdd, {F({2, 4, 3, 3}), F({4, 1, 1})}},
      {"SubBroadcastBoth", OpKind::kSub, {F({4, 1}), F({2, 1, 6})}},
      {"Mul", OpKind::kMul, {F({4, 6}), F({1, 6})}},
      {"Div", OpKind::kDiv, {F({4, 6}), F({4, 1})}},
      {"Scale", Operator(OpKind::kScale, {{"factor", 0.3}}), {F({4, 6})}},
      {"Relu", OpKind::kRelu, {F({4, 6})}},
      {"Gelu", OpKind::kGelu, {F({4, 6})}},
      {"Tanh", OpKind::kTanh, {F({4, 6})}},
      {"Sigmoid", OpKind::kSigmoid, {F({4, 6})}},
      {"Swish", OpKind::kSwish, {F({4, 6})}},
      {"Exp", OpKind::kExp, {F({4, 6})}},
      {"Softmax", OpKind::kSoftmax, {F({2, 4, 6})}},
      {"SoftmaxFirstAxis", Operator(OpKind::kSoftmax, {{"axis", int64_t{0}}}), {F({4, 6})}},
      {"LayerNorm", layer_norm, {F({2, 4, 6}), F({6}), F({6})}},
      {"BatchNorm", batch_norm, {F({2, 4, 2, 2}), F({4}), F({4}), F({4}), F({4})}},
      {"MaxPool", Pool(OpKind::kMaxPool, {3, 3}, {2, 2}, {1, 1, 0, 0}), {F({2, 2, 6, 6})}},
      {"AvgPool", Pool(OpKind::kAvgPool, {3, 2}, {2, 2}, {1, 1, 1, 1}), {F({2, 2, 5, 5})}},
      {"AvgPoolCountingPad", CountingPad(), {F({2, 2, 5, 5})}},
      {"ReduceSum", Reducing(OpKind::kReduceSum, {0, -1}, 0), {F({4, 6, 2})}},
      {"ReduceMean", Reducing(OpKind::kReduceMean, {1}, 1), {F({4, 6, 2})}},
      {"ReduceAll", Reducing(OpKind::kReduceMean, {0, 1}, 0), {F({4, 6})}},
      {"Transpose", Operator(OpKind::kTranspose, {{"perm", Ints{2, 0, 1}}}), {F({4, 6, 2})}},
      {"ReshapeSplit", Operator(OpKind::kReshape, {{"shape", Ints{4, 2, 4, 2}}}), {F({4, 8, 2})}},
      {"ReshapeMerge", Operator(OpKind::kReshape, {{"shape", Ints{24, 2}}}), {F({4, 6, 2})}},
      {"ReshapeByDivision", Operator(OpKind::kReshape, {{"shape", Ints{6, 4}}}), {F({4, 6})}},
      {"Concat",
       Operator(OpKind::kConcat, {{"axis", int64_t{1}}}),
       {F({4, 6}), F({4, 2}), F({4, 1})}},
      {"Split",
       Operator(OpKind::kSplit, {{"axis", int64_t{-1}}, {"sizes", Ints{2, 4}}}),
       {F({4, 6})}},
      {"Embedding", OpKind::kEmbedding, {F({4, 6}), I({2, 6})}},
      {"CrossEntropy", OpKind::kCrossEntropy, {F({2, 4, 6}), I({2, 4})}},
      {"MeanSquaredError", OpKind::kMeanSquaredError, {F({4, 6}), F({4, 6})}},
  };
}

// A buffer and the same numbers for the evaluator.
struct Shard {
  Array<double> array;
  std::vector<float> floats;
  std::vector<int64_t> indices;

  Shard(const Box& box, DataType dtype, const Array<double>& whole) : array(box.shape) {
    array.origin = box.origin;
    floats.resize(box.Volume());
    indices.resize(box.Volume());
    CopyToBuffer(whole, box, dtype,
                 dtype == DataType::kInt64 ? static_cast<void*>(indices.data()) : floats.data());
    for (int64_t i = 0; i < array.size(); ++i) {
      array.data[i] = dtype == DataType::kInt64 ? static_cast<double>(indices[i]) : floats[i];
    }
  }
  const void* data(DataType dtype) const {
    return dtype == DataType::kInt64 ? static_cast<const void*>(indices.data()) : floats.data();
  }
};

std::vector<const Array<double>*> Pointers(const std::vector<Shard>& shards) {
  std::vector<const Array<double>*> pointers;
  for (const Shard& shard : shards) pointers.push_back(&shard.array);
  return pointers;
}

void ExpectClose(const std::vector<float>& actual, const Array<double>& expected) {
  ASSERT_EQ(actual.size(), expected.data.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected.data[i], 2e-5 * (1 + std::abs(expected.data[i]))) << "at " << i;
  }
}

class KernelTest : public testing::TestWithParam<std::tuple<Call, bool>> {
 protected:
  void SetUp() override {
    const auto& [call, reference] = GetParam();
    op_ = call.op;
    operands_ = call.operands;
    ASSERT_TRUE(NormalizeAttributes(&op_).ok());
    backend_ = MakeCpuBackend(reference);
    backend_->EnterDevice(0, 1);
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> real(0.2, 2.0);  // Positive: Div, variances.
    for (const TensorType& type : operands_) {
      Array<double> array(type.Sizes());
      for (double& value : array.data) {
        value = type.dtype == DataType::kInt64 ? static_cast<double>(random() % 4) : real(random);
      }
      if (operands_.size() == 1) {
        for (double& value : array.data) value -= 1;  // Both sides of relu.
      }
      values_.push_back(std::move(array));
    }
  }

  // Runs all tasks of the call with these operand types.
  void CheckTasks(const std::vector<TensorType>& operands) {
    absl::StatusOr<Sharding> sharding = InferSharding(op_, operands);
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    for (int64_t shard = 0; shard < sharding->outputs[0].NumShards(); ++shard) {
      SCOPED_TRACE(testing::Message()
                   << "shard " << shard << " of " << sharding->outputs[0].ToString());
      CheckForward(*sharding, operands, shard);
      CheckGradient(*sharding, operands, shard);
    }
  }

  std::vector<Shard> Slices(const KernelCall& call) {
    std::vector<Shard> slices;
    for (size_t o = 0; o < values_.size(); ++o) {
      slices.emplace_back(call.operands[o], call.dtypes[o], values_[o]);
    }
    return slices;
  }

  void CheckForward(const Sharding& sharding, const std::vector<TensorType>& operands,
                    int64_t shard) {
    const KernelCall call = MakeKernelCall(op_, sharding, operands, shard, false);
    const std::vector<Shard> slices = Slices(call);
    const auto expected = Evaluate<double>(call.declaration, call.iteration, Pointers(slices));
    ASSERT_TRUE(expected.ok()) << expected.status();
    auto kernel = backend_->MakeKernel(call);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<const void*> reads;
    for (size_t o = 0; o < slices.size(); ++o) reads.push_back(slices[o].data(call.dtypes[o]));
    std::vector<std::vector<float>> outputs;
    std::vector<void*> writes;
    for (const Box& box : call.outputs) outputs.emplace_back(box.Volume(), 99.0f);
    for (auto& output : outputs) writes.push_back(output.data());
    ASSERT_EQ((*kernel)->Run(reads, writes), absl::OkStatus());
    for (size_t t = 0; t < outputs.size(); ++t) ExpectClose(outputs[t], (*expected)[t]);
  }

  void CheckGradient(const Sharding& sharding, const std::vector<TensorType>& operands,
                     int64_t shard) {
    std::vector<bool> wanted;
    for (const TensorType& type : operands) wanted.push_back(type.dtype == DataType::kFloat32);
    const KernelCall call = MakeKernelCall(op_, sharding, operands, shard, true, wanted);
    const std::vector<Shard> slices = Slices(call);
    const auto outputs = Evaluate<double>(call.declaration, call.iteration, Pointers(slices));
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    std::vector<Shard> results, seeds;
    std::vector<Array<double>> expected;
    std::vector<Array<double>*> expected_pointers;
    for (const Array<double>& output : *outputs) {
      const Box box{output.origin, output.shape};
      results.emplace_back(Box{Ints(output.shape.size(), 0), output.shape}, DataType::kFloat32,
                           Array<double>(output.shape));
      for (int64_t i = 0; i < output.size(); ++i) {
        results.back().floats[i] = static_cast<float>(output.data[i]);
      }
      Array<double> seed(output.shape);
      for (int64_t i = 0; i < seed.size(); ++i) seed.data[i] = 0.25 + 0.125 * (i % 5);
      seeds.emplace_back(Box{Ints(output.shape.size(), 0), output.shape}, DataType::kFloat32, seed);
      seeds.back().array.origin = box.origin;
    }
    expected.reserve(slices.size());
    for (size_t o = 0; o < slices.size(); ++o) {
      expected.emplace_back(slices[o].array.shape);
      expected.back().origin = slices[o].array.origin;
      expected_pointers.push_back(wanted[o] ? &expected.back() : nullptr);
    }
    ASSERT_EQ(EvaluateGradient<double>(call.declaration, call.iteration, Pointers(slices),
                                       Pointers(seeds), expected_pointers),
              absl::OkStatus());
    auto kernel = backend_->MakeKernel(call);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    // What the gradient does not need is not there.
    const GradientNeeds needs = NeedsOfGradient(op_, call.declaration, operands);
    std::vector<const void*> reads;
    for (size_t o = 0; o < slices.size(); ++o) {
      reads.push_back(needs.operands[o] ? slices[o].data(call.dtypes[o]) : nullptr);
    }
    for (const Shard& result : results) {
      reads.push_back(needs.outputs ? result.floats.data() : nullptr);
    }
    for (const Shard& seed : seeds) reads.push_back(seed.floats.data());
    std::vector<std::vector<float>> gradients;
    std::vector<void*> writes;
    for (const Box& box : call.operands) gradients.emplace_back(box.Volume(), 99.0f);
    for (size_t o = 0; o < gradients.size(); ++o) {
      writes.push_back(wanted[o] ? gradients[o].data() : nullptr);
    }
    ASSERT_EQ((*kernel)->Run(reads, writes), absl::OkStatus());
    for (size_t o = 0; o < gradients.size(); ++o) {
      SCOPED_TRACE(testing::Message() << "gradient of operand " << o);
      if (wanted[o]) ExpectClose(gradients[o], expected[o]);
    }
  }

  Operator op_;
  std::vector<TensorType> operands_;
  std::vector<Array<double>> values_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(KernelTest, WholeCallAgreesWithTheDeclaration) { CheckTasks(operands_); }

TEST_P(KernelTest, EveryShardAgreesWithTheDeclaration) {
  absl::StatusOr<Sharding> whole = InferSharding(op_, operands_);
  ASSERT_TRUE(whole.ok());
  const Declaration& d = whole->declaration;
  for (size_t v = 0; v < d.dims.size(); ++v) {
    if (!d.IsPartitionable(static_cast<int>(v)) || d.dims[v].size.value() % 2 != 0) continue;
    SCOPED_TRACE(testing::Message() << "dim " << d.dims[v].name << " in two");
    Ints degrees(d.dims.size(), 1);
    degrees[v] = 2;
    absl::StatusOr<std::vector<TensorType>> operands = OperandTypesFor(op_, operands_, degrees);
    ASSERT_TRUE(operands.ok()) << operands.status();
    CheckTasks(*operands);
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Call, bool>>& info) {
  return std::get<0>(info.param).name + std::string(std::get<1>(info.param) ? "Reference" : "");
}

INSTANTIATE_TEST_SUITE_P(AllOperators, KernelTest,
                         testing::Combine(testing::ValuesIn(Calls()), testing::Bool()), NameOf);

TEST(Kernel, EveryDeclaredOperatorIsTested) {
  for (OpKind kind : kAllOpKinds) {
    if (IsLeaf(kind) || IsParallel(kind)) continue;
    bool tested = false;
    for (const Call& call : Calls()) tested |= call.op.kind() == kind;
    EXPECT_TRUE(tested) << OpName(kind);
  }
}

TEST(Kernel, IndexOutsideOfTheTableIsAnError) {
  const std::vector<TensorType> operands = {F({4, 6}), I({3})};
  const absl::StatusOr<Sharding> sharding = InferSharding(OpKind::kEmbedding, operands);
  ASSERT_TRUE(sharding.ok());
  auto kernel = MakeCpuBackend()->MakeKernel(
      MakeKernelCall(OpKind::kEmbedding, *sharding, operands, 0, false));
  ASSERT_TRUE(kernel.ok());
  const std::vector<float> table(24);
  const std::vector<int64_t> indices = {0, 4, 1};
  std::vector<float> output(18);
  const std::vector<const void*> reads = {table.data(), indices.data()};
  const std::vector<void*> writes = {output.data()};
  EXPECT_EQ((*kernel)->Run(reads, writes).message(), "embedding: index 4 is not in [0, 4)");
}

}  // namespace
}  // namespace isomer
