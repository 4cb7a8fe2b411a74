#include "verifier/refutation/counterexample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/evaluation/comparisons.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/number.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/ir/plan.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "verifier/values/evaluation_bound.h"

namespace isomer {
namespace {

using InputValues = std::vector<std::vector<std::vector<double>>>;  // [input][partial][element]

// Per input and partial, value(x, p, i) of element i; of other types than floats zeros, which are
// indices of any table.
template <typename ValueAt>
InputValues DrawFloats(const Binding& binding, ValueAt value) {
  InputValues inputs;
  for (size_t x = 0; x < binding.inputs.size(); ++x) {
    const TensorType& type = binding.inputs[x];
    inputs.emplace_back(type.partials * type.micro_batches);
    for (size_t p = 0; p < inputs.back().size(); ++p) {
      for (int64_t i = 0; i < type.NumElements(); ++i) {
        inputs[x][p].push_back(IsFloat(type.dtype) ? value(x, p, i) : 0);
      }
    }
  }
  return inputs;
}

// Small integers without 0.
double SmallInteger(uint64_t drawn) {
  constexpr double kValues[] = {1, 2, -1, 3, -2, 4, -3, 5};
  return kValues[drawn % 8];
}

InputValues DrawInputs(const Binding& binding, uint64_t seed) {
  return DrawFloats(binding, [&](size_t x, size_t p, int64_t i) {
    return SmallInteger(HashCombine(seed, x, p, static_cast<uint64_t>(i)));
  });
}

// The same about a number for each input.
InputValues DrawApart(const Binding& binding, uint64_t seed) {
  constexpr double kApart = 16;
  return DrawFloats(binding, [&](size_t x, size_t p, int64_t i) {
    return SmallInteger(HashCombine(seed, x, p, static_cast<uint64_t>(i))) +
           kApart * SmallInteger(HashCombine(seed, x, p));
  });
}

// Numbers between -2 and 2 of which no equation holds that does not hold of all: no divisor that is
// not zero everywhere is zero at them.
InputValues DrawGeneric(const Binding& binding, uint64_t seed) {
  return DrawFloats(binding, [&](size_t x, size_t p, int64_t i) {
    const uint64_t drawn = HashCombine(seed, x, p, static_cast<uint64_t>(i));
    return std::ldexp(static_cast<double>((drawn >> 12) | 1), drawn % 2 == 0 ? -51 : -52) *
           ((drawn & 2) == 0 ? 1 : -1);
  });
}

// Positive numbers, and in most inputs one or two that functions may be undefined at: if there were
// more, the source would be undefined, too, which shows nothing.
InputValues DrawEdges(const Binding& binding, uint64_t seed) {
  constexpr double kUsual[] = {1, 2, 0.5, 3, 1, 4, 0.25, 5};
  constexpr double kEdges[] = {0, 0, -1, -0.5};
  return DrawFloats(binding, [&](size_t x, size_t p, int64_t i) {
    const uint64_t elements = static_cast<uint64_t>(binding.inputs[x].NumElements());
    for (uint64_t edge = 0; edge < 2; ++edge) {
      const uint64_t drawn = HashCombine(seed, x, p, 1000 + edge);
      if (drawn % 3 != 0 && (drawn >> 8) % elements == static_cast<uint64_t>(i)) {
        return kEdges[(drawn >> 40) % 4];
      }
    }
    return kUsual[HashCombine(seed, x, p, static_cast<uint64_t>(i)) % 8];
  });
}

template <typename T>
absl::StatusOr<Values<T>> EvaluateAll(const Graph& graph, const InputValues& inputs) {
  ISOMER_RETURN_IF_ERROR(ExpectFewPoints(graph));
  std::map<NodeId, Value<T>> leaves;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(n);
    if (!IsLeaf(node.op.kind())) continue;
    const InputValues::value_type& parts = inputs[std::stoi(node.name.substr(1))];
    Value<T> value;
    value.type = node.outputs[0];
    for (const std::vector<double>& part : parts) {
      Array<T> array(value.type.Sizes());
      for (int64_t i = 0; i < array.size(); ++i) array.data[i] = Number<T>::FromDouble(part[i]);
      value.parts.push_back(std::move(array));
    }
    leaves[NodeId{n}] = std::move(value);
  }
  return EvaluateGraph<T>(graph, leaves);
}

template <typename T>
std::vector<Array<T>> MeaningsOfOutputs(const Graph& graph, const Values<T>& values) {
  std::vector<Array<T>> meanings;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    for (Array<T>& meaning : Meaning(values[output.tensor.node.value][output.tensor.output])) {
      meanings.push_back(std::move(meaning));
    }
  }
  return meanings;
}

