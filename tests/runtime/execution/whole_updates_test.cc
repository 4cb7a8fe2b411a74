// LAMB and Muon, which need whole weights, whatever parts of them the devices have; against the
// formulas in double on the model as it is.
#include "runtime/execution/whole_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/check_executions.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/device/update.h"
#include "runtime/execution/job.h"
#include "runtime/execution/muon_weights.h"
#include "runtime/execution/orthogonalize.h"
#include "tests/pcg/schedule/parallel_graphs.h"
#include "tests/pcg/schedule/pipeline_graphs.h"
#include "tests/runtime/agreement.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<double>;

double Norm(const Numbers& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

// Muon's five iterations, in double, as its paper writes them: of the wider side.
Numbers OrthogonalizedInDouble(int64_t rows, int64_t columns, Numbers x) {
  const double norm = std::max(Norm(x), 1e-7);
  for (double& value : x) value /= norm;
  const bool transposed = rows > columns;
  const int64_t m = std::min(rows, columns), n = std::max(rows, columns);
  const auto at = [&](int64_t i, int64_t j) { return transposed ? j * m + i : i * n + j; };
  for (int iteration = 0; iteration < 5; ++iteration) {
    Numbers a(m * m, 0), b(m * m, 0), next(x.size(), 0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        for (int64_t k = 0; k < n; ++k) a[i * m + j] += x[at(i, k)] * x[at(j, k)];
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        b[i * m + j] = -4.775 * a[i * m + j];
        for (int64_t k = 0; k < m; ++k) b[i * m + j] += 2.0315 * a[i * m + k] * a[k * m + j];
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double& value = next[at(i, j)];
        value = 3.4445 * x[at(i, j)];
        for (int64_t k = 0; k < m; ++k) value += b[i * m + k] * x[at(k, j)];
      }
    }
    x = next;
  }
  return x;
}

// One weight.
class InDoubleAsAWhole {
 public:
  InDoubleAsAWhole(OptimizerKind kind, const OptimizerSettings& settings, bool is_matrix)
      : kind_(kind), settings_(settings), is_matrix_(is_matrix) {}

  void Step(const Array<double>& gradient, double rate, Array<double>* weight) {
    ++t_;
    Numbers& w = weight->data;
    m_.resize(w.size());
    v_.resize(w.size());
    if (is_matrix_) return StepOfMatrix(gradient.data, rate, weight);
    Numbers r(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient.data[i];
      m_[i] = settings_.beta1 * m_[i] + (1 - settings_.beta1) * g;
      v_[i] = settings_.beta2 * v_[i] + (1 - settings_.beta2) * g * g;
      const double mean = m_[i] / (1 - std::pow(settings_.beta1, t_));
      const double square = v_[i] / (1 - std::pow(settings_.beta2, t_));
      r[i] = mean / (std::sqrt(square) + settings_.epsilon) + settings_.weight_decay * w[i];
    }
    double factor = settings_.adam_rate;
    if (kind_ == OptimizerKind::kLamb) {
      factor = Norm(w) > 0 && Norm(r) > 0 ? Norm(w) / Norm(r) : 1;
    }
    for (size_t i = 0; i < w.size(); ++i) w[i] -= rate * factor * r[i];
  }

 private:
  void StepOfMatrix(const Numbers& gradient, double rate, Array<double>* weight) {
    const double f = settings_.momentum;
    Numbers x(gradient.size());
    for (size_t i = 0; i < x.size(); ++i) {
      m_[i] = f * m_[i] + (1 - f) * gradient[i];
      x[i] = settings_.nesterov ? f * m_[i] + (1 - f) * gradient[i] : m_[i];
    }
    const auto rows = weight->shape[0], columns = weight->shape[1];
    const Numbers o = OrthogonalizedInDouble(rows, columns, x);
    const auto m = static_cast<double>(rows), n = static_cast<double>(columns);
    const double scale =
        settings_.matches_adam ? 0.2 * std::sqrt(std::max(m, n)) : std::sqrt(std::max(1.0, m / n));
    for (size_t i = 0; i < o.size(); ++i) {
      double& w = weight->data[i];
      w -= rate * (settings_.weight_decay * w + scale * o[i]);
    }
  }

  const OptimizerKind kind_;
  const OptimizerSettings settings_;
  const bool is_matrix_;
  Numbers m_, v_;
  int t_ = 0;
};

struct Way {
  OptimizerKind optimizer;
  OptimizerSettings settings;
};

