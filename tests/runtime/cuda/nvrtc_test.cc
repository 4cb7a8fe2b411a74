// Generated kernels for GPUs, as NVRTC compiles them. Needs no GPU; where there is no NVRTC, only
// that a program says so.
#include "runtime/cuda/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/examples.h"
#include "runtime/cuda/generated_kernel.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// All kernels of the examples, forward and gradient.
std::string TextOfExamples(const std::vector<ExampleCall>& examples,
                           const SharingLimits& limits = {}) {
  std::string text(KernelPrelude());
  int number = 0;
  for (const ExampleCall& example : examples) {
    Operator op = example.op;
    EXPECT_TRUE(NormalizeAttributes(&op).ok());
    const auto sharding = InferSharding(op, example.operands);
    EXPECT_TRUE(sharding.ok()) << sharding.status();
    std::vector<bool> wanted;
    for (const TensorType& type : example.operands) wanted.push_back(IsFloat(type.dtype));
    for (const bool gradient : {false, true}) {
      if (gradient && absl::c_find(wanted, true) == wanted.end()) continue;
      const KernelCall call = MakeKernelCall(op, *sharding, example.operands, 0, gradient,
                                             gradient ? wanted : std::vector<bool>());
      const auto kernel = GenerateKernel(call, absl::StrCat("k", number++), limits);
      if (kernel) text += kernel->text;
    }
  }
  return text;
}

TEST(Nvrtc, CompilesWhatIsGenerated) {
  if (const absl::Status has = HasNvrtc(); !has.ok()) {
    EXPECT_THAT(has.message(), HasSubstr("libnvrtc.so"));
    GTEST_SKIP() << has.message();
  }
  // One of each operator.
  std::vector<ExampleCall> examples;
  for (const ExampleCall& example : Examples()) {
    if (examples.empty() || examples.back().op.kind() != example.op.kind()) {
      examples.push_back(example);
    }
  }
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
    // On one of them with all reductions shared by the threads of a block.
    const bool shares = absl::string_view(architecture) == "sm_90";
    const std::string text =
        TextOfExamples(examples, shares ? SharingLimits{.shortest_reduction = 2, .fewest_rows = 1}
                                        : SharingLimits());
    const auto cubin = CompileForGpu(text, architecture);
    ASSERT_TRUE(cubin.ok()) << cubin.status();
    EXPECT_THAT(*cubin, StartsWith("\177ELF"));
    const auto operations =
        CompileForGpu(absl::StrCat(KernelPrelude(), OperationKernels()), architecture);
    ASSERT_TRUE(operations.ok()) << operations.status();
    EXPECT_THAT(*operations, HasSubstr("isomer_sum_pieces"));
  }
}

// Numbers that a float does not hold: compilers for the host only warn.
TEST(Nvrtc, TakesAllNumbers) {
  if (!HasNvrtc().ok()) GTEST_SKIP() << HasNvrtc().message();
  std::vector<ExampleCall> calls;
  for (const char* op :
       {"clip(min=0,max=1e300)", "scale(factor=3.5e38)", "scale(factor=1e-46)",
        "scale(factor=-1.7976931348623157e308)", "clip(min=-inf,max=inf)", "clip(min=nan,max=1)"}) {
    calls.push_back({op, ParseOperator(op).value(), {SequentialType({4})}});
  }
  const auto cubin = CompileForGpu(TextOfExamples(calls), "sm_90");
  EXPECT_TRUE(cubin.ok()) << cubin.status();
}

TEST(Nvrtc, ErrorsSayWhatIsWrong) {
  if (!HasNvrtc().ok()) GTEST_SKIP() << HasNvrtc().message();
  const auto wrong =
      CompileForGpu("extern \"C\" __global__ void k() { no_such_function(); }", "sm_90");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(wrong.status().message(), HasSubstr("no_such_function"));
  const auto unknown = CompileForGpu("extern \"C\" __global__ void k() {}", "sm_1");
  EXPECT_THAT(unknown.status().message(), HasSubstr("sm_1"));
}

}  // namespace
}  // namespace isomer
