// Attention and Rotary.
//
// Attention goes over blocks of queries, so that only a block of scores is there at a time: memory
// is O(block * keys), as in Dao et al., "FlashAttention" (2022), but with whole rows of scores. The
// gradient computes the scores again, and is given what makes probabilities of each row of them:
//
//   S = scale Q K^T + mask;  P = softmax(S) = exp(S - maximum) / sum;  Y = P V
//   dV = P^T dY;  dP = dY V^T;  dS = P (dP - rowsum(dP P));  dQ = scale dS K;  dK = scale dS^T Q
//
// If capped, softmax(cap T + mask) of T = tanh(scale Q K^T): dmask is dS, and dS cap (1 - T^2)
// takes its place in dQ and dK.
//
// A sink is one more score of each row, with no value: of its share p = exp(sink - maximum) / sum,
// dsink = -p rowsum(dP P).
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "pcg/support/status_macros.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"
#include "runtime/device/strided.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

constexpr int64_t kBlock = 64;  // queries
// Below every score, as in pcg/operators/attention.cc.
constexpr float kHidden = -1e30f;

struct AttentionShape {
  int64_t batch, heads, key_heads, queries, keys, e, f;
  float scale, cap = 0;
  bool causal, has_mask, is_capped, has_sink;
  int64_t window = 0;                // keys that a query sees; 0: no such limit
  int64_t first_visible;             // the first query of the task sees the keys up to this one
  int64_t stripes = 1;               // of queries and keys, if more than one
  int64_t first_query;               // of the task
  std::vector<int64_t> mask;         // strides of the mask along batch, heads, queries, keys
  std::array<int64_t, 4> volumes{};  // of the operands

  explicit AttentionShape(const KernelCall& call) {
    const Box &q = call.operands[0], &k = call.operands[1], &v = call.operands[2];
    batch = q.shape[0], heads = q.shape[1], queries = q.shape[2], e = q.shape[3];
    key_heads = k.shape[1], keys = k.shape[2], f = v.shape[3];
    scale = static_cast<float>(call.op.Number("scale"));
    causal = call.op.Int("causal") != 0;
    stripes = std::max<int64_t>(1, call.op.Int("causal"));
    first_query = q.origin[2];
    is_capped = call.op.kind() == OpKind::kCappedAttention;
    if (is_capped) cap = static_cast<float>(call.op.Number("cap"));
    has_sink = call.op.kind() == OpKind::kSinkAttention;
    if (has_sink) window = call.op.Int("window");
    has_mask = !has_sink && call.operands.size() == 4;
    first_visible = q.origin[2] + keys - call.declaration.operands[0][2].value();
    if (has_mask) mask = BroadcastStrides(call.operands[3].shape, 4);
    for (size_t o = 0; o < call.operands.size(); ++o) volumes[o] = call.operands[o].Volume();
  }

  // A block of queries of one head, and where its parts begin in the operands and the output.
  struct Block {
    int64_t rows, first_query, row, q, k, v, y, mask, head;
  };
  template <typename Function>
  absl::Status ForEachBlock(Function function) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t head = b * heads + h;
        const int64_t key_head = b * key_heads + h / (heads / key_heads);
        for (int64_t s = 0; s < queries; s += kBlock) {
          const Block block{std::min(kBlock, queries - s),
                            s,
                            head * queries + s,
                            (head * queries + s) * e,
                            key_head * keys * e,
                            key_head * keys * f,
                            (head * queries + s) * f,
                            has_mask ? b * mask[0] + h * mask[1] + s * mask[2] : 0,
                            h};
          ISOMER_RETURN_IF_ERROR(function(block));
        }
      }
    }
    return absl::OkStatus();
  }
};

