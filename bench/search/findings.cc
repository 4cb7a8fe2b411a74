#include "bench/search/findings.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/plan.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// What algebra and buckets gain where all calls are split over samples, as in data parallelism.
constexpr double kOfAlgebra = 0.02;

// What a plan shows.
struct Evidence {
  bool found = false;
  std::string text;
};

// The best plan of a job, as joint search, algebra first, and experts find it.
struct Plans {
  Plan joint, sequential;
  double joint_us = 0, sequential_us = 0, expert_us = 0, data_parallel_us = 0;
  std::string expert;    // whose plan the expert's is
  double forced_us = 0;  // of a model that is as Unity rewrites it; 0: it is not asked
};

bool IsProduct(const Node& node) {
  return node.op.kind() == OpKind::kMatMul || node.op.kind() == OpKind::kLinear;
}

template <typename Predicate>
int Count(const Plan& plan, Predicate&& predicate) {
  int count = 0;
  for (NodeId id : plan.graph.TopologicalOrder()) count += predicate(plan.graph.node(id));
  return count;
}

int CountOf(const Plan& plan, OpKind kind) {
  return Count(plan, [&](const Node& node) { return node.op.kind() == kind; });
}

// Products whose sum is split over devices: each has a part of the sum.
int SplitSums(const Plan& plan) {
  return Count(plan, [&](const Node& node) {
    return node.op.kind() == OpKind::kMatMul && node.outputs[0].partials > 1;
  });
}

// Figure 16a: a product with its Relu in one kernel cannot have its sum split.
Evidence DeclinesFusion(const Plans& plans) {
  const int split = SplitSums(plans.joint);
  const auto fused = [](const Plan& plan) { return CountOf(plan, OpKind::kLinear); };
  return {split > 0 && fused(plans.joint) < fused(plans.sequential),
          absl::StrCat(split, " products with a split sum; fused ", fused(plans.joint),
                       ", algebra first ", fused(plans.sequential))};
}

// Figure 16b: products of what look-ups give, summed, and no product of a Concat.
Evidence ProductsBeforeConcat(const Plans& plans) {
  const Graph& graph = plans.joint.graph;
  const auto reads_concat = [&](const Node& node) {
    if (!IsProduct(node)) return false;
    TensorRef from = node.inputs[0];
    while (IsParallel(graph.node(from.node).op.kind())) from = graph.node(from.node).inputs[0];
    return graph.node(from.node).op.kind() == OpKind::kConcat;
  };
  const int behind = Count(plans.joint, reads_concat);
  return {behind == 0, absl::StrCat(behind, " products of a Concat")};
}

// Figure 16c: a sum of Embeddings has dims to split that Unity's EmbeddingBag has not.
Evidence BagsAsEmbeddings(const Plans& plans) {
  const int bags = CountOf(plans.joint, OpKind::kEmbeddingBag);
  const int split = Count(plans.joint, [](const Node& node) {
    return node.op.kind() == OpKind::kEmbeddingBag && node.outputs[0].NumShards() > 1;
  });
  return {bags == 0, absl::StrCat(bags, " EmbeddingBags, ", split, " of them split as they are")};
}

Evidence AsGoodAsExpert(const Plans& plans) {
  return {plans.joint_us <= plans.expert_us * 1.001,
          absl::StrFormat("%s takes %.0f us", plans.expert, plans.expert_us)};
}

Evidence IsDataParallel(const Plans& plans) {
  return {std::abs(plans.joint_us / plans.data_parallel_us - 1) < kOfAlgebra,
          absl::StrFormat("data parallelism takes %.0f us", plans.data_parallel_us)};
}

struct Finding {
  const char *name, *model;
  int64_t nodes, batch_per_device;
  const char* theirs;  // over the best of expert and sequential
  Evidence (*look)(const Plans&);
  // The model as Unity's finding makes it, mapped without algebra; "": the finding is no graph.
  const char* forced = "";
};

