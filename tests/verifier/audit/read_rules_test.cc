// Files of TASO and Unity that are damaged, or made to do harm: one line that says where.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "pcg/support/file.h"
#include "verifier/audit/foreign.pb.h"
#include "verifier/audit/read_rules.h"

namespace isomer {
namespace {

// A file of the test's own: tests run side by side.
std::string Scratch(const std::string& name, const std::string& contents) {
  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = absl::StrCat(testing::TempDir(), "/audit-", test, "-", name);
  EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
  return path;
}

std::string Shipped(const std::string& name) {
  return absl::StrCat(ISOMER_SOURCE_DIR, "/tests/data/audit/", name);
}

// The error on `text` as TASO's rules in text form.
std::string TasoError(const std::string& text) {
  const auto rules = ReadTasoRules(Scratch("bad.textproto", text));
  EXPECT_FALSE(rules.ok());
  return std::string(rules.status().message());
}

std::string UnityError(const std::string& text) {
  const auto rules = ReadUnityRules(Scratch("bad.json", text));
  EXPECT_FALSE(rules.ok());
  return std::string(rules.status().message());
}

constexpr char kRule[] =
    "rule { src_op { type: 8 input { op_id: -1 ts_id: 0 } }"
    "       dst_op { type: 9 input { op_id: -1 ts_id: 0 } }"
    "       mapped_output { src_op_id: 0 dst_op_id: 0 src_ts_id: 0 dst_ts_id: 0 } }";

std::string With(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kRule, {{from, to}});
  EXPECT_NE(text, kRule) << from;
  return text;
}

void ExpectOneLine(const std::string& error, const std::vector<std::string>& parts) {
  EXPECT_FALSE(absl::StrContains(error, "\n")) << error;
  for (const std::string& part : parts) EXPECT_TRUE(absl::StrContains(error, part)) << error;
}

TEST(ReadForeignRules, TasoInTextAndBinaryAreTheSameRules) {
  proto::TasoRuleCollection message;
  const std::string text = *ReadFile(Shipped("taso.textproto"));
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  const auto binary = ReadTasoRules(Scratch("rules.pb", message.SerializeAsString()));
  const auto from_text = ReadTasoRules(Shipped("taso.textproto"));
  ASSERT_TRUE(binary.ok()) << binary.status();
  ASSERT_TRUE(from_text.ok()) << from_text.status();
  ASSERT_EQ(binary->size(), from_text->size());
  const ForeignRule& rule = (*binary)[0];
  EXPECT_EQ(rule.name, "rule 0");
  EXPECT_EQ(rule.source[1].type, "OP_MATMUL");
  EXPECT_EQ(rule.source[1].inputs[1].op, -3);
  EXPECT_EQ(rule.source[1].Find("PM_ACTI"), 0);
}

TEST(ReadForeignRules, UnityNamesItsRulesAndIgnoresTypeTags) {
  const auto rules = ReadUnityRules(Shipped("unity.json"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ((*rules)[0].name, "partitions_commute");
  EXPECT_EQ((*rules)[0].source[0].Find("PM_PARALLEL_DEGREE"), 2);
}

// FlexFlow has two sets of names for the dim and the degree of a parallel operator.
TEST(ReadForeignRules, UnityParametersOfParallelOperatorsHaveTwoNames) {
  const std::string text = *ReadFile(Shipped("unity.json"));
  const auto rules = ReadUnityRules(
      Scratch("names.json", absl::StrReplaceAll(text, {{"PM_PARALLEL_", "PM_REPARTITION_"}})));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ((*rules)[0].source[0].Find("PM_PARALLEL_DIM"), 1);
}

// Operators may be listed in any order.
TEST(ReadForeignRules, OperatorsAreSorted) {
  const auto rules = ReadTasoRules(
      Scratch("order.textproto",
              "rule { src_op { type: 8 input { op_id: 1 ts_id: 0 } }"
              "       src_op { type: 9 input { op_id: -1 ts_id: 0 } }"
              "       dst_op { type: 10 input { op_id: -1 ts_id: 0 } }"
              "       mapped_output { src_op_id: 0 dst_op_id: 0 src_ts_id: 0 dst_ts_id: 0 } }"));
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ((*rules)[0].source[0].type, "OP_SIGMOID");
  EXPECT_EQ((*rules)[0].source[1].inputs[0].op, 0);
  EXPECT_EQ((*rules)[0].outputs[0].first.op, 1);
}

TEST(ReadForeignRules, CutAtAnyByteIsRefusedOrEndsBetweenRules) {
  proto::TasoRuleCollection message;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(absl::StrCat(kRule, kRule), &message));
  const std::string bytes = message.SerializeAsString();
  int accepted = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto rules = ReadTasoRules(Scratch("cut.pb", bytes.substr(0, size)));
    accepted += rules.ok();
    if (!rules.ok()) ExpectOneLine(std::string(rules.status().message()), {"-cut.pb: "});
  }
  EXPECT_EQ(accepted, 1) << "the cut between the two rules";
}

TEST(ReadForeignRules, CutJsonIsOneLine) {
  const std::string text = *ReadFile(Shipped("unity.json"));
  ExpectOneLine(UnityError(text.substr(0, text.size() / 2)), {"-bad.json: "});
  ExpectOneLine(UnityError(""), {"-bad.json: "});
  ExpectOneLine(UnityError("{\"rule\": []}"), {"has 0 rules"});
}

TEST(ReadForeignRules, ReferencesThatPointNowhere) {
  ExpectOneLine(
      TasoError(With("src_op { type: 8 input { op_id: -1", "src_op { type: 8 input { op_id: 3")),
      {"rule 0: source operator 0 (OP_RELU): input 0 is output 0 of operator 3; "
       "there are 1 operators"});
  ExpectOneLine(
      TasoError(With("type: 9 input { op_id: -1 ts_id: 0", "type: 9 input { op_id: -1 ts_id: -5")),
      {"target operator 0 (OP_SIGMOID): input 0 is the rule's input -1, output -5"});
  ExpectOneLine(TasoError(With("dst_ts_id: 0", "dst_ts_id: 1")),
                {"mapped output 0 of the target is output 1 of operator 0, which has 1"});
  ExpectOneLine(TasoError(With("src_op_id: 0", "src_op_id: -1")),
                {"mapped output 0 of the source"});
  ExpectOneLine(
      TasoError(With("src_op { type: 8 input { op_id: -1", "src_op { type: 8 input { op_id: 0")),
      {"source operator 0 (OP_RELU): is on a cycle"});
}

TEST(ReadForeignRules, WhatIsMissing) {
  ExpectOneLine(TasoError(With("type: 8", "")), {"source operator 0: an operator has no type"});
  ExpectOneLine(TasoError(With("ts_id: 0 } }       dst", "} }       dst")), {"lacks opId or tsId"});
  ExpectOneLine(TasoError(With(" dst_ts_id: 0", "")), {"a mapped output lacks an id"});
  ExpectOneLine(TasoError(With("dst_op { type: 9 input { op_id: -1 ts_id: 0 } }", "")),
                {"target has 0 operators"});
}

TEST(ReadForeignRules, NumbersOutOfTheirLists) {
  ExpectOneLine(TasoError(With("type: 8", "type: 977")), {"operator type 977 is unknown"});
  ExpectOneLine(TasoError(With("type: 8", "type: 8 para { key: 44 value: 1 }")),
                {"source operator 0: parameter 44 is unknown"});
  ExpectOneLine(UnityError("{\"rule\": [{\"name\": \"r\", \"srcOp\": [{\"type\": \"OP_ADDD\"}]}]}"),
                {"r: source operator 0: operator type 'OP_ADDD' is unknown"});
  ExpectOneLine(UnityError("{\"rule\": [{\"srcOp\": [{\"type\": \"OP_RELU\", \"para\": [{\"key\": "
                           "\"PM_X\", \"value\": 1}]}]}]}"),
                {"rule 0: source operator 0: parameter 'PM_X' is unknown"});
}

TEST(ReadForeignRules, HugeNumbers) {
  for (const std::string key : {"2", "4", "5", "6", "11", "12"}) {
    const std::string para = absl::StrCat("type: 8 para { key: ", key, " value: 1000000000 }");
    ExpectOneLine(TasoError(With("type: 8", para)),
                  {"source operator 0 (OP_RELU): PM_", " is 1000000000, not "});
  }
  // A Split into 10^9 parts.
  ExpectOneLine(TasoError(With("type: 8", "type: 13 para { key: 2 value: 1000000000 }")),
                {"PM_NUM_OUTPUTS is 1000000000, not 1 to 16"});
  ExpectOneLine(UnityError("{\"rule\": [{\"srcOp\": [{\"type\": \"OP_PARTITION\", \"para\": "
                           "[{\"key\": \"PM_PARALLEL_DEGREE\", \"value\": 1000000000000}]}]}]}"),
                {"PM_PARALLEL_DEGREE is 1000000000000, not 1 to 1024"});
}

}  // namespace
}  // namespace isomer
