#include "models/frameworks/jax_export.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/frameworks/local_attributes.h"
#include "models/frameworks/operator_text.h"
#include "models/frameworks/part_writer.h"
#include "models/frameworks/placed_program.h"
#include "models/frameworks/python_files.h"
#include "models/frameworks/stored_weights.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The shards of tensors of so many dims have a name.
int LargestRank(const Graph& graph) {
  int rank = 1;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    for (const TensorType& type : graph.node(id).outputs) rank = std::max(rank, type.rank());
  }
  return rank;
}

// What is not as the plan has it, though the results are the same.
std::vector<std::string> JaxNotes(const Plan& plan, const PlacedProgram& program) {
  std::vector<std::string> notes = program.notes;
  const bool gathers =
      std::any_of(program.calls.begin(), program.calls.end(), [](const auto& call) {
        return std::any_of(call.second.operands.begin(), call.second.operands.end(),
                           [](const OperandNeed& need) { return !need.halos.empty(); });
      });
  if (gathers) notes.push_back("halos are cut out of what is gathered whole");
  if (plan.precision != DataType::kFloat32) {
    notes.push_back(
        absl::StrCat("computed in float32; the plan says ", PythonType(plan.precision, "")));
  }
  if (plan.update.gradient_sums != DataType::kFloat32) {
    notes.push_back(absl::StrCat("gradients are summed in float32; the plan says ",
                                 PythonType(plan.update.gradient_sums, "")));
  }
  if (plan.mode != "training") return notes;
  if (!plan.offloaded.empty()) {
    notes.push_back(absl::StrCat("all activations stay on the devices; the plan has those of ",
                                 plan.offloaded.size(),
                                 " calls on the host (jax.checkpoint_policies)"));
  }
  if (plan.update.state_precision != DataType::kFloat32) {
    notes.push_back(absl::StrCat("the optimizer's states are in float32; the plan says ",
                                 PythonType(plan.update.state_precision, "")));
  }
  if (plan.update.states_on_host) {
    notes.push_back("the optimizer's states stay on the devices; the plan has them on the host");
  }
  if (Updates(plan, UpdateMethod::kOwner)) {
    notes.push_back("gradients are all-reduced where the plan has an owner of each weight");
  }
  return notes;
}

constexpr char kAbout[] = R"(
On a host without so many devices, with
XLA_FLAGS=--xla_force_host_platform_device_count=%d in the environment.

--check compares outputs and gradients with Reference, the model as it was. In a program of yours,
make_step(mesh) of make_mesh() is a function of weights, constants and inputs, which put_leaves and
put_inputs place on the mesh; it gives outputs, and in training gradients.

Tensors in Model are one device's parts. On the digits of the mesh, outermost first, R is a copy, S0
a shard along dim 0, P a summand; self.move(x, have, need, gradient) brings x from one to the other,
and its gradient back from `gradient`.
)";

constexpr char kImports[] = R"("""

import argparse
import functools
import math
import os
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, NamedSharding, PartitionSpec

jax.config.update("jax_enable_x64", True)  # integers are as wide as the model's

)";

