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
#include "models/frameworks/placed_program.h"
#include "models/frameworks/python_files.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr char kTypePrefix[] = "torch.";

std::string PlaceOfDevice(const std::vector<int>& digits) {
  return absl::StrCat("self.at(", absl::StrJoin(digits, ", "), ")");
}

absl::Status AtCall(const Graph& graph, NodeId id, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(graph.Label(id), ": ", status.message()));
}

// Names that the code around the model has.
std::set<std::string> TakenNames(const OperatorText& operators) {
  std::set<std::string> names = operators.Names();
  names.insert({"R",        "P",         "F",      "np",         "nn",     "os",     "sys",
                "math",     "torch",     "dist",   "argparse",   "window", "cut",    "merge",
                "register", "initial",   "drawn",  "local_part", "check",  "inputs", "outputs",
                "Part",     "Reference", "Model",  "Runner",     "Leaf",   "Input",  "InFile",
                "Drawn",    "LEAVES",    "INPUTS", "OUTPUTS",    "LOSS"});
  for (int i = 0; i < 8; ++i) names.insert(absl::StrCat("S", i));
  return names;
}

// What a graph's inputs are called in Python: keyword arguments.
std::map<NodeId, std::string> InputNames(const Graph& graph, PythonNames* names) {
  std::map<NodeId, std::string> inputs;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op.kind() == OpKind::kInput) inputs[NodeId{id}] = names->Make(node.name);
  }
  return inputs;
}

// The forward function of a model, or of a chunk of one, on the parts that a device has.
class PartWriter {
 public:
  PartWriter(const Graph& graph, const PlacedProgram& program,
             const std::map<NodeId, std::string>& inputs, OperatorText* operators, int64_t chunk)
      : graph_(graph),
        program_(program),
        inputs_(inputs),
        operators_(*operators),
        names_(TakenNames(*operators)),
        chunk_(chunk) {
    for (const auto& [id, name] : inputs) names_.Make(name);
  }

  // `entering`, `leaving`: the tensors that come from the chunk before and go to the one behind.
  absl::StatusOr<std::string> Write(const std::string& class_name,
                                    const std::vector<TensorRef>& entering,
                                    const std::vector<TensorRef>& leaving, bool gives_outputs) {
    std::vector<std::string> arguments = {"self"};
    for (TensorRef root : entering) {
      const std::string name = NameOf(root);
      arguments.push_back(name);
      Have(root, name);
    }
    for (NodeId id : NeededCalls(leaving, gives_outputs)) {
      const absl::Status written = WriteCall(id);
      if (!written.ok()) return AtCall(graph_, id, written);
    }
    std::vector<std::string> results;
    if (gives_outputs) {
      ISOMER_RETURN_IF_ERROR(WriteOutputs());
    } else {
      for (TensorRef root : leaving) {
        ISOMER_ASSIGN_OR_RETURN(std::string name, Natural(root));
        // What only passes through is another tensor for autograd.
        if (std::find(entering.begin(), entering.end(), root) != entering.end()) {
          name = absl::StrCat(name, ".clone()");
        }
        results.push_back(name);
      }
      Line(absl::StrCat("return ", absl::StrJoin(results, ", "), results.size() == 1 ? "," : ""));
    }
    std::set<std::string> read;
    for (NodeId leaf : leaves_) read.insert(PythonString(graph_.node(leaf).name));
    for (NodeId input : read_inputs_) arguments.push_back(inputs_.at(input));
    if (!read_inputs_.empty()) arguments.insert(arguments.end() - read_inputs_.size(), "*");
    arguments.push_back("**_");
    std::string text = absl::StrCat("class ", class_name, "(Part):\n    READS = (");
    for (const std::string& name : read) absl::StrAppend(&text, "\n        ", name, ",");
    absl::StrAppend(&text, read.empty() ? ")" : "\n    )", "\n\n    def forward(",
                    absl::StrJoin(arguments, ", "), "):\n");
    for (const std::string& line : lines_) absl::StrAppend(&text, "        ", line, "\n");
    return text;
  }

