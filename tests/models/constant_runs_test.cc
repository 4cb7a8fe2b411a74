#include "models/onnx/graph/constant_runs.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "pcg/evaluation/evaluator.h"

namespace isomer {
namespace {

using testing::ElementsAre;

TEST(ConstantRuns, AreNumbersAtEqualDistances) {
  const TensorRuns runs = RunsOf({2, 7}, {0, 1, 2, 3, 3, 3, 9, 5, 7, 4, 4, 0, -1, -2});
  EXPECT_THAT(runs.runs,
              ElementsAre(ElementRun{4, 0, 1}, ElementRun{6, 3}, ElementRun{7, 9}, ElementRun{1, 5},
                          ElementRun{2, 7}, ElementRun{4, 4}, ElementRun{7, 0, -1}));
  EXPECT_THAT(runs.rows, ElementsAre(3, 7));
}

TEST(ConstantRuns, WhatRepeatsIsOnce) {
  std::vector<double> elements;
  for (int i = 0; i < 2; ++i) {
    for (double value : {1, 1, 2, 2, 4, 4, 1, 1, 2, 2, 4, 4}) elements.push_back(value);
  }
  const TensorRuns once = RunsOf({2, 2, 3, 2}, elements);
  EXPECT_THAT(once.sizes, ElementsAre(1, 1, 3, 1));
  EXPECT_THAT(once.Written(), ElementsAre(1, 2, 4));
  elements[23] = 5;
  const TensorRuns all = RunsOf({2, 2, 3, 2}, elements);
  EXPECT_THAT(all.sizes, ElementsAre(2, 2, 3, 2));
  EXPECT_EQ(all.Written(), elements);
}

// Infinities and what is not a number are elements as others.
TEST(ConstantRuns, HoldAllNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> elements = {-kInfinity, -kInfinity, -kInfinity, 0, kInfinity};
  EXPECT_EQ(RunsOf({5}, elements).Written(), elements);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> written = RunsOf({4}, {nan, nan, nan, 1}).Written();
  ASSERT_EQ(written.size(), 4u);
  EXPECT_TRUE(std::isnan(written[1]));
  EXPECT_EQ(written[3], 1);
}

// Random graphs of constants, as masks and positions are made of them.
class RandomConstants {
 public:
  explicit RandomConstants(int seed) : random_(seed) {
    for (int i = 0; i < 4; ++i) AddLeaf();
    for (int i = 0; i < 14; ++i) AddCall();
  }

  const Model& model() const { return model_; }
  const std::vector<TensorRef>& tensors() const { return tensors_; }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }
  TensorRef Any() { return tensors_[Below(static_cast<int>(tensors_.size()))]; }
  DataType TypeOf(TensorRef x) const { return model_.graph.type(x).dtype; }

  // Positions, steps, the same number, or anything, along 2 [b], 4 [q] and 6 [k].
  void AddLeaf() {
    std::vector<int64_t> sizes = {Below(2) == 0 ? 2 : 1, Below(2) == 0 ? 4 : 1,
                                  Below(3) != 0 ? 6 : 1};
    if (Below(4) == 0) sizes.erase(sizes.begin());
    int64_t elements = 1;
    for (int64_t size : sizes) elements *= size;
    const int kind = Below(4), first = Below(7) - 3, step = Below(5) - 2;
    std::vector<float> values;
    for (int64_t i = 0; i < elements; ++i) {
      const auto at = static_cast<int>(i);
      values.push_back(static_cast<float>(kind == 0   ? first + step * at
                                          : kind == 1 ? first
                                          : kind == 2 ? (at < elements / 2 ? first : first + step)
                                                      : Below(9) - 4));
    }
    const DataType dtype = Below(3) == 0 ? DataType::kFloat32 : DataType::kInt64;
    const std::string name = "c" + std::to_string(tensors_.size());
    model_.weights[name] = std::move(values);
    Keep(model_.graph.AddConstant(name, SequentialType(sizes, dtype)));
  }

  void AddCall() {
    const TensorRef x = Any(), y = Any();
    const std::vector<int64_t> sizes = model_.graph.type(x).Sizes();
    switch (Below(13)) {
      case 0:
        return Add(OpKind::kLess, {x, y});
      case 1:
        return Add(OpKind::kLessEqual, {x, y});
      case 2:
        return Add(OpKind::kEqual, {x, y});
      case 3:
        return Add(OpKind::kAdd, {x, y});
      case 4:
        return Add(OpKind::kSub, {x, y});
      case 5:
        return Add(OpKind::kMul, {x, y});
      case 6:
        return Add({OpKind::kScale, {{"factor", 0.5 * (Below(9) - 4)}}}, {x});
      case 7:
        return Add(
            {OpKind::kCast,
             {{"to", static_cast<int64_t>(Below(2) == 0 ? DataType::kFloat32 : DataType::kInt64)}}},
            {x});
      case 8:
        if (sizes.size() < 2) return;
        return Add({OpKind::kTrilu, {{"upper", int64_t{Below(2)}}, {"k", int64_t{Below(9) - 4}}}},
                   {x});
      case 9: {
        std::vector<int64_t> wide = {2, 4, 6};
        for (size_t i = 1; i <= sizes.size(); ++i) {
          if (sizes[sizes.size() - i] != wide[3 - i] && sizes[sizes.size() - i] != 1) return;
        }
        return Add({OpKind::kExpand, {{"shape", wide}}}, {x});
      }
      case 10: {
        std::vector<int64_t> shape = sizes;
        if (Below(2) == 0) {
          shape.insert(shape.begin() + Below(static_cast<int>(shape.size()) + 1), 1);
        } else if (shape.size() > 1) {
          shape[1] *= shape[0];
          shape.erase(shape.begin());
        }
        return Add({OpKind::kReshape, {{"shape", shape}}}, {x});
      }
      case 11: {
        std::vector<int64_t> perm;
        for (size_t i = 0; i < sizes.size(); ++i) perm.push_back(static_cast<int64_t>(i));
        std::shuffle(perm.begin(), perm.end(), random_);
        return Add({OpKind::kTranspose, {{"perm", perm}}}, {x});
      }
      default:
        return Add(OpKind::kWhere, {Any(), x, y});
    }
  }

