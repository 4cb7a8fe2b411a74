#include "models/frameworks/part_writer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/frameworks/leaf_tables.h"
#include "models/frameworks/local_attributes.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

std::string PlaceOfDevice(const std::vector<int>& digits) {
  return absl::StrCat("self.at(", absl::StrJoin(digits, ", "), ")");
}

absl::Status AtCall(const Graph& graph, NodeId id, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(graph.Label(id), ": ", status.message()));
}

// The forward function of a model, or of a chunk of one, on the parts that a device has.
class PartWriter {
 public:
  PartWriter(const Graph& graph, const PlacedProgram& program, const PartStyle& style,
             const std::map<NodeId, std::string>& inputs, OperatorText* operators, int64_t chunk)
      : graph_(graph),
        program_(program),
        style_(style),
        inputs_(inputs),
        operators_(*operators),
        names_(TakenNames(*operators)),
        chunk_(chunk) {
    for (const auto& [id, name] : inputs) {
      names_.Make(name);
      if (!style.global_arrays) continue;
      read_inputs_.insert(id);
      Have({id, 0}, name);
    }
  }

  // `entering`, `leaving`: the tensors that come from the chunk before and go to the one behind.
  absl::StatusOr<PartText> Write(const std::vector<TensorRef>& entering,
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
    if (gives_outputs) {
      ISOMER_RETURN_IF_ERROR(WriteOutputs());
    } else {
      std::vector<std::string> results;
      for (TensorRef root : leaving) {
        ISOMER_ASSIGN_OR_RETURN(std::string name, Natural(root));
        // What only passes through is another tensor for autograd; gloo sends no views.
        const bool passes = std::find(entering.begin(), entering.end(), root) != entering.end();
        absl::StrAppend(&name, passes ? ".clone()" : ".contiguous()");
        results.push_back(name);
      }
      Line(absl::StrCat("return ", absl::StrJoin(results, ", "), results.size() == 1 ? "," : ""));
    }
    PartText part;
    for (NodeId leaf : leaves_) part.reads.insert(graph_.node(leaf).name);
    if (!read_inputs_.empty()) arguments.push_back("*");
    for (NodeId input : read_inputs_) arguments.push_back(inputs_.at(input));
    arguments.push_back("**_");
    part.forward = absl::StrCat("    def forward(", absl::StrJoin(arguments, ", "), "):\n");
    for (const std::string& line : lines_) absl::StrAppend(&part.forward, "        ", line, "\n");
    return part;
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
    variables_[{root, placements, AddedUp(placements), program_.MomentDimOf(root)}] = name;
  }

