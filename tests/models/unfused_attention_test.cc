#include "models/unfused_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "pcg/ir/operator_facts.h"
#include "tests/models/model_values.h"
#include "tests/models/text_model.h"

namespace isomer {
namespace {

// Leaves without a value in the model have numbers that depend on their name alone.
std::vector<double> OutputOf(const Model& model) {
  const auto values = EvaluateModel(model, [](const Node& node, Array<double>* array) {
    std::mt19937 random(std::hash<std::string>()(std::string(node.name)));
    std::normal_distribution<double> normal;
    for (double& value : array->data) value = normal(random);
  });
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  const TensorRef output = model.graph.outputs()[0].tensor;
  return (*values)[output.node.value][output.output].part(0, 0).data;
}

bool HasAttention(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const OpKind kind = graph.node({id}).op.kind();
    if (IsAttention(kind)) return true;
  }
  return false;
}

void ExpectTheSame(const std::string& text, int calls) {
  SCOPED_TRACE(text);
  const Model fused = TextModel(text);
  Model unfused = TextModel(text);
  const auto taken_apart = TakeAttentionApart(&unfused);
  ASSERT_TRUE(taken_apart.ok()) << taken_apart.status();
  EXPECT_EQ(*taken_apart, calls);
  EXPECT_FALSE(HasAttention(unfused.graph));
  const std::vector<double> expected = OutputOf(fused), actual = OutputOf(unfused);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

constexpr char kOperands[] = R"(
%0 = input "q" : f32[2,4,3,8]
%1 = input "k" : f32[2,4,3,8]
%2 = input "v" : f32[2,4,3,5]
)";

TEST(UnfusedAttention, ComputesWhatFusedAttentionDoes) {
  for (const std::string attributes : {"{causal=0,scale=0.5}", "{causal=1,scale=0.25}"}) {
    ExpectTheSame(std::string(kOperands) + "%3 = attention(%0, %1, %2) " + attributes +
                      " : f32[2,4,3,5]\noutput \"y\" = %3\n",
                  1);
  }
}

TEST(UnfusedAttention, HasSinksAndWindows) {
  for (const std::string attributes :
       {"{causal=0,scale=0.5,window=0}", "{causal=1,scale=0.25,window=0}",
        "{causal=1,scale=0.25,window=2}", "{causal=0,scale=0.25,window=1}"}) {
    ExpectTheSame(std::string(kOperands) + "%3 = input \"sinks\" : f32[4]\n" +
                      "%4 = sink_attention(%0, %1, %2, %3) " + attributes +
                      " : f32[2,4,3,5]\noutput \"y\" = %4\n",
                  1);
  }
}

TEST(UnfusedAttention, HasMasksCapsAndCallsThatShareAMask) {
  ExpectTheSame(R"(
%0 = input "q" : f32[2,4,3,8]
%1 = input "k" : f32[2,4,3,8]
%2 = input "v" : f32[2,4,3,8]
%3 = input "mask" : f32[1,1,3,3]
%4 = attention(%0, %1, %2, %3) {causal=1,scale=0.5} : f32[2,4,3,8]
%5 = capped_attention(%4, %1, %2) {cap=1.5,causal=1,scale=0.5} : f32[2,4,3,8]
output "y" = %5
)",
                2);
}

TEST(UnfusedAttention, OfStripesHasMasksInTheirOrder) {
  constexpr char kOperandsOfSix[] = R"(
%0 = input "q" : f32[2,4,6,8]
%1 = input "k" : f32[2,4,6,8]
%2 = input "v" : f32[2,4,6,5]
%3 = input "sinks" : f32[4]
)";
  for (const std::string call :
       {"attention(%0, %1, %2) {causal=2,scale=0.5}", "attention(%0, %1, %2) {causal=3,scale=0.5}",
        "sink_attention(%0, %1, %2, %3) {causal=2,scale=0.5,window=3}"}) {
    ExpectTheSame(
        std::string(kOperandsOfSix) + "%4 = " + call + " : f32[2,4,6,5]\noutput \"y\" = %4\n", 1);
  }
}

// Two queries of a head share a key, and the keys are more than the queries: a past.
TEST(UnfusedAttention, RepeatsKeysOfGroupsAndSeesThePast) {
  ExpectTheSame(R"(
%0 = input "q" : f32[2,4,3,8]
%1 = input "k" : f32[2,2,5,8]
%2 = input "v" : f32[2,2,5,8]
%3 = attention(%0, %1, %2) {causal=1,scale=0.5} : f32[2,4,3,8]
output "y" = %3
)",
                1);
}

TEST(UnfusedAttention, LeavesOtherModelsAsTheyAre) {
  Model model = TextModel("%0 = input \"x\" : f32[4]\n%1 = relu(%0) : f32[4]\noutput \"y\" = %1\n");
  EXPECT_EQ(TakeAttentionApart(&model).value(), 0);
  EXPECT_EQ(model.graph.num_nodes(), 2);
}

}  // namespace
}  // namespace isomer
