// The lower bound against the optimum that A* finds, on random small graphs: chains and branches,
// weights that are shared, halves that nobody reads, comparisons, outputs that the loss does not
// use, training and inference.
// ISOMER_BOUND_GRAPHS=2000 ISOMER_BOUND_SEED=1 takes as many as are wanted.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "optimizer/bound/lower_bound.h"
#include "optimizer/proposal/exhaustive_search.h"
#include "optimizer/simulator/simulator.h"
#include "tests/from_environment.h"
#include "tests/optimizer/example_rules.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {
namespace {

class RandomModel {
 public:
  explicit RandomModel(uint64_t seed) : random_(seed) {
    rows_ = int64_t{8} << Below(6);
    columns_ = int64_t{8} << Below(6);
    training_ = Below(3) > 0;
    model_.name = absl::StrCat("random", seed);
    tensors_ = {model_.graph.AddInput("x", SequentialType({rows_, columns_}))};
    const int calls = 2 + Below(5);
    for (int call = 0; call < calls; ++call) AddCall();
    // What the loss does not use may be an output, or nobody's.
    for (size_t t = 1; t < tensors_.size(); ++t) {
      if (Below(4) == 0) AddOutput(tensors_[t]);
    }
    const TensorRef last = tensors_[training_ ? 1 + Below(static_cast<int>(tensors_.size()) - 1)
                                              : static_cast<int>(tensors_.size()) - 1];
    if (training_) {
      const TensorRef target = model_.graph.AddInput("target", model_.graph.type(last));
      model_.graph.AddOutput("loss",
                             *model_.graph.AddOp(OpKind::kMeanSquaredError, {last, target}));
      model_.loss = "loss";
    } else {
      AddOutput(last);
    }
    model_.graph = model_.graph.Canonical();
  }
  const Model& model() const { return model_; }
  bool training() const { return training_; }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint64_t>(end)); }
  TensorRef Any() {
    // Mostly what was made last, so that there are chains.
    if (Below(3) > 0) return tensors_.back();
    return tensors_[Below(static_cast<int>(tensors_.size()))];
  }
  void AddOutput(TensorRef tensor) {
    model_.graph.AddOutput(absl::StrCat("y", outputs_++), tensor);
  }
  void AddCall() {
    Graph& graph = model_.graph;
    const TensorRef x = Any();
    switch (Below(8)) {
      case 0:
        tensors_.push_back(*graph.AddOp(OpKind::kExp, {x}));
        return;
      case 1:
        tensors_.push_back(*graph.AddOp(OpKind::kRelu, {x}));
        return;
      case 2:
        tensors_.push_back(*graph.AddOp(OpKind::kAdd, {x, Any()}));
        return;
      case 3: {
        // What a comparison reads gets no gradient from it.
        TensorRef choose = *graph.AddOp(OpKind::kEqual, {x, Any()});
        if (Below(2) == 0) choose = *graph.AddOp(OpKind::kNot, {choose});
        tensors_.push_back(*graph.AddOp(OpKind::kWhere, {choose, x, Any()}));
        return;
      }
      case 4: {
        // A half may be read by nobody.
        const Operator split(
            OpKind::kSplit,
            {{"axis", int64_t{1}}, {"sizes", std::vector<Extent>{columns_ / 2, columns_ / 2}}});
        const NodeId halves = *graph.Add(split, {x});
        tensors_.push_back(*graph.AddOp({OpKind::kConcat, {{"axis", int64_t{1}}}},
                                        {{halves, 1}, {halves, Below(2)}}));
        return;
      }
      default:
        break;
    }
    // A weight may be another product's, too.
    if (!shared_.has_value() || Below(3) > 0) {
      shared_ =
          graph.AddWeight(absl::StrCat("w", weights_++), SequentialType({columns_, columns_}));
    }
    tensors_.push_back(*graph.AddOp(OpKind::kMatMul, {x, *shared_}));
  }

  std::mt19937_64 random_;
  Model model_;
  int64_t rows_ = 0, columns_ = 0;
  bool training_ = false;
  std::vector<TensorRef> tensors_;
  std::optional<TensorRef> shared_;
  int weights_ = 0, outputs_ = 0;
};

void ExpectBoundHolds(uint64_t seed) {
  const RandomModel random(seed);
  const Model& model = random.model();
  const RuleSet rules = ExampleRules(model.graph);
  const RuleIndex index(rules);
  const CostModel cost(seed % 2 == 0 ? TestMachine(1, 2) : LoadMachine("dgx_h100", 1, 2).value());
  CostOptions options;
  options.training = random.training();
  CostTables tables(index, cost, options);
  SearchOptions search;
  search.budget = 20000;
  std::string proof;
  const auto best = ExhaustiveSearch(model, search, Deadline(), &tables, &proof);
  ASSERT_TRUE(best.ok()) << "seed " << seed << ": " << best.status();
  auto plan = DerivePlan(model, best->mapped, random.training(), &tables);
  ASSERT_TRUE(plan.ok()) << "seed " << seed << ": " << plan.status();
  const auto step = PredictPlan(cost, &*plan);
  ASSERT_TRUE(step.ok()) << "seed " << seed << ": " << step.status();
  tables.set_options(options);
  const auto bound = BoundStep(best->mapped.graph, {.loss = model.loss, .cuts = 2}, &tables);
  ASSERT_TRUE(bound.ok()) << "seed " << seed << ": " << bound.status();
  EXPECT_LE(bound->step_us, step->step_us)
      << "seed " << seed << ", by " << bound->by << ", " << proof << "\n"
      << model.graph.ToString();
}

TEST(RandomBounds, NoneIsAboveTheOptimum) {
  const int64_t graphs = FromEnvironment("ISOMER_BOUND_GRAPHS", 400);
  const int64_t first = FromEnvironment("ISOMER_BOUND_SEED", 1);
  for (int64_t i = 0; i < graphs; ++i) ExpectBoundHolds(static_cast<uint64_t>(first + i));
}

}  // namespace
}  // namespace isomer
