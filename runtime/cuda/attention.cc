// Attention as products and softmaxes between them, for as many heads at a time as their scores
// have room:
//
//   D = Q K^T                       a product, float32
//   Z = scale D + mask              (capped: cap tanh(scale D) + mask)
//   P = exp(Z - maximum) / sum      generated; maximum and sum of each row are saved
//   Y = P V                         a product
//
// and its gradient, of the saved maximum and sum:
//
//   D = Q K^T;  dP = dY V^T         products, float32
//   P, and dS = P (dP - rowsum(dP P)) scale (capped: cap (1 - tanh^2))      generated
//   dV = P^T dY;  dQ = dS K;  dK = dS^T Q                                    products
//
// In 16-bit types, without a mask, a cap or stripes, cuDNN does all of it at one time, and scores
// are never in memory: the gradient makes the result once more, as it has not kept it.
//
// The query heads of a key head lie side by side, and are rows of one matrix. What is between the
// products has declarations of its own, as operators have.
#include <algorithm>
#include <utility>

#include "pcg/ir/declaration.h"
#include "pcg/schedule/memory/memory.h"
#include "runtime/cuda/made_step.h"
#include "runtime/cuda/products.h"

namespace isomer {
namespace {

// Below every score, as in pcg/operators/attention.cc.
constexpr double kUnseen = -1e30;

struct AttentionSizes {
  int64_t batch, key_heads, group, queries, keys, e, f;  // group: query heads of a key head
  DataType dtype;
  int64_t heads() const { return key_heads * group; }
  int64_t rows() const { return group * queries; }  // of a key head

  explicit AttentionSizes(const KernelCall& call) {
    const std::vector<int64_t>&q = call.operands[0].shape, &k = call.operands[1].shape;
    batch = q[0], key_heads = k[1], group = q[1] / k[1], queries = q[2], keys = k[2], e = q[3];
    f = call.operands[2].shape[3];
    dtype = call.dtypes[0];
  }
};

// Some key heads of some samples: all heads, or of one sample.
struct Chunk {
  int64_t sample, samples, head, heads;
  int64_t count() const { return samples * heads; }
};

std::vector<Chunk> ChunksOf(const AttentionSizes& a, int64_t most_part_bytes) {
  const int64_t of_head = a.rows() * a.keys * BytesPerElement(DataType::kFloat32);
  const int64_t heads = std::clamp<int64_t>(most_part_bytes / of_head, 1, a.key_heads);
  const int64_t samples =
      heads < a.key_heads
          ? 1
          : std::clamp<int64_t>(most_part_bytes / (of_head * a.key_heads), 1, a.batch);
  std::vector<Chunk> chunks;
  for (int64_t b = 0; b < a.batch; b += samples) {
    for (int64_t g = 0; g < a.key_heads; g += heads) {
      chunks.push_back({b, std::min(samples, a.batch - b), g, std::min(heads, a.key_heads - g)});
    }
  }
  return chunks;
}

// The last key that the first query sees, of a causal one.
int64_t FirstSees(const KernelCall& call) {
  return call.operands[0].origin[2] + call.operands[1].shape[2] -
         call.declaration.operands[0][2].value();
}

// What is done with the scores of a chunk, as a call of its own: operands and outputs are matrices
// [samples, heads, group, queries, keys], rows of two numbers, and the mask or the sinks. Queries
// and keys in stripes are two dims each.
class ScoreCall {
 public:
  ScoreCall(const KernelCall& attention, const AttentionSizes& a, const Chunk& chunk)
      : attention_(attention),
        made_(attention.op),
        stripes_(std::max<int64_t>(1, attention.op.Int("causal"))),
        each_(a.keys / stripes_),
        scores_{chunk.samples, chunk.heads, a.group} {
    if (stripes_ > 1) {
      scores_.insert(scores_.end(), {a.queries / each_, each_, stripes_, each_});
    } else {
      scores_.insert(scores_.end(), {a.queries, a.keys});
    }
    of_rows_.assign(scores_.begin(), scores_.end() - (stripes_ > 1 ? 2 : 1));
    of_rows_.push_back(2);
    if (attention.operands.size() < 4) return;
    mask_ = attention.operands[3].shape;
    if (has_sink()) {  // As a mask that all scores of a head share.
      mask_ = {1, a.heads(), 1, 1};
    } else {
      mask_.insert(mask_.begin(), 4 - mask_.size(), 1);
    }
    // A mask's part for the chunk, which lies in one piece.
    if (mask_[0] > 1) mask_[0] = chunk.samples, mask_offset_ = chunk.sample;
    const int64_t of_head = mask_[2] * mask_[3];
    mask_offset_ *= mask_[1] * of_head;
    if (mask_[1] > 1) {
      mask_[1] = chunk.heads * a.group;
      mask_offset_ += chunk.head * a.group * of_head;
    }
    mask_offset_ *= BytesPerElement(attention.dtypes[3]);
  }