// The first number of the array that is not finite, or "".
std::string NotFinite(const Array<double>& array, const std::string& name) {
  for (int64_t i = 0; i < array.size(); ++i) {
    if (std::isfinite(array.data[i])) continue;
    return absl::StrCat("element ", i, " of ", name, " is ", array.data[i]);
  }
  return "";
}

// What of the outputs, or of the gradients of their sum, is not finite; "" if all is, and `unclear`
// where rounding decides what is computed.
absl::StatusOr<std::string> NotFinite(const Graph& graph, const InputValues& inputs,
                                      const std::string& unclear) {
  ISOMER_ASSIGN_OR_RETURN(const Values<double> values, EvaluateAll<double>(graph, inputs));
  if (ComparesWhatIsNotFinite(graph, values)) return std::string("what is not finite is compared");
  if (RoundingMayDecide(graph, values)) return unclear;
  std::vector<std::vector<Array<double>>> seeds;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    seeds.emplace_back();
    for (Array<double>& meaning : Meaning(values[output.tensor.node.value][output.tensor.output])) {
      const std::string found = NotFinite(meaning, "output " + output.name);
      if (!found.empty()) return found;
      std::fill(meaning.data.begin(), meaning.data.end(), 1.0);
      seeds.back().push_back(std::move(meaning));
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const auto gradients, EvaluateGradients<double>(graph, values, seeds));
  for (const auto& [leaf, parts] : gradients) {
    for (const Array<double>& part : parts) {
      const std::string found =
          NotFinite(part, absl::StrCat("the gradient of ", graph.node(leaf).name));
      if (!found.empty()) return found;
    }
  }
  return std::string();
}

bool Differ(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) > 1e-6 * std::max({1.0, std::fabs(a), std::fabs(b)});
}
bool Differ(PartialField a, PartialField b) { return !MayBeEqual(a, b); }

std::string NumberText(double value) { return absl::StrCat(value); }
std::string NumberText(PartialField number) {
  return absl::StrCat(number.value().raw(), " (mod 2^61-1)");
}

// The first difference between the outputs, or "".
template <typename T>
absl::StatusOr<std::string> ValueDifference(const Graph& source, const Graph& target,
                                            const InputValues& inputs) {
  ISOMER_ASSIGN_OR_RETURN(const Values<T> source_values, EvaluateAll<T>(source, inputs));
  if constexpr (std::is_same_v<T, double>) {
    if (ComparesWhatIsNotFinite(source, source_values) ||
        RoundingMayDecide(source, source_values)) {
      return std::string();
    }
  }
  ISOMER_ASSIGN_OR_RETURN(const Values<T> target_values, EvaluateAll<T>(target, inputs));
  if constexpr (std::is_same_v<T, double>) {
    if (RoundingMayDecide(target, target_values)) return std::string();
  }
  const std::vector<Array<T>> left = MeaningsOfOutputs(source, source_values);
  const std::vector<Array<T>> right = MeaningsOfOutputs(target, target_values);
  for (size_t o = 0; o < left.size(); ++o) {
    for (int64_t i = 0; i < left[o].size(); ++i) {
      if (!Differ(left[o].data[i], right[o].data[i])) continue;
      return absl::StrCat("element ", i, " of output ", o, " is ", NumberText(left[o].data[i]),
                          " in the source and ", NumberText(right[o].data[i]), " in the target");
    }
  }
  return std::string();
}

struct Sides {
  Graph source, target;
};

