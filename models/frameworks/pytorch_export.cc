#include "models/frameworks/pytorch_export.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

constexpr char kReference[] =
    "class Reference(nn.Module):\n"
    "    \"\"\"The model as it was before the plan, on one device.\"\"\"\n\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.leaves = {\n"
    "            name: initial(name).clone().requires_grad_(leaf.is_trained)\n"
    "            for name, leaf in LEAVES.items()\n"
    "        }\n\n";

class PytorchWriter {
 public:
  PytorchWriter(const Plan& plan, const std::string& file_name, const std::string& weights_name)
      : plan_(plan),
        graph_(plan.graph),
        file_name_(file_name),
        weights_name_(weights_name),
        operators_(kTorchOperators) {}

  absl::StatusOr<FrameworkExport> Write() {
    if (plan_.update.steps_between_flushes > 1) {
      return absl::UnimplementedError(
          "pipelines that are not drained after each step (2BW): PyTorch's schedules drain them");
    }
    if (const OptimizerKind optimizer = plan_.update.optimizer; plan_.mode == "training") {
      const bool needs_all = TraitsOf(optimizer).needs != UpdateNeeds::kElement;
      if (optimizer == OptimizerKind::kLion || needs_all) {
        return absl::UnimplementedError(absl::StrCat("the optimizer ", OptimizerName(optimizer),
                                                     ": torch.optim has none",
                                                     needs_all ? " for parts of weights" : ""));
      }
    }
    ISOMER_ASSIGN_OR_RETURN(program_, PlaceProgram(graph_, plan_.views, plan_.num_devices));
    StoreWeightsInParts(plan_, &program_);
    NoteRest();
    inputs_ = InputNames(graph_, operators_);
    ISOMER_ASSIGN_OR_RETURN(const std::string parts, Parts());
    ISOMER_ASSIGN_OR_RETURN(
        const std::string reference,
        WriteReference(plan_.model.graph, style_, ByName(graph_, inputs_), &operators_));
    const SafetensorsFile weights = SafetensorsOf(plan_.model);
    FrameworkExport file;
    if (!weights.offsets.empty()) file.weights = weights.contents;
    file.notes = program_.notes;
    file.python = absl::StrCat(
        Head(), operators_.UsedFunctions(), "\n\n", WithoutHead(kLeafValues), "\n\n",
        WithoutHead(kTorchRuntime), "\n\n", TablesText(plan_, program_, style_, inputs_, weights),
        program_.stages > 1 ? BordersText() : "", "\n\n", parts, "\n\n", kReference, reference,
        "\n\n", "PARTS = [", absl::StrJoin(part_names_, ", "), "]\n\n",
        "if __name__ == \"__main__\":\n    main()\n");
    return file;
  }

 private:
  void NoteRest() {
    auto& notes = program_.notes;
    bool gathers = false;
    for (const auto& [id, call] : program_.calls) {
      for (const OperandNeed& need : call.operands) gathers |= !need.halos.empty();
    }
    if (gathers) notes.push_back("halos are cut out of what is gathered whole");
    if (plan_.mode != "training") return;
    if (plan_.precision != DataType::kFloat32) {
      notes.push_back(absl::StrCat("computed in float32; the plan says ",
                                   PythonType(plan_.precision, ""),
                                   " (torch.autocast around Runner.step)"));
    }
    if (plan_.update.gradient_sums != DataType::kFloat32) {
      notes.push_back(absl::StrCat("gradients are summed in float32; the plan says ",
                                   PythonType(plan_.update.gradient_sums, "")));
    }
    if (!plan_.recomputed.empty()) {
      notes.push_back(absl::StrCat("all activations are kept; the plan computes those of ",
                                   plan_.recomputed.size(),
                                   " calls again (torch.utils.checkpoint)"));
    }
    if (!plan_.offloaded.empty()) {
      notes.push_back(absl::StrCat("all activations stay on the devices; the plan has those of ",
                                   plan_.offloaded.size(),
                                   " calls on the host (torch.autograd.graph.save_on_cpu)"));
    }
    if (plan_.update.state_precision != DataType::kFloat32) {
      notes.push_back(absl::StrCat("the optimizer's states are in float32; the plan says ",
                                   PythonType(plan_.update.state_precision, "")));
    }
    if (plan_.update.states_on_host) {
      notes.push_back("the optimizer's states stay on the devices; the plan has them on the host");
    }
    if (Updates(plan_, UpdateMethod::kShardedWeights)) {
      notes.push_back(
          "weights in parts (ZeRO 3) are gathered for the forward pass, and stay until the "
          "backward pass is done with them");
    }
    if ((Updates(plan_, UpdateMethod::kSharded) ||
         Updates(plan_, UpdateMethod::kShardedGradients)) &&
        program_.micro_batches > 1) {
      notes.push_back("weights whose updates are split (ZeRO) are gathered for each micro-batch");
    }
    if (Updates(plan_, UpdateMethod::kOwner)) {
      notes.push_back("gradients are all-reduced where the plan has an owner of each weight");
    }
  }

