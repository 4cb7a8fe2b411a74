// What isomer-generate says of rules files: stats, show, diff. Each prints to stdout and returns
// the exit code.
#ifndef ISOMER_GENERATOR_INSPECT_COMMANDS_H_
#define ISOMER_GENERATOR_INSPECT_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "rules/language/rule.h"

namespace isomer {

// stats FILE: counts by kind, operator, size, proof, condition. `markdown`, if not empty: writes
// the page (rules/README.md) there. --json receives the same numbers.
absl::StatusOr<int> StatsCommand(const std::vector<std::string>& arguments,
                                 const std::string& markdown);
// stats FILE with `plans`, files of plans by these rules: where rules match and are used. --json
// receives the same numbers.
absl::StatusOr<int> UseCommand(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& plans);

// What a lemma says and whether it is proved: "matmul(add(x,y),z) = .. (proved)".
using DescribeLemma = absl::FunctionRef<std::string(const std::string& id)>;

struct ShowOptions {
  std::string id;        // or a prefix of one
  std::string dot, svg;  // files to draw the rule in; empty: none
};
// show FILE: one rule in full.
absl::StatusOr<int> ShowCommand(const std::vector<std::string>& arguments,
                                const ShowOptions& options, DescribeLemma describe_lemma);

// All that is known of a rule, as text.
std::string DescribeRule(const Rule& rule, DescribeLemma describe_lemma);

// diff FILE FILE: kExitNo if they differ.
absl::StatusOr<int> DiffCommand(const std::vector<std::string>& arguments);

}  // namespace isomer

#endif  // ISOMER_GENERATOR_INSPECT_COMMANDS_H_
