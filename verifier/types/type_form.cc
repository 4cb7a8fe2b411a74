#include "verifier/types/type_form.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

ExponentFact Equal(const Extent& left, const Extent& right, std::string text) {
  ExponentFact fact;
  fact.left = left;
  fact.right = right;
  fact.text = std::move(text);
  return fact;
}

ExponentFact AtMost(const Extent& left, const Extent& right, std::string text) {
  ExponentFact fact = Equal(left, right, std::move(text));
  fact.kind = ExponentFact::Kind::kAtMost;
  return fact;
}

int64_t Power(int64_t base, int64_t exponent) {
  int64_t power = 1;
  while (exponent-- > 0) power *= base;
  return power;
}

}  // namespace

std::vector<std::vector<bool>> LinearSets(const Call& call) {
  const int operands = static_cast<int>(call.node->inputs.size());
  std::vector<std::vector<bool>> sets;
  const bool passes = call.declaration && call.passes_partials;
  for (int bits = 1; passes && bits < (1 << operands); ++bits) {
    std::vector<bool> set(operands);
    for (int o = 0; o < operands; ++o) set[o] = (bits >> o) & 1;
    if (call.declaration->IsLinearIn(set)) sets.push_back(std::move(set));
  }
  // Taking no partials is the case of a linear set whose partials are 1.
  if (sets.empty()) sets.push_back(std::vector<bool>(operands, false));
  return sets;
}

TypeEncoder::TypeEncoder(const RuleInstance& instance, int64_t prime)
    : instance_(&instance), prime_(prime) {
  for (const RuleVariable& variable : instance.rule->variables) {
    if (variable.kind == VariableKind::kDegree) degrees_[variable.name] = next_variable_++;
  }
  for (const Shape& shape : instance.inputs) {
    TypeForm type;
    for (size_t i = 0; i < shape.size(); ++i) type.degrees.push_back(Fresh());
    type.copies = Fresh();
    type.partials = Fresh();
    RequireDivisible(type, shape, &base_facts_);
    inputs_.push_back(std::move(type));
  }
}

int64_t TypeEncoder::ExponentIn(int64_t number) const {
  int64_t exponent = 0;
  while (prime_ > 1 && number > 0 && number % prime_ == 0) number /= prime_, ++exponent;
  return exponent;
}

Extent TypeEncoder::SizeExponent(const Extent& size) {
  if (size.known()) return ExponentIn(size.value());
  auto of_term = [&](const std::pair<int, int64_t>& term) {
    auto [at, is_new] = size_symbols_.emplace(term.first, next_variable_);
    if (is_new) ++next_variable_;
    return Extent::Symbol(at->second) + ExponentIn(term.second);
  };
  if (size.constant() == 0 && size.terms().size() == 1 && size.terms()[0].second > 0) {
    return of_term(size.terms()[0]);
  }
  auto [at, is_new] = sums_.emplace(size, next_variable_);
  if (is_new) {
    ++next_variable_;
    ExponentFact least;
    least.kind = ExponentFact::Kind::kAboveLeast;
    least.left = Extent::Symbol(at->second);
    for (const auto& [symbol, coefficient] : size.terms()) {
      least.parts.push_back(of_term({symbol, coefficient < 0 ? -coefficient : coefficient}));
    }
    if (size.constant() != 0) {
      least.parts.push_back(ExponentIn(size.constant() < 0 ? -size.constant() : size.constant()));
    }
    base_facts_.push_back(std::move(least));
  }
  return Extent::Symbol(at->second);
}

Extent TypeEncoder::DegreeExponent(const IntExpr& expr) {
  switch (expr.kind) {
    case IntExpr::Kind::kConstant:
      return ExponentIn(expr.constant);
    case IntExpr::Kind::kVariable:
      return Extent::Symbol(degrees_.at(expr.variable));
    case IntExpr::Kind::kProduct:
      return Extent::Symbol(degrees_.at(expr.variable)) + Extent::Symbol(degrees_.at(expr.factor));
    case IntExpr::Kind::kSizeOf:
      break;
  }
  const std::optional<Extent> size = SizeAt(expr, *instance_);
  return size ? SizeExponent(*size) : Fresh();
}

