#include "verifier/audit/format_proof.h"

#include <algorithm>
#include <set>
#include <utility>

#include "verifier/terms/rule_instance.h"
#include "verifier/types/type_proof.h"
#include "verifier/values/representative_bindings.h"

namespace isomer {
namespace {

// The same sizes, not parallel.
Binding Whole(Binding binding) {
  for (TensorType& type : binding.inputs) type = SequentialType(type.Sizes());
  return binding;
}

// Small assignments of the rule's inputs, as they come.
std::vector<Binding> Bindings(const Rule& rule) {
  const auto instances = InstancesOf(rule);
  if (!instances.ok()) return RepresentativeBindings(rule);
  std::vector<Binding> bindings;
  for (const RuleInstance& instance : *instances) {
    for (uint64_t seed : {1, 2}) {
      for (Binding& binding : SmallBindings(instance, 4, seed)) {
        bindings.push_back(std::move(binding));
      }
    }
  }
  return bindings;
}

bool ProvedAt(const std::vector<RuleInstance>& instances, bool with_types, ValueProver* values,
              std::vector<std::string>* lemmas) {
  std::set<std::string> used;
  for (const RuleInstance& instance : instances) {
    if (!instance.target_status.ok()) return false;
    if (with_types && ProveTypes(instance).verdict != SmtVerdict::kValid) return false;
    const ValueProof proof = values->Prove(instance);
    if (proof.verdict != SmtVerdict::kValid) return false;
    used.insert(proof.lemmas.begin(), proof.lemmas.end());
  }
  lemmas->assign(used.begin(), used.end());
  return !instances.empty();
}

// Evaluation agrees with what is proved, and is about something.
bool Evaluates(const Rule& rule, bool whole) {
  bool evaluated = false;
  for (const Binding& binding : Bindings(rule)) {
    const auto found = TryBinding(rule, whole ? Whole(binding) : binding, 1);
    if (!found.ok()) continue;
    if (*found) return false;
    evaluated = true;
  }
  return evaluated;
}

bool HasParallel(const Rule& rule) {
  for (const Pattern* side : {&rule.source, &rule.target}) {
    for (const PatternNode& node : side->nodes) {
      if (IsParallel(node.kind)) return true;
    }
  }
  return false;
}

}  // namespace

bool IsOfFloats(const Binding& binding) {
  return std::all_of(binding.inputs.begin(), binding.inputs.end(),
                     [](const TensorType& type) { return type.dtype == DataType::kFloat32; });
}

bool IsWhole(const Binding& binding) {
  return std::none_of(binding.inputs.begin(), binding.inputs.end(),
                      [](const TensorType& type) { return type.IsParallel(); });
}

bool ProvedForFloats(const Rule& rule, ValueProver* values, std::vector<std::string>* lemmas) {
  const auto instances = InstancesOf(rule);
  return instances.ok() && ProvedAt(*instances, /*with_types=*/true, values, lemmas) &&
         Evaluates(rule, /*whole=*/false);
}

bool ProvedForWhole(const Rule& rule, ValueProver* values, std::vector<std::string>* lemmas) {
  if (HasParallel(rule)) return false;
  const auto instances = InstancesOf(rule);
  return instances.ok() && ProvedAt(*instances, /*with_types=*/false, values, lemmas) &&
         Evaluates(rule, /*whole=*/true);
}

std::optional<Counterexample> RefutedForWhole(const Rule& rule) {
  for (const Binding& binding : Bindings(rule)) {
    for (uint64_t seed : {1, 2}) {
      auto found = TryBinding(rule, Whole(binding), seed);
      if (found.ok() && *found) return *std::move(found);
    }
  }
  return std::nullopt;
}

}  // namespace isomer