// Batches as in section 7.1. Unity's code has an MLP of two towers. "With narrow products" is
// figure 16b where a product makes its operand smaller.
constexpr Finding kFindings[] = {
    {"16a: MLP declines a fusion", "mlp", 1, 256, "2.0", DeclinesFusion, "mlp"},
    {"16a, as in Unity's code", "mlp?towers=2&layers=8", 1, 256, "2.0", DeclinesFusion,
     "mlp?towers=2&layers=8"},
    {"16b: DLRM multiplies before Concat", "dlrm", 8, 1024, "3.6", ProductsBeforeConcat,
     "dlrm?apart=1"},
    {"16b: XDL multiplies before Concat", "xdl", 8, 1024, "1.9", ProductsBeforeConcat,
     "xdl?apart=1"},
    {"16b, with narrow products", "xdl?tables=2&features=256&hidden=8", 8, 1024, "",
     ProductsBeforeConcat, "xdl?tables=2&features=256&hidden=8&apart=1"},
    {"16c: EmbeddingBag becomes Embedding", "xdl?bag=16", 8, 1024, "", BagsAsEmbeddings,
     "xdl?bag=16&look_ups=1"},
    {"BERT-Large is Megatron's or better", "bert_large", 8, 4, "1.0", AsGoodAsExpert},
    {"ResNeXt-50 is data-parallel", "resnext50", 8, 64, "1.0", IsDataParallel}};

absl::StatusOr<Plans> PlansOf(const Finding& finding, const TableContext& context) {
  const std::string file =
      (std::filesystem::temp_directory_path() / "isomer_findings.plan").string();
  constexpr int64_t kSummitNode = 6;
  // Unity's steps end with the loss; to give back logits takes longer than what is compared.
  const std::vector<std::string> flags = {"--loss_alone", absl::StrCat("--out=", file)};
  OptimizerJob job{.model = absl::StrCat("zoo:", finding.model),
                   .machine = "summit",
                   .nodes = finding.nodes,
                   .devices_per_node = kSummitNode,
                   .batch_size = finding.batch_per_device * finding.nodes * kSummitNode,
                   .flags = flags};
  Plans plans;
  ISOMER_ASSIGN_OR_RETURN(const Outcome joint, context.runner.RunToPlan(job, context.limit_s));
  ISOMER_ASSIGN_OR_RETURN(plans.joint, LoadPlan(file));
  ISOMER_ASSIGN_OR_RETURN(plans.joint_us, joint.summary.Number("predicted_step_us"));
  ISOMER_ASSIGN_OR_RETURN(plans.data_parallel_us,
                          joint.summary.Number("baselines.data_parallel.predicted_step_us"));
  job.flags.push_back("--search=sequential");
  ISOMER_ASSIGN_OR_RETURN(const Outcome sequential, context.runner.RunToPlan(job, context.limit_s));
  ISOMER_ASSIGN_OR_RETURN(plans.sequential, LoadPlan(file));
  ISOMER_ASSIGN_OR_RETURN(plans.sequential_us, sequential.summary.Number("predicted_step_us"));
  for (const char* expert : {"published", "megatron", "data_parallel"}) {
    job.flags = flags;
    job.flags.push_back(absl::StrCat("--plan=", expert));
    ISOMER_ASSIGN_OR_RETURN(const Outcome outcome, context.runner.Run(job, context.limit_s));
    if (!outcome.found()) continue;
    plans.expert = expert;
    ISOMER_ASSIGN_OR_RETURN(plans.expert_us, outcome.summary.Number("predicted_step_us"));
    break;
  }
  if (*finding.forced != 0) {
    job.model = absl::StrCat("zoo:", finding.forced);
    job.flags = flags;
    job.flags.push_back("--budget=1");
    ISOMER_ASSIGN_OR_RETURN(const Outcome forced, context.runner.RunToPlan(job, context.limit_s));
    ISOMER_ASSIGN_OR_RETURN(plans.forced_us, forced.summary.Number("predicted_step_us"));
  }
  std::filesystem::remove(file);
  return plans;
}

}  // namespace

absl::StatusOr<Table> FindingsTable(const TableContext& context) {
  Table table("findings",
              {"finding", "network", "devices", "found", "step us", "as Unity has it, us",
               "over sequential", "over published", "Unity", "in the plan"});
  for (const Finding& finding : kFindings) {
    if (!context.Wants(finding.model)) continue;
    ISOMER_ASSIGN_OR_RETURN(const Plans plans, PlansOf(finding, context));
    const Evidence evidence = finding.look(plans);
    table.AddRow({finding.name, finding.model, absl::StrCat(finding.nodes * 6),
                  evidence.found ? "yes" : "no", absl::StrFormat("%.0f", plans.joint_us),
                  plans.forced_us > 0 ? absl::StrFormat("%.0f", plans.forced_us) : "",
                  absl::StrFormat("%.3f", plans.sequential_us / plans.joint_us),
                  absl::StrFormat("%.3f", plans.expert_us / plans.joint_us), finding.theirs,
                  evidence.text});
  }
  return table;
}

}  // namespace isomer
