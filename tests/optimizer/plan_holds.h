// What every plan claims.
#ifndef ISOMER_TESTS_OPTIMIZER_PLAN_HOLDS_H_
#define ISOMER_TESTS_OPTIMIZER_PLAN_HOLDS_H_

#include <gtest/gtest.h>

#include "pcg/ir/plan.h"
#include "pcg/schedule/check/check.h"
#include "pcg/schedule/lowering/lower.h"
#include "rules/matching/rewrite.h"

namespace isomer {

// A step without a rule that puts one call in the place of calls that are the same.
inline void ApplyMerge(const DerivationStep& step, Graph* graph) {
  ASSERT_EQ(step.calls.size(), 1u);
  const AddedCall& call = step.calls[0];
  for (NodeId id : step.nodes) {
    EXPECT_EQ(graph->node(id).op, call.op);
    EXPECT_EQ(graph->node(id).inputs, call.inputs);
  }
  const absl::StatusOr<TensorRef> made = graph->AddOp(call.op, call.inputs);
  ASSERT_TRUE(made.ok()) << made.status();
  for (const auto& [from, to] : step.replaced) graph->ReplaceUses(from, to, made->node);
}

// Every claim of a plan: its steps lead to its graph, views fit, the schedule is sound.
inline void ExpectPlanHolds(const Plan& plan, const RuleSet& rules) {
  Graph graph = plan.model.graph;
  for (const DerivationStep& step : plan.steps) {
    if (step.rule.empty()) {
      ApplyMerge(step, &graph);
      continue;
    }
    const Rule* rule = rules.Find(step.rule);
    ASSERT_NE(rule, nullptr);
    const absl::Status applied = ApplyStep(*rule, step, &graph);
    ASSERT_TRUE(applied.ok()) << applied;
  }
  EXPECT_EQ(graph.Canonical().ToString(), plan.graph.Canonical().ToString());
  ASSERT_EQ(static_cast<int>(plan.views.size()), plan.graph.num_nodes());
  for (int i = 0; i < plan.graph.num_nodes(); ++i) {
    const absl::Status view =
        ValidateView(plan.views[i], plan.graph.node(i).outputs[0], plan.num_devices);
    EXPECT_TRUE(view.ok()) << plan.graph.Label(NodeId{i}) << ": " << view;
  }
  const auto lowered = LowerPlan(plan);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const absl::Status checked = CheckLowered(plan, *lowered);
  EXPECT_TRUE(checked.ok()) << checked;
  // The model's borders stay sequential.
  for (const auto& output : plan.graph.outputs()) {
    EXPECT_FALSE(plan.graph.type(output.tensor).IsParallel()) << output.name;
  }
}

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_PLAN_HOLDS_H_
