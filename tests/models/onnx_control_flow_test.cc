// Loop, Scan and sequences: what they become where all is known at import, and files that misuse
// them.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "models/onnx/import/onnx_import.h"
#include "models/onnx/onnx.pb.h"
#include "tests/models/model_value.h"

namespace isomer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Numbers = std::vector<double>;

// y of x [3] = [-1, 2, 3], with the constants n = 3, m = 2 (int64) and yes = true, and the
// parameter w = 0.5.
std::string LoopFile(const std::string& nodes) {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(ir_version: 8 opset_import { domain: "" version: 18 } graph {
        input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } } }
        output { name: "y" }
        initializer { name: "n" data_type: 7 int64_data: 3 }
        initializer { name: "m" data_type: 7 int64_data: 2 }
        initializer { name: "axis" data_type: 7 dims: 1 int64_data: 0 }
        initializer { name: "yes" data_type: 9 int32_data: 1 }
        initializer { name: "w" data_type: 1 float_data: 0.5 })" +
          nodes + "}",
      &model))
      << nodes;
  return model.SerializeAsString();
}

absl::StatusOr<Model> ReadLoop(const std::string& nodes) {
  return ParseOnnx(LoopFile(nodes), "net.onnx");
}

Numbers ValueOf(const std::string& nodes) { return ModelValue(ReadLoop(nodes), {-1, 2, 3}); }

std::string LoopError(const std::string& nodes) {
  const absl::StatusOr<Model> model = ReadLoop(nodes);
  EXPECT_FALSE(model.ok()) << nodes;
  const std::string message(model.status().message());
  EXPECT_THAT(message, testing::StartsWith("net.onnx: "));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  return message;
}

// Loop(`inputs`) -> `outputs` with the body `graph`.
std::string Loop(const std::string& inputs, const std::string& outputs, const std::string& graph) {
  return "node { name: 'l' op_type: 'Loop' " + inputs + outputs +
         " attribute { name: 'body' type: GRAPH g { " + graph + " } } }";
}

constexpr char kCountAndCondition[] = "input { name: 'i' } input { name: 'c' } ";
constexpr char kGoesOn[] =
    "node { op_type: 'Identity' input: 'c' output: 'c2' } output { name: 'c2' } ";

// v + i in iteration i, and v + v as an element of the second output.
std::string AddsItsNumber() {
  return std::string(kCountAndCondition) + R"(input { name: "v" }
    node { op_type: "Cast" input: "i" output: "f" attribute { name: "to" type: INT i: 1 } }
    node { op_type: "Add" input: "v" input: "f" output: "v2" }
    node { op_type: "Add" input: "v" input: "v" output: "twice" })" +
         kGoesOn + R"(output { name: "v2" } output { name: "twice" })";
}

TEST(OnnxLoop, CarriesAndStacks) {
  EXPECT_EQ(ValueOf(Loop("input: 'n' input: '' input: 'x' ", "output: 'y' ", AddsItsNumber())),
            (Numbers{2, 5, 6}));
  EXPECT_EQ(ValueOf(Loop("input: 'n' input: 'yes' input: 'x' ", "output: '' output: 'y' ",
                         AddsItsNumber())),
            (Numbers{-2, 4, 6, -2, 4, 6, 0, 6, 8}));
}

TEST(OnnxLoop, NoIteration) {
  const std::string never = R"(node { op_type: "Sub" input: "n" input: "n" output: "zero" })";
  EXPECT_EQ(
      ValueOf(never + Loop("input: 'zero' input: '' input: 'x' ", "output: 'y' ", AddsItsNumber())),
      (Numbers{-1, 2, 3}));
  EXPECT_THAT(LoopError(never + Loop("input: 'zero' input: '' input: 'x' ",
                                     "output: '' output: 'y' ", AddsItsNumber())),
              HasSubstr("node 'l' ('Loop'): its output 1 'y' is empty: it has no iteration"));
  const std::string stopped = R"(node { op_type: "Not" input: "yes" output: "no" })";
  EXPECT_EQ(ValueOf(stopped +
                    Loop("input: 'n' input: 'no' input: 'x' ", "output: 'y' ", AddsItsNumber())),
            (Numbers{-1, 2, 3}));
}

