// Attention and the rotation of its queries and keys.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Below every score: the maximum over the keys that a query sees is not taken by one it does not.
constexpr double kUnseen = -1e30;

// Query heads per key head, so that query head g*u + i uses key head g.
absl::StatusOr<int64_t> QueryHeadsPerKeyHead(const Operator& op, const Extent& heads,
                                             const Extent& key_heads) {
  if (heads == key_heads) return 1;
  if (!heads.known() || !key_heads.known()) {
    return absl::UnimplementedError("attention: needs concrete numbers of heads");
  }
  if (heads.value() % key_heads.value() != 0) return Mismatch(op, "h", 0, heads, 1, key_heads);
  return heads.value() / key_heads.value();
}

absl::Status CheckOperands(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape &q = shapes[0], &k = shapes[1], &v = shapes[2];
  for (int o : {0, 1, 2}) ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, o, 4));
  if (q[0] != k[0]) return Mismatch(op, "b", 0, q[0], 1, k[0]);
  if (q[3] != k[3]) return Mismatch(op, "e", 0, q[3], 1, k[3]);
  const char* const shared[] = {"b", "h", "t"};
  for (int i : {0, 1, 2}) {
    if (k[i] != v[i]) return Mismatch(op, shared[i], 1, k[i], 2, v[i]);
  }
  if (op.kind() == OpKind::kSinkAttention) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 3, 1));
    if (shapes[3][0] != q[1]) return Mismatch(op, "h", 0, q[1], 3, shapes[3][0]);
    if (op.Int("window") >= 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(op.name(), ": a window of ", op.Int("window")));
  }
  if (shapes.size() == 4 && shapes[3].size() > 4) return ExpectRank(op, shapes, 3, 4);
  return absl::OkStatus();
}

// The mask, broadcast to [b,h,s,t] as in NumPy.
absl::StatusOr<Expr> LoadMask(const Operator& op, absl::Span<const Shape> shapes,
                              const std::vector<Index>& dims, DeclarationBuilder* d) {
  const Shape scores = {shapes[0][0], shapes[0][1], shapes[0][2], shapes[1][2]}, &mask = shapes[3];
  const char* const names[] = {"b", "h", "s", "t"};
  std::vector<Index> index;
  for (size_t i = scores.size() - mask.size(); i < scores.size(); ++i) {
    const Extent& size = mask[i - (scores.size() - mask.size())];
    if (size != scores[i] && size != Extent(1)) {
      return Mismatch(op, names[i], i == 3 ? 1 : 0, scores[i], 3, size);
    }
    index.push_back(size == scores[i] ? dims[i] : Index());
  }
  return d->In(3, index);
}

// The last key that the first of `queries` sees if they are causal: queries and keys end together.
absl::StatusOr<double> FirstSees(const Operator& op, const Extent& queries, const Extent& keys,
                                 bool causal) {
  if (!causal || queries == keys) return 0;
  if (!queries.known() || !keys.known()) {
    return absl::UnimplementedError(
        absl::StrCat(op.name(), ": causal needs concrete sizes of s and t"));
  }
  if (keys.value() < queries.value()) {
    return absl::InvalidArgumentError(absl::StrCat(op.name(), ": causal, but ", queries.value(),
                                                   " queries to ", keys.value(),
                                                   " keys: the first see none"));
  }
  return static_cast<double>(keys.value() - queries.value());
}

// The dims that positions in a sequence are made of, and as an index, and as a place in order.
struct Positions {
  std::vector<int> dims;
  Index index;
  Expr place;
};

// Of one stripe, or of more in the order of the head comment: stripes are split, and are parallel
// where positions are.
Positions AddPositions(DeclarationBuilder* d, const char* name, const char* of_stripes,
                       DimKind kind, const Extent& size, int64_t stripes) {
  if (stripes <= 1) {
    const int s = d->Dim(name, kind, size);
    return {{s}, s, Coordinate(s)};
  }
  const int64_t each = size.value() / stripes;
  const int p = d->Dim(of_stripes, kind, stripes), s = d->Whole(name, each);
  return {{p, s},
          Index(p) * each + Index(s),
          Coordinate(s) * static_cast<double>(stripes) + Coordinate(p)};
}