// Types both sides. `difference`: the target is ill-typed or has other output types.
absl::StatusOr<Sides> TypeSides(const Rule& rule, const Binding& binding,
                                std::optional<Counterexample>* difference) {
  Sides sides;
  if (!Admits(rule, binding)) return absl::FailedPreconditionError("the conditions do not hold");
  ISOMER_ASSIGN_OR_RETURN(sides.source, InstantiatePattern(rule.source, binding));
  Counterexample found;
  found.binding = binding;
  absl::StatusOr<Graph> target = InstantiatePattern(rule.target, binding);
  if (!target.ok()) {
    found.kind = Counterexample::Kind::kTargetIllTyped;
    found.difference =
        absl::StrCat("the target does not type-check: ", std::string(target.status().message()));
    *difference = std::move(found);
    return sides;
  }
  sides.target = *std::move(target);
  for (size_t o = 0; o < sides.source.outputs().size(); ++o) {
    const TensorType& a = sides.source.type(sides.source.outputs()[o].tensor);
    const TensorType& b = sides.target.type(sides.target.outputs()[o].tensor);
    if (a == b) continue;
    found.kind = Counterexample::Kind::kOutputTypes;
    found.difference = absl::StrCat("output ", o, " is ", a.ToString(), " in the source and ",
                                    b.ToString(), " in the target");
    *difference = std::move(found);
    return sides;
  }
  return sides;
}

absl::StatusOr<std::optional<Counterexample>> TryUndefined(const Rule& rule, const Binding& binding,
                                                           const InputValues& inputs) {
  std::optional<Counterexample> difference;
  ISOMER_ASSIGN_OR_RETURN(const Sides sides, TypeSides(rule, binding, &difference));
  if (difference) return difference;
  ISOMER_ASSIGN_OR_RETURN(const std::string source, NotFinite(sides.source, inputs, "unclear"));
  if (!source.empty()) return std::optional<Counterexample>();
  ISOMER_ASSIGN_OR_RETURN(const std::string target, NotFinite(sides.target, inputs, ""));
  if (target.empty()) return std::optional<Counterexample>();
  Counterexample found;
  found.kind = Counterexample::Kind::kUndefined;
  found.binding = binding;
  found.inputs = inputs;
  found.difference = absl::StrCat(target, " in the target; all is finite in the source");
  return std::optional<Counterexample>(std::move(found));
}

std::string BindingText(const Binding& binding) {
  std::vector<std::string> parts;
  for (size_t x = 0; x < binding.inputs.size(); ++x) {
    parts.push_back(absl::StrCat("x", x, " : ", binding.inputs[x].ToString()));
  }
  for (const auto& [name, value] : binding.variables) {
    parts.push_back(absl::StrCat(name, " = ", value));
  }
  for (const auto& [name, value] : binding.numbers) {
    parts.push_back(absl::StrCat(name, " = ", value));
  }
  for (const auto& [name, value] : binding.attributes) {
    parts.push_back(absl::StrCat(name, " = ", AttributeText(value)));
  }
  return absl::StrJoin(parts, ", ");
}

// The graph with its inputs turned into weights that hold the inputs' meanings.
absl::StatusOr<Model> ModelOf(const Pattern& pattern, const Counterexample& counterexample) {
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, InstantiatePattern(pattern, counterexample.binding));
  Model model;
  model.name = "counterexample";
  std::vector<NodeId> ids;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(n);
    if (IsLeaf(node.op.kind())) {
      const int x = std::stoi(node.name.substr(1));
      ids.push_back(model.graph.AddWeight(node.name, node.outputs[0]).node);
      if (counterexample.inputs.empty()) continue;
      std::vector<float> meaning(node.outputs[0].NumElements());
      for (const std::vector<double>& part : counterexample.inputs[x]) {
        for (size_t i = 0; i < meaning.size(); ++i) meaning[i] += static_cast<float>(part[i]);
      }
      model.weights[node.name] = std::move(meaning);
      continue;
    }
    std::vector<TensorRef> inputs = node.inputs;
    for (TensorRef& input : inputs) input.node = ids[input.node.value];
    ISOMER_ASSIGN_OR_RETURN(const NodeId id, model.graph.Add(node.op, inputs, node.name));
    ids.push_back(id);
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    model.graph.AddOutput(output.name, {ids[output.tensor.node.value], output.tensor.output});
  }
  return model;
}

}  // namespace

std::string Counterexample::Summary() const {
  return absl::StrCat(BindingText(binding), ": ", difference);
}

