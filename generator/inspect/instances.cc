#include "generator/inspect/instances.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "pcg/support/hash.h"

namespace isomer {
namespace {

// Above this many inputs, permutations are too many to try; names are as the rule has them.
constexpr int kMostPermuted = 6;

// One side, its attributes instantiated.
struct ConcreteSide {
  const Pattern* pattern;
  std::vector<uint64_t> ops;  // hashes of operators
};

// The hash of an operator without what depends on sizes, axes counted from the end.
uint64_t HashOf(Operator op, int rank) {
  if (const AttributeValue* sizes = op.Find("sizes");
      sizes != nullptr && std::holds_alternative<std::vector<Extent>>(*sizes)) {
    op.Set("sizes", std::vector<Extent>(op.Extents("sizes").size(), 1));
  }
  if (const AttributeValue* axis = op.Find("axis");
      axis != nullptr && std::holds_alternative<int64_t>(*axis) && op.Int("axis") >= 0) {
    op.Set("axis", op.Int("axis") - rank);
  }
  return op.Hash();
}

uint64_t HashOf(const ConcreteSide& side, const std::vector<uint64_t>& inputs) {
  std::vector<uint64_t> nodes;
  auto hash_of = [&](PatternRef ref) {
    return ref.node < 0 ? inputs[ref.index] : HashCombine(nodes[ref.node], ref.index);
  };
  for (size_t n = 0; n < side.ops.size(); ++n) {
    const PatternNode& node = side.pattern->nodes[n];
    std::vector<uint64_t> operands;
    for (PatternRef ref : node.inputs) operands.push_back(hash_of(ref));
    if (node.kind == OpKind::kAdd || node.kind == OpKind::kMul) {
      std::sort(operands.begin(), operands.end());
    }
    uint64_t hash = side.ops[n];
    for (uint64_t operand : operands) hash = HashCombine(hash, operand);
    nodes.push_back(hash);
  }
  uint64_t hash = 0;
  for (PatternRef ref : side.pattern->outputs) hash = HashCombine(hash, hash_of(ref));
  return hash;
}

std::optional<ConcreteSide> Concrete(const Pattern& pattern, const Binding& binding,
                                     TypeOracle* oracle) {
  const std::optional<TypedPattern> typed = InferPattern(pattern, binding, oracle);
  if (!typed.has_value()) return std::nullopt;
  ConcreteSide side{&pattern, {}};
  for (size_t n = 0; n < typed->ops.size(); ++n) {
    const int rank = typed->TypeOf(binding, pattern.nodes[n].inputs[0]).rank();
    side.ops.push_back(HashOf(typed->ops[n], rank));
  }
  return side;
}

}  // namespace

std::optional<uint64_t> InstanceHash(const Rule& rule, const Binding& binding, TypeOracle* oracle) {
  const auto source = Concrete(rule.source, binding, oracle);
  const auto target = Concrete(rule.target, binding, oracle);
  if (!source.has_value() || !target.has_value()) return std::nullopt;
  std::vector<int> names(rule.num_inputs);
  std::iota(names.begin(), names.end(), 0);
  std::optional<uint64_t> least;
  do {
    std::vector<uint64_t> inputs;
    for (int i = 0; i < rule.num_inputs; ++i) {
      inputs.push_back(HashCombine(names[i], binding.inputs[i].rank()));
    }
    const uint64_t hash = HashCombine(HashOf(*source, inputs), HashOf(*target, inputs));
    least = std::min(least.value_or(hash), hash);
  } while (rule.num_inputs <= kMostPermuted && std::next_permutation(names.begin(), names.end()));
  return least;
}

std::vector<Instance> InstancesOf(const Rule& rule, TypeOracle* oracle) {
  std::vector<Instance> instances;
  for (const Binding& binding : InstancesAtDegreeTwo(rule, oracle)) {
    const std::optional<uint64_t> hash = InstanceHash(rule, binding, oracle);
    if (!hash.has_value()) continue;
    instances.push_back({*hash, std::nullopt});
    if (rule.reversible) instances.back().inverse = InstanceHash(Inverse(rule), binding, oracle);
  }
  return instances;
}

std::vector<std::vector<Instance>> InstancesOf(const std::vector<Rule>& rules) {
  std::vector<std::vector<Instance>> instances(rules.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    TypeOracle oracle;
    for (size_t r = next++; r < rules.size(); r = next++) {
      instances[r] = InstancesOf(rules[r], &oracle);
    }
  };
  std::vector<std::thread> threads;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned t = 1; t < cores; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return instances;
}

int64_t InstanceCounter::Add(const std::vector<Instance>& instances) {
  int64_t added = 0;
  for (const Instance& instance : instances) {
    if (!known_.insert(instance.hash).second) continue;
    const bool is_new = !instance.inverse.has_value() || instance.inverse == instance.hash ||
                        known_.insert(*instance.inverse).second;
    added += is_new;
  }
  return added;
}

}  // namespace isomer
