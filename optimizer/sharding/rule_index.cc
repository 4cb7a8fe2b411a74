#include "optimizer/sharding/rule_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "pcg/ir/operator_call.h"

namespace isomer {
namespace {

int CountParallel(const Pattern& pattern) {
  return static_cast<int>(std::count_if(pattern.nodes.begin(), pattern.nodes.end(),
                                        [](const PatternNode& n) { return IsParallel(n.kind); }));
}

// Whether the pattern is a chain of unary parallel operators from its one input to its one output.
bool IsChain(const Pattern& pattern) {
  if (pattern.outputs.size() != 1) return false;
  PatternRef at = PatternRef::Input(0);
  for (int i = 0; i < static_cast<int>(pattern.nodes.size()); ++i) {
    const PatternNode& node = pattern.nodes[i];
    if (!IsParallel(node.kind) || node.inputs.size() != 1 || node.inputs[0] != at) return false;
    at = PatternRef::Node(i);
  }
  return pattern.outputs[0] == at;
}

const std::vector<const Rule*>& Of(OpKind kind,
                                   const std::map<OpKind, std::vector<const Rule*>>& rules) {
  static const std::vector<const Rule*> kNone;
  const auto it = rules.find(kind);
  return it == rules.end() ? kNone : it->second;
}

bool IsExpansion(const Rule& rule) {
  if (rule.source.nodes.size() != 1 || IsParallel(rule.source.nodes[0].kind)) return false;
  const int inner = InnerNode(rule.target);
  return inner >= 0 && rule.target.nodes.size() > 1 &&
         rule.target.nodes[inner].kind == rule.source.nodes[0].kind;
}

// Whether the rule has the form replicate(f(x, ..)) -> f(replicate(x), ..).
bool IsCopy(const Rule& rule) {
  const std::vector<PatternNode>&source = rule.source.nodes, &target = rule.target.nodes;
  if (source.size() != 2 || IsParallel(source[0].kind) || target.empty()) return false;
  return source[1].kind == OpKind::kReplicate && target.back().kind == source[0].kind &&
         std::all_of(target.begin(), target.end() - 1,
                     [](const PatternNode& node) { return node.kind == OpKind::kReplicate; });
}

}  // namespace

bool UsesParallelOperators(const Rule& rule) {
  return CountParallel(rule.source) + CountParallel(rule.target) > 0;
}

int InnerNode(const Pattern& pattern) {
  int inner = -1;
  for (int i = 0; i < static_cast<int>(pattern.nodes.size()); ++i) {
    if (IsParallel(pattern.nodes[i].kind)) continue;
    if (inner >= 0) return -1;
    inner = i;
  }
  return inner;
}

RuleIndex::RuleIndex(const RuleSet& rules) : rules_(rules), digest_(rules.Digest()) {
  for (const Rule& rule : rules.rules) Add(rule);
  for (const Rule& rule : rules.inverses()) Add(rule);
}

void RuleIndex::Add(const Rule& rule) {
  if (!UsesParallelOperators(rule)) {
    algebra_.push_back(&rule);
  } else if (rule.num_inputs == 1 && !rule.source.nodes.empty() && IsChain(rule.source) &&
             IsChain(rule.target)) {
    chains_.push_back(&rule);
  } else if (IsExpansion(rule)) {
    expansions_[rule.source.nodes[0].kind].push_back(&rule);
  } else if (IsCopy(rule)) {
    copies_[rule.source.nodes[0].kind].push_back(&rule);
  }
}

std::vector<std::vector<const Rule*>> RuleIndex::AlgebraByFiles() const {
  std::vector<std::vector<const Rule*>> by_files;
  absl::flat_hash_set<const Rule*> known;
  size_t rule = 0, inverse = 0;
  for (const size_t end : rules_.file_ends) {
    for (; rule < end; ++rule) {
      known.insert(&rules_.rules[rule]);
      if (rules_.rules[rule].reversible) known.insert(&rules_.inverses()[inverse++]);
    }
    std::vector<const Rule*> algebra;
    absl::c_copy_if(algebra_, std::back_inserter(algebra),
                    [&](const Rule* one) { return known.contains(one); });
    // A file of sharding rules alone adds none.
    const size_t before = by_files.empty() ? 0 : by_files.back().size();
    if (algebra.size() > before) by_files.push_back(std::move(algebra));
  }
  if (by_files.empty()) by_files.push_back(algebra_);
  return by_files;
}

const std::vector<const Rule*>& RuleIndex::ExpansionsOf(OpKind kind) const {
  return Of(kind, expansions_);
}

const std::vector<const Rule*>& RuleIndex::CopiesOf(OpKind kind) const { return Of(kind, copies_); }

bool RuleIndex::HasCopyOf(OpKind kind, absl::Span<const TensorType> operands) const {
  return absl::c_any_of(CopiesOf(kind), [ranks = RanksOf(operands)](const Rule* rule) {
    return absl::c_linear_search(rule->ranks, ranks);
  });
}

}  // namespace isomer
