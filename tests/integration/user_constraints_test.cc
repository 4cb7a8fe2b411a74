// Plans of the search keep a user's constraints, on networks of the zoo with the shipped rules.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "models/load.h"
#include "models/loss.h"
#include "optimizer/mapping/derivation.h"
#include "optimizer/mapping/restrictions.h"
#include "optimizer/search/optimizer.h"
#include "pcg/support/data_path.h"
#include "tests/optimizer/plan_holds.h"

namespace isomer {
namespace {

constexpr char kEncoder[] =
    "zoo:encoder?layers=2&hidden=64&heads=4&intermediate=256&vocabulary=100&seq=16&batch=8";
constexpr char kBert[] = "zoo:bert_large?layers=2&batch=4&seq=16";

class UserConstraints : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto rules = LoadRules(DataPath("rules/default.rules"));
    ASSERT_TRUE(rules.ok()) << rules.status();
    rules_ = std::make_unique<RuleSet>(*std::move(rules));
    index_ = std::make_unique<RuleIndex>(*rules_);
  }

  void Load(const std::string& spec, int64_t devices = 4) {
    auto model = LoadAnyModel(spec, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    ASSERT_TRUE(AttachLoss(&model_, "auto").ok());
    auto machine = LoadMachine("dgx_h100", 1, devices);
    ASSERT_TRUE(machine.ok()) << machine.status();
    cost_.emplace(*std::move(machine));
  }

  absl::StatusOr<Restrictions> Resolve(const std::string& text) {
    auto constraints = ParseConstraints(text, "mine.txt");
    if (!constraints.ok()) return constraints.status();
    tables_ = std::make_unique<CostTables>(*index_, *cost_, CostOptions{});
    return Restrictions::Resolve(*constraints, model_.graph, tables_.get());
  }
  std::string ErrorOf(const std::string& text) {
    return std::string(Resolve(text).status().message());
  }

  void Optimise(const std::string& text, Strategy strategy = Strategy::kHierarchical) {
    auto constraints = ParseConstraints(text, "mine.txt");
    ASSERT_TRUE(constraints.ok()) << constraints.status();
    OptimizeOptions options;
    options.strategy = strategy;
    options.search.budget = strategy == Strategy::kMcmc ? 500 : 30;
    options.constraints = *std::move(constraints);
    auto result = Optimize(model_, *index_, *cost_, options);
    ASSERT_TRUE(result.ok()) << result.status();
    result_ = *std::move(result);
    ExpectPlanHolds(result_.plan, *rules_);
  }

  // Of the first operator of the plan's graph that has this name and computes.
  TensorType TypeOf(const std::string& name, int* at = nullptr) const {
    const Graph& graph = result_.plan.graph;
    for (int i = 0; i < graph.num_nodes(); ++i) {
      const Node& node = graph.node(i);
      if (node.name != name || IsParallel(node.op.kind()) || node.inputs.empty()) continue;
      if (at != nullptr) *at = i;
      return node.outputs[0];
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }

  // Calls whose names begin so run on the devices of a stage.
  void ExpectStages(const std::map<std::string, int64_t>& stages) const {
    ASSERT_TRUE(result_.pipeline.has_value());
    const int64_t devices = cost_->machine().num_devices() / result_.pipeline->stages;
    const Plan& plan = result_.plan;
    for (const auto& [prefix, stage] : stages) {
      int found = 0;
      for (int i = 0; i < plan.graph.num_nodes(); ++i) {
        const Node& node = plan.graph.node(i);
        if (!absl::StartsWith(node.name, prefix) || IsLeaf(node.op.kind()) ||
            IsParallel(node.op.kind())) {
          continue;
        }
        ++found;
        for (int64_t device : DevicesOf(plan.views[i], node.outputs[0])) {
          EXPECT_EQ(device / devices, stage) << node.name;
        }
      }
      EXPECT_GT(found, 0) << prefix;
    }
  }

  static std::unique_ptr<RuleSet> rules_;
  static std::unique_ptr<RuleIndex> index_;
  Model model_;
  std::optional<CostModel> cost_;
  std::unique_ptr<CostTables> tables_;
  OptimizeResult result_;
};
std::unique_ptr<RuleSet> UserConstraints::rules_;
std::unique_ptr<RuleIndex> UserConstraints::index_;

TEST_F(UserConstraints, ASplitIsKeptAndSpreads) {
  ASSERT_NO_FATAL_FAILURE(Load("zoo:lenet"));
  ASSERT_NO_FATAL_FAILURE(
      Optimise("tensor { name: \"dense1/product\" split { dim: 1 degree: 4 } }"));
  EXPECT_EQ(TypeOf("dense1/product").dims[1].degree, 4);
  // Bias and activation follow.
  EXPECT_EQ(TypeOf("dense1").dims[1].degree, 4);
  EXPECT_EQ(TypeOf("dense1/relu").dims[1].degree, 4);
}

TEST_F(UserConstraints, ReplicatedTensorsAreReadAsAWhole) {
  ASSERT_NO_FATAL_FAILURE(Load("zoo:lenet"));
  ASSERT_NO_FATAL_FAILURE(Optimise("tensor { name: \"dense2.weight\" replicate: true }"));
  const Graph& graph = result_.plan.graph;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(i);
    if (node.name != "dense2/product" || node.inputs.size() != 2) continue;
    for (const auto& dim : graph.type(node.inputs[1]).dims) EXPECT_EQ(dim.degree, 1);
  }
}

TEST_F(UserConstraints, OperatorsStayOnTheirDevices) {
  ASSERT_NO_FATAL_FAILURE(Load(kEncoder));
  const std::string name = "logits";
  std::string node;
  for (int i = 0; i < model_.graph.num_nodes(); ++i) {
    if (model_.graph.node(i).op.kind() == OpKind::kGelu) node = model_.graph.node(i).name;
  }
  ASSERT_NO_FATAL_FAILURE(
      Optimise("node { name: \"" + node + "\" devices { first: 2 count: 2 } }"));
  int at = -1;
  const TensorType type = TypeOf(node, &at);
  for (int64_t device : DevicesOf(result_.plan.views[at], type)) {
    EXPECT_GE(device, 2);
    EXPECT_LT(device, 4);
  }
  EXPECT_FALSE(result_.ignoring.empty());
}

TEST_F(UserConstraints, BertKeepsSplitsOfEveryLayer) {
  ASSERT_NO_FATAL_FAILURE(Load(kBert));
  std::string weights;
  int count = 0;
  for (int i = 0; i < model_.graph.num_nodes(); ++i) {
    const Node& node = model_.graph.node(i);
    if (node.op.kind() == OpKind::kGelu) {
      weights += "tensor { name: \"" + node.name + "\" split { dim: -1 degree: 2 } }\n";
      ++count;
    }
  }
  ASSERT_GE(count, 2);
  ASSERT_NO_FATAL_FAILURE(Optimise(weights));
  const Graph& graph = result_.plan.graph;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (graph.node(i).op.kind() != OpKind::kGelu) continue;
    EXPECT_EQ(graph.node(i).outputs[0].dims.back().degree, 2) << graph.Label(NodeId{i});
    --count;
  }
  EXPECT_EQ(count, 0);
}

