// Models and plans: what passes between the programs.
#ifndef ISOMER_PCG_IR_PLAN_H_
#define ISOMER_PCG_IR_PLAN_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "pcg/ir/fp8.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/machine_view.h"
#include "pcg/ir/stored_values.h"
#include "pcg/ir/weight_update.h"
#include "pcg/ir/zero_bubble.h"

namespace isomer {

// The running means and variances of the channels of batch_norm_training: what the model normalises
// by when it is evaluated. Each batch that trains moves them: old * momentum + new * (1 -
// momentum).
struct BatchStatistics {
  // The leaf that is the scale of the calls which they are of.
  std::string scale;
  // Constants, with their initial values.
  std::string mean, variance;
  double momentum = 0.9;
  friend bool operator==(const BatchStatistics&, const BatchStatistics&) = default;
};

// A graph with the initial values of its weights (absent: drawn from a seed).
struct Model {
  std::string name;
  Graph graph;
  std::map<std::string, StoredValues> weights;
  // The output that training minimises, a scalar; empty: the model has no loss (inference).
  std::string loss;
  // What the file that it was read from was taken to mean, where it may be read otherwise. Each is
  // one line of printable ASCII.
  std::vector<std::string> assumptions = {};
  // Of scales that are all different.
  std::vector<BatchStatistics> statistics = {};
};

// A call that a step adds, and a tensor whose uses become uses of another.
struct AddedCall {
  Operator op;
  std::vector<TensorRef> inputs;
  friend bool operator==(const AddedCall&, const AddedCall&) = default;
};
struct Replacement {
  TensorRef from, to;
  friend bool operator==(const Replacement&, const Replacement&) = default;
};

// One rewrite: the rule, and where its source pattern lies in the graph so far. Applying it adds
// the target's nodes in pattern order (ids follow the graph's last), then redirects the uses of
// each source output. Steps refer to ids of the growing, uncanonicalised graph.
//
// A step without a rule says itself what it puts in the place of `nodes`: `calls`, and what they
// replace. Nothing is proved of such a step but at its place, by whoever checks the plan.
struct DerivationStep {
  std::string rule;                          // id; "": `calls` and `replaced` say what is done
  std::vector<NodeId> nodes;                 // per source pattern node
  std::vector<TensorRef> inputs;             // per rule input
  std::map<std::string, int64_t> variables;  // attribute variables (axes, degrees, sizes)
  std::map<std::string, double> numbers;     // attribute variables that are numbers (factors)
  std::map<std::string, AttributeValue> attributes;  // opaque attribute variables (a shape)
  // Of a step without a rule, which has nothing else than `nodes` and these.
  std::vector<AddedCall> calls = {};
  std::vector<Replacement> replaced = {};
  friend bool operator==(const DerivationStep&, const DerivationStep&) = default;
};

// A graph and the devices of its nodes.
struct MappedGraph {
  Graph graph;
  std::vector<MachineView> views;                       // per node
  std::vector<NodeId> recomputed = {}, offloaded = {};  // as in Plan
};

// The fastest equal way to run a model that the search found, with its derivation. The graph is
// Canonical() of the model's graph after all steps, its nodes in any topological order.
struct Plan {
  Model model;                    // as imported: every type sequential
  std::string mode = "training";  // or "inference"
  // What it computes in, a float type; the graph says float32 (pcg/ir/precision.h).
  DataType precision = DataType::kFloat32;
  Fp8Products fp8 = {};  // of bfloat16 alone
  UpdateOptions update;  // in training
  std::string machine;   // name of the machine it was made for
  int64_t num_devices = 1;
  uint64_t rules_digest = 0;
  std::vector<DerivationStep> steps;
  Graph graph;
  std::vector<MachineView> views;  // per node of `graph`
  // Nodes whose results training does not keep for the backward pass, which computes them again
  // from what is kept (pcg/schedule/lowering/recomputation.h); ascending.
  std::vector<NodeId> recomputed = {};
  // Nodes whose results are copied to the host's memory after their last use in the forward pass
  // and back before their first in the backward pass (pcg/schedule/memory/offload.h); ascending.
  // None is computed again as well.
  std::vector<NodeId> offloaded = {};
  // Short branches are computed between the exchanges of long ones, rather than as soon as they can
  // be (pcg/schedule/order/execution_order.h).
  bool spread_branches = false;
  // How the stages of a pipeline work through micro-batches.
  ZeroBubble zero_bubble = {};
  double predicted_step_us = 0;
  int64_t predicted_peak_bytes = 0;
  // What the plan's devices of that machine could do in its precision, together, by their makers'
  // word: FLOP/s of matrix products; 0: not known.
  double peak_flops = 0;
  // SealOf the plan when its maker was done with it; 0: not sealed yet.
  uint64_t seal = 0;
};

// A digest of all but the seal. A plan whose seal is another was changed after it was made, maybe
// into one that still runs but is not what was predicted.
uint64_t SealOf(const Plan& plan);

// What it computes in, as `--precision` has it: "bfloat16", or "fp8" where products are in 8 bits.
absl::string_view PrecisionName(const Plan& plan);

// In what a step of the plan is not the model's, though its graph is equal: lines for people. A
// plan of the model's own precision without delayed weights has none.
//   "weights are up to one version old, and change every 4 steps (2BW)"
//   "it computes in bfloat16"
//   "it computes in bfloat16, and multiplies by 12 of 16 weights in 8 bits (fp8, a scale per row)"
std::vector<std::string> DeviationsOf(const Plan& plan);

// Files: kinds "model" and "plan" (docs/file-formats.md); binary, or text when the path ends in
// .txt or .textproto. Reading validates.
absl::Status SaveModel(const std::string& path, const Model& model);
absl::StatusOr<Model> LoadModel(const std::string& path);
// Seals a plan that is not sealed yet.
absl::Status SavePlan(const std::string& path, const Plan& plan);
absl::StatusOr<Plan> LoadPlan(const std::string& path);

// The messages themselves, for files of other kinds that hold graphs.
namespace proto {
class GraphProto;
class ModelProto;
class PlanProto;
}  // namespace proto
void ToProto(const Graph& graph, proto::GraphProto* message);
absl::StatusOr<Graph> FromProto(const proto::GraphProto& message);
void ToProto(const Plan& plan, proto::PlanProto* message);
absl::StatusOr<Plan> FromProto(const proto::PlanProto& message);
void ToProto(const Model& model, proto::ModelProto* message);
absl::StatusOr<Model> FromProto(const proto::ModelProto& message);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_PLAN_H_
