// Functions that a file defines: what calls of them become, and files that misuse them.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
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
using testing::HasSubstr;

constexpr char kStart[] = R"(
  ir_version: 8
  opset_import { domain: "" version: 18 }
  opset_import { domain: "my" version: 1 }
)";
// y of the shape of x [2].
constexpr char kEnds[] = R"(
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  output { name: "y" }
)";

// A file of functions and the nodes of its graph.
std::string File(const std::string& functions, const std::string& nodes) {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      kStart + functions + "graph { " + kEnds + nodes + " }", &model));
  return model.SerializeAsString();
}

std::string CallOf(const std::string& function, const std::string& inputs = R"(input: "x")") {
  return R"(node { domain: "my" op_type: ")" + function + R"(" )" + inputs + R"( output: "y" })";
}

absl::StatusOr<Model> Read(const std::string& functions, const std::string& nodes) {
  return ParseOnnx(File(functions, nodes), "net.onnx");
}

// y for x = [-2, 3].
std::vector<double> Result(const std::string& functions, const std::string& nodes) {
  return ModelValue(Read(functions, nodes), {-2, 3});
}

std::string ErrorOf(const std::string& functions, const std::string& nodes) {
  const absl::StatusOr<Model> model = Read(functions, nodes);
  EXPECT_FALSE(model.ok());
  const std::string message(model.status().message());
  EXPECT_THAT(message, testing::StartsWith("net.onnx: "));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  return message;
}

using Numbers = std::vector<double>;

// b - a, where b is optional: an input left out is left out for the nodes inside.
constexpr char kMinus[] = R"(functions {
  name: "Minus" domain: "my" input: "a" input: "b" output: "c"
  opset_import { domain: "" version: 18 }
  node { op_type: "Neg" input: "a" output: "t" }
  node { op_type: "Add" input: "b" input: "t" output: "c" }
})";
constexpr char kSlope[] = R"(functions {
  name: "Slope" domain: "my" input: "a" output: "b" attribute: "alpha"
  opset_import { domain: "" version: 18 }
  node { op_type: "LeakyRelu" input: "a" output: "b" name: "relu"
         attribute { name: "alpha" type: FLOAT ref_attr_name: "alpha" } }
})";

TEST(OnnxFunctions, NamesInsideAreNewOnes) {
  // The graph has tensors of the names inside of the function, and of those that they become.
  const std::string nodes = R"(
    node { op_type: "Abs" input: "x" output: "t" }
    node { op_type: "Abs" input: "t" output: "y/t" }
    node { domain: "my" op_type: "Minus" input: "t" input: "y/t" output: "c" }
    node { domain: "my" op_type: "Minus" input: "c" input: "x" output: "y" })";
  EXPECT_EQ(Result(kMinus, nodes), (Numbers{-2, 3}));
  EXPECT_EQ(Result(kMinus, CallOf("Minus", R"(input: "x" input: "x")")), (Numbers{0, 0}));
}

TEST(OnnxFunctions, AttributesAreThoseOfTheCall) {
  const std::string call = R"(node { domain: "my" op_type: "Slope" input: "x" output: "y"
    attribute { name: "alpha" type: FLOAT f: 0.5 } })";
  EXPECT_EQ(Result(kSlope, call), (Numbers{-1, 3}));
  // Without a value the node is without the attribute, which then has its default.
  const Numbers without = Result(kSlope, CallOf("Slope"));
  ASSERT_EQ(without.size(), 2u);
  EXPECT_NEAR(without[0], -0.02, 1e-7);
  const std::string with_default = R"(functions {
    name: "Slope" domain: "my" input: "a" output: "b"
    attribute_proto { name: "alpha" type: FLOAT f: 0.25 }
    node { op_type: "LeakyRelu" input: "a" output: "b"
           attribute { name: "alpha" type: FLOAT ref_attr_name: "alpha" } }
  })";
  EXPECT_EQ(Result(with_default, CallOf("Slope")), (Numbers{-0.5, 3}));
  EXPECT_EQ(Result(with_default, call), (Numbers{-1, 3}));
}

TEST(OnnxFunctions, ConstantsOfAttributes) {
  const std::string times = R"(functions {
    name: "Times" domain: "my" input: "a" output: "b" attribute: "factor"
    node { op_type: "Constant" output: "c"
           attribute { name: "value_float" type: FLOAT ref_attr_name: "factor" } }
    node { op_type: "Mul" input: "a" input: "c" output: "b" }
  })";
  EXPECT_EQ(Result(times, R"(node { domain: "my" op_type: "Times" input: "x" output: "y"
                             attribute { name: "factor" type: FLOAT f: 4 } })"),
            (Numbers{-8, 12}));
  EXPECT_THAT(ErrorOf(times, CallOf("Times")),
              AllOf(HasSubstr("node of 'y/c' ('Constant') of function 'my::Times'"),
                    HasSubstr("0 attributes")));
}