 private:
  void Line(std::string line) { lines_.push_back(std::move(line)); }

  std::string NameOf(TensorRef root) {
    const Node& node = graph_.node(root.node);
    std::string name = node.name.empty() ? absl::StrCat(OpName(node.op.kind())) : node.name;
    if (node.outputs.size() > 1) absl::StrAppend(&name, "_", root.output);
    return names_.Make(name);
  }

  void Have(TensorRef root, const std::string& name) {
    const MeshPlacements placements = PlacementsOf(root);
    variables_[{root, placements, NaturalGradients(placements)}] = name;
  }

  MeshPlacements PlacementsOf(TensorRef root) const {
    const auto call = program_.calls.find(root.node);
    return call == program_.calls.end() ? program_.leaves.at(root.node).placements
                                        : call->second.outputs[root.output];
  }

  // Of partial sums, each needs the whole gradient.
  static MeshPlacements NaturalGradients(MeshPlacements placements) {
    for (MeshPlacement& placement : placements) {
      if (placement.kind == MeshPlacement::Kind::kPartial) placement = {};
    }
    return placements;
  }

  bool IsHere(NodeId id) const {
    const PlacedCall& call = program_.calls.at(id);
    return call.of_inputs_alone || call.chunk == chunk_;
  }

  // Calls of this chunk that something needs, in order.
  std::vector<NodeId> NeededCalls(const std::vector<TensorRef>& leaving, bool gives_outputs) const {
    std::set<NodeId> needed;
    for (TensorRef root : leaving) needed.insert(root.node);
    if (gives_outputs) {
      for (const auto& output : graph_.outputs()) {
        needed.insert(PlacedProgram::RootOf(graph_, output.tensor).node);
      }
    }
    std::vector<NodeId> calls;
    for (auto id = program_.order.rbegin(); id != program_.order.rend(); ++id) {
      const PlacedCall& call = program_.calls.at(*id);
      if (!IsHere(*id)) continue;
      // What is made of inputs alone is made where it is read.
      if (call.of_inputs_alone && program_.chunks > 1 && !needed.contains(*id)) continue;
      calls.push_back(*id);
      for (const OperandNeed& need : call.operands) needed.insert(need.root.node);
    }
    std::reverse(calls.begin(), calls.end());
    return calls;
  }

  // The variable with a root as it is made, or stored.
  absl::StatusOr<std::string> Natural(TensorRef root) {
    const MeshPlacements placements = PlacementsOf(root);
    return Variable({.root = root,
                     .placements = placements,
                     .gradients = NaturalGradients(placements),
                     .moment_dim = program_.MomentDimOf(root)});
  }

  absl::StatusOr<std::string> Variable(const OperandNeed& need) {
    const Key key = {need.root, need.placements, need.gradients};
    if (const auto found = variables_.find(key); found != variables_.end()) return found->second;
    const Node& node = graph_.node(need.root.node);
    std::string name;
    const std::string placements = PlacementsText(need.placements);
    const bool enters = variables_.contains(
        {need.root, PlacementsOf(need.root), NaturalGradients(PlacementsOf(need.root))});
    if (IsLeaf(node.op.kind()) && !enters) {
      name = NameOf(need.root);
      if (node.op.kind() == OpKind::kInput) {
        read_inputs_.insert(need.root.node);
        Line(
            absl::StrCat(name, " = self.take(", inputs_.at(need.root.node), ", ", placements, ")"));
      } else {
        leaves_.insert(need.root.node);
        const std::string leaf = PythonString(node.name);
        Line(node.op.kind() == OpKind::kWeight
                 ? absl::StrCat(name, " = self.weight(", leaf, ", ", placements, ", ",
                                PlacementsText(need.gradients), ")")
                 : absl::StrCat(name, " = self.constant(", leaf, ", ", placements, ")"));
        if (need.moment_dim >= 0) {
          Line(absl::StrCat(name, " = self.micro_batch(", name, ", ", need.moment_dim, ")"));
        }
      }
    } else {
      ISOMER_ASSIGN_OR_RETURN(name, Moved(need, node));
    }
    variables_[key] = name;
    return name;
  }

