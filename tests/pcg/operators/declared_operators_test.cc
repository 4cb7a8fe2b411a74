// Operators that users declare: what the language means, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "pcg/ir/declared_operator.h"
#include "pcg/operators/declared/operator_file.h"
#include "pcg/support/data_path.h"
#include "tests/pcg/operators/run_operator.h"

namespace isomer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Its first operator, on operands of these shapes. Attributes are `call`'s: "n=2".
absl::StatusOr<Declaration> Meaning(const std::string& text,
                                    const std::vector<std::vector<int64_t>>& sizes,
                                    const std::vector<Attribute>& attributes = {}) {
  const absl::StatusOr<std::vector<OperatorSyntax>> parsed = ParseOperators(text);
  if (!parsed.ok()) return parsed.status();
  std::vector<Shape> shapes;
  for (const std::vector<int64_t>& size : sizes) shapes.emplace_back(size.begin(), size.end());
  return Instantiate(parsed->front(), Operator(OpKind::kRelu, attributes), shapes);
}

// Statements, and each dim's name and kind.
std::string TextOf(const absl::StatusOr<Declaration>& declaration) {
  if (!declaration.ok()) return declaration.status().ToString();
  std::string text = declaration->ToString();
  for (const IterationDim& dim : declaration->dims) {
    absl::StrAppend(&text, dim.name, " ", DimKindName(dim.kind), " ", dim.size.ToString(), "\n");
  }
  return text;
}

// What users write of operators of the list is what these mean.
TEST(DeclaredOperators, SayWhatTheListSays) {
  EXPECT_EQ(TextOf(Meaning("operator f a[m, k], b[k, n]\n Y[m, n] = sum over k: a[m, k] * b[k, n]"
                           " example f",
                           {{4, 6}, {6, 2}})),
            "Y0[m,n] = sum over k: (X0[m,k] * X1[k,n])\n"
            "m parallel 4\nk sum 6\nn parallel 2\n");
  EXPECT_EQ(TextOf(Meaning("operator f x[.., j]\n M[..] = max over j: x[.., j]\n"
                           "S[..] = sum over j: exp(x[.., j] - M[..])\n"
                           "Y[.., j] = exp(x[.., j] - M[..]) / S[..] example f",
                           {{4, 6}})),
            "M[i0] = max over j: X0[i0,j]\n"
            "S[i0] = sum over j: exp((X0[i0,j] - M[i0]))\n"
            "Y0[i0,j] = (exp((X0[i0,j] - M[i0])) / S[i0])\n"
            "i0 parallel 4\nj whole 6\n");
  EXPECT_EQ(TextOf(Meaning("operator f x[n, c, h], w[o, c, r]\n dims y = h\n"
                           "Y[n, o, y] = sum over c, r: padded x[n, c, y+r-1] * w[o, c, r]\n"
                           "example f",
                           {{2, 4, 8}, {6, 4, 3}})),
            "Y0[n,o,y] = sum over c,r: (X0[n,c,y+r-1] * X1[o,c,r])\n"
            "n parallel 2\nc sum 4\no parallel 6\nr whole 3\ny spatial 8\n");
}

TEST(DeclaredOperators, AreReadFromAFile) {
  const absl::Status read = LoadOperators(DataPath("models/data/operators/examples.txt"));
  ASSERT_TRUE(read.ok()) << read;
  const absl::StatusOr<OpKind> kind = ParseOpKind("scaled_glu");
  ASSERT_TRUE(kind.ok());
  EXPECT_FALSE(IsBuiltIn(*kind));
  EXPECT_EQ(MinOperands(*kind), 2);
  EXPECT_NE(DeclarationDigest(*kind), 0);
  EXPECT_EQ(DeclaredForOnnx("com.example", "ScaledGlu"), *kind);
  EXPECT_EQ(DeclaredForOnnx("", "ScaledGlu"), std::nullopt);
  // A half turn exchanges halves.
  const Tensor x = Filled({1, 4}, {1, 2, 3, 4}), zero = Filled({1, 2}, {0, 0}),
               one = Filled({1, 2}, {1, 1});
  EXPECT_THAT(OutputOf("scaled_rope(scale=2)", {x, zero, one}).data, ElementsAre(-6, -8, 2, 4));
  EXPECT_THAT(OutputOf("scaled_rope", {x, one, zero}).data, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ErrorOf("scaled_rope", {{1, 6}, {1, 2}, {1, 2}}),
              HasSubstr("it is required that d==2*size(e): 6 and 4"));
  EXPECT_THAT(ErrorOf("scaled_rope", {{1, 4}, {2, 2}, {1, 2}}),
              HasSubstr("dim s is 1 in operand 0"));
  EXPECT_THAT(ErrorOf("scaled_glu", {{3, 4}, {2, 4}}), HasSubstr("dim i0 is 3 in operand 0"));
  EXPECT_THAT(ErrorOf("scaled_glu", {{4}, {2, 4}}), HasSubstr("0 leading dims"));
  EXPECT_THAT(ErrorOf("scaled_glu", {{}, {}}), HasSubstr("rank 0; it needs at least 1"));
  for (const auto& [call, error] : std::vector<std::pair<std::string, std::string>>{
           {"scaled_glu(beta=0.0)", "attribute 'beta' is 0, not in 0.0625..16"},
           {"scaled_glu(gamma=1.0)", "has no attribute 'gamma'"},
           {"scaled_glu(beta=[1,2])", "has the wrong type"}}) {
    EXPECT_THAT(ParseOperator(call).status().message(), HasSubstr(error));
  }
  // Names are taken once.
  EXPECT_THAT(LoadOperators(DataPath("models/data/operators/examples.txt")).message(),
              HasSubstr("examples.txt:5:10: there is an operator 'scaled_glu' already"));
}

