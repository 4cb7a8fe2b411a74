// Under which keys a memo keeps the results of the generator's steps: digests of all that a result
// depends on, namely the code that computes it, the seed, the input, and what the operators of the
// input mean. So a changed operator changes the keys of what contains it, and of nothing else.
#ifndef ISOMER_GENERATOR_PIPELINE_STEP_KEYS_H_
#define ISOMER_GENERATOR_PIPELINE_STEP_KEYS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/types/span.h"
#include "generator/enumeration/configuration.h"
#include "generator/preconditions/generalize.h"
#include "generator/workers/memo.h"

namespace isomer {

// Of an operator's meaning: its declarations at the calls that stand for it, attributes and operand
// counts.
uint64_t MeaningDigest(OpKind kind);

class StepKeys {
 public:
  // `meanings`: digests of operators that are to count in place of MeaningDigest's.
  explicit StepKeys(uint64_t seed, std::map<OpKind, uint64_t> meanings = {});

  uint64_t seed() const { return seed_; }
  MemoKey OfEnumeration(const Configuration& configuration) const;
  // `form` names what is looked for. Families put other operators around a call: those of `around`.
  MemoKey OfFamilies(const std::string& form, OpKind kind, const std::set<OpKind>& around) const;
  MemoKey OfGeneralization(const Candidate& candidate) const;
  // `before`: all that was decided before. A digest of it will do.
  MemoKey OfDecisions(const std::string& before, absl::Span<const Candidate> candidates) const;
  MemoKey OfProof(const GeneralRule& rule) const;

 private:
  MemoKey KeyOf(const std::string& step, const std::set<OpKind>& kinds,
                const std::string& input) const;

  const uint64_t seed_;
  std::map<OpKind, uint64_t> meanings_;
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_STEP_KEYS_H_
