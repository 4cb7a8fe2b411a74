#include "tests/optimizer/example_models.h"

#include <string>

namespace isomer {
namespace {

TensorRef Call(Graph* graph, Operator op, std::vector<TensorRef> inputs, std::string name) {
  return graph->AddOp(std::move(op), std::move(inputs), std::move(name)).value();
}

void AddLoss(Model* model, TensorRef prediction) {
  const TensorRef target = model->graph.AddInput("target", model->graph.type(prediction));
  model->graph.AddOutput(
      "loss", Call(&model->graph, OpKind::kMeanSquaredError, {prediction, target}, "loss"));
  model->loss = "loss";
}

}  // namespace

Model ResidualModel(int blocks, int64_t batch, int64_t hidden, int64_t inner) {
  Model model;
  model.name = "residual";
  Graph& g = model.graph;
  TensorRef x = g.AddInput("x", SequentialType({batch, hidden}));
  for (int b = 0; b < blocks; ++b) {
    const std::string name = "block" + std::to_string(b);
    const TensorRef scale = g.AddWeight(name + "/scale", SequentialType({hidden}));
    const TensorRef shift = g.AddWeight(name + "/shift", SequentialType({hidden}));
    const TensorRef up = g.AddWeight(name + "/up", SequentialType({hidden, inner}));
    const TensorRef down = g.AddWeight(name + "/down", SequentialType({inner, hidden}));
    const Operator norm(OpKind::kLayerNorm, {{"epsilon", 1e-5}});
    TensorRef y = Call(&g, norm, {x, scale, shift}, name + "/norm");
    y = Call(&g, OpKind::kMatMul, {y, up}, name + "/up/product");
    y = Call(&g, OpKind::kRelu, {y}, name + "/relu");
    y = Call(&g, OpKind::kMatMul, {y, down}, name + "/down/product");
    x = Call(&g, OpKind::kAdd, {x, y}, name + "/residual");
  }
  g.AddOutput("y", x);
  AddLoss(&model, x);
  return model;
}

Model ThreeProducts(int64_t batch, int64_t hidden) {
  Model model;
  model.name = "three_products";
  Graph& g = model.graph;
  const TensorRef x = g.AddInput("x", SequentialType({batch, hidden}));
  TensorRef sum;
  for (const char* name : {"q", "k", "v"}) {
    const TensorRef w = g.AddWeight(name, SequentialType({hidden, hidden}));
    const TensorRef product = Call(&g, OpKind::kMatMul, {x, w}, std::string(name) + "/product");
    sum = sum.node.value < 0 ? product : Call(&g, OpKind::kAdd, {sum, product}, "sum");
  }
  AddLoss(&model, sum);
  return model;
}

Model TwoBranches(int length, int64_t batch, int64_t hidden) {
  Model model;
  model.name = "two_branches";
  Graph& g = model.graph;
  const TensorRef w = g.AddWeight("w", SequentialType({hidden, hidden}));
  TensorRef x = g.AddInput("x", SequentialType({batch, hidden}));
  x = Call(&g, OpKind::kMatMul, {x, w}, "stem");
  TensorRef ends[2];
  for (int b : {0, 1}) {
    ends[b] = x;
    for (int i = 0; i < length; ++i) {
      const std::string name = "branch" + std::to_string(b) + "/" + std::to_string(i);
      const TensorRef weight = g.AddWeight(name + "/w", SequentialType({hidden, hidden}));
      ends[b] = Call(&g, OpKind::kMatMul, {ends[b], weight}, name);
      ends[b] = Call(&g, OpKind::kTanh, {ends[b]}, name + "/tanh");
    }
  }
  AddLoss(&model, Call(&g, OpKind::kAdd, {ends[0], ends[1]}, "join"));
  return model;
}

Model Recurrent(int steps, int64_t batch, int64_t hidden) {
  Model model;
  model.name = "recurrent";
  Graph& g = model.graph;
  const TensorRef w = g.AddWeight("w", SequentialType({hidden, hidden}));
  const TensorRef u = g.AddWeight("u", SequentialType({hidden, hidden}));
  TensorRef state = g.AddInput("state", SequentialType({batch, hidden}));
  for (int s = 0; s < steps; ++s) {
    const std::string name = "step" + std::to_string(s);
    const TensorRef x = g.AddInput(name + "/x", SequentialType({batch, hidden}));
    const TensorRef a = Call(&g, OpKind::kMatMul, {state, w}, name + "/recurrent");
    const TensorRef b = Call(&g, OpKind::kMatMul, {x, u}, name + "/input");
    state = Call(&g, OpKind::kTanh, {Call(&g, OpKind::kAdd, {a, b}, name + "/sum")}, name);
  }
  AddLoss(&model, state);
  return model;
}

Model Convolutions(int64_t batch, int64_t side) {
  using Ints = std::vector<int64_t>;
  Model model;
  model.name = "convolutions";
  Graph& g = model.graph;
  const Operator convolution(OpKind::kConv2d, {{"stride", Ints{1, 1}},
                                               {"padding", Ints{1, 1, 1, 1}},
                                               {"dilation", Ints{1, 1}},
                                               {"groups", int64_t{1}}});
  TensorRef x = g.AddInput("x", SequentialType({batch, 4, side, side}));
  const TensorRef stem = g.AddWeight("stem", SequentialType({4, 4, 3, 3}));
  x = Call(&g, OpKind::kRelu, {Call(&g, convolution, {x, stem}, "stem/conv")}, "stem/relu");
  TensorRef ends[2];
  for (int b : {0, 1}) {
    const std::string name = "branch" + std::to_string(b);
    const TensorRef w = g.AddWeight(name + "/w", SequentialType({4, 4, 3, 3}));
    ends[b] = Call(&g, convolution, {x, w}, name + "/conv");
  }
  AddLoss(&model, Call(&g, OpKind::kAdd, {ends[0], ends[1]}, "join"));
  return model;
}

Model Arrangements() {
  Model model;
  model.graph = ParseGraph(R"(
%0 = input "x" : f32[16,8]
%1 = input "ids" : i64[16,2]
%2 = weight "table" : f32[8,8]
%3 = weight "w" : f32[8,16]
%4 = constant "mask" : f32[1,16]
%5 = weight "other" : f32[16,16]
%6 = input "target" : f32[16,16]
%7 = reshape(%1) {shape=[32]} : i64[32]
%8 = embedding(%2, %7) : f32[32,8]
%9 = reshape(%8) {shape=[16,16]} : f32[16,16]
%10 = matmul(%0, %3) : f32[16,16]
%11 = reshape(%10) {shape=[16,2,8]} : f32[16,2,8]
%12 = tanh(%11) : f32[16,2,8]
%13 = reshape(%12) {shape=[16,16]} : f32[16,16]
%14 = add(%13, %9) : f32[16,16]
%15 = scale(%4) {factor=2} : f32[1,16]
%16 = add(%14, %15) : f32[16,16]
%17 = argmax(%16) {axis=1} : i64[16,1]
%18 = reshape(%17) {shape=[16]} : i64[16]
%19 = embedding(%5, %18) : f32[16,16]
%20 = add(%16, %19) : f32[16,16]
%21 = mul(%20, %10) : f32[16,16]
%22 = mse(%21, %6) : f32[]
output "loss" = %22
)")
                    .value();
  model.loss = "loss";
  return model;
}

}  // namespace isomer