// The condition that the body computes of its number.
TEST(OnnxLoop, StopsByItsCondition) {
  const std::string body = std::string(kCountAndCondition) + R"(input { name: "v" }
    node { op_type: "Mul" input: "v" input: "w" output: "v2" }
    node { op_type: "Less" input: "i" input: "m" output: "c2" }
    output { name: "c2" } output { name: "v2" })";
  EXPECT_EQ(ValueOf(Loop("input: '' input: 'yes' input: 'x' ", "output: 'y' ", body)),
            (Numbers{-0.125, 0.25, 0.375}));
  const auto model = ReadLoop(Loop("input: '' input: '' input: 'x' ", "output: 'y' ", body));
  ASSERT_TRUE(model.ok()) << model.status();
  int weights = 0;  // one, for all iterations
  for (int id = 0; id < model->graph.num_nodes(); ++id) {
    weights += model->graph.node(id).op.kind() == OpKind::kWeight;
  }
  EXPECT_EQ(weights, 1);
}

// All iterations have one parameter where the body has it, also under a name of the graph around.
TEST(OnnxLoop, InitializersOfTheBody) {
  const std::string body = std::string(kCountAndCondition) + R"(input { name: "v" }
    initializer { name: "w" data_type: 1 float_data: 3 }
    node { op_type: "Mul" input: "v" input: "w" output: "v2" })" +
                           kGoesOn + R"(output { name: "v2" })";
  const std::string nodes = Loop("input: 'm' input: '' input: 'x' ", "output: 'z' ", body) +
                            R"(node { op_type: "Mul" input: "z" input: "w" output: "y" })";
  EXPECT_EQ(ValueOf(nodes), (Numbers{-4.5, 9, 13.5}));
  EXPECT_EQ(ReadLoop(nodes)->weights.size(), 2u);
}

// Values that are exchanged, names that are used again, loops in loops, If in a loop.
TEST(OnnxLoop, NamesOfIterationsAreApart) {
  const std::string exchange = std::string(kCountAndCondition) +
                               "input { name: 'a' } input { name: 'b' } " + kGoesOn +
                               "output { name: 'b' } output { name: 'a' }";
  const std::string minus = "node { op_type: 'Neg' input: 'x' output: 'z' }";
  EXPECT_EQ(ValueOf(minus + Loop("input: 'n' input: '' input: 'x' input: 'z' ",
                                 "output: 'y' output: 'q' ", exchange)),
            (Numbers{1, -2, -3}));
  const std::string inner = Loop("input: 'm' input: '' input: 'v' ", "output: 'v2' ", R"(
        input { name: "j" } input { name: "d" } input { name: "u" }
        node { op_type: "Add" input: "i" input: "j" output: "k" }
        node { op_type: "Cast" input: "k" output: "f" attribute { name: "to" type: INT i: 1 } }
        node { op_type: "Equal" input: "k" input: "n" output: "is" }
        node { op_type: "If" input: "is" output: "u2"
          attribute { name: "then_branch" type: GRAPH g {
            node { op_type: "Neg" input: "u" output: "t" } output { name: "t" } } }
          attribute { name: "else_branch" type: GRAPH g {
            node { op_type: "Add" input: "u" input: "f" output: "t" } output { name: "t" } } } }
        node { op_type: "Identity" input: "d" output: "d2" }
        output { name: "d2" } output { name: "u2" })");
  const std::string outer = std::string(kCountAndCondition) + "input { name: 'v' } " + inner +
                            kGoesOn + "output { name: 'v2' }";
  // i + j: 0, 1, then 1, 2, then 2 and, of n, the negative.
  EXPECT_EQ(ValueOf(Loop("input: 'n' input: '' input: 'x' ", "output: 'y' ", outer)),
            (Numbers{-5, -8, -9}));
}

