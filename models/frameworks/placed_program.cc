#include "models/frameworks/placed_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status AtNode(const Graph& graph, NodeId id, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(graph.Label(id), ": ", status.message()));
}

// The dim of an operand or output that iteration dim v leads, or -1. `leads` gives the lead of
// each.
template <typename Leads>
absl::StatusOr<int> DimLedBy(int v, int rank, Leads leads) {
  int found = -1;
  for (int i = 0; i < rank; ++i) {
    if (leads(i) != v) continue;
    if (found >= 0) return absl::UnimplementedError("one split of two dims of a tensor");
    found = i;
  }
  return found;
}

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<MachineView>& views, int64_t num_devices)
      : graph_(graph), views_(views), num_devices_(num_devices) {}

  absl::StatusOr<PlacedProgram> Place() {
    ISOMER_RETURN_IF_ERROR(ReadCalls());
    ISOMER_RETURN_IF_ERROR(MakeMesh());
    for (NodeId id : program_.order) {
      const absl::Status placed = PlaceCall(id);
      if (!placed.ok()) return AtNode(graph_, id, placed);
    }
    ISOMER_RETURN_IF_ERROR(ArrangeInParts());
    PlaceLeaves();
    if (program_.stages > 1) AssignChunks();
    NoteIdleDevices();
    NoteLeafChunks();
    return std::move(program_);
  }

 private:
  absl::Status ReadCalls() {
    ISOMER_ASSIGN_OR_RETURN(program_.micro_batches, NumMicroBatches(graph_, views_));
    for (NodeId id : graph_.TopologicalOrder()) {
      const Node& node = graph_.node(id);
      if (IsLeaf(node.op.kind())) {
        program_.leaves[id];
        continue;
      }
      if (IsParallel(node.op.kind())) {
        if (node.op.kind() == OpKind::kConcatPartials) {
          return AtNode(graph_, id, absl::UnimplementedError("sums of tensors left side by side"));
        }
        continue;
      }
      std::vector<TensorType> operands;
      for (TensorRef input : node.inputs) operands.push_back(graph_.type(input));
      PlacedCall call;
      ISOMER_ASSIGN_OR_RETURN(call.sharding, InferSharding(node.op, operands));
      auto axes = TaskAxesOf(call.sharding, views_[id.value]);
      if (!axes.ok()) return AtNode(graph_, id, axes.status());
      call.axes = *std::move(axes);
      program_.order.push_back(id);
      program_.calls.emplace(id, std::move(call));
    }
    return absl::OkStatus();
  }

  // A digit that no call is split along, and that the starts of calls differ in, is that of stages.
  absl::Status MakeMesh() {
    std::vector<TaskAxis> axes;
    for (const auto& [id, call] : program_.calls) {
      axes.insert(axes.end(), call.axes.begin(), call.axes.end());
    }
    ISOMER_ASSIGN_OR_RETURN(program_.devices, MeshOf(axes, num_devices_));
    const Mesh& devices = program_.devices;
    int idle = 0;
    for (int digit = 0; digit < devices.rank(); ++digit) {
      const bool split = std::any_of(axes.begin(), axes.end(), [&](const TaskAxis& axis) {
        return Covers(axis, devices, digit);
      });
      std::set<int64_t> starts;
      for (NodeId id : program_.order) {
        starts.insert(devices.Digit(views_[id.value].start, digit));
      }
      if (!split && starts.size() > 1 && program_.micro_batches > 1 && program_.stage_digit < 0) {
        program_.stage_digit = digit;
        program_.stages = devices.sizes[digit];
        program_.stage_stride = devices.strides[digit];
        continue;
      }
      program_.mesh.sizes.push_back(devices.sizes[digit]);
      program_.mesh.strides.push_back(devices.strides[digit]);
      if (starts.size() > 1 && !split) ++idle;
    }
    if (program_.mesh.sizes.empty()) program_.mesh = {{1}, {1}};
    return absl::OkStatus();
  }

  const MeshPlacements Replicated() const {
    return MeshPlacements(static_cast<size_t>(program_.mesh.rank()));
  }

  absl::Status PlaceCall(NodeId id) {
    const Node& node = graph_.node(id);
    PlacedCall& call = program_.calls.at(id);
    const Declaration& declaration = call.sharding.declaration;
    const int64_t moments = NumMoments(views_[id.value]);
    call.of_inputs_alone = true;
    for (int o = 0; o < static_cast<int>(node.inputs.size()); ++o) {
      OperandNeed need;
      need.root = PlacedProgram::RootOf(graph_, node.inputs[o]);
      need.placements = need.gradients = Replicated();
      const int rank = graph_.type(need.root).rank();
      const auto lead = [&](int i) { return declaration.LeadOfOperandDim(o, i); };
      for (const TaskAxis& axis : call.axes) {
        int dim = -1;
        if (axis.kind == TaskAxis::Kind::kDim) {
          ISOMER_ASSIGN_OR_RETURN(dim, DimLedBy(axis.dim, rank, lead));
        }
        const bool halo = dim >= 0 && declaration.HasHalo(o, dim);
        if (halo) need.halos.push_back({.dim = dim, .iteration_dim = axis.dim});
        if (axis.moments > 1 && dim >= 0) {
          if (halo) return absl::UnimplementedError("micro-batches of a dim with a halo");
          need.moment_dim = dim;
        }
        for (int digit = 0; digit < program_.mesh.rank(); ++digit) {
          if (!Covers(axis, program_.mesh, digit)) continue;
          MeshPlacement &placement = need.placements[digit], &gradient = need.gradients[digit];
          switch (axis.kind) {
            case TaskAxis::Kind::kDim:
              if (dim >= 0 && !halo) {
                placement = gradient = MeshPlacement::Shard(dim);
              } else {
                gradient = MeshPlacement::Partial();
              }
              break;
            case TaskAxis::Kind::kOperandPartials:
              (call.sharding.linear_operands[o] ? placement : gradient) = MeshPlacement::Partial();
              break;
            case TaskAxis::Kind::kCopies:
              break;
          }
        }
      }
      ISOMER_RETURN_IF_ERROR(CheckOperand(need, moments));
      const OpKind root = graph_.node(need.root.node).op.kind();
      call.of_inputs_alone &= root == OpKind::kInput || root == OpKind::kConstant ||
                              (!IsLeaf(root) && program_.calls.at(need.root.node).of_inputs_alone);
      call.operands.push_back(std::move(need));
    }
    return PlaceOutputs(node, &call);
  }

  // That what the operand is can be brought to where it is needed.
  absl::Status CheckOperand(const OperandNeed& need, int64_t moments) {
    const auto found = program_.calls.find(need.root.node);
    if (found == program_.calls.end()) {
      PlacedLeaf& leaf = program_.leaves.at(need.root.node);
      const bool is_input = graph_.node(need.root.node).op.kind() == OpKind::kInput;
      if (is_input && !read_inputs_.insert(need.root.node).second &&
          leaf.moment_dim != need.moment_dim) {
        return absl::UnimplementedError(absl::StrCat("of the input '",
                                                     graph_.node(need.root.node).name,
                                                     "' both all and a micro-batch are read"));
      }
      if (is_input) leaf.moment_dim = need.moment_dim;
      for (const MeshPlacement& p : need.placements) {
        if (p.kind == MeshPlacement::Kind::kPartial) {
          return absl::UnimplementedError("a leaf as partial sums");
        }
      }
      return absl::OkStatus();
    }
    const PlacedCall& from = found->second;
    const int made = from.moment_dims[need.root.output];
    if (made != kSameInAll && (moments == 1 || made != need.moment_dim)) {
      return absl::UnimplementedError("it mixes micro-batches");
    }
    const MeshPlacements& have = from.outputs[need.root.output];
    for (size_t digit = 0; digit < have.size(); ++digit) {
      if (need.placements[digit].kind == MeshPlacement::Kind::kPartial &&
          have[digit].kind != MeshPlacement::Kind::kPartial) {
        return absl::UnimplementedError("partial sums that move to other devices");
      }
    }
    return absl::OkStatus();
  }

  absl::Status PlaceOutputs(const Node& node, PlacedCall* call) {
    const Declaration& declaration = call->sharding.declaration;
    for (int t = 0; t < static_cast<int>(node.outputs.size()); ++t) {
      MeshPlacements placements = Replicated();
      int moment_dim = kSameInAll;
      const auto lead = [&](int i) { return declaration.LeadOfOutputDim(t, i); };
      for (const TaskAxis& axis : call->axes) {
        MeshPlacement placement;
        if (axis.kind == TaskAxis::Kind::kOperandPartials) placement = MeshPlacement::Partial();
        if (axis.kind == TaskAxis::Kind::kDim) {
          ISOMER_ASSIGN_OR_RETURN(const int dim, DimLedBy(axis.dim, node.outputs[t].rank(), lead));
          placement = dim >= 0 ? MeshPlacement::Shard(dim) : MeshPlacement::Partial();
          if (dim < 0 && declaration.dims[axis.dim].kind != DimKind::kSum) {
            return absl::UnimplementedError("a result that lacks a dim that is split");
          }
        }
        if (axis.moments > 1 && axis.kind != TaskAxis::Kind::kCopies) {
          if (moment_dim != kSameInAll)
            return absl::UnimplementedError("micro-batches of two dims");
          moment_dim =
              placement.kind == MeshPlacement::Kind::kShard ? placement.dim : kPartialOfMoment;
        }
        for (int digit = 0; digit < program_.mesh.rank(); ++digit) {
          if (Covers(axis, program_.mesh, digit)) placements[digit] = placement;
        }
      }
      call->outputs.push_back(std::move(placements));
      call->moment_dims.push_back(moment_dim);
    }
    return absl::OkStatus();
  }

  // A leaf is stored as its users need it, if they agree.
  void PlaceLeaves() {
    std::map<NodeId, std::set<MeshPlacements>> needs;
    for (const auto& [id, call] : program_.calls) {
      for (const OperandNeed& need : call.operands) {
        if (program_.leaves.contains(need.root.node)) {
          needs[need.root.node].insert(need.placements);
        }
      }
    }
    int64_t arranged = 0;
    for (auto& [id, leaf] : program_.leaves) {
      leaf.placements = needs[id].size() == 1 ? *needs[id].begin() : Replicated();
      arranged += leaf.placements == Replicated() && IsArranged(id) &&
                  graph_.node(id).op.kind() == OpKind::kWeight &&
                  graph_.node(id).outputs[0].rank() > 1;
    }
    if (arranged > 0) {
      program_.notes.push_back(
          absl::StrCat(arranged, arranged == 1 ? " weight is" : " weights are",
                       " rearranged before use: each device keeps all of it and uses its part"));
    }
  }

  // Whether all of the leaf goes into a call that only prepares weights.
  bool IsArranged(NodeId leaf) const {
    for (const auto& [id, call] : program_.calls) {
      if (!prepares_.contains(id)) continue;
      for (const OperandNeed& need : call.operands) {
        if (need.root.node == leaf && program_.mesh.sizes.front() > 1) return true;
      }
    }
    return false;
  }

  // A plan says nothing of where weights are prepared (transposed, joined): before the step. Here
  // each device does it, of the part that it needs if the users of the result agree on one.
  absl::Status ArrangeInParts() {
    for (NodeId id : program_.order) {
      const PlacedCall& call = program_.calls.at(id);
      const auto is_stored = [&](const OperandNeed& need) {
        return IsStored(graph_.node(need.root.node).op.kind()) ||
               prepares_.contains(need.root.node);
      };
      if (std::all_of(call.operands.begin(), call.operands.end(), is_stored)) prepares_.insert(id);
    }
    for (auto id = program_.order.rbegin(); id != program_.order.rend(); ++id) {
      if (prepares_.contains(*id)) ISOMER_RETURN_IF_ERROR(ArrangeInParts(*id));
    }
    return absl::OkStatus();
  }

  absl::Status ArrangeInParts(NodeId id) {
    const Node& node = graph_.node(id);
    PlacedCall& call = program_.calls.at(id);
    if (!call.axes.empty() || node.outputs.size() != 1) return absl::OkStatus();
    std::set<MeshPlacements> needs;
    for (const auto& [user, reads] : program_.calls) {
      for (const OperandNeed& need : reads.operands) {
        if (need.root.node != id) continue;
        if (need.moment_dim >= 0) return absl::OkStatus();
        needs.insert(need.placements);
      }
    }
    if (needs.size() != 1) return absl::OkStatus();
    const Declaration& declaration = call.sharding.declaration;
    std::vector<TaskAxis> axes;
    std::vector<int64_t> degrees(declaration.dims.size(), 1);
    const MeshPlacements& need = *needs.begin();
    for (size_t digit = 0; digit < need.size(); ++digit) {
      if (need[digit].kind != MeshPlacement::Kind::kShard) continue;
      const int lead = declaration.LeadOfOutputDim(0, need[digit].dim);
      if (lead < 0 || !declaration.IsPartitionable(lead)) return absl::OkStatus();
      axes.push_back({.dim = lead,
                      .devices = program_.mesh.sizes[digit],
                      .stride = program_.mesh.strides[digit]});
      degrees[static_cast<size_t>(lead)] *= program_.mesh.sizes[digit];
    }
    std::vector<TensorType> logical;
    for (TensorRef input : node.inputs) logical.push_back(graph_.type(input));
    const auto operands = OperandTypesFor(node.op, logical, degrees);
    if (!operands.ok()) return absl::OkStatus();  // its sizes do not divide: whole, then
    ISOMER_ASSIGN_OR_RETURN(call.sharding, InferSharding(node.op, *operands));
    call.axes = std::move(axes);
    call.operands.clear();
    call.outputs.clear();
    call.moment_dims.clear();
    const absl::Status placed = PlaceCall(id);
    return placed.ok() ? placed : AtNode(graph_, id, placed);
  }

  // The first chunk on the stage of the call that no operand's chunk lies behind.
  void AssignChunks() {
    int64_t last = 0;
    for (NodeId id : program_.order) {
      PlacedCall& call = program_.calls.at(id);
      int64_t chunk = views_[id.value].start / program_.stage_stride % program_.stages;
      for (const OperandNeed& need : call.operands) {
        const auto from = program_.calls.find(need.root.node);
        if (from == program_.calls.end() || from->second.of_inputs_alone) continue;
        if (NumMoments(views_[need.root.node.value]) == 1 && program_.micro_batches > 1) continue;
        while (chunk < from->second.chunk) chunk += program_.stages;
      }
      call.chunk = chunk;
      if (!call.of_inputs_alone) last = std::max(last, chunk);
    }
    program_.chunks = (last / program_.stages + 1) * program_.stages;
    // What is made of weights alone goes to who reads it first.
    for (auto id = program_.order.rbegin(); id != program_.order.rend(); ++id) {
      PlacedCall& call = program_.calls.at(*id);
      if (NumMoments(views_[id->value]) > 1) continue;
      std::optional<int64_t> first;
      for (const auto& [user, reads] : program_.calls) {
        for (const OperandNeed& need : reads.operands) {
          if (need.root.node == *id) first = std::min(first.value_or(reads.chunk), reads.chunk);
        }
      }
      if (first.has_value()) call.chunk = *first;
    }
  }

  // Where the plan leaves devices of a stage idle, or has them do something else meanwhile.
  void NoteIdleDevices() {
    int64_t devices = 1, calls = 0;
    for (const int64_t size : program_.mesh.sizes) devices *= size;
    for (NodeId id : program_.order) {
      const PlacedCall& call = program_.calls.at(id);
      int64_t used = 1;
      for (const TaskAxis& axis : call.axes) used *= axis.devices;
      calls += used < devices && !prepares_.contains(id);
    }
    if (calls == 0) return;
    program_.notes.push_back(absl::StrCat(
        calls, calls == 1 ? " call that the plan has" : " calls that the plan has",
        " on some of the devices ", calls == 1 ? "is" : "are", " computed on all of them"));
  }

  void NoteLeafChunks() {
    for (const auto& [id, call] : program_.calls) {
      for (const OperandNeed& need : call.operands) {
        const auto leaf = program_.leaves.find(need.root.node);
        if (leaf != program_.leaves.end()) leaf->second.chunks.insert(call.chunk);
      }
    }
  }

  const Graph& graph_;
  const std::vector<MachineView>& views_;
  const int64_t num_devices_;
  PlacedProgram program_;
  std::set<NodeId> read_inputs_;
  std::set<NodeId> prepares_;  // calls of weights and constants alone
};

}  // namespace

