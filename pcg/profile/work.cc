#include "pcg/profile/work.h"

#include <algorithm>

#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"

namespace isomer {
namespace {

int64_t LocalSize(const Sharding& s, int dim) {
  return s.declaration.dims[dim].size.value() / s.degrees[dim];
}

// Dims that a statement iterates over, but for the one it looks up.
std::vector<bool> IteratedDims(const Declaration& d, const Statement& statement) {
  std::vector<bool> iterated(d.dims.size(), false);
  for (const Index& index : statement.indices) {
    for (const auto& [dim, stride] : index.terms) iterated[dim] = true;
  }
  for (int dim : statement.reduced) iterated[dim] = true;
  if (statement.select_dim >= 0) iterated[statement.select_dim] = false;
  return iterated;
}

int ArithmeticInstructions(const Statement& statement) {
  const bool sums = std::any_of(statement.reduced.begin(), statement.reduced.end(),
                                [&](int dim) { return dim != statement.select_dim; });
  int count = sums ? 1 : 0;
  for (const Instruction& instruction : statement.body) {
    count += Arity(instruction.op) > 0;
  }
  return count;
}

double Iterations(const Sharding& s, const Statement& statement) {
  const std::vector<bool> iterated = IteratedDims(s.declaration, statement);
  double iterations = 1;
  for (size_t v = 0; v < iterated.size(); ++v) {
    if (iterated[v]) iterations *= static_cast<double>(LocalSize(s, static_cast<int>(v)));
  }
  return iterations;
}

// Arithmetic between constants is not done at run time, so statements that only move count zero.
double Flops(const Sharding& s, const Statement& statement) {
  return Iterations(s, statement) * ArithmeticInstructions(statement);
}

// A ScatterElements that replaces elements.
bool Replaces(const Operator& op) {
  return op.kind() == OpKind::kScatterElements && op.Int("reduction") == 0;
}

double Flops(const Operator& op, const Sharding& s) {
  if (IsLayout(op.kind()) || Replaces(op)) return 0;
  double flops = 0;
  for (const Statement& statement : s.declaration.statements) flops += Flops(s, statement);
  return flops;
}

// Of the statements that the value of an operand goes into: those of a bias are not the product.
double FlopsThatReach(const Operator& op, const Sharding& s, int operand) {
  if (IsLayout(op.kind())) return 0;
  const Declaration& d = s.declaration;
  std::vector<bool> reached(d.num_operands(), false);  // operands, then statements
  reached[operand] = true;
  double flops = 0;
  for (const Statement& statement : d.statements) {
    reached.push_back(std::any_of(
        statement.body.begin(), statement.body.end(), [&](const Instruction& instruction) {
          return instruction.access >= 0 && reached[d.accesses[instruction.access].tensor];
        }));
    if (reached.back()) flops += Flops(s, statement);
  }
  return flops;
}

int64_t OutputBytes(const Sharding& s) {
  int64_t bytes = 0;
  for (const TensorType& output : s.outputs) bytes += output.LocalBytes();
  return bytes;
}

// Of the outputs that the gradient reads, and of the gradients of all.
int64_t BytesOfOutputsRead(const Sharding& s, const GradientNeeds& needs) {
  int64_t bytes = OutputBytes(s);
  for (size_t t = 0; t < s.outputs.size(); ++t) {
    if (needs.outputs[t]) bytes += s.outputs[t].LocalBytes();
  }
  return bytes;
}

// Bytes of an operand that a task touches: of a table that is looked up, the selected rows, those
// that are selected more than once from a cache; of matrices, no more than there are rows that each
// select one (a few tokens use a few experts).
int64_t OperandBytes(const Operator& op, const Sharding& s, const TensorType& type, int operand) {
  const int64_t whole = type.LocalBytes();
  if (op.kind() == OpKind::kGatherMatMul && operand == 1) {
    const int64_t matrices = type.LocalShape()[0];
    const int64_t rows = s.outputs[0].LocalElements() / s.outputs[0].LocalShape().back();
    return whole / matrices * std::min(matrices, rows);
  }
  const bool is_table = operand == 0 && IsIndexOperand(op.kind(), 1) && !IsLoss(op.kind());
  if (!is_table) return whole;
  for (const Statement& statement : s.declaration.statements) {
    if (statement.select_dim < 0) continue;
    const double selected = Iterations(s, statement) * BytesPerElement(type.dtype);
    return selected < static_cast<double>(whole) ? static_cast<int64_t>(selected) : whole;
  }
  return whole;
}

}  // namespace

std::optional<SavedForGradient> SavedBy(const Operator& op, const Declaration& declaration,
                                        const TensorType& operand, const TensorType& output) {
  if (SavesPreActivation(op)) return SavedForGradient{output.LocalElements(), output.dtype};
  const std::vector<int64_t> sizes = operand.LocalShape();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) rows *= sizes[i];
  if (op.kind() == OpKind::kGroupNorm) {  // A row is a group of channels.
    rows = sizes[0] * sizes[1] / (declaration.operands[0][1].value() / op.Int("groups"));
  }
  const int saved = TraitsOf(op.kind()).saved_per_row;
  return saved > 0 ? std::optional(SavedForGradient{saved * rows}) : std::nullopt;
}

