#include "verifier/gradients/gradient.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/declaration.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"
#include "pcg/operators/operators.h"
#include "pcg/support/status_macros.h"
#include "verifier/gradients/gradient_duals.h"
#include "verifier/terms/representative_calls.h"
#include "verifier/types/type_form.h"

namespace isomer {
namespace {

// Functions with pieces: of their operands that depend on floats, each piece is differentiable.
bool HasPieces(ScalarOp op) {
  return op == ScalarOp::kMax || op == ScalarOp::kLess || op == ScalarOp::kEqual ||
         op == ScalarOp::kFloor || op == ScalarOp::kRound;
}

// What a statement's body computes from floats; `tensors` says which tensors hold such. Sets
// *pieces if a function with pieces is applied to them.
absl::StatusOr<bool> DependsOnFloats(const Declaration& d, const Statement& s,
                                     const std::vector<bool>& tensors, bool* pieces) {
  std::vector<bool> stack;
  for (const Instruction& instruction : s.body) {
    if (instruction.op == ScalarOp::kLoad) {
      stack.push_back(tensors[d.accesses[instruction.access].tensor]);
      continue;
    }
    std::vector<bool> operands(Arity(instruction.op));
    for (size_t i = operands.size(); i-- > 0;) {
      operands[i] = stack.back();
      stack.pop_back();
    }
    const bool floats = std::count(operands.begin(), operands.end(), true) > 0;
    if (floats && instruction.op == ScalarOp::kRandom) {
      return absl::UnimplementedError("pseudo-random numbers of floats have no derivative");
    }
    *pieces |= floats && HasPieces(instruction.op);
    *pieces |= instruction.op == ScalarOp::kWhere && operands[0];
    stack.push_back(floats);
  }
  return !stack.empty() && stack.back();
}

absl::StatusOr<GradientReach> ReachOfCall(const OperatorCall& call) {
  std::vector<bool> floats;
  for (const TensorType& type : call.operands) floats.push_back(IsFloat(type.dtype));
  ISOMER_ASSIGN_OR_RETURN(const Declaration d, DeclarationOf(call));
  bool pieces = false;
  for (const Statement& s : d.statements) {
    ISOMER_ASSIGN_OR_RETURN(const bool of_floats, DependsOnFloats(d, s, floats, &pieces));
    pieces |= of_floats && s.reduction == Reduction::kMax;
    floats.push_back(of_floats);
  }
  return pieces ? GradientReach::kAlmostEverywhere : GradientReach::kEverywhere;
}

// Whether a float input can reach a float output of the source.
bool HasGradient(const Rule& rule) {
  const std::vector<DataType> inputs = DataTypesTaken(rule);
  std::vector<std::vector<DataType>> nodes;
  auto at = [&](PatternRef ref) {
    return ref.node < 0 ? inputs[ref.index] : nodes[ref.node][ref.index];
  };
  int most_outputs = 1;
  for (const PatternNode& node : rule.source.nodes) {
    for (PatternRef ref : node.inputs) most_outputs = std::max(most_outputs, ref.index + 1);
  }
  for (PatternRef ref : rule.source.outputs) most_outputs = std::max(most_outputs, ref.index + 1);
  for (const PatternNode& node : rule.source.nodes) {
    std::vector<DataType> operands;
    for (PatternRef ref : node.inputs) operands.push_back(at(ref));
    Operator op(node.kind);
    if (node.kind == OpKind::kCast) op.Set("to", static_cast<int64_t>(DataType::kFloat32));
    nodes.emplace_back();
    for (int output = 0; output < most_outputs; ++output) {
      const auto type = InferDataType(op, operands, output);
      // Types that only conditions tell may be floats: then there is something to show.
      nodes.back().push_back(type.ok() ? *type : DataType::kFloat32);
    }
  }
  auto is_float = [&](PatternRef ref) { return IsFloat(at(ref)); };
  return std::any_of(inputs.begin(), inputs.end(), IsFloat) &&
         std::any_of(rule.source.outputs.begin(), rule.source.outputs.end(), is_float);
}

std::string LemmaOf(OpKind kind, const std::vector<Operator>& duals) {
  std::string lemma = absl::StrCat(std::string(OpName(kind)), "_gradient_is");
  if (duals.empty()) absl::StrAppend(&lemma, "_passed_on");
  for (const Operator& dual : duals) absl::StrAppend(&lemma, "_", std::string(dual.name()));
  return lemma;
}

}  // namespace

std::vector<Operator> DualsOf(const Operator& op) {
  if (op.kind() == OpKind::kConcatPartials) return {};
  return {DualOf(op)};
}

absl::StatusOr<GradientReach> ReachOfKind(OpKind kind) {
  GradientReach reach = GradientReach::kEverywhere;
  for (const OperatorCall& call : CallsToTry(kind)) {
    const absl::StatusOr<GradientReach> of_call = ReachOfCall(call);
    if (!of_call.ok()) {
      return absl::Status(of_call.status().code(),
                          absl::StrCat(call.op.ToString(), ": ", of_call.status().message()));
    }
    if (*of_call == GradientReach::kAlmostEverywhere) reach = *of_call;
  }
  return reach;
}

const GradientProver::Dual& GradientProver::DualOfKind(OpKind kind) {
  auto [at, is_new] = known_.emplace(kind, Dual());
  Dual& dual = at->second;
  if (!is_new) return dual;
  const bool sequences = kind == OpKind::kPipeline || kind == OpKind::kBatch;
  Operator op(kind);
  if (kind != OpKind::kConcatPartials)
    op = Operator(kind, {{"axis", int64_t{-1}}, {"degree", int64_t{2}}});
  dual.lemma = LemmaOf(kind, duals_(op));
  if (sequences) {
    dual.status = absl::UnimplementedError(
        absl::StrCat(std::string(OpName(kind)), ": types of sequences are not decided"));
    return dual;
  }
  // The partials of a ConcatPartials are those of its operands, by definition.
  if (kind != OpKind::kConcatPartials) dual.status = ProveDualTypes(kind, duals_);
  dual.status.Update(CheckDualsAtSmallTypes(kind, duals_));
  return dual;
}

GradientTheorem GradientProver::Prove(const Rule& rule) {
  GradientTheorem theorem;
  if (!HasGradient(rule)) return theorem;
  theorem.reach = GradientReach::kEverywhere;
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      if (IsParallel(node.kind)) {
        const Dual& dual = DualOfKind(node.kind);
        theorem.status.Update(dual.status);
        theorem.lemmas.insert(dual.lemma);
        continue;
      }
      const absl::StatusOr<GradientReach> reach = ReachOfKind(node.kind);
      theorem.status.Update(reach.status());
      if (reach.ok() && *reach == GradientReach::kAlmostEverywhere) theorem.reach = *reach;
    }
  }
  theorem.lemmas.insert(theorem.reach == GradientReach::kEverywhere
                            ? "gradient:by_duality"
                            : "gradient:by_duality_almost_everywhere");
  return theorem;
}

}  // namespace isomer
