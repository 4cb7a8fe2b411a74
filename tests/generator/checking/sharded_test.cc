// Two engines: shard by shard against the reference evaluator's meanings.
#include "generator/checking/sharded.h"

#include <gtest/gtest.h>

#include <cmath>

#include "generator/assignments/trial.h"
#include "generator/checking/check_rules.h"
#include "tests/generator/shipped_rules.h"

namespace isomer {
namespace {

void ExpectNear(const Array<double>& a, const Array<double>& b) {
  ASSERT_EQ(a.shape, b.shape);
  for (size_t i = 0; i < a.data.size(); ++i) {
    if (!std::isfinite(a.data[i])) continue;
    EXPECT_NEAR(a.data[i], b.data[i], 1e-8 * (1 + std::abs(a.data[i])));
  }
}

// The sum of all parts of micro-batch m, or of those of one partial.
Array<double> Sum(const ShardedValue<double>& value, int64_t m, int64_t partials, int64_t copies) {
  Array<double> sum(value.type.Sizes());
  for (int64_t p = 0; p < partials; ++p) {
    for (int64_t c = 0; c < copies; ++c) {
      const Array<double>& part = value.part(m, p, c);
      for (size_t i = 0; i < sum.data.size(); ++i) sum.data[i] += part.data[i];
    }
  }
  return sum;
}

void CompareEngines(const Pattern& pattern, const Binding& binding, Random* random) {
  ShardedCalls calls;
  const auto spread = Spread(pattern, binding, &calls);
  ASSERT_TRUE(spread.ok()) << spread.status();
  const auto graph = InstantiatePattern(pattern, binding);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<ShardedValue<double>> inputs;
  std::map<NodeId, Value<double>> leaves;
  for (size_t i = 0; i < binding.inputs.size(); ++i) {
    leaves[NodeId{static_cast<int32_t>(i)}] = RandomValue<double>(binding.inputs[i], random);
    inputs.emplace_back(leaves[NodeId{static_cast<int32_t>(i)}]);
  }
  const auto values = RunForward(*spread, inputs);
  const auto expected = EvaluateGraph<double>(*graph, leaves);
  ASSERT_EQ(values.ok(), expected.ok());
  if (!values.ok()) return;
  std::vector<ShardedValue<double>> seeds;
  std::vector<std::vector<Array<double>>> meanings;
  for (size_t o = 0; o < pattern.outputs.size(); ++o) {
    const ShardedValue<double>& output = (*values)[pattern.outputs[o]];
    const TensorRef ref = graph->outputs()[o].tensor;
    const auto meaning = Meaning((*expected)[ref.node.value][ref.output]);
    seeds.emplace_back(output.type);
    meanings.emplace_back();
    for (int64_t m = 0; m < output.type.micro_batches; ++m) {
      ExpectNear(meaning[m], Sum(output, m, output.type.partials, 1));
      // The first copy holds the whole gradient, the others nothing of it.
      const TensorType plain = SequentialType(output.type.Sizes());
      meanings.back().push_back(RandomValue<double>(plain, random).parts[0]);
      for (int64_t p = 0; p < output.type.partials; ++p) {
        seeds.back().part(m, p, 0) = meanings.back().back();
      }
    }
  }
  const auto gradients = RunBackward(*spread, *values, seeds);
  const auto wanted = EvaluateGradients<double>(*graph, *expected, meanings);
  ASSERT_TRUE(gradients.ok() && wanted.ok()) << gradients.status() << wanted.status();
  for (const auto& [leaf, gradient] : *wanted) {
    const ShardedValue<double>& sharded = (*gradients)[leaf.value];
    for (size_t m = 0; m < gradient.size(); ++m) {
      ExpectNear(gradient[m], Sum(sharded, static_cast<int64_t>(m), 1, sharded.type.copies));
    }
  }
}

TEST(Sharded, AgreesWithTheReferenceEvaluator) {
  const std::vector<Rule>& rules = ShippedRules().rules;
  TypeOracle oracle;
  Random random(7);
  for (size_t r = 0; r < rules.size(); r += rules.size() / 100) {
    SCOPED_TRACE(rules[r].ToString());
    for (const Binding& binding : DrawInstances(rules[r], 6, r, &oracle)) {
      SCOPED_TRACE(BindingText(binding));
      CompareEngines(rules[r].source, binding, &random);
      CompareEngines(rules[r].target, binding, &random);
    }
  }
}

// Each copy has a share of the gradient: of y = x replicated twice, each copy times another weight,
// the gradient of x is the sum of what comes back.
TEST(Sharded, GradientOfReplicateSumsTheCopies) {
  Pattern pattern;
  pattern.nodes = {
      {OpKind::kReplicate, {{"degree", IntExpr::Constant(2)}}, {PatternRef::Input(0)}}};
  pattern.outputs = {PatternRef::Node(0)};
  Binding binding;
  binding.inputs = {SequentialType({2})};
  ShardedCalls calls;
  const ShardedPattern spread = *Spread(pattern, binding, &calls);
  const auto values = RunForward<double>(spread, {ShardedValue<double>(binding.inputs[0])});
  ShardedValue<double> seed(spread.TypeOf(pattern.outputs[0]));
  ASSERT_EQ(seed.parts.size(), 2u);
  seed.parts[0].data = {1, 2};
  seed.parts[1].data = {10, 20};
  const auto gradients = RunBackward<double>(spread, *values, {seed});
  EXPECT_EQ((*gradients)[0].parts[0].data, (std::vector<double>{11, 22}));
}

}  // namespace
}  // namespace isomer
