// Networks of the zoo trained with and without recomputation: the same numbers, in less memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/zoo/zoo.h"
#include "pcg/schedule/check.h"
#include "runtime/job.h"

namespace isomer {
namespace {

struct Trained {
  std::vector<double> losses;
  HostValues weights;
  int64_t arena_bytes = 0, peak_bytes = 0;
};

Trained Train(const Model& model, const std::vector<NodeId>& recomputed, Backend* backend) {
  Trained trained;
  auto schedule = LowerGraph(model.graph, SequentialViews(model.graph),
                             {.loss = model.loss,
                              .update = {.optimizer = OptimizerKind::kMomentum},
                              .recomputed = recomputed});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(CheckSchedule(model.graph, *schedule), absl::OkStatus());
  const int64_t predicted = PeakBytes(*schedule);
  auto job = Job::Start(model.graph, *std::move(schedule), backend);
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_EQ((*job)->SetParameters(*InitialWeights(model, 1)), absl::OkStatus());
  for (uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ((*job)->TrainStep(RandomInputs(model.graph, step), 0.05), absl::OkStatus());
    trained.losses.push_back((*job)->Output(model.loss)->data[0]);
  }
  trained.weights = *(*job)->Parameters();
  trained.arena_bytes = (*job)->memory().arena_bytes[0];
  // The arena's gaps aside, what was predicted is what is taken.
  EXPECT_GE(trained.arena_bytes, predicted);
  EXPECT_LE(static_cast<double>(trained.arena_bytes), 1.02 * static_cast<double>(predicted));
  trained.peak_bytes = (*(*job)->UsedMemory())[0].peak;
  return trained;
}

// All but leaves and every `stride`-th of the others.
std::vector<NodeId> AllButEvery(const Graph& graph, int stride) {
  std::vector<NodeId> nodes;
  int count = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (IsLeaf(graph.node({id}).op.kind())) continue;
    if (++count % stride != 0) nodes.push_back({id});
  }
  return nodes;
}

void ExpectEqualInLessMemory(const std::string& spec, int stride) {
  const auto model = BuildZooModel(spec);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto backend = MakeCpuBackend();
  const Trained all = Train(*model, {}, backend.get());
  const Trained some = Train(*model, AllButEvery(model->graph, stride), backend.get());
  for (size_t step = 0; step < all.losses.size(); ++step) {
    EXPECT_NEAR(some.losses[step], all.losses[step], 1e-6 * std::abs(all.losses[step])) << step;
  }
  for (const auto& [name, values] : all.weights) {
    const Array<double>& other = some.weights.at(name);
    for (int64_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(other.data[i], values.data[i], 1e-5) << name << " " << i;
    }
  }
  EXPECT_LT(some.arena_bytes, all.arena_bytes);
  EXPECT_LT(some.peak_bytes, all.peak_bytes);
}

TEST(RecomputationOf, DigitsCnn) { ExpectEqualInLessMemory("digits_cnn?batch=64", 4); }
TEST(RecomputationOf, Encoder) { ExpectEqualInLessMemory("encoder?layers=4&sequence=32", 12); }

}  // namespace
}  // namespace isomer
