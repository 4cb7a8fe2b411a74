#include "optimizer/cost/product_efficiency.h"

#include <algorithm>
#include <cmath>

#include "pcg/ir/operator_facts.h"

namespace isomer {
namespace {

// A tile, and the share of the largest one's rate that it reaches.
struct Tile {
  int64_t m, n;
  double rate;
};
// Of the shapes that cuBLASLt lists for tensor cores. Rates: two operands' bytes a product,
// relative to the largest, half of which caches serve.
constexpr Tile kTiles[] = {{256, 128, 1},   {128, 256, 1}, {128, 128, 0.95}, {128, 64, 0.85},
                           {64, 128, 0.85}, {64, 64, 0.7}, {32, 64, 0.45},   {64, 32, 0.45}};
// Sums of so many products take as long as what a tile begins and ends with.
constexpr double kDepth = 256;
// Of split-K: partial sums are written and added up, which takes as long as so much of the sum.
constexpr double kSplitDepth = 256;
constexpr int64_t kMostSplits = 16;

double Ceil(double a, double b) { return std::ceil(a / b); }

}  // namespace

double ProductShape::flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k);
}

double ProductEfficiency(const DeviceKind& kind, const ProductShape& shape) {
  if (kind.multiprocessors == 0 || shape.flops() == 0) return 1;
  const auto sms = static_cast<double>(kind.multiprocessors);
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k), batch = static_cast<double>(shape.batch);
  double best = 0;
  for (const Tile& tile : kTiles) {
    const auto tm = static_cast<double>(tile.m), tn = static_cast<double>(tile.n);
    const double tiles = batch * Ceil(m, tm) * Ceil(n, tn);
    for (int64_t s = 1; s <= kMostSplits; s *= 2) {
      const auto splits = static_cast<double>(s);
      if (s > 1 && (tiles * splits > 2 * sms || k / splits < kDepth)) break;
      // In multiprocessors' time for one product of a tile.
      const double depth = k / splits + kDepth + (s > 1 ? kSplitDepth : 0);
      const double time = Ceil(tiles * splits, sms) * tm * tn * depth / tile.rate;
      best = std::max(best, batch * m * n * k / (sms * time));
    }
  }
  return best;
}

std::vector<ProductShape> ProductsOf(const Operator& op, absl::Span<const TensorType> operands,
                                     const std::vector<bool>& wanted) {
  if (op.kind() != OpKind::kMatMul && op.kind() != OpKind::kLinear) return {};
  const std::vector<int64_t> a = operands[0].LocalShape(), b = operands[1].LocalShape();
  if (a.size() < 2 || b.size() < 2) return {};
  ProductShape forward;
  forward.k = b[b.size() - 2];
  forward.n = b.back();
  // Rows of a product with one matrix are all rows.
  const int64_t matrices = operands[1].LocalElements() / (forward.k * forward.n);
  const int64_t rows = operands[0].LocalElements() / a.back();
  forward.batch = matrices;
  forward.m = std::max<int64_t>(1, rows / matrices);
  if (wanted.empty()) return {forward};
  std::vector<ProductShape> products;
  const auto& [batch, m, n, k] = forward;
  if (wanted[0]) products.push_back({batch, m, k, n});
  if (wanted[1]) products.push_back({batch, k, n, m});
  return products;
}

std::optional<double> AttentionFactor(const DeviceKind& kind, const Operator& op,
                                      absl::Span<const TensorType> operands, bool is_gradient) {
  const double fraction = is_gradient ? kind.attention_backward_fraction : kind.attention_fraction;
  if (fraction == 0 || !IsAttention(op.kind())) return std::nullopt;
  const std::vector<int64_t> q = operands[0].LocalShape(), k = operands[1].LocalShape();
  if (q.size() < 2 || k.size() < 2) return std::nullopt;
  // A head is as deep as its size; rates are given for 128.
  constexpr double kHead = 128, kHeadDepth = 32;
  const auto head = static_cast<double>(q.back());
  const double depth = head / (head + kHeadDepth) * (kHead + kHeadDepth) / kHead;
  // Blocks on the diagonal are computed whole.
  constexpr double kBlock = 128;
  const auto keys = std::max(static_cast<double>(k[k.size() - 2]), 1.0);
  const auto queries = static_cast<double>(q[q.size() - 2]);
  const bool is_causal = op.Int("causal") != 0;
  // Of a sequence in stripes the queries of a block are as far apart as there are stripes.
  const double block = kBlock * std::max(1.0, static_cast<double>(op.Int("causal")));
  // Queries and keys end together: the last device's queries see all but, of their own keys, half.
  // In stripes all queries see half, wherever they are.
  const double own = op.Int("causal") > 1 ? keys : queries;
  double share = is_causal ? std::min(1.0, 1 - (own - block) / (2 * keys)) : 1;
  if (op.kind() == OpKind::kSinkAttention && op.Int("window") > 0 && is_causal) {
    const auto window = static_cast<double>(op.Int("window"));
    share = std::min(share, (window + block) / keys);
  }
  return share / (fraction * std::min(depth, 1.0));
}

}  // namespace isomer
