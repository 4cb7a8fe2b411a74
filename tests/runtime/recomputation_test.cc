// Networks of the zoo trained with and without recomputation: the same numbers, in less memory.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "models/loss.h"
#include "models/zoo/zoo.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"

namespace isomer {
namespace {

struct Trained {
  std::vector<double> losses;
  HostValues weights;
  int64_t arena_bytes = 0, peak_bytes = 0;
};

Trained Train(const Model& model, const std::vector<NodeId>& recomputed, Backend* backend) {
  Trained trained;
  ScheduleOptions options;
  options.loss = model.loss;
  options.update.optimizer = OptimizerKind::kMomentum;
  options.recomputed = recomputed;
  auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), options);
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
  EXPECT_GE(trained.arena_bytes, PeakBytes((*job)->schedule()));
  // The arena's gaps aside, what was predicted is what is taken, and no more than the largest
  // workspace beside it.
  int64_t workspace = 0;
  for (const Task& task : (*job)->schedule().tasks) {
    workspace = std::max(workspace, task.workspace_bytes);
  }
  EXPECT_LE(static_cast<double>(trained.arena_bytes - workspace),
            1.02 * static_cast<double>(predicted));
  trained.peak_bytes = (*(*job)->UsedMemory())[0].peak;
  return trained;
}

// Nodes but leaves that are to be recomputed, by their number among such and their name.
using Choice = std::function<bool(int number, absl::string_view name)>;
std::vector<NodeId> Chosen(const Graph& graph, const Choice& choice) {
  std::vector<NodeId> nodes;
  int number = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (!IsLeaf(node.op.kind()) && choice(++number, node.name)) nodes.push_back({id});
  }
  return nodes;
}

void ExpectEqualInLessMemory(const std::string& spec, const Choice& choice) {
  auto model = BuildZooModel(spec);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(AttachLoss(&*model, "auto"), absl::OkStatus());
  const auto backend = MakeCpuBackend();
  const Trained all = Train(*model, {}, backend.get());
  const Trained some = Train(*model, Chosen(model->graph, choice), backend.get());
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

TEST(RecomputationOf, DigitsCnn) {
  ExpectEqualInLessMemory("digits_cnn?batch=64", [](int, absl::string_view name) {
    return absl::StartsWith(name, "conv1");
  });
}
TEST(RecomputationOf, Encoder) {
  ExpectEqualInLessMemory("encoder?layers=4&seq=32",
                          [](int number, absl::string_view) { return number % 12 != 0; });
}

}  // namespace
}  // namespace isomer
