#include "generator/enumeration/call_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "generator/enumeration/equation.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

// The exchange of two axes, counted from the end, at another rank; other operators as they are.
Operator FitToRank(const Operator& op, int rank) {
  if (op.kind() != OpKind::kTranspose) return op;
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  const SwapAxes exchange = ExchangeOf(op.Ints("perm"));
  if (rank >= -exchange.a) std::swap(perm[rank + exchange.a], perm[rank + exchange.b]);
  return Operator(op.kind(), {{"perm", perm}});
}

}  // namespace

const FieldProgram* MeaningProgram::sampled() const {
  std::call_once(sampled_.once, [this] {
    std::vector<std::vector<int64_t>> wanted;
    for (const Shape& shape : declaration_.outputs) {
      int64_t elements = 1;
      for (const Extent& size : shape) elements *= size.value();
      wanted.push_back(SamplePositions(elements));
    }
    absl::StatusOr<FieldProgram> program = FieldProgram::Compile(declaration_, wanted);
    if (program.ok()) sampled_.program = *std::move(program);
  });
  return sampled_.get();
}

const FieldProgram* MeaningProgram::whole() const {
  std::call_once(whole_.once, [this] {
    absl::StatusOr<FieldProgram> program = FieldProgram::Compile(declaration_);
    if (program.ok()) whole_.program = *std::move(program);
  });
  return whole_.get();
}

int EnumeratedCalls::NumberOf(const TensorType& type) {
  const auto [entry, fresh] = numbers_.emplace(type.ToString(), static_cast<int>(types_.size()));
  if (fresh) types_.push_back(type);
  return entry->second;
}

const EnumeratedCall* EnumeratedCalls::Find(int op, const std::vector<int>& operand_types) {
  std::vector<int> key = operand_types;
  key.push_back(op);
  const auto found = calls_.find(key);
  if (found != calls_.end()) return found->second.get();
  return (calls_[key] = Make(op, operand_types)).get();
}

std::unique_ptr<EnumeratedCall> EnumeratedCalls::Make(int op,
                                                      const std::vector<int>& operand_types) {
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
    call->sample_sizes.push_back(
        static_cast<int64_t>(SamplePositions(call->output_sizes.back()).size()));
  }
  if (!IsParallel(call->op.kind())) {
    call->program = ProgramOf(call->op, operands);
    if (call->program == nullptr) return nullptr;
  }
  return call;
}

const MeaningProgram* EnumeratedCalls::ProgramOf(const Operator& op,
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
    entry->second = std::make_unique<MeaningProgram>(*std::move(declaration));
  }
  return entry->second.get();
}

namespace {

bool EvaluateByReference(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                         std::vector<PrimeField>* outputs) {
  const Declaration& declaration = call.program->declaration();
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

namespace {

void RunProgram(const FieldProgram& program, const std::vector<int64_t>& sizes,
                absl::Span<const PrimeField* const> operands, std::vector<PrimeField>* outputs,
                std::vector<PrimeField>* scratch) {
  absl::InlinedVector<PrimeField*, 4> targets;
  PrimeField* next = outputs->data();
  for (int64_t size : sizes) {
    targets.push_back(next);
    next += size;
  }
  program.Run(operands, targets, scratch);
}

int64_t Total(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

}  // namespace

const std::vector<int64_t>& SamplePositions(int64_t size) {
  constexpr int64_t kSample = 16;
  static thread_local std::map<int64_t, std::vector<int64_t>> known;
  const auto [entry, fresh] = known.try_emplace(size);
  if (fresh) {
    std::vector<int64_t> positions(size);
    std::iota(positions.begin(), positions.end(), 0);
    if (size > kSample) {
      for (int64_t i = 0; i < kSample; ++i) {
        const uint64_t drawn = HashCombine(static_cast<uint64_t>(size), static_cast<uint64_t>(i));
        std::swap(positions[i], positions[i + static_cast<int64_t>(drawn % (size - i))]);
      }
      positions.resize(kSample);
    }
    entry->second = std::move(positions);
  }
  return entry->second;
}

bool EvaluateMeaning(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                     std::vector<PrimeField>* outputs, std::vector<PrimeField>* scratch) {
  outputs->resize(Total(call.output_sizes));
  if (call.program == nullptr) {
    for (size_t i = 0; i < outputs->size(); ++i) {
      (*outputs)[i] = operands[0][i];
      for (size_t o = 1; o < operands.size(); ++o) (*outputs)[i] += operands[o][i];
    }
    return true;
  }
  const FieldProgram* program = call.program->whole();
  if (program == nullptr) return EvaluateByReference(call, operands, outputs);
  RunProgram(*program, call.output_sizes, operands, outputs, scratch);
  return true;
}

bool EvaluateSample(const EnumeratedCall& call, absl::Span<const PrimeField* const> operands,
                    std::vector<PrimeField>* outputs, std::vector<PrimeField>* scratch) {
  if (call.program != nullptr && call.program->sampled() != nullptr) {
    outputs->resize(Total(call.sample_sizes));
    RunProgram(*call.program->sampled(), call.sample_sizes, operands, outputs, scratch);
    return true;
  }
  std::vector<PrimeField> whole;
  if (!EvaluateMeaning(call, operands, &whole, scratch)) return false;
  outputs->clear();
  int64_t begin = 0;
  for (int64_t size : call.output_sizes) {
    for (int64_t i : SamplePositions(size)) outputs->push_back(whole[begin + i]);
    begin += size;
  }
  return true;
}

}  // namespace isomer