TEST(OnnxLoop, OfDataIsRefused) {
  const std::string sum = R"(node { op_type: "ReduceSum" input: "x" output: "s"
    attribute { name: "keepdims" type: INT i: 0 } }
    node { op_type: "Cast" input: "s" output: "count" attribute { name: "to" type: INT i: 7 } }
    node { op_type: "Cast" input: "s" output: "is" attribute { name: "to" type: INT i: 9 } })";
  EXPECT_EQ(LoopError(sum + Loop("input: 'count' input: '' input: 'x' ", "output: 'y' ",
                                 AddsItsNumber())),
            "net.onnx: node 'l' ('Loop'): its trip count is computed from data; Loop is read where "
            "it is known at import");
  EXPECT_THAT(
      LoopError(sum + Loop("input: 'n' input: 'is' input: 'x' ", "output: 'y' ", AddsItsNumber())),
      HasSubstr("its condition is computed from data"));
  const std::string body = std::string(kCountAndCondition) + R"(input { name: "v" }
    node { op_type: "Add" input: "v" input: "v" output: "v2" }
    node { op_type: "ReduceSum" input: "v2" output: "t"
           attribute { name: "keepdims" type: INT i: 0 } }
    node { op_type: "Less" input: "t" input: "w" output: "c2" }
    output { name: "c2" } output { name: "v2" })";
  EXPECT_THAT(LoopError(Loop("input: '' input: '' input: 'x' ", "output: 'y' ", body)),
              HasSubstr("whether an iteration follows on number 1 is computed from data"));
}

TEST(OnnxLoop, ThatDoesNotEndIsRefused) {
  const std::string body =
      std::string(kCountAndCondition) + "input { name: 'v' } " + kGoesOn + "output { name: 'v' }";
  EXPECT_THAT(LoopError(Loop("input: '' input: '' input: 'x' ", "output: 'y' ", body)),
              HasSubstr("node 'l' ('Loop'): it is too large to be unrolled"));
}

TEST(OnnxLoop, MisuseIsNamed) {
  const std::string carried = "input: 'n' input: '' input: 'x' ";
  EXPECT_THAT(LoopError("node { name: 'l' op_type: 'Loop' input: 'n' input: '' input: 'x' "
                        "output: 'y' }"),
              HasSubstr("node 'l' ('Loop'): it lacks the graph 'body'"));
  EXPECT_THAT(LoopError(Loop(carried, "output: 'y' ",
                             "input { name: 'i' } node { op_type: 'Neg' input: 'x' output: 'c2' } "
                             "output { name: 'c2' }")),
              HasSubstr("it carries 1 values and has 1 outputs, but its body has 1 inputs and 1 "
                        "outputs"));
  EXPECT_THAT(LoopError(Loop(carried, "output: 'y' ",
                             std::string(kCountAndCondition) + "input { name: 'c' } " + kGoesOn +
                                 "output { name: 'x' }")),
              HasSubstr("its body has the input 'c' twice"));
  EXPECT_THAT(LoopError(Loop(carried, "output: 'y' ",
                             std::string(kCountAndCondition) + "input { name: 'v' } " + kGoesOn +
                                 "node { op_type: 'Neg' input: 'x' output: 'v' } "
                                 "output { name: 'v' }")),
              HasSubstr("its body defines its input 'v'"));
  EXPECT_THAT(LoopError(Loop(carried, "output: 'y' ",
                             std::string(kCountAndCondition) + "input { name: 'v' } " + kGoesOn +
                                 "node { name: 'f' op_type: 'Frob' input: 'v' output: 'u' } "
                                 "output { name: 'u' }")),
              HasSubstr("node 'l' ('Loop'): iteration 1: node 'f' ('Frob'): unknown operator"));
}

