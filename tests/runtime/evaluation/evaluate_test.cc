// Tests between steps beside what is computed by hand: every row once, and the evaluation form.
#include "runtime/evaluation/evaluate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/evaluation_form.h"
#include "pcg/ir/machine_view.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/data/feeder.h"
#include "runtime/evaluation/scored_output.h"
#include "runtime/execution/evaluation_calls.h"
#include "runtime/execution/job.h"
#include "tests/runtime/data/made_files.h"

namespace isomer {
namespace {

constexpr int64_t kBatch = 4, kFeatures = 3, kClassesOfRows = 4;

// x [4,3] -> linear, batch norm of the batch, dropout, linear -> logits [4,4], as asked for.
Model ClassifierOf(bool normalises, bool drops) {
  Model model;
  model.name = "classifier";
  Graph& graph = model.graph;
  TensorRef x = graph.AddInput("x", SequentialType({kBatch, kFeatures}));
  const TensorRef w = graph.AddWeight("w", SequentialType({kFeatures, 5}));
  x = *graph.AddOp(OpKind::kMatMul, {x, w});
  if (normalises) {
    const TensorRef scale = graph.AddWeight("scale", SequentialType({5}));
    const TensorRef shift = graph.AddWeight("shift", SequentialType({5}));
    graph.AddConstant("mean", SequentialType({5}));
    graph.AddConstant("variance", SequentialType({5}));
    const NodeId norm = *graph.Add(Operator(OpKind::kBatchNormTraining, {{"epsilon", 0.001}}),
                                   {x, scale, shift}, "norm");
    x = {norm, 0};
    model.statistics = {{"scale", "mean", "variance", 0.75}};
    model.weights["mean"] = std::vector<float>(5, 0);
    model.weights["variance"] = std::vector<float>(5, 1);
  }
  if (drops) {
    const TensorRef seed = graph.AddInput("seed", SequentialType({}, DataType::kInt64));
    x = *graph.AddOp(Operator(OpKind::kDropout, {{"rate", 0.9}, {"salt", int64_t{3}}}), {x, seed});
  }
  const TensorRef v = graph.AddWeight("v", SequentialType({5, kClassesOfRows}));
  const TensorRef logits = *graph.AddOp(OpKind::kMatMul, {x, v});
  const TensorRef labels = graph.AddInput("labels", SequentialType({kBatch}, DataType::kInt64));
  graph.AddOutput("logits", logits);
  graph.AddOutput("loss", *graph.AddOp(OpKind::kCrossEntropy, {logits, labels}, "loss"));
  model.loss = "loss";
  return model;
}

std::string RowsForTests(int rows) {
  std::string text;
  for (int r = 0; r < rows; ++r) {
    absl::StrAppend(&text, std::sin(r), ",", std::cos(3 * r), ",", std::sin(5 * r + 1), ",",
                    (r * 7 + r / 3) % kClassesOfRows, "\n");
  }
  return text;
}

class TestsOfModel {
 public:
  TestsOfModel(Model model, int test_rows, DataType precision = DataType::kFloat32)
      : model_(std::move(model)), backend_(MakeCpuBackend()) {
    plan_.model = model_;
    plan_.precision = precision;
    plan_.graph = model_.graph;
    plan_.views = SequentialViews(plan_.graph);
    lowered_ = std::make_unique<LoweredPlan>(*LowerPlan(plan_));
    job_ = *Job::Start(lowered_->mapped.graph, lowered_->schedule, backend_.get(),
                       {.statistics = model_.statistics});
    EXPECT_EQ(job_->SetParameters(*InitialWeights(model_, 1)), absl::OkStatus());
    DataOptions data = {.files = {MadeFile("evaluate_train.csv", RowsForTests(40))},
                        .eval_files = {MadeFile("evaluate_test.csv", RowsForTests(test_rows))}};
    feeder_ = std::make_unique<Feeder>(*Feeder::OverFiles(model_.graph, data));
  }

