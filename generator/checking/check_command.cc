#include "generator/checking/check_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/status_macros.h"
#include "rules/language/find_rule.h"

namespace isomer {
namespace {

absl::StatusOr<std::vector<Rule>> Choose(const std::string& file, const CheckCommand& command,
                                         const RuleSet& rules) {
  std::vector<Rule> chosen;
  for (const std::string& id : command.ids) {
    const absl::StatusOr<const Rule*> found = FindByPrefix(rules, id);
    if (!found.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": ", found.status().message()));
    }
    chosen.push_back(**found);
  }
  if (command.ids.empty()) chosen = rules.rules;
  if (command.sample <= 0 || command.sample >= static_cast<int>(chosen.size())) return chosen;
  std::vector<Rule> sample;
  const size_t n = chosen.size(), count = command.sample;
  for (size_t i = 0; i < count; ++i) {
    sample.push_back(chosen[(i * n / count + command.options.seed) % n]);
  }
  return sample;
}

struct Totals {
  int64_t instances = 0, few = 0, untried = 0, without_value = 0, failures = 0, differentiated = 0;
  double forward = 0, gradient = 0;
};

Totals Sum(const std::vector<RuleCheck>& checks, int wanted) {
  Totals totals;
  for (const RuleCheck& check : checks) {
    totals.instances += check.instances;
    totals.few += check.distinct < wanted / 2;
    totals.untried += check.instances == 0;
    totals.without_value += check.without_value;
    totals.failures += !check.failure.empty();
    totals.differentiated += check.gradients == RuleCheck::Gradient::kChecked;
    totals.forward = std::max(totals.forward, check.forward);
    totals.gradient = std::max(totals.gradient, check.gradient);
  }
  return totals;
}

}  // namespace

absl::StatusOr<int> RunCheck(const std::string& file, const CheckCommand& command) {
  const auto start = std::chrono::steady_clock::now();
  ISOMER_ASSIGN_OR_RETURN(const RuleSet rules, LoadRules(file));
  ISOMER_ASSIGN_OR_RETURN(const std::vector<Rule> chosen, Choose(file, command, rules));
  int64_t count = 0;
  for (const Rule& rule : chosen) count += rule.reversible ? 2 : 1;
  std::vector<RuleCheck> checks;
  {
    Progress progress("check", count);
    checks = CheckRules(chosen, command.options, [&] { progress.Advance(); });
  }
  for (const RuleCheck& check : checks) std::printf("%s\n", check.ToString().c_str());
  const Totals totals = Sum(checks, command.options.instances);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "%zu rules, %zu directions, %lld instances: values within %.1e, gradients of %lld directions "
      "within %.1e; %lld directions with few different instances, %lld with none; %lld fail (%.0f "
      "s)\n",
      chosen.size(), checks.size(), static_cast<long long>(totals.instances), totals.forward,
      static_cast<long long>(totals.differentiated), totals.gradient,
      static_cast<long long>(totals.few), static_cast<long long>(totals.untried),
      static_cast<long long>(totals.failures), seconds);
  for (const RuleCheck& check : checks) {
    if (!check.failure.empty()) std::printf("failed %s\n", check.ToString().c_str());
  }
  Json json;
  json["failed"] = Json::EmptyArray();
  for (const RuleCheck& check : checks) {
    if (!check.failure.empty()) json["failed"].Append(check.id);
  }
  json["rules"] = chosen.size();
  json["directions"] = checks.size();
  json["instances"] = totals.instances;
  json["without_value"] = totals.without_value;
  json["directions_with_gradients"] = totals.differentiated;
  json["directions_with_few_instances"] = totals.few;
  json["directions_without_instances"] = totals.untried;
  json["forward_difference"] = totals.forward;
  json["gradient_difference"] = totals.gradient;
  json["failures"] = totals.failures;
  json["seconds"] = seconds;
  ISOMER_RETURN_IF_ERROR(WriteJsonSummary(json));
  return totals.failures > 0 ? kExitNo : kExitDone;
}

}  // namespace isomer