  MeshPlacements PlacementsOf(TensorRef root) const { return program_.PlacementsOf(root); }

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
                     .gradients = AddedUp(placements),
                     .moment_dim = program_.MomentDimOf(root)});
  }

  absl::StatusOr<std::string> Variable(const OperandNeed& need) {
    const int moment_dim = program_.MomentDimOf(need.root);
    const Key key = {need.root, need.placements, need.gradients,
                     moment_dim == kSameInAll ? need.moment_dim : moment_dim};
    if (const auto found = variables_.find(key); found != variables_.end()) return found->second;
    const Node& node = graph_.node(need.root.node);
    std::string name;
    const std::string placements = PlacementsText(need.placements);
    const bool enters = variables_.contains(
        {need.root, PlacementsOf(need.root), AddedUp(PlacementsOf(need.root)), moment_dim});
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
      if (key.root != need.root || key.gradients != AddedUp(key.placements)) continue;
      if (key.moment_dim != program_.MomentDimOf(need.root)) continue;
      const bool is_natural = key.placements == PlacementsOf(need.root);
      if (from == nullptr ? is_natural : Suffices(key.placements, need.placements)) from = &key;
      if (from == &key && Suffices(key.placements, need.placements)) break;
    }
    if (from == nullptr) return absl::InternalError("an operand that is not there");
    const std::string name = NameOf(need.root);
    const std::string gradients = need.gradients == AddedUp(need.placements)
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
    const bool has_gradient =
        IsFloat(graph_.type(need.root).dtype) && node.op.kind() != OpKind::kInput;
    if (!has_gradient && from->placements == need.placements) return source;
    const std::string moved =
        absl::StrCat("self.move(", source, ", ", PlacementsText(from->placements), ", ",
                     PlacementsText(need.placements), has_gradient ? gradients : "", ")");
    Line(absl::StrCat(name, " = ", Kept(need.root.node, moved)));
    return name;
  }

  // `expression`, made of results of `id`: named, if the backward pass does not compute it again.
  std::string Kept(NodeId id, const std::string& expression) const {
    if (!style_.names_kept || style_.recomputed.contains(id)) return expression;
    return absl::StrCat("keep(", expression, ")");
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
    ISOMER_ASSIGN_OR_RETURN(const LocalCall local, LocalCallOf(node, call, program_.mesh,
                                                               PlaceOfDevice, style_.type_prefix));
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
    Line(absl::StrCat(absl::StrJoin(results, ", "), " = ", Kept(id, expression)));
    return absl::OkStatus();
  }

  absl::Status WriteOutputs() {
    std::vector<std::string> entries;
    for (const auto& output : graph_.outputs()) {
      const TensorRef root = PlacedProgram::RootOf(graph_, output.tensor);
      const MeshPlacements placements = style_.global_arrays
                                            ? AddedUp(PlacementsOf(root))
                                            : MeshPlacements(PlacementsOf(root).size());
      ISOMER_ASSIGN_OR_RETURN(const std::string name,
                              Variable({.root = root,
                                        .placements = placements,
                                        .gradients = placements,
                                        .moment_dim = program_.MomentDimOf(root)}));
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
    int moment_dim;  // it is a micro-batch's part along this dim, or kSameInAll
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  const Graph& graph_;
  const PlacedProgram& program_;
  const PartStyle& style_;
  const std::map<NodeId, std::string>& inputs_;
  OperatorText& operators_;
  PythonNames names_;
  const int64_t chunk_;
  std::vector<std::string> lines_;
  std::map<Key, std::string> variables_;
  std::set<NodeId> leaves_, read_inputs_;
};

}  // namespace

std::set<std::string> TakenNames(const OperatorText& operators) {
  std::set<std::string> names = operators.Names();
  names.insert({"R",
                "P",
                "F",
                "np",
                "nn",
                "jax",
                "jnp",
                "os",
                "sys",
                "math",
                "torch",
                "dist",
                "keep",
                "moved",
                "argparse",
                "functools",
                "window",
                "cut",
                "merge",
                "stack",
                "move",
                "register",
                "initial",
                "drawn",
                "check",
                "inputs",
                "leaves",
                "outputs",
                "path_of",
                "local_part",
                "redistribute",
                "float_type",
                "Part",
                "Model",
                "Runner",
                "Leaf",
                "Reference",
                "Input",
                "InFile",
                "Drawn",
                "Mesh",
                "FLOAT",
                "LEAVES",
                "INPUTS",
                "OUTPUTS",
                "LOSS",
                "DEVICES",
                "MESH"});
  for (int i = 0; i < 8; ++i) names.insert(absl::StrCat("S", i));
  return names;
}

absl::StatusOr<PartText> WritePart(const Graph& graph, const PlacedProgram& program,
                                   const PartStyle& style,
                                   const std::map<NodeId, std::string>& inputs,
                                   OperatorText* operators, int64_t chunk,
                                   const std::vector<TensorRef>& entering,
                                   const std::vector<TensorRef>& leaving, bool gives_outputs) {
  return PartWriter(graph, program, style, inputs, operators, chunk)
      .Write(entering, leaving, gives_outputs);
}

absl::StatusOr<std::string> WriteReference(const Graph& graph, const PartStyle& style,
                                           const std::map<std::string, std::string>& inputs,
                                           OperatorText* operators) {
  PythonNames names(TakenNames(*operators));
  std::string body;
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
    const LocalCall local = WholeCall(node, style.type_prefix);
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
  return absl::StrCat("    def forward(",
                      arguments.size() == 2 ? "self" : absl::StrJoin(arguments, ", "), "):\n", body,
                      "        return {", absl::StrJoin(entries, ", "), "}\n");
}

}  // namespace isomer