// `stripes` of queries and keys: as many, of known and equal sizes.
absl::Status CheckStripes(const Operator& op, const Shape& q, const Shape& k, int64_t stripes) {
  if (stripes < 0) {
    return absl::InvalidArgumentError(absl::StrCat(op.name(), ": causal=", stripes));
  }
  if (stripes <= 1) return absl::OkStatus();
  if (!q[2].known() || !k[2].known()) {
    return absl::UnimplementedError(
        absl::StrCat(op.name(), ": stripes need concrete sizes of s and t"));
  }
  if (q[2] != k[2]) return Mismatch(op, "s (in stripes)", 0, q[2], 1, k[2]);
  if (q[2].value() % stripes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      op.name(), ": ", stripes, " stripes do not divide a sequence of ", q[2].value()));
}

}  // namespace

// Z[b,g,u,s,t] = scale * sum_e Q[b,(g,u),s,e] * K[b,g,t,e] + mask[b,(g,u),s,t]
//                or, capped, cap * tanh(scale * sum_e ..) + mask
// M[b,g,u,s]   = max_t Z;  P[b,g,u,s,t] = exp(Z - M);  S[b,g,u,s] = sum_t P
// Y[b,(g,u),s,f] = sum_t P * V[b,g,t,f] / S
//
// The query heads of a key head g are u. If causal, query s sees the keys t <= s + T - S: only
// these take part in M, and P of the others is 0. Queries are independent, so s is parallel.
//
// causal=C for C > 1 is causal, of queries, keys and values in the order of C stripes (Brandon et
// al., "Striped Attention", 2023): what is i-th of stripe p, at p*S/C + i, has place i*C + p in the
// sequence. Then p is parallel, and each device of a split sequence has as much to do as any other.
//
// A sink L[(g,u)] of each query head takes a share of the softmax and has no value (OpenAI, gpt-oss
// model card, 2025); with window > 0, query s sees no key t <= s + T - S - window either:
// M[b,g,u,s] = max(max_t Z, L);  S[b,g,u,s] = sum_t P + exp(L - M)
absl::StatusOr<Declaration> DeclareAttention(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(CheckOperands(op, shapes));
  const Shape &q = shapes[0], &k = shapes[1], &v = shapes[2];
  ISOMER_ASSIGN_OR_RETURN(const int64_t queries, QueryHeadsPerKeyHead(op, q[1], k[1]));
  const bool causal = op.Int("causal") != 0, has_sink = op.kind() == OpKind::kSinkAttention;
  const int64_t window = has_sink ? op.Int("window") : 0;
  const int64_t stripes = op.Int("causal");
  ISOMER_RETURN_IF_ERROR(CheckStripes(op, q, k, stripes));
  ISOMER_ASSIGN_OR_RETURN(const double first_sees, FirstSees(op, q[2], k[2], causal || window > 0));
  DeclarationBuilder d(shapes);
  const int b = d.Parallel("b", q[0]), g = d.Parallel("g", k[1]);
  const Positions s = AddPositions(&d, "s", "p", DimKind::kParallel, q[2], stripes);
  const int f = d.Parallel("f", v[3]);
  const Positions t = AddPositions(&d, "t", "r", DimKind::kWhole, k[2], stripes);
  const int e = d.Whole("e", q[3]);
  std::vector<int> query = {b, g};
  Index head = g;
  if (queries > 1) {
    const int u = d.Whole("u", queries);
    head = Index(g) * queries + Index(u);
    query.push_back(u);
  }
  query.insert(query.end(), s.dims.begin(), s.dims.end());
  std::vector<int> point = query;
  point.insert(point.end(), t.dims.begin(), t.dims.end());
  const Expr dot = d.Let("D", point, Reduction::kSum, {e},
                         d.In(0, {b, head, s.index, e}) * d.In(1, {b, g, t.index, e}));
  Expr score = dot * op.Number("scale");
  if (op.kind() == OpKind::kCappedAttention) {
    score = Apply(ScalarOp::kTanh, score) * op.Number("cap");
  }
  if (!has_sink && shapes.size() == 4) {
    ISOMER_ASSIGN_OR_RETURN(const Expr mask, LoadMask(op, shapes, {b, head, s.index, t.index}, &d));
    score = score + mask;
  }
  const Expr place = s.place + first_sees;
  const auto seen = [&](Expr value, double otherwise) {
    if (window > 0) {
      const auto before = static_cast<double>(window - 1);
      value = Where(t.place + before < place, otherwise, value);
    }
    return causal ? Where(place < t.place, otherwise, value) : value;
  };
  Expr max = d.Let(has_sink ? "K" : "M", query, Reduction::kMax, t.dims, seen(score, kUnseen));
  if (has_sink) max = d.Let("M", query, Reduction::kNone, {}, Max(max, d.In(3, {head})));
  const Expr power =
      d.Let("P", point, Reduction::kNone, {}, seen(Apply(ScalarOp::kExp, score - max), 0));
  Expr sum = d.Let(has_sink ? "T" : "S", query, Reduction::kSum, t.dims, power);
  if (has_sink) {
    const Expr of_sink = Apply(ScalarOp::kExp, d.In(3, {head}) - max);
    sum = d.Let("S", query, Reduction::kNone, {}, sum + of_sink);
  }
  d.PromisePositive();  // P of the largest score is 1, or the sink's part is.
  d.OutputSum({b, head, s.index, f}, t.dims, power * d.In(2, {b, g, t.index, f}) / sum);
  return d.Build();
}

