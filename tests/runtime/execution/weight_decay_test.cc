#include "runtime/execution/weight_decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// Two weights in one stored tensor, and two biases in another.
constexpr char kArranged[] = R"(
%0 = input "x" : f32[6,5]
%1 = weight "a.weight" : f32[5,3]
%2 = weight "b.weight" : f32[5,4]
%3 = weight "a.bias" : f32[3]
%4 = weight "b.bias" : f32[4]
%5 = input "labels" : i64[6]
%6 = concat(%1, %2) {axis=1} : f32[5,7]
%7 = concat(%3, %4) {axis=0} : f32[7]
%8 = matmul(%0, %6) : f32[6,7]
%9 = add(%8, %7) : f32[6,7]
%10 = cross_entropy(%9, %5) : f32[]
output "loss" = %10
)";

Schedule LoweredOnOneDevice(const Graph& graph) {
  auto schedule = LowerGraph(graph, SequentialViews(graph), TrainingOptions(1));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

TEST(WeightDecay, IsForWeightsOfSeveralDims) {
  const Graph graph = Parsed(kArranged);
  const Schedule schedule = LoweredOnOneDevice(graph);
  ASSERT_EQ(schedule.parameters.size(), 2);
  const auto size = [&](const std::optional<std::string>& no_decay) {
    const auto decaying = DecayingTensors(graph, schedule, no_decay);
    EXPECT_TRUE(decaying.ok()) << decaying.status();
    return decaying.ok() ? decaying->size() : 99;
  };
  EXPECT_EQ(size(std::nullopt), 1);
  EXPECT_EQ(size(""), 2);
  EXPECT_EQ(size("bias$"), 1);
  EXPECT_EQ(size("."), 0);
  const auto message = [&](const std::string& no_decay) {
    return std::string(DecayingTensors(graph, schedule, no_decay).status().message());
  };
  EXPECT_THAT(message("^b\\.w"), HasSubstr("--weight_decay: 'a.weight' decays and 'b.weight' does "
                                           "not, but the plan keeps them in one tensor"));
  EXPECT_THAT(message("^a\\.b"), HasSubstr("'b.bias' decays and 'a.bias' does not"));
  EXPECT_THAT(message("[a"), HasSubstr("--no_decay=[a: is no regular expression"));
  EXPECT_THAT(message("norm"), HasSubstr("--no_decay=norm: matches no weight that is trained"));
}

// With a gradient of zero what is left of a weight is its decay.
TEST(WeightDecay, LeavesOtherWeightsAlone) {
  const Graph graph = Parsed(kArranged);
  Model model;
  model.graph = graph;
  model.loss = "loss";
  const auto backend = MakeCpuBackend();
  const HostValues weights = InitialWeights(model, 3).value();
  const auto trained = [&](double decay, const std::optional<std::string>& no_decay) {
    OptimizerSettings settings;
    settings.weight_decay = decay;
    const auto job = Job::Start(graph, LoweredOnOneDevice(graph), backend.get(),
                                {.optimizer = settings, .no_decay = no_decay});
    EXPECT_TRUE(job.ok()) << job.status();
    EXPECT_EQ((*job)->SetParameters(weights), absl::OkStatus());
    EXPECT_EQ((*job)->TrainStep(RandomInputs(graph, 1), 0.5), absl::OkStatus());
    return (*job)->Parameters().value();
  };
  const HostValues plain = trained(0, std::nullopt);
  const HostValues by_dims = trained(0.1, std::nullopt), all = trained(0.1, "");
  for (const auto& [name, before] : weights) {
    for (int64_t i = 0; i < before.size(); ++i) {
      const double decayed = plain.at(name).data[i] - 0.5 * 0.1 * before.data[i];
      EXPECT_NEAR(all.at(name).data[i], decayed, 1e-6) << name;
      const bool is_bias = before.shape.size() == 1;
      EXPECT_NEAR(by_dims.at(name).data[i], is_bias ? plain.at(name).data[i] : decayed, 1e-6)
          << name;
    }
  }
}

}  // namespace
}  // namespace isomer
