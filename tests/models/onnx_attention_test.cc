// Attention and what belongs to it in opsets 23 and 24, against the formula on small numbers.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/onnx_node.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

// One head of one feature: y[s] = sum_t softmax_t(scores[s,t]) v[t].
Numbers Attended(const std::vector<Numbers>& scores, const Numbers& v) {
  Numbers y;
  for (const Numbers& row : scores) {
    double sum = 0, weighted = 0;
    for (size_t t = 0; t < v.size(); ++t) {
      sum += std::exp(row[t]);
      weighted += std::exp(row[t]) * v[t];
    }
    y.push_back(weighted / sum);
  }
  return y;
}

const Numbers kQ = {1, -2}, kK = {0.5, 1, -1}, kV = {1, 10, 100};

// q k^T of kQ and kK.
std::vector<Numbers> Products() {
  std::vector<Numbers> products;
  for (double q : kQ) {
    products.emplace_back();
    for (double k : kK) products.back().push_back(q * k);
  }
  return products;
}

OnnxNodeRun TwoQueriesOfThreeKeys(int64_t opset = 24) {
  OnnxNodeRun node("Attention", opset);
  node.X({1, 1, 2, 1}, kQ).X({1, 1, 3, 1}, kK).X({1, 1, 3, 1}, kV);
  return node;
}

std::string ErrorOf(OnnxNodeRun node, int num_outputs = 1) {
  const auto model = node.Import(num_outputs);
  EXPECT_FALSE(model.ok());
  return std::string(model.status().message());
}

TEST(OnnxAttention, Softcap) {
  std::vector<Numbers> scores = Products();
  for (Numbers& row : scores) {
    for (double& score : row) score = 0.5 * std::tanh(score / 0.5);
  }
  ExpectValues(TwoQueriesOfThreeKeys().WithFloat("softcap", 0.5).Run()[0], {1, 1, 2, 1},
               Attended(scores, kV));
}

TEST(OnnxAttention, ScoresBeforeAndAfterTheSoftmax) {
  std::vector<Array<double>> values = TwoQueriesOfThreeKeys().Run(4);
  ExpectValues(values[0], {1, 1, 2, 1}, Attended(Products(), kV));
  ExpectValues(values[1], {1, 1, 3, 1}, kK);
  ExpectValues(values[3], {1, 1, 2, 3}, {0.5, 1, -1, -1, -2, 2});
  values = TwoQueriesOfThreeKeys().With("qk_matmul_output_mode", 3).Run(4);
  const double e[] = {std::exp(0.5), std::exp(1), std::exp(-1)};
  const double sum = e[0] + e[1] + e[2];
  EXPECT_NEAR(values[3].data[0], e[0] / sum, 1e-6);
  EXPECT_NEAR(values[3].data[2], e[2] / sum, 1e-6);
}

// Two key heads for four query heads: each serves two that are beside each other.
TEST(OnnxAttention, KeyHeadsServeGroupsOfQueryHeads) {
  for (float softcap : {0.0f, 1e6f}) {  // By the operator, and by its formula.
    OnnxNodeRun node("Attention", 23);
    node.X({1, 4, 1, 1}, {0, 0, 0, 0}).X({1, 2, 1, 1}, {1, 1}).X({1, 2, 1, 1}, {5, 7});
    ExpectValues(node.WithFloat("softcap", softcap).Run()[0], {1, 4, 1, 1}, {5, 5, 7, 7});
  }
}

// Query s sees the keys up to past + s, whatever the number of new keys.
TEST(OnnxAttention, CausalBehindThePast) {
  for (int new_keys : {1, 2, 3}) {
    const int past = 3 - new_keys;
    std::vector<Numbers> scores = Products();
    for (int s = 0; s < 2; ++s) {
      for (int t = past + s + 1; t < 3; ++t) scores[s][t] = kUnseen;
    }
    OnnxNodeRun node("Attention", 23);
    node.X({1, 1, 2, 1}, kQ)
        .X({1, 1, new_keys, 1}, Numbers(kK.begin() + past, kK.end()))
        .X({1, 1, new_keys, 1}, Numbers(kV.begin() + past, kV.end()))
        .Absent();
    if (past > 0) {
      node.X({1, 1, past, 1}, Numbers(kK.begin(), kK.begin() + past))
          .X({1, 1, past, 1}, Numbers(kV.begin(), kV.begin() + past));
    }
    const std::vector<Array<double>> values = node.With("is_causal", 1).Run(3);
    ExpectValues(values[0], {1, 1, 2, 1}, Attended(scores, kV), std::to_string(new_keys));
    ExpectValues(values[2], {1, 1, 3, 1}, kV);
  }
}

// Of bools and of numbers; one of fewer keys hides the rest.
TEST(OnnxAttention, Masks) {
  std::vector<Numbers> scores = Products();
  scores[0][2] = scores[1][2] = scores[1][0] = kUnseen;
  const Numbers expected = Attended(scores, kV);
  ExpectValues(TwoQueriesOfThreeKeys().X({2, 2}, {1, 1, 0, 1}, onnx::TensorProto::BOOL).Run()[0],
               {1, 1, 2, 1}, expected);
  ExpectValues(
      TwoQueriesOfThreeKeys().X({2, 3}, {1, 1, 0, 0, 1, 0}, onnx::TensorProto::BOOL).Run()[0],
      {1, 1, 2, 1}, expected);
  scores = Products();
  scores[0][2] = scores[1][2] = kUnseen;
  scores[0][0] += 3, scores[1][1] -= 2;
  ExpectValues(TwoQueriesOfThreeKeys().X({1, 2, 2}, {3, 0, 0, -2}).Run()[0], {1, 1, 2, 1},
               Attended(scores, kV));
}

