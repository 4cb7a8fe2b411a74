#include "models/support/einsum.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pcg/evaluation/evaluator.h"

namespace isomer {
namespace {

using testing::HasSubstr;

// An einsum without "..." by its definition: a loop over all labels.
Array<double> BruteForce(const std::string& equation, const std::map<char, int64_t>& sizes,
                         const std::vector<Array<double>>& operands) {
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  std::map<char, int64_t> at;
  for (char label : sides[0]) {
    if (label != ',') at[label] = 0;
  }
  auto offset = [&](const std::string& labels) {
    int64_t result = 0;
    for (char label : labels) result = result * sizes.at(label) + at[label];
    return result;
  };
  std::vector<int64_t> shape;
  for (char label : sides[1]) shape.push_back(sizes.at(label));
  Array<double> output(shape, 0.0);
  while (true) {
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) product *= operands[i].data[offset(terms[i])];
    output.data[offset(sides[1])] += product;
    auto next = at.begin();
    while (next != at.end() && ++next->second == sizes.at(next->first)) (next++)->second = 0;
    if (next == at.end()) return output;
  }
}

struct Network {
  Graph graph;
  std::vector<TensorRef> operands;
  std::map<NodeId, Value<double>> leaves;
};

Network WithOperands(const std::vector<Array<double>>& operands) {
  Network network;
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorType type = SequentialType(operands[i].shape);
    network.operands.push_back(network.graph.AddInput("x" + std::to_string(i), type));
    network.leaves[network.operands.back().node] = {type, {operands[i]}};
  }
  return network;
}

Array<double> Lowered(const std::string& equation, const std::vector<Array<double>>& operands) {
  Network network = WithOperands(operands);
  const auto result = AddEinsum(&network.graph, equation, network.operands, "y");
  EXPECT_TRUE(result.ok()) << equation << ": " << result.status();
  if (!result.ok()) return {};
  network.graph.AddOutput("y", *result);
  const auto values = EvaluateGraph(network.graph, network.leaves);
  EXPECT_TRUE(values.ok()) << equation << ": " << values.status();
  return values.ok() ? (*values)[result->node.value][result->output].parts[0] : Array<double>();
}

Array<double> Random(std::vector<int64_t> shape, std::mt19937* random) {
  Array<double> array(std::move(shape));
  for (double& v : array.data) v = std::uniform_real_distribution<double>(-1, 1)(*random);
  return array;
}

void ExpectEqual(const Array<double>& computed, const Array<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(computed.shape, expected.shape) << what;
  ASSERT_EQ(computed.data.size(), expected.data.size()) << what;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    ASSERT_NEAR(computed.data[i], expected.data[i], 1e-12) << what << " at " << i;
  }
}

void ExpectAsDefined(const std::string& equation, const std::map<char, int64_t>& sizes,
                     std::mt19937* random) {
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  std::vector<Array<double>> operands;
  for (const std::string& term : std::vector<std::string>(absl::StrSplit(sides[0], ','))) {
    std::vector<int64_t> shape;
    for (char label : term) shape.push_back(sizes.at(label));
    operands.push_back(Random(std::move(shape), random));
  }
  ExpectEqual(Lowered(equation, operands), BruteForce(equation, sizes, operands), equation);
}

TEST(Einsum, RandomEquations) {
  std::mt19937 random(2022);
  for (int round = 0; round < 300; ++round) {
    const int num_operands = 1 + static_cast<int>(random() % 3);
    std::map<char, int64_t> sizes;
    std::string equation, all;
    for (int i = 0; i < num_operands; ++i) {
      std::string labels = "abcde";
      std::shuffle(labels.begin(), labels.end(), random);
      labels.resize(random() % 4);
      equation += (i == 0 ? "" : ",") + labels;
      for (char label : labels) {
        if (sizes.emplace(label, 1 + random() % 3).second) all += label;
      }
    }
    std::shuffle(all.begin(), all.end(), random);
    all.resize(random() % (all.size() + 1));
    SCOPED_TRACE("round " + std::to_string(round));
    ExpectAsDefined(equation + "->" + all, sizes, &random);
  }
}

