#include "runtime/cuda/fused_attention.h"

#include <limits>

namespace isomer {
namespace {

using Tensor = CudnnGraph::Tensor;
using Sizes = CudnnGraph::Sizes;

constexpr size_t kRank = 4;

Tensor RowMajor(CudnnGraph* graph, int64_t b, int64_t h, int64_t s, int64_t d, int type) {
  return graph->Given({b, h, s, d}, {h * s * d, s * d, d, 1}, type);
}

// Of pairs that are seen.
Tensor Seen(CudnnGraph* graph, const FusedAttention& a, Tensor scores) {
  if (!a.causal) return scores;
  constexpr int64_t kQuery = 2, kKey = 3;
  const Tensor row = graph->IndexOf(scores, kQuery), column = graph->IndexOf(scores, kKey);
  const Tensor none = graph->Scalar(std::numeric_limits<float>::lowest(), kRank);
  return graph->Select(graph->IsAtLeast(row, column), scores, none);
}

void AddForward(CudnnGraph* graph, const FusedAttention& a, int type) {
  const Tensor q = RowMajor(graph, a.batch, a.heads, a.queries, a.e, type);
  // K^T, as the library's products take it.
  const Tensor k = graph->Given({a.batch, a.key_heads, a.e, a.keys},
                                {a.key_heads * a.keys * a.e, a.keys * a.e, 1, a.e}, type);
  const Tensor v = RowMajor(graph, a.batch, a.key_heads, a.keys, a.f, type);
  const Tensor y = RowMajor(graph, a.batch, a.heads, a.queries, a.f, type);
  const Tensor logarithms = RowMajor(graph, a.batch, a.heads, a.queries, 1, cudnn::kFloat32);
  const Sizes of_rows = {a.batch, a.heads, a.queries, 1};
  const Tensor scale = graph->Scalar(static_cast<float>(a.scale), kRank);
  const Tensor scores =
      Seen(graph, a, graph->Pointwise(cudnn::kMultiply, graph->MatMul(q, k), scale));
  const Tensor maximum = graph->Reduce(cudnn::kMaximum, scores, of_rows);
  const Tensor exponentials =
      graph->Unary(cudnn::kExp, graph->Pointwise(cudnn::kSubtract, scores, maximum));
  const Tensor sum = graph->Reduce(cudnn::kSum, exponentials, of_rows);
  graph->Pointwise(cudnn::kAdd, maximum, graph->Unary(cudnn::kLog, sum), logarithms);
  const Tensor p = graph->Pointwise(cudnn::kDivide, exponentials, sum);
  graph->SetType(p, type);
  graph->MatMul(p, v, y);
}

// A product of each query head; of a key head it is the sum of its query heads'.
void SumOverHeads(CudnnGraph* graph, const FusedAttention& a, Tensor left, Tensor right,
                  const Sizes& sizes, Tensor result, int type) {
  if (a.heads == a.key_heads) {
    graph->MatMul(left, right, result);
    return;
  }
  const Tensor of_queries = graph->MatMul(left, right);
  graph->SetType(of_queries, type);
  graph->Reduce(cudnn::kSum, of_queries, sizes, result);
}

void AddGradient(CudnnGraph* graph, const FusedAttention& a, int type) {
  const auto given = [&](int64_t h, int64_t s, int64_t d) {
    return RowMajor(graph, a.batch, h, s, d, type);
  };
  // Of K and V products take the transposed; the gradient of queries takes K itself.
  const auto turned = [&](int64_t h, int64_t s, int64_t d) {
    return graph->Given({a.batch, h, d, s}, {h * s * d, s * d, 1, d}, type);
  };
  const Tensor q = given(a.heads, a.queries, a.e), k = turned(a.key_heads, a.keys, a.e),
               v = turned(a.key_heads, a.keys, a.f), y = given(a.heads, a.queries, a.f);
  const Tensor logarithms = RowMajor(graph, a.batch, a.heads, a.queries, 1, cudnn::kFloat32);
  const Tensor dy = given(a.heads, a.queries, a.f), dq = given(a.heads, a.queries, a.e),
               dk = given(a.key_heads, a.keys, a.e), dv = given(a.key_heads, a.keys, a.f);
  const Tensor of_rows = RowMajor(graph, a.batch, a.heads, a.queries, 1, cudnn::kFloat32);
  const Tensor dq_sum = RowMajor(graph, a.batch, a.heads, a.queries, a.e, cudnn::kFloat32);

  // rowsum(dP P) = rowsum(dY Y)
  const Tensor products = graph->Pointwise(cudnn::kMultiply, dy, y);
  const Tensor row_sums = graph->Reduce(cudnn::kSum, products, {a.batch, a.heads, a.queries, 1});
  graph->Pointwise(cudnn::kMultiply, row_sums, graph->Scalar(1, kRank), of_rows);

  const Tensor scale = graph->Scalar(static_cast<float>(a.scale), kRank);
  const Tensor scores = graph->Pointwise(cudnn::kMultiply, graph->MatMul(q, k), scale);
  const Tensor p = graph->Unary(
      cudnn::kExp, Seen(graph, a, graph->Pointwise(cudnn::kSubtract, scores, logarithms)));
  const Tensor p_turned = graph->Transpose(p);
  graph->SetType(p_turned, type);
  SumOverHeads(graph, a, p_turned, dy, {a.batch, a.key_heads, a.keys, a.f}, dv, type);

  const Tensor dp = graph->MatMul(dy, v);
  const Tensor ds = graph->Pointwise(
      cudnn::kMultiply,
      graph->Pointwise(cudnn::kMultiply, graph->Pointwise(cudnn::kSubtract, dp, of_rows), p),
      scale);
  const Tensor ds_turned = graph->Transpose(ds);
  graph->SetType(ds_turned, type);
  SumOverHeads(graph, a, ds_turned, q, {a.batch, a.key_heads, a.keys, a.e}, dk, type);
  graph->MatMul(ds, graph->Transpose(k), dq_sum);
  graph->Unary(cudnn::kIdentity, dq_sum, dq);
}

}  // namespace

CudnnGraph GraphOf(const Cudnn& cudnn, const FusedAttention& attention) {
  CudnnGraph graph(cudnn);
  const int type = attention.dtype == DataType::kBFloat16 ? cudnn::kBFloat16 : cudnn::kFloat16;
  attention.gradient ? AddGradient(&graph, attention, type) : AddForward(&graph, attention, type);
  return graph;
}

}  // namespace isomer
