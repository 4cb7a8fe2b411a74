// Verdicts of earlier runs.
//
// A verdict is a function of what the rule says, of the declarations of its operators, of the
// prover and of Z3: the prover's work is bounded by what it does, not by time. So a file of
// verdicts says which prover they are of, by a digest of its code and of the declarations', and
// keeps each with all that its rule says, since two rules of one digest can be made. A prover that
// has changed in any way starts anew.
//
// A cache is trusted as much as the program that reads it: whoever can write the file can say that
// a rule is proved. So a file, or a folder, that others may write is ignored. An empty path: a
// cache in memory.
#ifndef ISOMER_VERIFIER_PROVING_PROOF_CACHE_H_
#define ISOMER_VERIFIER_PROVING_PROOF_CACHE_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "rules/language/rule.h"

namespace isomer {

// What verdicts depend on besides the rule: "0123456789abcdef z3 4.8.12".
std::string ProverVersion();

class ProofCache {
 public:
  // "$XDG_CACHE_HOME/isomer/proofs", or below ~/.cache; "" if there is neither.
  static std::string DefaultPath();

  // Reads the file if there is one. A damaged file, or one of another prover, counts as none.
  explicit ProofCache(std::string path, std::string prover = ProverVersion());

  std::optional<ProofRecord> Find(const Rule& rule) const;
  void Put(const Rule& rule, const ProofRecord& record);
  // Writes the file, whose folder is made if it is not there, if anything was put since it was last
  // written. A reader sees the old file or the new one.
  absl::Status Save();

  const std::string& path() const { return path_; }
  // Why the file was ignored, for people; "": it was not.
  const std::string& note() const { return note_; }

 private:
  static std::string KeyOf(const Rule& rule);

  const std::string path_, prover_;
  std::string note_;
  std::map<std::string, ProofRecord> records_;
  bool changed_ = false;
};

}  // namespace isomer

#endif  // ISOMER_VERIFIER_PROVING_PROOF_CACHE_H_
