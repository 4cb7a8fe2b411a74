#include "verifier/exhaustive/elements.h"

#include <gtest/gtest.h>

namespace isomer {
namespace {

class Symbols : public testing::Test {
 protected:
  using Value = SymbolicElements::Value;
  Value Op(ScalarOp op, std::vector<Value> operands) { return e_.Apply(op, operands); }
  Value Times(Value a, Value b) { return Op(ScalarOp::kMul, {a, b}); }
  Value Over(Value a, Value b) { return Op(ScalarOp::kDiv, {a, b}); }
  Value Plus(Value a, Value b) { return Op(ScalarOp::kAdd, {a, b}); }

  SymbolicElements e_;
  const Value x_ = e_.Symbol(0), y_ = e_.Symbol(1), z_ = e_.Symbol(2);
  const Value b_ = e_.Symbol(3, true), c_ = e_.Symbol(4, true);
};

TEST_F(Symbols, SumsAndProductsAreThoseOfPolynomials) {
  EXPECT_EQ(Times(Plus(x_, y_), Plus(x_, y_)),
            e_.Sum({Times(x_, x_), Times(y_, y_), Times(e_.Number(2), Times(x_, y_))}));
  EXPECT_EQ(Op(ScalarOp::kSub, {Plus(x_, y_), y_}), x_);
  EXPECT_NE(Plus(x_, y_), Times(x_, y_));
  EXPECT_EQ(Times(e_.Number(0.3), e_.Number(-0.5)), Times(e_.Number(-0.3), e_.Number(0.5)));
}

TEST_F(Symbols, QuotientsCancel) {
  EXPECT_EQ(Over(Times(x_, y_), y_), x_);
  EXPECT_EQ(Over(e_.Number(1), Over(e_.Number(1), Plus(x_, y_))), Plus(x_, y_));
  EXPECT_EQ(Over(x_, Plus(Times(x_, y_), Times(x_, z_))), Over(e_.Number(1), Plus(y_, z_)));
  EXPECT_TRUE(e_.Equal(Plus(Over(x_, Plus(x_, y_)), Over(y_, Plus(x_, y_))), e_.Number(1)));
  EXPECT_FALSE(e_.Equal(Over(x_, Plus(x_, y_)), Over(y_, Plus(x_, y_))));
}

TEST_F(Symbols, TheLargestIsTheSameInAnyOrder) {
  EXPECT_EQ(e_.Largest({x_, e_.Largest({y_, z_})}), e_.Largest({e_.Largest({z_, x_}), y_}));
  EXPECT_EQ(e_.Largest({x_, x_}), x_);
  EXPECT_EQ(e_.Largest({e_.Number(-0.5), e_.Number(0.25)}), e_.Number(0.25));
  EXPECT_NE(e_.Largest({x_, y_}), e_.Largest({x_, z_}));
}

TEST_F(Symbols, ComparisonsAreZeroOrOne) {
  const Value less = Op(ScalarOp::kLess, {x_, y_});
  EXPECT_EQ(Times(less, less), less);
  EXPECT_EQ(Op(ScalarOp::kLess, {e_.Number(0.5), e_.Number(0.75)}), e_.Number(1));
  EXPECT_EQ(Op(ScalarOp::kEqual, {x_, y_}), Op(ScalarOp::kEqual, {y_, x_}));
  EXPECT_EQ(Op(ScalarOp::kWhere, {less, x_, x_}), x_);
  const Value not_b = Op(ScalarOp::kEqual, {b_, e_.Number(0)});
  EXPECT_EQ(Op(ScalarOp::kEqual, {not_b, e_.Number(0)}), b_);
  EXPECT_EQ(e_.Largest({b_, not_b}), e_.Number(1));
  EXPECT_EQ(Op(ScalarOp::kWhere, {b_, c_, e_.Number(0)}), Times(b_, c_));
}

TEST_F(Symbols, ExponentialsOfSumsAreProducts) {
  auto exp = [&](Value v) { return Op(ScalarOp::kExp, {v}); };
  EXPECT_EQ(Times(exp(x_), exp(y_)), exp(Plus(x_, y_)));
  EXPECT_EQ(exp(e_.Number(0)), e_.Number(1));
  // softmax of two, shifted or not
  const Value shifted =
      Over(exp(Op(ScalarOp::kSub, {x_, z_})),
           Plus(exp(Op(ScalarOp::kSub, {x_, z_})), exp(Op(ScalarOp::kSub, {y_, z_}))));
  EXPECT_TRUE(e_.Equal(shifted, Over(exp(x_), Plus(exp(x_), exp(y_)))));
}

TEST_F(Symbols, IntegersAreReadBack) {
  EXPECT_EQ(e_.AsInteger(e_.Integer(-7)), -7);
  EXPECT_EQ(e_.AsInteger(e_.Number(0.5)), std::nullopt);
  EXPECT_EQ(e_.AsInteger(x_), std::nullopt);
  EXPECT_EQ(e_.AsInteger(Times(e_.Number(0.25), e_.Integer(12))), 3);
}

TEST(Numbers, WhatIsNoNumberEqualsWhatIsNone) {
  const double none = NumericElements::Apply(ScalarOp::kLog, {-1});
  EXPECT_TRUE(NumericElements::Equal(none, none));
  EXPECT_FALSE(NumericElements::Equal(none, 1));
  EXPECT_TRUE(NumericElements::Equal(0.1 + 0.2, 0.3));
}

}  // namespace
}  // namespace isomer
