#include "generator/enumeration/equation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "pcg/ir/operator_traits.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

// Builds one side; inputs of the configuration get rule numbers in order of first use.
class SideBuilder {
 public:
  SideBuilder(const EnumeratedNodes& nodes, const EnumeratedNode& term, std::vector<int>* numbers)
      : nodes_(nodes), term_(term), numbers_(numbers) {}

  Pattern Build(const TensorList& outputs) {
    for (int tensor : outputs) pattern_.outputs.push_back(Ref(tensor));
    return std::move(pattern_);
  }

 private:
  PatternRef Ref(int tensor) {
    const PatternRef definition = DefinitionOf(tensor);
    if (definition.node < 0) {
      auto at = std::find(numbers_->begin(), numbers_->end(), definition.index);
      if (at == numbers_->end()) at = numbers_->insert(numbers_->end(), definition.index);
      return PatternRef::Input(static_cast<int>(at - numbers_->begin()));
    }
    auto found = placed_.find(definition.node);
    if (found == placed_.end()) {
      const bool is_term = definition.node == static_cast<int>(nodes_.nodes.size());
      const EnumeratedNode& node = is_term ? term_ : nodes_.nodes[definition.node];
      PatternNode pattern{node.call->op.kind(), {}, {}};
      for (int operand : node.operands) pattern.inputs.push_back(Ref(operand));
      for (const Attribute& a : node.call->op.attributes())
        pattern.attributes.push_back(ConstantAttribute(a));
      pattern_.nodes.push_back(std::move(pattern));
      found = placed_.emplace(definition.node, static_cast<int>(pattern_.nodes.size()) - 1).first;
    }
    return PatternRef::Node(found->second, definition.index);
  }

  PatternRef DefinitionOf(int tensor) const {
    const int output = tensor - nodes_.OutputOfTerm(0);
    if (output < 0) return nodes_.tensors[tensor];
    return PatternRef::Node(static_cast<int>(nodes_.nodes.size()), output);
  }

  const EnumeratedNodes& nodes_;
  const EnumeratedNode& term_;
  std::vector<int>* const numbers_;
  Pattern pattern_;
  std::map<int, int> placed_;
};

// The text of a rule with this node alone has the attributes. Few operators occur in very many
// candidates: texts are made once.
uint64_t HashOfOperator(const PatternNode& node) {
  static thread_local std::map<OpKind,
                               std::vector<std::pair<std::vector<AttributePattern>, uint64_t>>>
      known;
  auto& hashes = known[node.kind];
  for (const auto& [attributes, hash] : hashes) {
    if (attributes == node.attributes) return hash;
  }
  Rule alone;
  alone.source.nodes = {{node.kind, node.attributes, {}}};
  alone.source.outputs = {PatternRef::Node(0)};
  return hashes.emplace_back(node.attributes, HashBytes(alone.ToString())).second;
}

// Hashes of the tensors of one side under names of the inputs; operands of commutative operators
// in the order of their hashes.
class SideHash {
 public:
  explicit SideHash(const Pattern& pattern) : pattern_(pattern) {
    for (const PatternNode& node : pattern.nodes) operators_.push_back(HashOfOperator(node));
  }

  uint64_t Under(const std::vector<int>& names) {
    hashes_.clear();
    auto of = [&](PatternRef ref) {
      return ref.node < 0 ? HashMix(static_cast<uint64_t>(names[ref.index]))
                          : HashCombine(hashes_[ref.node], static_cast<uint64_t>(ref.index));
    };
    for (size_t n = 0; n < pattern_.nodes.size(); ++n) {
      absl::InlinedVector<uint64_t, 4> operands;
      for (PatternRef input : pattern_.nodes[n].inputs) operands.push_back(of(input));
      if (IsCommutative(pattern_.nodes[n].kind)) std::sort(operands.begin(), operands.end());
      uint64_t hash = operators_[n];
      for (uint64_t operand : operands) hash = HashCombine(hash, operand);
      hashes_.push_back(hash);
    }
    uint64_t hash = 0;
    for (PatternRef ref : pattern_.outputs) hash = HashCombine(hash, of(ref));
    return hash;
  }

 private:
  const Pattern& pattern_;
  std::vector<uint64_t> operators_, hashes_;
};

}  // namespace

AttributePattern ConstantAttribute(const Attribute& a) {
  if (auto* integer = std::get_if<int64_t>(&a.value)) return {a.name, IntExpr::Constant(*integer)};
  if (auto* number = std::get_if<double>(&a.value)) return {a.name, NumberExpr{*number, {}}};
  if (auto* sizes = std::get_if<std::vector<Extent>>(&a.value)) {
    std::vector<IntExpr> list;
    for (const Extent& size : *sizes) list.push_back(IntExpr::Constant(size.value()));
    return {a.name, list};
  }
  const auto& integers = std::get<std::vector<int64_t>>(a.value);
  if (a.name == "perm") return {a.name, ExchangeOf(integers)};
  std::vector<IntExpr> list;
  for (int64_t integer : integers) list.push_back(IntExpr::Constant(integer));
  return {a.name, list};
}

std::string EnumeratedNodes::Text(const EnumeratedNode& term, const TensorList& source,
                                  const TensorList& target) const {
  Rule rule;
  std::vector<int> numbers;
  rule.source = SideBuilder(*this, term, &numbers).Build(source);
  rule.target = SideBuilder(*this, term, &numbers).Build(target);
  return rule.ToString();
}

SwapAxes ExchangeOf(const std::vector<int64_t>& perm) {
  const auto rank = static_cast<int64_t>(perm.size());
  std::vector<int64_t> moved;
  for (int64_t i = 0; i < rank; ++i) {
    if (perm[i] != i) moved.push_back(i - rank);
  }
  return moved.size() == 2 ? SwapAxes{moved[0], moved[1]} : SwapAxes{};
}

std::optional<Candidate> MakeCandidate(const EnumeratedNodes& nodes, const EnumeratedNode& term,
                                       const std::vector<TensorType>& inputs,
                                       const TensorList& source, const TensorList& target) {
  for (const bool exchanged : {false, true}) {
    Candidate candidate;
    std::vector<int> numbers;
    candidate.source = SideBuilder(nodes, term, &numbers).Build(exchanged ? target : source);
    const size_t used = numbers.size();
    candidate.target = SideBuilder(nodes, term, &numbers).Build(exchanged ? source : target);
    if (numbers.size() != used) continue;
    // A side that is an input alone and binds nothing else: x -> ..., told apart later.
    for (int input : numbers) candidate.inputs.push_back(inputs[input]);
    return candidate;
  }
  return std::nullopt;
}

std::string CanonicalName(const Candidate& candidate) {
  std::vector<int> names(candidate.inputs.size());
  std::iota(names.begin(), names.end(), 0);
  SideHash source(candidate.source), target(candidate.target);
  uint64_t best = ~uint64_t{0};
  do {
    bool same_types = true;
    for (size_t i = 0; i < names.size(); ++i) {
      same_types = same_types && candidate.inputs[i] == candidate.inputs[names[i]];
    }
    if (!same_types) continue;
    best = std::min(best, HashCombine(source.Under(names), target.Under(names)));
  } while (std::next_permutation(names.begin(), names.end()));
  return DigestString(best);
}

}  // namespace isomer