std::vector<Way> EveryWay() {
  OptimizerSettings lamb = TraitsOf(OptimizerKind::kLamb).settings;
  OptimizerSettings muon = TraitsOf(OptimizerKind::kMuon).settings;
  // Small gradients are not lost in it, nor their rounding blown up.
  lamb.epsilon = muon.epsilon = 1e-4;
  std::vector<Way> ways = {{OptimizerKind::kLamb, lamb}, {OptimizerKind::kMuon, muon}};
  for (Way way : {ways[0], ways[1]}) {
    way.settings.weight_decay = 0.1;
    way.settings.nesterov = false;
    way.settings.matches_adam = false;
    way.settings.adam_rate = 0.5;
    ways.push_back(way);
  }
  return ways;
}

std::set<std::string> Matrices(const Graph& graph) {
  std::set<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (node.op.kind() == OpKind::kWeight && node.outputs[0].rank() == 2) names.insert(node.name);
  }
  return names;
}

void ExpectTrainsAsInDouble(const Model& model, const Graph& parallel, const Schedule& schedule,
                            const Way& way, double tolerance = 2e-4) {
  const auto backend = MakeCpuBackend();
  const std::set<std::string> matrices = Matrices(model.graph);
  const auto job = Job::Start(parallel, schedule, backend.get(),
                              {.optimizer = way.settings, .no_decay = "", .matrices = matrices});
  ASSERT_TRUE(job.ok()) << job.status();
  HostValues weights = InitialWeights(model, 3).value();
  ASSERT_EQ((*job)->SetParameters(weights), absl::OkStatus());
  const bool is_muon = way.optimizer == OptimizerKind::kMuon;
  std::map<std::string, InDoubleAsAWhole> optimizers;
  for (const auto& [name, value] : weights) {
    optimizers.emplace(
        std::piecewise_construct, std::forward_as_tuple(name),
        std::forward_as_tuple(way.optimizer, way.settings, is_muon && matrices.contains(name)));
  }
  for (int t = 1; t <= 3; ++t) {
    const HostValues inputs = RandomInputs(model.graph, t);
    const auto step = ReferenceStep(model, weights, inputs, true);
    ASSERT_TRUE(step.ok()) << step.status();
    for (const auto& [name, gradient] : step->gradients) {
      // The loss does not depend on it: it is not trained.
      if (Norm(gradient.data) == 0) continue;
      optimizers.at(name).Step(gradient, 0.02, &weights.at(name));
    }
    ASSERT_EQ((*job)->TrainStep(inputs, 0.02), absl::OkStatus());
  }
  const StepValues expected{.outputs = weights, .gradients = {}};
  const Comparison comparison =
      Compare(expected, {.outputs = (*job)->Parameters().value(), .gradients = {}},
              ShareOf(expected, tolerance));
  EXPECT_TRUE(comparison.agrees()) << comparison.worst;
}

std::vector<UpdateMethod> Methods() {
  std::vector<UpdateMethod> methods;
  for (const UpdateMethodTraits& traits : AllUpdateMethods()) methods.push_back(traits.method);
  return methods;
}

class WholeUpdatesTest : public testing::TestWithParam<ParallelCase> {};

