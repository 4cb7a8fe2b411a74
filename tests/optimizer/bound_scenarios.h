// Small graphs on small machines, of which bounds from below are tested.
#ifndef ISOMER_TESTS_OPTIMIZER_BOUND_SCENARIOS_H_
#define ISOMER_TESTS_OPTIMIZER_BOUND_SCENARIOS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "optimizer/machine/machine.h"
#include "pcg/ir/plan.h"
#include "tests/optimizer/example_models.h"
#include "tests/optimizer/test_machine.h"

namespace isomer {

// Batch statistics: what adds up the gradients of a tensor with three uses may be done while those
// of the mean are summed over devices.
inline Model Centred(int blocks, int64_t batch, int64_t hidden) {
  Model model;
  model.name = "centred";
  Graph& g = model.graph;
  const auto call = [&](Operator op, std::vector<TensorRef> inputs) {
    return g.AddOp(std::move(op), std::move(inputs), "").value();
  };
  TensorRef x = g.AddInput("x", SequentialType({batch, hidden}));
  for (int b = 0; b < blocks; ++b) {
    const TensorRef w = g.AddWeight(absl::StrCat("w", b), SequentialType({hidden, hidden}));
    const TensorRef y = call(OpKind::kMatMul, {x, w});
    const Operator mean(OpKind::kReduceMean,
                        {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{1}}});
    const TensorRef centred = call(OpKind::kSub, {y, call(mean, {y})});
    x = call(OpKind::kAdd, {y, call(OpKind::kMul, {centred, centred})});
  }
  const TensorRef target = g.AddInput("target", g.type(x));
  g.AddOutput("loss", call(OpKind::kMeanSquaredError, {x, target}));
  model.loss = "loss";
  return model;
}

// No call but the first and the last few is a cut: each block reads the last two, and something
// that all of them read (as NASNet's cells and U-Net's embedding of time have it).
inline Model Skips(int blocks, int64_t batch, int64_t hidden) {
  Model model;
  model.name = "skips";
  Graph& g = model.graph;
  const auto call = [&](Operator op, std::vector<TensorRef> inputs) {
    return g.AddOp(std::move(op), std::move(inputs), "").value();
  };
  int weights = 0;
  const auto product = [&](TensorRef x) {
    const TensorRef w = g.AddWeight(absl::StrCat("w", weights++), SequentialType({hidden, hidden}));
    return call(OpKind::kRelu, {call(OpKind::kMatMul, {x, w})});
  };
  const TensorRef everywhere = product(g.AddInput("time", SequentialType({batch, hidden})));
  TensorRef last = g.AddInput("x", SequentialType({batch, hidden}));
  TensorRef x = product(last);
  for (int b = 0; b < blocks; ++b) {
    const TensorRef both = call(OpKind::kAdd, {product(x), product(everywhere)});
    const TensorRef next = call(OpKind::kAdd, {call(OpKind::kAdd, {product(both), x}), last});
    last = std::exchange(x, next);
  }
  const TensorRef target = g.AddInput("target", g.type(x));
  g.AddOutput("loss", call(OpKind::kMeanSquaredError, {x, target}));
  model.loss = "loss";
  return model;
}

struct BoundScenario {
  const char* name;
  Model model;
  int64_t nodes, devices;
  bool is_h100 = false;  // collectives by NCCL's algorithms and protocols

  Machine MachineOf() const {
    return is_h100 ? LoadMachine("dgx_h100", nodes, devices).value() : TestMachine(nodes, devices);
  }
};

inline std::vector<BoundScenario> BoundScenarios() {
  return {{"ResidualOneDevice", ResidualModel(2, 8, 16, 32), 1, 1},
          {"ResidualTwoNodes", ResidualModel(3, 64, 128, 256), 2, 4},
          {"ResidualLargeWeights", ResidualModel(2, 16, 512, 2048), 1, 8},
          {"ThreeProducts", ThreeProducts(64, 64), 2, 2},
          {"TwoBranches", TwoBranches(3, 64, 256), 1, 4},
          {"Recurrent", Recurrent(4, 32, 64), 1, 4},
          {"Centred", Centred(4, 4096, 256), 2, 4},
          {"Convolutions", Convolutions(8, 16), 2, 2},
          {"Skips", Skips(4, 256, 128), 2, 4},
          {"SkipsOnH100", Skips(3, 4096, 256), 2, 4, true},
          {"ResidualOnH100", ResidualModel(3, 64, 128, 256), 2, 4, true},
          {"LargeWeightsOnH100", ResidualModel(2, 64, 2048, 4096), 2, 8, true},
          {"CentredOnH100", Centred(3, 4096, 256), 2, 4, true},
          {"BranchesOnH100", TwoBranches(3, 64, 256), 2, 2, true},
          {"ConvolutionsOnH100", Convolutions(8, 16), 2, 2, true}};
}

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_BOUND_SCENARIOS_H_