  // Operands of the scores' shape, and one with the sums of each row.
  void AddScores(DataType dtype, GpuPlace place) { made_.AddOperand(scores_, dtype, place); }
  void AddRows(GpuPlace place) { made_.AddOperand(of_rows_, DataType::kFloat32, place); }
  void AddMask() {
    if (mask_.empty()) return;
    made_.AddOperand(mask_, attention_.dtypes[3], {GpuPlace::kRead, 3, mask_offset_});
  }
  void AddOutput(DataType dtype, GpuPlace place, bool of_rows = false) {
    made_.AddOutput(of_rows ? of_rows_ : scores_, dtype, place);
  }

  // [samples, heads, group, queries]
  void AddRowOutput(GpuPlace place) {
    made_.AddOutput({of_rows_.begin(), of_rows_.end() - 1}, DataType::kFloat32, place);
  }

  // Begins the declaration, of the operands so far.
  void Begin() {
    d_ = &made_.Begin();
    const char* const names[] = {"b", "g", "u"};
    for (int i = 0; i < 3; ++i) row_.push_back(d_->Parallel(names[i], scores_[i]));
    if (stripes_ > 1) row_.push_back(d_->Parallel("p", scores_[3]));
    row_.push_back(d_->Parallel("s", of_rows_[of_rows_.size() - 2]));
    if (stripes_ > 1) t_.push_back(d_->Whole("r", stripes_));
    t_.push_back(d_->Whole("t", scores_.back()));
    point_ = row_;
    point_.insert(point_.end(), t_.begin(), t_.end());
  }
  DeclarationBuilder& d() { return *d_; }
  const std::vector<int>& row() const { return row_; }
  const std::vector<int>& t() const { return t_; }
  std::vector<Index> point() const { return {point_.begin(), point_.end()}; }
  Expr At(int operand) { return d_->In(operand, point()); }
  Expr AtRow(int operand, int64_t which) {
    std::vector<Index> index(row_.begin(), row_.end());
    index.push_back(Shifted(Index(), Extent(which)));
    return d_->In(operand, std::move(index));
  }
  // Of the products of operand 0; `tanh` gets tanh(scale D) of a capped one.
  Expr Score(int mask_operand, std::optional<Expr>* tanh = nullptr) {
    Expr score = At(0) * attention_.op.Number("scale");
    if (is_capped()) {
      score = Apply(ScalarOp::kTanh, score);
      if (tanh != nullptr) *tanh = score;
      score = score * attention_.op.Number("cap");
    }
    return mask_.empty() || has_sink() ? score : score + Mask(mask_operand);
  }
  // Of the row's score.
  Expr Mask(int mask_operand) {
    std::vector<Index> index(4);
    if (mask_[0] > 1) index[0] = row_[0];
    if (mask_[1] > 1) index[1] = Index(row_[1]) * scores_[2] + Index(row_[2]);
    if (mask_[2] > 1) index[2] = Joined(row_[row_.size() - 2], row_.back());
    if (mask_[3] > 1) index[3] = Joined(t_[0], t_.back());
    return d_->In(mask_operand, index);
  }
  // Of the keys that a query sees `value`.
  Expr Seen(const Expr& value, double otherwise) {
    Expr seen = value;
    const Expr query = QueryPlace(), key = Place(t_[0], t_.back(), 0);
    if (const int64_t window = has_sink() ? attention_.op.Int("window") : 0; window > 0) {
      seen = Where(key + static_cast<double>(window - 1) < query, otherwise, seen);
    }
    if (attention_.op.Int("causal") == 0) return seen;
    return Where(query < key, otherwise, seen);
  }
  bool has_sink() const { return attention_.op.kind() == OpKind::kSinkAttention; }
  bool is_capped() const { return attention_.op.kind() == OpKind::kCappedAttention; }
  // {maximum, sum} of the rows, as statements. `mask_operand`: the sinks, if there are any.
  std::pair<Expr, Expr> RowSums(const Expr& score, int mask_operand) {
    Expr maximum = d_->Let("M", row_, Reduction::kMax, t_, Seen(score, kUnseen));
    if (has_sink()) {
      maximum = d_->Let("N", row_, Reduction::kNone, {}, Max(maximum, Mask(mask_operand)));
    }
    const Expr sum =
        d_->Let("S", row_, Reduction::kSum, t_, Seen(Apply(ScalarOp::kExp, score - maximum), 0));
    if (!has_sink()) return {maximum, sum};
    const Expr of_sink = Apply(ScalarOp::kExp, Mask(mask_operand) - maximum);
    return {maximum, d_->Let("T", row_, Reduction::kNone, {}, sum + of_sink)};
  }