  // The tensors that cross the border in front of each chunk.
  std::vector<std::vector<TensorRef>> Borders() const {
    std::map<TensorRef, std::pair<int64_t, int64_t>> spans;  // made in, last read in
    const auto read = [&](TensorRef root, int64_t chunk) {
      const auto call = program_.calls.find(root.node);
      const bool is_weight = graph_.node(root.node).op.kind() == OpKind::kWeight;
      if (call == program_.calls.end() ? !is_weight : call->second.of_inputs_alone) return;
      const int64_t made =
          is_weight ? *program_.leaves.at(root.node).chunks.begin() : call->second.chunk;
      auto& span = spans.try_emplace(root, made, made).first->second;
      span.second = std::max(span.second, chunk);
    };
    for (const auto& [id, call] : program_.calls) {
      if (call.of_inputs_alone) continue;
      for (const OperandNeed& need : call.operands) read(need.root, call.chunk);
    }
    for (const auto& output : graph_.outputs()) {
      read(PlacedProgram::RootOf(graph_, output.tensor), program_.chunks - 1);
    }
    std::vector<std::vector<TensorRef>> borders(static_cast<size_t>(program_.chunks) + 1);
    for (const auto& [root, span] : spans) {
      for (int64_t chunk = span.first + 1; chunk <= span.second; ++chunk) {
        borders[static_cast<size_t>(chunk)].push_back(root);
      }
    }
    return borders;
  }

  absl::StatusOr<std::string> Parts() {
    borders_ = Borders();
    std::vector<std::string> texts;
    for (int64_t chunk = 0; chunk < program_.chunks; ++chunk) {
      part_names_.push_back(program_.chunks == 1 ? "Model" : absl::StrCat("Chunk", chunk));
      const bool is_last = chunk + 1 == program_.chunks;
      ISOMER_ASSIGN_OR_RETURN(const PartText part,
                              WritePart(graph_, program_, style_, inputs_, &operators_, chunk,
                                        borders_[static_cast<size_t>(chunk)],
                                        borders_[static_cast<size_t>(chunk) + 1], is_last));
      std::string text = absl::StrCat("class ", part_names_.back(), "(Part):\n    READS = (");
      for (const std::string& name : part.reads) {
        absl::StrAppend(&text, "\n        ", PythonString(name), ",");
      }
      absl::StrAppend(&text, part.reads.empty() ? ")" : "\n    )", "\n\n", part.forward);
      texts.push_back(std::move(text));
    }
    return absl::StrJoin(texts, "\n\n");
  }