  // From where least is sent: another variable of the tensor of which each device has at least
  // what it needs.
  absl::StatusOr<std::string> Moved(const OperandNeed& need, const Node& node) {
    const Key* from = nullptr;
    for (const auto& [key, name] : variables_) {
      if (key.root != need.root || key.gradients != NaturalGradients(key.placements)) continue;
      const bool is_natural = key.placements == PlacementsOf(need.root);
      if (from == nullptr ? is_natural : Suffices(key.placements, need.placements)) from = &key;
      if (from == &key && Suffices(key.placements, need.placements)) break;
    }
    if (from == nullptr) return absl::InternalError("an operand that is not there");
    const std::string name = NameOf(need.root);
    const std::string gradients = need.gradients == NaturalGradients(need.placements)
                                      ? ""
                                      : absl::StrCat(", ", PlacementsText(need.gradients));
    std::string source = variables_.at(*from);
    if (need.moment_dim >= 0 && program_.MomentDimOf(need.root) == kSameInAll) {
      source = absl::StrCat("self.micro_batch(", source, ", ", need.moment_dim, ")");
      for (const MeshPlacement& placement : from->placements) {
        if (placement == MeshPlacement::Shard(need.moment_dim)) {
          return absl::UnimplementedError("micro-batches of what is split");
        }
      }
    }
    if (!IsFloat(graph_.type(need.root).dtype) && gradients.empty() &&
        from->placements == need.placements) {
      return source;
    }
    Line(absl::StrCat(name, " = self.move(", source, ", ", PlacementsText(from->placements), ", ",
                      PlacementsText(need.placements), gradients, ")"));
    (void)node;
    return name;
  }

  static bool Suffices(const MeshPlacements& have, const MeshPlacements& need) {
    for (size_t i = 0; i < have.size(); ++i) {
      if (have[i] != need[i] && have[i].kind != MeshPlacement::Kind::kReplicate) return false;
    }
    return true;
  }

  absl::Status WriteCall(NodeId id) {
    const Node& node = graph_.node(id);
    const PlacedCall& call = program_.calls.at(id);
    ISOMER_ASSIGN_OR_RETURN(const LocalCall local,
                            LocalCallOf(node, call, program_.mesh, PlaceOfDevice, kTypePrefix));
    std::vector<std::string> operands;
    for (const OperandNeed& need : call.operands) {
      ISOMER_ASSIGN_OR_RETURN(const std::string name, Variable(need));
      operands.push_back(name);
    }
    for (const WindowOfDim& cut : local.windows) {
      const std::string name = names_.Make(absl::StrCat(node.name, "_window"));
      Line(absl::StrCat(name, " = window(", operands[0], ", dim=", cut.dim,
                        ", start=", PlaceOfDevice(cut.digits), " * ", cut.stride,
                        cut.offset == 0 ? "" : absl::StrCat(" - ", -cut.offset),
                        ", length=", cut.length, ", outside=", PythonNumber(cut.outside), ")"));
      operands[0] = name;
    }
    ISOMER_ASSIGN_OR_RETURN(std::string expression,
                            operators_.Call(local.function, operands, local.attributes));
    if (local.divisor > 1) expression = absl::StrCat("(", expression, ") / ", local.divisor);
    std::vector<std::string> results;
    for (int t = 0; t < static_cast<int>(node.outputs.size()); ++t) {
      const TensorRef root = {id, t};
      results.push_back(NameOf(root));
      Have(root, results.back());
    }
    Line(absl::StrCat(absl::StrJoin(results, ", "), " = ", expression));
    return absl::OkStatus();
  }

