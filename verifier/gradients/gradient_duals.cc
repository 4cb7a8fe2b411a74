#include "verifier/gradients/gradient_duals.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/terms/rule_instance.h"
#include "verifier/terms/smt.h"
#include "verifier/types/type_form.h"

namespace isomer {
namespace {

bool HasAxis(OpKind kind) {
  return kind != OpKind::kReplicate && kind != OpKind::kReduce && kind != OpKind::kConcatPartials;
}

Operator OperatorOf(OpKind kind, int64_t axis, int64_t degree) {
  if (kind == OpKind::kConcatPartials) return Operator(kind);
  if (HasAxis(kind)) return Operator(kind, {{"axis", axis}, {"degree", degree}});
  return Operator(kind, {{"degree", degree}});
}

PatternNode NodeOf(OpKind kind, int64_t axis) {
  PatternNode node{kind, {}, {PatternRef::Input(0)}};
  if (HasAxis(kind)) node.attributes.push_back({"axis", IntExpr::Constant(axis)});
  node.attributes.push_back({"degree", IntExpr::Variable("d")});
  return node;
}

// The gradient's type: copies and partials change places.
TypeForm Swapped(TypeForm type) {
  std::swap(type.copies, type.partials);
  return type;
}

ExponentFact Equal(const Extent& a, const Extent& b, std::string text) {
  ExponentFact fact;
  fact.left = a;
  fact.right = b;
  fact.text = std::move(text);
  return fact;
}

// That two tensors are held alike.
void AddEqual(const TypeForm& a, const TypeForm& b, std::vector<ExponentFact>* facts) {
  for (size_t i = 0; i < a.degrees.size(); ++i) {
    facts->push_back(Equal(a.degrees[i], b.degrees[i], absl::StrCat("the degree of dim ", i)));
  }
  facts->push_back(Equal(a.copies, b.copies, "the number of copies"));
  facts->push_back(Equal(a.partials, b.partials, "the number of partials"));
}

absl::Status NoGradient(OpKind kind, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the dual of ", OpName(kind), " is not its gradient: ", why));
}

absl::Status ProveDualTypesAt(OpKind kind, const Duals& duals, int rank, int64_t axis) {
  Rule rule;
  rule.num_inputs = 1;
  rule.variables = {{"d", VariableKind::kDegree}};
  rule.ranks = {{rank}};
  rule.source = {{NodeOf(kind, axis)}, {PatternRef::Node(0, 0)}};
  rule.target = rule.source;
  ISOMER_ASSIGN_OR_RETURN(const std::vector<RuleInstance> instances, InstancesOf(rule));
  // A degree that none of the duals has for another reason.
  constexpr int64_t kDegree = 7;
  const std::vector<Operator> chain = duals(OperatorOf(kind, axis, kDegree));
  for (const RuleInstance& instance : instances) {
    TypeEncoder encoder(instance, 0);
    std::vector<ExponentFact> hypotheses, conclusions;
    std::vector<TypeForm> made;
    encoder.AddCall(instance.source[0], {encoder.inputs()[0]}, {false}, &hypotheses, &made);
    TypeForm gradient = Swapped(made[0]);
    for (const Operator& dual : chain) {
      if (!IsParallel(dual.kind())) continue;  // Its type is its operand's, or evaluation tells.
      const bool same_axis = !HasAxis(dual.kind()) || dual.Int("axis") == axis;
      if (dual.Int("degree") != kDegree || (HasAxis(dual.kind()) && !HasAxis(kind)) || !same_axis) {
        return NoGradient(kind, absl::StrCat(dual.ToString(), " has another axis or degree"));
      }
      const PatternNode node = NodeOf(dual.kind(), axis);
      Call call;
      call.node = &node;
      call.outputs = instance.source[0].outputs;
      call.axis = instance.source[0].axis;
      std::vector<TypeForm> next;
      encoder.AddCall(call, {gradient}, {false}, &conclusions, &next);
      gradient = next[0];
    }
    AddEqual(gradient, Swapped(encoder.inputs()[0]), &conclusions);
    for (const ExponentFact& fact : encoder.base_facts()) hypotheses.push_back(fact);
    const ExponentAnswer answer = DecideExponents(hypotheses, conclusions);
    if (answer.verdict == SmtVerdict::kValid) continue;
    return NoGradient(
        kind, answer.failed < 0 ? "not decided" : conclusions[answer.failed].text + " differs");
  }
  return instances.empty() ? NoGradient(kind, "it never type-checks") : absl::OkStatus();
}

Value<PrimeField> RandomValueOf(const TensorType& type, uint64_t seed) {
  Value<PrimeField> value{type, {}};
  for (int64_t p = 0; p < type.micro_batches * type.partials; ++p) {
    Array<PrimeField> part(type.Sizes());
    for (int64_t i = 0; i < part.size(); ++i) {
      part.data[i] = PrimeField::FromRaw(
          HashCombine(seed, static_cast<uint64_t>(p), static_cast<uint64_t>(i)) >> 4);
    }
    value.parts.push_back(std::move(part));
  }
  return value;
}

// The meaning of what the duals make of `gradient`; the type of it in *type.
absl::StatusOr<std::vector<Array<PrimeField>>> ThroughDuals(const std::vector<Operator>& chain,
                                                            const Value<PrimeField>& gradient,
                                                            TensorType* type) {
  Graph graph;
  TensorRef at = graph.AddInput("g", gradient.type);
  for (const Operator& dual : chain) {
    ISOMER_ASSIGN_OR_RETURN(const NodeId id, graph.Add(dual, {at}));
    at = {id, 0};
  }
  graph.AddOutput("h", at);
  *type = graph.type(at);
  ISOMER_ASSIGN_OR_RETURN(const Values<PrimeField> values,
                          EvaluateGraph<PrimeField>(graph, {{NodeId{0}, gradient}}));
  return Meaning(values[at.node.value][at.output]);
}

absl::Status CheckDuals(const Operator& op, const std::vector<TensorType>& operands,
                        const Duals& duals) {
  const OpKind kind = op.kind();
  Graph graph;
  std::vector<TensorRef> inputs;
  std::map<NodeId, Value<PrimeField>> leaves;
  for (size_t o = 0; o < operands.size(); ++o) {
    inputs.push_back(graph.AddInput(absl::StrCat("x", o), operands[o]));
    leaves[inputs[o].node] = RandomValueOf(operands[o], o + 1);
  }
  const absl::StatusOr<NodeId> node = graph.Add(op, inputs);
  if (!node.ok()) return absl::OkStatus();  // It does not type-check: nothing to show.
  graph.AddOutput("y", {*node, 0});
  ISOMER_ASSIGN_OR_RETURN(const auto values, EvaluateGraph<PrimeField>(graph, leaves));
  const Value<PrimeField> seed = RandomValueOf(GradientType(graph.type({*node, 0})), 99);
  ISOMER_ASSIGN_OR_RETURN(const auto gradients,
                          EvaluateGradients<PrimeField>(graph, values, {Meaning(seed)}));
  TensorType type;
  ISOMER_ASSIGN_OR_RETURN(const auto meaning, ThroughDuals(duals(op), seed, &type));
  // Each operand of a ConcatPartials gets the copies that its partials are.
  if (kind == OpKind::kConcatPartials) type.copies /= static_cast<int64_t>(operands.size());
  for (size_t o = 0; o < operands.size(); ++o) {
    const std::string at = absl::StrCat(" at ", op.ToString(), " of ", operands[o].ToString());
    if (type != GradientType(operands[o])) {
      return NoGradient(kind, absl::StrCat("it is ", type.ToString(), ", not ",
                                           GradientType(operands[o]).ToString(), at));
    }
    const std::vector<Array<PrimeField>>& expected = gradients.at(inputs[o].node);
    for (size_t m = 0; m < expected.size(); ++m) {
      if (meaning.size() != expected.size() || meaning[m].data != expected[m].data) {
        return NoGradient(kind, absl::StrCat("it has another meaning", at));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ProveDualTypes(OpKind kind, const Duals& duals) {
  for (int rank = 1; rank <= 4; ++rank) {
    for (int64_t axis = -1; axis >= (HasAxis(kind) ? -rank : -1); --axis) {
      ISOMER_RETURN_IF_ERROR(ProveDualTypesAt(kind, duals, rank, axis));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDualsAtSmallTypes(OpKind kind, const Duals& duals) {
  for (const int64_t degree_of_dim : {1, 2, 6}) {
    for (const int64_t copies : {1, 2, 6}) {
      for (const int64_t partials : {1, 2, 6}) {
        for (const int64_t micro_batches : {1, 2}) {
          TensorType type = SequentialType({12, 2});
          type.dims[0].degree = degree_of_dim;
          type.copies = copies;
          type.partials = partials;
          type.micro_batches = micro_batches;
          for (const int64_t degree : {1, 2, 3}) {
            const size_t operands = kind == OpKind::kConcatPartials ? degree + 1 : 1;
            ISOMER_RETURN_IF_ERROR(CheckDuals(OperatorOf(kind, -2, degree),
                                              std::vector<TensorType>(operands, type), duals));
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
