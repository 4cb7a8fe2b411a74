#include "optimizer/page/report_page.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "optimizer/page/derivation_json.h"
#include "optimizer/page/graph_json.h"
#include "optimizer/page/lineage.h"
#include "optimizer/page/page_files.h"
#include "optimizer/page/step_bars.h"
#include "optimizer/page/timeline_json.h"
#include "optimizer/page/traffic_json.h"
#include "optimizer/report/shown_devices.h"
#include "optimizer/report/xml_text.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct Placeholder {
  absl::string_view mark;
  std::string text;
};

// What is put in place of one is not looked at again.
std::string Filled(absl::string_view html, const std::vector<Placeholder>& placeholders) {
  std::string page;
  while (!html.empty()) {
    size_t at = html.size();
    const Placeholder* next = nullptr;
    for (const Placeholder& placeholder : placeholders) {
      const size_t found = html.find(placeholder.mark);
      if (found >= at) continue;
      at = found;
      next = &placeholder;
    }
    absl::StrAppend(&page, html.substr(0, at));
    if (next == nullptr) break;
    absl::StrAppend(&page, next->text);
    html.remove_prefix(at + next->mark.size());
  }
  return page;
}

}  // namespace

absl::Status CheckHasPage() {
  if (kMissingPagePackages.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--report: this program was built without ", kMissingPagePackages,
                   " (scripts/install_dependencies.sh, then configure and build again)"));
}

absl::StatusOr<Json> PageJson(const OptimizeResult& result, const Report& report,
                              const RuleSet& rules, const CostModel& cost,
                              BaselineSummaries* baselines) {
  const Plan& plan = result.plan;
  const Graph& graph = result.lowered.mapped.graph;
  const Schedule& schedule = result.lowered.schedule;
  Json json;
  json["report"] = report.json;
  json["memory_bytes"] = cost.machine().memory_bytes();
  json["machine"] = cost.machine().ToString();
  ISOMER_ASSIGN_OR_RETURN(const std::vector<StepBar> bars,
                          StepBarsOf(result, report, cost, baselines));
  json["bars"] = BarsJson(bars);
  json["devices"] = DevicesJson(schedule);
  // A plan that is priced may be of other rules than these.
  const absl::StatusOr<Lineage> lineage = Lineage::Of(plan, rules);
  const PlanGraphSources sources = {.plan = plan,
                                    .mapped = result.lowered.mapped,
                                    .times = report.times,
                                    .machine = cost.machine(),
                                    .lineage = lineage.ok() ? &*lineage : nullptr};
  json["graphs"]["model"] = ModelGraphJson(plan.model.graph);
  ISOMER_ASSIGN_OR_RETURN(json["graphs"]["plan"], PlanGraphJson(sources));
  if (lineage.ok()) json["derivation"] = DerivationJson(plan, *lineage, cost);
  json["rules"] = RulesJson(plan, rules);
  json["timeline"] = TimelineJson(graph, schedule, result.simulation);
  json["memory"] = MemoryJson(cost, result.lowered, result.simulation);
  json["traffic"] = TrafficJson(cost, schedule, result.simulation);
  return json;
}

std::string JsonInHtml(const Json& json) {
  return absl::StrReplaceAll(json.PrintCompact(), {{"<", "\\u003c"}});
}

std::string PageWith(const Json& data, absl::string_view title, absl::string_view text) {
  return Filled(kPageHtml, {{"{{TITLE}}", XmlText(std::string(title))},
                            {"{{STYLE}}", std::string(kPageStyle)},
                            {"{{TEXT}}", XmlText(std::string(text))},
                            {"{{DATA}}", JsonInHtml(data)},
                            {"{{SCRIPTS}}", std::string(kPageScripts)}});
}

}  // namespace isomer
