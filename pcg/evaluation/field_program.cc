#include "pcg/evaluation/field_program.h"

#include <algorithm>
#include <numeric>

#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/traced_number.h"
#include "pcg/support/status_macros.h"

namespace isomer {

int32_t Trace::Constant(PrimeField number) {
  const auto [entry, fresh] = constant_ids_.try_emplace(number.raw(), num_slots);
  if (fresh) {
    constant_slots.push_back(NewSlot());
    constant_of_slot_.back() = static_cast<int32_t>(constants.size());
    constants.push_back(number);
  }
  return entry->second;
}

const PrimeField* Trace::ConstantIn(int32_t slot) const {
  const int32_t constant = slot == kNone ? kNone : constant_of_slot_[slot];
  return constant == kNone ? nullptr : &constants[constant];
}

int32_t Trace::Apply(ScalarOp op, int32_t a, int32_t b) {
  // Padding reads zeros, slot 0; averages divide by counts.
  if (op == ScalarOp::kMul && (a == 0 || b == 0)) return 0;
  if (op == ScalarOp::kAdd && a == 0) return b;
  if (op == ScalarOp::kAdd && b == 0) return a;
  const PrimeField *x = ConstantIn(a), *y = ConstantIn(b);
  if (op == ScalarOp::kAdd && x != nullptr && y != nullptr) return Constant(*x + *y);
  if (op == ScalarOp::kDiv && y != nullptr) {
    return Apply(ScalarOp::kMul, a, Constant(y->Inverse()));
  }
  // Sums and products repeat rarely, and are cheap.
  if (op == ScalarOp::kAdd || op == ScalarOp::kMul || op == ScalarOp::kSub) {
    const int32_t result = NewSlot();
    steps.push_back({op, a, b, result});
    return result;
  }
  const auto [entry, fresh] = known_.try_emplace(
      {static_cast<uint64_t>(op) << 32 | static_cast<uint32_t>(a), b}, num_slots);
  if (fresh) steps.push_back({op, a, b, NewSlot()});
  return entry->second;
}

namespace {

// Which step is computed when: a step's level is above those of its operands.
std::vector<int32_t> LevelsOf(const Trace& trace) {
  std::vector<int32_t> level(trace.num_slots, 0);
  for (const Trace::Step& step : trace.steps) {
    level[step.result] = 1 + std::max(level[step.a], step.b == Trace::kNone ? 0 : level[step.b]);
  }
  return level;
}

// The steps that `results` depend on, in order.
std::vector<Trace::Step> NeededSteps(const Trace& trace,
                                     const std::vector<std::vector<int32_t>>& results) {
  std::vector<bool> needed(trace.num_slots, false);
  for (const std::vector<int32_t>& slots : results) {
    for (int32_t slot : slots) needed[slot] = true;
  }
  for (auto step = trace.steps.rbegin(); step != trace.steps.rend(); ++step) {
    if (!needed[step->result]) continue;
    needed[step->a] = true;
    if (step->b != Trace::kNone) needed[step->b] = true;
  }
  std::vector<Trace::Step> steps;
  for (const Trace::Step& step : trace.steps) {
    if (needed[step.result]) steps.push_back(step);
  }
  return steps;
}

// Which steps are sums of products: a product, or an add of two such sums, each of which nothing
// else uses. Only the last step of a sum stays; its products are a list.
class ProductSums {
 public:
  ProductSums(const Trace& trace, const std::vector<Trace::Step>& steps,
              const std::vector<std::vector<int32_t>>& results)
      : uses_(trace.num_slots, 0),
        first_(trace.num_slots, -1),
        last_(trace.num_slots, -1),
        next_(steps.size(), -1),
        is_part_(trace.num_slots, false) {
    for (const Trace::Step& step : steps) {
      ++uses_[step.a];
      if (step.b != Trace::kNone) ++uses_[step.b];
    }
    for (const std::vector<int32_t>& slots : results) {
      for (int32_t slot : slots) uses_[slot] += 2;  // Never part of a sum.
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      const auto& [op, a, b, result] = steps[s];
      if (op == ScalarOp::kMul) {
        first_[result] = last_[result] = static_cast<int32_t>(s);
      } else if (op == ScalarOp::kAdd && IsSum(a) && IsSum(b)) {
        next_[last_[a]] = first_[b];
        first_[result] = first_[a];
        last_[result] = last_[b];
        is_part_[a] = is_part_[b] = true;
      }
    }
  }
  bool IsPart(int32_t slot) const { return is_part_[slot]; }
  // The products of several, as steps from `First` on; -1: none, or the end.
  int32_t First(const Trace::Step& step) const {
    return step.op == ScalarOp::kAdd ? first_[step.result] : -1;
  }
  int32_t Next(int32_t product) const { return next_[product]; }