// Query r of the task, of a sequence in stripes, sees no keys behind its place, and none before its
// window: they get the lowest score, or then a probability of 0.
void HideUnseen(const AttentionShape& a, int64_t r, float value, float* row) {
  const int64_t each = a.keys / a.stripes, query = a.first_query + r;
  const int64_t place = query % each * a.stripes + query / each;
  const int64_t first = a.window > 0 ? std::max<int64_t>(0, place + 1 - a.window) : 0;
  for (int64_t p = 0; p < a.stripes; ++p, row += each) {
    // Of the keys i * stripes + p.
    const int64_t begin = std::clamp<int64_t>((first - p + a.stripes - 1) / a.stripes, 0, each);
    const int64_t end = place < p ? 0 : std::min(each, (place - p) / a.stripes + 1);
    std::fill(row, row + std::min(begin, each), value);
    std::fill(row + std::max(begin, end), row + each, value);
  }
}

// Of rows of scores.
struct RowSums {
  SoftmaxSums* saved = nullptr;        // where they go, unless null
  const SoftmaxSums* found = nullptr;  // as they were saved, unless null
};

// Scores become probabilities.
void SoftmaxOfVisible(float* row, int64_t visible, int64_t size, const RowSums& of_row) {
  std::fill(row + visible, row + size, 0.0f);
  if (visible > 0 && of_row.found != nullptr) {
    ExpOfShifted(row, of_row.found->maximum, 1 / of_row.found->sum, visible, row);
    return;
  }
  const SoftmaxSums sums = visible > 0 ? Softmax(row, visible, row) : SoftmaxSums();
  if (of_row.saved != nullptr) *of_row.saved = sums;
}

// The same of the keys [first, visible) and a sink.
void SoftmaxWithSink(float* row, int64_t first, int64_t visible, int64_t size, float sink) {
  std::fill(row, row + first, 0.0f);
  std::fill(row + visible, row + size, 0.0f);
  if (first >= visible) return;
  const SoftmaxSums keys = Softmax(row + first, visible - first, row + first);
  const float maximum = std::max(keys.maximum, sink);
  const float of_keys = keys.sum * std::exp(keys.maximum - maximum);
  const float share = of_keys / (of_keys + std::exp(sink - maximum));
  for (int64_t t = first; t < visible; ++t) row[t] *= share;
}

// P of a block, [rows, keys]. `tanh`, unless null: gets T of a capped one. `of_all`: of all rows.
absl::Status Probabilities(const AttentionShape& a, const AttentionShape::Block& block, Reads reads,
                           float* p, float* tanh, const RowSums& of_all) {
  ISOMER_RETURN_IF_ERROR(Gemm(false, true, block.rows, a.keys, a.e, a.scale,
                              Floats(reads[0]) + block.q, Floats(reads[1]) + block.k, 0, p));
  for (int64_t r = 0; r < block.rows; ++r) {
    float* row = p + r * a.keys;
    if (a.is_capped) {
      Apply([](float score) { return Tanh(score); }, a.keys, row, row);
      if (tanh != nullptr) std::copy_n(row, a.keys, tanh + r * a.keys);
      for (int64_t t = 0; t < a.keys; ++t) row[t] *= a.cap;
    }
    if (a.has_mask) {
      const float* mask = Floats(reads[3]) + block.mask + r * a.mask[2];
      for (int64_t t = 0; t < a.keys; ++t) row[t] += mask[t * a.mask[3]];
    }
    const bool in_stripes = a.stripes > 1;
    if (in_stripes) HideUnseen(a, block.first_query + r, kHidden, row);
    const int64_t last = a.first_visible + block.first_query + r;
    const bool sees_first_keys = a.causal && !in_stripes;
    const int64_t visible = sees_first_keys ? std::clamp<int64_t>(last + 1, 0, a.keys) : a.keys;
    if (a.has_sink) {
      const bool has_window = a.window > 0 && !in_stripes;
      const int64_t first = has_window ? std::clamp<int64_t>(last + 1 - a.window, 0, visible) : 0;
      SoftmaxWithSink(row, first, visible, a.keys, Floats(reads[3])[block.head]);
    } else {
      RowSums of_row;
      if (of_all.saved != nullptr) of_row.saved = of_all.saved + block.row + r;
      if (of_all.found != nullptr) of_row.found = of_all.found + block.row + r;
      SoftmaxOfVisible(row, visible, a.keys, of_row);
    }
    if (in_stripes) HideUnseen(a, block.first_query + r, 0, row);
  }
  return absl::OkStatus();
}