TEST(Einsum, DiagonalsAndTraces) {
  std::mt19937 random(7);
  const std::map<char, int64_t> sizes = {{'i', 3}, {'j', 2}, {'k', 4}};
  for (const char* equation : {"ii->i", "ii->", "iji->j", "jiijk->kij", "iii->i", "ijij,ik->kj"}) {
    ExpectAsDefined(equation, sizes, &random);
  }
}

TEST(Einsum, ImplicitOutputIsAlphabetical) {
  std::mt19937 random(8);
  const std::vector<Array<double>> operands = {Random({2, 3}, &random), Random({3, 4}, &random)};
  ExpectEqual(Lowered("zj, jb", operands), Lowered("zj,jb->bz", operands), "zj, jb");
}

TEST(Einsum, FurtherDimsBroadcastFromTheRight) {
  std::mt19937 random(9);
  const std::map<char, int64_t> sizes = {{'p', 2}, {'q', 3}, {'i', 2}, {'j', 4}, {'k', 3}};
  const Array<double> a = Random({2, 3, 2, 4}, &random), b = Random({3, 4, 3}, &random);
  const Array<double> expected = BruteForce("pqij,qjk->pqik", sizes, {a, b});
  ExpectEqual(Lowered("...ij,...jk", {a, b}), expected, "implicit");
  ExpectEqual(Lowered("...ij,...jk->...ik", {a, b}), expected, "explicit");
  Array<double> one = a;
  one.shape = {1, 2, 3, 2, 4};
  one.origin.assign(5, 0);
  const Array<double> wide = Random({5, 1, 3, 4, 3}, &random);
  EXPECT_EQ(Lowered("...ij,...jk->i...k", {one, wide}).shape,
            (std::vector<int64_t>{2, 5, 2, 3, 3}));
}

TEST(Einsum, DispatchOfExpertsIsOneBatchedProduct) {
  Network network = WithOperands({Array<double>({2, 6, 3, 4}), Array<double>({2, 6, 8})});
  const auto result = AddEinsum(&network.graph, "GSEC,GSM->EGCM", network.operands, "dispatch");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(network.graph.type(*result).ToString(), "f32[3,2,4,8]");
  EXPECT_EQ(network.graph.node(result->node).name, "dispatch");
  int products = 0;
  for (int id = 0; id < network.graph.num_nodes(); ++id) {
    products += network.graph.node(id).op.kind() == OpKind::kMatMul ? 1 : 0;
  }
  EXPECT_EQ(products, 1);
}

TEST(Einsum, LinearLayersNeedNothingButTheProduct) {
  Network network = WithOperands({Array<double>({2, 6, 3}), Array<double>({3, 4})});
  const int before = network.graph.num_nodes();
  ASSERT_TRUE(AddEinsum(&network.graph, "bsd,dh->bsh", network.operands, "y").ok());
  EXPECT_EQ(network.graph.num_nodes(), before + 1);
}

TEST(Einsum, WhatIsWrongIsNamed) {
  const std::map<std::string, std::string> messages = {
      {"ij,jk->ik", "einsum 'ij,jk->ik': j is 3 and 4"},
      {"ij,kl->im", "no operand has m"},
      {"ij,kl->ii", "i stands twice in the output"},
      {"ij->ij", "it has 1 operands, not 2"},
      {"ijk,lm", "'ijk' has 3 labels, and its operand has 2 dims"},
      {"i,lm", "'i' has 1 labels, and its operand has 2 dims"},
      {"i1,lm", "'1' is not a label"},
      {"ij,kl->ij->k", "two arrows"},
      {"i......,kl", "'.' is not a label"},
      {"", "it has 1 operands, not 2"},
  };
  for (const auto& [equation, message] : messages) {
    Network network = WithOperands({Array<double>({2, 3}), Array<double>({4, 5})});
    const auto result = AddEinsum(&network.graph, equation, network.operands, "y");
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message)) << equation;
  }
}

}  // namespace
}  // namespace isomer