// The file down to its operators.
std::string JaxHead(const Plan& plan, const PlacedProgram& program, bool names_kept,
                    const std::string& file_name, const std::string& weights_name,
                    const std::vector<std::string>& notes) {
  const std::string command = absl::StrCat("    python ", InDocstring(file_name));
  std::string head = absl::StrCat(
      "\"\"\"", InDocstring(plan.model.name), " on ", plan.num_devices,
      plan.num_devices == 1 ? " device" : " devices", ": a plan of isomer-optimize for JAX.\n\n",
      command, " --check\n", plan.mode == "training" ? absl::StrCat(command, " --train=10\n") : "",
      absl::StrFormat(kAbout, plan.num_devices));
  for (const std::string& note : notes) absl::StrAppend(&head, "\nNote: ", note, ".\n");
  std::vector<std::string> digits, shards, dims;
  for (int digit = 0; digit < program.mesh.rank(); ++digit) {
    digits.push_back(absl::StrCat("\"m", digit, "\""));
  }
  const int rank = LargestRank(plan.graph);
  for (int i = 0; i < rank; ++i) {
    shards.push_back(absl::StrCat("S", i));
    dims.push_back(absl::StrCat(i));
  }
  absl::StrAppend(&head, kImports, "DEVICES = ", plan.num_devices,
                  "\nMESH = ", PythonTuple(program.mesh.sizes), "\nMESH_NAMES = (",
                  absl::StrJoin(digits, ", "), digits.size() == 1 ? ",)" : ")",
                  "\nMICRO_BATCHES = ", program.micro_batches, "\n");
  absl::StrAppend(&head, "RECOMPUTES = ", names_kept ? "True" : "False",
                  "  # what is not named by keep\nOPTIMIZER = \"",
                  OptimizerName(plan.update.optimizer), "\"\n");
  absl::StrAppend(&head, "FLOAT = jnp.float32\nTOLERANCE, FLOAT64_TOLERANCE = 1e-5, 1e-10\n",
                  "WEIGHTS_FILE = ", PythonString(weights_name), "\nR, P = \"R\", \"P\"\n",
                  absl::StrJoin(shards, ", "), " = ", absl::StrJoin(dims, ", "), "\n");
  return head;
}

}  // namespace

absl::StatusOr<FrameworkExport> JaxFileOf(const Plan& plan, const std::string& file_name,
                                          const std::string& weights_name) {
  // Those of models/frameworks/jax_runtime.py.
  const OptimizerKind optimizer = plan.update.optimizer;
  if (plan.mode == "training" && optimizer != OptimizerKind::kSgd &&
      optimizer != OptimizerKind::kMomentum && optimizer != OptimizerKind::kAdam) {
    return absl::UnimplementedError(absl::StrCat("the optimizer ", OptimizerName(optimizer),
                                                 ": what is written has sgd, momentum and adam"));
  }
  ISOMER_ASSIGN_OR_RETURN(PlacedProgram program,
                          PlaceProgram(plan.graph, plan.views, plan.num_devices));
  if (program.stages > 1) {
    return absl::UnimplementedError(absl::StrCat(
        "a pipeline of ", program.stages, " stages: the devices of a shard_map run one program"));
  }
  StoreWeightsInParts(plan, &program);
  PartStyle style = {.type_prefix = "jnp.", .global_arrays = true};
  style.recomputed.insert(plan.recomputed.begin(), plan.recomputed.end());
  // ZeRO 3 gathers weights again for the backward pass.
  style.names_kept = plan.mode == "training" &&
                     (!plan.recomputed.empty() || Updates(plan, UpdateMethod::kShardedWeights));
  OperatorText operators(kJaxOperators);
  const std::map<NodeId, std::string> inputs = InputNames(plan.graph, operators);
  ISOMER_ASSIGN_OR_RETURN(const PartText part,
                          WritePart(plan.graph, program, style, inputs, &operators, /*chunk=*/0,
                                    /*entering=*/{}, /*leaving=*/{}, /*gives_outputs=*/true));
  ISOMER_ASSIGN_OR_RETURN(
      const std::string reference,
      WriteReference(plan.model.graph, style, ByName(plan.graph, inputs), &operators));
  const SafetensorsFile weights = SafetensorsOf(plan.model);
  FrameworkExport file;
  if (!weights.offsets.empty()) file.weights = weights.contents;
  file.notes = JaxNotes(plan, program);
  file.python = absl::StrCat(
      JaxHead(plan, program, style.names_kept, file_name, weights_name, file.notes),
      operators.UsedFunctions(), "\n\n", WithoutHead(kLeafValues), "\n\n", WithoutHead(kJaxRuntime),
      "\n\n", TablesText(plan, program, style, inputs, weights), "\n\nclass Model(Part):\n",
      part.forward,
      "\n\nclass Reference(Part):\n"
      "    \"\"\"The model as it was before the plan, on one device.\"\"\"\n\n",
      reference, "\n\nif __name__ == \"__main__\":\n    main()\n");
  return file;
}

}  // namespace isomer