  void Train(int steps) {
    for (int step = 0; step < steps; ++step) {
      EXPECT_EQ(job_->TrainStep(*feeder_->Batch(step), 0.1), absl::OkStatus());
    }
  }

  Evaluation Evaluated(int64_t most_batches = 0) {
    const auto scored = FindScoredOutput(model_.graph, "loss");
    EXPECT_TRUE(scored.has_value());
    const auto result = Evaluate({.loss = "loss",
                                  .loss_is_mean = LossIsMeanOverRows(model_.graph, "loss"),
                                  .scored = scored,
                                  .metrics = {MetricKind::kLoss, MetricKind::kAccuracy},
                                  .most_batches = most_batches},
                                 *feeder_, job_.get());
    EXPECT_EQ(result.status(), absl::OkStatus());
    return *result;
  }

  // Row by row: the loss and accuracy of the model without dropout, with running statistics.
  MetricValues ByHand(int64_t rows) {
    Model form = model_;
    EXPECT_EQ(ToEvaluationForm(&form), absl::OkStatus());
    HostValues weights = *job_->Parameters();
    const auto statistics = *job_->Statistics();
    for (const auto& [name, values] : statistics) {
      weights[name] = Array<double>({static_cast<int64_t>(values.size())});
      weights[name].data.assign(values.begin(), values.end());
    }
    double loss = 0, right = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const HostValues inputs = *feeder_->TestBatch(row, 1);
      const auto step = SequentialStep(form, weights, inputs, /*training=*/false, backend_.get());
      EXPECT_EQ(step.status(), absl::OkStatus());
      const std::vector<double>& line = step->outputs.at("logits").data;
      const int64_t label = static_cast<int64_t>(inputs.at("labels").data[0]);
      double sum = 0;
      for (int64_t c = 0; c < kClassesOfRows; ++c) sum += std::exp(line[c]);
      loss += std::log(sum) - line[label];
      right +=
          std::max_element(line.begin(), line.begin() + kClassesOfRows) - line.begin() == label;
    }
    const double count = static_cast<double>(rows);
    return {{MetricKind::kLoss, loss / count}, {MetricKind::kAccuracy, right / count}};
  }

  void ExpectAsByHand(int64_t rows, double tolerance = 2e-6) {
    const Evaluation evaluation = Evaluated();
    EXPECT_EQ(evaluation.rows, rows);
    EXPECT_EQ(evaluation.rows_of_loss, rows);
    const MetricValues expected = ByHand(rows);
    EXPECT_NEAR(*ValueOf(evaluation.metrics, MetricKind::kLoss),
                *ValueOf(expected, MetricKind::kLoss), tolerance)
        << rows;
    if (plan_.precision != DataType::kFloat32) return;
    EXPECT_EQ(*ValueOf(evaluation.metrics, MetricKind::kAccuracy),
              *ValueOf(expected, MetricKind::kAccuracy))
        << rows;
  }

  Job& job() { return *job_; }