// dP becomes dS.
void ScoreGradient(const float* p, int64_t rows, int64_t keys, float* dp) {
  for (int64_t r = 0; r < rows; ++r, p += keys, dp += keys) SoftmaxGradient(p, dp, keys, dp);
}

// What the sink of a block's head gets of its rows: their P add up to 1 minus its share.
float SinkGradient(const float* p, const float* dp, int64_t rows, int64_t keys) {
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r, p += keys, dp += keys) {
    double of_keys = 0, dot = 0;
    for (int64_t t = 0; t < keys; ++t) {
      of_keys += p[t];
      dot += static_cast<double>(p[t]) * dp[t];
    }
    sum -= (1 - of_keys) * dot;
  }
  return static_cast<float>(sum);
}

// Of a block: P, and what its gradient needs beside it.
struct AttentionPlaces {
  WorkspacePlan plan;
  Place<float> p, ds, tanh;

  AttentionPlaces(const AttentionShape& a, bool gradient) {
    const int64_t scores = std::min(kBlock, a.queries) * a.keys;
    p = plan.Add<float>(scores);
    if (gradient) ds = plan.Add<float>(scores);
    if (gradient && a.is_capped) tanh = plan.Add<float>(scores);
  }
};

absl::Status AttentionGradient(const AttentionShape& a, const AttentionPlaces& places, Reads reads,
                               Writes writes, char* workspace) {
  const float *q = Floats(reads[0]), *k = Floats(reads[1]), *v = Floats(reads[2]);
  const size_t operands = a.has_mask || a.has_sink ? 4 : 3;
  const float* dy = Floats(reads[operands + 1]);
  RowSums sums;
  if (!a.has_sink) sums.found = static_cast<const SoftmaxSums*>(reads[operands + 2]);
  std::array<float*, 4> d{};
  for (size_t o = 0; o < operands; ++o) {
    d[o] = Floats(writes[o]);
    if (d[o] != nullptr) std::fill_n(d[o], a.volumes[o], 0.0f);
  }
  float *p = places.p.In(workspace), *ds = places.ds.In(workspace);
  float* tanh = places.tanh.In(workspace);
  return a.ForEachBlock([&](const AttentionShape::Block& block) -> absl::Status {
    const int64_t rows = block.rows;
    ISOMER_RETURN_IF_ERROR(Probabilities(a, block, reads, p, tanh, sums));
    if (d[2] != nullptr) {
      ISOMER_RETURN_IF_ERROR(
          Gemm(true, false, a.keys, a.f, rows, 1, p, dy + block.y, 1, d[2] + block.v));
    }
    ISOMER_RETURN_IF_ERROR(
        Gemm(false, true, rows, a.keys, a.f, 1, dy + block.y, v + block.v, 0, ds));
    if (a.has_sink && d[3] != nullptr) d[3][block.head] += SinkGradient(p, ds, rows, a.keys);
    ScoreGradient(p, rows, a.keys, ds);
    for (int64_t i = 0; a.has_mask && d[3] != nullptr && i < rows * a.keys; ++i) {
      d[3][block.mask + i / a.keys * a.mask[2] + i % a.keys * a.mask[3]] += ds[i];
    }
    for (int64_t i = 0; a.is_capped && i < rows * a.keys; ++i) {
      ds[i] *= a.cap * (1 - tanh[i] * tanh[i]);
    }
    if (d[0] != nullptr) {
      ISOMER_RETURN_IF_ERROR(
          Gemm(false, false, rows, a.e, a.keys, a.scale, ds, k + block.k, 1, d[0] + block.q));
    }
    if (d[1] != nullptr) {
      ISOMER_RETURN_IF_ERROR(
          Gemm(true, false, a.keys, a.e, rows, a.scale, ds, q + block.q, 1, d[1] + block.k));
    }
    return absl::OkStatus();
  });
}

}  // namespace

