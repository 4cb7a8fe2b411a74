// Boxes of arranged leaves, read from the leaves, against the arrangement of whole tensors.
#include "runtime/execution/arrangement.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "runtime/device/moves.h"
#include "tests/pcg/schedule/parallel_graphs.h"

namespace isomer {
namespace {

// The arrangement that leads to the first output of the graph.
Schedule::HostTensor HostTensorOf(const Graph& graph) {
  Schedule::HostTensor host{.tensor = graph.outputs()[0].tensor};
  for (NodeId id : graph.TopologicalOrder()) {
    (IsLeaf(graph.node(id).op.kind()) ? host.leaves : host.operators).push_back(id);
  }
  return host;
}

HostValues Counted(const Graph& graph) {
  HostValues values;
  double next = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    for (double& value : array.data) value = next++;
    values.emplace(node.name, std::move(array));
  }
  return values;
}

// Every box of up to a few, among them the whole tensor, and single elements.
void ExpectBoxesAsTheWhole(const Graph& graph, std::mt19937* random) {
  const Schedule::HostTensor host = HostTensorOf(graph);
  const HostValues values = Counted(graph);
  const std::optional<Arrangement> arrangement = Arrangement::Of(graph, host);
  ASSERT_TRUE(arrangement.has_value()) << graph.ToString();
  const auto whole = ArrangeHostTensor(graph, host, values);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const HeldLeafValues leaves(values);
  for (int trial = 0; trial < 8; ++trial) {
    Box box;
    for (int64_t size : whole->shape) {
      const int64_t from = trial == 0 ? 0 : static_cast<int64_t>((*random)() % size);
      const int64_t count = trial == 0   ? size
                            : trial == 1 ? 1
                                         : 1 + static_cast<int64_t>((*random)() % (size - from));
      box.origin.push_back(from);
      box.shape.push_back(count);
    }
    std::vector<float> expected(box.Volume()), found(box.Volume(), -1);
    CopyToBuffer(*whole, box, DataType::kFloat32, expected.data());
    ASSERT_EQ(arrangement->ReadBox(leaves, box, DataType::kFloat32, found.data()),
              absl::OkStatus());
    // Leaf by leaf, every element once.
    int64_t elements = 0;
    for (NodeId leaf : arrangement->leaves()) {
      arrangement->ForEachLineOf(leaf, box, [&](const LeafLine& line) {
        elements += line.count;
        EXPECT_EQ(line.leaf, leaf);
      });
    }
    ASSERT_EQ(elements, box.Volume());
    ASSERT_EQ(found, expected) << graph.ToString() << box.ToString();
  }
}

TEST(Arrangement, OfALeafAndAScalar) {
  std::mt19937 random(1);
  ExpectBoxesAsTheWhole(Parsed("%0 = weight \"w\" : f32[3,4,5]\noutput \"y\" = %0\n"), &random);
  ExpectBoxesAsTheWhole(Parsed("%0 = weight \"w\" : f32[]\noutput \"y\" = %0\n"), &random);
}

// As exporters join queries, keys and values, head by head.
TEST(Arrangement, OfJoinedHeads) {
  std::mt19937 random(2);
  ExpectBoxesAsTheWhole(Parsed(R"(
%0 = weight "q" : f32[6,8]
%1 = weight "k" : f32[6,8]
%2 = transpose(%0) {perm=[1,0]} : f32[8,6]
%3 = transpose(%1) {perm=[1,0]} : f32[8,6]
%4 = concat(%2, %3) {axis=1} : f32[8,12]
%5 = cast(%4) {to=2} : bf16[8,12]
%6 = partition(%5) {axis=1, degree=2} : bf16[8,12:2]
output "y" = %6
)"),
                        &random);
  ExpectBoxesAsTheWhole(Parsed(R"(
%0 = weight "w" : f32[12,8]
%1 = reshape(%0) {shape=[2,3,2,8]} : f32[2,3,2,8]
%2 = transpose(%1) {perm=[1,0,2,3]} : f32[3,2,2,8]
%3 = reshape(%2) {shape=[12,8]} : f32[12,8]
%4 = split(%3) {axis=0, sizes=[4,8]} : f32[4,8], f32[8,8]
output "y" = %4.1
)"),
                        &random);
}

// What no view can say: a cut across digits, a reshape of what was put together.
TEST(Arrangement, OfWhatNoViewCanSay) {
  std::mt19937 random(4);
  for (const char* text : {R"(
%0 = weight "w" : f32[2,3]
%1 = transpose(%0) {perm=[1,0]} : f32[3,2]
%2 = reshape(%1) {shape=[6]} : f32[6]
%3 = split(%2) {axis=0, sizes=[3,3]} : f32[3], f32[3]
output "y" = %3.0
)",
                           R"(
%0 = weight "a" : f32[3]
%1 = weight "b" : f32[5]
%2 = concat(%0, %1) {axis=0} : f32[8]
%3 = reshape(%2) {shape=[2,4]} : f32[2,4]
%4 = transpose(%3) {perm=[1,0]} : f32[4,2]
output "y" = %4
)"}) {
    const Graph graph = Parsed(text);
    EXPECT_FALSE(Arrangement::Of(graph, HostTensorOf(graph))->has_views()) << text;
    ExpectBoxesAsTheWhole(graph, &random);
  }
}

