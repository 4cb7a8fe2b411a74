#include "rules/language/find_rule.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace isomer {

std::string WithoutInverse(const std::string& id) {
  return std::string(absl::StripSuffix(id, "^-1"));
}

absl::StatusOr<const Rule*> FindByPrefix(const RuleSet& rules, const std::string& name) {
  const std::string id = WithoutInverse(name);
  if (id.empty()) return absl::InvalidArgumentError("--id names no rule");
  std::vector<const Rule*> found;
  for (const Rule& rule : rules.rules) {
    if (rule.id == id) return &rule;
    if (absl::StartsWith(rule.id, id)) found.push_back(&rule);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) return absl::NotFoundError(absl::StrCat("there is no rule '", id, "'"));
  constexpr size_t kShown = 4;
  std::vector<std::string> some;
  for (const Rule* rule : found) {
    if (some.size() < kShown) some.push_back(rule->id);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", id, "' begins the ids of ", found.size(),
                                                 " rules: ", absl::StrJoin(some, ", "),
                                                 found.size() > kShown ? ", .." : ""));
}

}  // namespace isomer
