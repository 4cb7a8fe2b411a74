#include "tests/unsound/base_plans.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/strip.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/check.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

using Ints = std::vector<int64_t>;

class ModelBuilder {
 public:
  explicit ModelBuilder(std::string name) { model_.name = std::move(name); }

  TensorRef Input(const std::string& name, Ints sizes, DataType dtype = DataType::kFloat32) {
    return graph().AddInput(name, SequentialType(std::move(sizes), dtype));
  }
  // With values, so that they can be lied about.
  TensorRef Weight(const std::string& name, Ints sizes) {
    const TensorRef weight = graph().AddWeight(name, SequentialType(std::move(sizes)));
    GiveValues(weight);
    return weight;
  }
  TensorRef Constant(const std::string& name, Ints sizes) {
    const TensorRef constant = graph().AddConstant(name, SequentialType(std::move(sizes)));
    GiveValues(constant);
    return constant;
  }
  TensorRef Call(Operator op, std::vector<TensorRef> inputs, std::string name = "") {
    return graph().AddOp(std::move(op), std::move(inputs), std::move(name)).value();
  }
  TensorRef Linear(TensorRef x, const std::string& weight, Ints sizes) {
    return Call(OpKind::kMatMul, {x, Weight(weight, std::move(sizes))}, weight + "/product");
  }
  Model WithLoss(TensorRef y) {
    graph().AddOutput("y", y);
    const TensorRef target = graph().AddInput("target", graph().type(y));
    graph().AddOutput("loss", Call(OpKind::kMeanSquaredError, {y, target}, "loss"));
    model_.loss = "loss";
    return std::move(model_);
  }

 private:
  Graph& graph() { return model_.graph; }
  void GiveValues(TensorRef tensor) {
    std::vector<float> values;
    for (int64_t i = 0; i < graph().type(tensor).NumElements(); ++i) {
      values.push_back(0.125f * static_cast<float>(i % 7 - 3));
    }
    model_.weights[graph().node(tensor.node).name] = std::move(values);
  }

  Model model_;
};

Model Perceptron() {
  ModelBuilder b("perceptron");
  TensorRef x = b.Linear(b.Input("x", {8, 16}), "up", {16, 32});
  x = b.Call(OpKind::kRelu, {b.Call(OpKind::kAdd, {x, b.Weight("shift", {32})})}, "relu");
  return b.WithLoss(b.Linear(x, "down", {32, 16}));
}

Model Images() {
  ModelBuilder b("images");
  const Operator convolution(OpKind::kConv2d, {{"stride", Ints{1, 1}},
                                               {"padding", Ints{1, 1, 1, 1}},
                                               {"dilation", Ints{1, 1}},
                                               {"groups", int64_t{1}}});
  TensorRef x = b.Input("x", {1, 2, 8, 8});
  x = b.Call(convolution, {x, b.Weight("w0", {4, 2, 3, 3})}, "conv0");
  x = b.Call(OpKind::kRelu, {x}, "relu");
  return b.WithLoss(b.Call(convolution, {x, b.Weight("w1", {2, 4, 3, 3})}, "conv1"));
}

Model Layers() {
  ModelBuilder b("layers");
  TensorRef x = b.Input("x", {16, 8});
  for (const char* name : {"a", "b", "c", "d"}) {
    x = b.Call(OpKind::kTanh, {b.Linear(x, name, {8, 8})}, std::string(name) + "/tanh");
  }
  return b.WithLoss(x);
}

Model FilledTable() {
  ModelBuilder b("filled_table");
  const TensorRef kept = b.Constant("kept", {12, 1});
  const TensorRef table = b.Call(OpKind::kMul, {b.Weight("table", {12, 8}), kept}, "table/kept");
  const TensorRef ids = b.Input("ids", {8, 4}, DataType::kInt64);
  const TensorRef rows = b.Call(OpKind::kEmbedding, {table, ids}, "rows");
  return b.WithLoss(b.Linear(rows, "w", {8, 8}));
}

Model WithDropout() {
  ModelBuilder b("with_dropout");
  TensorRef x = b.Linear(b.Input("x", {8, 8}), "w", {8, 8});
  const Operator dropout(OpKind::kDropout, {{"rate", 0.5}, {"salt", int64_t{3}}});
  x = b.Call(dropout, {x, b.Input("seed", {}, DataType::kInt64)}, "dropout");
  return b.WithLoss(b.Linear(x, "v", {8, 8}));
}

// Evaluation normalises by what no rule and no task reads.
Model Normalised() {
  ModelBuilder b("normalised");
  TensorRef x = b.Linear(b.Input("x", {8, 8}), "w", {8, 8});
  const Operator norm(OpKind::kBatchNormTraining, {{"epsilon", 0.01}});
  x = b.Call(norm, {x, b.Weight("gain", {8}), b.Weight("offset", {8})}, "norm");
  b.Constant("mean", {8});
  b.Constant("variance", {8});
  Model model = b.WithLoss(b.Linear(x, "v", {8, 8}));
  model.statistics = {{.scale = "gain", .mean = "mean", .variance = "variance"}};
  return model;
}

