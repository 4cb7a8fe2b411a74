#include "tests/verifier/true_rules.h"

#include "tests/verifier/rule_from_text.h"

namespace isomer {
namespace {

using Ranks = std::vector<std::vector<int>>;
using Conditions = std::vector<Condition>;

const Ranks kAny = {{1}, {2}, {3}};
const Ranks kPairs = {{1, 1}, {2, 2}, {3, 3}};
const Ranks kMatMuls = {{2, 2}, {3, 3}, {3, 2}};

Condition AxisDivides(const char* axis, int input = 0) {
  Condition condition = Divides("d", input, -1);
  condition.right = IntExpr::Variable(axis);
  return condition;
}

IntExpr Axis(const char* name) { return IntExpr::Variable(name); }

}  // namespace

std::vector<Rule> TrueRules() {
  return {
      // Cancellation and commutation of parallel operators.
      RuleFromText("combine(partition(x0; axis=a, degree=d); axis=a, degree=d) -> x0", kAny),
      RuleFromText("partition(combine(x0; axis=a, degree=d); axis=a, degree=d) -> x0", kAny),
      RuleFromText("partition(partition(x0; axis=a, degree=d); axis=a, degree=e) -> "
                   "partition(x0; axis=a, degree=d*e)",
                   kAny),
      RuleFromText("reduce(combine(x0; axis=a, degree=d); degree=e) -> "
                   "combine(reduce(x0; degree=e); axis=a, degree=d)",
                   kAny),
      RuleFromText("partition(partition(x0; axis=a, degree=d); axis=b, degree=e) -> "
                   "partition(partition(x0; axis=b, degree=e); axis=a, degree=d)",
                   {{2}, {3}}),
      // Partitions of operators.
      RuleFromText("matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), "
                   "replicate(x1; degree=d)); axis=-2, degree=d)",
                   kMatMuls, {Divides("d", 0, -2)}),
      RuleFromText("matmul(x0, x1) -> combine(matmul(replicate(x0; degree=d), "
                   "partition(x1; axis=-1, degree=d)); axis=-1, degree=d)",
                   kMatMuls, {Divides("d", 1, -1)}),
      RuleFromText("matmul(x0, x1) -> reduce(matmul(partition(x0; axis=-1, degree=d), "
                   "partition(x1; axis=-2, degree=d)); degree=d)",
                   kMatMuls, {Divides("d", 0, -1)}),
      RuleFromText("relu(x0) -> combine(relu(partition(x0; axis=a, degree=d)); axis=a, degree=d)",
                   kAny, {AxisDivides("a")}),
      RuleFromText("add(x0, x1) -> combine(add(partition(x0; axis=a, degree=d), "
                   "partition(x1; axis=a, degree=d)); axis=a, degree=d)",
                   kPairs, {AxisDivides("a"), SameType(0, 1)}),
      RuleFromText("softmax(x0; axis=a) -> "
                   "combine(softmax(partition(x0; axis=b, degree=d); axis=a); axis=b, degree=d)",
                   {{2}, {3}}, {NotEqual(Axis("a"), Axis("b")), AxisDivides("b")}),
      // Partial sums.
      RuleFromText("matmul(reduce(x0; degree=d), x1) -> "
                   "reduce(matmul(x0, replicate(x1; degree=d)); degree=d)",
                   kMatMuls, {NoPartials(1)}),
      RuleFromText("add(x0, x1) -> reduce(concat_partials(x0, x1); degree=2)", kPairs,
                   {SameType(0, 1)}),
      RuleFromText("scale(reduce(x0; degree=d); factor=f) -> reduce(scale(x0; factor=f); degree=d)",
                   kAny),
      // Algebra.
      RuleFromText("matmul(add(x0, x1), x2) -> add(matmul(x0, x2), matmul(x1, x2))",
                   {{2, 2, 2}, {3, 3, 3}}, {SameType(0, 1)}),
      RuleFromText("add(matmul(x0, x2), matmul(x1, x2)) -> matmul(add(x0, x1), x2)", {{2, 2, 2}},
                   {SameType(0, 1)}),
      RuleFromText("matmul(matmul(x0, x1), x2) -> matmul(x0, matmul(x1, x2))", {{2, 2, 2}},
                   {NoPartials(0), NoPartials(2)}),
      RuleFromText("transpose(matmul(x0, x1); swap=-2:-1) -> "
                   "matmul(transpose(x1; swap=-2:-1), transpose(x0; swap=-2:-1))",
                   kMatMuls),
      RuleFromText("scale(matmul(x0, x1); factor=f) -> matmul(x0, scale(x1; factor=f))", kMatMuls),
      RuleFromText("scale(scale(x0; factor=f); factor=g) -> scale(x0; factor=f*g)", kAny),
      RuleFromText("add(add(x0, x1), x2) -> add(x0, add(x1, x2))", {{1, 1, 1}, {2, 2, 2}}),
      RuleFromText("mul(add(x0, x1), x2) -> add(mul(x0, x2), mul(x1, x2))", {{2, 2, 2}},
                   {SameType(0, 1)}),
      RuleFromText("relu(relu(x0)) -> relu(x0)", kAny),
      RuleFromText("transpose(relu(x0); swap=-3:-1) -> relu(transpose(x0; swap=-3:-1))", {{3}}),
      // Concat and Split.
      RuleFromText("concat(relu(x0), relu(x1); axis=a) -> relu(concat(x0, x1; axis=a))", kPairs),
      RuleFromText("matmul(x0, x1) | matmul(x0, x2) -> "
                   "split(matmul(x0, concat(x1, x2; axis=-1)); axis=-1, "
                   "sizes=[size(x1,-1),size(x2,-1)]).0 | "
                   "split(matmul(x0, concat(x1, x2; axis=-1)); axis=-1, "
                   "sizes=[size(x1,-1),size(x2,-1)]).1",
                   {{2, 2, 2}, {3, 2, 2}},
                   {Unpartitioned(1, -1), Unpartitioned(2, -1), NoPartials(1), NoPartials(2)}),
      RuleFromText("add(matmul(x0, x1), matmul(x2, x3)) -> "
                   "matmul(concat(x0, x2; axis=-1), concat(x1, x3; axis=-2))",
                   {{2, 2, 2, 2}},
                   {Unpartitioned(0, -1), Unpartitioned(2, -1), SameType(0, 2), SameType(1, 3)}),
      RuleFromText("split(concat(x0, x1; axis=a); axis=a, sizes=[n,m]).0 -> x0", kPairs,
                   {EqualTo(Axis("n"), IntExpr::SizeOf(0, "a"))}),
      RuleFromText("concat(split(x0; axis=a, sizes=[n,m]).0, split(x0; axis=a, sizes=[n,m]).1; "
                   "axis=a) -> x0",
                   kAny),
      RuleFromText("add(concat(x0, x1; axis=a), concat(x2, x3; axis=a)) -> "
                   "concat(add(x0, x2), add(x1, x3); axis=a)",
                   {{2, 2, 2, 2}}, {SameType(0, 2), SameType(1, 3)}),
  };
}

std::vector<MutatedRule> Mutants() {
  const char* merged = "split(matmul(x0, concat(x1, x2; axis=-1)); axis=-1, sizes=[";
  const std::string first = "size(x1,-1)", second = "size(x2,-1)";
  const Conditions merging = {Unpartitioned(1, -1), Unpartitioned(2, -1), NoPartials(1),
                              NoPartials(2)};
  const Conditions halves = {SameType(1, 2), Unpartitioned(1, -1)};
  auto merge = [&](const std::string& sizes, int a, int b) {
    const std::string split = merged + sizes + "])";
    return "matmul(x0, x1) | matmul(x0, x2) -> " + split + "." + std::to_string(a) + " | " + split +
           "." + std::to_string(b);
  };
  return {
      {"combine along another axis",
       RuleFromText("combine(partition(x0; axis=-1, degree=d); axis=-2, degree=d) -> x0", {{2}})},
      {"combine by another degree",
       RuleFromText("combine(partition(x0; axis=a, degree=d); axis=a, degree=e) -> x0", kAny)},
      {"combine dropped", RuleFromText("combine(x0; axis=a, degree=d) -> x0", kAny)},
      {"the sum of degrees for their product",
       RuleFromText("partition(partition(x0; axis=a, degree=d); axis=a, degree=e) -> "
                    "partition(x0; axis=a, degree=d)",
                    kAny)},
      {"partition of the other axis twice",
       RuleFromText("partition(partition(x0; axis=a, degree=d); axis=b, degree=e) -> "
                    "partition(partition(x0; axis=b, degree=d); axis=a, degree=e)",
                    {{2}})},
      {"reduce for combine",
       RuleFromText("matmul(x0, x1) -> reduce(matmul(partition(x0; axis=-2, degree=d), "
                    "replicate(x1; degree=d)); degree=d)",
                    kMatMuls, {Divides("d", 0, -2)})},
      {"replicate missing",
       RuleFromText("matmul(x0, x1) -> combine(matmul(partition(x0; axis=-2, degree=d), x1); "
                    "axis=-2, degree=d)",
                    kMatMuls, {Divides("d", 0, -2)})},
      {"rows of the wrong operand",
       RuleFromText("matmul(x0, x1) -> combine(matmul(replicate(x0; degree=d), "
                    "partition(x1; axis=-2, degree=d)); axis=-2, degree=d)",
                    kMatMuls, {Divides("d", 1, -2)})},
      {"columns combined as rows",
       RuleFromText("matmul(x0, x1) -> combine(matmul(replicate(x0; degree=d), "
                    "partition(x1; axis=-1, degree=d)); axis=-2, degree=d)",
                    kMatMuls, {Divides("d", 1, -1)})},
      {"reduce dropped", RuleFromText("matmul(x0, x1) -> matmul(partition(x0; axis=-1, degree=d), "
                                      "partition(x1; axis=-2, degree=d))",
                                      kMatMuls, {Divides("d", 0, -1)})},
      {"combine for reduce",
       RuleFromText("matmul(x0, x1) -> combine(matmul(partition(x0; axis=-1, degree=d), "
                    "partition(x1; axis=-2, degree=d)); axis=-1, degree=d)",
                    kMatMuls, {Divides("d", 0, -1)})},
      {"divisibility forgotten",
       RuleFromText("matmul(x0, x1) -> reduce(matmul(partition(x0; axis=-1, degree=d), "
                    "partition(x1; axis=-2, degree=d)); degree=d)",
                    kMatMuls)},
      {"only one operand of the contraction partitioned",
       RuleFromText("matmul(x0, x1) -> reduce(matmul(partition(x0; axis=-1, degree=d), x1); "
                    "degree=d)",
                    kMatMuls, {Divides("d", 0, -1)})},
      {"relu of partials",
       RuleFromText("relu(reduce(x0; degree=d)) -> reduce(relu(x0); degree=d)", kAny)},
      {"softmax partitioned along its axis",
       RuleFromText("softmax(x0; axis=a) -> "
                    "combine(softmax(partition(x0; axis=a, degree=d); axis=a); axis=a, degree=d)",
                    {{2}}, {AxisDivides("a")})},
      {"add of partials to a whole",
       RuleFromText("add(reduce(x0; degree=d), x1) -> "
                    "reduce(add(x0, replicate(x1; degree=d)); degree=d)",
                    {{2, 2}})},
      {"partials of both factors",
       RuleFromText("matmul(reduce(x0; degree=d), reduce(x1; degree=d)) -> "
                    "reduce(matmul(x0, x1); degree=d)",
                    kMatMuls)},
      {"partials of the other operand unspoken of",
       RuleFromText("matmul(reduce(x0; degree=d), x1) -> "
                    "reduce(matmul(x0, replicate(x1; degree=d)); degree=d)",
                    kMatMuls)},
      {"one term too many",
       RuleFromText("add(x0, x1) -> reduce(concat_partials(x0, x1, x1); degree=3)", kPairs,
                    {SameType(0, 1)})},
      {"the first term twice",
       RuleFromText("add(x0, x1) -> reduce(concat_partials(x0, x0); degree=2)", kPairs,
                    {SameType(0, 1)})},
      {"another factor",
       RuleFromText("scale(scale(x0; factor=f); factor=g) -> scale(x0; factor=f)", kAny)},
      {"both factors scaled", RuleFromText("scale(matmul(x0, x1); factor=f) -> "
                                           "matmul(scale(x0; factor=f), scale(x1; factor=f))",
                                           kMatMuls)},
      {"one term scaled",
       RuleFromText("scale(add(x0, x1); factor=f) -> add(x0, scale(x1; factor=f))", kPairs)},
      {"constant factor doubled", RuleFromText("add(x0, x0) -> scale(x0; factor=4.0)", kAny)},
      {"operands exchanged",
       RuleFromText("matmul(x0, x1) -> matmul(x1, x0)", {{2, 2}}, {SameType(0, 1)})},
      {"product transposed without exchange",
       RuleFromText("transpose(matmul(x0, x1); swap=-2:-1) -> "
                    "matmul(transpose(x0; swap=-2:-1), transpose(x1; swap=-2:-1))",
                    {{2, 2}}, {SameType(0, 1)})},
      {"one operand not transposed", RuleFromText("transpose(matmul(x0, x1); swap=-2:-1) -> "
                                                  "matmul(transpose(x1; swap=-2:-1), x0)",
                                                  {{2, 2}})},
      {"other axes transposed",
       RuleFromText("transpose(transpose(x0; swap=-3:-1); swap=-2:-1) -> x0", {{3}})},
      {"distributed into both operands",
       RuleFromText("matmul(add(x0, x1), add(x2, x3)) -> add(matmul(x0, x2), matmul(x1, x3))",
                    {{2, 2, 2, 2}}, {SameType(0, 1), SameType(2, 3)})},
      {"second term lost", RuleFromText("matmul(add(x0, x1), x2) -> add(matmul(x0, x2), x1)",
                                        {{2, 2, 2}}, {SameType(0, 1)})},
      {"relu of a sum", RuleFromText("relu(add(x0, x1)) -> add(relu(x0), relu(x1))", kPairs)},
      {"relu forgotten", RuleFromText("relu(relu(x0)) -> x0", kAny)},
      {"sub for add", RuleFromText("add(x0, x1) -> sub(x0, x1)", kPairs)},
      {"order of a difference", RuleFromText("sub(x0, x1) -> sub(x1, x0)", kPairs)},
      {"concat in another order",
       RuleFromText("concat(relu(x0), relu(x1); axis=a) -> relu(concat(x1, x0; axis=a))", kPairs,
                    {SameType(0, 1)})},
      {"concat along another axis",
       RuleFromText("concat(relu(x0), relu(x1); axis=-1) -> relu(concat(x0, x1; axis=-2))",
                    {{2, 2}}, {SameType(0, 1)})},
      {"parts exchanged", RuleFromText(merge(first + "," + second, 1, 0), {{2, 2, 2}}, halves)},
      {"sizes of parts exchanged",
       RuleFromText(merge(second + "," + first, 0, 1), {{2, 2, 2}}, merging)},
      {"merged over a partitioned axis",
       RuleFromText(merge(first + "," + second, 0, 1), {{2, 2, 2}})},
      {"contraction concatenated along the wrong axis",
       RuleFromText("add(matmul(x0, x1), matmul(x2, x3)) -> "
                    "matmul(concat(x0, x2; axis=-2), concat(x1, x3; axis=-2))",
                    {{2, 2, 2, 2}}, {Unpartitioned(0, -1), SameType(0, 2), SameType(1, 3)})},
      {"first part at the second's place",
       RuleFromText("split(concat(x0, x1; axis=a); axis=a, sizes=[n,m]).1 -> x0", kPairs,
                    {SameType(0, 1), EqualTo(Axis("n"), Axis("m"))})},
      {"part of an unspoken size",
       RuleFromText("split(concat(x0, x1; axis=a); axis=a, sizes=[n,m]).0 -> x0", kPairs)},
      {"crossed terms",
       RuleFromText("add(concat(x0, x1; axis=a), concat(x2, x3; axis=a)) -> "
                    "concat(add(x0, x3), add(x1, x2); axis=a)",
                    {{2, 2, 2, 2}}, {SameType(0, 1), SameType(0, 2), SameType(1, 3)})},
      {"pieces of different sizes added",
       RuleFromText("add(concat(x0, x1; axis=a), concat(x2, x3; axis=a)) -> "
                    "concat(add(x0, x2), add(x1, x3); axis=a)",
                    {{2, 2, 2, 2}})},
      {"copies not counted", RuleFromText("replicate(x0; degree=d) -> x0", kAny)},
      {"matmul associated the wrong way",
       RuleFromText("matmul(matmul(x0, x1), x2) -> matmul(x0, matmul(x2, x1))", {{2, 2, 2}},
                    {SameType(0, 1), SameType(1, 2)})},
  };
}

}  // namespace isomer
