#include "optimizer/mapping/detours.h"

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/algorithm/container.h"
#include "optimizer/sharding/compute_graph.h"
#include "optimizer/sharding/rule_index.h"
#include "pcg/support/data_path.h"
#include "rules/matching/rewrite.h"
#include "rules/matching/rule_matcher.h"

namespace isomer {
namespace {

const RuleSet& ShippedRules() {
  static const RuleSet* rules = new RuleSet(LoadRules(DataPath("rules/default.rules")).value());
  return *rules;
}

TensorRef Made(Graph* graph, OpKind kind, std::vector<TensorRef> inputs, std::string name) {
  return graph->AddOp(Operator(kind), std::move(inputs), std::move(name)).value();
}

// Two products of one operand, a swish of one, and their sum.
Graph GatedProducts() {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 16}));
  const TensorRef w = graph.AddWeight("w", SequentialType({16, 16}));
  const TensorRef v = graph.AddWeight("v", SequentialType({16, 16}));
  const TensorRef left = Made(&graph, OpKind::kMatMul, {x, w}, "left");
  const TensorRef right = Made(&graph, OpKind::kMatMul, {x, v}, "right");
  const TensorRef gate = Made(&graph, OpKind::kSwish, {left}, "gate");
  graph.AddOutput("y", Made(&graph, OpKind::kAdd, {gate, right}, "sum"));
  return graph;
}

class Derivation {
 public:
  explicit Derivation(Graph graph) : start_(graph), now_(std::move(graph)) {}

  const Graph& start() const { return start_; }
  const Graph& now() const { return now_; }
  const std::vector<DerivationStep>& steps() const { return steps_; }

  // Rewrites, by the first rule that makes calls of the kinds `to` of ones of the kinds `from`,
  // with `node` as its root.
  void Take(const std::vector<OpKind>& from, const std::vector<OpKind>& to, NodeId node) {
    const auto kinds_of = [](const Pattern& pattern) {
      std::vector<OpKind> kinds;
      for (const PatternNode& one : pattern.nodes) kinds.push_back(one.kind);
      std::sort(kinds.begin(), kinds.end());
      return kinds;
    };
    for (const Rule* rule : Algebra()) {
      if (kinds_of(rule->source) != Sorted(from) || kinds_of(rule->target) != Sorted(to)) continue;
      for (DerivationStep& step : MatchesAt(GraphIndex(now_), *rule, node)) {
        // Operands in their order, not exchanged.
        if (from.size() == 1 && step.inputs != now_.node(node).inputs) continue;
        if (!ApplyStep(*rule, step, &now_).ok()) continue;
        steps_.push_back(std::move(step));
        return;
      }
    }
    FAIL() << "no rule rewrites so";
  }
  void Take(const RuleMatch& match) {
    if (ApplyStep(*match.rule, match.step, &now_).ok()) steps_.push_back(match.step);
  }

  // The live calls of a kind.
  std::vector<NodeId> CallsOf(OpKind kind) const { return GraphIndex(now_).NodesOf(kind); }

  static const std::vector<const Rule*>& Algebra() {
    static const RuleIndex* rules = new RuleIndex(ShippedRules());
    return rules->algebra();
  }

 private:
  static std::vector<OpKind> Sorted(std::vector<OpKind> kinds) {
    std::sort(kinds.begin(), kinds.end());
    return kinds;
  }

  Graph start_, now_;
  std::vector<DerivationStep> steps_;
};

// Fewer steps that lead to the same.
std::vector<DerivationStep> Shortened(const Derivation& derivation) {
  std::vector<DerivationStep> fewer =
      WithoutDetours(derivation.steps(), derivation.now(), ShippedRules());
  Graph graph = derivation.start();
  for (const DerivationStep& step : fewer) {
    const absl::Status applied = ApplyStep(*ShippedRules().Find(step.rule), step, &graph);
    EXPECT_TRUE(applied.ok()) << applied;
  }
  EXPECT_EQ(graph.Canonical().ToString(), derivation.now().Canonical().ToString());
  return fewer;
}

TEST(WithoutDetours, ThereAndBackIsNothing) {
  Derivation derivation(GatedProducts());
  const NodeId product = derivation.CallsOf(OpKind::kMatMul)[0];
  derivation.Take({OpKind::kMatMul}, {OpKind::kLinear}, product);
  derivation.Take({OpKind::kLinear}, {OpKind::kMatMul}, derivation.CallsOf(OpKind::kLinear)[0]);
  derivation.Take({OpKind::kMatMul}, {OpKind::kLinear}, derivation.CallsOf(OpKind::kMatMul).back());
  derivation.Take({OpKind::kLinear}, {OpKind::kMatMul}, derivation.CallsOf(OpKind::kLinear)[0]);
  ASSERT_EQ(derivation.steps().size(), 4u);
  EXPECT_TRUE(Shortened(derivation).empty());
}

