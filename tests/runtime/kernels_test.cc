// Every kernel of the cpu backend against the reference evaluator in double, on every example call
// and every data type that it takes: forward and gradient, the whole call and each of its shards
// when any one dim is partitioned; and with the channels of images innermost, of all of them or of
// one.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
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

// The reference evaluator is thousands of times slower than a kernel: here is what runs on it, the
// gating of GShard's experts (no ONNX file has it), and what few networks do with integers.
TEST(Kernel, OperatorsOfNetworksHaveTheirOwn) {
  std::set<std::string> without;
  for (const ExampleCall& example : Examples()) {
    Operator op = example.op;
    ASSERT_TRUE(NormalizeAttributes(&op).ok());
    const auto sharding = InferSharding(op, example.operands);
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    std::vector<bool> wanted;
    for (size_t o = 0; o < example.operands.size(); ++o) {
      wanted.push_back(IsFloat(example.operands[o].dtype) &&
                       HoldsValues(op.kind(), static_cast<int>(o)));
    }
    const auto check = [&](bool gradient) {
      const KernelCall call = MakeKernelCall(op, *sharding, example.operands, 0, gradient,
                                             gradient ? wanted : std::vector<bool>());
      if (HasCpuKernel(call)) return;
      const DataType dtype = example.operands[0].dtype;
      without.insert(absl::StrCat(op.name(), IsFloat(dtype) ? "" : " of integers",
                                  gradient ? " gradient" : ""));
    };
    check(false);
    if (absl::c_linear_search(wanted, true)) check(true);
  }
  EXPECT_EQ(without, (std::set<std::string>{"argmax of integers", "reduce_max of integers",
                                            "scatter_elements of integers", "top2_gating",
                                            "top2_gating gradient", "topk of integers"}));
}

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

// Of more lines side by side than are computed together, and of lines of one element.
TEST(Kernel, SoftmaxesOverOtherAxesThanTheLast) {
  for (const OpKind kind : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    for (const int64_t axis : {0, 1, 2, 3}) {
      for (const Ints& sizes : {Ints{2, 3, 20, 30}, Ints{4, 1, 6, 1}, Ints{3, 40, 1, 2}}) {
        const ExampleCall call = {
            "softmax", Operator(kind, {{"axis", axis}}), {SequentialType(sizes)}};
        SCOPED_TRACE(call.op.ToString());
        Checker(call, /*reference=*/false).CheckWholeCall();
        Checker(call, /*reference=*/false).Set(0, -1e9).CheckWholeCall();
      }
    }
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

// Whose gradients, too, have a kernel, whole and in parts: windows that leave gaps, that lie in
// padding alone, more groups than blocks of channels, images that end behind the last window.
TEST(Kernel, TransposedConvolutions) {
  struct Case {
    std::string name;
    Ints stride, padding, dilation, output_padding;
    int64_t groups;
    Ints image, weights;
  };
  const std::vector<Case> cases = {
      {"of blocks", {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, 1, {2, 16, 4, 6}, {16, 32, 4, 4}},
      {"odd", {2, 2}, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1, {2, 6, 4, 4}, {6, 10, 3, 3}},
      {"with gaps", {3, 4}, {0, 0, 0, 0}, {1, 1}, {2, 0}, 1, {2, 4, 4, 2}, {4, 2, 2, 1}},
      {"of one stride", {1, 1}, {1, 0, 1, 2}, {1, 1}, {0, 0}, 1, {2, 4, 6, 4}, {4, 4, 3, 3}},
      {"of points", {1, 1}, {0, 0, 0, 0}, {1, 1}, {0, 0}, 1, {2, 4, 4, 4}, {4, 6, 1, 1}},
      {"dilated", {2, 1}, {2, 1, 0, 3}, {2, 3}, {1, 0}, 2, {2, 4, 4, 4}, {4, 3, 3, 2}},
      {"depthwise", {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 0}, 8, {2, 8, 4, 4}, {8, 1, 4, 4}},
      {"cut off", {2, 2}, {5, 0, 5, 0}, {1, 1}, {0, 0}, 1, {2, 4, 8, 4}, {4, 4, 2, 3}},
      {"of lines", {4}, {2, 2}, {1}, {3}, 1, {2, 16, 8}, {16, 8, 8}},
      {"of volumes",
       {2, 1, 2},
       {1, 0, 0, 1, 1, 0},
       {1, 2, 1},
       {0, 0, 1},
       2,
       {2, 4, 2, 4, 2},
       {4, 2, 3, 2, 2}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const ExampleCall call = {
        c.name,
        Operator(OpKind::kConvTranspose, {{"stride", c.stride},
                                          {"padding", c.padding},
                                          {"dilation", c.dilation},
                                          {"output_padding", c.output_padding},
                                          {"groups", c.groups}}),
        {SequentialType(c.image), SequentialType(c.weights)}};
    const auto sharding = InferSharding(call.op, call.operands);
    ASSERT_TRUE(sharding.ok()) << sharding.status();
    for (const bool gradient : {false, true}) {
      const std::vector<bool> wanted(gradient ? 2 : 0, true);
      EXPECT_TRUE(
          HasCpuKernel(MakeKernelCall(call.op, *sharding, call.operands, 0, gradient, wanted)));
    }
    Checker checker(call, /*reference=*/false);
    checker.CheckWholeCall();
    checker.CheckEveryShard();
  }
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