TEST(OnnxFunctions, FunctionsInsideOfFunctions) {
  const std::string twice = R"(functions {
    name: "Twice" domain: "my" input: "a" output: "c" attribute: "slope"
    node { domain: "my" op_type: "Slope" input: "a" output: "b"
           attribute { name: "alpha" type: FLOAT ref_attr_name: "slope" } }
    node { domain: "my" op_type: "Slope" input: "b" output: "c"
           attribute { name: "alpha" type: FLOAT ref_attr_name: "slope" } }
  })";
  EXPECT_EQ(Result(twice + std::string(kSlope),
                   R"(node { domain: "my" op_type: "Twice" input: "x" output: "y"
                      attribute { name: "slope" type: FLOAT f: 0.5 } })"),
            (Numbers{-0.5, 3}));
}

// Softmax meant all dims from its axis (1) on before opset 13, and one dim, the last, from then on.
TEST(OnnxFunctions, OpsetIsThatOfTheFunction) {
  const std::string old = R"(functions {
    name: "Old" domain: "my" input: "a" output: "b" opset_import { domain: "" version: 12 }
    node { op_type: "Constant" output: "shape" attribute { name: "value_ints" type: INTS
           ints: 1 ints: 2 ints: 1 } }
    node { op_type: "Reshape" input: "a" input: "shape" output: "r" }
    node { op_type: "Softmax" input: "r" output: "s" }
    node { op_type: "Constant" output: "back" attribute { name: "value_ints" type: INTS ints: 2 } }
    node { op_type: "Reshape" input: "s" input: "back" output: "b" }
  })";
  const Numbers result = Result(old, CallOf("Old"));
  ASSERT_EQ(result.size(), 2u);
  EXPECT_NEAR(result[0], 1 / (1 + std::exp(5.0)), 1e-7);
  std::string now = old;
  now.replace(now.find("version: 12"), 11, "version: 18");
  EXPECT_EQ(Result(now, CallOf("Old")), (Numbers{1, 1}));
}

// The branches of an If see the names of the function that it lies in, and its opset.
TEST(OnnxFunctions, BranchesInside) {
  const std::string function = R"(functions {
    name: "Branch" domain: "my" input: "a" output: "c" attribute: "yes"
    node { op_type: "Neg" input: "a" output: "t" }
    node { op_type: "Constant" output: "i"
           attribute { name: "value_int" type: INT ref_attr_name: "yes" } }
    node { op_type: "Cast" input: "i" output: "is" attribute { name: "to" type: INT i: 9 } }
    node { op_type: "If" input: "is" output: "c"
      attribute { name: "then_branch" type: GRAPH g {
        node { domain: "my" op_type: "Slope" input: "t" output: "x"
               attribute { name: "alpha" type: FLOAT f: 0.5 } }
        node { op_type: "Add" input: "x" input: "a" output: "out" }
        output { name: "out" } } }
      attribute { name: "else_branch" type: GRAPH g {
        node { op_type: "Identity" input: "t" output: "out" }
        output { name: "out" } } } }
  })";
  auto call = [](int yes) {
    return R"(node { domain: "my" op_type: "Branch" input: "x" output: "y"
              attribute { name: "yes" type: INT i: )" +
           std::to_string(yes) + " } }";
  };
  EXPECT_EQ(Result(function + std::string(kSlope), call(1)), (Numbers{0, 1.5}));
  EXPECT_EQ(Result(function + std::string(kSlope), call(0)), (Numbers{2, -3}));
}

TEST(OnnxFunctions, OutputsThatAreInputsOrNotWanted) {
  const std::string both = R"(functions {
    name: "Both" domain: "my" input: "a" output: "a" output: "b"
    node { op_type: "Neg" input: "a" output: "b" }
  })";
  EXPECT_EQ(Result(both, CallOf("Both")), (Numbers{-2, 3}));
  EXPECT_EQ(Result(both, R"(node { domain: "my" op_type: "Both" input: "x" output: ""
                            output: "y" })"),
            (Numbers{2, -3}));
}

TEST(OnnxFunctions, OverloadsAreApart) {
  const std::string two = R"(
    functions { name: "F" domain: "my" overload: "neg" input: "a" output: "b"
                node { op_type: "Neg" input: "a" output: "b" } }
    functions { name: "F" domain: "my" overload: "abs" input: "a" output: "b"
                node { op_type: "Abs" input: "a" output: "b" } })";
  const std::string call =
      R"(node { domain: "my" op_type: "F" overload: "abs" input: "x" output: "y" })";
  EXPECT_EQ(Result(two, call), (Numbers{2, 3}));
  EXPECT_THAT(ErrorOf(two, CallOf("F")), HasSubstr("unknown operators"));
}

