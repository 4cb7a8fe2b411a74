#include "verifier/audit/report.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

std::string Origin(const AuditResult& result) {
  if (result.origin == RuleOrigin::kNotSought) return "";
  if (result.steps.empty()) {
    return result.origin == RuleOrigin::kNew ? ", new" : ", derivable (its sides are one term)";
  }
  return absl::StrCat(result.by_saturation ? ", derivable (saturation by " : ", derivable (",
                      absl::StrJoin(result.steps, ", "), ")");
}

struct Line {
  const char* name;
  std::function<bool(const AuditResult&)> counts;
};

// The lines of the table of counts; indented ones are shares of the one above.
const std::vector<Line>& Lines() {
  auto is = [](AuditVerdict verdict) {
    return [verdict](const AuditResult& r) { return r.verdict == verdict; };
  };
  auto came = [](RuleOrigin origin) {
    return [origin](const AuditResult& r) { return r.origin == origin; };
  };
  static const auto* const lines = new std::vector<Line>{
      {"proved", is(AuditVerdict::kProved)},
      {"  as arrays",
       [](const AuditResult& r) { return r.verdict == AuditVerdict::kProved && r.as_arrays; }},
      {"  without conditions",
       [](const AuditResult& r) {
         return r.verdict == AuditVerdict::kProved && r.conditions.empty();
       }},
      {"checked", is(AuditVerdict::kChecked)},
      {"derivable", came(RuleOrigin::kDerivable)},
      {"  by saturation", [](const AuditResult& r) { return r.by_saturation; }},
      {"new", came(RuleOrigin::kNew)},
      {"refuted", is(AuditVerdict::kRefuted)},
      {"  in values", [](const AuditResult& r) { return r.values_differ; }},
      {"ill_typed", is(AuditVerdict::kIllTyped)},
      {"unknown", is(AuditVerdict::kUnknown)},
      {"outside", is(AuditVerdict::kOutside)},
  };
  return *lines;
}

int64_t Count(const Line& line, const std::vector<AuditResult>& results) {
  return std::count_if(results.begin(), results.end(), line.counts);
}

}  // namespace

std::string AuditText(const std::vector<ForeignRule>& rules,
                      const std::vector<AuditResult>& results) {
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    const AuditResult& result = results[i];
    absl::StrAppend(&text, rules[i].name, ": ", AuditVerdictName(result.verdict),
                    result.as_arrays ? " (as arrays)" : "", Origin(result), "\n");
    if (!result.equation.empty()) absl::StrAppend(&text, "    ", result.equation, "\n");
    if (!result.conditions.empty()) {
      absl::StrAppend(&text, "    holds if ", absl::StrJoin(result.conditions, ", "), "\n");
    }
    if (!result.here_also.empty()) {
      absl::StrAppend(&text, "    here also if ", absl::StrJoin(result.here_also, ", "), "\n");
    }
    if (!result.reason.empty()) absl::StrAppend(&text, "    ", result.reason, "\n");
  }
  absl::StrAppend(&text, absl::StrFormat("%-28s%6d\n", "rules", results.size()));
  for (const Line& line : Lines()) {
    absl::StrAppend(&text, absl::StrFormat("%-28s%6d\n", line.name, Count(line, results)));
  }
  return text;
}

Json AuditJson(const std::vector<ForeignRule>& rules, const std::vector<AuditResult>& results) {
  Json json;
  json["rules"] = results.size();
  for (const Line& line : Lines()) {
    const std::string name = line.name;
    json["counts"][name.substr(name.find_first_not_of(' '))] = Count(line, results);
  }
  json["audit"] = Json::EmptyArray();
  for (size_t i = 0; i < results.size(); ++i) {
    const AuditResult& result = results[i];
    Json rule;
    rule["name"] = rules[i].name;
    rule["verdict"] = AuditVerdictName(result.verdict);
    rule["rule"] = result.equation;
    rule["conditions"] = Json(result.conditions);
    rule["here_also"] = Json(result.here_also);
    rule["reason"] = result.reason;
    rule["origin"] = RuleOriginName(result.origin);
    rule["steps"] = Json(result.steps);
    rule["values_differ"] = result.values_differ;
    rule["as_arrays"] = result.as_arrays;
    rule["by_saturation"] = result.by_saturation;
    rule["seconds"] = result.seconds;
    json["audit"].Append(rule);
  }
  return json;
}

bool NothingIsFalse(const std::vector<AuditResult>& results) {
  return std::none_of(results.begin(), results.end(), [](const AuditResult& result) {
    return result.verdict == AuditVerdict::kRefuted || result.verdict == AuditVerdict::kIllTyped;
  });
}

}  // namespace isomer