TEST_F(UserConstraints, EveryStrategyKeepsThem) {
  for (Strategy strategy : {Strategy::kMcmc, Strategy::kSequential}) {
    ASSERT_NO_FATAL_FAILURE(Load("zoo:lenet"));
    ASSERT_NO_FATAL_FAILURE(
        Optimise("tensor { name: \"dense1/product\" split { dim: 1 degree: 2 } }\n"
                 "tensor { name: \"conv1\" split { dim: 0 degree: 2 } }",
                 strategy));
    EXPECT_EQ(TypeOf("dense1/product").dims[1].degree, 2);
    EXPECT_EQ(TypeOf("conv1").dims[0].degree, 2);
  }
}

TEST_F(UserConstraints, ContradictionsNameBothSources) {
  ASSERT_NO_FATAL_FAILURE(Load("zoo:lenet"));
  EXPECT_NE(ErrorOf("tensor { name: \"conv1\" split { dim: 0 degree: 2 } }\n"
                    "tensor { name: \"con?1\" split { dim: 0 degree: 4 } }")
                .find("mine.txt:2: dim 0 of %"),
            std::string::npos);
  EXPECT_NE(ErrorOf("tensor { name: \"conv1\" split { dim: 0 degree: 2 } }\n"
                    "tensor { name: \"con?1\" split { dim: 0 degree: 4 } }")
                .find("is split by 4, but by 2 at mine.txt:1"),
            std::string::npos);
  EXPECT_NE(ErrorOf("tensor { name: \"conv1\" split { dim: 0 degree: 2 } }\n"
                    "tensor { name: \"conv1\" replicate: true }")
                .find("mine.txt:1: dim 0 of"),
            std::string::npos);
  EXPECT_NE(ErrorOf("node { name: \"conv1\" devices { first: 0 count: 2 } }\n\n"
                    "node { name: \"conv1\" devices { first: 2 count: 2 } }")
                .find("runs on devices 2 to 3, but on 0 to 1 at mine.txt:1"),
            std::string::npos);
  EXPECT_NE(ErrorOf("node { name: \"conv1\" devices { first: 0 count: 2 } }\n"
                    "node { name: \"conv2\" devices { first: 2 count: 2 } }\n"
                    "colocate { node: \"conv1\" node: \"conv2\" }")
                .find("mine.txt:3: "),
            std::string::npos);
  EXPECT_NE(ErrorOf("node { name: \"conv1\" stage: 1 }\nnode { name: \"conv2\" stage: 0 }")
                .find("needs what stage 1 makes, at mine.txt:1"),
            std::string::npos);
  // Degrees that need more devices than there are.
  EXPECT_NE(ErrorOf("tensor { name: \"dense1/product\" split { dim: 1 degree: 4 } "
                    "split { dim: 0 degree: 4 } }")
                .find("mine.txt:1: no way to spread"),
            std::string::npos);
}

