#include "generator/enumeration/wide_configurations.h"

#include "generator/enumeration/configured_operators.h"
#include "pcg/ir/parallel_operator.h"

namespace isomer {
namespace {

using namespace configured;  // NOLINT: it is made for this

// The exchange of two axes that a perm of few axes says; FitToRank keeps them from the end.
Operator Transpose(std::vector<int64_t> perm) {
  return Operator(OpKind::kTranspose, {{"perm", std::move(perm)}});
}
Operator Reduction(OpKind kind, int64_t axis, int64_t keepdims = 1) {
  return Operator(kind, {{"axes", std::vector<int64_t>{axis}}, {"keepdims", keepdims}});
}

// Fields and ordered sets.
void AddElementwise(std::vector<Configuration>* result) {
  const TensorType s = Type("f32[4,4]");
  result->push_back({"quotients",
                     {s, s, s},
                     {Of(OpKind::kMul), Of(OpKind::kDiv), Of(OpKind::kReciprocal)},
                     kMostWrittenOperators,
                     {OpKind::kDiv, OpKind::kReciprocal}});
  result->push_back({"quotients of sums",
                     {s, s, s},
                     {Of(OpKind::kAdd), Of(OpKind::kSub), Of(OpKind::kDiv)},
                     kMostWrittenOperators,
                     {OpKind::kDiv}});
  result->push_back(
      {"scaled quotients",
       {s, s},
       {Scale(2), Scale(3), Of(OpKind::kMul), Of(OpKind::kDiv), Of(OpKind::kReciprocal)},
       2,
       {OpKind::kDiv, OpKind::kReciprocal}});
  result->push_back({"differences",
                     {s, s, s},
                     {Of(OpKind::kAdd), Of(OpKind::kSub), Of(OpKind::kMul)},
                     kMostWrittenOperators,
                     {OpKind::kSub}});
  result->push_back({"negations",
                     {s, s},
                     {Scale(-1), Of(OpKind::kAdd), Of(OpKind::kSub), Of(OpKind::kMul)},
                     kMostWrittenOperators,
                     {OpKind::kScale}});
  result->push_back({"lattice",
                     {s, s, s},
                     {Of(OpKind::kMaximum), Of(OpKind::kMinimum)},
                     kMostWrittenOperators,
                     {OpKind::kMaximum, OpKind::kMinimum}});
  result->push_back(
      {"signs",
       {s, s},
       {Of(OpKind::kMaximum), Of(OpKind::kMinimum), Of(OpKind::kRelu), Of(OpKind::kAbs), Scale(-1)},
       kMostWrittenOperators,
       {OpKind::kMaximum, OpKind::kMinimum, OpKind::kAbs}});
  result->push_back({"gates",
                     {s, s},
                     {Of(OpKind::kMul), Of(OpKind::kSigmoid), Of(OpKind::kSwish), Of(OpKind::kTanh),
                      Scale(2), Scale(0.5)},
                     kMostWrittenOperators,
                     {OpKind::kSigmoid, OpKind::kSwish}});
}

// Sums and maxima over dims: of each other, of products, of parts.
void AddReductions(std::vector<Configuration>* result) {
  const TensorType s = Type("f32[4,4]"), column = Type("f32[4,1]");
  const std::vector<Operator> sums = {Reduction(OpKind::kReduceSum, -1),
                                      Reduction(OpKind::kReduceSum, -2)};
  result->push_back({"sums of products",
                     {s, s, column},
                     {sums[0], sums[1], Of(OpKind::kMatMul), Of(OpKind::kMul), Of(OpKind::kAdd),
                      Scale(3), TransposeLast()},
                     kMostWrittenOperators,
                     {OpKind::kReduceSum}});
  result->push_back({"sums of parts",
                     {s, s},
                     {sums[0], sums[1], Concat(-1), Concat(-2), Of(OpKind::kAdd), Of(OpKind::kSub),
                      TransposeLast()},
                     kMostWrittenOperators,
                     {OpKind::kReduceSum}});
  result->push_back({"sums of quotients",
                     {s, column},
                     {sums[0], Of(OpKind::kDiv), Of(OpKind::kMul), Of(OpKind::kSub), Scale(3)},
                     2,
                     {OpKind::kReduceSum}});
  // Without the reduced dim, so that a maximum is not compared with what it is the maximum of.
  result->push_back(
      {"maxima of parts",
       {s, s},
       {Reduction(OpKind::kReduceMax, -1, 0), Of(OpKind::kMaximum), Concat(-1), Concat(-2)},
       kMostWrittenOperators,
       {OpKind::kReduceMax}});
  result->push_back(
      {"minima of parts",
       {s, s},
       {Reduction(OpKind::kReduceMin, -1, 0), Of(OpKind::kMinimum), Concat(-1), Concat(-2)},
       kMostWrittenOperators,
       {OpKind::kReduceMin}});
  result->push_back({"maxima and minima",
                     {s},
                     {Reduction(OpKind::kReduceMax, -1), Reduction(OpKind::kReduceMax, -2),
                      Reduction(OpKind::kReduceMin, -1), Reduction(OpKind::kReduceMin, -2),
                      Of(OpKind::kRelu), TransposeLast(), Scale(-1)},
                     kMostWrittenOperators,
                     {OpKind::kReduceMax, OpKind::kReduceMin}});
}

// Look-ups commute with what leaves their rows together. Indices are matrices, so that what is
// looked up is no table again: of the indices into that nothing is known.
void AddLookUps(std::vector<Configuration>* result) {
  const TensorType table = Type("f32[4,4]"), indices = Type("i32[3,3]");
  const Operator gather(OpKind::kGather, {{"axis", int64_t{-2}}});
  const Operator bag(OpKind::kEmbeddingBag, {{"mean", int64_t{0}}});
  result->push_back({"rows",
                     {table, indices},
                     {Of(OpKind::kEmbedding), gather},
                     1,
                     {OpKind::kEmbedding, OpKind::kGather}});
  for (const Operator& look_up : {Of(OpKind::kEmbedding), gather, bag}) {
    const std::string name(look_up.name());
    result->push_back({"rows of tables, " + name,
                       {table, table, indices},
                       {look_up, Of(OpKind::kMatMul), Of(OpKind::kAdd), Of(OpKind::kSub),
                        Of(OpKind::kMul), Scale(3), Concat(-1)},
                       look_up.kind() == OpKind::kGather ? 2 : kMostWrittenOperators,
                       {look_up.kind()}});
  }
  // Concats of indices along axes that no table has, or along which it holds columns.
  const TensorType cube = Type("i32[2,2,2]");
  for (const Operator& look_up : {Of(OpKind::kEmbedding), gather}) {
    result->push_back({"rows of indices, " + std::string(look_up.name()),
                       {table, cube, cube},
                       {look_up, Concat(-3)},
                       kMostWrittenOperators,
                       {look_up.kind()}});
  }
  result->push_back({"rows of indices, bags",
                     {table, indices, indices},
                     {bag, Of(OpKind::kAdd), Concat(-1)},
                     kMostWrittenOperators,
                     {OpKind::kEmbeddingBag}});
  result->push_back({"bags",
                     {table, indices},
                     {Of(OpKind::kEmbedding), bag, Reduction(OpKind::kReduceSum, -2, 0),
                      Reduction(OpKind::kReduceSum, -3, 0), TransposeLast(), Scale(3)},
                     kMostWrittenOperators,
                     {OpKind::kEmbeddingBag}});
}

// Two tensors held as the two partials of one, through what is linear.
void AddPartials(std::vector<Configuration>* result) {
  const TensorType s = Type("f32[4,4]");
  const Operator partials = Of(OpKind::kConcatPartials);
  result->push_back({"partials of sums",
                     {s, s, s, s},
                     {partials, Of(OpKind::kAdd), Of(OpKind::kSub), Concat(-1)},
                     kMostWrittenOperators,
                     {OpKind::kConcatPartials}});
  result->push_back({"partials of parts",
                     {s, s},
                     {partials, Scale(3), TransposeLast(), Reduction(OpKind::kReduceSum, -1),
                      Reduction(OpKind::kReduceSum, -2)},
                     kMostWrittenOperators,
                     {OpKind::kConcatPartials}});
  result->push_back(
      {"partials of products",
       {s, s, s},
       {partials, Of(OpKind::kMatMul), Of(OpKind::kMul), Of(OpKind::kDiv), Replicate(2)},
       kMostWrittenOperators,
       {OpKind::kConcatPartials}});
}

// The scale of attention may be that of its queries or keys.
void AddAttention(std::vector<Configuration>* result) {
  const TensorType heads = Type("f32[2,2,4,4]");
  auto attention = [](double scale) {
    return Operator(OpKind::kAttention, {{"causal", int64_t{0}}, {"scale", scale}});
  };
  result->push_back({"scales of attention",
                     {heads, heads, heads},
                     {attention(2), attention(6), Scale(3)},
                     2,
                     {OpKind::kAttention},
                     {},
                     /*most_operands=*/4});
}

// The group of exchanges of three axes.
void AddExchanges(std::vector<Configuration>* result) {
  result->push_back({"exchanges",
                     {Type("f32[4,4,4]")},
                     {TransposeLast(), Transpose({1, 0, 2}), Transpose({2, 1, 0})},
                     kMostWrittenOperators,
                     {OpKind::kTranspose}});
}

}  // namespace

std::vector<Configuration> WideConfigurations() {
  std::vector<Configuration> result;
  AddElementwise(&result);
  AddReductions(&result);
  AddLookUps(&result);
  AddPartials(&result);
  AddAttention(&result);
  AddExchanges(&result);
  return result;
}

}  // namespace isomer
