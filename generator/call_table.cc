#include "generator/call_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "generator/equation.h"
#include "pcg/evaluator.h"

namespace isomer {

int CallTable::NumberOf(const TensorType& type) {
  const auto [entry, fresh] = numbers_.emplace(type.ToString(), static_cast<int>(types_.size()));
  if (fresh) types_.push_back(type);
  return entry->second;
}

const EnumeratedCall* CallTable::Find(int op, const std::vector<int>& operand_types) {
  std::vector<int> key = operand_types;
  key.push_back(op);
  const auto found = calls_.find(key);
  if (found != calls_.end()) return found->second.get();
  return (calls_[key] = Make(op, operand_types)).get();
}

std::unique_ptr<EnumeratedCall> CallTable::Make(int op, const std::vector<int>& operand_types) {
  std::vector<TensorType> operands;
  for (int number : operand_types) operands.push_back(types_[number]);
  auto call = std::make_unique<EnumeratedCall>();
  call->op = FitToRank(operators_[op], operands[0].rank());
  const std::vector<TensorType>* inferred = oracle_->Infer(call->op, operands);
  if (inferred == nullptr) return nullptr;
  const std::vector<TensorType> outputs = *inferred;
  auto elements = [](const TensorType& type) {
    int64_t count = 1;
    for (const Dim& dim : type.dims) count *= dim.size;
    return count;
  };
  for (const TensorType& type : operands) call->operand_sizes.push_back(elements(type));
  for (const TensorType& type : outputs) {
    call->output_types.push_back(NumberOf(type));
    call->output_sizes.push_back(elements(type));
  }
  if (!IsParallel(call->op.kind())) {
    call->program = ProgramOf(call->op, operands);
    if (call->program == nullptr) return nullptr;
  }
  return call;
}

const MeaningProgram* CallTable::ProgramOf(const Operator& op,
                                           const std::vector<TensorType>& operands) {
  std::string key = op.ToString();
  std::vector<Shape> shapes;
  for (const TensorType& type : operands) {
    shapes.push_back(type.GlobalShape());
    for (const Extent& size : shapes.back()) absl::StrAppend(&key, ",", size.value());
    absl::StrAppend(&key, ";");
  }
  auto [entry, fresh] = programs_.try_emplace(key);
  if (fresh) {
    absl::StatusOr<Declaration> declaration = Declare(op, shapes);
    if (!declaration.ok()) return nullptr;
    entry->second = std::make_unique<MeaningProgram>();
    absl::StatusOr<FieldProgram> compiled = FieldProgram::Compile(*declaration);
    if (compiled.ok()) entry->second->compiled = *std::move(compiled);
    entry->second->declaration = *std::move(declaration);
  }
  return entry->second.get();
}

namespace {

bool EvaluateByReference(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                         std::vector<PrimeField>* outputs) {
  const Declaration& declaration = call.program->declaration;
  std::vector<Array<PrimeField>> arrays;
  std::vector<const Array<PrimeField>*> pointers;
  for (size_t o = 0; o < operands.size(); ++o) {
    std::vector<int64_t> shape;
    for (const Extent& size : declaration.operands[o]) shape.push_back(size.value());
    arrays.emplace_back(shape);
    std::copy(operands[o], operands[o] + call.operand_sizes[o], arrays.back().data.begin());
  }
  for (const Array<PrimeField>& array : arrays) pointers.push_back(&array);
  const auto results = Evaluate<PrimeField>(declaration, FullBox(declaration), pointers);
  if (!results.ok()) return false;
  PrimeField* next = outputs->data();
  for (const Array<PrimeField>& result : *results) {
    next = std::copy(result.data.begin(), result.data.end(), next);
  }
  return true;
}

}  // namespace

bool EvaluateMeaning(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                     std::vector<PrimeField>* outputs, std::vector<PrimeField>* scratch) {
  int64_t total = 0;
  for (int64_t size : call.output_sizes) total += size;
  outputs->resize(total);
  if (call.program == nullptr) {
    std::copy(operands[0], operands[0] + total, outputs->begin());
    for (size_t o = 1; o < operands.size(); ++o) {
      for (int64_t i = 0; i < total; ++i) (*outputs)[i] += operands[o][i];
    }
    return true;
  }
  if (!call.program->compiled.has_value()) return EvaluateByReference(call, operands, outputs);
  absl::InlinedVector<PrimeField*, 4> targets;
  PrimeField* next = outputs->data();
  for (int64_t size : call.output_sizes) {
    targets.push_back(next);
    next += size;
  }
  call.program->compiled->Run(operands, targets, scratch);
  return true;
}

}  // namespace isomer
