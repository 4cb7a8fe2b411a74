#include "models/onnx/graph/batched_iterations.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/nested_parts.h"

namespace isomer {
namespace {

using Dims = std::vector<int64_t>;

// concat(f(piece 0), f(piece 1), ..), as an unrolled loop leaves it.
class Unrolled {
 public:
  Graph& graph() { return model_.graph; }
  Model& model() { return model_; }

  TensorRef Call(Operator op, std::vector<TensorRef> inputs) {
    absl::StatusOr<TensorRef> result = graph().AddOp(std::move(op), std::move(inputs), "call");
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : TensorRef{{0}};
  }

  // x[begin : begin + size] of dim `axis`, as part of a Split of its own.
  TensorRef Piece(TensorRef x, int64_t axis, int64_t begin, int64_t size) {
    const int64_t behind = graph().type(x).Sizes()[axis] - begin - size;
    Dims sizes = {size};
    if (begin > 0) sizes.insert(sizes.begin(), begin);
    if (behind > 0) sizes.push_back(behind);
    if (sizes.size() == 1) return x;
    const absl::StatusOr<NodeId> split =
        graph().Add({OpKind::kSplit, {{"axis", axis}, {"sizes", sizes}}}, {x}, "piece");
    EXPECT_TRUE(split.ok()) << split.status();
    return {*split, begin > 0 ? 1 : 0};
  }

  void Join(std::vector<TensorRef> parts, int64_t axis) {
    const TensorRef y = NestedConcat(std::move(parts), [&](std::vector<TensorRef> group) {
      return Call({OpKind::kConcat, {{"axis", axis}}}, std::move(group));
    });
    graph().AddOutput("y", y);
  }

  // The output for leaves that are drawn.
  std::vector<double> Value() {
    std::map<NodeId, isomer::Value<double>> leaves;
    std::mt19937 random(1);
    std::map<std::string, std::vector<double>> drawn;
    for (const char* name : {"ids", "left", "right", "table", "x", "z"}) {
      for (int i = 0; i < 4096; ++i) {
        drawn[name].push_back(std::string(name) == "ids" ? random() % 6 : random() % 1000 / 250.0);
      }
    }
    for (int id = 0; id < graph().num_nodes(); ++id) {
      const Node& node = graph().node(id);
      if (!IsLeaf(node.op.kind())) continue;
      Array<double> array(node.outputs[0].Sizes());
      const std::vector<double>& values = drawn.at(node.name);
      array.data.assign(values.begin(),
                        values.begin() + static_cast<int64_t>(node.outputs[0].NumElements()));
      leaves[NodeId{id}] = {node.outputs[0], {std::move(array)}};
    }
    const auto values = EvaluateGraph(graph(), leaves);
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return {};
    const TensorRef y = graph().outputs()[0].tensor;
    return (*values)[y.node.value][y.output].parts[0].data;
  }

  int CountOf(OpKind kind) {
    int count = 0;
    for (int id = 0; id < graph().num_nodes(); ++id) count += graph().node(id).op.kind() == kind;
    return count;
  }

  // The output must stay what it is. Returns how many concats stay.
  int ConcatsAfterwards() {
    const std::vector<double> before = Value();
    BatchIterations(&model_);
    EXPECT_TRUE(graph().Validate().ok()) << graph().Validate();
    const std::vector<double> after = Value();
    EXPECT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
      EXPECT_NEAR(before[i], after[i], 1e-12) << i << "\n" << graph().ToString();
    }
    return CountOf(OpKind::kConcat);
  }