TEST(WithoutDetours, WhatLiesBetweenStays) {
  Derivation derivation(GatedProducts());
  const NodeId left = derivation.CallsOf(OpKind::kMatMul)[0];
  const NodeId right = derivation.CallsOf(OpKind::kMatMul)[1];
  derivation.Take({OpKind::kMatMul}, {OpKind::kLinear}, right);
  const NodeId made = derivation.CallsOf(OpKind::kLinear)[0];
  derivation.Take({OpKind::kMatMul, OpKind::kSwish}, {OpKind::kLinear},
                  derivation.CallsOf(OpKind::kSwish)[0]);
  derivation.Take({OpKind::kLinear}, {OpKind::kMatMul}, made);
  ASSERT_EQ(derivation.steps().size(), 3u);
  const std::vector<DerivationStep> fewer = Shortened(derivation);
  ASSERT_EQ(fewer.size(), 1u);
  EXPECT_EQ(fewer[0].rule, derivation.steps()[1].rule);
  EXPECT_EQ(fewer[0].nodes[0], left);
}

// A product that an output reads, too, is rewritten for that alone: what comes back is another.
TEST(WithoutDetours, WhatOthersRewriteMeanwhileStays) {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 16}));
  const TensorRef w = graph.AddWeight("w", SequentialType({16, 16}));
  const TensorRef product = Made(&graph, OpKind::kMatMul, {x, w}, "gate");
  graph.AddOutput("y", Made(&graph, OpKind::kSwish, {product}, "gate"));
  graph.AddOutput("z", product);
  Derivation derivation(graph);
  derivation.Take({OpKind::kMatMul, OpKind::kSwish}, {OpKind::kLinear},
                  derivation.CallsOf(OpKind::kSwish)[0]);
  const NodeId fused = derivation.CallsOf(OpKind::kLinear)[0];
  derivation.Take({OpKind::kMatMul}, {OpKind::kLinear}, product.node);
  derivation.Take({OpKind::kLinear}, {OpKind::kMatMul, OpKind::kSwish}, fused);
  ASSERT_EQ(derivation.steps().size(), 3u);
  EXPECT_EQ(Shortened(derivation), derivation.steps());
}

TEST(WithoutDetours, SeveralCallsThereAndBack) {
  Derivation derivation(GatedProducts());
  derivation.Take({OpKind::kAdd}, {OpKind::kAdd, OpKind::kSub, OpKind::kSub},
                  derivation.CallsOf(OpKind::kAdd)[0]);
  derivation.Take({OpKind::kAdd, OpKind::kSub, OpKind::kSub}, {OpKind::kAdd},
                  derivation.now().outputs()[0].tensor.node);
  derivation.Take({OpKind::kMatMul, OpKind::kSwish}, {OpKind::kLinear},
                  derivation.CallsOf(OpKind::kSwish)[0]);
  ASSERT_EQ(derivation.steps().size(), 3u);
  const std::vector<DerivationStep> fewer = Shortened(derivation);
  EXPECT_EQ(fewer.size(), 1u);
  EXPECT_EQ(fewer.back().rule, derivation.steps().back().rule);
}

// Walks that like to return: whatever is left out, what is left applies and leads to the same.
TEST(WithoutDetours, LeadsToTheSameFromRandomWalks) {
  RuleMatcher matcher(Derivation::Algebra());
  std::mt19937_64 random(77);
  size_t steps = 0, left = 0;
  for (int walk = 0; walk < 300; ++walk) {
    Derivation derivation(GatedProducts());
    for (int s = 0; s < 12 && derivation.now().TopologicalOrder().size() < 24; ++s) {
      const GraphIndex index(derivation.now());
      std::vector<RuleMatch> matches = matcher.Find(index);
      const auto is_recent = [&](const RuleMatch& match) {
        return match.rule->target.nodes.size() <= match.rule->source.nodes.size() &&
               absl::c_any_of(match.step.nodes, [&](NodeId id) {
                 return id.value >= derivation.start().num_nodes();
               });
      };
      if (random() % 2 == 0 && absl::c_any_of(matches, is_recent)) {
        std::erase_if(matches, [&](const RuleMatch& match) { return !is_recent(match); });
      }
      if (matches.empty()) break;
      derivation.Take(matches[random() % matches.size()]);
    }
    const std::vector<DerivationStep> fewer = Shortened(derivation);
    EXPECT_LE(fewer.size(), derivation.steps().size());
    steps += derivation.steps().size();
    left += fewer.size();
  }
  EXPECT_LT(left, steps);
  EXPECT_GT(left, steps / 4);
}

}  // namespace
}  // namespace isomer