// What is refused inside of a body is listed once.
TEST(OnnxLoop, UnsupportedNodesInside) {
  const std::string body = std::string(kCountAndCondition) + "input { name: 'v' } " + kGoesOn +
                           "node { name: 'f' op_type: 'Frob' input: 'v' output: 'u' } "
                           "output { name: 'u' }";
  const auto lines = ListUnsupported(
      LoopFile(Loop("input: 'n' input: '' input: 'x' ", "output: 'y' ", body)), "net.onnx");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("Frob (domain ai.onnx, opset 18): 1 node, node 'f' ('Frob'): "
                                  "unknown operator"));
}

std::string Scan(const std::string& attributes, const std::string& body) {
  return R"(node { op_type: "Unsqueeze" input: "x" input: "axis" output: "row" }
    node { op_type: "Unsqueeze" input: "w" input: "axis" output: "begin" }
    node { op_type: "Concat" input: "row" input: "row" output: "rows"
           attribute { name: "axis" type: INT i: 0 } }
    node { name: "s" op_type: "Scan" input: "begin" input: "rows" output: "last" output: "y")" +
         attributes + "attribute { name: 'body' type: GRAPH g { " + body + " } } }";
}
constexpr char kOneScanned[] =
    "attribute { name: 'num_scan_inputs' type: INT i: 1 } "
    "attribute { name: 'scan_input_axes' type: INTS ints: -1 } ";
// The sum of what was scanned so far.
constexpr char kSums[] = R"(input { name: "h" } input { name: "column" }
    node { op_type: "Add" input: "h" input: "column" output: "h2" }
    node { op_type: "Identity" input: "h2" output: "sum" }
    output { name: "h2" } output { name: "sum" })";

// Columns of [[-1, 2, 3], [-1, 2, 3]].
TEST(OnnxScan, AxesAndDirections) {
  EXPECT_EQ(ValueOf(Scan(kOneScanned, kSums)), (Numbers{-0.5, -0.5, 1.5, 1.5, 4.5, 4.5}));
  const std::string backwards =
      "attribute { name: 'scan_input_directions' type: INTS ints: 1 } "
      "attribute { name: 'scan_output_axes' type: INTS ints: 1 } ";
  EXPECT_EQ(ValueOf(Scan(kOneScanned + backwards, kSums)), (Numbers{3.5, 5.5, 4.5, 3.5, 5.5, 4.5}));
  const std::string prepended = "attribute { name: 'scan_output_directions' type: INTS ints: 1 } ";
  EXPECT_EQ(ValueOf(Scan(kOneScanned + prepended, kSums)),
            (Numbers{4.5, 4.5, 1.5, 1.5, -0.5, -0.5}));
}

TEST(OnnxScan, MisuseIsNamed) {
  EXPECT_THAT(LoopError(Scan("", kSums)),
              HasSubstr("node 's' ('Scan'): it has 2 inputs, of which 0 are scanned"));
  EXPECT_THAT(LoopError(Scan("attribute { name: 'num_scan_inputs' type: INT i: 1 } "
                             "attribute { name: 'scan_input_axes' type: INTS ints: 2 } ",
                             kSums)),
              AllOf(HasSubstr("node 's' ('Scan')"), HasSubstr("axis 2")));
  EXPECT_THAT(LoopError(Scan("attribute { name: 'num_scan_inputs' type: INT i: 1 } "
                             "attribute { name: 'scan_input_axes' type: INTS ints: 0 ints: 0 } ",
                             kSums)),
              HasSubstr("its attribute 'scan_input_axes' has 2 values, not 1"));
}