// With what else is wanted of the calls of a stage.
TEST_F(UserConstraints, CallsAreInTheStagesTheyAreBoundTo) {
  ASSERT_NO_FATAL_FAILURE(Load(kEncoder));
  ASSERT_NO_FATAL_FAILURE(
      Optimise("node { name: \"layer0/*\" stage: 0 }\n"
               "node { name: \"layer1/*\" stage: 1 }\n"
               "tensor { name: \"layer1/feed_forward/intermediate/product\" "
               "split { dim: -1 degree: 2 } }"));
  ExpectStages({{"layer0/", 0}, {"layer1/", 1}});
  EXPECT_EQ(TypeOf("layer1/feed_forward/intermediate/product").dims.back().degree, 2);
}

// The query comes first in the model.
TEST_F(UserConstraints, BranchesMayBeInStagesAgainstTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(Load(kEncoder));
  ASSERT_NO_FATAL_FAILURE(
      Optimise("node { name: \"layer0/attention/value/*\" stage: 0 }\n"
               "node { name: \"layer0/attention/query/*\" stage: 1 }"));
  ExpectStages({{"layer0/attention/value/", 0}, {"layer0/attention/query/", 1}});
}

TEST_F(UserConstraints, StagesThatNoPipelineHasAreRefused) {
  const auto error_of = [&](const char* model, const char* text) {
    Load(model);
    auto constraints = ParseConstraints(text, "mine.txt");
    EXPECT_TRUE(constraints.ok()) << constraints.status();
    OptimizeOptions options;
    options.constraints = *std::move(constraints);
    return std::string(Optimize(model_, *index_, *cost_, options).status().message());
  };
  EXPECT_NE(error_of(kEncoder, "node { name: \"layer1/*\" stage: 7 }")
                .find("no pipeline of 8 stages or more"),
            std::string::npos);
  // A batch's statistics are not those of micro-batches.
  EXPECT_NE(
      error_of(
          "zoo:resnext50?blocks1=1&blocks2=1&blocks3=1&blocks4=1&groups=4&group_width=16&stem=4&"
          "side=20&classes=16&batch=16",
          "node { name: \"stage3/*\" stage: 1 }")
          .find("needs all samples at once"),
      std::string::npos);
  EXPECT_NE(
      error_of(kEncoder,
               "node { name: \"layer1/*\" stage: 1 }\n"
               "node { name: \"layer0/attention/key/product\" devices { first: 0 count: 2 } }")
          .find("mine.txt:1: a stage has devices of its own"),
      std::string::npos);
}

TEST_F(UserConstraints, UnknownNamesAreAnsweredWithTheNearest) {
  ASSERT_NO_FATAL_FAILURE(Load("zoo:lenet"));
  EXPECT_EQ(ErrorOf("tensor { name: \"dense1/produkt\" replicate: true }"),
            "mine.txt:1: the model has no tensor 'dense1/produkt'; the nearest is "
            "'dense1/product'");
  EXPECT_NE(ErrorOf("node { name: \"konv2\" stage: 0 }").find("the nearest is 'conv2'"),
            std::string::npos);
  EXPECT_NE(ErrorOf("node { name: \"conv1.weight\" stage: 0 }").find("is no operator that runs"),
            std::string::npos);
  EXPECT_NE(ErrorOf("tensor { name: \"conv1\" split { dim: 4 degree: 2 } }").find("has no dim 4"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf("tensor { name: \"conv1\" split { dim: 0 degree: 3 } }").find("does not divide"),
      std::string::npos);
  EXPECT_NE(ErrorOf("node { name: \"conv1\" devices { first: 3 count: 2 } }")
                .find("there are no devices 3 to 4: the machine has 4"),
            std::string::npos);
}

}  // namespace
}  // namespace isomer
