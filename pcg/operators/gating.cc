// Which experts a token goes to.
#include "absl/strings/str_cat.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Below every gate.
constexpr double kTaken = -1e30;

// The intermediates of Top2Gating, by the order of their statements after two operands.
enum Top2Tensor { kG1 = 2, kEarlier1, kE1, kG2, kEarlier2, kE2 };

absl::Status CheckGates(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 0, 3));
  ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 0));
  ISOMER_RETURN_IF_ERROR(ExpectConcreteSizes(op, shapes));
  if (shapes[0][2].value() < 2) {
    return absl::InvalidArgumentError("top2_gating: dim e of operand 0 has fewer than 2 experts");
  }
  if (op.Int("capacity") >= 1 && op.Int("capacity") <= (int64_t{1} << 30)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("top2_gating: a capacity of ", op.Int("capacity")));
}

}  // namespace

// GShard's algorithm 1. X[g,s,e] are the gates, operand 1 the seed:
// G1[g,s] = max_e X;  E1[g,s] = the first e with X == G1
// G2[g,s] = max_{e != E1} X;  E2[g,s] = the first e != E1 with X == G2
// Positions count all earlier choices of an expert, whether they had room or not:
// P1[g,s] = sum_t [t < s] [E1[g,t] == E1[g,s]]
// P2[g,s] = sum_t [E1[g,t] == E2[g,s]] + [t < s] [E2[g,t] == E2[g,s]]
// keep[g,s] = [random(seed + salt, g*S + s) < 2 * G2 / (G1 + G2)], or 1 if not random
// Y[g,s,e,c] = ([e == E1] [c == P1] * G1 + [e == E2] [c == P2] * keep * G2) / (G1 + G2)
// The auxiliary loss is the mean over e of first choices * mean gate, times the number of experts:
// aux[g] = sum_e (sum_s [E1 == e] / S) * (sum_s X / S)
absl::StatusOr<Declaration> DeclareTop2Gating(const Operator& op, absl::Span<const Shape> shapes) {
  ISOMER_RETURN_IF_ERROR(CheckGates(op, shapes));
  const Shape& x = shapes[0];
  const double tokens = static_cast<double>(x[1].value());
  DeclarationBuilder d(shapes);
  const int g = d.Parallel("g", x[0]), s = d.Whole("s", x[1]), e = d.Whole("e", x[2]);
  const int c = d.Whole("c", op.Int("capacity"));
  const int t = d.Whole("t", x[1]), k = d.Whole("k", x[2]);  // Another token, another expert.
  // The first e at which value(e) is `best`.
  auto first = [&](const std::string& n, const Expr& best, auto value) {
    const Expr earlier = d.Let("earlier" + n, {g, s, e}, Reduction::kSum, {k},
                               (Coordinate(k) < Coordinate(e)) * Equal(value(k), best));
    return d.Let("E" + n, {g, s}, Reduction::kSum, {e},
                 Coordinate(e) * Equal(value(e), best) * Equal(earlier, 0.0));
  };
  auto gate = [&](int expert) { return d.In(0, {g, s, expert}); };
  const Expr g1 = d.Let("G1", {g, s}, Reduction::kMax, {e}, gate(e));
  const Expr e1 = first("1", g1, gate);
  auto rest = [&](int expert) {
    return Where(Equal(Coordinate(expert), e1), kTaken, gate(expert));
  };
  const Expr g2 = d.Let("G2", {g, s}, Reduction::kMax, {e}, rest(e));
  const Expr e2 = first("2", g2, rest);
  const Expr e1_of_t = d.In(kE1, {g, t}), e2_of_t = d.In(kE2, {g, t});
  const Expr before = Coordinate(t) < Coordinate(s);
  const Expr p1 = d.Let("P1", {g, s}, Reduction::kSum, {t}, before * Equal(e1_of_t, e1));
  const Expr p2 =
      d.Let("P2", {g, s}, Reduction::kSum, {t}, Equal(e1_of_t, e2) + before * Equal(e2_of_t, e2));
  Expr second = g2 / (g1 + g2);
  if (op.Int("random") != 0) {
    const Expr random = Apply(ScalarOp::kRandom, d.In(1, {}) + static_cast<double>(op.Int("salt")),
                              Coordinate(g) * tokens + Coordinate(s));
    second = (random < second * 2.0) * second;
  }
  const Expr w1 = d.Let("W1", {g, s}, Reduction::kNone, {}, g1 / (g1 + g2));
  const Expr w2 = d.Let("W2", {g, s}, Reduction::kNone, {}, second);
  const Expr to1 = Equal(Coordinate(e), e1), to2 = Equal(Coordinate(e), e2);
  d.Output({g, s, e, c}, to1 * Equal(Coordinate(c), p1) * w1 + to2 * Equal(Coordinate(c), p2) * w2);
  const Expr chosen = d.Let("chosen", {g, e}, Reduction::kSum, {s}, to1);
  const Expr total = d.Let("total", {g, e}, Reduction::kSum, {s}, gate(e));
  d.OutputSum({g}, {e}, (chosen / tokens) * (total / tokens));
  return d.Build();
}