  std::string Head() const {
    std::string head =
        absl::StrCat("\"\"\"", InDocstring(plan_.model.name), " on ", plan_.num_devices,
                     plan_.num_devices == 1 ? " device" : " devices",
                     ": a plan of isomer-optimize for PyTorch.\n\n    torchrun --nproc-per-node=",
                     plan_.num_devices, " ", InDocstring(file_name_), " --check\n");
    if (plan_.mode == "training") {
      absl::StrAppend(&head, "    torchrun --nproc-per-node=", plan_.num_devices, " ",
                      InDocstring(file_name_), " --train=10\n");
    }
    absl::StrAppend(
        &head,
        "\n--check compares outputs and gradients with Reference, the model as it was. To "
        "use the\nmodel in a program of yours: Runner(device).step(inputs), with whole "
        "inputs by name on\nevery process, gives outputs, and in training gradients in "
        ".grad of\nRunner.named_parameters().\n\nTensors are this device's parts. On the "
        "digits of the mesh, outermost first, R is a copy, S0 a\nshard along dim 0, P a "
        "summand; self.move(x, have, need, gradient) brings x from one to the\nother "
        "(DTensor.redistribute), and its gradient back from `gradient`.\n");
    for (const std::string& note : program_.notes) absl::StrAppend(&head, "\nNote: ", note, ".\n");
    absl::StrAppend(&head, "\"\"\"\n\nimport argparse\nimport math\nimport os\nimport sys\n",
                    "from typing import NamedTuple\n\nimport numpy as np\nimport torch\n",
                    "import torch.distributed as dist\nimport torch.nn.functional as F\n",
                    "from torch import nn\n",
                    "from torch.distributed.device_mesh import init_device_mesh\n",
                    "from torch.distributed.pipelining import (\n    PipelineStage,\n",
                    "    Schedule1F1B,\n    ScheduleInterleaved1F1B,\n)\n",
                    "from torch.distributed.tensor import DTensor, Partial, Replicate, Shard\n\n");
    const Mesh& mesh = program_.stage_digit >= 0 ? program_.devices : program_.mesh;
    std::vector<std::string> names;
    int64_t inner = 0;
    for (int digit = 0; digit < mesh.rank(); ++digit) {
      names.push_back(digit == program_.stage_digit ? "\"stage\""
                                                    : absl::StrCat("\"m", inner++, "\""));
    }
    std::vector<int64_t> sizes = mesh.sizes;
    if (inner == 0) {  // a stage is one device, which is a mesh of one digit
      names.push_back("\"m0\"");
      sizes.push_back(1);
    }
    absl::StrAppend(
        &head, "DEVICES = ", plan_.num_devices, "\nMESH = ", PythonTuple(sizes), "\nMESH_NAMES = (",
        absl::StrJoin(names, ", "), names.size() == 1 ? ",)" : ")", "\nSTAGES = ", program_.stages,
        "\nMICRO_BATCHES = ", program_.micro_batches, "\nOPTIMIZER = \"",
        OptimizerName(plan_.update.optimizer),
        "\"\nFLOAT = torch.float32\nTOLERANCE, FLOAT64_TOLERANCE = 1e-5, 1e-10\nWEIGHTS_FILE = ",
        PythonString(weights_name_), "\n");
    absl::StrAppend(&head, "R, P = Replicate(), Partial()\n");
    int most = 0;
    for (const auto& [id, call] : program_.calls) {
      for (const OperandNeed& need : call.operands) {
        most = std::max(most, graph_.type(need.root).rank());
      }
    }
    std::vector<std::string> shards, values;
    for (int i = 0; i < std::max(most, 1); ++i) {
      shards.push_back(absl::StrCat("S", i));
      values.push_back(absl::StrCat("Shard(", i, ")"));
    }
    return absl::StrCat(head, absl::StrJoin(shards, ", "), " = ", absl::StrJoin(values, ", "),
                        "\n");
  }

  // Shapes of what crosses borders, of a micro-batch, on a device.
  std::string BordersText() const {
    std::string text =
        "\n# What a device hands from chunk to chunk: shapes and types.\nBORDERS = [\n";
    for (size_t i = 0; i < borders_.size(); ++i) {
      std::vector<std::string> tensors;
      for (TensorRef root : borders_[i]) {
        const TensorType& type = graph_.type(root);
        tensors.push_back(absl::StrCat("(", PythonTuple(LocalShapeOf(root)), ", ",
                                       PythonType(type.dtype, style_.type_prefix), ")"));
      }
      if (i + 1 == borders_.size()) tensors = {"((1,), torch.float32)"};  // the loss
      absl::StrAppend(&text, "    [", absl::StrJoin(tensors, ", "), "],\n");
    }
    return absl::StrCat(text, "]\n");
  }

  std::vector<int64_t> LocalShapeOf(TensorRef root) const {
    const auto call = program_.calls.find(root.node);
    if (call != program_.calls.end()) {
      return call->second.sharding.outputs[static_cast<size_t>(root.output)].LocalShape();
    }
    std::vector<int64_t> shape = graph_.type(root).Sizes();
    const PlacedLeaf& leaf = program_.leaves.at(root.node);
    for (size_t digit = 0; digit < leaf.placements.size(); ++digit) {
      const MeshPlacement& placement = leaf.placements[digit];
      if (placement.kind == MeshPlacement::Kind::kShard) {
        shape[static_cast<size_t>(placement.dim)] /= program_.mesh.sizes[digit];
      }
    }
    return shape;
  }

  const Plan& plan_;
  const Graph& graph_;
  const std::string file_name_, weights_name_;
  const PartStyle style_ = {.type_prefix = "torch."};
  OperatorText operators_;
  PlacedProgram program_;
  std::map<NodeId, std::string> inputs_;
  std::vector<std::string> part_names_;
  std::vector<std::vector<TensorRef>> borders_;
};

}  // namespace

absl::StatusOr<FrameworkExport> PytorchFileOf(const Plan& plan, const std::string& file_name,
                                              const std::string& weights_name) {
  return PytorchWriter(plan, file_name, weights_name).Write();
}

}  // namespace isomer