  absl::Status WriteOutputs() {
    std::vector<std::string> entries;
    for (const auto& output : graph_.outputs()) {
      const TensorRef root = PlacedProgram::RootOf(graph_, output.tensor);
      OperandNeed need = {.root = root,
                          .placements = MeshPlacements(PlacementsOf(root).size()),
                          .gradients = MeshPlacements(PlacementsOf(root).size()),
                          .moment_dim = program_.MomentDimOf(root)};
      ISOMER_ASSIGN_OR_RETURN(const std::string name, Variable(need));
      entries.push_back(absl::StrCat(PythonString(output.name), ": ", name));
    }
    const std::string outputs = absl::StrCat("{", absl::StrJoin(entries, ", "), "}");
    if (program_.stages == 1) {
      Line(absl::StrCat("return ", outputs));
      return absl::OkStatus();
    }
    Line(absl::StrCat("outputs = ", outputs));
    Line("self.outputs.append({name: x.detach() for name, x in outputs.items()})");
    Line("return outputs[LOSS].reshape(1)");
    return absl::OkStatus();
  }

  struct Key {
    TensorRef root;
    MeshPlacements placements, gradients;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  const Graph& graph_;
  const PlacedProgram& program_;
  const std::map<NodeId, std::string>& inputs_;
  OperatorText& operators_;
  PythonNames names_;
  const int64_t chunk_;
  std::vector<std::string> lines_;
  std::map<Key, std::string> variables_;
  std::set<NodeId> leaves_, read_inputs_;
};

// The model as it was: whole tensors, on one device.
absl::StatusOr<std::string> ReferenceClass(const Graph& graph,
                                           const std::map<std::string, std::string>& inputs,
                                           OperatorText* operators) {
  PythonNames names(TakenNames(*operators));
  std::string body, reads;
  std::vector<std::string> arguments = {"self", "*"};
  for (const auto& [name, python] : inputs) names.Make(python);
  std::map<TensorRef, std::string> variables;
  for (NodeId id : graph.TopologicalOrder()) {
    const Node& node = graph.node(id);
    const auto name_of = [&](int t) {
      return names.Make(node.outputs.size() > 1 ? absl::StrCat(node.name, "_", t) : node.name);
    };
    if (node.op.kind() == OpKind::kInput) {
      variables[{id, 0}] = inputs.at(node.name);
      arguments.push_back(inputs.at(node.name));
      continue;
    }
    if (IsLeaf(node.op.kind())) {
      variables[{id, 0}] = name_of(0);
      absl::StrAppend(&body, "        ", variables[{id, 0}], " = self.leaves[",
                      PythonString(node.name), "]\n");
      continue;
    }
    const LocalCall local = WholeCall(node, kTypePrefix);
    std::vector<std::string> operands, results;
    for (TensorRef input : node.inputs) operands.push_back(variables.at(input));
    auto expression = operators->Call(local.function, operands, local.attributes);
    if (!expression.ok()) return AtCall(graph, id, expression.status());
    for (int t = 0; t < static_cast<int>(node.outputs.size()); ++t) {
      results.push_back(variables[{id, t}] = name_of(t));
    }
    absl::StrAppend(&body, "        ", absl::StrJoin(results, ", "), " = ", *expression, "\n");
  }
  std::vector<std::string> entries;
  for (const auto& output : graph.outputs()) {
    entries.push_back(absl::StrCat(PythonString(output.name), ": ", variables.at(output.tensor)));
  }
  return absl::StrCat(
      "class Reference(nn.Module):\n"
      "    \"\"\"The model as it was before the plan, on one device.\"\"\"\n\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.leaves = {\n"
      "            name: initial(name).clone().requires_grad_(leaf.is_trained)\n"
      "            for name, leaf in LEAVES.items()\n"
      "        }\n\n"
      "    def forward(",
      arguments.size() == 2 ? "self" : absl::StrJoin(arguments, ", "), "):\n", body,
      "        return {", absl::StrJoin(entries, ", "), "}\n");
}

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
    if (plan_.mode == "training" && plan_.update.optimizer == OptimizerKind::kLion) {
      return absl::UnimplementedError("the optimizer lion: torch.optim has none");
    }
    ISOMER_ASSIGN_OR_RETURN(program_, PlaceProgram(graph_, plan_.views, plan_.num_devices));
    StoreParts();
    NoteRest();
    PythonNames names(TakenNames(operators_));
    inputs_ = InputNames(graph_, &names);
    ISOMER_ASSIGN_OR_RETURN(const std::string parts, Parts());
    std::map<std::string, std::string> reference_inputs;
    for (const auto& [id, name] : inputs_) reference_inputs[graph_.node(id).name] = name;
    ISOMER_ASSIGN_OR_RETURN(const std::string reference,
                            ReferenceClass(plan_.model.graph, reference_inputs, &operators_));
    const SafetensorsFile weights = SafetensorsOf(plan_.model);
    FrameworkExport file;
    if (!weights.offsets.empty()) file.weights = weights.contents;
    file.notes = program_.notes;
    file.python = absl::StrCat(Head(), operators_.UsedFunctions(), "\n\n", Runtime(), "\n\n",
                               Tables(weights), "\n\n", parts, "\n\n", reference, "\n\n",
                               "PARTS = [", absl::StrJoin(part_names_, ", "), "]\n\n",
                               "if __name__ == \"__main__\":\n    main()\n");
    return file;
  }

 private:
  // ZeRO: copies of a weight, on devices that do different work, keep a part each.
  void StoreParts() {
    int64_t kept_whole = 0;
    for (auto& [id, leaf] : program_.leaves) {
      const Node& node = graph_.node(id);
      if (node.op.kind() != OpKind::kWeight || plan_.mode != "training") continue;
      const auto own = plan_.update.methods.find(node.name);
      const UpdateMethod method =
          own == plan_.update.methods.end() ? plan_.update.method : own->second;
      if (!TraitsOf(method).splits_trained) continue;
      std::vector<size_t> digits;
      int64_t copies = 1;
      for (size_t digit = 0; digit < leaf.placements.size(); ++digit) {
        if (leaf.placements[digit].kind != MeshPlacement::Kind::kReplicate) continue;
        digits.push_back(digit);
        copies *= program_.mesh.sizes[digit];
      }
      int best = -1;
      const std::vector<Dim>& dims = node.outputs[0].dims;
      for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
        const bool is_split =
            std::count(leaf.placements.begin(), leaf.placements.end(), MeshPlacement::Shard(i)) > 0;
        if (is_split || dims[i].size % copies != 0) continue;
        if (best < 0 || dims[i].size > dims[best].size) best = i;
      }
      if (best < 0) {
        ++kept_whole;
        continue;
      }
      for (size_t digit : digits) leaf.placements[digit] = MeshPlacement::Shard(best);
    }
    if (kept_whole > 0) {
      program_.notes.push_back(absl::StrCat(
          "weights whose dims do not divide by their copies are kept whole (", kept_whole, ")"));
    }
  }

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
    if (!plan_.recomputed.empty()) {
      notes.push_back(absl::StrCat("all activations are kept; the plan computes those of ",
                                   plan_.recomputed.size(),
                                   " calls again (torch.utils.checkpoint)"));
    }
    if (plan_.update.states_on_host) {
      notes.push_back("the optimizer's states stay on the devices; the plan has them on the host");
    }
    const auto uses = [&](UpdateMethod method) {
      if (plan_.update.method == method) return true;
      for (const auto& [name, own] : plan_.update.methods) {
        if (own == method) return true;
      }
      return false;
    };
    if (uses(UpdateMethod::kShardedWeights)) {
      notes.push_back(
          "weights in parts (ZeRO 3) are gathered for the forward pass, and stay until the "
          "backward pass is done with them");
    }
    if ((uses(UpdateMethod::kSharded) || uses(UpdateMethod::kShardedGradients)) &&
        program_.micro_batches > 1) {
      notes.push_back("weights whose updates are split (ZeRO) are gathered for each micro-batch");
    }
    if (uses(UpdateMethod::kOwner)) {
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
      PartWriter writer(graph_, program_, inputs_, &operators_, chunk);
      const bool is_last = chunk + 1 == program_.chunks;
      ISOMER_ASSIGN_OR_RETURN(std::string text,
                              writer.Write(part_names_.back(), borders_[static_cast<size_t>(chunk)],
                                           borders_[static_cast<size_t>(chunk) + 1], is_last));
      texts.push_back(std::move(text));
    }
    return absl::StrJoin(texts, "\n\n");
  }

  std::string Head() const {
    std::string head =
        absl::StrCat("\"\"\"", Quotable(plan_.model.name), " on ", plan_.num_devices,
                     plan_.num_devices == 1 ? " device" : " devices",
                     ": a plan of isomer-optimize for PyTorch.\n\n    torchrun --nproc-per-node=",
                     plan_.num_devices, " ", Quotable(file_name_), " --check\n");
    if (plan_.mode == "training") {
      absl::StrAppend(&head, "    torchrun --nproc-per-node=", plan_.num_devices, " ",
                      Quotable(file_name_), " --train=10\n");
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

  // What may stand in a string of three quotes.
  static std::string Quotable(const std::string& text) {
    const std::string quoted = PythonString(text);
    return quoted.substr(1, quoted.size() - 2);
  }

  static std::string Runtime() {
    const std::string text = kTorchRuntime;
    return text.substr(text.find("\n\n\n") + 3);
  }

  std::string Tables(const SafetensorsFile& weights) const {
    std::string text = "LEAVES = {\n";
    // The names of the model and of the plan's graph are the same.
    std::map<std::string, NodeId> placed;
    for (const auto& [id, leaf] : program_.leaves) placed[graph_.node(id).name] = id;
    const Graph& model = plan_.model.graph;
    for (int id = 0; id < model.num_nodes(); ++id) {
      const Node& node = model.node(id);
      if (!IsStored(node.op.kind())) continue;
      const auto at = placed.find(node.name);
      const TensorType& type = node.outputs[0];
      absl::StrAppend(
          &text, "    ", PythonString(node.name), ": Leaf(", PythonTuple(type.Sizes()), ", ",
          PlacementsText(at == placed.end() ? MeshPlacements(program_.mesh.sizes.size())
                                            : program_.leaves.at(at->second).placements),
          ", ", ValuesText(plan_.model, NodeId{id}, weights));
      if (type.dtype != DataType::kFloat32) {
        absl::StrAppend(&text, ", ", PythonType(type.dtype, kTypePrefix));
      }
      if (node.op.kind() == OpKind::kConstant) absl::StrAppend(&text, ", is_trained=False");
      absl::StrAppend(&text, "),\n");
    }
    absl::StrAppend(&text, "}\n\nINPUTS = {\n");
    for (const auto& [id, name] : inputs_) {
      const TensorType& type = graph_.node(id).outputs[0];
      const int dim = program_.leaves.at(id).moment_dim;
      absl::StrAppend(&text, "    \"", name, "\": Input(", PythonTuple(type.Sizes()), ", ",
                      PythonType(type.dtype, kTypePrefix), ", ",
                      type.dtype == DataType::kBool ? 2 : InputLimit(graph_, id), ", ",
                      dim < 0 ? std::string("None") : absl::StrCat(dim), ", ",
                      PythonString(graph_.node(id).name), "),\n");
    }
    absl::StrAppend(&text,
                    "}\n\n# How the outputs of micro-batches are one: along a dim, by their "
                    "sum, or all the same.\nOUTPUTS = {\n");
    for (const auto& output : graph_.outputs()) {
      const int dim = program_.MomentDimOf(PlacedProgram::RootOf(graph_, output.tensor));
      absl::StrAppend(&text, "    ", PythonString(output.name), ": ",
                      dim == kSameInAll         ? std::string("None")
                      : dim == kPartialOfMoment ? std::string("\"sum\"")
                                                : absl::StrCat(dim),
                      ",\n");
    }
    absl::StrAppend(&text, "}\n\nLOSS = ",
                    plan_.mode == "training" ? PythonString(plan_.model.loss) : "None", "\n");
    if (program_.stages > 1) absl::StrAppend(&text, BordersText());
    return text;
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
                                       PythonType(type.dtype, kTypePrefix), ")"));
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
