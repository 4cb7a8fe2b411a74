// What is behind a convolution goes where other programs fuse it, and computes the same.
#include "models/onnx/export/convolution_form.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/graph.h"

namespace isomer {
namespace {

using testing::ElementsAre;

using NamedArrays = std::map<std::string, Array<double>>;

NamedArrays ImageValues(const Graph& graph, const NamedArrays& leaves) {
  std::map<NodeId, Value<double>> given;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (IsLeaf(node.op.kind())) given[NodeId{id}] = {node.outputs[0], {leaves.at(node.name)}};
  }
  const auto values = EvaluateGraph<double>(graph, given);
  EXPECT_TRUE(values.ok()) << values.status();
  NamedArrays outputs;
  for (const auto& [name, tensor] : graph.outputs()) {
    outputs[name] = (*values)[tensor.node.value][tensor.output].part(0, 0);
  }
  return outputs;
}

NamedArrays RandomLeaves(const Graph& graph) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  NamedArrays leaves;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    Array<double> array(node.outputs[0].Sizes());
    for (double& x : array.data) x = normal(random);
    leaves[node.name] = std::move(array);
  }
  return leaves;
}

// Names of the calls of what depends on inputs, in order, after the form is taken; it computes the
// same.
std::vector<std::string> FormOf(const std::string& text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::StatusOr<Graph> form = ConvolutionForm(*graph);
  EXPECT_TRUE(form.ok()) << form.status();
  EXPECT_TRUE(form->Validate().ok()) << form->Validate();
  const NamedArrays leaves = RandomLeaves(*graph);
  const NamedArrays expected = ImageValues(*graph, leaves), actual = ImageValues(*form, leaves);
  for (const auto& [name, array] : expected) {
    const Array<double>& other = actual.at(name);
    EXPECT_EQ(array.data.size(), other.data.size());
    for (size_t i = 0; i < array.data.size(); ++i) {
      EXPECT_NEAR(array.data[i], other.data[i], 1e-9) << name << " " << i;
    }
  }
  std::vector<std::string> calls;
  std::vector<bool> depends(form->num_nodes(), false);
  for (NodeId id : form->TopologicalOrder()) {
    const Node& node = form->node(id);
    bool is_of_data = node.op.kind() == OpKind::kInput;
    for (TensorRef in : node.inputs) is_of_data = is_of_data || depends[in.node.value];
    depends[id.value] = is_of_data;
    if (is_of_data && !IsLeaf(node.op.kind())) calls.push_back(std::string(node.op.name()));
  }
  return calls;
}

constexpr char kLeaves[] =
    "%0 = input \"x\" : f32[2,3,4,4]\n"
    "%1 = weight \"w\" : f32[4,3,1,1]\n"
    "%2 = weight \"c\" : f32[1,4,1,1]\n"
    "%3 = conv2d(%0, %1) {dilation=[1,1], groups=1, padding=[0,0,0,0], stride=[1,1]} : "
    "f32[2,4,4,4]\n";

TEST(ConvolutionForm, ASplitIsOneConvolutionForEachPart) {
  EXPECT_THAT(FormOf(absl::StrCat(kLeaves,
                                  "%4 = add(%3, %2) : f32[2,4,4,4]\n"
                                  "%5 = relu(%4) : f32[2,4,4,4]\n"
                                  "%6 = split(%5) {axis=-3, sizes=[1,3]} : "
                                  "f32[2,1,4,4], f32[2,3,4,4]\n"
                                  "output \"a\" = %6.0\noutput \"b\" = %6.1\n")),
              ElementsAre("conv2d", "add", "relu", "conv2d", "add", "relu"));
}

TEST(ConvolutionForm, ReluGoesBeforePoolingAndConcatenation) {
  EXPECT_THAT(
      FormOf(absl::StrCat(
          kLeaves,
          "%4 = weight \"v\" : f32[2,3,1,1]\n"
          "%5 = conv2d(%0, %4) {dilation=[1,1], groups=1, padding=[0,0,0,0], stride=[1,1]} : "
          "f32[2,2,4,4]\n"
          "%6 = concat(%3, %5) {axis=1} : f32[2,6,4,4]\n"
          "%7 = max_pool(%6) {kernel=[2,2], padding=[0,0,0,0], stride=[2,2]} : f32[2,6,2,2]\n"
          "%8 = weight \"d\" : f32[1,6,1,1]\n"
          "%9 = add(%8, %7) : f32[2,6,2,2]\n"
          "%10 = relu(%9) : f32[2,6,2,2]\n"
          "output \"y\" = %10\n")),
      ElementsAre("conv2d", "conv2d", "add", "add", "relu", "relu", "concat", "max_pool"));
}

TEST(ConvolutionForm, AConstantMinusAConvolutionIsAConvolutionAndASum) {
  EXPECT_THAT(FormOf(absl::StrCat(kLeaves, "%4 = sub(%2, %3) : f32[2,4,4,4]\noutput \"y\" = %4\n")),
              ElementsAre("conv2d", "add"));
}