KernelFunction AttentionKernel(const KernelCall& call) {
  const AttentionShape a(call);
  const AttentionPlaces places(a, call.gradient);
  if (call.gradient) {
    return {places.plan.bytes(), [a, places](Reads reads, Writes writes, char* workspace) {
              return AttentionGradient(a, places, reads, writes, workspace);
            }};
  }
  const bool saves = call.saved.has_value();
  return {places.plan.bytes(), [a, places, saves](Reads reads, Writes writes, char* workspace) {
            float* p = places.p.In(workspace);
            const RowSums sums = {.saved = saves ? static_cast<SoftmaxSums*>(writes[1]) : nullptr};
            return a.ForEachBlock([&](const AttentionShape::Block& block) -> absl::Status {
              ISOMER_RETURN_IF_ERROR(Probabilities(a, block, reads, p, nullptr, sums));
              return Gemm(false, false, block.rows, a.f, a.keys, 1, p, Floats(reads[2]) + block.v,
                          0, Floats(writes[0]) + block.y);
            });
          }};
}

namespace {

// Pairs of a row of x: (i, i + e/2), or (2i, 2i + 1) if interleaved.
struct RotaryShape {
  int64_t rows, positions, half;
  bool interleaved;
  int64_t First(int64_t i) const { return interleaved ? 2 * i : i; }
  int64_t Second(int64_t i) const { return interleaved ? 2 * i + 1 : i + half; }
};

// Turns every pair by its angle, or back.
void Rotate(const RotaryShape& r, float direction, const float* x, const float* cos,
            const float* sin, float* y) {
  for (int64_t row = 0; row < r.rows; ++row, x += 2 * r.half, y += 2 * r.half) {
    const int64_t angle = row % r.positions * r.half;
    for (int64_t i = 0; i < r.half; ++i) {
      const float c = cos[angle + i], s = direction * sin[angle + i];
      const float a = x[r.First(i)], b = x[r.Second(i)];
      y[r.First(i)] = a * c - b * s;
      y[r.Second(i)] = b * c + a * s;
    }
  }
}

// dcos = sum g1 x1 + g2 x2;  dsin = sum g2 x1 - g1 x2, over all that share an angle.
void AngleGradients(const RotaryShape& r, const float* x, const float* g, float* dcos,
                    float* dsin) {
  for (float* d : {dcos, dsin}) {
    if (d != nullptr) std::fill_n(d, r.positions * r.half, 0.0f);
  }
  for (int64_t row = 0; row < r.rows; ++row, x += 2 * r.half, g += 2 * r.half) {
    const int64_t angle = row % r.positions * r.half;
    for (int64_t i = 0; i < r.half; ++i) {
      const float a = x[r.First(i)], b = x[r.Second(i)], ga = g[r.First(i)], gb = g[r.Second(i)];
      if (dcos != nullptr) dcos[angle + i] += ga * a + gb * b;
      if (dsin != nullptr) dsin[angle + i] += gb * a - ga * b;
    }
  }
}

}  // namespace

KernelFunction RotaryKernel(const KernelCall& call) {
  const std::vector<int64_t>&x = call.operands[0].shape, &angles = call.operands[1].shape;
  const RotaryShape r{call.operands[0].Volume() / x.back(), angles[0], x.back() / 2,
                      call.op.Int("interleaved") == 1};
  if (!call.gradient) {
    return [r](Reads reads, Writes writes) {
      Rotate(r, 1, Floats(reads[0]), Floats(reads[1]), Floats(reads[2]), Floats(writes[0]));
      return absl::OkStatus();
    };
  }
  return [r](Reads reads, Writes writes) {
    const float* g = Floats(reads[4]);
    if (writes[0] != nullptr) {
      Rotate(r, -1, g, Floats(reads[1]), Floats(reads[2]), Floats(writes[0]));
    }
    if (writes[1] != nullptr || writes[2] != nullptr) {
      AngleGradients(r, Floats(reads[0]), g, Floats(writes[1]), Floats(writes[2]));
    }
    return absl::OkStatus();
  };
}

}  // namespace isomer
