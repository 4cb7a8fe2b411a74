// How fast is the vocabulary? Type inference, canonical forms and the reference evaluator: what the
// search, the generator and --check call most.
#include <benchmark/benchmark.h>

#include <random>

#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

void InferMatMul(benchmark::State& state) {
  const std::vector<TensorType> types = {*ParseTensorType("f32[8:2,512,1024] c4"),
                                         *ParseTensorType("f32[1024,1024:4] c2")};
  for (auto _ : state) benchmark::DoNotOptimize(InferTypes(OpKind::kMatMul, types));
}
BENCHMARK(InferMatMul);

// A chain of `n` products and Relus.
Graph Chain(int64_t n) {
  Graph graph;
  TensorRef x = graph.AddInput("x", SequentialType({64, 64}));
  for (int64_t i = 0; i < n; ++i) {
    const TensorRef w = graph.AddWeight("w" + std::to_string(i), SequentialType({64, 64}));
    x = *graph.AddOp(OpKind::kRelu, {*graph.AddOp(OpKind::kMatMul, {x, w})});
  }
  graph.AddOutput("y", x);
  return graph;
}

void Canonicalise(benchmark::State& state) {
  const Graph graph = Chain(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(graph.Canonical());
  state.counters["nodes/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * graph.num_nodes(), benchmark::Counter::kIsRate);
}
BENCHMARK(Canonicalise)->Arg(10)->Arg(1000);

template <typename T>
void EvaluateProduct(benchmark::State& state) {
  const int64_t n = state.range(0);
  const Declaration d = *Declare(OpKind::kMatMul, std::vector<Shape>{{n, n}, {n, n}});
  const Array<T> a({n, n}, Number<T>::FromDouble(0.5)), b({n, n}, Number<T>::FromDouble(0.25));
  for (auto _ : state) benchmark::DoNotOptimize(Evaluate<T>(d, FullBox(d), {&a, &b}));
  state.counters["multiply-adds/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * n * n * n, benchmark::Counter::kIsRate);
}
BENCHMARK(EvaluateProduct<double>)->Arg(4)->Arg(64);
BENCHMARK(EvaluateProduct<PrimeField>)->Arg(4)->Arg(64);

}  // namespace
}  // namespace isomer

BENCHMARK_MAIN();