TEST(ConvolutionForm, GroupsOfWhatWasConcatenatedAreConvolutions) {
  EXPECT_THAT(FormOf("%0 = input \"x\" : f32[2,3,4,4]\n"
                     "%1 = input \"y\" : f32[2,6,4,4]\n"
                     "%2 = concat(%0, %1) {axis=1} : f32[2,9,4,4]\n"
                     "%3 = weight \"w\" : f32[6,3,1,1]\n"
                     "%4 = conv2d(%2, %3) {dilation=[1,1], groups=3, padding=[0,0,0,0], "
                     "stride=[1,1]} : f32[2,6,4,4]\n"
                     "%5 = split(%4) {axis=1, sizes=[2,4]} : f32[2,2,4,4], f32[2,4,4,4]\n"
                     "output \"a\" = %5.0\noutput \"b\" = %5.1\n"),
              ElementsAre("conv2d", "conv2d"));
}

TEST(ConvolutionForm, SamplesThatWereConcatenatedAreConvolutions) {
  EXPECT_THAT(
      FormOf("%0 = input \"x\" : f32[2,3,4,4]\n"
             "%1 = input \"y\" : f32[1,3,4,4]\n"
             "%2 = concat(%0, %1) {axis=0} : f32[3,3,4,4]\n"
             "%3 = weight \"w\" : f32[6,3,1,1]\n"
             "%4 = conv2d(%2, %3) {dilation=[1,1], groups=1, padding=[0,0,0,0], stride=[1,1]} : "
             "f32[3,6,4,4]\n"
             "%5 = split(%4) {axis=0, sizes=[2,1]} : f32[2,6,4,4], f32[1,6,4,4]\n"
             "output \"a\" = %5.0\noutput \"b\" = %5.1\n"),
      ElementsAre("conv2d", "conv2d"));
}

TEST(ConvolutionForm, ASumOfConvolutionsHasItsConstantInOne) {
  EXPECT_THAT(FormOf(absl::StrCat(kLeaves,
                                  "%4 = weight \"v\" : f32[4,3,1,1]\n"
                                  "%5 = conv2d(%0, %4) {dilation=[1,1], groups=1, "
                                  "padding=[0,0,0,0], stride=[1,1]} : f32[2,4,4,4]\n"
                                  "%6 = add(%3, %5) : f32[2,4,4,4]\n"
                                  "%7 = add(%6, %2) : f32[2,4,4,4]\n"
                                  "%8 = relu(%7) : f32[2,4,4,4]\n"
                                  "output \"y\" = %8\n")),
              ElementsAre("conv2d", "conv2d", "add", "add", "relu"));
}

TEST(ConvolutionForm, SumsInPlaceOfDifferencesAndDoubles) {
  EXPECT_THAT(FormOf(absl::StrCat(kLeaves,
                                  "%4 = sub(%3, %2) : f32[2,4,4,4]\n"
                                  "%5 = scale(%4) {factor=2} : f32[2,4,4,4]\n"
                                  "output \"y\" = %5\n")),
              ElementsAre("conv2d", "add", "add"));
  EXPECT_THAT(FormOf(absl::StrCat(kLeaves,
                                  "%4 = concat(%3, %3) {axis=1} : f32[2,8,4,4]\n"
                                  "%5 = concat(%4, %0) {axis=-3} : f32[2,11,4,4]\n"
                                  "output \"y\" = %5\n")),
              ElementsAre("conv2d", "concat"));
}

// Nothing is computed twice, and what is no convolution's stays.
TEST(ConvolutionForm, WhatIsUsedElsewhereStays) {
  const std::string split = "%4 = split(%3) {axis=1, sizes=[1,3]} : f32[2,1,4,4], f32[2,3,4,4]\n";
  EXPECT_THAT(
      FormOf(absl::StrCat(kLeaves, split,
                          "output \"a\" = %4.0\noutput \"b\" = %4.1\noutput \"all\" = %3\n")),
      ElementsAre("conv2d", "split"));
  EXPECT_THAT(FormOf("%0 = input \"x\" : f32[2,4,4,4]\n"
                     "%1 = split(%0) {axis=1, sizes=[1,3]} : f32[2,1,4,4], f32[2,3,4,4]\n"
                     "output \"a\" = %1.0\noutput \"b\" = %1.1\n"),
              ElementsAre("split"));
  EXPECT_THAT(FormOf(absl::StrCat(kLeaves,
                                  "%4 = split(%3) {axis=3, sizes=[1,3]} : f32[2,4,4,1], "
                                  "f32[2,4,4,3]\noutput \"a\" = %4.0\noutput \"b\" = %4.1\n")),
              ElementsAre("conv2d", "split"));
  EXPECT_THAT(
      FormOf(absl::StrCat(
          kLeaves,
          "%4 = max_pool(%3) {kernel=[2,2], padding=[0,0,0,0], stride=[2,2]} : f32[2,4,2,2]\n"
          "%5 = relu(%4) : f32[2,4,2,2]\n"
          "output \"y\" = %5\noutput \"pooled\" = %4\n")),
      ElementsAre("conv2d", "max_pool", "relu"));
}

}  // namespace
}  // namespace isomer
