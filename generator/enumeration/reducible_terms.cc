#include "generator/enumeration/reducible_terms.h"

#include <algorithm>

namespace isomer {

const EnumeratedCall* ReducibleTerms::MakerOf(int tensor) const {
  const PatternRef definition = store_->nodes().tensors[tensor];
  return definition.node < 0 ? nullptr : store_->nodes().nodes[definition.node].call;
}

void ReducibleTerms::Add(const EnumeratedTerm& term, int size) {
  Key key = {term.call};
  for (int operand : term.operands) key.push_back(MakerOf(operand));
  patterns_[key].push_back({term, size});
}

bool ReducibleTerms::HasInstance(const EnumeratedTerm& term) const {
  Key made = {term.call};
  for (int operand : term.operands) made.push_back(MakerOf(operand));
  // An input of a pattern stands for any operand.
  const unsigned subsets = 1u << term.operands.size();
  for (unsigned inputs = 0; inputs < subsets; ++inputs) {
    Key key = made;
    bool is_new = true;
    for (size_t o = 0; o < term.operands.size(); ++o) {
      if ((inputs >> o & 1) == 0) continue;
      is_new &= key[o + 1] != nullptr;
      key[o + 1] = nullptr;
    }
    if (!is_new) continue;
    const auto found = patterns_.find(key);
    if (found == patterns_.end()) continue;
    if (std::any_of(found->second.begin(), found->second.end(),
                    [&](const Pattern& pattern) { return Matches(pattern, term); })) {
      return true;
    }
  }
  return false;
}

bool ReducibleTerms::Matches(const Pattern& pattern, const EnumeratedTerm& term) const {
  Bound bound;
  for (size_t o = 0; o < term.operands.size(); ++o) {
    if (!MatchTensor(pattern.term.operands[o], term.operands[o], &bound)) return false;
  }
  std::vector<int> substituted, all;
  for (int tensor : bound) {
    if (tensor >= 0) substituted = UnionOfNodes(substituted, store_->NodesOf(tensor));
  }
  for (int operand : term.operands) all = UnionOfNodes(all, store_->NodesOf(operand));
  return pattern.size + substituted.size() == all.size() + 1;
}

bool ReducibleTerms::MatchTensor(int pattern, int tensor, Bound* bound) const {
  const PatternRef wanted = store_->nodes().tensors[pattern];
  const PatternRef given = store_->nodes().tensors[tensor];
  if (wanted.node < 0) {
    if (static_cast<int>(bound->size()) <= wanted.index) bound->resize(wanted.index + 1, -1);
    int& place = (*bound)[wanted.index];
    if (place < 0) place = tensor;
    return place == tensor;  // The types are those of the call.
  }
  if (given.node < 0 || given.index != wanted.index) return false;
  const EnumeratedNode &a = store_->nodes().nodes[wanted.node],
                       &b = store_->nodes().nodes[given.node];
  if (a.call != b.call) return false;
  for (size_t o = 0; o < a.operands.size(); ++o) {
    if (!MatchTensor(a.operands[o], b.operands[o], bound)) return false;
  }
  return true;
}

}  // namespace isomer