 private:
  const Model model_;
  const std::unique_ptr<Backend> backend_;
  Plan plan_;
  std::unique_ptr<LoweredPlan> lowered_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Feeder> feeder_;
};

TEST(Evaluate, EveryRowCountsOnce) {
  for (int rows : {1, 3, 4, 5, 9, 12}) {
    TestsOfModel tests(ClassifierOf(false, false), rows);
    tests.Train(3);
    tests.ExpectAsByHand(rows);
  }
}

TEST(Evaluate, NothingIsDropped) {
  TestsOfModel tests(ClassifierOf(false, true), 6);
  tests.Train(3);
  tests.ExpectAsByHand(6);
}

TEST(Evaluate, BatchNormsTakeRunningStatistics) {
  TestsOfModel tests(ClassifierOf(true, true), 7);
  tests.ExpectAsByHand(7);
  tests.Train(5);
  tests.ExpectAsByHand(7);
  tests.Train(1);
  tests.ExpectAsByHand(7);
}

TEST(Evaluate, InLowPrecision) {
  for (DataType precision : {DataType::kBFloat16, DataType::kFloat16}) {
    TestsOfModel tests(ClassifierOf(true, true), 7, precision);
    tests.Train(3);
    tests.ExpectAsByHand(7, 0.02);
  }
}

TEST(Evaluate, TrainingGoesOnAsIfThereHadBeenNoTest) {
  TestsOfModel with(ClassifierOf(true, true), 7), without(ClassifierOf(true, true), 7);
  with.Train(2);
  with.Evaluated();
  with.Train(2);
  without.Train(2);
  without.Train(2);
  EXPECT_EQ(with.job().Parameters()->at("w").data, without.job().Parameters()->at("w").data);
  EXPECT_EQ(*with.job().Statistics(), *without.job().Statistics());
}

TEST(Evaluate, TheFirstBatchesAlone) {
  TestsOfModel tests(ClassifierOf(false, false), 10);
  EXPECT_EQ(tests.Evaluated(2).rows, 8);
  EXPECT_EQ(tests.Evaluated(3).rows, 10);
  EXPECT_EQ(tests.Evaluated(9).rows, 10);
}

TEST(RunningStatistics, AreMovedByEveryStepThatTrains) {
  TestsOfModel tests(ClassifierOf(true, false), 4);
  EXPECT_THAT(tests.job().Statistics()->at("variance"), testing::Each(1.0f));
  tests.Train(1);
  const auto after_one = *tests.job().Statistics();
  EXPECT_THAT(after_one.at("variance"), testing::Each(testing::Ne(1.0f)));
  tests.Evaluated();
  EXPECT_EQ(*tests.job().Statistics(), after_one);
}

// x [8,4] w -> batch norm, whose channels lie on `devices` devices -> mse with a target.
struct SplitNorm {
  Model model;
  std::vector<MachineView> views;