std::string Counterexample::ToString(const Rule& rule) const {
  std::string text = absl::StrCat("rule ", rule.id, ": ", rule.ToString(), "\nat ",
                                  BindingText(binding), "\n", difference, "\n\nsource:\n");
  for (const Pattern* pattern : {&rule.source, &rule.target}) {
    if (pattern == &rule.target) absl::StrAppend(&text, "\ntarget:\n");
    const absl::StatusOr<Graph> graph = InstantiatePattern(*pattern, binding);
    absl::StrAppend(&text, graph.ok() ? graph->ToString()
                                      : absl::StrCat(std::string(graph.status().message()), "\n"));
  }
  for (size_t x = 0; x < inputs.size(); ++x) {
    for (size_t p = 0; p < inputs[x].size(); ++p) {
      absl::StrAppend(&text, p == 0 && x == 0 ? "\n" : "", "x", x);
      if (inputs[x].size() > 1) absl::StrAppend(&text, " partial ", p);
      absl::StrAppend(&text, " = [", absl::StrJoin(inputs[x][p], ", "), "]\n");
    }
  }
  return text;
}

absl::StatusOr<std::optional<Counterexample>> TryBinding(const Rule& rule, const Binding& binding,
                                                         uint64_t seed) {
  return TryInputs(rule, binding, DrawInputs(binding, seed));
}

absl::StatusOr<std::optional<Counterexample>> TryApart(const Rule& rule, const Binding& binding,
                                                       uint64_t seed) {
  return TryInputs(rule, binding, DrawApart(binding, seed));
}

absl::StatusOr<std::optional<Counterexample>> TryInputs(const Rule& rule, const Binding& binding,
                                                        const InputValues& inputs) {
  std::optional<Counterexample> difference;
  ISOMER_ASSIGN_OR_RETURN(const Sides sides, TypeSides(rule, binding, &difference));
  if (difference) return difference;
  ISOMER_ASSIGN_OR_RETURN(const std::string text,
                          ValueDifference<double>(sides.source, sides.target, inputs));
  if (text.empty()) return std::optional<Counterexample>();
  Counterexample found;
  found.binding = binding;
  found.inputs = inputs;
  found.difference = text;
  return std::optional<Counterexample>(std::move(found));
}

absl::StatusOr<std::optional<Counterexample>> TryAtEdges(const Rule& rule, const Binding& binding,
                                                         uint64_t seed) {
  const InputValues inputs = DrawEdges(binding, seed);
  ISOMER_ASSIGN_OR_RETURN(std::optional<Counterexample> found, TryInputs(rule, binding, inputs));
  if (found) return found;
  return TryUndefined(rule, binding, inputs);
}

absl::Status ExpectEqualInField(const Rule& rule, const Binding& binding, uint64_t seed) {
  std::optional<Counterexample> difference;
  ISOMER_ASSIGN_OR_RETURN(const Sides sides, TypeSides(rule, binding, &difference));
  if (difference) return absl::InternalError(difference->Summary());
  ISOMER_ASSIGN_OR_RETURN(
      const std::string text,
      ValueDifference<PartialField>(sides.source, sides.target, DrawGeneric(binding, seed)));
  if (text.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(BindingText(binding), ": ", text));
}

absl::Status Replay(const Rule& rule, const Counterexample& counterexample) {
  std::optional<Counterexample> difference;
  ISOMER_ASSIGN_OR_RETURN(const Sides sides, TypeSides(rule, counterexample.binding, &difference));
  if (difference) {
    return difference->kind == counterexample.kind
               ? absl::OkStatus()
               : absl::FailedPreconditionError("another difference than the one recorded");
  }
  if (counterexample.kind == Counterexample::Kind::kUndefined) {
    ISOMER_ASSIGN_OR_RETURN(difference,
                            TryUndefined(rule, counterexample.binding, counterexample.inputs));
    return difference ? absl::OkStatus()
                      : absl::FailedPreconditionError("both sides are defined, or neither is");
  }
  ISOMER_ASSIGN_OR_RETURN(
      const std::string text,
      ValueDifference<double>(sides.source, sides.target, counterexample.inputs));
  return text.empty() ? absl::FailedPreconditionError("both sides agree") : absl::OkStatus();
}

absl::Status SaveCounterexample(const std::string& stem, const Rule& rule,
                                const Counterexample& counterexample) {
  ISOMER_ASSIGN_OR_RETURN(const Model source, ModelOf(rule.source, counterexample));
  ISOMER_RETURN_IF_ERROR(SaveModel(stem + ".source.txt", source));
  const absl::StatusOr<Model> target = ModelOf(rule.target, counterexample);
  if (target.ok()) ISOMER_RETURN_IF_ERROR(SaveModel(stem + ".target.txt", *target));
  return WriteFileAtomically(stem + ".txt", counterexample.ToString(rule));
}

}  // namespace isomer
