// On-disk cache of earlier runs: per piece, the steps of the candidates worth mapping.
//
// Candidates depend on the piece, the rules, the machine, the profile, the costs and the search
// itself (its code included). The piece is the key of an entry; all else is the context, one file
// each, so that a run that finds all its pieces ends with the plan of the run that searched them.
// Entries are not trusted: steps are applied and mapped as if just found, so that a forged file, or
// a digest collision, costs time or quality at worst.
#ifndef ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_CACHE_H_
#define ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_CACHE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/mapping/cost_tables.h"
#include "pcg/ir/plan.h"

namespace isomer {

class SearchCache {
 public:
  using Steps = std::vector<DerivationStep>;

  // "$XDG_CACHE_HOME/isomer/searches", or below ~/.cache; "" if there is neither.
  static std::string DefaultFolder();

  // Reads the context's file, if any; a damaged one counts as absent. folder "": no cache.
  SearchCache(std::string folder, uint64_t context);

  // Null: absent.
  const std::vector<Steps>* Find(uint64_t piece) const;
  void Put(uint64_t piece, std::vector<Steps> candidates);
  // Writes the file, creating its folder, if anything was put. Atomic: readers see the old file or
  // the new one.
  absl::Status Save();

  std::string path() const;
  // Why the file was ignored, as a message; "": it was used.
  const std::string& note() const { return note_; }

 private:
  const std::string folder_;
  const uint64_t context_;
  std::string note_;
  std::map<uint64_t, std::vector<Steps>> pieces_;
  bool changed_ = false;
};

// A digest of the optimizer's code, these rules, machine, profile and costs.
uint64_t DigestOfCosts(const CostTables& tables, const std::vector<const Rule*>& algebra);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SUBSTITUTION_SEARCH_CACHE_H_