 private:
  Model model_;
};

Operator Reduction(OpKind kind, Dims axes, bool keeps_dims) {
  return {kind, {{"axes", std::move(axes)}, {"keepdims", int64_t{keeps_dims}}}};
}

// nn.EmbeddingBag of bags of 3.
TEST(BatchedIterations, BagsAreOneLookUp) {
  for (OpKind reduction : {OpKind::kReduceSum, OpKind::kReduceMean, OpKind::kReduceMax}) {
    Unrolled loop;
    const TensorRef ids = loop.graph().AddInput("ids", SequentialType({24}, DataType::kInt64));
    const TensorRef table = loop.graph().AddWeight("table", SequentialType({6, 4}));
    std::vector<TensorRef> bags;
    for (int64_t i = 0; i < 8; ++i) {
      const TensorRef rows = loop.Call({OpKind::kEmbedding}, {table, loop.Piece(ids, 0, 3 * i, 3)});
      // The last mean is written in another way.
      TensorRef bag;
      if (i == 7 && reduction == OpKind::kReduceMean) {
        bag = loop.Call(Reduction(OpKind::kReduceSum, {0}, true), {rows});
        bag = loop.Call({OpKind::kScale, {{"factor", 1 / 3.0}}}, {bag});
      } else {
        bag = loop.Call(Reduction(reduction, {0}, true), {rows});
      }
      bags.push_back(bag);
    }
    loop.Join(bags, 0);
    EXPECT_EQ(loop.ConcatsAfterwards(), 0) << loop.graph().ToString();
    EXPECT_EQ(loop.CountOf(OpKind::kEmbedding), 1);
    EXPECT_EQ(loop.CountOf(OpKind::kSplit), 0);
  }
}

// Pieces of dims 0 to 2, joined along dims 0 to 2, through calls of every kind that is known.
TEST(BatchedIterations, AllDimsAndCalls) {
  for (int64_t cut = 0; cut < 3; ++cut) {
    for (int64_t along = 0; along < 3; ++along) {
      for (int64_t axis : {-1, 0, 1, 2}) {
        Unrolled loop;
        Dims sizes = {2, 3, 4};
        sizes[cut] *= 6;
        const TensorRef x = loop.graph().AddInput("x", SequentialType(sizes));
        const TensorRef z = loop.graph().AddInput("z", SequentialType({3, 1}));
        std::vector<TensorRef> parts;
        for (int64_t i = 0; i < 6; ++i) {
          const int64_t size = sizes[cut] / 6;
          TensorRef part = loop.Piece(x, cut, i * size, size);
          part = loop.Call({OpKind::kSoftmax, {{"axis", axis}}}, {part});
          part = loop.Call({OpKind::kMul}, {part, z});
          part = loop.Call({OpKind::kAdd},
                           {part, loop.Call(Reduction(OpKind::kReduceMax, {axis}, true), {part})});
          part = loop.Call({OpKind::kTranspose, {{"perm", Dims{2, 0, 1}}}}, {part});
          part = loop.Call({OpKind::kReshape, {{"shape", Dims{2, 2, 6}}}}, {part});
          parts.push_back(part);
        }
        loop.Join(parts, along);
        EXPECT_EQ(loop.ConcatsAfterwards(), 0) << cut << " " << along << " " << axis;
        EXPECT_EQ(loop.CountOf(OpKind::kSoftmax), 1);
      }
    }
  }
}

// Operands of fewer dims are broadcast over dims of their iteration, not over iterations.
TEST(BatchedIterations, Broadcasting) {
  Unrolled loop;
  const TensorRef x = loop.graph().AddInput("x", SequentialType({6, 6, 3}));
  const TensorRef z = loop.graph().AddInput("z", SequentialType({6, 3}));
  std::vector<TensorRef> parts;
  for (int64_t i = 0; i < 6; ++i) {
    const TensorRef row =
        loop.Call({OpKind::kReshape, {{"shape", Dims{3}}}}, {loop.Piece(z, 0, i, 1)});
    parts.push_back(loop.Call({OpKind::kMul}, {loop.Piece(x, 0, i, 1), row}));
  }
  loop.Join(parts, 0);
  EXPECT_EQ(loop.ConcatsAfterwards(), 0) << loop.graph().ToString();
}

// What looks alike and is not: each pair of neighbours is, but not all of them together.
TEST(BatchedIterations, WhatIsSharedMustBeSharedByAll) {
  Unrolled loop;
  const TensorRef x = loop.graph().AddInput("x", SequentialType({16, 3}));
  const TensorRef z = loop.graph().AddInput("z", SequentialType({16, 3}));
  std::vector<TensorRef> parts;
  for (int64_t i = 0; i < 8; ++i) {
    // 0, 0, 0, 1, 2, 3, ..
    const int64_t other = std::max<int64_t>(0, i - 2);
    parts.push_back(
        loop.Call({OpKind::kMul}, {loop.Piece(x, 0, 2 * i, 2), loop.Piece(z, 0, 2 * other, 2)}));
  }
  loop.Join(parts, 0);
  loop.ConcatsAfterwards();
}

TEST(BatchedIterations, OtherOrdersSizesAndGapsStay) {
  struct Case {
    std::string what;
    std::vector<std::pair<int64_t, int64_t>> pieces;  // begin, size
  };
  for (const Case& test : {Case{"backwards", {{10, 2}, {8, 2}, {6, 2}, {4, 2}, {2, 2}, {0, 2}}},
                           Case{"gaps", {{0, 1}, {2, 1}, {4, 1}, {6, 1}, {8, 1}, {10, 1}}},
                           Case{"overlaps", {{0, 2}, {1, 2}, {2, 2}, {3, 2}, {4, 2}, {5, 2}}},
                           Case{"sizes", {{0, 1}, {1, 2}, {3, 1}, {4, 2}, {6, 1}, {7, 2}}},
                           Case{"few", {{0, 2}, {2, 2}, {4, 2}, {6, 2}}}}) {
    Unrolled loop;
    const TensorRef x = loop.graph().AddInput("x", SequentialType({12, 3}));
    std::vector<TensorRef> parts;
    for (const auto& [begin, size] : test.pieces) {
      parts.push_back(loop.Call({OpKind::kTanh}, {loop.Piece(x, 0, begin, size)}));
    }
    loop.Join(parts, 0);
    const int before = loop.CountOf(OpKind::kConcat);
    EXPECT_EQ(loop.ConcatsAfterwards(), before) << test.what;
  }
}

// Iterations that carry a state depend on each other.
TEST(BatchedIterations, RecurrencesStay) {
  Unrolled loop;
  const TensorRef x = loop.graph().AddInput("x", SequentialType({8, 3}));
  std::vector<TensorRef> parts;
  TensorRef state = loop.Piece(x, 0, 0, 1);
  for (int64_t i = 0; i < 8; ++i) {
    state =
        loop.Call({OpKind::kTanh}, {loop.Call({OpKind::kAdd}, {state, loop.Piece(x, 0, i, 1)})});
    parts.push_back(state);
  }
  loop.Join(parts, 0);
  EXPECT_EQ(loop.ConcatsAfterwards(), 3);
}

// A run among others; its pieces lie within a larger tensor, in parts of parts.
TEST(BatchedIterations, RunsAmongOthers) {
  Unrolled loop;
  const TensorRef x = loop.graph().AddInput("x", SequentialType({20, 3}));
  const TensorRef inner = loop.Piece(x, 0, 3, 14);
  std::vector<TensorRef> parts = {loop.Piece(x, 0, 18, 2)};
  for (int64_t i = 0; i < 6; ++i) {
    parts.push_back(loop.Call({OpKind::kTanh}, {loop.Piece(inner, 0, 1 + 2 * i, 2)}));
  }
  parts.push_back(loop.Call({OpKind::kRelu}, {loop.Piece(x, 0, 0, 2)}));
  loop.Join(parts, 0);
  EXPECT_EQ(loop.ConcatsAfterwards(), 1) << loop.graph().ToString();
  EXPECT_EQ(loop.CountOf(OpKind::kTanh), 1);
}

// Random numbers belong to places.
TEST(BatchedIterations, DropoutStays) {
  Unrolled loop;
  const TensorRef x = loop.graph().AddInput("x", SequentialType({12, 3}));
  const TensorRef ids = loop.graph().AddInput("ids", SequentialType({}, DataType::kInt64));
  std::vector<TensorRef> parts;
  for (int64_t i = 0; i < 6; ++i) {
    parts.push_back(loop.Call({OpKind::kDropout, {{"rate", 0.5}, {"salt", int64_t{1}}}},
                              {loop.Piece(x, 0, 2 * i, 2), ids}));
  }
  loop.Join(parts, 0);
  BatchIterations(&loop.model());
  EXPECT_EQ(loop.CountOf(OpKind::kDropout), 6);
}

}  // namespace
}  // namespace isomer