// Gradients follow from the statements: against differences.
TEST(DeclaredOperators, HaveGradients) {
  if (!ParseOpKind("scaled_glu").ok()) {
    ASSERT_TRUE(LoadOperators(DataPath("models/data/operators/examples.txt")).ok());
  }
  for (const auto& [call, shapes] :
       std::vector<std::pair<std::string, std::vector<std::vector<int64_t>>>>{
           {"scaled_glu(beta=2.0)", {{2, 3}, {2, 3}}},
           {"scaled_rope(scale=0.5)", {{2, 4}, {2, 2}, {2, 2}}}}) {
    SCOPED_TRACE(call);
    std::vector<Tensor> operands;
    for (const auto& shape : shapes) operands.push_back(Random(shape, operands.size() + 1));
    const Declaration d = DeclarationFor(call, operands);
    const Tensor y = OutputOf(call, operands);
    const Tensor seed = Random(y.shape, 9);
    std::vector<Tensor> gradients;
    for (const Tensor& operand : operands) gradients.emplace_back(operand.shape);
    std::vector<Tensor*> wanted;
    for (Tensor& gradient : gradients) wanted.push_back(&gradient);
    ASSERT_TRUE(EvaluateGradient<double>(d, FullBox(d), PointersTo(operands), {&seed},
                                         absl::MakeSpan(wanted))
                    .ok());
    for (size_t o = 0; o < operands.size(); ++o) {
      for (size_t e = 0; e < operands[o].data.size(); ++e) {
        constexpr double kStep = 1e-5;
        const auto at = [&](double step) {
          std::vector<Tensor> moved = operands;
          moved[o].data[e] += step;
          const Tensor value = OutputOf(call, moved);
          double sum = 0;
          for (size_t i = 0; i < value.data.size(); ++i) sum += value.data[i] * seed.data[i];
          return sum;
        };
        EXPECT_NEAR(gradients[o].data[e], (at(kStep) - at(-kStep)) / (2 * kStep), 1e-6);
      }
    }
  }
}

TEST(DeclaredOperators, DecimalsAreFractions) {
  EXPECT_EQ(Meaning("operator f x[n] Y[n] = x[n] * 0.1 + 0.25 example f", {{2}})->ToString(),
            "Y0[n] = ((X0[n] * (1 / 10)) + 0.25)\n");
  EXPECT_EQ(Meaning("operator f x[n] Y[n] = -x[n] ^ 2 <= 15e-1 example f", {{2}})->ToString(),
            "Y0[n] = ((((X0[n] ^ 2) * -1) < 1.5) + (((X0[n] ^ 2) * -1) == 1.5))\n");
}

TEST(DeclaredOperators, MeanAndVariance) {
  const char* const text =
      "operator f x[.., n] M[..] = sum over n: x[.., n] / size(n)\n"
      "Y[.., n] = x[.., n] - M[..] example f";
  EXPECT_EQ(Meaning(text, {{2, 4}})->ToString(),
            "M[i0] = sum over n: (X0[i0,n] / 4)\nY0[i0,n] = (X0[i0,n] - M[i0])\n");
  // A proof for all sizes asks for numbers.
  const auto parsed = ParseOperators(text);
  const absl::Status symbolic =
      Instantiate(parsed->front(), Operator(OpKind::kRelu), {{2, Extent::Symbol(0)}}).status();
  EXPECT_FALSE(symbolic.ok());
}

