// Names of inputs: which graphs are one up to renaming, and which of them is generated.
//
// The naming of a term is the order in which it first uses its inputs, read from left to right:
// (x2, x0) for matmul(x2, add(x0, x2)). A term is canonical if in its naming the inputs of each
// type come in their own order from the first on: matmul(x0, add(x1, x0)). Every term is a renaming
// of one that is canonical, so only those are generated.
#ifndef ISOMER_GENERATOR_ENUMERATION_NAMING_H_
#define ISOMER_GENERATOR_ENUMERATION_NAMING_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace isomer {

using NamingId = int32_t;

class Namings {
 public:
  // Inputs with one number may be exchanged.
  explicit Namings(std::vector<int> type_of_input);

  // Inputs, each once, in order of first use.
  const std::vector<int>& operator[](NamingId id) const { return namings_[id]; }
  NamingId Intern(const std::vector<int>& inputs);
  // Of a term that uses `first` and then `second`.
  NamingId Join(NamingId first, NamingId second);
  bool IsCanonical(NamingId id) const { return canonical_[id]; }
  bool UseSameInputs(NamingId a, NamingId b) const { return masks_[a] == masks_[b]; }
  bool AreDisjoint(NamingId a, NamingId b) const { return (masks_[a] & masks_[b]) == 0; }

  // All namings to which renaming can turn `id`, in lexicographic order: a canonical one is first.
  const std::vector<NamingId>& Renamings(NamingId id);
  // What `part` becomes when `from` becomes `to`. REQUIRES: from uses what part uses.
  NamingId Renamed(NamingId part, NamingId from, NamingId to);

 private:
  const std::vector<int> type_of_;  // per input
  std::vector<std::vector<int>> namings_;
  std::vector<bool> canonical_;
  std::vector<uint64_t> masks_;  // of inputs used
  std::map<std::vector<int>, NamingId> ids_;
  absl::flat_hash_map<std::pair<NamingId, NamingId>, NamingId> joins_;
  std::map<NamingId, std::vector<NamingId>> renamings_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ENUMERATION_NAMING_H_
