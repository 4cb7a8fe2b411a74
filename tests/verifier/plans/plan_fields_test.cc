#include "verifier/plans/plan_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "verifier/plans/model_match.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Plan TrainingPlan() {
  Plan plan;
  Graph& graph = plan.model.graph;
  const TensorRef x = graph.AddInput("x", SequentialType({4, 4}));
  const TensorRef w = graph.AddWeight("w", SequentialType({4, 4}));
  const TensorRef t = graph.AddInput("target", SequentialType({4, 4}));
  const TensorRef y = *graph.AddOp(OpKind::kMatMul, {x, w});
  graph.AddOutput("loss", *graph.AddOp(OpKind::kMeanSquaredError, {y, t}));
  plan.model.loss = "loss";
  plan.model.weights["w"] = std::vector<float>(16, 0.5f);
  plan.graph = graph;
  return plan;
}

struct Change {
  std::string refused_for;
  std::function<void(Plan*)> change;
};

TEST(PlanFields, EachIsCheckedOrRefused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(CheckPlanFields(TrainingPlan()).ok());
  for (const auto& [refused_for, change] : std::vector<Change>{
           {"mode", [](Plan* p) { p->mode = "both"; }},
           {"precision", [](Plan* p) { p->precision = DataType::kInt64; }},
           {"predicted_step_us", [](Plan* p) { p->predicted_step_us = kNan; }},
           {"predicted_step_us", [](Plan* p) { p->predicted_step_us = -1; }},
           {"predicted_peak_bytes", [](Plan* p) { p->predicted_peak_bytes = -1; }},
           {"no weight 'v'", [](Plan* p) { p->update.methods["v"] = UpdateMethod::kOwner; }},
           {"no weight 'x'", [](Plan* p) { p->update.methods["x"] = UpdateMethod::kOwner; }},
           {"no weight ''", [](Plan* p) { p->update.bucket_ends = {""}; }},
           {"negative number of bytes", [](Plan* p) { p->update.bucket_bytes = -1; }},
           {"update: ", [](Plan* p) { p->update.steps_between_flushes = 3; }},
           {"update: ", [](Plan* p) { p->update.steps_between_flushes = -2; }},
           {"a plan for inference says",
            [](Plan* p) { p->mode = "inference", p->update.optimizer = OptimizerKind::kAdam; }},
           {"no backward pass",
            [](Plan* p) { p->mode = "inference", p->recomputed = {NodeId{3}}; }},
           {"offloaded: there is no backward pass",
            [](Plan* p) { p->mode = "inference", p->offloaded = {NodeId{3}}; }},
           {"offloaded: node %3 is computed again, too",
            [](Plan* p) { p->recomputed = p->offloaded = {NodeId{3}}; }},
           {"offloaded: values of several steps",
            [](Plan* p) { p->offloaded = {NodeId{3}}, p->update.steps_between_flushes = 2; }},
       }) {
    Plan plan = TrainingPlan();
    change(&plan);
    EXPECT_THAT(std::string(CheckPlanFields(plan).message()), HasSubstr(refused_for));
  }
  Plan named = TrainingPlan();
  named.update.methods["w"] = UpdateMethod::kSharded;
  named.update.bucket_ends = {"w"};
  EXPECT_TRUE(CheckPlanFields(named).ok()) << CheckPlanFields(named);
}

TEST(PlanFields, WhatChangesTrainingIsSaid) {
  Plan plan = TrainingPlan();
  EXPECT_THAT(DeviationsOf(plan), IsEmpty());
  plan.update.steps_between_flushes = 4;
  plan.precision = DataType::kBFloat16;
  const std::vector<std::string> said = DeviationsOf(plan);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("2BW"));
  EXPECT_THAT(said[1], HasSubstr("bfloat16"));
}

TEST(ModelMatch, NamesTheFirstDifference) {
  const Model own = TrainingPlan().model;
  Model same = own;
  same.name = "another name";
  EXPECT_TRUE(ExpectSameModel(own, same).ok());
  const auto expect = [&](const std::string& difference, const std::function<void(Model*)>& edit) {
    Model model = own;
    edit(&model);
    EXPECT_THAT(std::string(ExpectSameModel(own, model).message()), HasSubstr(difference));
  };
  const auto rebuilt = [](Model* model, DataType dtype, const std::string& weight, OpKind loss) {
    Graph graph;
    const TensorRef x = graph.AddInput("x", SequentialType({4, 4}, dtype));
    const TensorRef w = graph.AddWeight(weight, SequentialType({4, 4}, dtype));
    const TensorRef t = graph.AddInput("target", SequentialType({4, 4}, dtype));
    const TensorRef y = *graph.AddOp(OpKind::kMatMul, {x, w});
    graph.AddOutput("loss", *graph.AddOp(loss, {y, t}));
    model->graph = graph;
  };
  expect("value 3 of w", [](Model* m) {
    std::vector<float> values(16, 0.5f);
    values[3] = 0.25f;
    m->weights["w"] = values;
  });
  expect("the number of values of w",
         [](Model* m) { m->weights["w"] = std::vector<float>(15, 0.5f); });
  expect("values of w are not in", [](Model* m) { m->weights.clear(); });
  expect("has values of u", [](Model* m) { m->weights["u"] = {1}; });
  expect("the loss is 'loss'", [](Model* m) { m->loss = ""; });
  expect("the number of nodes", [](Model* m) {
    m->graph.AddOp(OpKind::kRelu, {TensorRef{{0}, 0}}).IgnoreError();
  });
  expect("the number of outputs", [](Model* m) { m->graph.AddOutput("more", TensorRef{{0}, 0}); });
  expect("is w in the model and v",
         [&](Model* m) { rebuilt(m, DataType::kFloat32, "v", OpKind::kMeanSquaredError); });
  expect("mse in the model and binary_cross_entropy",
         [&](Model* m) { rebuilt(m, DataType::kFloat32, "w", OpKind::kBinaryCrossEntropy); });
}

}  // namespace
}  // namespace isomer