// What is wrong, and where.
TEST(DeclaredOperators, RefuseWhatTheLanguageCannotSay) {
  const std::string deep(200, '('), many_minus(200, '-');
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"", "1:1: no operator is declared"},
           {"# nothing\n", "1:1: no operator is declared"},
           {"operator", "1:9: the operator's name is expected, not the end of the file"},
           {"operators f", "1:1: 'operator' is expected, not 'operators'"},
           {"operator sum x[n]", "1:10: the operator's name is expected, not 'sum'"},
           {"operator f\n  x[n\n", "3:1: ',' is expected, not the end of the file"},
           {"operator f x[n] Y[n] = x[n]", "1:10: operator f has no example"},
           {"operator f x[n], x[n] Y[n] = x[n]", "1:18: 'x' is there twice"},
           {"operator f Y[n] Y[n] = Y[n]", "1:12: 'Y' is the name of an output"},
           {"operator f x[n, ..] Y[n] = x[n]", "1:17: '..' stands in front of all dims"},
           {"operator f x[i0] Y[i0] = x[i0]", "1:14: 'i0' is the name of a leading dim"},
           {"operator f x[n] Y[n] = z[n]", "1:24: there is no 'z' yet"},
           {"operator f x[n] Y[n] = Y[n]", "1:24: there is no 'Y' yet"},
           {"operator f x[n] Y[n] = cosh(x[n])", "1:24: there is no function 'cosh'"},
           {"operator f x[n] Y[n] = max(x[n])", "1:24: 'max' takes 2 values, not 1"},
           {"operator f x[n] Y[n] = relu(x[n], x[n])", "1:24: 'relu' takes 1 value"},
           {"operator f x[n] Y[n] = x[n] $ 2", "1:29: '$' is not of the language"},
           {"operator f x[n] Y[n] = x[n] \xc3\xa4", "1:29: what is no ASCII text"},
           {"operator f x[n] Y1[n] = x[n]", "1:17: Y0 is the next output, not Y1"},
           {"operator f x[n] Y[..] = x[n]", "1:19: no operand has '..'"},
           {"operator f x[n] Y[n] = sum over: x[n]", "1:32: a dim's name is expected, not ':'"},
           {"operator f x[n] Y[n] = mean over n: x[n]", "1:24: sum, max or product is expected"},
           {"operator f x[n] Y[n] = " + deep, "too many parentheses"},
           {"operator f x[n] Y[n] = " + many_minus, "too many parentheses"},
           {"operator f x[n] Y[n] = x[" + deep, "too many parentheses"},
           {"operator f x[n] Y[n] = x[" + many_minus, "too many parentheses"},
           {"operator f x[n] Y[n] = 1e400 * x[n]", "more than 15 digits"},
           {"operator f x[n] Y[n] = 0.1234567890123456789 * x[n]", "more than 15 digits"},
           {"operator f x[n] Y[n] = x[99999999999999999999]", "is not an integer here"},
           {"operator f x[n] Y[n] = x[0.5]", "'0.5' is not an integer here"},
           {"operator f x[n] dims n = 2", "1:22: dim 'n' is there twice"},
           {"operator f(a=1) x[n]", "1:15: 'in' is expected, not ')'"},
           {"operator f(a=3 in 0..2) x[n]", "attribute 'a' is not in its range"},
           {"operator f(a in 2..1) x[n]", "attribute 'a' has no values"},
           {"operator f(a in 0..1, a in 0..1) x[n]", "attribute 'a' is there twice"},
           {"operator f(alpha in 0..1) x[n]", "attribute 'alpha' is a number of other operators"},
           {"operator f(axes in 0..1) x[n]", "attribute 'axes' is a list of other operators"},
           {"operator f(n in 0..1) x[n]", "1:25: 'n' is an attribute"},
           {"operator f(a in 0..1e300) x[n]", "the number is too large"},
           {"operator f x[n] onnx Glu\n", "'DOMAIN NAME' is expected after 'onnx'"},
           {"operator f x[n] require n = 2", "'==', '<' or '<=' is expected, not '='"}}) {
    SCOPED_TRACE(text);
    const absl::Status status = ParseOperators(text).status();
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(error));
  }
}

