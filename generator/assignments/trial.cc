#include "generator/assignments/trial.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "pcg/evaluation/partial_field.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

void Draw(Random* random, PrimeField* value) {
  *value = PrimeField::FromRaw((*random)() % PrimeField::kPrime);
}
void Draw(Random* random, PartialField* value) {
  PrimeField drawn;
  Draw(random, &drawn);
  *value = drawn;
}
void Draw(Random* random, double* value) {
  *value = std::uniform_real_distribution<double>(0.1, 1)(*random) * (Chance(random, 50) ? 1 : -1);
}

// The meanings of the outputs of one side; inputs are nodes 0, 1, ...
template <typename T>
absl::StatusOr<std::vector<std::vector<Array<T>>>> Run(const Pattern& pattern,
                                                       const Binding& binding,
                                                       const std::vector<Value<T>>& inputs) {
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, binding));
  std::map<NodeId, Value<T>> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) leaves[NodeId{static_cast<int32_t>(i)}] = inputs[i];
  ISOMER_ASSIGN_OR_RETURN(const Values<T> values, EvaluateGraph<T>(graph, leaves));
  std::vector<std::vector<Array<T>>> outputs;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    outputs.push_back(Meaning(values[output.tensor.node.value][output.tensor.output]));
  }
  return outputs;
}

template <typename T>
struct Outputs {
  std::vector<std::vector<Array<T>>> source, target;
};

template <typename T>
absl::StatusOr<Outputs<T>> RunBoth(const Rule& rule, const Binding& binding, Random* random) {
  std::vector<Value<T>> inputs;
  for (const TensorType& type : binding.inputs) inputs.push_back(RandomValue<T>(type, random));
  Outputs<T> outputs;
  ISOMER_ASSIGN_OR_RETURN(outputs.source, Run<T>(rule.source, binding, inputs));
  ISOMER_ASSIGN_OR_RETURN(outputs.target, Run<T>(rule.target, binding, inputs));
  return outputs;
}

}  // namespace

bool TypesAgree(const Rule& rule, const Binding& binding, TypeOracle* oracle) {
  const auto source = OutputTypes(rule.source, binding, oracle);
  return source.has_value() && source == OutputTypes(rule.target, binding, oracle);
}

template <typename T>
Value<T> RandomValue(const TensorType& type, Random* random) {
  Value<T> value;
  value.type = type;
  for (int64_t part = 0; part < type.partials * type.micro_batches; ++part) {
    Array<T> array(type.Sizes());
    for (int64_t e = 0; e < array.size(); ++e) {
      T& element = array.data[e];
      if (!IsFloat(type.dtype)) {
        const T one = Number<T>::FromDouble(1);
        element = T();
        int64_t bound = 3;
        if (type.dtype == DataType::kBool)
          bound = e % type.partials == part % type.partials ? 2 : 1;
        for (int64_t i = Below(random, bound); i > 0; --i) element = element + one;
      } else {
        Draw(random, &element);
      }
    }
    value.parts.push_back(std::move(array));
  }
  return value;
}

template Value<double> RandomValue<double>(const TensorType&, Random*);
template Value<PrimeField> RandomValue<PrimeField>(const TensorType&, Random*);
template Value<PartialField> RandomValue<PartialField>(const TensorType&, Random*);

namespace {

bool Has(const Rule& rule, OpKind a, OpKind b) {
  auto among = [&](const Pattern& pattern) {
    return std::any_of(pattern.nodes.begin(), pattern.nodes.end(),
                       [&](const PatternNode& node) { return node.kind == a || node.kind == b; });
  };
  return among(rule.source) || among(rule.target);
}

bool Divides(const Rule& rule) { return Has(rule, OpKind::kDiv, OpKind::kReciprocal); }

// Whether both sides are defined at the same elements, of inputs and factors many of which are
// zero: x / x is not 1 there, nor x * (y / (x * x)) what y / x is, of which a field with 1 / 0 = 0
// knows nothing. Sums may be infinite where a part of them is not a number.
absl::StatusOr<bool> DefinedAlike(const Rule& rule, Binding binding, Random* random) {
  const bool sums =
      Has(rule, OpKind::kAdd, OpKind::kSub) || Has(rule, OpKind::kReduceSum, OpKind::kMatMul);
  std::vector<Value<double>> inputs;
  for (const TensorType& type : binding.inputs) {
    inputs.push_back(RandomValue<double>(type, random));
    for (Array<double>& part : inputs.back().parts) {
      for (double& element : part.data) element = static_cast<double>(Below(random, 3));
    }
  }
  for (auto& [name, number] : binding.numbers) number = Chance(random, 30) ? 0 : number;
  ISOMER_ASSIGN_OR_RETURN(const auto source, Run<double>(rule.source, binding, inputs));
  ISOMER_ASSIGN_OR_RETURN(const auto target, Run<double>(rule.target, binding, inputs));
  for (size_t o = 0; o < source.size(); ++o) {
    for (size_t m = 0; m < source[o].size(); ++m) {
      for (size_t i = 0; i < source[o][m].data.size(); ++i) {
        const double a = source[o][m].data[i], b = target[o][m].data[i];
        if (std::isfinite(a) != std::isfinite(b)) return false;
        if (!sums && std::isnan(a) != std::isnan(b)) return false;
      }
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> ValuesAgree(const Rule& rule, const Binding& binding, Random* random) {
  ISOMER_ASSIGN_OR_RETURN(const Outputs<PrimeField> outputs,
                          RunBoth<PrimeField>(rule, binding, random));
  for (size_t o = 0; o < outputs.source.size(); ++o) {
    if (outputs.source[o].size() != outputs.target[o].size()) return false;
    for (size_t m = 0; m < outputs.source[o].size(); ++m) {
      const Array<PrimeField>&a = outputs.source[o][m], &b = outputs.target[o][m];
      if (a.shape != b.shape || a.data != b.data) return false;
    }
  }
  if (!Divides(rule)) return true;
  return DefinedAlike(rule, binding, random);
}

absl::StatusOr<double> LargestRelativeDifference(const Rule& rule, const Binding& binding,
                                                 Random* random) {
  ISOMER_ASSIGN_OR_RETURN(const Outputs<double> outputs, RunBoth<double>(rule, binding, random));
  double worst = 0;
  for (size_t o = 0; o < outputs.source.size(); ++o) {
    for (size_t m = 0; m < outputs.source[o].size(); ++m) {
      const std::vector<double>&a = outputs.source[o][m].data, &b = outputs.target[o][m].data;
      double scale = 1e-30, difference = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        if (!std::isfinite(a[i]) && !std::isfinite(b[i])) continue;  // log of a negative number
        scale = std::max(scale, std::abs(a[i]));
        difference = std::max(difference, std::abs(a[i] - b[i]));
      }
      worst = std::max(worst, difference / scale);
    }
  }
  return worst;
}

bool TypesAndValuesAgree(const Rule& rule, const Binding& binding, TypeOracle* oracle,
                         Random* random) {
  if (!TypesAgree(rule, binding, oracle)) return false;
  const absl::StatusOr<bool> agree = ValuesAgree(rule, binding, random);
  return agree.ok() && *agree;
}

}  // namespace isomer
