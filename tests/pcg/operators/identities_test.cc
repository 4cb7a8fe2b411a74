// Identities that the declarations claim, over double and over the prime field, in which rules are
// found: there max and < are those of a random order, but for small integers, and element functions
// are random.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "tests/pcg/operators/run_operator.h"
#include "tests/pcg/random_operands.h"

namespace isomer {
namespace {

template <typename T>
class IdentityTest : public testing::Test {
 protected:
  using A = Array<T>;

  std::vector<A> All(const std::string& call, const std::vector<A>& operands) {
    std::vector<std::vector<int64_t>> sizes;
    std::vector<const A*> pointers;
    for (const A& operand : operands) {
      sizes.push_back(operand.shape);
      pointers.push_back(&operand);
    }
    const auto d = DeclareText(call, sizes);
    EXPECT_TRUE(d.ok()) << call << ": " << d.status();
    if (!d.ok()) return {A({1}), A({1})};
    auto outputs = Evaluate<T>(*d, FullBox(*d), pointers);
    EXPECT_TRUE(outputs.ok()) << call << ": " << outputs.status();
    return outputs.ok() ? *std::move(outputs) : std::vector<A>(d->outputs.size());
  }
  A Run(const std::string& call, const std::vector<A>& operands) { return All(call, operands)[0]; }

  A Random(std::vector<int64_t> shape) { return RandomArray<T>(std::move(shape), random_); }
  A Indices(std::vector<int64_t> shape, int64_t range) {
    A indices(std::move(shape));
    for (T& value : indices.data) value = Number<T>::FromDouble(double(random_() % range));
    return indices;
  }
  A Iota(std::vector<int64_t> shape) {
    A iota(std::move(shape));
    for (int64_t i = 0; i < iota.size(); ++i) iota.data[i] = Number<T>::FromDouble(double(i));
    return iota;
  }
  // Some true, some false; some numbers equal.
  A Bools(std::vector<int64_t> shape) { return Indices(std::move(shape), 2); }

  void ExpectEqual(const A& a, const A& b) {
    ASSERT_EQ(a.shape, b.shape);
    for (int64_t e = 0; e < a.size(); ++e) {
      if constexpr (std::is_same_v<T, double>) {
        ASSERT_NEAR(a.data[e], b.data[e], 1e-12) << "element " << e;
      } else {
        ASSERT_EQ(a.data[e], b.data[e]) << "element " << e;
      }
    }
  }