constexpr OperatorTraits kAttentionTraits = {
    .op_class = OperatorClass::kAttention,
    .saved_per_row = 2,  // maximum and sum of a row of scores
    .examples = {
        {"Attention", "attention(scale=0.5) f32[2,2,4,4] f32[2,2,6,4] f32[2,2,6,2]"},
        {"AttentionCausal", "attention(scale=0.5,causal=1) f32[2,2,4,4] f32[2,2,4,4] f32[2,2,4,2]"},
        {"AttentionCausalWithPast",
         "attention(scale=0.5,causal=1) f32[2,2,2,4] f32[2,2,4,4] f32[2,2,4,2]"},
        {"AttentionStriped",
         "attention(scale=0.5,causal=2) f32[2,2,6,4] f32[2,2,6,4] f32[2,2,6,2]"},
        {"AttentionGroupedHeads", "attention(scale=0.5) f32[2,4,2,4] f32[2,2,4,4] f32[2,2,4,2]"},
        {"AttentionMask",
         "attention(scale=0.5) f32[2,4,2,2] f32[2,2,4,2] f32[2,2,4,2] f32[2,4,2,4]"},
        {"AttentionMaskBroadcast",
         "attention(scale=0.5,causal=1) f32[2,2,4,2] f32[2,2,4,2] f32[2,2,4,2] f32[2,1,1,4]"},
        {"AttentionMaskOfScores",
         "attention(scale=0.5) f32[2,2,4,2] f32[2,2,6,2] f32[2,2,6,2] f32[4,6]"}}};