TEST_P(WholeUpdatesTest, TrainAsInDouble) {
  const ParallelCase& c = GetParam();
  Model model;
  model.graph = Parsed(c.sequential);
  model.loss = "loss";
  const Graph parallel = Parsed(c.parallel);
  for (const Way& way : EveryWay()) {
    for (UpdateMethod method : Methods()) {
      SCOPED_TRACE(absl::StrCat(OptimizerName(way.optimizer), " ", way.settings.weight_decay, " ",
                                UpdateMethodName(method)));
      ScheduleOptions options = TrainingOptions(c.num_devices);
      // What is immediate waits.
      options.update = {.optimizer = way.optimizer, .method = method, .immediate = true};
      const auto schedule = LowerGraph(parallel, ViewsOf(parallel, c.strides), options);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      ASSERT_EQ(CheckSchedule(parallel, *schedule), absl::OkStatus());
      ExpectTrainsAsInDouble(model, parallel, *schedule, way);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, WholeUpdatesTest, testing::ValuesIn(ParallelCases()),
                         [](const auto& info) { return info.param.name; });

TEST(WholeUpdates, TrainPipelinesAsInDouble) {
  for (const StagedMlp& pipeline :
       {StagedMlp{}, StagedMlp{.data = 2, .micro_batches = 2}, StagedMlp{.stages = 1, .data = 4},
        StagedMlp{.stages = 4, .micro_batches = 4, .shortcut = true}}) {
    const PipelineGraphs graphs = MakePipeline(pipeline);
    for (const Way& way : EveryWay()) {
      for (UpdateMethod method : Methods()) {
        SCOPED_TRACE(absl::StrCat(pipeline.Name(), " ", OptimizerName(way.optimizer), " ",
                                  UpdateMethodName(method)));
        const Schedule schedule =
            LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                            {.optimizer = way.optimizer, .method = method});
        ExpectTrainsAsInDouble(graphs.model, graphs.mapped.graph, schedule, way);
      }
    }
  }
}

TEST(WholeUpdates, AreTheSameToTheBitHoweverQueuesRun) {
  const StagedMlp pipeline = {.data = 2, .micro_batches = 2};
  const PipelineGraphs graphs = MakePipeline(pipeline);
  const auto backend = MakeCpuBackend();
  const HostValues weights = InitialWeights(graphs.model, 3).value();
  const HostValues inputs = RandomInputs(graphs.model.graph, 5);
  for (OptimizerKind optimizer : {OptimizerKind::kLamb, OptimizerKind::kMuon}) {
    for (UpdateMethod method : Methods()) {
      const Schedule schedule =
          LoweredPipeline(pipeline, graphs.mapped, PipelineOrder::kOneForwardOneBackward, {},
                          {.optimizer = optimizer, .method = method, .averages = true});
      const auto check =
          CheckExecutions(graphs.mapped.graph, schedule, weights, inputs, 0.1, 2, backend.get(),
                          {.clip_norm = 0.01, .matrices = Matrices(graphs.model.graph)});
      ASSERT_TRUE(check.ok()) << check.status();
      EXPECT_EQ(check->difference, "") << OptimizerName(optimizer) << UpdateMethodName(method);
    }
  }
}

// Masters in float32, whole and in parts: against the same plan's all_reduce, to the bit where
// norms are added in one order, and nearly elsewhere.
TEST(WholeUpdates, TrainMastersOfLowPrecision) {
  for (OptimizerKind optimizer : {OptimizerKind::kLamb, OptimizerKind::kMuon}) {
    HostValues expected;
    for (UpdateMethod method : Methods()) {
      Plan plan = MicroBatchPlan({.layers = 2, .stages = 1, .data = 2, .micro_batches = 2},
                                 DataType::kBFloat16);
      plan.update = {.optimizer = optimizer, .method = method};
      const auto lowered = LowerPlan(plan, /*keep_gradients=*/true);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const auto backend = MakeCpuBackend();
      const auto job = Job::Start(lowered->mapped.graph, lowered->schedule, backend.get(),
                                  {.matrices = Matrices(plan.model.graph)});
      ASSERT_TRUE(job.ok()) << job.status();
      ASSERT_EQ((*job)->SetParameters(InitialWeights(plan.model, 3).value()), absl::OkStatus());
      for (int t = 1; t <= 2; ++t) {
        ASSERT_EQ((*job)->TrainStep(RandomInputs(plan.model.graph, t), 0.02), absl::OkStatus());
      }
      const HostValues found = (*job)->Parameters().value();
      if (expected.empty()) expected = found;
      const StepValues as_values{.outputs = expected, .gradients = {}};
      const Comparison comparison =
          Compare(as_values, {.outputs = found, .gradients = {}}, ShareOf(as_values, 1e-3));
      EXPECT_TRUE(comparison.agrees()) << UpdateMethodName(method) << " " << comparison.worst;
    }
  }
}

// A weight of zeros, a single number, and one row.
TEST(WholeUpdates, TakeOddWeights) {
  Model model;
  model.graph = Parsed(R"(
%0 = input "x" : f32[6,5]
%1 = weight "w" : f32[5,7]
%2 = weight "zero" : f32[7]
%3 = weight "number" : f32[]
%4 = weight "row" : f32[1,7]
%5 = input "y" : f32[6,7]
%6 = matmul(%0, %1) : f32[6,7]
%7 = add(%6, %2) : f32[6,7]
%8 = mul(%7, %3) : f32[6,7]
%9 = add(%8, %4) : f32[6,7]
%10 = mse(%9, %5) : f32[]
output "loss" = %10
)");
  model.loss = "loss";
  model.weights["zero"] = std::vector<float>(7, 0);
  for (const Way& way : EveryWay()) {
    SCOPED_TRACE(OptimizerName(way.optimizer));
    ScheduleOptions options = TrainingOptions(1);
    options.update.optimizer = way.optimizer;
    const auto schedule = LowerGraph(model.graph, SequentialViews(model.graph), options);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    ExpectTrainsAsInDouble(model, model.graph, *schedule, way);
  }
}

TEST(Orthogonalize, BringsSingularValuesNearOne) {
  std::vector<float> zeros(12, 0);
  ASSERT_EQ(Orthogonalize(3, 4, zeros.data()), absl::OkStatus());
  EXPECT_EQ(zeros, std::vector<float>(12, 0));
  for (const auto& [rows, columns] : {std::pair(7, 11), std::pair(11, 7), std::pair(1, 5)}) {
    std::vector<float> x(rows * columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.7 * i * i));
    const Numbers expected = OrthogonalizedInDouble(rows, columns, {x.begin(), x.end()});
    ASSERT_EQ(Orthogonalize(rows, columns, x.data()), absl::OkStatus());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], expected[i], 1e-4);
  }
}