TEST(OnnxSequences, AreWhatOperatorsMakeThem) {
  const std::string split = R"(node { op_type: "SplitToSequence" input: "x" output: "s" })";
  auto concat = [](const std::string& of, int new_axis) {
    return "node { name: 'c' op_type: 'ConcatFromSequence' input: '" + of +
           "' output: 'y' attribute { name: 'axis' type: INT i: 0 } "
           "attribute { name: 'new_axis' type: INT i: " +
           std::to_string(new_axis) + " } }";
  };
  EXPECT_EQ(ValueOf(split + concat("s", 0)), (Numbers{-1, 2, 3}));
  EXPECT_EQ(ValueOf(split + concat("s", 1)), (Numbers{-1, 2, 3}));
  const std::string changed = R"(
    node { op_type: "Neg" input: "n" output: "minus" }
    node { op_type: "SequenceAt" input: "s" input: "minus" output: "first" }
    node { op_type: "SequenceInsert" input: "s" input: "first" input: "m" output: "t" }
    node { op_type: "SequenceErase" input: "t" input: "minus" output: "u" })";
  EXPECT_EQ(ValueOf(split + changed + concat("t", 0)), (Numbers{-1, 2, -1, 3}));
  EXPECT_EQ(ValueOf(split + changed + concat("u", 0)), (Numbers{-1, -1, 3}));
  const std::string made = R"(
    node { op_type: "SequenceEmpty" output: "e" }
    node { op_type: "SequenceInsert" input: "e" input: "x" output: "e1" }
    node { op_type: "SequenceConstruct" input: "x" input: "w" output: "k" }
    node { op_type: "SequenceLength" input: "k" output: "length" }
    node { op_type: "Cast" input: "length" output: "f" attribute { name: "to" type: INT i: 1 } }
    node { op_type: "Mul" input: "x" input: "f" output: "z" }
    node { op_type: "SequenceInsert" input: "e1" input: "z" output: "e2" })";
  EXPECT_EQ(ValueOf(made + concat("e2", 1)), (Numbers{-1, 2, 3, -2, 4, 6}));
  EXPECT_THAT(LoopError(made + concat("e", 0)),
              HasSubstr("node 'c' ('ConcatFromSequence'): a sequence of no tensors has no value"));
  EXPECT_THAT(LoopError(made + concat("x", 0)),
              HasSubstr("the sequence 'x' is not one that the file makes"));
  EXPECT_THAT(LoopError(made + R"(node { name: "a" op_type: "SequenceAt" input: "k" input: "n"
                                 output: "y" })"),
              HasSubstr("node 'a' ('SequenceAt'): its position 3 is none in a sequence of 2"));
  EXPECT_THAT(LoopError(made + R"(node { name: "a" op_type: "SequenceConstruct" input: "x"
                                 input: "k" output: "q" })" +
                        concat("q", 0)),
              HasSubstr("node 'a' ('SequenceConstruct'): its element 'k' is no tensor"));
  EXPECT_THAT(LoopError(made + R"(node { name: "a" op_type: "Neg" input: "k" output: "y" })"),
              HasSubstr("'k' is a sequence, and it takes a tensor"));
}

// A list that a loop grows, as PyTorch's scripts do.
TEST(OnnxSequences, AreCarriedByLoops) {
  const std::string body = std::string(kCountAndCondition) + R"(input { name: "v" }
    input { name: "list" }
    node { op_type: "Add" input: "v" input: "w" output: "v2" }
    node { op_type: "SequenceInsert" input: "list" input: "v2" output: "list2" })" +
                           kGoesOn + "output { name: 'v2' } output { name: 'list2' }";
  EXPECT_EQ(ValueOf(R"(node { op_type: "SequenceEmpty" output: "e" })" +
                    Loop("input: 'm' input: '' input: 'x' input: 'e' ",
                         "output: 'v' output: 'all' ", body) +
                    R"(node { op_type: "ConcatFromSequence" input: "all" output: "y"
                       attribute { name: "axis" type: INT i: 0 } })"),
            (Numbers{-0.5, 2.5, 3.5, 0, 3, 4}));
}

}  // namespace
}  // namespace isomer