  // Where the operator takes these operands.
  void Add(Operator op, std::vector<TensorRef> operands) {
    const absl::StatusOr<TensorRef> result = model_.graph.AddOp(
        std::move(op), std::move(operands), "t" + std::to_string(tensors_.size()));
    if (result.ok()) Keep(*result);
  }
  void Keep(TensorRef tensor) {
    tensors_.push_back(tensor);
    model_.graph.AddOutput("o" + std::to_string(tensors_.size()), tensor);
  }

  std::mt19937 random_;
  Model model_;
  std::vector<TensorRef> tensors_;
};

// Element `n` of a tensor of `sizes`, of runs that are without what repeats.
double Element(const TensorRuns& runs, const std::vector<double>& written,
               const std::vector<int64_t>& sizes, int64_t n) {
  int64_t at = 0, stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (runs.sizes[i] != 1) at += n % sizes[i] * stride;
    stride *= runs.sizes[i];
    n /= sizes[i];
  }
  return written[at];
}

TEST(ConstantRuns, AreWhatTheEvaluatorComputes) {
  int known = 0, computed = 0;
  for (int seed = 0; seed < 600; ++seed) {
    const RandomConstants random(seed);
    const Model& model = random.model();
    std::map<NodeId, Value<double>> leaves;
    for (int id = 0; id < model.graph.num_nodes(); ++id) {
      const Node& node = model.graph.node(id);
      if (!IsLeaf(node.op.kind())) continue;
      Array<double> array(node.outputs[0].Sizes());
      const StoredValues& values = model.weights.at(node.name);
      array.data.assign(values.begin(), values.end());
      leaves[NodeId{id}] = {node.outputs[0], {array}};
    }
    const auto values = EvaluateGraph(model.graph, leaves);
    ASSERT_TRUE(values.ok()) << values.status();
    ConstantRuns constants(&model);
    for (TensorRef tensor : random.tensors()) {
      computed += !IsLeaf(model.graph.node(tensor.node).op.kind());
      const TensorRuns* const runs = constants.Of(tensor);
      if (runs == nullptr) continue;
      known += !IsLeaf(model.graph.node(tensor.node).op.kind());
      const std::vector<int64_t> sizes = model.graph.type(tensor).Sizes();
      ASSERT_EQ(runs->sizes.size(), sizes.size());
      const std::vector<double> written = runs->Written();
      const std::vector<double>& expected = (*values)[tensor.node.value][0].part(0, 0).data;
      for (size_t n = 0; n < expected.size(); ++n) {
        ASSERT_EQ(Element(*runs, written, sizes, static_cast<int64_t>(n)), expected[n])
            << "seed " << seed << ", element " << n << " of "
            << model.graph.node(tensor.node).op.ToString();
      }
    }
  }
  // What they do not follow, products of positions, is the exception.
  EXPECT_GT(known, computed * 3 / 4) << known << " of " << computed;
}

// Behind what is fed or trained nothing is known.
TEST(ConstantRuns, KnowNothingOfInputsAndWeights) {
  Model model;
  const TensorType type = SequentialType({2, 2});
  const TensorRef input = model.graph.AddInput("x", type);
  const TensorRef weight = model.graph.AddWeight("w", type);
  const TensorRef constant = model.graph.AddConstant("c", type);
  model.weights["w"] = model.weights["c"] = {1, 2, 3, 5};
  const TensorRef of_input = *model.graph.AddOp(OpKind::kAdd, {input, constant}, "a");
  const TensorRef of_weight = *model.graph.AddOp(OpKind::kAdd, {weight, constant}, "b");
  model.graph.AddOutput("a", of_input);
  model.graph.AddOutput("b", of_weight);
  ConstantRuns constants(&model);
  for (TensorRef tensor : {input, weight, of_input, of_weight}) {
    EXPECT_EQ(constants.Of(tensor), nullptr);
  }
  ASSERT_NE(constants.Of(constant), nullptr);
  // Nodes that come later are not looked into.
  const TensorRef later = *model.graph.AddOp(OpKind::kAdd, {constant, constant}, "later");
  EXPECT_EQ(constants.Of(later), nullptr);
}

}  // namespace
}  // namespace isomer
