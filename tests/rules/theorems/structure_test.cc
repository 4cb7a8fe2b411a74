// Equations between calls of attributes that no example has: those that the structure of the
// declarations shows, and those that look alike and are false.
#include "rules/theorems/structure.h"

#include <gtest/gtest.h>

#include <utility>

namespace isomer {
namespace {

using Refs = std::vector<PatternRef>;

PatternRef X(int i) { return PatternRef::Input(i); }
PatternRef OutputOf(PatternRef call, int output) { return PatternRef::Node(call.node, output); }

// A side on inputs of these shapes.
class Side {
 public:
  explicit Side(std::vector<Shape> inputs) : inputs_(std::move(inputs)) {}

  PatternRef Call(const std::string& text, const Refs& operands) {
    const absl::StatusOr<Operator> op = ParseOperator(text);
    EXPECT_TRUE(op.ok()) << op.status();
    ConcreteCall call{*op, operands, {}};
    for (PatternRef ref : operands) {
      call.operands.push_back(ref.node < 0 ? inputs_[ref.index] : made_[ref.node][ref.index]);
    }
    const absl::StatusOr<Declaration> d = Declare(*op, call.operands);
    EXPECT_TRUE(d.ok()) << d.status();
    made_.push_back(d.ok() ? d->outputs : std::vector<Shape>());
    side_.calls.push_back(std::move(call));
    return PatternRef::Node(static_cast<int>(side_.calls.size()) - 1);
  }
  ConcreteSide Makes(Refs outputs) {
    side_.outputs = std::move(outputs);
    return side_;
  }

