#include "models/frameworks/stored_weights.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

UpdateMethod MethodOf(const Plan& plan, const std::string& weight) {
  const auto own = plan.update.methods.find(weight);
  return own == plan.update.methods.end() ? plan.update.method : own->second;
}

// The placement in which copies, on devices that do different work, keep a part each of the largest
// dim that divides; none: `placements`.
MeshPlacements InParts(const MeshPlacements& placements, const TensorType& type, const Mesh& mesh) {
  int64_t copies = 1;
  for (size_t digit = 0; digit < placements.size(); ++digit) {
    if (placements[digit].kind == MeshPlacement::Kind::kReplicate) copies *= mesh.sizes[digit];
  }
  int best = -1;
  for (int i = 0; i < type.rank(); ++i) {
    const bool is_split =
        std::count(placements.begin(), placements.end(), MeshPlacement::Shard(i)) > 0;
    if (is_split || type.dims[i].size % copies != 0) continue;
    if (best < 0 || type.dims[i].size > type.dims[best].size) best = i;
  }
  MeshPlacements parts = placements;
  if (best < 0) return parts;
  for (MeshPlacement& placement : parts) {
    if (placement.kind == MeshPlacement::Kind::kReplicate) placement = MeshPlacement::Shard(best);
  }
  return parts;
}

bool HasCopies(const MeshPlacements& placements, const Mesh& mesh) {
  for (size_t digit = 0; digit < placements.size(); ++digit) {
    if (placements[digit].kind == MeshPlacement::Kind::kReplicate && mesh.sizes[digit] > 1) {
      return true;
    }
  }
  return false;
}

// Whether the gradient of something made of weights (transposed, joined) is summed over devices
// where it is read, and so with each micro-batch, where the plan sums once.
bool SumsOfRearranged(const PlacedProgram& program) {
  if (program.micro_batches == 1) return false;
  for (const auto& [id, call] : program.calls) {
    for (const OperandNeed& need : call.operands) {
      const auto from = program.calls.find(need.root.node);
      if (from == program.calls.end() || from->second.of_inputs_alone) continue;
      if (program.MomentDimOf(need.root) == kSameInAll &&
          need.gradients != AddedUp(need.placements)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

void StoreWeightsInParts(const Plan& plan, PlacedProgram* program) {
  if (plan.mode != "training") return;
  // What gradients of a weight each of its users gives.
  std::map<NodeId, std::set<MeshPlacements>> given;
  for (const auto& [id, call] : program->calls) {
    for (const OperandNeed& need : call.operands) {
      const auto leaf = program->leaves.find(need.root.node);
      if (leaf == program->leaves.end()) continue;
      const bool as_stored = need.placements == leaf->second.placements;
      given[need.root.node].insert(as_stored ? need.gradients : leaf->second.placements);
    }
  }
  int64_t kept_whole = 0;
  for (auto& [id, leaf] : program->leaves) {
    const Node& node = plan.graph.node(id);
    if (node.op.kind() != OpKind::kWeight) continue;
    const UpdateMethodTraits& traits = TraitsOf(MethodOf(plan, node.name));
    const MeshPlacements read = leaf.placements;
    if (traits.splits_trained) {
      leaf.placements = InParts(read, node.outputs[0], program->mesh);
      kept_whole += leaf.placements == read && HasCopies(read, program->mesh);
    }
    if (leaf.placements != read && traits.splits_weight) continue;  // each user gathers it
    const MeshPlacements summed = given[id].size() == 1 ? *given[id].begin() : read;
    if (read != leaf.placements) leaf.read = read;
    if (summed != leaf.placements) leaf.summed = summed;
    leaf.sums_each = leaf.summed.has_value() && program->micro_batches > 1 &&
                     traits.sums != UpdateMethodTraits::Times::kStep;
  }
  if (kept_whole > 0) {
    program->notes.push_back(absl::StrCat(
        "weights whose dims do not divide by their copies are kept whole (", kept_whole, ")"));
  }
  if (SumsOfRearranged(*program)) {
    program->notes.push_back(
        "gradients of weights that are rearranged before use are summed over devices for each "
        "micro-batch");
  }
}

bool Updates(const Plan& plan, UpdateMethod method) {
  if (plan.update.method == method) return true;
  return std::any_of(plan.update.methods.begin(), plan.update.methods.end(),
                     [&](const auto& own) { return own.second == method; });
}

}  // namespace isomer