void TypeEncoder::RequireDivisible(const TypeForm& type, const Shape& shape,
                                   std::vector<ExponentFact>* facts) {
  for (size_t i = 0; i < shape.size(); ++i) {
    facts->push_back(
        AtMost(type.degrees[i], SizeExponent(shape[i]), absl::StrCat("dim ", i, " divides")));
  }
}

void TypeEncoder::AddParallel(const Call& call, const std::vector<TypeForm>& operands,
                              std::vector<ExponentFact>* facts, std::vector<TypeForm>* outputs) {
  TypeForm type = operands[0];
  const std::string name(OpName(call.node->kind));
  Extent degree;
  for (const AttributePattern& attribute : call.node->attributes) {
    if (attribute.name == "degree") degree = DegreeExponent(std::get<IntExpr>(attribute.value));
  }
  switch (call.node->kind) {
    case OpKind::kPartition:
      type.degrees[call.axis] += degree;
      RequireDivisible(type, call.outputs[0], facts);
      break;
    case OpKind::kCombine:
      facts->push_back(AtMost(degree, type.degrees[call.axis], name + ": the degree"));
      type.degrees[call.axis] -= degree;
      break;
    case OpKind::kReplicate:
      type.copies += degree;
      break;
    case OpKind::kReduce:
      facts->push_back(AtMost(degree, type.partials, name + ": the number of partials"));
      type.partials -= degree;
      break;
    default:  // ConcatPartials: instances have no other.
      for (const TypeForm& other : operands) {
        for (size_t i = 0; i < type.degrees.size(); ++i) {
          facts->push_back(Equal(other.degrees[i], type.degrees[i], name + ": degrees"));
        }
        facts->push_back(Equal(other.copies, type.copies, name + ": copies"));
        facts->push_back(Equal(other.partials, type.partials, name + ": partials"));
      }
      type.partials += ExponentIn(static_cast<int64_t>(operands.size()));
      break;
  }
  outputs->push_back(std::move(type));
}

// InferSharding (pcg/ir/type_inference.h), in exponents.
void TypeEncoder::AddCall(const Call& call, const std::vector<TypeForm>& operands,
                          const std::vector<bool>& linear, std::vector<ExponentFact>* facts,
                          std::vector<TypeForm>* outputs) {
  if (!call.declaration) return AddParallel(call, operands, facts, outputs);
  const Declaration& d = *call.declaration;
  const std::string name(OpName(call.node->kind));
  std::vector<Extent> degrees(d.dims.size());
  std::vector<bool> seen(d.dims.size(), false);
  std::vector<std::vector<bool>> indexed(operands.size(), std::vector<bool>(d.dims.size(), false));
  for (size_t o = 0; o < operands.size(); ++o) {
    for (size_t i = 0; i < operands[o].degrees.size(); ++i) {
      const int lead = d.LeadOfOperandDim(static_cast<int>(o), static_cast<int>(i));
      const std::string text = absl::StrCat(name, ": degree of dim ", i, " of operand ", o);
      if (lead < 0 || !d.IsPartitionable(lead)) {
        facts->push_back(Equal(operands[o].degrees[i], 0, text));
      } else if (seen[lead]) {
        facts->push_back(Equal(operands[o].degrees[i], degrees[lead], text));
      } else {
        seen[lead] = true;
        degrees[lead] = operands[o].degrees[i];
      }
      if (lead >= 0) indexed[o][lead] = true;
    }
  }
  Extent partials;
  bool any = false;
  for (size_t o = 0; o < operands.size(); ++o) {
    const std::string text = absl::StrCat(name, ": partials of operand ", o);
    if (!linear[o]) {
      facts->push_back(Equal(operands[o].partials, 0, text));
    } else if (any) {
      facts->push_back(Equal(operands[o].partials, partials, text));
    } else {
      any = true;
      partials = operands[o].partials;
    }
  }
  // Copies of the call itself; every operand has these times the tasks that share a shard.
  Extent copies;
  for (size_t o = 0; o < operands.size(); ++o) {
    Extent sharers = linear[o] ? Extent(0) : partials;
    for (size_t v = 0; v < d.dims.size(); ++v) {
      if (!indexed[o][v]) sharers += degrees[v];
    }
    const std::string text = absl::StrCat(name, ": copies of operand ", o);
    if (o == 0) {
      facts->push_back(AtMost(sharers, operands[o].copies, text));
      copies = operands[o].copies - sharers;
    } else {
      facts->push_back(Equal(operands[o].copies, copies + sharers, text));
    }
  }
  for (size_t t = 0; t < d.outputs.size(); ++t) {
    TypeForm type;
    type.copies = copies;
    type.partials = partials;
    for (size_t i = 0; i < d.outputs[t].size(); ++i) {
      const int lead = d.LeadOfOutputDim(static_cast<int>(t), static_cast<int>(i));
      type.degrees.push_back(lead < 0 ? Extent(0) : degrees[lead]);
    }
    for (size_t v = 0; v < d.dims.size(); ++v) {
      if (d.dims[v].kind == DimKind::kSum) type.partials += degrees[v];
    }
    RequireDivisible(type, d.outputs[t], facts);
    outputs->push_back(std::move(type));
  }
}

