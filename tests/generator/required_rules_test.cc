// Rules that must be among those found: each test states two graphs, and one application of one
// shipped rule must turn the first into the second.
#include <gtest/gtest.h>

#include "pcg/ir/parallel_operator.h"
#include "rules/matching/rewrite.h"
#include "tests/generator/shipped_rules.h"

namespace isomer {
namespace {

using Refs = std::vector<TensorRef>;

// A graph on inputs x0, x1, .. of given types.
class Builder {
 public:
  explicit Builder(const std::vector<std::string>& types) {
    for (const std::string& type : types) {
      inputs_.push_back(
          graph_.AddInput("x" + std::to_string(inputs_.size()), *ParseTensorType(type)));
    }
  }
  TensorRef operator[](int i) const { return inputs_[i]; }
  TensorRef Do(const Operator& op, const Refs& operands, int output = 0) {
    const auto node = graph_.Add(op, operands);
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, output};
  }
  NodeId Node(const Operator& op, const Refs& operands) { return *graph_.Add(op, operands); }
  Graph Output(const Refs& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i)
      graph_.AddOutput("y" + std::to_string(i), outputs[i]);
    return graph_;
  }

 private:
  Graph graph_;
  Refs inputs_;
};

const Operator kMatMul(OpKind::kMatMul), kAdd(OpKind::kAdd), kMul(OpKind::kMul),
    kRelu(OpKind::kRelu);
Operator ConcatOn(int64_t axis) { return Operator(OpKind::kConcat, {{"axis", axis}}); }

// The rule that turns `from` into `to` by one application, with introduced degrees 2.
const Rule* RuleFor(const Graph& from, const Graph& to) {
  const uint64_t goal = to.StructuralHash();
  const RuleSet& rules = ShippedRules();
  for (const std::vector<Rule>* list : {&rules.rules, &rules.inverses()}) {
    for (const Rule& rule : *list) {
      for (const bool introduced : {false, true}) {
        Binding given;
        for (const RuleVariable& v : rule.variables) {
          if (introduced && v.kind == VariableKind::kDegree) given.variables[v.name] = 2;
        }
        for (const DerivationStep& step : FindMatches(from, rule, given)) {
          Graph copy = from;
          if (ApplyStep(rule, step, &copy).ok() && copy.StructuralHash() == goal) return &rule;
        }
      }
    }
  }
  return nullptr;
}

void ExpectRule(const Graph& from, const Graph& to) {
  EXPECT_NE(RuleFor(from, to), nullptr) << from.ToString() << "\nto\n" << to.ToString();
}

// A MatMul of sequential operands, and the same split.
void ExpectMatMulSplit(const std::vector<std::string>& types, const Operator& on_x,
                       const Operator& on_w, const Operator& after) {
  Builder from(types), to(types);
  ExpectRule(
      from.Output({from.Do(kMatMul, {from[0], from[1]})}),
      to.Output({to.Do(after, {to.Do(kMatMul, {to.Do(on_x, {to[0]}), to.Do(on_w, {to[1]})})})}));
}

TEST(RequiredRules, PartitionMatMulByRows) {
  ExpectMatMulSplit({"f32[8,4]", "f32[4,6]"}, Partition(-2, 2), Replicate(2), Combine(-2, 2));
}
TEST(RequiredRules, PartitionMatMulByColumns) {
  ExpectMatMulSplit({"f32[8,4]", "f32[4,6]"}, Replicate(2), Partition(-1, 2), Combine(-1, 2));
}
TEST(RequiredRules, PartitionMatMulByContractionEndsInReduce) {
  ExpectMatMulSplit({"f32[8,4]", "f32[4,6]"}, Partition(-1, 2), Partition(-2, 2), Reduce(2));
}
TEST(RequiredRules, PartitionMatMulByBatch) {
  ExpectMatMulSplit({"f32[2,8,4]", "f32[2,4,6]"}, Partition(-3, 2), Partition(-3, 2),
                    Combine(-3, 2));
  ExpectMatMulSplit({"f32[2,8,4]", "f32[4,6]"}, Partition(-3, 2), Replicate(2), Combine(-3, 2));
}

// Samples, rows and columns, whether or not windows reach beyond their piece.
TEST(RequiredRules, PartitionImagesByAnyOfTheirDims) {
  using Ints = std::vector<int64_t>;
  const std::vector<std::string> types = {"f32[2,4,8,8]", "f32[6,4,3,3]"};
  const Operator conv(OpKind::kConv2d, {{"stride", Ints{1, 2}},
                                        {"padding", Ints{1, 1, 1, 0}},
                                        {"dilation", Ints{1, 1}},
                                        {"groups", int64_t{1}}});
  const Operator pool(
      OpKind::kMaxPool,
      {{"kernel", Ints{3, 2}}, {"stride", Ints{1, 2}}, {"padding", Ints{1, 0, 1, 0}}});
  for (int64_t axis : {-4, -2, -1}) {
    Builder from(types), to(types);
    ExpectRule(from.Output({from.Do(conv, {from[0], from[1]})}),
               to.Output({to.Do(Combine(axis, 2), {to.Do(conv, {to.Do(Partition(axis, 2), {to[0]}),
                                                                to.Do(Replicate(2), {to[1]})})})}));
    Builder whole({types[0]}), parts({types[0]});
    ExpectRule(
        whole.Output({whole.Do(pool, {whole[0]})}),
        parts.Output({parts.Do(Combine(axis, 2),
                               {parts.Do(pool, {parts.Do(Partition(axis, 2), {parts[0]})})})}));
  }
}