// What is wrong on operands of some sizes.
TEST(DeclaredOperators, RefuseWhatHasNoMeaning) {
  struct Case {
    std::string statements;
    std::string error;
  };
  for (const Case& c : std::vector<Case>{
           {"Y[n] = x[n+1, m]", "index 4 of dim 0 of x, whose size is 4"},
           {"Y[n] = sum over m: x[n-1, m]", "index -1 of dim 0 of x"},
           {"Y[n] = sum over m: x[m, n]", "index 5 of dim 0 of x, whose size is 4"},
           {"Y[n] = x[n]", "x has 2 dims, not 1"},
           {"Y[n] = x[n, m]", "Y is neither indexed by dim m nor reduced over it"},
           {"Y[n] = m", "Y is neither indexed by dim m nor reduced over it"},
           {"Y[n, n] = sum over m: x[n, m]", "do not number its elements"},
           {"Y[n+1] = sum over m: x[n, m]", "do not number its elements"},
           {"Y[n*2] = sum over m: x[n, m]", "do not number its elements"},
           {"Y[n*2+m] = x[n, m]", "do not number its elements"},
           {"Y[0] = sum over n, m: x[n, m]", "do not number its elements"},
           {"Y[n/2] = sum over m: x[n, m]", "do not number its elements"},
           {"T[n*6+m] = x[n, m] Y[n] = T[n]", "do not number its elements"},
           {"Y[n] = sum over n: x[n, 0]", "dim n is reduced, and there another time"},
           {"Y[n] = sum over m, m: x[n, m]", "dim m is reduced, and there another time"},
           {"Y[n] = sum over q: x[n, q]", "there is no dim 'q'"},
           {"Y[n] = x[n, 0] * q", "there is no dim 'q'"},
           {"Y[n] = x[n, 0] * size(q)", "there is no size of 'q'"},
           {"Y[n, m] = x[n*m, 0]", "a factor of a dim is of a dim"},
           {"Y[n, m] = x[n, m/0]", "a division by 0"},
           {"Y[n, m] = x[n, m/n]", "a divisor is of a dim"},
           {"Y[n, m] = x[n, m/2+1]", "'/' and '%' are the last of an index"},
           {"Y[n, m] = x[n, m/2/2]", "an index has one '/', and one '%' after it"},
           {"Y[n, m] = x[n, 7%4]", ""},  // 3
           {"dims q = m/4 Y[n, m] = x[n, m]", "4 does not divide 6"},
           {"dims q = m/(n-4) Y[n, m] = x[n, m]", "a division by zero"},
           {"dims q = n-4 Y[n, m] = x[n, m]", "dim q has size 0"},
           {"dims q = r Y[n, m] = x[n, m]", "there is no size of 'r'"},
           {"dims q = 1000000000000000*1000000000000000 Y[n, m] = x[n, m]", "too large"},
           {"require n < m require m <= n Y[n, m] = x[n, m]", "it is required that m<=n: 6 and 4"},
           {"T[n] = sum over m: x[n, m]", "no statement defines an output Y"}}) {
    SCOPED_TRACE(c.statements);
    const absl::Status status =
        Meaning(absl::StrCat("operator f x[n, m] ", c.statements, " example f"), {{4, 6}}).status();
    EXPECT_EQ(status.ok(), c.error.empty());
    EXPECT_THAT(status.message(), HasSubstr(c.error));
  }
}

// No dim is split of which a piece would need more than its piece: whatever is declared, the pieces
// of type inference are those of the statements.
TEST(DeclaredOperators, OnlyPiecesThatSufficeAreSplit) {
  const auto kinds = [](const std::string& statements) {
    const absl::StatusOr<Declaration> d =
        Meaning("operator f x[n, m] " + statements + " example f", {{4, 4}});
    EXPECT_TRUE(d.ok()) << d.status();
    std::string text;
    for (const IterationDim& dim : d->dims) absl::StrAppend(&text, DimKindName(dim.kind), " ");
    return text;
  };
  EXPECT_EQ(kinds("Y[n, m] = x[n, m]"), "parallel parallel ");
  EXPECT_EQ(kinds("Y[n, m] = x[n, m] + x[m, n]"), "whole whole ");  // its transpose
  EXPECT_EQ(kinds("Y[n, m] = x[3-n, m]"), "whole parallel ");       // reversed
  EXPECT_EQ(kinds("Y[n, m] = x[n, m] * n"), "parallel parallel ");  // coordinates are logical
  EXPECT_EQ(kinds("Y[n, m] = x[n, m/2]"), "parallel whole ");
  EXPECT_EQ(kinds("Y[n] = sum over m: x[n, m]"), "parallel sum ");
  EXPECT_EQ(kinds("Y[n] = max over m: x[n, m]"), "parallel whole ");
  EXPECT_EQ(kinds("Y[n] = sum over m: x[n, m] Y1[m] = sum over n: x[n, m]"), "whole whole ");
  EXPECT_EQ(kinds("S[n] = sum over m: x[n, m] Y[n] = exp(S[n])"), "parallel whole ");
  EXPECT_EQ(kinds("T[n] = x[n, 0] Y[n, m] = T[3-n] + x[n, m]"), "whole whole ");
  EXPECT_EQ(kinds("T[m] = sum over n: x[n, m] Y[n, m] = T[m] + x[n, m]"), "whole parallel ");
  EXPECT_EQ(kinds("T[n] = x[n, 0] Y[n] = sum over m: T[m] * x[n, m]"), "whole whole ");
  EXPECT_EQ(kinds("Y[n] = sum over m: x[n, m] Y1[n] = sum over m: x[n, m] * 2"), "parallel sum ");
  EXPECT_EQ(kinds("Y[n] = sum over m: x[n, m] Y1[n] = max over m: x[n, m]"), "parallel whole ");
}

}  // namespace
}  // namespace isomer
