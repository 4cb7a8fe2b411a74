#include "models/onnx/graph/equal_nodes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_file.h"

namespace isomer {
namespace {

using testing::ElementsAre;

// "y0 = Less(a, b)" of what is left, in order.
std::vector<std::string> NodesOf(const OnnxFile& file, OnnxGraph* graph) {
  absl::StatusOr<OnnxGraph> read = ReadOnnxGraph(file.Bytes(), "net.onnx");
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  *graph = *std::move(read);
  MergeEqualNodes(graph);
  std::vector<std::string> nodes;
  for (const OnnxNode& node : graph->nodes) {
    std::string text;
    for (const std::string& output : node.outputs) text += output + " ";
    text += "= " + node.op;
    for (const std::string& input : node.inputs) text += " " + input;
    nodes.push_back(text);
  }
  return nodes;
}

// A mask for each of two layers, of literals of their own.
OnnxFile Masks() {
  OnnxFile file;
  file.Input("x", {2, 2}).Ints("rows", {2, 1}, {0, 1}).Ints("columns0", {1, 2}, {0, 1});
  file.Ints("columns1", {1, 2}, {0, 1}).Floats("w", {2, 2}, {1, 2, 3, 4});
  file.Node("Less", {"rows", "columns0"}, {"seen0"}).Node("Not", {"seen0"}, {"mask0"});
  file.Node("Where", {"mask0", "x", "w"}, {"h"});
  file.Node("Less", {"rows", "columns1"}, {"seen1"}).Node("Not", {"seen1"}, {"mask1"});
  file.Node("Where", {"mask1", "h", "w"}, {"y"});
  return file.Output("y", {2, 2});
}

TEST(MergeEqualNodes, WhatRepeatsAnEarlierOneGoes) {
  OnnxGraph graph;
  EXPECT_THAT(NodesOf(Masks(), &graph),
              ElementsAre("seen0 = Less rows columns0", "mask0 = Not seen0", "h = Where mask0 x w",
                          "y = Where mask0 h w"));
  EXPECT_EQ(graph.Producer("y"), &graph.nodes[3]);
  EXPECT_EQ(graph.Producer("mask1"), nullptr);
}

TEST(MergeEqualNodes, OutputsKeepTheirNames) {
  OnnxFile file = Masks();
  file.Output("mask1", {2, 2}, onnx::TensorProto::BOOL);
  OnnxGraph graph;
  EXPECT_THAT(NodesOf(file, &graph),
              ElementsAre("seen0 = Less rows columns0", "mask0 = Not seen0", "h = Where mask0 x w",
                          "mask1 = Not seen0", "y = Where mask1 h w"));
}

TEST(MergeEqualNodes, OthersStay) {
  OnnxFile file;
  file.Input("x", {2}).Floats("w", {2}, {1, 2}).Floats("v", {2}, {1, 2}).Ints("i", {2}, {1, 2});
  file.Ints("j", {2}, {1, 3}).Ints("k", {1, 2}, {1, 2});
  file.Node("Relu", {"x"}, {"a"}).Node("Relu", {"x"}, {"b"});  // of data
  file.Node("Relu", {"w"}, {"c"}).Node("Relu", {"v"}, {"d"});  // trained
  file.Node("Neg", {"i"}, {"e"}).Node("Neg", {"j"}, {"f"}).Node("Neg", {"k"}, {"g"});
  file.Node("Cast", {"i"}, {"h"}).With("to", int64_t{onnx::TensorProto::FLOAT});
  file.Node("Cast", {"i"}, {"l"}).With("to", int64_t{onnx::TensorProto::INT32});
  file.Node("RandomUniformLike", {"i"}, {"m"}).Node("RandomUniformLike", {"i"}, {"n"});
  file.Node("Sum", {"a", "b", "c", "d"}, {"y"}).Output("y", {2});
  OnnxGraph graph;
  EXPECT_EQ(NodesOf(file, &graph).size(), 12u);
}

}  // namespace
}  // namespace isomer