 private:
  bool IsSum(int32_t slot) const { return first_[slot] >= 0 && uses_[slot] == 1; }

  std::vector<int32_t> uses_;
  std::vector<int32_t> first_, last_;  // per slot: steps that are products
  std::vector<int32_t> next_;          // per step
  std::vector<bool> is_part_;          // per slot
};

// The steps that stay, by level, then by operation, sums of products last, then in order.
std::vector<int32_t> InOrderOfLevels(const std::vector<Trace::Step>& steps,
                                     const std::vector<int32_t>& level, const ProductSums& sums) {
  constexpr size_t kKinds = static_cast<size_t>(ScalarOp::kWhere) + 2;
  const auto key = [&](const Trace::Step& step) {
    const size_t kind = sums.First(step) >= 0 ? kKinds - 1 : static_cast<size_t>(step.op);
    return static_cast<size_t>(level[step.result]) * kKinds + kind;
  };
  std::vector<int32_t> begin(1, 0);  // of the steps of a key, once those of smaller keys are added
  for (const Trace::Step& step : steps) {
    if (sums.IsPart(step.result)) continue;
    if (key(step) + 2 > begin.size()) begin.resize(key(step) + 2, 0);
    ++begin[key(step) + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int32_t> sorted(begin.back());
  for (size_t s = 0; s < steps.size(); ++s) {
    if (!sums.IsPart(steps[s].result)) sorted[begin[key(steps[s])]++] = static_cast<int32_t>(s);
  }
  return sorted;
}

// True if elements of what `statement` defines can be computed one by one: it reads operands only,
// and each of its indices is an iteration dim.
bool DefinesElements(const Declaration& declaration, const Statement& statement) {
  auto reads_operand = [&](int access) {
    return access < 0 || declaration.accesses[access].tensor < declaration.num_operands();
  };
  return reads_operand(statement.select) &&
         std::all_of(statement.body.begin(), statement.body.end(),
                     [&](const Instruction& i) { return reads_operand(i.access); }) &&
         std::all_of(statement.indices.begin(), statement.indices.end(), [](const Index& index) {
           return index.terms.size() == 1 && index.terms[0].second == 1;
         });
}

// Slots of elements `wanted` of what the statement defines. REQUIRES: DefinesElements.
absl::StatusOr<std::vector<int32_t>> TraceElements(
    const Declaration& declaration, int statement, const std::vector<int64_t>& wanted,
    absl::Span<const Array<Traced>* const> operands) {
  Declaration alone = declaration;
  alone.statements = {declaration.statements[statement]};
  alone.statements[0].output = 0;
  alone.outputs = {declaration.StatementShape(declaration.statements[statement])};
  const std::vector<Index>& indices = alone.statements[0].indices;
  std::vector<int32_t> slots;
  for (int64_t element : wanted) {
    IterationBox box = FullBox(alone);
    for (size_t i = indices.size(); i-- > 0;) {
      const int64_t size = alone.outputs[0][i].value();
      const int dim = indices[i].terms[0].first;
      box.begin[dim] = element % size;
      box.end[dim] = box.begin[dim] + 1;
      element /= size;
    }
    const auto outputs = Evaluate<Traced>(alone, box, operands);
    ISOMER_RETURN_IF_ERROR(outputs.status());
    slots.push_back((*outputs)[0].data[0].slot);
  }
  return slots;
}

// Slots of the elements of each output, all or those wanted. Where each can be computed alone, the
// few that are wanted cost no more than they must.
absl::StatusOr<std::vector<std::vector<int32_t>>> TraceOutputs(
    const Declaration& declaration, const std::vector<std::vector<int64_t>>* wanted,
    absl::Span<const Array<Traced>* const> operands) {
  std::vector<std::vector<int32_t>> results(declaration.outputs.size());
  const std::vector<Statement>& statements = declaration.statements;
  if (wanted != nullptr && std::all_of(statements.begin(), statements.end(), [&](const auto& s) {
        return s.output >= 0 && DefinesElements(declaration, s);
      })) {
    for (size_t s = 0; s < statements.size(); ++s) {
      const int output = statements[s].output;
      ISOMER_ASSIGN_OR_RETURN(results[output], TraceElements(declaration, static_cast<int>(s),
                                                             (*wanted)[output], operands));
    }
    return results;
  }
  const auto outputs = Evaluate<Traced>(declaration, FullBox(declaration), operands);
  ISOMER_RETURN_IF_ERROR(outputs.status());
  for (size_t t = 0; t < outputs->size(); ++t) {
    const std::vector<Traced>& elements = (*outputs)[t].data;
    if (wanted == nullptr) {
      for (const Traced& element : elements) results[t].push_back(element.slot);
    } else {
      for (int64_t i : (*wanted)[t]) results[t].push_back(elements[i].slot);
    }
  }
  return results;
}

}  // namespace

absl::StatusOr<FieldProgram> FieldProgram::Compile(const Declaration& declaration) {
  return Compile(declaration, nullptr);
}

absl::StatusOr<FieldProgram> FieldProgram::Compile(
    const Declaration& declaration, const std::vector<std::vector<int64_t>>& wanted) {
  return Compile(declaration, &wanted);
}

absl::StatusOr<FieldProgram> FieldProgram::Compile(
    const Declaration& declaration, const std::vector<std::vector<int64_t>>* wanted) {
  Trace trace;
  current_trace = &trace;
  trace.Constant(PrimeField());
  FieldProgram program;
  std::vector<Array<Traced>> operands;
  for (const Shape& shape : declaration.operands) {
    std::vector<int64_t> sizes;
    for (const Extent& size : shape) sizes.push_back(size.value());
    operands.emplace_back(sizes);
    for (Traced& element : operands.back().data) element.slot = trace.NewSlot();
    program.operand_sizes_.push_back(operands.back().size());
  }
  const int32_t num_inputs = trace.num_slots - 1;
  std::vector<const Array<Traced>*> pointers;
  for (const Array<Traced>& operand : operands) pointers.push_back(&operand);
  const auto traced = TraceOutputs(declaration, wanted, pointers);
  current_trace = nullptr;
  ISOMER_RETURN_IF_ERROR(traced.status());
  if (trace.depends_on_values) {
    return absl::UnimplementedError("what is computed depends on the values");
  }
  const std::vector<std::vector<int32_t>>& results = *traced;
  // New places: constants, inputs, steps by level and kind.
  std::vector<int32_t> place(trace.num_slots, -1);
  program.constants_ = trace.constants;
  for (size_t c = 0; c < trace.constants.size(); ++c) {
    place[trace.constant_slots[c]] = static_cast<int32_t>(c);
  }
  int32_t next = static_cast<int32_t>(trace.constants.size());
  for (int32_t i = 0; i < num_inputs; ++i) place[1 + i] = next++;
  program.first_result_ = next;
  const std::vector<int32_t> level = LevelsOf(trace);
  const std::vector<Trace::Step> steps = NeededSteps(trace, results);
  const ProductSums sums(trace, steps, results);
  program.a_.reserve(steps.size());
  program.b_.reserve(steps.size());
  int32_t last_level = -1;
  for (int32_t s : InOrderOfLevels(steps, level, sums)) {
    const Trace::Step& step = steps[s];
    const auto number = static_cast<int32_t>(program.term_end_.size());
    const auto first_term = static_cast<int32_t>(program.a_.size());
    auto add_term = [&](const Trace::Step& term) {
      program.a_.push_back(place[term.a]);
      program.b_.push_back(term.b == Trace::kNone ? 0 : place[term.b]);
    };
    const int32_t first = sums.First(step);
    if (first < 0) add_term(step);
    for (int32_t product = first; product >= 0; product = sums.Next(product)) {
      add_term(steps[product]);
    }
    place[step.result] = next++;
    program.term_end_.push_back(static_cast<int32_t>(program.a_.size()));
    const bool joins = number > 0 && program.groups_.back().op == step.op &&
                       program.groups_.back().sums == (first >= 0) &&
                       last_level == level[step.result];
    if (!joins) program.groups_.push_back({step.op, first >= 0, number, number, first_term});
    program.groups_.back().end = number + 1;
    last_level = level[step.result];
  }
  for (const std::vector<int32_t>& slots : results) {
    program.output_sizes_.push_back(static_cast<int64_t>(slots.size()));
    program.output_slots_.emplace_back();
    for (int32_t slot : slots) program.output_slots_.back().push_back(place[slot]);
  }
  return program;
}

void FieldProgram::RunSums(const Group& group, PrimeField* slots) const {
  // Products are below 2^122: 32 of them, and what is left of those before, do not overflow.
  constexpr int32_t kTogether = 32;
  using Wide = unsigned __int128;
  const auto fold = [](Wide sum) { return (sum & PrimeField::kPrime) + (sum >> 61); };
  int32_t term = group.first_term;
  for (int32_t s = group.begin; s < group.end; ++s) {
    Wide sum = 0;
    while (term < term_end_[s]) {
      const int32_t end = std::min(term + kTogether, term_end_[s]);
      for (; term < end; ++term) {
        sum += static_cast<Wide>(slots[a_[term]].raw()) * slots[b_[term]].raw();
      }
      sum = fold(sum);
    }
    const auto rest = static_cast<uint64_t>(fold(fold(sum)));
    slots[first_result_ + s] =
        PrimeField::FromRaw(rest >= PrimeField::kPrime ? rest - PrimeField::kPrime : rest);
  }
}

void FieldProgram::RunGroup(const Group& group, PrimeField* slots) const {
  if (group.sums) return RunSums(group, slots);
  // Of other steps each is one term.
  const int32_t* a = a_.data() + (group.first_term - group.begin);
  const int32_t* b = b_.data() + (group.first_term - group.begin);
  PrimeField* result = slots + first_result_;
  auto unary = [&](PrimeField (*function)(PrimeField)) {
    for (int32_t s = group.begin; s < group.end; ++s) result[s] = function(slots[a[s]]);
  };
  auto binary = [&](auto function) {
    for (int32_t s = group.begin; s < group.end; ++s) {
      result[s] = function(slots[a[s]], slots[b[s]]);
    }
  };
  using Field = Number<PrimeField>;
  switch (group.op) {
    case ScalarOp::kAdd:
      return binary([](PrimeField x, PrimeField y) { return x + y; });
    case ScalarOp::kSub:
      return binary([](PrimeField x, PrimeField y) { return x - y; });
    case ScalarOp::kMul:
      return binary([](PrimeField x, PrimeField y) { return x * y; });
    case ScalarOp::kDiv:
      return binary([](PrimeField x, PrimeField y) { return x / y; });
    case ScalarOp::kMax:
      return binary(Field::Max);
    case ScalarOp::kPow:
      return binary(Field::Pow);
    case ScalarOp::kRandom:
      return binary(Field::Random);
    case ScalarOp::kExp:
      return unary(Field::Exp);
    case ScalarOp::kLog:
      return unary(Field::Log);
    case ScalarOp::kSqrt:
      return unary(Field::Sqrt);
    case ScalarOp::kTanh:
      return unary(Field::Tanh);
    case ScalarOp::kErf:
      return unary(Field::Erf);
    case ScalarOp::kSin:
      return unary(Field::Sin);
    case ScalarOp::kCos:
      return unary(Field::Cos);
    case ScalarOp::kAtan:
      return unary(Field::Atan);
    case ScalarOp::kFloor:
      return unary(Field::Floor);
    case ScalarOp::kRound:
      return unary(Field::Round);
    case ScalarOp::kLoad:
    case ScalarOp::kInside:
    case ScalarOp::kConstant:
    case ScalarOp::kIndex:
    case ScalarOp::kLess:
    case ScalarOp::kEqual:
    case ScalarOp::kWhere:
      return;  // Never recorded.
  }
}

void FieldProgram::Run(absl::Span<const PrimeField* const> operands,
                       absl::Span<PrimeField* const> outputs,
                       std::vector<PrimeField>* scratch) const {
  scratch->resize(std::max(scratch->size(), first_result_ + term_end_.size()));
  PrimeField* slots = scratch->data();
  PrimeField* next = std::copy(constants_.begin(), constants_.end(), slots);
  for (size_t o = 0; o < operands.size(); ++o) {
    next = std::copy(operands[o], operands[o] + operand_sizes_[o], next);
  }
  for (const Group& group : groups_) RunGroup(group, slots);
  for (size_t t = 0; t < outputs.size(); ++t) {
    const std::vector<int32_t>& places = output_slots_[t];
    for (size_t i = 0; i < places.size(); ++i) outputs[t][i] = slots[places[i]];
  }
}

}  // namespace isomer
