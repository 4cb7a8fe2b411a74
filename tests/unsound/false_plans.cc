#include "tests/unsound/false_plans.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pcg/support/check.h"
#include "pcg/support/proto_io.h"
#include "tests/unsound/base_plans.h"

namespace isomer {
namespace {

// Nothing is sealed that is no plan.
void Seal(proto::PlanProto* message) {
  const absl::StatusOr<Plan> plan = FromProto(*message);
  if (plan.ok()) message->set_seal(SealOf(*plan));
}

}  // namespace

std::vector<Forgery> AllForgeries() {
  std::vector<Forgery> all;
  for (const auto& made : {ForgedModels(), ForgedGraphs(), ForgedSteps(), ForgedRules(),
                           ForgedViews(), ForgedOptions(), ForgedFiles()}) {
    all.insert(all.end(), made.begin(), made.end());
  }
  return all;
}

absl::Status Judge(const Forgery& forgery) {
  PlanClaim claim = BasePlan(forgery.base);
  if (const auto* change = std::get_if<ClaimChange>(&forgery.change)) {
    (*change)(&claim);
    if (!forgery.keeps_seal) Seal(&claim);
    return Judge(claim);
  }
  std::string file = FileOf(claim.plan);
  if (const auto* change = std::get_if<MessageChange>(&forgery.change)) {
    proto::PlanProto message;
    ToProto(claim.plan, &message);
    (*change)(&message);
    if (!forgery.keeps_seal) Seal(&message);
    file = BinaryForm("plan", message);
  } else {
    std::get<FileChange>(forgery.change)(&file);
  }
  return JudgeFile(file, claim);
}

void Edit(Graph* graph, const GraphEdit& edit) {
  std::vector<Node> nodes;
  for (int id = 0; id < graph->num_nodes(); ++id) nodes.push_back(graph->node(id));
  std::vector<Graph::NamedOutput> outputs = graph->outputs();
  edit(&nodes, &outputs);
  absl::StatusOr<Graph> edited = GraphFromParts(std::move(nodes), std::move(outputs));
  ISOMER_CHECK(edited.ok());
  *graph = *std::move(edited);
}

int NodeOf(const Graph& graph, absl::string_view label) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (absl::StrContains(graph.Label({id}), absl::StrCat(" ", label))) return id;
  }
  ISOMER_CHECK(false);
  return -1;
}

}  // namespace isomer