void TypeEncoder::AddConditions(const std::vector<std::vector<TypeForm>>& source,
                                std::vector<ExponentFact>* facts) {
  auto is_degree = [&](const IntExpr& expr) {
    return expr.kind == IntExpr::Kind::kProduct ||
           (expr.kind == IntExpr::Kind::kVariable && degrees_.contains(expr.variable));
  };
  for (const Condition& condition : instance_->rule->conditions) {
    switch (condition.kind) {
      case Condition::Kind::kEqual:
        if (is_degree(condition.left) || is_degree(condition.right)) {
          facts->push_back(
              Equal(DegreeExponent(condition.left), DegreeExponent(condition.right), "condition"));
        }
        break;
      case Condition::Kind::kNotEqual:  // Says nothing of one prime's exponents.
      case Condition::Kind::kAtMost:
      case Condition::Kind::kByStructure:
        break;
      case Condition::Kind::kDivides: {
        const Shape& shape = instance_->inputs[condition.input];
        const int rank = static_cast<int>(shape.size());
        const int i = *NormalizeAxis(*AxisAt(condition.right, *instance_), rank);
        facts->push_back(
            AtMost(DegreeExponent(condition.left) + inputs_[condition.input].degrees[i],
                   SizeExponent(shape[i]), "condition"));
        break;
      }
      case Condition::Kind::kSameType: {
        const TypeForm &a = inputs_[condition.input], &b = inputs_[condition.input_b];
        for (size_t i = 0; i < a.degrees.size(); ++i) {
          facts->push_back(Equal(a.degrees[i], b.degrees[i], "condition"));
        }
        facts->push_back(Equal(a.copies, b.copies, "condition"));
        facts->push_back(Equal(a.partials, b.partials, "condition"));
        break;
      }
      case Condition::Kind::kNoPartials:
        facts->push_back(Equal(inputs_[condition.input].partials, 0, "condition"));
        break;
      case Condition::Kind::kUnpartitioned: {
        const TypeForm& type = inputs_[condition.input];
        const int rank = static_cast<int>(type.degrees.size());
        const int i = *NormalizeAxis(*AxisAt(condition.right, *instance_), rank);
        facts->push_back(Equal(type.degrees[i], 0, "condition"));
        break;
      }
      case Condition::Kind::kSplitsDim: {
        const Declaration& d = *instance_->source[condition.node].declaration;
        const int v = SplitDimAt(condition, *instance_);
        const std::vector<PatternRef>& inputs = instance_->source[condition.node].node->inputs;
        for (int o = 0; o < d.num_operands(); ++o) {
          const PatternRef ref = inputs[o];
          const TypeForm& type = ref.node < 0 ? inputs_[ref.index] : source[ref.node][ref.index];
          for (size_t i = 0; i < type.degrees.size(); ++i) {
            if (d.LeadOfOperandDim(o, static_cast<int>(i)) != v) continue;
            const Extent degree = DegreeExponent(condition.left) + type.degrees[i];
            facts->push_back(AtMost(degree, SizeExponent(d.dims[v].size), "condition"));
            if (d.dims[v].kind != DimKind::kSpatial) continue;
            facts->push_back(AtMost(degree, SizeExponent(d.operands[o][i]), "condition"));
          }
        }
        break;
      }
    }
  }
}