TEST(RequiredRules, MatMulOfReduceIsReduceOfMatMul) {
  const std::vector<std::string> types = {"f32[8,4] p2", "f32[4,6]"};
  Builder from(types), to(types);
  ExpectRule(
      from.Output({from.Do(kMatMul, {from.Do(Reduce(2), {from[0]}), from[1]})}),
      to.Output({to.Do(Reduce(2), {to.Do(kMatMul, {to[0], to.Do(Replicate(2), {to[1]})})})}));
}

TEST(RequiredRules, ElementwiseUnderPartition) {
  for (const Operator& op : {kRelu, Operator(OpKind::kScale, {{"factor", 0.125}})}) {
    Builder from({"f32[8,4]"}), to({"f32[8,4]"});
    ExpectRule(from.Output({from.Do(Partition(-1, 2), {from.Do(op, {from[0]})})}),
               to.Output({to.Do(op, {to.Do(Partition(-1, 2), {to[0]})})}));
  }
  for (const Operator& op : {kAdd, kMul}) {
    const std::vector<std::string> types = {"f32[8,4]", "f32[8,4]"};
    Builder from(types), to(types);
    ExpectRule(from.Output({from.Do(Partition(-2, 2), {from.Do(op, {from[0], from[1]})})}),
               to.Output({to.Do(
                   op, {to.Do(Partition(-2, 2), {to[0]}), to.Do(Partition(-2, 2), {to[1]})})}));
  }
}

TEST(RequiredRules, DualPairsCancel) {
  Builder partitioned({"f32[8,4]"}), combined({"f32[8:2,4]"});
  ExpectRule(partitioned.Output({partitioned.Do(
                 Combine(-2, 2), {partitioned.Do(Partition(-2, 2), {partitioned[0]})})}),
             [] {
               Builder b({"f32[8,4]"});
               return b.Output({b[0]});
             }());
  ExpectRule(combined.Output(
                 {combined.Do(Partition(-2, 2), {combined.Do(Combine(-2, 2), {combined[0]})})}),
             [] {
               Builder b({"f32[8:2,4]"});
               return b.Output({b[0]});
             }());
}

TEST(RequiredRules, MatMulDistributesOverAdd) {
  const std::vector<std::string> types = {"f32[8,4]", "f32[4,6]", "f32[4,6]"};
  Builder sum(types), products(types);
  const Graph one = sum.Output({sum.Do(kMatMul, {sum[0], sum.Do(kAdd, {sum[1], sum[2]})})});
  const Graph two =
      products.Output({products.Do(kAdd, {products.Do(kMatMul, {products[0], products[1]}),
                                          products.Do(kMatMul, {products[0], products[2]})})});
  ExpectRule(one, two);
  ExpectRule(two, one);
}

TEST(RequiredRules, MatMulIsAssociative) {
  const std::vector<std::string> types = {"f32[8,4]", "f32[4,6]", "f32[6,2]"};
  Builder left(types), right(types);
  const Graph one =
      left.Output({left.Do(kMatMul, {left.Do(kMatMul, {left[0], left[1]}), left[2]})});
  const Graph two =
      right.Output({right.Do(kMatMul, {right[0], right.Do(kMatMul, {right[1], right[2]})})});
  ExpectRule(one, two);
  ExpectRule(two, one);
}

TEST(RequiredRules, MatMulsThatShareAnOperandMerge) {
  const std::vector<std::string> types = {"f32[8,4]", "f32[4,6]", "f32[4,2]"};
  Builder from(types), to(types);
  const NodeId split = to.Node(
      Operator(OpKind::kSplit, {{"axis", int64_t{-1}}, {"sizes", std::vector<Extent>{6, 2}}}),
      {to.Do(kMatMul, {to[0], to.Do(ConcatOn(-1), {to[1], to[2]})})});
  ExpectRule(
      from.Output({from.Do(kMatMul, {from[0], from[1]}), from.Do(kMatMul, {from[0], from[2]})}),
      to.Output({{split, 0}, {split, 1}}));
}

TEST(RequiredRules, AddIsReduceOfConcatAlongPartials) {
  const std::vector<std::string> types = {"f32[8,4]", "f32[8,4]"};
  Builder from(types), to(types);
  ExpectRule(
      from.Output({from.Do(kAdd, {from[0], from[1]})}),
      to.Output({to.Do(Reduce(2), {to.Do(Operator(OpKind::kConcatPartials), {to[0], to[1]})})}));
}

}  // namespace
}  // namespace isomer
