// Every kernel of the cpu backend against the reference evaluator in double, on every example call
// and every data type that it takes: forward and gradient, the whole call and each of its shards
// when any one dim is partitioned; and with the channels of images innermost, of all of them or of
// one.
#include <gtest/gtest.h>

#include "runtime/cpu/cpu_backend.h"
#include "tests/runtime/kernel_checker.h"

namespace isomer {

namespace {

class KernelTest : public testing::TestWithParam<ExampleCall> {};

TEST_P(KernelTest, AgreesWithTheDeclarationOnEveryDataTypeAndShard) {
  for (const ExampleCall& call : Variants(GetParam())) {
    for (bool reference : {false, true}) {
      SCOPED_TRACE(call.name + (reference ? ", reference" : ""));
      Checker checker(call, reference);
      checker.CheckWholeCall();
      checker.CheckEveryShard();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllOperators, KernelTest, testing::ValuesIn(Examples()),
                         [](const auto& info) { return info.param.name; });

using LayoutTest = KernelTest;

TEST_P(LayoutTest, AgreesWithTheDeclarationWithChannelsLast) {
  for (const ExampleCall& call : Variants(GetParam())) {
    for (const CallLayouts& layouts : LayoutsOf(GetParam())) {
      for (bool reference : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << call.name << (reference ? ", reference" : "") << ", of operand 0 "
                     << static_cast<int>(layouts.OfOperand(0)) << ", of output 0 "
                     << static_cast<int>(layouts.OfOutput(0)));
        Checker checker(call, reference, layouts);
        checker.CheckWholeCall();
        checker.CheckEveryShard();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Images, LayoutTest, testing::ValuesIn(CallsOfImages()),
                         [](const auto& info) { return info.param.name; });

// What LayoutUseOf promises has a kernel that is not the evaluator, where row-major operands have.
TEST(Layout, CallsOfImagesHaveKernels) {
  int kernels = 0;
  for (const ExampleCall& example : CallsOfImages()) {
    Operator op = example.op;
    ASSERT_TRUE(NormalizeAttributes(&op).ok());
    const auto sharding = InferSharding(op, example.operands);
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    KernelCall call = MakeKernelCall(op, *sharding, example.operands, 0, false);
    const bool has_kernel = HasCpuKernel(call);
    for (const CallLayouts& layouts : LayoutsOf(example)) {
      call.layouts = layouts;
      EXPECT_EQ(HasCpuKernel(call), has_kernel) << example.name;
      ++kernels;
    }
  }
  EXPECT_GE(kernels, 60);
}

// Layouts that differ where a call takes one: an error, not numbers.
TEST(Layout, GradientOfWhatLiesOtherwiseIsAnError) {
  const std::vector<TensorType> operands = {SequentialType({2, 4, 3, 2})};
  KernelCall call = MakeKernelCall(OpKind::kRelu, *InferSharding(OpKind::kRelu, operands), operands,
                                   0, true, {true});
  call.layouts = {{Layout::kRowMajor}, {Layout::kChannelsLast}};
  EXPECT_EQ(MakeCpuBackend()->MakeKernel(call).status().message(), "no kernel computes relu");
}

// Of dims that a tile does not divide, and some that are less than one.
// Masks are made of large numbers; next to such a maximum, the logarithm of a sum is nothing.
TEST(Kernel, RowsThatAreMaskedWholeHaveProbabilities) {
  const auto values = SequentialType({1, 2, 6, 4}), queries = SequentialType({1, 2, 3, 4});
  const ExampleCall attention = {"attention",
                                 Operator(OpKind::kAttention, {{"scale", 0.5}}),
                                 {queries, values, values, SequentialType({1, 1, 3, 6})}};
  for (const double masked : {-1e9, -3e38}) {
    Checker(attention, /*reference=*/false).Set(0, 0).Set(3, masked).CheckWholeCall();
  }
}

TEST(Kernel, CrossEntropyOfLargeLogits) {
  const ExampleCall call = {"loss",
                            OpKind::kCrossEntropy,
                            {SequentialType({3, 5}), SequentialType({3}, DataType::kInt64)}};
  for (const double logits : {1e5, 1e9, -1e9}) {
    Checker(call, /*reference=*/false).Set(0, logits).Set(1, 2).CheckWholeCall();
  }
}

// What is saved in front of a GELU or Swish is of the type of what is behind it.
TEST(Kernel, ActivationsOfWhatFloat16CannotHold) {
  const auto type = [](std::vector<int64_t> sizes) {
    return SequentialType(std::move(sizes), DataType::kFloat16);
  };
  for (const int64_t activation : {2, 5}) {
    const ExampleCall call = {"linear",
                              Operator(OpKind::kLinear, {{"activation", activation}}),
                              {type({3, 4}), type({4, 5}), type({5})}};
    Checker(call, /*reference=*/false).Set(0, 300).Set(1, -80).CheckWholeCall();
  }
}

TEST(Kernel, TransposesInTiles) {
  Ints perm = {0, 1, 2, 3};
  do {
    const ExampleCall call = {
        "Transpose", {OpKind::kTranspose, {{"perm", perm}}}, {SequentialType({2, 18, 3, 35})}};
    for (const ExampleCall& variant : Variants(call)) {
      SCOPED_TRACE(variant.op.ToString() + variant.name);
      Checker(variant, /*reference=*/false).CheckWholeCall();
    }
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Kernel, IndexOutsideOfTheTableIsAnError) {
  const std::vector<TensorType> operands = {SequentialType({4, 6}),
                                            SequentialType({3}, DataType::kInt64)};
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
  EXPECT_EQ((*kernel)->Run(reads, writes, nullptr).message(),
            "embedding: index 4 is not in [0, 4)");
}

}  // namespace
}  // namespace isomer
