// A plan some of whose products with weights are in 8 bits.
#ifndef ISOMER_TESTS_PCG_IR_FP8_PLAN_H_
#define ISOMER_TESTS_PCG_IR_FP8_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pcg/ir/fp8.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Three products in a row, the second by a transposed weight; and one of two activations.
inline Graph ChainOfProducts() {
  Graph graph;
  const TensorRef x = graph.AddInput("x", SequentialType({8, 8}));
  const TensorRef t = graph.AddInput("target", SequentialType({8, 8}));
  const auto weight = [&](const std::string& name) {
    return graph.AddWeight(name, SequentialType({8, 8}));
  };
  const TensorRef a = *graph.AddOp(OpKind::kMatMul, {x, weight("a")});
  const Operator transpose(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}});
  const TensorRef turned = *graph.AddOp(transpose, {weight("b")});
  const TensorRef b = *graph.AddOp(OpKind::kMatMul, {a, turned});
  const TensorRef both = *graph.AddOp(OpKind::kMatMul, {b, a});
  const TensorRef c = *graph.AddOp(OpKind::kMatMul, {both, weight("c")});
  graph.AddOutput("loss", *graph.AddOp(OpKind::kMeanSquaredError, {c, t}));
  return graph;
}

inline Plan PlanInFp8(std::vector<std::string> kept) {
  Plan plan;
  plan.graph = plan.model.graph = ChainOfProducts();
  plan.model.loss = "loss";
  plan.views = SequentialViews(plan.graph);
  plan.precision = DataType::kBFloat16;
  plan.fp8 = {.scaling = Fp8Scaling::kRow, .kept = std::move(kept)};
  return plan;
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_IR_FP8_PLAN_H_