std::vector<int> PlacedCall::DigitsOf(const Mesh& mesh, int iteration_dim) const {
  std::vector<int> digits;
  for (const TaskAxis& axis : axes) {
    if (axis.kind != TaskAxis::Kind::kDim || axis.dim != iteration_dim) continue;
    for (int digit = 0; digit < mesh.rank(); ++digit) {
      if (Covers(axis, mesh, digit)) digits.push_back(digit);
    }
  }
  return digits;
}

TensorRef PlacedProgram::RootOf(const Graph& graph, TensorRef ref) {
  while (IsParallel(graph.node(ref.node).op.kind())) ref = graph.node(ref.node).inputs[0];
  return ref;
}

int PlacedProgram::MomentDimOf(TensorRef root) const {
  const auto call = calls.find(root.node);
  if (call != calls.end()) return call->second.moment_dims[root.output];
  return leaves.at(root.node).moment_dim;
}

const MeshPlacements& PlacedProgram::PlacementsOf(TensorRef root) const {
  const auto call = calls.find(root.node);
  return call == calls.end() ? leaves.at(root.node).placements
                             : call->second.outputs[static_cast<size_t>(root.output)];
}

MeshPlacements AddedUp(MeshPlacements placements) {
  for (MeshPlacement& placement : placements) {
    if (placement.kind == MeshPlacement::Kind::kPartial) placement = {};
  }
  return placements;
}

absl::StatusOr<PlacedProgram> PlaceProgram(const Graph& graph,
                                           const std::vector<MachineView>& views,
                                           int64_t num_devices) {
  return Placer(graph, views, num_devices).Place();
}

}  // namespace isomer