// Of the activations of a Linear, those whose derivative is no cheap function of the result.
bool SavesPreActivation(const Operator& op) {
  if (op.kind() != OpKind::kLinear) return false;
  const int64_t activation = op.Int("activation");
  if (activation == 0) return false;
  return !TraitsOf(kActivationsOfLinear[activation - 1]).gradient_reads_result;
}

int64_t SavedBytes(const Operator& op, const Sharding& sharding,
                   absl::Span<const TensorType> operands) {
  if (operands.empty()) return 0;
  const auto saved = SavedBy(op, sharding.declaration, operands[0], sharding.outputs[0]);
  return saved.has_value() ? saved->bytes() : 0;
}

Work ForwardWork(const Operator& op, const Sharding& sharding,
                 absl::Span<const TensorType> operands, bool saves) {
  // With no gradient to come, it writes over its operand.
  if (Replaces(op) && !saves) {
    return {.bytes = operands[1].LocalBytes() + 2 * operands[2].LocalBytes()};
  }
  Work work{.flops = Flops(op, sharding), .bytes = OutputBytes(sharding)};
  if (saves) work.bytes += SavedBytes(op, sharding, operands);
  for (size_t o = 0; o < operands.size(); ++o) {
    work.bytes += OperandBytes(op, sharding, operands[o], static_cast<int>(o));
  }
  return work;
}

bool GradientsAreProducts(const Operator& op) {
  return IsContraction(op.kind()) && !IsAttention(op.kind());
}

Work GradientWork(const Operator& op, const Sharding& sharding,
                  absl::Span<const TensorType> operands, const std::vector<bool>& wanted) {
  const GradientNeeds needs = NeedsOfGradient(op, sharding.declaration, operands);
  const bool products = GradientsAreProducts(op);
  // What all of the gradients read.
  const int64_t of_outputs =
      BytesOfOutputsRead(sharding, needs) + SavedBytes(op, sharding, operands);
  Work work;
  bool reads_outputs = false;
  for (size_t o = 0; o < operands.size(); ++o) {
    const int64_t bytes = OperandBytes(op, sharding, operands[o], static_cast<int>(o));
    const bool is_read = products && o < 2 ? wanted[1 - o] : needs.operands[o];
    if (is_read) work.bytes += bytes;
    if (!wanted[o]) continue;
    work.flops += FlopsThatReach(op, sharding, static_cast<int>(o));
    work.bytes += operands[o].LocalBytes();  // Written whole, zeros included.
    if (products && o < 2) {
      work.bytes += of_outputs;
      reads_outputs = true;
    }
  }
  if (!reads_outputs) work.bytes += of_outputs;
  return work;
}

GradientNeeds NeedsOfGradient(const Operator& op, const Declaration& declaration,
                              absl::Span<const TensorType> operands) {
  GradientNeeds needs;
  needs.outputs.assign(declaration.outputs.size(), false);
  std::vector<bool> is_float;
  for (const TensorType& operand : operands) {
    is_float.push_back(IsFloat(operand.dtype));
  }
  if (op.kind() == OpKind::kLinear) {
    needs.operands = {true, true};
    needs.operands.resize(operands.size(), SavesPreActivation(op));
    needs.outputs[0] = op.Int("activation") != 0 && !SavesPreActivation(op);
    return needs;
  }
  if (op.kind() == OpKind::kBatchNormTraining) {
    needs.operands = {true, true, false};
    needs.outputs = {false, true, true};
    return needs;
  }
  if (TraitsOf(op.kind()).gradient_reads_result) {
    needs.operands.assign(operands.size(), false);
    needs.outputs[0] = true;
    return needs;
  }
  const bool linear = declaration.IsLinearIn(is_float);
  for (size_t o = 0; o < operands.size(); ++o) needs.operands.push_back(!linear || !is_float[o]);
  return needs;
}

}  // namespace isomer