  std::mt19937_64 random_{23};
};

using Numbers = testing::Types<double, PrimeField>;
TYPED_TEST_SUITE(IdentityTest, Numbers);

TYPED_TEST(IdentityTest, MaximumAndMinimumAreOfALattice) {
  const auto a = this->Random({4, 6}), b = this->Random({6}), c = this->Random({4, 1});
  for (const char* op : {"maximum", "minimum"}) {
    this->ExpectEqual(this->Run(op, {a, b}), this->Run(op, {b, a}));
    this->ExpectEqual(this->Run(op, {this->Run(op, {a, b}), c}),
                      this->Run(op, {a, this->Run(op, {b, c})}));
    this->ExpectEqual(this->Run(op, {a, a}), a);
  }
  auto negated = [&](const auto& x) { return this->Run("scale(factor=-1.0)", {x}); };
  this->ExpectEqual(this->Run("minimum", {a, b}),
                    negated(this->Run("maximum", {negated(a), negated(b)})));
}

TYPED_TEST(IdentityTest, ComparisonsAndChoices) {
  const auto a = this->Indices({4, 6}, 3), b = this->Indices({6}, 3), c = this->Bools({4, 1});
  this->ExpectEqual(this->Run("equal", {a, b}), this->Run("equal", {b, a}));
  this->ExpectEqual(this->Run("less_equal", {a, b}), this->Run("not", {this->Run("less", {b, a})}));
  this->ExpectEqual(this->Run("not", {this->Run("not", {c})}), c);
  this->ExpectEqual(this->Run("where", {this->Run("not", {c}), a, b}),
                    this->Run("where", {c, b, a}));
  this->ExpectEqual(this->Run("where", {c, a, a}), this->Run("add", {a, this->Run("sub", {c, c})}));
  this->ExpectEqual(this->Run("where", {this->Run("less", {a, b}), b, a}),
                    this->Run("maximum", {a, b}));
}

TYPED_TEST(IdentityTest, ReductionsOfReductions) {
  const auto x = this->Random({4, 3, 5});
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
    auto reduce = [&](const char* axes, const auto& of) {
      return this->Run(absl::StrCat(op, "(axes=", axes, ")"), {of});
    };
    this->ExpectEqual(reduce("[0,1]", x), reduce("[0]", reduce("[1]", x)));
    this->ExpectEqual(reduce("[-1,0]", x), reduce("[2]", reduce("[0]", x)));
  }
  auto negated = [&](const auto& of) { return this->Run("scale(factor=-1.0)", {of}); };
  this->ExpectEqual(this->Run("reduce_min(axes=[1])", {x}),
                    negated(this->Run("reduce_max(axes=[1])", {negated(x)})));
  const auto y = this->Random({4, 3, 5});
  this->ExpectEqual(this->Run("reduce_prod(axes=[1])", {this->Run("mul", {x, y})}),
                    this->Run("mul", {this->Run("reduce_prod(axes=[1])", {x}),
                                      this->Run("reduce_prod(axes=[1])", {y})}));
  // Of a concatenation: the operator between the parts.
  const auto both = this->Run("concat(axis=1)", {x, y});
  this->ExpectEqual(this->Run("reduce_max(axes=[1])", {both}),
                    this->Run("maximum", {this->Run("reduce_max(axes=[1])", {x}),
                                          this->Run("reduce_max(axes=[1])", {y})}));
}

TYPED_TEST(IdentityTest, TopKIsASortedChoice) {
  const auto x = this->Random({4, 6});
  for (const char* largest : {"0", "1"}) {
    const auto top = this->All(absl::StrCat("topk(k=6,largest=", largest, ")"), {x});
    this->ExpectEqual(top[0], this->Run("gather_elements(axis=1)", {x, top[1]}));
    this->ExpectEqual(this->Run("reduce_sum(axes=[1])", {top[0]}),
                      this->Run("reduce_sum(axes=[1])", {x}));
    // The first k of more.
    this->ExpectEqual(this->Run(absl::StrCat("topk(k=2,largest=", largest, ")"), {x}),
                      this->Run("slice(starts=[0,0],sizes=[4,2],steps=[1,1])", {top[0]}));
  }
  this->ExpectEqual(this->Run("topk(k=1)", {x}), this->Run("reduce_max(axes=[1])", {x}));
}

TYPED_TEST(IdentityTest, ArgMaxIsWhereTheMaximumIs) {
  const auto x = this->Indices({4, 6}, 3);  // With ties.
  for (const char* last : {"0", "1"}) {
    const auto largest = this->Run(absl::StrCat("argmax(axis=1,last=", last, ")"), {x});
    this->ExpectEqual(this->Run("gather_elements(axis=1)", {x, largest}),
                      this->Run("reduce_max(axes=[1])", {x}));
    const auto smallest = this->Run(absl::StrCat("argmin(axis=1,last=", last, ")"), {x});
    this->ExpectEqual(this->Run("gather_elements(axis=1)", {x, smallest}),
                      this->Run("reduce_min(axes=[1])", {x}));
  }
  // The first is the first of the sorted ones.
  this->ExpectEqual(this->Run("argmax(axis=1)", {x}), this->All("topk(k=1)", {x})[1]);
  this->ExpectEqual(this->Run("argmin(axis=1)", {x}), this->All("topk(k=1,largest=0)", {x})[1]);
}

TYPED_TEST(IdentityTest, CumulativeSums) {
  const auto x = this->Random({4, 6});
  const auto total = this->Run("reduce_sum(axes=[1])", {x});
  const auto sum = this->Run("cumsum(axis=1)", {x});
  const auto before = this->Run("cumsum(axis=1,exclusive=1)", {x});
  const auto rest = this->Run("cumsum(axis=1,reverse=1)", {x});
  const auto after = this->Run("cumsum(axis=1,exclusive=1,reverse=1)", {x});
  this->ExpectEqual(sum, this->Run("add", {before, x}));
  this->ExpectEqual(rest, this->Run("add", {after, x}));
  this->ExpectEqual(this->Run("add", {sum, after}),
                    this->Run("add", {total, this->Run("sub", {x, x})}));
  // Reversed: backwards, summed, backwards.
  const std::string backwards = "slice(starts=[0,5],sizes=[4,6],steps=[1,-1])";
  this->ExpectEqual(
      this->Run(backwards, {this->Run("cumsum(axis=1)", {this->Run(backwards, {x})})}), rest);
  // Summing is multiplication by a triangle of ones.
  auto ones = this->Iota({6, 6});
  for (auto& one : ones.data) one = Number<TypeParam>::FromDouble(1);
  this->ExpectEqual(this->Run("matmul", {x, this->Run("trilu(upper=1)", {ones})}), sum);
}

TYPED_TEST(IdentityTest, SlicesMakeTheWhole) {
  const auto x = this->Random({4, 6});
  const auto left = this->Run("slice(starts=[0,0],sizes=[4,2],steps=[1,1])", {x});
  const auto right = this->Run("slice(starts=[0,2],sizes=[4,4],steps=[1,1])", {x});
  this->ExpectEqual(this->Run("concat(axis=1)", {left, right}), x);
  const auto parts = this->All("split(axis=1,sizes=[2,4])", {x});
  this->ExpectEqual(parts[0], left);
  this->ExpectEqual(parts[1], right);
  const std::string backwards = "slice(starts=[3,0],sizes=[4,6],steps=[-1,1])";
  this->ExpectEqual(this->Run(backwards, {this->Run(backwards, {x})}), x);
  // A slice of a slice.
  const auto every_second = this->Run("slice(starts=[0,1],sizes=[4,3],steps=[1,2])", {x});
  this->ExpectEqual(this->Run("slice(starts=[0,2],sizes=[4,2],steps=[1,-2])", {every_second}),
                    this->Run("slice(starts=[0,5],sizes=[4,2],steps=[1,-4])", {x}));
}

TYPED_TEST(IdentityTest, PadThenSlice) {
  const auto x = this->Random({4, 6});
  for (const char* mode : {"0", "0,value=0.5", "1", "2", "3"}) {
    SCOPED_TRACE(mode);
    const auto padded = this->Run(absl::StrCat("pad(padding=[2,1,3,2],mode=", mode, ")"), {x});
    this->ExpectEqual(this->Run("slice(starts=[2,1],sizes=[4,6],steps=[1,1])", {padded}), x);
  }
  // Negative padding is a slice; zeros are a concatenation; a full wrap is two of it.
  this->ExpectEqual(this->Run("pad(padding=[-1,0,-2,0])", {x}),
                    this->Run("slice(starts=[1,0],sizes=[1,6],steps=[1,1])", {x}));
  const auto zeros = this->Run("sub", {x, x});
  this->ExpectEqual(this->Run("pad(padding=[0,6,0,0])", {x}),
                    this->Run("concat(axis=1)", {zeros, x}));
  this->ExpectEqual(this->Run("pad(padding=[4,0,0,0],mode=3)", {x}),
                    this->Run("concat(axis=0)", {x, x}));
}

TYPED_TEST(IdentityTest, TrianglesMakeTheWhole) {
  const auto x = this->Random({2, 4, 6});
  for (int k : {-2, -1, 0, 1, 3}) {
    const auto upper = this->Run(absl::StrCat("trilu(upper=1,k=", k, ")"), {x});
    const auto below = this->Run(absl::StrCat("trilu(upper=0,k=", k - 1, ")"), {x});
    const auto lower = this->Run(absl::StrCat("trilu(upper=0,k=", k, ")"), {x});
    const auto diagonal = this->Run(absl::StrCat("trilu(upper=0,k=", k, ")"), {upper});
    this->ExpectEqual(this->Run("add", {upper, below}), x);
    this->ExpectEqual(this->Run("sub", {this->Run("add", {upper, lower}), diagonal}), x);
  }
}

TYPED_TEST(IdentityTest, ExpandThenSumIsScale) {
  const auto x = this->Random({4, 1, 3});
  const auto expanded = this->Run("expand(shape=[2,4,5,3])", {x});
  const auto sum = this->Run("reduce_sum(axes=[0,2])", {expanded});
  this->ExpectEqual(this->Run("reshape(shape=[4,1,3])", {sum}),
                    this->Run("scale(factor=10.0)", {x}));
  const auto y = this->Random({2, 4, 5, 3});
  this->ExpectEqual(this->Run("mul", {expanded, y}), this->Run("mul", {x, y}));
}

TYPED_TEST(IdentityTest, GathersOfIotaAndOfGathers) {
  const auto x = this->Random({4, 6});
  this->ExpectEqual(this->Run("gather(axis=1)", {x, this->Iota({6})}), x);
  const auto first = this->Indices({5}, 4), second = this->Indices({2, 3}, 5);
  this->ExpectEqual(this->Run("gather(axis=0)", {this->Run("gather(axis=0)", {x, first}), second}),
                    this->Run("gather(axis=0)", {x, this->Run("gather(axis=0)", {first, second})}));
  const auto rows = this->Indices({2, 3}, 4);
  this->ExpectEqual(this->Run("gather(axis=0)", {x, rows}), this->Run("embedding", {x, rows}));
  // Of columns: of the transpose, by rows.
  const auto by = this->Indices({3}, 6);
  this->ExpectEqual(
      this->Run("gather(axis=1)", {x, by}),
      this->Run("transpose(perm=[1,0])",
                {this->Run("gather(axis=0)", {this->Run("transpose(perm=[1,0])", {x}), by})}));
  // Gather is GatherElements by the same index all along.
  this->ExpectEqual(this->Run("gather(axis=0)", {x, first}),
                    this->Run("gather_elements(axis=0)",
                              {x, this->Run("expand(shape=[5,6])",
                                            {this->Run("reshape(shape=[5,1])", {first})})}));
}

TYPED_TEST(IdentityTest, EmbeddingsAreProductsWithOneHot) {
  const auto table = this->Random({4, 6}), indices = this->Indices({2, 3}, 4);
  const auto rows = this->Run("embedding", {table, indices});
  this->ExpectEqual(this->Run("matmul", {this->Run("one_hot(depth=4)", {indices}), table}), rows);
  this->ExpectEqual(
      this->Run("one_hot(depth=4,axis=0)", {indices}),
      this->Run("transpose(perm=[2,0,1])", {this->Run("one_hot(depth=4)", {indices})}));
  this->ExpectEqual(this->Run("embedding_bag", {table, indices}),
                    this->Run("reduce_sum(axes=[1],keepdims=0)", {rows}));
  this->ExpectEqual(this->Run("embedding_bag(mean=1)", {table, indices}),
                    this->Run("reduce_mean(axes=[1],keepdims=0)", {rows}));
}

TYPED_TEST(IdentityTest, ScatterAddIsTheGradientOfGatherElements) {
  using A = Array<TypeParam>;
  const A x = this->Random({4, 6}), indices = this->Indices({3, 6}, 4), g = this->Random({3, 6});
  const Declaration d = *DeclareText("gather_elements(axis=0)", {{4, 6}, {3, 6}});
  A gradient(x.shape);
  const std::vector<const A*> operands = {&x, &indices}, seeds = {&g};
  const std::vector<A*> wanted = {&gradient, nullptr};
  ASSERT_TRUE(EvaluateGradient<TypeParam>(d, FullBox(d), operands, seeds, wanted).ok());
  const A zeros(x.shape);
  this->ExpectEqual(this->Run("scatter_elements(axis=0,reduction=1)", {zeros, indices, g}),
                    gradient);
}

TYPED_TEST(IdentityTest, ScattersByIotaAreElementwise) {
  const auto x = this->Random({6}), updates = this->Random({6}), iota = this->Iota({6});
  auto scatter = [&](int reduction, const auto& indices) {
    return this->Run(absl::StrCat("scatter_elements(axis=0,reduction=", reduction, ")"),
                     {x, indices, updates});
  };
  this->ExpectEqual(scatter(0, iota), updates);
  this->ExpectEqual(scatter(1, iota), this->Run("add", {x, updates}));
  this->ExpectEqual(scatter(2, iota), this->Run("mul", {x, updates}));
  this->ExpectEqual(scatter(3, iota), this->Run("maximum", {x, updates}));
  this->ExpectEqual(scatter(4, iota), this->Run("minimum", {x, updates}));
  // What was scattered is what is gathered; the last of those at one place.
  const auto permutation = this->Run("slice(starts=[5],sizes=[6],steps=[-1])", {iota});
  this->ExpectEqual(this->Run("gather_elements(axis=0)", {scatter(0, permutation), permutation}),
                    updates);
  const auto all_at_two =
      this->Run("expand(shape=[6])", {this->Run("slice(starts=[2],sizes=[1],steps=[1])", {iota})});
  auto expected = x;
  expected.data[2] = updates.data[5];
  this->ExpectEqual(scatter(0, all_at_two), expected);
}

// Those that need the order and the functions of real numbers.
class RealIdentityTest : public IdentityTest<double> {};

TEST_F(RealIdentityTest, ElementFunctions) {
  const Tensor x = Random({4, 6}), y = Random({4, 6});
  const Tensor positive = Run("abs", {x});
  auto apply = [&](const char* op, const Tensor& a) { return Run(op, {a}); };
  auto negated = [&](const Tensor& a) { return Run("scale(factor=-1.0)", {a}); };
  auto plus = [&](const Tensor& a, const Tensor& b) { return Run("add", {a, b}); };
  auto times = [&](const Tensor& a, const Tensor& b) { return Run("mul", {a, b}); };
  const Tensor one = Run("div", {positive, positive});
  ExpectEqual(apply("log", apply("exp", x)), x);
  ExpectEqual(times(apply("sqrt", positive), apply("sqrt", positive)), positive);
  ExpectEqual(times(apply("reciprocal", x), x), one);
  ExpectEqual(Run("pow", {positive, plus(one, one)}), times(x, x));
  ExpectEqual(Run("pow", {positive, y}), apply("exp", times(y, apply("log", positive))));
  ExpectEqual(times(x, apply("sign", x)), positive);
  ExpectEqual(
      plus(times(apply("sin", x), apply("sin", x)), times(apply("cos", x), apply("cos", x))), one);
  ExpectEqual(apply("atan", Run("div", {apply("sin", y), apply("cos", y)})),
              plus(y, times(Run("round", {Run("scale(factor=0.3183098861837907)", {y})}),
                            Run("scale(factor=-3.141592653589793)", {one}))));
  ExpectEqual(apply("erf", negated(x)), negated(apply("erf", x)));
  ExpectEqual(plus(apply("sigmoid", x), apply("sigmoid", negated(x))), one);
  ExpectEqual(plus(apply("softplus", x), negated(apply("softplus", negated(x)))), x);
  ExpectEqual(apply("swish", x), times(x, apply("sigmoid", x)));
  ExpectEqual(apply("hard_swish", x),
              times(x, Run("hard_sigmoid(alpha=0.16666666666666666,beta=0.5)", {x})));
  ExpectEqual(apply("leaky_relu(alpha=0.125)", x),
              plus(apply("relu", x), Run("scale(factor=-0.125)", {apply("relu", negated(x))})));
  ExpectEqual(
      apply("elu(alpha=1.0)", x),
      plus(apply("relu", x), plus(apply("exp", negated(apply("relu", negated(x)))), negated(one))));
  ExpectEqual(apply("ceil", x), negated(apply("floor", negated(x))));
  ExpectEqual(apply("round", x), negated(apply("round", negated(x))));
  ExpectEqual(apply("clip(min=-0.5,max=0.75)", x),
              Run("minimum", {Run("maximum", {x, Run("scale(factor=-0.5)", {one})}),
                              Run("scale(factor=0.75)", {one})}));
}

}  // namespace
}  // namespace isomer