TEST(OnnxAttention, PaddedKeys) {
  std::vector<Numbers> scores = Products();
  scores[0][2] = scores[1][2] = kUnseen;
  auto padded = [] {
    OnnxNodeRun node = TwoQueriesOfThreeKeys();
    node.Absent().Absent().Absent().X({1}, {2}, onnx::TensorProto::INT64);
    return node;
  };
  ExpectValues(padded().Run()[0], {1, 1, 2, 1}, Attended(scores, kV));
  scores[0][1] = kUnseen;
  ExpectValues(padded().With("is_causal", 1).Run()[0], {1, 1, 2, 1}, Attended(scores, kV));
}

TEST(OnnxAttention, WhatIsRefused) {
  const auto texts_differ = HasSubstr("texts of the standard differ");
  EXPECT_THAT(ErrorOf(TwoQueriesOfThreeKeys().WithFloat("softcap", 2).With("is_causal", 1)),
              texts_differ);
  EXPECT_THAT(
      ErrorOf(TwoQueriesOfThreeKeys().With("is_causal", 1).With("qk_matmul_output_mode", 1), 4),
      texts_differ);
  EXPECT_THAT(ErrorOf(TwoQueriesOfThreeKeys().With("qk_matmul_output_mode", 4)),
              HasSubstr("qk_matmul_output_mode is 4"));
  EXPECT_THAT(ErrorOf(TwoQueriesOfThreeKeys().Absent().X({1, 1, 1, 1}, {1})),
              HasSubstr("past_key without past_value"));
  EXPECT_THAT(ErrorOf(TwoQueriesOfThreeKeys().Absent().Absent().Absent().X(
                  {2}, {2, 2}, onnx::TensorProto::INT64)),
              HasSubstr("each of 1 samples"));
  EXPECT_THAT(ErrorOf(TwoQueriesOfThreeKeys().X({}, {0})), HasSubstr("the mask has 0 dims"));
}

TEST(OnnxTensorScatter, RowsOfEachSample) {
  const Numbers cache = {0, 0, 0, 0, 0, 0}, update = {1, 2, 3, 4};
  auto scatter = [&] {
    OnnxNodeRun node("TensorScatter", 24);
    node.X({2, 3, 1}, cache).X({2, 2, 1}, update);
    return node;
  };
  ExpectValues(scatter().Run()[0], {2, 3, 1}, {1, 2, 0, 3, 4, 0});
  ExpectValues(scatter().X({2}, {1, 0}, onnx::TensorProto::INT64).Run()[0], {2, 3, 1},
               {0, 1, 2, 3, 4, 0});
  ExpectValues(scatter()
                   .X({2}, {2, 1}, onnx::TensorProto::INT64)
                   .With("mode", std::string("circular"))
                   .Run()[0],
               {2, 3, 1}, {2, 0, 1, 0, 3, 4});
  EXPECT_THAT(ErrorOf(scatter().With("mode", std::string("ring"))), HasSubstr("mode is 'ring'"));
  EXPECT_THAT(ErrorOf(scatter().With("axis", 0)), HasSubstr("the axis is that of the batch"));
  EXPECT_THAT(ErrorOf(scatter().With("axis", 2)), HasSubstr("differ in another dim than 2"));
}

// What the last window reaches past the padding is no element of it.
TEST(OnnxAveragePool, ExcessDoesNotCount) {
  for (int64_t opset : {11, 22}) {
    OnnxNodeRun node("AveragePool", opset);
    node.X({1, 1, 6}, {1, 1, 1, 1, 1, 1})
        .With("kernel_shape", std::vector<int64_t>{3})
        .With("strides", std::vector<int64_t>{3})
        .With("pads", std::vector<int64_t>{1, 0})
        .With("count_include_pad", 1)
        .With("ceil_mode", 1);
    ExpectValues(node.Run()[0], {1, 1, 3}, {2.0 / 3, 1, 1});
  }
  OnnxNodeRun dilated("AveragePool", 22);
  dilated.X({1, 1, 6}, {1, 2, 3, 4, 5, 6})
      .With("kernel_shape", std::vector<int64_t>{3})
      .With("strides", std::vector<int64_t>{2})
      .With("dilations", std::vector<int64_t>{2})
      .With("count_include_pad", 1)
      .With("ceil_mode", 1);
  ExpectValues(dilated.Run()[0], {1, 1, 2}, {3, 4});
}

TEST(OnnxCompress, ByAConstant) {
  const Numbers x = {1, 2, 3, 4, 5, 6};
  OnnxNodeRun rows("Compress", 11);
  rows.X({3, 2}, x).Ints({3}, {0, 1, 1}).With("axis", 0);
  ExpectValues(rows.Run()[0], {2, 2}, {3, 4, 5, 6});
  OnnxNodeRun all("Compress", 11);
  ExpectValues(all.X({3, 2}, x).Ints({4}, {1, 0, 0, 1}).Run()[0], {2}, {1, 4});
  OnnxNodeRun none("Compress", 11);
  EXPECT_THAT(ErrorOf(none.X({3, 2}, x).Ints({2}, {0, 0})), HasSubstr("keeps nothing"));
  OnnxNodeRun longer("Compress", 11);
  EXPECT_THAT(ErrorOf(longer.X({3, 2}, x).Ints({4}, {1, 0, 0, 1}).With("axis", 0)),
              HasSubstr("longer than dim 0"));
}

TEST(OnnxBitwiseNot, IsMinusOneMinusX) {
  OnnxNodeRun node("BitwiseNot", 18);
  ExpectValues(node.X({3}, {0, 5, -1}, onnx::TensorProto::INT32).Run()[0], {3}, {-1, -6, 0});
}

}  // namespace
}  // namespace isomer