  explicit SplitNorm(int64_t devices) {
    Graph& graph = model.graph;
    const auto split = [&](TensorRef tensor) {
      return devices == 1 ? tensor
                          : *graph.AddOp(Operator(OpKind::kPartition,
                                                  {{"axis", int64_t{-1}}, {"degree", devices}}),
                                         {tensor});
    };
    const TensorRef x = graph.AddInput("x", SequentialType({8, 4}));
    const TensorRef w = graph.AddWeight("w", SequentialType({4, 6}));
    const TensorRef scale = graph.AddWeight("scale", SequentialType({6}));
    const TensorRef shift = graph.AddWeight("shift", SequentialType({6}));
    for (const char* name : {"mean", "variance"}) graph.AddConstant(name, SequentialType({6}));
    const TensorRef h = *graph.AddOp(OpKind::kMatMul, {x, w});
    const NodeId norm = *graph.Add(Operator(OpKind::kBatchNormTraining, {{"epsilon", 0.001}}),
                                   {split(h), split(scale), split(shift)}, "norm");
    const TensorRef y =
        devices == 1
            ? TensorRef{norm, 0}
            : *graph.AddOp(Operator(OpKind::kCombine, {{"axis", int64_t{-1}}, {"degree", devices}}),
                           {TensorRef{norm, 0}});
    const TensorRef target = graph.AddInput("target", SequentialType({8, 6}));
    graph.AddOutput("y", y);
    graph.AddOutput("loss", *graph.AddOp(OpKind::kMeanSquaredError, {y, target}, "loss"));
    model.loss = "loss";
    model.statistics = {{"scale", "mean", "variance", 0.5}};
    for (int id = 0; id < graph.num_nodes(); ++id) {
      views.push_back(RowMajorView(graph.node(id).outputs[0]));
    }
  }
};

TEST(RunningStatistics, OfChannelsOnSeveralDevicesAreThoseOfOne) {
  struct Found {
    std::map<std::string, std::vector<float>> statistics;
    std::vector<double> y;
  };
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  std::vector<Found> found;
  for (int64_t devices : {1, 2, 3}) {
    const SplitNorm split(devices);
    ScheduleOptions options;
    options.num_devices = devices;
    options.loss = "loss";
    const auto schedule = LowerGraph(split.model.graph, split.views, options);
    ASSERT_EQ(schedule.status(), absl::OkStatus());
    const auto job = Job::Start(split.model.graph, *schedule, backend.get(),
                                {.statistics = split.model.statistics});
    ASSERT_EQ(job.status(), absl::OkStatus());
    ASSERT_EQ((*job)->SetParameters(*InitialWeights(SplitNorm(1).model, 3)), absl::OkStatus());
    for (int step = 0; step < 3; ++step) {
      ASSERT_EQ((*job)->TrainStep(RandomInputs(SplitNorm(1).model.graph, step), 0.1),
                absl::OkStatus());
    }
    ASSERT_EQ((*job)->Evaluate(RandomInputs(SplitNorm(1).model.graph, 9)), absl::OkStatus());
    found.push_back({*(*job)->Statistics(), (*job)->Output("y")->data});
  }
  for (size_t i : {1, 2}) {
    EXPECT_EQ(found[i].statistics, found[0].statistics);
    EXPECT_EQ(found[i].y, found[0].y);
  }
}

TEST(ScoredOutput, IsWhatTheLossCompares) {
  const Model model = ClassifierOf(false, false);
  const auto scored = FindScoredOutput(model.graph, "loss");
  ASSERT_TRUE(scored.has_value());
  EXPECT_EQ(scored->output, "logits");
  EXPECT_EQ(scored->labels, "labels");
  EXPECT_EQ(scored->classes, kClassesOfRows);
  EXPECT_EQ(scored->batch, kBatch);
  EXPECT_TRUE(LossIsMeanOverRows(model.graph, "loss"));
}

TEST(ScoredOutput, IsSeenThroughReshapes) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({2, 3, 5}));
  const TensorRef labels = graph.AddInput("labels", SequentialType({6}, DataType::kInt64));
  const TensorRef scores = *graph.AddOp(OpKind::kRelu, {x});
  const TensorRef flat =
      *graph.AddOp(Operator(OpKind::kReshape, {{"shape", std::vector<int64_t>{6, 5}}}), {scores});
  graph.AddOutput("scores", scores);
  graph.AddOutput("loss", *graph.AddOp(OpKind::kCrossEntropy, {flat, labels}));
  const auto scored = FindScoredOutput(graph, "loss");
  ASSERT_TRUE(scored.has_value());
  EXPECT_EQ(scored->output, "scores");
  EXPECT_EQ(scored->classes, 5);
  EXPECT_EQ(scored->labels_count, 6);
  EXPECT_EQ(scored->batch, 2);
  // What the loss compares is no output.
  Graph other;
  const TensorRef input = other.AddInput("x", SequentialType({2, 5}));
  const TensorRef truth = other.AddInput("labels", SequentialType({2}, DataType::kInt64));
  const TensorRef hidden = *other.AddOp(OpKind::kRelu, {input});
  other.AddOutput("loss", *other.AddOp(OpKind::kCrossEntropy, {hidden, truth}));
  EXPECT_FALSE(FindScoredOutput(other, "loss").has_value());
}

TEST(EvaluationCalls, ABatchNormWithoutRunningStatisticsIsNamed) {
  const Model model = ClassifierOf(true, false);
  EXPECT_THAT(WithoutStatistics(model.graph, model.statistics), testing::IsEmpty());
  EXPECT_THAT(WithoutStatistics(model.graph, {}),
              testing::ElementsAre(testing::HasSubstr("'norm'")));
}

}  // namespace
}  // namespace isomer
