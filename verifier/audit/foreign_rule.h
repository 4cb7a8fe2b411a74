// Rules of other optimizers, as their files have them.
//
// A rule has operators on both sides, given in any order; an operator's inputs are outputs of
// operators of its own side or, with a negative operator id, inputs of the rule. The outputs of the
// source that are used outside are mapped to outputs of the target.
#ifndef ISOMER_VERIFIER_AUDIT_FOREIGN_RULE_H_
#define ISOMER_VERIFIER_AUDIT_FOREIGN_RULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace isomer {

enum class ForeignFormat {
  kTaso,   // protobuf; dims count from the front; Split divides where a Concat joined
  kUnity,  // JSON; dim 0 is the replica dim, 1 the first logical dim; Split divides evenly
};

struct ForeignTensor {
  int op = 0;      // negative: an input of the rule
  int output = 0;  // of the operator
  friend auto operator<=>(const ForeignTensor&, const ForeignTensor&) = default;
};

struct ForeignOperator {
  std::string type;  // "OP_EW_ADD"
  std::vector<ForeignTensor> inputs;
  std::map<std::string, int64_t> parameters;  // "PM_AXIS" and so on
  std::optional<int64_t> Find(const std::string& parameter) const;
};

struct ForeignRule {
  std::string name;
  std::vector<ForeignOperator> source, target;
  std::vector<std::pair<ForeignTensor, ForeignTensor>> outputs;  // of the source, of the target
};

// How many outputs an operator has: PM_NUM_OUTPUTS of a Split, else 1.
int NumOutputs(const ForeignOperator& op);

// Brings each side's operators into an order in which each uses those before it. An error names the
// operator that has a bad reference, lies on a cycle, lacks a parameter, or has one out of bounds:
// "source operator 2 (OP_CONCAT): input 0 is output 0 of operator 7; there are 3 operators".
absl::Status CheckAndSort(ForeignRule* rule);

// "source operator 2 (OP_CONCAT)".
std::string LabelOf(absl::string_view side, int index, const ForeignOperator& op);

}  // namespace isomer

#endif  // ISOMER_VERIFIER_AUDIT_FOREIGN_RULE_H_