constexpr OperatorTraits kCappedAttentionTraits = {
    .op_class = OperatorClass::kAttention,
    .saved_per_row = 2,  // as Attention
    .examples = {
        {"CappedAttention",
         "capped_attention(scale=0.5,cap=1.5) f32[2,2,4,4] f32[2,2,6,4] f32[2,2,6,2]"},
        {"CappedAttentionCausal",
         "capped_attention(scale=0.5,cap=2,causal=1) f32[2,2,4,4] f32[2,2,4,4] f32[2,2,4,2]"},
        {"CappedAttentionStriped",
         "capped_attention(scale=0.5,cap=2,causal=2) f32[2,4,4,4] f32[2,2,4,4] f32[2,2,4,2]"},
        {"CappedAttentionGroupedHeads",
         "capped_attention(scale=0.5,cap=2,causal=1) f32[2,4,2,4] f32[2,2,4,4] f32[2,2,4,2]"},
        {"CappedAttentionMask",
         "capped_attention(scale=0.5,cap=1.5) f32[2,4,2,2] f32[2,2,4,2] f32[2,2,4,2] f32[2,4,2,4]"},
        {"CappedAttentionMaskBroadcast",
         "capped_attention(scale=0.5,cap=2,causal=1) f32[2,2,4,2] f32[2,2,4,2] f32[2,2,4,2] "
         "f32[2,1,1,4]"},
        {"CappedAttentionMaskOfScores",
         "capped_attention(scale=0.5,cap=1.5) f32[2,2,4,2] f32[2,2,6,2] f32[2,2,6,2] f32[4,6]"}}};

constexpr OperatorTraits kSinkAttentionTraits = {
    .op_class = OperatorClass::kAttention,
    .examples = {
        {"SinkAttention",
         "sink_attention(scale=0.5) f32[2,2,4,4] f32[2,2,6,4] "
         "f32[2,2,6,2] f32[2]"},
        {"SinkAttentionCausal",
         "sink_attention(scale=0.5,causal=1) f32[2,4,4,2] f32[2,2,4,2] f32[2,2,4,2] f32[4]"},
        {"SinkAttentionStriped",
         "sink_attention(scale=0.5,causal=2,window=2) f32[2,4,6,2] f32[2,2,6,2] f32[2,2,6,2] "
         "f32[4]"},
        {"SinkAttentionWindow",
         "sink_attention(scale=0.5,causal=1,window=2) f32[2,2,4,2] f32[2,2,4,2] f32[2,2,4,2] "
         "f32[2]"}}};

// With X = (X0, X1), the halves of the last dim, or its even and odd elements if interleaved:
// Y_p[..,s,i] = X_p[..,s,i] * cos[s,i] + (2p - 1) * X_{1-p}[..,s,i] * sin[s,i]
absl::StatusOr<Declaration> DeclareRotary(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 2) return ExpectRank(op, shapes, 0, 2);
  const Extent &length = x[x.size() - 2], &features = x.back();
  for (int o : {1, 2}) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, o, 2));
    if (shapes[o][0] != length) return Mismatch(op, "s", 0, length, o, shapes[o][0]);
    if (shapes[o][1] * 2 != features) {
      return Mismatch(op, "e (twice that of cos and sin)", 0, features, o, shapes[o][1] * 2);
    }
  }
  if (!features.known()) return absl::UnimplementedError("rotary: needs a concrete size of e");
  DeclarationBuilder d(shapes);
  const std::vector<int> rest =
      d.Dims("i", DimKind::kParallel, absl::MakeConstSpan(x).first(x.size() - 1));
  const int p = d.Whole("p", 2), i = d.Whole("e", shapes[1][1]), s = rest.back();
  const bool interleaved = op.Int("interleaved") != 0;
  const int64_t p_stride = interleaved ? 1 : features.value() / 2, i_stride = interleaved ? 2 : 1;
  std::vector<Index> own(rest.begin(), rest.end()), other = own;
  own.push_back(Index(p) * p_stride + Index(i) * i_stride);
  other.push_back(Shifted(Index(p) * -p_stride + Index(i) * i_stride, Extent(p_stride)));
  const Expr sign = Coordinate(p) * 2.0 - 1.0;
  d.Output(own, d.In(0, own) * d.In(1, {s, i}) + sign * d.In(0, other) * d.In(2, {s, i}));
  return d.Build();
}

constexpr OperatorTraits kRotaryTraits = {
    .examples = {{"Rotary", "rotary f32[2,2,4,6] f32[4,3] f32[4,3]"},
                 {"RotaryInterleaved", "rotary(interleaved=1) f32[2,2,4,6] f32[4,3] f32[4,3]"}}};

}  // namespace isomer