 private:
  const std::vector<Shape> inputs_;
  std::vector<std::vector<Shape>> made_;
  ConcreteSide side_;
};

// The lemmas, joined; or "" if no theorem shows it, in either direction.
std::string LemmasOf(const ConcreteSide& source, const ConcreteSide& target) {
  std::set<std::string> lemmas, back;
  const absl::Status there = EqualByStructure(source, target, &lemmas);
  EXPECT_EQ(there.ok(), EqualByStructure(target, source, &back).ok());
  EXPECT_EQ(lemmas, back);
  std::string text;
  for (const std::string& lemma : lemmas) text += lemma + " ";
  return there.ok() ? text : "";
}

// op(concat(x0, x1; a), x2) and concat(op(x0, x2), op(x1, x2); b).
std::string LemmasOfConcat(const std::string& op, const Shape& x, const Shape& y, const Refs& rest,
                           const std::vector<Shape>& rest_shapes, int a, int b) {
  std::vector<Shape> inputs = {x, y};
  inputs.insert(inputs.end(), rest_shapes.begin(), rest_shapes.end());
  auto with = [&](PatternRef first) {
    Refs operands = {first};
    operands.insert(operands.end(), rest.begin(), rest.end());
    return operands;
  };
  Side whole(inputs), pieces(inputs);
  const std::string axis = "concat(axis=" + std::to_string(a) + ")";
  const PatternRef joined = whole.Call(op, with(whole.Call(axis, {X(0), X(1)})));
  const PatternRef first = pieces.Call(op, with(X(0))), second = pieces.Call(op, with(X(1)));
  const std::string out = "concat(axis=" + std::to_string(b) + ")";
  return LemmasOf(whole.Makes({joined}), pieces.Makes({pieces.Call(out, {first, second})}));
}

constexpr char kConv[] = "conv2d(stride=[3,2],padding=[2,1,0,3],dilation=[2,1],groups=3)";

TEST(Structure, PiecesOfSamplesAreAlikeAtAnyAttributes) {
  const Shape kernel = {6, 5, 3, 2};
  EXPECT_EQ(LemmasOfConcat(kConv, {7, 15, 11, 13}, {2, 15, 11, 13}, {X(2)}, {kernel}, 0, 0),
            "pieces_of_conv2d ");
  // A piece of one sample, too.
  EXPECT_EQ(LemmasOfConcat(kConv, {7, 15, 11, 13}, {1, 15, 11, 13}, {X(2)}, {kernel}, 0, 0),
            "pieces_of_conv2d ");
}

TEST(Structure, PiecesOfAnImageAreNotAlike) {
  EXPECT_EQ(LemmasOfConcat("conv2d(stride=[1,1],padding=[1,1,1,1],dilation=[1,1])", {2, 3, 8, 8},
                           {2, 3, 8, 8}, {X(2)}, {{4, 3, 3, 3}}, 2, 2),
            "");
}

TEST(Structure, PiecesOfWhatIsScannedOrNormalisedAreNotAlike) {
  EXPECT_EQ(LemmasOfConcat("cumsum(axis=1)", {4, 3}, {4, 5}, {}, {}, 1, 1), "");
  EXPECT_EQ(LemmasOfConcat("softmax(axis=1)", {4, 3}, {4, 5}, {}, {}, 1, 1), "");
  EXPECT_EQ(LemmasOfConcat("softmax(axis=1)", {4, 3}, {5, 3}, {}, {}, 0, 0), "pieces_of_softmax ");
}

TEST(Structure, MasksOfPiecesAreOthers) {
  EXPECT_EQ(LemmasOfConcat("dropout(rate=0.5)", {4, 3}, {4, 3}, {X(2)}, {{}}, 0, 0), "");
}

TEST(Structure, ASumOfPiecesIsTheWhole) {
  const std::vector<Shape> inputs = {{2, 6, 5, 5}, {2, 4, 5, 5}, {3, 6, 2, 2}, {3, 4, 2, 2}};
  const std::string conv = "conv2d(stride=[3,3],padding=[0,0,0,0],dilation=[1,1])";
  Side whole(inputs), pieces(inputs);
  const PatternRef x = whole.Call("concat(axis=1)", {X(0), X(1)}),
                   w = whole.Call("concat(axis=1)", {X(2), X(3)});
  const PatternRef joined = whole.Call(conv, {x, w});
  const PatternRef first = pieces.Call(conv, {X(0), X(2)}),
                   second = pieces.Call(conv, {X(1), X(3)});
  const PatternRef sum = pieces.Call("add", {first, second});
  EXPECT_EQ(LemmasOf(whole.Makes({joined}), pieces.Makes({sum})), "pieces_of_conv2d ");

  Side wrong(inputs);  // sums are no concatenation
  const PatternRef a = wrong.Call(conv, {X(0), X(2)}), b = wrong.Call(conv, {X(1), X(3)});
  EXPECT_EQ(LemmasOf(whole.Makes({joined}), wrong.Makes({wrong.Call("concat(axis=1)", {a, b})})),
            "");
}

TEST(Structure, PartsInAnotherOrderAreNotEqual) {
  const std::vector<Shape> inputs = {{8, 6}};
  Side whole(inputs), pieces(inputs);
  const std::string split = "split(axis=0,sizes=[4,4])", softmax = "softmax(axis=1)";
  const PatternRef parts = whole.Call(split, {whole.Call(softmax, {X(0)})});
  const PatternRef cut = pieces.Call(split, {X(0)});
  const PatternRef first = pieces.Call(softmax, {OutputOf(cut, 0)}),
                   second = pieces.Call(softmax, {OutputOf(cut, 1)});
  const Refs outputs = {OutputOf(parts, 0), OutputOf(parts, 1)};
  EXPECT_EQ(LemmasOf(whole.Makes(outputs), pieces.Makes({first, second})), "pieces_of_softmax ");
  EXPECT_EQ(LemmasOf(whole.Makes(outputs), pieces.Makes({second, first})), "");
}

// op(f(x0)) and f(op(x0)).
std::string LemmasOfCommuting(const std::string& op, const std::string& f, const Shape& x) {
  Side inside({x}), outside({x});
  const PatternRef a = inside.Call(op, {inside.Call(f, {X(0)})});
  const PatternRef b = outside.Call(f, {outside.Call(op, {X(0)})});
  return LemmasOf(inside.Makes({a}), outside.Makes({b}));
}

TEST(Structure, ElementwiseFunctionsPassWhatMovesElements) {
  const Shape x = {3, 4, 5};
  EXPECT_EQ(LemmasOfCommuting("transpose(perm=[2,0,1])", "gelu", x), "transpose_moves_elements ");
  EXPECT_EQ(LemmasOfCommuting("slice(starts=[1,0,3],steps=[1,1,-2],sizes=[2,4,2])", "exp", x),
            "slice_moves_elements ");
  EXPECT_EQ(LemmasOfCommuting("cumsum(axis=1)", "exp", x), "");
  EXPECT_EQ(LemmasOfCommuting("cumsum(axis=1)", "scale(factor=3.0)", x), "cumsum_is_linear_in_0 ");
}

TEST(Structure, PaddingPassesFunctionsThatKeepWhatIsPadded) {
  EXPECT_EQ(LemmasOfCommuting("pad(padding=[0,1,0,2])", "gelu", {4, 6}), "pad_moves_elements ");
  EXPECT_EQ(LemmasOfCommuting("pad(padding=[0,1,0,2])", "exp", {4, 6}), "");
  EXPECT_EQ(LemmasOfCommuting("pad(padding=[0,1,0,2],value=-1.0)", "abs", {4, 6}), "");
  EXPECT_EQ(LemmasOfCommuting("pad(padding=[0,1,0,2],value=2.0)", "abs", {4, 6}), "");
}

TEST(Structure, TheLargestPassesWhatDoesNotDecrease) {
  const std::string pool = "max_pool(kernel=[3,2],stride=[2,1],padding=[0,0,0,0])";
  EXPECT_EQ(LemmasOfCommuting(pool, "relu", {1, 2, 7, 6}), "max_pool_moves_elements ");
  EXPECT_EQ(LemmasOfCommuting(pool, "abs", {1, 2, 7, 6}), "");
  EXPECT_EQ(LemmasOfCommuting(pool, "scale(factor=-1.0)", {1, 2, 7, 6}), "");
  EXPECT_EQ(LemmasOfCommuting("reduce_min(axes=[0])", "relu", {3, 4}),
            "reduce_min_moves_elements ");
}

TEST(Structure, SumsPassWhatIsLinear) {
  const std::vector<Shape> inputs = {{2, 15, 11, 13}, {2, 15, 11, 13}, {6, 5, 3, 2}};
  for (const auto& [f, lemma] :
       {std::pair("add", "conv2d_is_linear_in_0 "), std::pair("sub", "conv2d_is_linear_in_0 "),
        std::pair("mul", ""), std::pair("maximum", "")}) {
    Side inside(inputs), outside(inputs);
    const PatternRef a = inside.Call(kConv, {inside.Call(f, {X(0), X(1)}), X(2)});
    const PatternRef b = outside.Call(kConv, {X(0), X(2)}), c = outside.Call(kConv, {X(1), X(2)});
    EXPECT_EQ(LemmasOf(inside.Makes({a}), outside.Makes({outside.Call(f, {b, c})})), lemma) << f;
  }
}

TEST(Structure, KernelsGrowByZerosIfThePaddingGrows) {
  auto lemmas = [](int64_t padding, int margin) {
    const std::vector<Shape> inputs = {{2, 3, 8, 8}, {4, 3, 3, 3}};
    Side small(inputs), large(inputs);
    const PatternRef a =
        small.Call("conv2d(stride=[2,1],padding=[1,1,1,1],dilation=[1,1])", {X(0), X(1)});
    const std::string m = std::to_string(margin), p = std::to_string(padding);
    const PatternRef w = large.Call("pad(padding=[0,0,1,1,0,0," + m + "," + m + "])", {X(1)});
    const PatternRef b = large.Call(
        "conv2d(stride=[2,1],padding=[2,2," + p + "," + p + "],dilation=[1,1])", {X(0), w});
    return LemmasOf(small.Makes({a}), large.Makes({b}));
  };
  EXPECT_EQ(lemmas(2, 1), "conv2d_skips_zeros ");
  EXPECT_EQ(lemmas(3, 1), "");
  EXPECT_EQ(lemmas(1, 0), "");
}

TEST(Structure, ScalesAreOnesOfAttention) {
  const std::vector<Shape> inputs = {{2, 4, 5, 3}, {2, 2, 6, 3}, {2, 2, 6, 3}};
  auto lemmas = [&](const std::string& together, int operand) {
    Side inside(inputs), outside(inputs);
    Refs operands = {X(0), X(1), X(2)};
    operands[operand] = inside.Call("scale(factor=0.5)", {X(operand)});
    const PatternRef a = inside.Call("attention(scale=0.25)", operands);
    const PatternRef b = outside.Call("attention(scale=" + together + ")", {X(0), X(1), X(2)});
    return LemmasOf(inside.Makes({a}), outside.Makes({b}));
  };
  EXPECT_EQ(lemmas("0.125", 0), "attention_takes_factor_of_0 ");
  EXPECT_EQ(lemmas("0.125", 1), "attention_takes_factor_of_1 ");
  EXPECT_EQ(lemmas("0.125", 2), "");  // values are not scaled so
  EXPECT_EQ(lemmas("0.25", 0), "");
}

}  // namespace
}  // namespace isomer