TEST(OnnxFunctions, CallsWithoutEnd) {
  const std::string self = R"(functions { name: "F" domain: "my" input: "a" output: "b"
    node { domain: "my" op_type: "F" input: "a" output: "b" } })";
  EXPECT_THAT(ErrorOf(self, CallOf("F")),
              AllOf(HasSubstr("node of 'y' ('F')"), HasSubstr("'my::F': it calls itself")));
  const std::string in_branch = R"(
    functions { name: "F" domain: "my" input: "a" output: "b"
      node { domain: "my" op_type: "G" input: "a" output: "b" } }
    functions { name: "G" domain: "my" input: "a" output: "b"
      node { op_type: "If" input: "a" output: "b"
        attribute { name: "then_branch" type: GRAPH g {
          node { domain: "my" op_type: "F" input: "a" output: "c" } output { name: "c" } } } } })";
  EXPECT_THAT(ErrorOf(in_branch, CallOf("F")), HasSubstr("calls itself"));
  // One that nothing calls does no harm.
  EXPECT_EQ(Result(self, R"(node { op_type: "Neg" input: "x" output: "y" })"), (Numbers{2, -3}));
}

// F0 calls F1 twice, which calls F2 twice, and so on.
std::string Doubling(int levels, const std::string& last) {
  std::string functions;
  for (int i = 0; i < levels; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    functions += R"(functions { name: "F)" + std::to_string(i) +
                 R"(" domain: "my" input: "a" output: "c"
      node { domain: "my" op_type: ")" +
                 next + R"(" input: "a" output: "b" }
      node { domain: "my" op_type: ")" +
                 next + R"(" input: "b" output: "c" } })";
  }
  return functions + R"(functions { name: "F)" + std::to_string(levels) +
         R"(" domain: "my" input: "a" output: "b" )" + last + " }";
}

TEST(OnnxFunctions, HugeExpansion) {
  const std::string negate = R"(node { op_type: "Neg" input: "a" output: "b" })";
  EXPECT_EQ(Result(Doubling(4, negate), CallOf("F0")), (Numbers{-2, 3}));
  EXPECT_THAT(ErrorOf(Doubling(40, negate), CallOf("F0")), HasSubstr("too large"));
  EXPECT_THAT(ErrorOf(Doubling(80, negate), CallOf("F0")), HasSubstr("more than 64 deep"));
  // Few nodes, of large names and attributes.
  const std::string name(1 << 20, 'n');
  EXPECT_THAT(ErrorOf(Doubling(12, R"(node { op_type: "Neg" input: "a" output: ")" + name +
                                       R"(" } node { op_type: "Neg" input: ")" + name +
                                       R"(" output: "b" })"),
                      CallOf("F0")),
              HasSubstr("too large"));
}

// Calls that leave out almost all of a million inputs.
TEST(OnnxFunctions, ManyInputsLeftOut) {
  std::string function = R"(functions { name: "F" domain: "my" output: "b"
    node { op_type: "Neg" input: "i0" output: "b" } )";
  for (int i = 0; i < 100000; ++i) function += "input: 'i" + std::to_string(i) + "' ";
  std::string nodes;
  for (int i = 0; i < 2000; ++i) {
    nodes += "node { domain: 'my' op_type: 'F' input: 'x' output: 'y" + std::to_string(i) + "' }";
  }
  EXPECT_THAT(ErrorOf(function + "}", nodes), HasSubstr("too large"));
}

// Ten branches inside of each other in each of ten functions that call each other there.
TEST(OnnxFunctions, BranchesInsideOfBranches) {
  std::string functions;
  for (int i = 0; i < 10; ++i) {
    std::string inside = i == 9 ? R"(node { op_type: "Neg" input: "a" output: "c" })"
                                : R"(node { domain: "my" op_type: "F)" + std::to_string(i + 1) +
                                      R"(" input: "a" output: "c" })";
    for (int depth = 0; depth < 10; ++depth) {
      inside = R"(node { op_type: "Constant" output: "i" attribute { name: "value_int" type: INT
                         i: 1 } }
        node { op_type: "If" input: "i" output: "c" attribute { name: "then_branch" type: GRAPH
          g { )" +
               inside + R"( output { name: "c" } } } })";
    }
    functions += R"(functions { name: "F)" + std::to_string(i) +
                 R"(" domain: "my" input: "a" output: "c" )" + inside + " }";
  }
  EXPECT_THAT(ErrorOf(functions, CallOf("F0")), HasSubstr("more than 64 deep"));
  EXPECT_EQ(Result(functions, CallOf("F5")), (Numbers{2, -3}));
}

