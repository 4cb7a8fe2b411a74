#include "tests/unsound/plan_claims.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/pcg.pb.h"
#include "pcg/schedule/schedule.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"
#include "verifier/certificate/certificate.h"
#include "verifier/certificate/step_replay.h"
#include "verifier/plans/model_match.h"
#include "verifier/plans/plan_fields.h"

namespace isomer {

void Seal(PlanClaim* claim) {
  claim->rules.BuildIndex();
  claim->plan.rules_digest = claim->rules.Digest();
  claim->plan.seal = SealOf(claim->plan);
}

std::string FileOf(const Plan& plan) {
  proto::PlanProto message;
  ToProto(plan, &message);
  return BinaryForm("plan", message);
}

absl::Status JudgeFile(const std::string& file, const PlanClaim& claim) {
  proto::PlanProto message;
  ISOMER_RETURN_IF_ERROR(ParseProto(file, "forged.plan", "plan", &message));
  ISOMER_ASSIGN_OR_RETURN(const Plan plan, FromProto(message));
  for (const Rule& rule : claim.rules.rules) ISOMER_RETURN_IF_ERROR(ValidateRule(rule));
  ISOMER_RETURN_IF_ERROR(ExpectSameModel(claim.own, plan.model));
  ISOMER_RETURN_IF_ERROR(CheckPlanFields(plan));
  ISOMER_RETURN_IF_ERROR(
      CheckCertificate(plan, claim.rules, {.schedule = ScheduleCheck::kClasses}));
  return CheckCertificate(plan, claim.rules, {.schedule = ScheduleCheck::kAll});
}

absl::Status FollowSteps(PlanClaim* claim) {
  Plan& plan = claim->plan;
  claim->rules.BuildIndex();
  ReplayGraph replay(plan.model.graph);
  const auto believe = [](const ConcreteSide&, const ConcreteSide&, const InputNumbers&) {
    return absl::OkStatus();
  };
  for (const DerivationStep& step : plan.steps) {
    const Rule* rule = claim->rules.Find(step.rule);
    if (rule == nullptr) return absl::NotFoundError(absl::StrCat("no rule ", step.rule));
    ISOMER_RETURN_IF_ERROR(ReplayStep(*rule, step, &replay, believe));
  }
  ISOMER_ASSIGN_OR_RETURN(const Graph graph, replay.ToGraph());
  plan.graph = graph.Canonical();
  plan.views.clear();
  plan.num_devices = 1;
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    const TensorType& type = plan.graph.node(id).outputs[0];
    plan.views.push_back(RowMajorView(type));
    plan.num_devices = std::max(plan.num_devices, type.NumShards());
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanClaim> ClaimOfRule(const Rule& rule, const Binding& binding) {
  ISOMER_ASSIGN_OR_RETURN(const Graph source, InstantiatePattern(rule.source, binding));
  PlanClaim claim;
  Model& model = claim.plan.model;
  Graph& graph = model.graph;
  model.name = "forged";
  bool trains = false;
  for (int id = 0; id < source.num_nodes(); ++id) {
    const Node& node = source.node(id);
    for (const TensorType& type : node.outputs) {
      if (type.IsParallel()) return absl::FailedPreconditionError("the source is parallel");
    }
    if (!IsLeaf(node.op.kind())) {
      ISOMER_RETURN_IF_ERROR(graph.Add(node.op, node.inputs).status());
    } else if (node.outputs[0].dtype == DataType::kFloat32) {
      graph.AddWeight(node.name, node.outputs[0]);
      trains = true;
    } else {
      graph.AddInput(node.name, node.outputs[0]);
    }
  }
  for (const Graph::NamedOutput& output : source.outputs()) {
    graph.AddOutput(output.name, output.tensor);
  }
  const TensorRef first = source.outputs()[0].tensor;
  if (trains && source.type(first).dtype == DataType::kFloat32) {
    const TensorRef target = graph.AddInput("target", source.type(first));
    ISOMER_ASSIGN_OR_RETURN(const TensorRef loss,
                            graph.AddOp(OpKind::kMeanSquaredError, {first, target}));
    graph.AddOutput("loss", loss);
    model.loss = "loss";
  }
  claim.plan.mode = model.loss.empty() ? "inference" : "training";
  claim.own = model;
  claim.rules.rules = {rule};
  DerivationStep step;
  step.rule = rule.id;
  for (size_t n = 0; n < rule.source.nodes.size(); ++n) {
    step.nodes.push_back({rule.num_inputs + static_cast<int32_t>(n)});
  }
  for (int input = 0; input < rule.num_inputs; ++input) step.inputs.push_back({{input}, 0});
  step.variables = binding.variables;
  step.numbers = binding.numbers;
  step.attributes = binding.attributes;
  claim.plan.steps = {std::move(step)};
  if (!FollowSteps(&claim).ok()) {
    claim.plan.graph = graph.Canonical();
    claim.plan.views = SequentialViews(claim.plan.graph);
    claim.plan.num_devices = 1;
  }
  Seal(&claim);
  return claim;
}

}  // namespace isomer