Model TiedTable() {
  ModelBuilder b("tied_table");
  const TensorRef table = b.Weight("table", {12, 8});
  const TensorRef ids = b.Input("ids", {8}, DataType::kInt64);
  TensorRef x = b.Call(OpKind::kEmbedding, {table, ids}, "rows");
  x = b.Call(OpKind::kRelu, {b.Linear(x, "w", {8, 8})}, "relu");
  const Operator transpose(OpKind::kTranspose, {{"perm", Ints{1, 0}}});
  return b.WithLoss(b.Call(OpKind::kMatMul, {x, b.Call(transpose, {table})}, "logits"));
}

const RuleSet& ShippedRules() {
  static const RuleSet* const rules =
      new RuleSet(LoadRules(ISOMER_SOURCE_DIR "/rules/default.rules").value());
  return *rules;
}

const RuleIndex& ShippedIndex() {
  static const RuleIndex* const index = new RuleIndex(ShippedRules());
  return *index;
}

struct Wish {
  Model model;
  int64_t devices = 4;
  std::string plan = kDataParallel;
  std::function<void(OptimizeOptions*)> options = [](OptimizeOptions*) {};
  std::function<void(Plan*)> change = [](Plan*) {};
};

PlanClaim Made(const Wish& wish) {
  OptimizeOptions options;
  options.plan = wish.plan;
  options.threads = 1;
  wish.options(&options);
  const CostModel cost(TestMachine(1, wish.devices));
  absl::StatusOr<OptimizeResult> made = Optimize(wish.model, ShippedIndex(), cost, options);
  ISOMER_CHECK(made.ok());
  PlanClaim claim = {wish.model, std::move(made->plan), {}};
  wish.change(&claim.plan);
  std::set<std::string> used;
  for (const DerivationStep& step : claim.plan.steps) {
    used.emplace(absl::StripSuffix(step.rule, "^-1"));
  }
  for (const std::string& id : used) claim.rules.rules.push_back(*ShippedRules().Find(id));
  Seal(&claim);
  return claim;
}

NodeId FirstOf(const Graph& graph, OpKind kind) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).op.kind() == kind) return {id};
  }
  ISOMER_CHECK(false);
  return {};
}

const std::map<std::string, Wish>& Wishes() {
  const auto pipeline = [](OptimizeOptions* o) {
    o->grid = GridRequest{.stages = 2, .micro_batch_size = 2};
  };
  static const auto* const preferences = new std::map<std::string, Wish>{
      {"data",
       {.model = Perceptron(),
        .options = [](OptimizeOptions* o) { o->update.optimizer = OptimizerKind::kAdam; }}},
      {"tensor", {.model = Perceptron(), .devices = 2, .plan = kMegatron}},
      {"spatial",
       {.model = Images(),
        .devices = 2,
        .plan = "",
        .options =
            [](OptimizeOptions* o) {
              o->constraints.tensors = {{"conv0", "test", {{2, 2}}}, {"conv1", "test", {{2, 2}}}};
            }}},
      {"pipeline", {.model = Layers(), .plan = kGrid, .options = pipeline}},
      {"two_versions",
       {.model = Layers(),
        .plan = kGrid,
        .options = pipeline,
        .change = [](Plan* p) { p->update.steps_between_flushes = 4; }}},
      {"embedding", {.model = FilledTable()}},
      {"dropout", {.model = WithDropout()}},
      {"tied", {.model = TiedTable()}},
      {"normalised", {.model = Normalised(), .devices = 2, .plan = ""}},
      {"sharded",
       {.model = Perceptron(),
        .change =
            [](Plan* p) {
              p->update.method = UpdateMethod::kSharded;
              p->update.methods = {{"up", UpdateMethod::kOwner},
                                   {"down", UpdateMethod::kShardedWeights}};
            }}},
      {"recomputed",
       {.model = Perceptron(),
        .change = [](Plan* p) { p->recomputed = {FirstOf(p->graph, OpKind::kRelu)}; }}},
      {"low",
       {.model = Perceptron(),
        .options = [](OptimizeOptions* o) { o->precision = DataType::kBFloat16; }}},
      {"inference",
       {.model = Perceptron(), .options = [](OptimizeOptions* o) { o->training = false; }}}};
  return *preferences;
}

}  // namespace

const std::vector<std::string>& BasePlans() {
  static const auto* const names = [] {
    auto* all = new std::vector<std::string>;
    for (const auto& [name, wish] : Wishes()) all->push_back(name);
    return all;
  }();
  return *names;
}

const PlanClaim& BasePlan(const std::string& name) {
  static auto* const made = new std::map<std::string, PlanClaim>;
  const auto found = made->find(name);
  if (found != made->end()) return found->second;
  return made->emplace(name, Made(Wishes().at(name))).first->second;
}

}  // namespace isomer