constexpr OperatorTraits kTop2GatingTraits = {
    .index_operand = 1,  // the seed
    .most_outputs = 2,
    .takes_positive_numbers = true,
    .salt = "salt",
    .is_cheap = false,
    .examples = {{"Top2Gating", "top2_gating(capacity=3) f32[2,6,4] i64[]"},
                 {"Top2GatingGreedy", "top2_gating(capacity=2,random=0) f32[2,6,3] i64[]"}}};

// Each token chooses the k experts with the largest scores, of which those of equal scores are
// taken in order. X[g..,s,e] are positive scores (below, g stands for all dims of groups); B[e],
// operand 1 if there is one, is added to them for the choice alone (DeepSeek-AI, 2024,
// section 2.1.2).
// R[g,s,e] = sum_f [X + B of e < that of f] + [both are equal] [f < e], the rank of e
// An expert has a slot for each of the first `capacity` tokens of the group that choose it:
// P[g,s,e] = sum_t [t < s] [R[g,t,e] < k]
// N[g,s]   = sum_e (R < k ? X : 0)
// The weight of choice r, 0 if there was no slot; its slot, counted over all experts, or 0; and the
// token in each slot, or 0 where there is none:
// Y0[g,s,r] = sum_e ([R == r] [P < capacity] ? X / N : 0)
// Y1[g,s,r] = sum_e ([R == r] [P < capacity] ? e * capacity + P : 0)
// Y2[g,e,c] = sum_s ([R < k] [P == c] ? s : 0)
absl::StatusOr<Declaration> DeclareTopKRouting(const Operator& op, absl::Span<const Shape> shapes) {
  const Shape& x = shapes[0];
  if (x.size() < 3) return ExpectRank(op, shapes, 0, 3);
  ISOMER_RETURN_IF_ERROR(ExpectConcreteSizes(op, shapes));
  const Extent &tokens = x.end()[-2], &experts = x.back();
  const bool has_bias = shapes.size() > 1;
  if (has_bias) {
    ISOMER_RETURN_IF_ERROR(ExpectRank(op, shapes, 1, 1));
    if (shapes[1][0] != experts) return Mismatch(op, "e", 0, experts, 1, shapes[1][0]);
  }
  const int64_t choices = op.Int("k"), capacity = op.Int("capacity");
  if (choices < 1 || choices > experts.value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk_routing: k ", choices, " of ", experts.value(), " experts"));
  }
  if (capacity < 1 || capacity > (int64_t{1} << 30)) {
    return absl::InvalidArgumentError(absl::StrCat("topk_routing: a capacity of ", capacity));
  }
  DeclarationBuilder d(shapes);
  std::vector<int> groups;
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    groups.push_back(d.Parallel(i == 0 ? "g" : absl::StrCat("g", i), x[i]));
  }
  const int s = d.Whole("s", tokens), e = d.Whole("e", experts);
  const int r = d.Whole("r", choices), c = d.Whole("c", capacity);
  const int t = d.Whole("t", tokens), f = d.Whole("f", experts);  // Another token, another expert.
  const auto dims = [&](std::initializer_list<int> more) {
    std::vector<int> all = groups;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto at = [&](std::initializer_list<int> more) {
    const std::vector<int> all = dims(more);
    return std::vector<Index>(all.begin(), all.end());
  };
  const auto score = [&](int expert) {
    const Expr of_token = d.In(0, at({s, expert}));
    return has_bias ? of_token + d.In(1, {expert}) : of_token;
  };
  const Expr rank =
      d.Let("R", dims({s, e}), Reduction::kSum, {f},
            (score(e) < score(f)) + Equal(score(e), score(f)) * (Coordinate(f) < Coordinate(e)));
  const int rank_tensor = static_cast<int>(shapes.size());
  const auto k = static_cast<double>(choices), slots = static_cast<double>(capacity);
  const Expr place = d.Let("P", dims({s, e}), Reduction::kSum, {t},
                           (Coordinate(t) < Coordinate(s)) * (d.In(rank_tensor, at({t, e})) < k));
  const Expr own = d.In(0, at({s, e})), chosen = rank < k;
  const Expr total = d.Let("N", dims({s}), Reduction::kSum, {e}, Where(chosen, own, 0.0));
  const Expr kept = Equal(rank, Coordinate(r)) * (place < slots);
  d.OutputSum(at({s, r}), {e}, Where(kept, own / total, 0.0));
  d.OutputSum(at({s, r}), {e}, Where(kept, Coordinate(e) * slots + place, 0.0));
  d.OutputSum(at({e, c}), {s}, Where(chosen * Equal(place, Coordinate(c)), Coordinate(s), 0.0));
  return d.Build();
}

constexpr OperatorTraits kTopKRoutingTraits = {
    .most_outputs = 3,
    .other_results = ResultType::kInt64,
    .takes_positive_numbers = true,
    .is_cheap = false,
    .examples = {{"TopKRouting", "topk_routing(k=2,capacity=3) f32[2,6,4]"},
                 {"TopKRoutingBias", "topk_routing(k=3,capacity=2) f32[2,4,6] f32[6]"},
                 {"TopKRoutingOfGroups", "topk_routing(k=2,capacity=3) f32[2,2,6,4]"}}};

}  // namespace isomer
