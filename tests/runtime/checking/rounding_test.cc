#include "runtime/checking/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "pcg/ir/precision.h"
#include "pcg/schedule/schedule.h"
#include "runtime/checking/rounding_backend.h"
#include "runtime/checking/rounding_noise.h"
#include "runtime/cpu/cpu_backend.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"

namespace isomer {
namespace {

// The call of node `id` of a sequential graph.
KernelCall CallOf(const Graph& graph, int id, bool gradient) {
  const Node& node = graph.node(id);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  const auto sharding = InferSharding(node.op, operands);
  EXPECT_TRUE(sharding.ok()) << sharding.status();
  return MakeKernelCall(node.op, *sharding, operands, 0, gradient,
                        std::vector<bool>(operands.size(), true));
}

TEST(LongestSum, OfForwardCallsAndGradients) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[64,16]
%1 = weight "w" : f32[16,32]
%2 = matmul(%0, %1) : f32[64,32]
%3 = relu(%2) : f32[64,32]
%4 = softmax(%3) {axis=1} : f32[64,32]
%5 = input "image" : f32[4,3,8,8]
%6 = weight "kernel" : f32[5,3,3,3]
%7 = conv2d(%5, %6) {dilation=[1,1], groups=1, padding=[1,1,1,1], stride=[1,1]} : f32[4,5,8,8]
output "y" = %4
output "z" = %7
)");
  const auto sum = [&](int id, bool gradient) { return LongestSum(CallOf(graph, id, gradient)); };
  EXPECT_EQ(sum(2, false), 16);
  EXPECT_EQ(sum(2, true), 64) << "the weight's, over the rows";
  EXPECT_EQ(sum(3, false), 1);
  EXPECT_EQ(sum(3, true), 1);
  EXPECT_EQ(sum(4, false), 32);
  EXPECT_EQ(sum(4, true), 32);
  EXPECT_EQ(sum(7, false), 27);
  EXPECT_EQ(sum(7, true), 4 * 8 * 8) << "the kernel's, over the pixels";
}

// Noise would make other indices of the numbers of elements that a look-up between elements floors.
TEST(NoiseOfWrite, WholeNumbersStayWhole) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[64,16]
%1 = floor(%0) : f32[64,16]
%2 = round(%0) : f32[64,16]
%3 = sub(%0, %1) : f32[64,16]
output "y" = %2
output "z" = %3
)");
  const auto noise = [&](int id, DataType precision) {
    return NoiseOfWrite(CallOf(graph, id, /*gradient=*/false), 0, {.precision = precision});
  };
  EXPECT_FALSE(noise(1, DataType::kFloat32).any());
  EXPECT_FALSE(noise(2, DataType::kFloat32).any());
  EXPECT_TRUE(noise(3, DataType::kFloat32).any());
  EXPECT_TRUE(noise(1, DataType::kBFloat16).any()) << "which has no whole numbers above 256";
}

TEST(TermsOfPlainSum, OfBiasesAndMeans) {
  const Graph graph = Parsed(R"(
%0 = input "x" : f32[64,16]
%1 = weight "b" : f32[16]
%2 = add(%0, %1) : f32[64,16]
%3 = weight "w" : f32[16,32]
%4 = matmul(%2, %3) : f32[64,32]
%5 = input "target" : f32[64,32]
%6 = mse(%4, %5) : f32[]
output "y" = %6
)");
  EXPECT_EQ(TermsOfPlainSum(CallOf(graph, 2, true), 0), 1);
  EXPECT_EQ(TermsOfPlainSum(CallOf(graph, 2, true), 1), 64);
  EXPECT_EQ(TermsOfPlainSum(CallOf(graph, 4, true), 1), 1) << "of products";
  EXPECT_EQ(TermsOfPlainSum(CallOf(graph, 6, false), 0), 64 * 32);
}