  GeneratedStep Build() && { return std::move(made_).Build(); }

 private:
  // The index of what is the i-th of a stripe in a matrix; `stripe` is `i` where there is one.
  Index Joined(int stripe, int i) const {
    return stripes_ > 1 ? Index(stripe) * each_ + Index(i) : Index(i);
  }
  // Its place in the sequence, from `first` on: a stripe, or an index where there is one.
  Expr Place(int stripe, int i, int64_t first) const {
    const Expr offset = static_cast<double>(first);
    if (stripes_ == 1) return Coordinate(i) + offset;
    return Coordinate(i) * static_cast<double>(stripes_) + (Coordinate(stripe) + offset);
  }
  // A task has whole stripes of queries.
  Expr QueryPlace() const {
    const int64_t first =
        stripes_ > 1 ? attention_.operands[0].origin[2] / each_ : FirstSees(attention_);
    return Place(row_[row_.size() - 2], row_.back(), first);
  }

  const KernelCall& attention_;
  MadeStep made_;
  const int64_t stripes_, each_;  // keys of a stripe
  std::vector<int64_t> scores_, of_rows_;
  std::vector<int64_t> mask_;  // empty: there is none
  int64_t mask_offset_ = 0;
  DeclarationBuilder* d_ = nullptr;
  std::vector<int> row_, t_, point_;
};

// P of D, and the sums of its rows.
GeneratedStep Probabilities(const KernelCall& call, const AttentionSizes& a, const Chunk& chunk,
                            GpuPlace products, GpuPlace p, GpuPlace saved) {
  ScoreCall scores(call, a, chunk);
  scores.AddScores(DataType::kFloat32, products);
  scores.AddMask();
  scores.Begin();
  const Expr score = scores.Score(/*mask_operand=*/1);
  const auto [maximum, sum] = scores.RowSums(score, /*mask_operand=*/1);
  scores.d().Output(scores.point(), scores.Seen(Apply(ScalarOp::kExp, score - maximum), 0) / sum);
  scores.AddOutput(a.dtype, p);
  if (saved.kind != GpuPlace::kNone) {
    const int which = scores.d().Whole("c", 2);
    std::vector<Index> index(scores.row().begin(), scores.row().end());
    index.push_back(which);
    scores.d().Output(index, Where(Coordinate(which) < 0.5, maximum, sum));
    scores.AddOutput(DataType::kFloat32, saved, /*of_rows=*/true);
  }
  return std::move(scores).Build();
}

// P and dS of D and dP. `saved`: as Probabilities has left it, or nothing. `sinks`: gets what each
// row adds to the gradient of its sink, unless nothing.
GeneratedStep ScoreGradients(const KernelCall& call, const AttentionSizes& a, const Chunk& chunk,
                             GpuPlace products, GpuPlace dp, GpuPlace saved, GpuPlace p,
                             GpuPlace ds, GpuPlace sinks) {
  ScoreCall scores(call, a, chunk);
  scores.AddScores(DataType::kFloat32, products);
  scores.AddScores(DataType::kFloat32, dp);
  const bool is_saved = saved.kind != GpuPlace::kNone;
  if (is_saved) scores.AddRows(saved);
  scores.AddMask();
  scores.Begin();
  std::optional<Expr> tanh;
  const Expr score = scores.Score(is_saved ? 3 : 2, &tanh);
  const auto [maximum, sum] =
      is_saved ? std::pair(scores.AtRow(2, 0), scores.AtRow(2, 1)) : scores.RowSums(score, 2);
  const Expr probability = scores.Seen(Apply(ScalarOp::kExp, score - maximum), 0) / sum;
  const Expr gradient = scores.At(1);
  const Expr of_row =
      scores.d().Let("R", scores.row(), Reduction::kSum, scores.t(), probability * gradient);
  scores.d().Output(scores.point(), probability);
  scores.AddOutput(a.dtype, p);
  Expr of_score = probability * (gradient - of_row);
  if (tanh) of_score = of_score * (Expr(1.0) - *tanh * *tanh) * call.op.Number("cap");
  scores.d().Output(scores.point(), of_score * call.op.Number("scale"));
  scores.AddOutput(a.dtype, ds);
  if (sinks.kind != GpuPlace::kNone) {
    const Expr share = Apply(ScalarOp::kExp, scores.Mask(2) - maximum) / sum;
    scores.d().Output({scores.row().begin(), scores.row().end()}, Expr(0.0) - share * of_row);
    scores.AddRowOutput(sinks);
  }
  return std::move(scores).Build();
}

// The gradient of the sinks, of what rows [batch, heads, queries] add to it.
GeneratedStep SumOfSinks(const KernelCall& call, const AttentionSizes& a, GpuPlace of_rows) {
  const GpuPlace written = {GpuPlace::kWrite, 3};
  MadeStep made(call.op);
  made.AddOperand({a.batch, a.heads(), a.queries}, DataType::kFloat32, of_rows);
  if (call.Adds(3)) made.AddOperand({a.heads()}, call.SumDtype(3), written);
  DeclarationBuilder& d = made.Begin();
  const int h = d.Parallel("h", a.heads()), b = d.Sum("b", a.batch), s = d.Sum("s", a.queries);
  const Expr sum = d.Let("G", {h}, Reduction::kSum, {b, s}, d.In(0, {b, h, s}));
  d.Output({h}, call.Adds(3) ? sum + d.In(1, {h}) : sum);
  made.AddOutput({a.heads()}, call.SumDtype(3), written);
  return std::move(made).Build();
}

// What cuDNN takes; whether it does it is known on a GPU alone.
bool MayBeFused(const KernelCall& call) {
  const DataType dtype = call.dtypes[0];
  if (call.op.kind() != OpKind::kAttention || call.operands.size() != 3 ||
      BytesPerElement(dtype) != 2 || call.op.Int("causal") > 1 ||
      (call.op.Int("causal") != 0 && FirstSees(call) != 0)) {
    return false;
  }
  if (!call.gradient) return true;
  for (int o = 0; o < 3; ++o) {
    if (!call.wanted[o] || call.Adds(o) || call.SumDtype(o) != dtype) return false;
  }
  return true;
}

GpuSteps FusedSteps(const KernelCall& call, const AttentionSizes& a) {
  FusedAttention fused = {.batch = a.batch,
                          .heads = a.heads(),
                          .key_heads = a.key_heads,
                          .queries = a.queries,
                          .keys = a.keys,
                          .e = a.e,
                          .f = a.f,
                          .dtype = a.dtype,
                          .scale = call.op.Number("scale"),
                          .causal = call.op.Int("causal") != 0,
                          .gradient = false};
  GpuSteps steps;
  const int64_t rows = fused.rows();
  const GpuPlace q = {GpuPlace::kRead, 0}, k = {GpuPlace::kRead, 1}, v = {GpuPlace::kRead, 2};
  const GpuPlace logarithms = steps.AddWorkspace(rows, DataType::kFloat32);
  const GpuPlace y =
      call.gradient ? steps.AddWorkspace(rows * a.f, a.dtype) : GpuPlace{GpuPlace::kWrite, 0};
  steps.steps.push_back(FusedStep{fused, {q, k, v, y, logarithms}});
  if (call.gradient) {
    fused.gradient = true;
    const GpuPlace dy = {GpuPlace::kRead, static_cast<int>(call.operands.size()) + 1};
    const GpuPlace of_rows = steps.AddWorkspace(rows, DataType::kFloat32),
                   dq_sum = steps.AddWorkspace(rows * a.e, DataType::kFloat32);
    steps.steps.push_back(FusedStep{fused,
                                    {q,
                                     k,
                                     v,
                                     y,
                                     logarithms,
                                     dy,
                                     {GpuPlace::kWrite, 0},
                                     {GpuPlace::kWrite, 1},
                                     {GpuPlace::kWrite, 2},
                                     of_rows,
                                     dq_sum}});
  } else if (call.saved.has_value()) {
    // exp(Z - logarithm) / 1 is exp(Z - maximum) / sum.
    MadeStep made(call.op);
    made.AddOperand({rows}, DataType::kFloat32, logarithms);
    DeclarationBuilder& d = made.Begin();
    const int row = d.Parallel("row", rows), which = d.Whole("c", 2);
    d.Output({row, which}, Where(Coordinate(which) < 0.5, d.In(0, {row}), 1.0));
    made.AddOutput({rows, 2}, DataType::kFloat32, {GpuPlace::kWrite, 1});
    steps.steps.push_back(std::move(made).Build());
  }
  return steps;
}

}  // namespace

GpuSteps StepsOfAttention(const KernelCall& call, const GpuStepOptions& options) {
  const AttentionSizes a(call);
  if (options.fuses_attention && MayBeFused(call)) return FusedSteps(call, a);
  const std::vector<Chunk> chunks = ChunksOf(a, options.most_part_bytes);
  const int64_t most = chunks[0].count() * a.rows() * a.keys;  // none is larger than the first
  GpuSteps steps;
  const GpuPlace products = steps.AddWorkspace(most, DataType::kFloat32);
  const GpuPlace p = steps.AddWorkspace(most, a.dtype);
  const int operands = static_cast<int>(call.operands.size());
  const GpuPlace q = {GpuPlace::kRead, 0}, k = {GpuPlace::kRead, 1}, v = {GpuPlace::kRead, 2};
  // [rows, x] [x, y] of each head of a chunk.
  const auto product = [&](const Chunk& chunk, int64_t m, int64_t n, int64_t depth, bool of_a,
                           bool of_b, DataType dtype, bool adds) {
    return Product{.m = m,
                   .n = n,
                   .k = depth,
                   .transposes_a = of_a,
                   .transposes_b = of_b,
                   .operand_dtype = a.dtype,
                   .dtype = dtype,
                   .adds = adds,
                   .batch = chunk.count(),
                   .a_stride = m * depth,
                   .b_stride = depth * n,
                   .d_stride = m * n};
  };
  const auto first_head = [&](const Chunk& chunk) {
    return chunk.sample * a.key_heads + chunk.head;
  };
  const auto scores = [&](const Chunk& chunk) {
    const int64_t head = first_head(chunk);
    return ProductStep{
        product(chunk, a.rows(), a.keys, a.e, false, true, DataType::kFloat32, false),
        Behind(q, head * a.rows() * a.e, a.dtype), Behind(k, head * a.keys * a.e, a.dtype),
        products};
  };
  constexpr int64_t kOfRow = 2;
  if (!call.gradient) {
    for (const Chunk& chunk : chunks) {
      const int64_t head = first_head(chunk);
      GpuPlace saved;
      if (call.saved.has_value()) {
        saved = Behind({GpuPlace::kWrite, 1}, head * a.rows() * kOfRow, DataType::kFloat32);
      }
      steps.steps.push_back(scores(chunk));
      steps.steps.push_back(Probabilities(call, a, chunk, products, p, saved));
      steps.steps.push_back(
          ProductStep{product(chunk, a.rows(), a.f, a.keys, false, false, a.dtype, false), p,
                      Behind(v, head * a.keys * a.f, a.dtype),
                      Behind({GpuPlace::kWrite, 0}, head * a.rows() * a.f, a.dtype)});
    }
    return steps;
  }
  const GpuPlace dy = {GpuPlace::kRead, operands + 1};
  const bool of_sinks = call.op.kind() == OpKind::kSinkAttention && call.wanted[3];
  if (call.wanted[0] || call.wanted[1] || call.wanted[2] || of_sinks) {
    const GpuPlace sinks =
        of_sinks ? steps.AddWorkspace(a.batch * a.heads() * a.queries, DataType::kFloat32)
                 : GpuPlace();
    const GpuPlace dp = steps.AddWorkspace(most, DataType::kFloat32),
                   ds = steps.AddWorkspace(most, a.dtype);
    for (const Chunk& chunk : chunks) {
      const int64_t head = first_head(chunk);
      const GpuPlace of_dy = Behind(dy, head * a.rows() * a.f, a.dtype);
      GpuPlace saved;
      if (call.saved.has_value()) {
        saved =
            Behind({GpuPlace::kRead, operands + 2}, head * a.rows() * kOfRow, DataType::kFloat32);
      }
      steps.steps.push_back(scores(chunk));
      steps.steps.push_back(
          ProductStep{product(chunk, a.rows(), a.keys, a.f, false, true, DataType::kFloat32, false),
                      of_dy, Behind(v, head * a.keys * a.f, a.dtype), dp});
      const GpuPlace of_chunk =
          of_sinks ? Behind(sinks, head * a.rows(), DataType::kFloat32) : GpuPlace();
      steps.steps.push_back(ScoreGradients(call, a, chunk, products, dp, saved, p, ds, of_chunk));
      const auto add = [&](int o, const Product& of, GpuPlace left, GpuPlace right,
                           int64_t elements) {
        if (!call.wanted[o]) return;
        steps.steps.push_back(ProductStep{
            of, left, right, Behind({GpuPlace::kWrite, o}, head * elements, call.SumDtype(o))});
      };
      add(0, product(chunk, a.rows(), a.e, a.keys, false, false, call.SumDtype(0), call.Adds(0)),
          ds, Behind(k, head * a.keys * a.e, a.dtype), a.rows() * a.e);
      add(1, product(chunk, a.keys, a.e, a.rows(), true, false, call.SumDtype(1), call.Adds(1)), ds,
          Behind(q, head * a.rows() * a.e, a.dtype), a.keys * a.e);
      add(2, product(chunk, a.keys, a.f, a.rows(), true, false, call.SumDtype(2), call.Adds(2)), p,
          of_dy, a.keys * a.f);
    }
    if (of_sinks) steps.steps.push_back(SumOfSinks(call, a, sinks));
  }
  // A mask is seldom learned.
  if (operands == 4 && call.wanted[3] && !of_sinks)
    steps.steps.push_back(GeneratedGradient(call, 3));
  return steps;
}

}  // namespace isomer
