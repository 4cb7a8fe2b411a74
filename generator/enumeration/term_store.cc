#include "generator/enumeration/term_store.h"

#include <algorithm>

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

std::array<int, 3> TermStore::UnionOfNodes(const TensorList& operands) const {
  std::array<int, 3> united{-1, -1, -1};
  for (int operand : operands) {
    for (int node : tensors_[operand].nodes) {
      if (node < 0) break;
      for (int& place : united) {  // Insertion, ascending.
        if (place == node) break;
        if (place < 0) {
          place = node;
          break;
        }
        if (place > node) std::swap(place, node);
      }
    }
  }
  return united;
}

bool TermStore::ShareNodes(int a, int b) const {
  for (int x : tensors_[a].nodes) {
    if (x < 0) break;
    for (int y : tensors_[b].nodes) {
      if (x == y) return true;
    }
  }
  return false;
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
         static_cast<int64_t>(classes_.capacity() * sizeof(TensorClass)) +
         entries(first_with_sample_) + entries(renamings_);
}

}  // namespace isomer