TEST(Arrangement, OfMoreThanAnArrangementThereIsNone) {
  const Graph graph = Parsed(R"(
%0 = constant "w" : f32[2,3]
%1 = exp(%0) : f32[2,3]
output "y" = %1
)");
  EXPECT_FALSE(Arrangement::Of(graph, HostTensorOf(graph)).has_value());
}

// Chains of operators at random.
TEST(Arrangement, OfChainsAtRandom) {
  std::mt19937 random(3);
  const std::vector<std::vector<int64_t>> shapes = {{24}, {4, 6}, {2, 12}, {2, 3, 4}, {6, 2, 2}};
  int with_views = 0, without = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Graph graph;
    TensorRef at = graph.AddWeight("w", SequentialType(shapes[random() % shapes.size()]));
    for (int step = 0; step < 4; ++step) {
      const std::vector<int64_t> sizes = graph.type(at).Sizes();
      const int64_t rank = static_cast<int64_t>(sizes.size());
      switch (random() % 4) {
        case 0: {
          std::vector<int64_t> perm(rank);
          for (int64_t d = 0; d < rank; ++d) perm[d] = d;
          std::shuffle(perm.begin(), perm.end(), random);
          at = *graph.AddOp(Operator(OpKind::kTranspose, {{"perm", perm}}), {at});
          break;
        }
        case 1: {
          std::vector<int64_t> shape = shapes[random() % shapes.size()];
          const int64_t elements = graph.type(at).NumElements();
          if (elements != 24)
            shape = {elements % 2 == 0 ? 2 : 1, elements % 2 == 0 ? elements / 2 : elements};
          at = *graph.AddOp(Operator(OpKind::kReshape, {{"shape", shape}}), {at});
          break;
        }
        case 2: {
          const int64_t axis = static_cast<int64_t>(random() % rank);
          if (sizes[axis] < 2) break;
          const int64_t cut = 1 + static_cast<int64_t>(random() % (sizes[axis] - 1));
          const auto split = graph.Add(
              Operator(OpKind::kSplit,
                       {{"axis", axis}, {"sizes", std::vector<int64_t>{cut, sizes[axis] - cut}}}),
              {at});
          at = {*split, static_cast<int32_t>(random() % 2)};
          break;
        }
        default: {
          const TensorRef other = graph.AddWeight(absl::StrCat("w", step), SequentialType(sizes));
          const int64_t axis = static_cast<int64_t>(random() % rank);
          at = *graph.AddOp(Operator(OpKind::kConcat, {{"axis", axis}}), {at, other});
        }
      }
    }
    graph.AddOutput("y", at);
    ++(Arrangement::Of(graph, HostTensorOf(graph))->has_views() ? with_views : without);
    ExpectBoxesAsTheWhole(graph, &random);
  }
  EXPECT_GT(with_views, 200);
  EXPECT_GT(without, 50);
}

TEST(LeafValues, AreTheSameInPartsAndWhole) {
  Model model;
  model.graph = Parsed(R"(
%0 = weight "drawn" : f32[6,8]
%1 = weight "low" : bf16[5]
%2 = weight "given" : f16[3]
output "y" = %0
)");
  model.weights["given"] = std::vector<float>{1, 2.0001f, 3};
  const HostValues whole = InitialWeights(model, 7).value();
  const InitialLeafValues leaves(model, 7);
  for (int id = 0; id < 3; ++id) {
    const auto leaf = leaves.Find(model.graph, {id});
    ASSERT_TRUE(leaf.ok());
    const Array<double>& values = whole.at(model.graph.node({id}).name);
    for (int64_t i = 0; i < values.size(); i += 2) {
      double value = -1;
      (*leaf)->Read(i, 3, 1, &value);
      EXPECT_EQ(value, values.data[i]);
    }
  }
  EXPECT_EQ(whole.at("given").data[1], 2);
  model.weights["given"] = std::vector<float>{1, 2};
  EXPECT_EQ(InitialWeights(model, 7).status().message(),
            "%2 weight 'given': 2 initial values for 3 elements");
}

}  // namespace
}  // namespace isomer