// What torch 2.15 gives: torch.optim.Muon with weight decay 0.1, which iterates in bfloat16, whose
// rounding is the tolerance.
TEST(Orthogonalize, TrainsAsPyTorchsMuon) {
  struct Known {
    double scale;
    std::vector<float> weights;
  };
  for (const Known& known :
       std::vector<Known>{{1, {0.504060F, -0.205325F, 2.028696F, 1.071091F, 0.167697F, -0.702224F}},
                          {0.2 * std::sqrt(3.0),
                           {0.493318F, -0.262350F, 1.977586F, 1.008450F, 0.121833F, -0.689446F}}}) {
    std::vector<float> w = {0.5F, -0.3F, 2, 1, 0.1F, -0.7F}, g(6), momentum(6, 0), direction(6);
    const UpdateRule rule(OptimizerKind::kMuon);
    for (int t = 1; t <= 5; ++t) {
      for (int i = 0; i < 6; ++i) g[i] = static_cast<float>(std::sin(t + i));
      AdvanceMomentum(rule, {}, {DataType::kFloat32, g.data()}, 6, momentum.data(),
                      direction.data());
      ASSERT_EQ(Orthogonalize(2, 3, direction.data()), absl::OkStatus());
      UpdateWeights(OptimizerKind::kSgd,
                    {.rate = 0.05 * known.scale, .shrink = 1 - 0.05 * 0.1, .pull = 0},
                    {DataType::kFloat32, direction.data()}, 6, w.data(), w.data(), {});
    }
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(w[i], known.weights[i], 3e-3 * known.scale) << i;
  }
}

TEST(MuonWeights, AreMatricesOfProductsButTheLastAndTables) {
  const Graph graph = Parsed(R"(
%0 = input "ids" : i64[6]
%1 = weight "table" : f32[9,5]
%2 = embedding(%1, %0) : f32[6,5]
%3 = weight "w1" : f32[5,7]
%4 = weight "places" : f32[6,7]
%5 = weight "bias" : f32[7]
%6 = weight "w2" : f32[5,7]
%7 = matmul(%2, %3) : f32[6,7]
%8 = add(%7, %4) : f32[6,7]
%9 = add(%8, %5) : f32[6,7]
%10 = transpose(%6) {perm=[1,0]} : f32[7,5]
%11 = matmul(%9, %10) : f32[6,5]
%12 = transpose(%1) {perm=[1,0]} : f32[5,9]
%13 = matmul(%11, %12) : f32[6,9]
%14 = input "labels" : i64[6]
%15 = cross_entropy(%13, %14) : f32[]
output "loss" = %15
)");
  using testing::ElementsAre;
  EXPECT_THAT(MuonWeights(graph, std::nullopt).value(), ElementsAre("w1", "w2"));
  EXPECT_THAT(MuonWeights(graph, "^w|pla").value(), ElementsAre("places", "w1", "w2"));
  EXPECT_THAT(MuonWeights(graph, "b|2").value(), ElementsAre("table", "w2"));
  EXPECT_THAT(MuonWeights(graph, "bias").status().message(),
              HasSubstr("--muon=bias: matches no weight of two dims"));
  EXPECT_THAT(MuonWeights(graph, "(").status().message(), HasSubstr("is no regular expression"));
}

}  // namespace
}  // namespace isomer