// Changed bytes give a model or one line.
TEST(OnnxFunctions, ChangedBytes) {
  std::mt19937 generator(11);
  const std::string bytes = File(Doubling(3, R"(node { op_type: "Neg" input: "a" output: "b" })") +
                                     std::string(kMinus) + std::string(kSlope),
                                 CallOf("F0"));
  for (int trial = 0; trial < 3000; ++trial) {
    std::string changed = bytes;
    for (int i = 0; i < 1 + trial % 3; ++i) {
      changed[generator() % changed.size()] = static_cast<char>(generator());
    }
    const absl::StatusOr<Model> model = ParseOnnx(changed, "net.onnx");
    if (!model.ok()) {
      EXPECT_EQ(model.status().message().find('\n'), absl::string_view::npos) << model.status();
    }
  }
}

TEST(OnnxFunctions, DefinitionsThatAreWrong) {
  auto function = [](const std::string& rest) {
    return R"(functions { name: "F" domain: "my" input: "a" output: "b" )" + rest + " }";
  };
  const std::string body = R"(node { op_type: "Neg" input: "a" output: "b" })";
  auto error = [&](const std::string& functions) { return ErrorOf(functions, CallOf("F")); };
  EXPECT_THAT(error(function(body) + function(body)), HasSubstr("'my::F': it is defined a second"));
  EXPECT_THAT(error(function("")), HasSubstr("its output 'b' is defined by no node"));
  EXPECT_THAT(error(function(body + body)), HasSubstr("'b' is defined a second time"));
  EXPECT_THAT(error(function(R"(node { op_type: "Neg" input: "b" output: "a" })")),
              HasSubstr("'a' is defined a second time"));
  // A name of the graph is none of the function.
  EXPECT_THAT(error(function(R"(node { op_type: "Neg" input: "x" output: "b" })")),
              HasSubstr("it takes 'x', which the function does not define"));
  EXPECT_THAT(error(function(body + R"(opset_import { version: 27 })")),
              HasSubstr("opset 27; 1 to 26 are read"));
  EXPECT_THAT(error(function(R"(attribute: "k" attribute: "k" )" + body)), HasSubstr("'k' twice"));
  EXPECT_THAT(error(function(R"(output: "b" )" + body)), HasSubstr("the output 'b' twice"));
  EXPECT_THAT(error(function(R"(node { op_type: "Elu" input: "a" output: "b"
                attribute { name: "alpha" type: FLOAT ref_attr_name: "k" } })")),
              HasSubstr("the attribute 'k', which the function does not have"));
  EXPECT_THAT(error(function(R"(node { op_type: "Neg" input: "c" output: "b" }
                                node { op_type: "Neg" input: "b" output: "c" })")),
              HasSubstr("on or behind a cycle"));
}

TEST(OnnxFunctions, CallsThatAreWrong) {
  EXPECT_THAT(ErrorOf(kMinus, CallOf("Minus", R"(input: "x" input: "x" input: "x")")),
              HasSubstr("3 inputs and 1 outputs, the function 2 and 1"));
  EXPECT_THAT(ErrorOf(kMinus, CallOf("Minus")), HasSubstr("input 0 is missing"));
  EXPECT_THAT(ErrorOf(kMinus, R"(node { domain: "my" op_type: "Minus" input: "x" input: "x"
                                 output: "y" attribute { name: "k" type: INT i: 1 } })"),
              HasSubstr("it has no attribute 'k'"));
  EXPECT_THAT(ErrorOf(kSlope, R"(node { domain: "my" op_type: "Slope" input: "x" output: "y"
                                 attribute { name: "alpha" type: INT i: 1 } })"),
              HasSubstr("'alpha' is of type INT, not FLOAT"));
  EXPECT_THAT(ErrorOf(kSlope, R"(node { domain: "my" op_type: "Slope" input: "x" output: "y"
                                 attribute { name: "alpha" type: GRAPH g { } } })"),
              HasSubstr("is a graph"));
  EXPECT_THAT(ErrorOf("", R"(node { op_type: "Elu" input: "x" output: "y"
                attribute { name: "alpha" type: FLOAT ref_attr_name: "k" } })"),
              HasSubstr("is that of a function, but the node is in none"));
  EXPECT_THAT(ErrorOf(kSlope, R"(node { domain: "my" op_type: "Slope" input: "x" })"),
              HasSubstr("it has no output"));
}

}  // namespace
}  // namespace isomer