TEST(RoundingOf, CountsThePartsThatLowPrecisionAddsUp) {
  const std::map<std::string, std::pair<int64_t, int64_t>> parts = {
      {"DataParallelMlp", {4, 4}},  // forward the loss
      {"ColumnRowParallelMlp", {4, 4}},
      {"BranchesOnTwoDevices", {2, 2}}};  // one sum of two branches
  for (const ParallelCase& c : ParallelCases()) {
    const auto found = parts.find(c.name);
    if (found == parts.end()) continue;
    const Schedule schedule = Lowered(c);
    const Rounding rounding = RoundingOf(DataType::kFloat16, schedule);
    EXPECT_EQ(rounding.forward_parts + 1, found->second.first) << c.name;
    EXPECT_EQ(rounding.gradient_parts + 1, found->second.second) << c.name;
    EXPECT_EQ(RoundingOf(DataType::kFloat32, schedule).gradient_parts, 0);
  }
}

TEST(RoundingOf, TakesGradientsThatAreSummedInLowPrecisionForStoredInIt) {
  Schedule schedule;
  schedule.options.update.gradient_sums = DataType::kBFloat16;
  const Rounding lossy = RoundingOf(DataType::kFloat32, schedule);
  EXPECT_TRUE(IsLow(lossy));
  EXPECT_EQ(StoredIn(lossy, /*gradient=*/false), DataType::kFloat32);
  EXPECT_EQ(StoredIn(lossy, /*gradient=*/true), DataType::kBFloat16);
  EXPECT_EQ(lossy.ToString(), "float32, gradients in bfloat16");
  EXPECT_EQ(RoundingOf(DataType::kBFloat16, schedule).ToString(), "bfloat16");
  EXPECT_FALSE(IsLow(RoundingOf(DataType::kFloat32, Schedule())));
}

TEST(RoundingOf, CountsMicroBatches) {
  const StagedMlp pipeline{.layers = 4, .stages = 2, .data = 2, .micro_batches = 4};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const Rounding rounding =
      RoundingOf(DataType::kBFloat16, LoweredPipeline(pipeline, graphs.mapped));
  EXPECT_EQ(rounding.gradient_parts + 1, 8) << "four of each of two devices";
  EXPECT_EQ(rounding.ToString(), "bfloat16, sums of 8 parts, gradients of 8 parts");
}

// The deviation of what a kernel writes, relative to it.
double Deviation(const Rounding& rounding, double amplitude) {
  const Graph graph =
      Parsed("%0 = input \"x\" : f32[4096]\n%1 = relu(%0) : f32[4096]\noutput \"y\" = %1\n");
  const auto cpu = MakeCpuBackend();
  RoundingBackend backend(cpu.get(), rounding, 1);
  auto kernel = backend.MakeKernel(CallOf(graph, 1, false));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (amplitude >= 0) backend.StartNoise(amplitude);
  std::vector<float> x(4096), y(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 0 : 1 + static_cast<float>(i) / 4096;
  const void* const reads[] = {x.data()};
  void* const writes[] = {y.data()};
  EXPECT_EQ((*kernel)->Run(reads, writes, nullptr), absl::OkStatus());
  double squares = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 2 == 0) {
      EXPECT_EQ(y[i], 0) << "zeros are exact";
    } else {
      squares += std::pow((y[i] - x[i]) / x[i], 2);
    }
  }
  return std::sqrt(squares / 2048);
}

TEST(RoundingBackend, DeviatesAsMuchAsItSays) {
  EXPECT_EQ(Deviation({.precision = DataType::kBFloat16}, -1), 0) << "before it is told to";
  EXPECT_EQ(Deviation({}, 0), 0);
  // Operand and result, uniform in [-u, u] and in sqrt(1 + 4) times that.
  const double u = UnitRoundoff(DataType::kFloat32);
  EXPECT_NEAR(Deviation({}, 2) / u, std::sqrt((1 + 5) / 3.0), 0.15);
  // Rounding alone is uniform within the half of a unit of the last place.
  const double low = UnitRoundoff(DataType::kBFloat16);
  EXPECT_NEAR(Deviation({.precision = DataType::kBFloat16}, 0) / low, 0.41, 0.03);
  EXPECT_NEAR(Deviation({.precision = DataType::kBFloat16}, 2) / low, 1.2, 0.15);
  // Sums of four parts: twice the noise.
  EXPECT_NEAR(Deviation({.precision = DataType::kBFloat16, .forward_parts = 3}, 2) / low, 2.3, 0.2);
}

}  // namespace
}  // namespace isomer
