// The tensors that the enumerator keeps, their classes, and their renamings.
#ifndef ISOMER_GENERATOR_ENUMERATION_TERM_STORE_H_
#define ISOMER_GENERATOR_ENUMERATION_TERM_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "generator/enumeration/call_table.h"
#include "generator/enumeration/equation.h"
#include "generator/enumeration/naming.h"

namespace isomer {

// A term's part that is known when it is generated.
struct EnumeratedTerm {
  const EnumeratedCall* call = nullptr;
  TensorList operands;
};

struct KeptTensor {
  int type = -1;
  NamingId naming = -1;
  bool linear = false;
  bool focused = false;                 // contains an operator of the configuration's focus
  int16_t size = 0;                     // operators
  int nodes = -1;                       // where its list of nodes begins; -1: none is kept
  int orbit = -1;                       // terms that are renamings of one
  const PrimeField* meaning = nullptr;  // null at the last size
};

// What tells tensors apart: hashes of the type with a sample of the elements, and with all. Most of
// what is generated equals nothing, which its sample shows.
struct Fingerprint {
  static constexpr uint64_t kUnknown = 0;
  uint64_t sample = kUnknown, whole = kUnknown;
};

// Tensors with one fingerprint.
struct TensorClass {
  int representative = -1;
  int linear = -1;                         // a linear tensor of the class, or -1
  uint64_t whole = Fingerprint::kUnknown;  // unknown while no other has its sample
  int next = -1;                           // class with the same sample
};

// Tensors by type, then by naming and whether they are linear.
struct TensorGroupKey {
  NamingId naming;
  bool linear;
  friend auto operator<=>(const TensorGroupKey&, const TensorGroupKey&) = default;
};
using TensorGroups = std::map<int, std::map<TensorGroupKey, std::vector<int>>>;

class TermStore {
 public:
  // `max_operators`: of the largest terms, which are no operands.
  TermStore(Namings namings, int max_operators)
      : namings_(std::move(namings)), by_size_(max_operators) {}

  Namings& namings() { return namings_; }
  EnumeratedNodes& nodes() { return nodes_; }
  const EnumeratedNodes& nodes() const { return nodes_; }
  const KeptTensor& operator[](int tensor) const { return tensors_[tensor]; }

  // Adds a tensor; its meaning is copied if given.
  int Add(PatternRef definition, const KeptTensor& form, absl::Span<const PrimeField> meaning);
  int AddNode(const EnumeratedTerm& term);
  // Which tensor a node's output is, for those that represent a class; else -1.
  int OutputOf(int node, int output) const { return outputs_[node][output]; }

  size_t NumOutputs(int node) const { return outputs_[node].size(); }

  // Classes of one sample: the number of the first, or -1; the others follow by `next`.
  int FirstWithSample(uint64_t sample) const {
    const auto found = first_with_sample_.find(sample);
    return found == first_with_sample_.end() ? -1 : found->second;
  }
  TensorClass& Class(int number) { return classes_[number]; }
  const TensorClass& Class(int number) const { return classes_[number]; }
  int AddClass(const Fingerprint& fingerprint);

  // Makes `tensor` the representative of a class, to be found by size, type and naming.
  void Represent(int tensor, int tensor_class);

  int NewOrbit() { return num_orbits_++; }
  // The representative of a term of `orbit` under `naming`.
  void SetRenaming(int orbit, NamingId naming, int tensor) { renamings_[{orbit, naming}] = tensor; }
  // The representative of what `tensor` becomes where inputs `from` are renamed to `to`; -1: none.
  // (By chance a term may equal another one under some names only.)
  int Renamed(int tensor, NamingId from, NamingId to);
  // The representative of the terms of `orbit` under `naming`; -1: none.
  int Renaming(int orbit, NamingId naming) const {
    const auto found = renamings_.find({orbit, naming});
    return found == renamings_.end() ? -1 : found->second;
  }

  // Representatives of `size` operators. REQUIRES: fewer than the largest terms have.
  const TensorGroups& OfSize(int size) const { return by_size_[size]; }

  // The nodes that a tensor needs, its own last: as many as its size, ascending. None at the last
  // size.
  absl::Span<const int> NodesOf(int tensor) const;
  // Keeps the nodes that the operands of `node` need, and `node`, the largest yet. Returns where
  // the list begins.
  int AddNodesOf(const TensorList& operands, int node);
  bool ShareNodes(int a, int b) const;
  // Of a term with these operands.
  NamingId NamingOf(const TensorList& operands);

  int64_t num_tensors() const { return static_cast<int64_t>(tensors_.size()); }
  int64_t bytes() const;

 private:
  Namings namings_;
  EnumeratedNodes nodes_;
  std::vector<KeptTensor> tensors_;
  std::vector<absl::InlinedVector<int, 2>> outputs_;  // per node
  std::vector<std::unique_ptr<PrimeField[]>> chunks_;
  size_t chunk_used_ = 0;
  int64_t meaning_bytes_ = 0;
  std::vector<TensorClass> classes_;
  absl::flat_hash_map<uint64_t, int> first_with_sample_;
  absl::flat_hash_map<std::pair<int, NamingId>, int> renamings_;
  std::vector<TensorGroups> by_size_;
  std::vector<int> lists_of_nodes_;  // one behind the other
  int num_orbits_ = 0;
};

// Of ascending lists.
std::vector<int> UnionOfNodes(absl::Span<const int> a, absl::Span<const int> b);
int NumCommonNodes(absl::Span<const int> a, absl::Span<const int> b);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_TERM_STORE_H_
