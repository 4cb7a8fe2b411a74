#include "generator/enumeration/term_store.h"

#include <algorithm>
#include <iterator>

namespace isomer {
namespace {

constexpr size_t kElementsAtOnce = 1 << 20;  // elements

}  // namespace

int TermStore::Add(PatternRef definition, const KeptTensor& form,
                   absl::Span<const PrimeField> meaning) {
  const int tensor = static_cast<int>(tensors_.size());
  tensors_.push_back(form);
  nodes_.tensors.push_back(definition);
  if (!meaning.empty()) {
    if (chunks_.empty() || chunk_used_ + meaning.size() > kElementsAtOnce) {
      chunks_.push_back(std::make_unique<PrimeField[]>(std::max(kElementsAtOnce, meaning.size())));
      chunk_used_ = 0;
    }
    PrimeField* place = chunks_.back().get() + chunk_used_;
    std::copy(meaning.begin(), meaning.end(), place);
    chunk_used_ += meaning.size();
    meaning_bytes_ += static_cast<int64_t>(meaning.size() * sizeof(PrimeField));
    tensors_.back().meaning = place;
  }
  return tensor;
}

int TermStore::AddNode(const EnumeratedTerm& term) {
  nodes_.nodes.push_back({term.call, term.operands});
  outputs_.emplace_back(term.call->output_types.size(), -1);
  return static_cast<int>(nodes_.nodes.size()) - 1;
}

int TermStore::AddClass(const Fingerprint& fingerprint) {
  const int number = static_cast<int>(classes_.size());
  const auto [entry, fresh] = first_with_sample_.try_emplace(fingerprint.sample, number);
  TensorClass added;
  added.whole = fingerprint.whole;
  if (!fresh) std::swap(added.next, classes_[entry->second].next);
  classes_.push_back(added);
  if (!fresh) classes_[entry->second].next = number;
  return number;
}

void TermStore::Represent(int tensor, int tensor_class) {
  classes_[tensor_class].representative = tensor;
  const PatternRef definition = nodes_.tensors[tensor];
  if (definition.node >= 0) outputs_[definition.node][definition.index] = tensor;
  const KeptTensor& kept = tensors_[tensor];
  if (kept.meaning == nullptr) return;  // Of the last size: no operand.
  by_size_[kept.size][kept.type][{kept.naming, kept.linear}].push_back(tensor);
}

int TermStore::Renamed(int tensor, NamingId from, NamingId to) {
  const KeptTensor& kept = tensors_[tensor];
  return Renaming(kept.orbit, namings_.Renamed(kept.naming, from, to));
}

absl::Span<const int> TermStore::NodesOf(int tensor) const {
  const KeptTensor& kept = tensors_[tensor];
  if (kept.nodes < 0) return {};
  return absl::MakeConstSpan(lists_of_nodes_).subspan(kept.nodes, kept.size);
}

int TermStore::AddNodesOf(const TensorList& operands, int node) {
  std::vector<int> united;
  for (int operand : operands) united = UnionOfNodes(united, NodesOf(operand));
  const int begin = static_cast<int>(lists_of_nodes_.size());
  lists_of_nodes_.insert(lists_of_nodes_.end(), united.begin(), united.end());
  lists_of_nodes_.push_back(node);
  return begin;
}

bool TermStore::ShareNodes(int a, int b) const {
  return NumCommonNodes(NodesOf(a), NodesOf(b)) > 0;
}

NamingId TermStore::NamingOf(const TensorList& operands) {
  NamingId naming = tensors_[operands[0]].naming;
  for (int operand : operands) naming = namings_.Join(naming, tensors_[operand].naming);
  return naming;
}

std::vector<int> UnionOfNodes(absl::Span<const int> a, absl::Span<const int> b) {
  std::vector<int> united;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(united));
  return united;
}

int NumCommonNodes(absl::Span<const int> a, absl::Span<const int> b) {
  int common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    common += a[i] == b[j];
    const bool advance_a = a[i] <= b[j], advance_b = b[j] <= a[i];
    i += advance_a;
    j += advance_b;
  }
  return common;
}

int64_t TermStore::bytes() const {
  constexpr int64_t kPerEntry = 1;  // control byte of a hash table
  const auto entries = [](const auto& map) {
    using Entry = typename std::decay_t<decltype(map)>::value_type;
    return static_cast<int64_t>(map.capacity() * (sizeof(Entry) + kPerEntry));
  };
  return meaning_bytes_ + static_cast<int64_t>(tensors_.capacity() * sizeof(KeptTensor)) +
         static_cast<int64_t>(nodes_.nodes.capacity() * sizeof(EnumeratedNode)) +
         static_cast<int64_t>(nodes_.tensors.capacity() * sizeof(PatternRef)) +
         static_cast<int64_t>(outputs_.capacity() * sizeof(outputs_[0])) +
         static_cast<int64_t>(lists_of_nodes_.capacity() * sizeof(int)) +
         static_cast<int64_t>(classes_.capacity() * sizeof(TensorClass)) +
         entries(first_with_sample_) + entries(renamings_);
}

}  // namespace isomer
