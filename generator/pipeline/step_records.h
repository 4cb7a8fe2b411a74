// What the generator's steps take and give, as bytes for a memo. Equal things have equal bytes.
// Decoding gives an error for what is no encoding, which a reader of a memo takes for nothing kept.
#ifndef ISOMER_GENERATOR_PIPELINE_STEP_RECORDS_H_
#define ISOMER_GENERATOR_PIPELINE_STEP_RECORDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "generator/assignments/statistics.h"
#include "generator/preconditions/generalize.h"
#include "generator/preconditions/prune.h"

namespace isomer {

std::string EncodeCandidate(const Candidate& candidate);
absl::StatusOr<Candidate> DecodeCandidate(const std::string& bytes);
std::string EncodeGeneralRule(const GeneralRule& rule);
absl::StatusOr<GeneralRule> DecodeGeneralRule(const std::string& bytes);

// What was found in one configuration (candidates) or for one operator (rules).
struct EnumerationResult {
  std::vector<Candidate> candidates;
  Statistics statistics;
};
std::string Encode(const EnumerationResult& result);
absl::StatusOr<EnumerationResult> DecodeEnumeration(const std::string& bytes);

struct Families {
  std::vector<GeneralRule> rules;
  Statistics statistics;
};
std::string Encode(const Families& families);
absl::StatusOr<Families> DecodeFamilies(const std::string& bytes);

// What became of one candidate: the rule that it generalises to, and whether that holds on inputs
// that it was not found with.
struct Generalized {
  std::optional<GeneralRule> rule;
  bool holds = false;
};
std::string Encode(const Generalized& generalized);
absl::StatusOr<Generalized> DecodeGeneralized(const std::string& bytes);

// Whether the rules that a worker knew derive a candidate, and what they make of its sides.
struct Derived {
  bool well_typed = false;  // else the rest says nothing
  bool commuted = false;    // both sides have one form
  bool known = false;       // an instance or a composition
  Derivations::State state;
};
std::string Encode(const Derived& derived);
absl::StatusOr<Derived> DecodeDerived(const std::string& bytes);

// What was decided about a run of candidates: the rules that they gave, in order, and the forms
// that give none.
struct Decisions {
  std::vector<GeneralRule> rules;
  Statistics statistics;
  std::vector<std::string> hopeless;
};
std::string Encode(const Decisions& decisions);
absl::StatusOr<Decisions> DecodeDecisions(const std::string& bytes);

// A rule with its proof, or what refutes it.
std::string EncodeJudged(const Rule& rule);
absl::StatusOr<Rule> DecodeJudged(const std::string& bytes);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_PIPELINE_STEP_RECORDS_H_