std::vector<DataType> DataTypesTaken(const Rule& rule) {
  std::vector<DataType> inputs(rule.num_inputs, DataType::kFloat32),
      nodes(rule.source.nodes.size(), DataType::kFloat32);
  for (size_t n = nodes.size(); n-- > 0;) {
    const PatternNode& node = rule.source.nodes[n];
    for (size_t o = 0; o < node.inputs.size(); ++o) {
      const bool chooses = IsConditionOperand(node.kind, static_cast<int>(o));
      const bool passes = IsLayout(node.kind) || IsParallel(node.kind) ||
                          TraitsOf(node.kind).condition_operand >= 0;
      DataType taken = passes ? nodes[n] : DataType::kFloat32;
      if (IsIndexOperand(node.kind, static_cast<int>(o))) taken = DataType::kInt32;
      if (chooses) taken = DataType::kBool;
      if (taken == DataType::kFloat32) continue;
      const PatternRef ref = node.inputs[o];
      (ref.node < 0 ? inputs[ref.index] : nodes[ref.node]) = taken;
    }
  }
  return inputs;
}

Binding TypeEncoder::BindingOf(const std::map<int, int64_t>& model, uint64_t seed) const {
  const int64_t base = prime_ > 1 ? prime_ : 2;
  auto power = [&](const Extent& exponent) {
    int64_t value = exponent.constant();
    for (const auto& [variable, coefficient] : exponent.terms()) {
      auto at = model.find(variable);
      if (at != model.end()) value += at->second * coefficient;
    }
    return Power(base, value);
  };
  // Sizes get another small factor each, so that equal ones are equal for a reason.
  auto size_of = [&](const Extent& size) {
    int64_t value = size.constant();
    for (const auto& [symbol, coefficient] : size.terms()) {
      auto at = size_symbols_.find(symbol);
      const int64_t known = at == size_symbols_.end() ? 1 : power(Extent::Symbol(at->second));
      const int64_t factor = HashCombine(seed, static_cast<uint64_t>(symbol)) % 3;
      value += coefficient * known * (seed == 0 ? 1 : factor + 1);
    }
    return value;
  };
  Binding binding;
  const std::vector<DataType> types = DataTypesTaken(*instance_->rule);
  for (size_t x = 0; x < inputs_.size(); ++x) {
    TensorType type;
    type.dtype = types[x];
    for (size_t i = 0; i < inputs_[x].degrees.size(); ++i) {
      type.dims.push_back({size_of(instance_->inputs[x][i]), power(inputs_[x].degrees[i])});
    }
    type.copies = power(inputs_[x].copies);
    type.partials = power(inputs_[x].partials);
    binding.inputs.push_back(std::move(type));
  }
  for (const auto& [name, axis] : instance_->axes) binding.variables[name] = axis;
  for (const auto& [name, size] : instance_->sizes) binding.variables[name] = size_of(size);
  for (const auto& [name, variable] : degrees_) {
    binding.variables[name] = power(Extent::Symbol(variable));
  }
  for (const RuleVariable& variable : instance_->rule->variables) {
    if (variable.kind != VariableKind::kNumber) continue;
    constexpr double kNumbers[] = {2, 3, -1, 0.5};
    binding.numbers[variable.name] = kNumbers[HashBytes(variable.name, seed) % 4];
  }
  return binding;
}

}  // namespace isomer
