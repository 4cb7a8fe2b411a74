// A plan as the frameworks run it: each call on the part of its operands that a device has, with
// the placement of every operand and result on one mesh. What becomes of it in Python is said in
// pytorch_export.h.
//
// Parallel operators are identities on values: here they are gone, and what a call needs is said of
// the tensor behind them. The gradient of a shard is a shard, that of a partial sum a whole copy,
// that of a copy either whole (tasks on the copies do the same) or, where the tasks do different
// parts of the work, a partial sum.
#ifndef ISOMER_MODELS_FRAMEWORKS_PLACED_PROGRAM_H_
#define ISOMER_MODELS_FRAMEWORKS_PLACED_PROGRAM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/frameworks/mesh.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"
#include "pcg/ir/type_inference.h"

namespace isomer {

// A dim of an operand of which a task reads more than its shard, or less than all of it.
struct HaloOf {
  int dim = 0;
  int iteration_dim = 0;
};

struct OperandNeed {
  TensorRef root;  // behind parallel operators
  MeshPlacements placements = {}, gradients = {};
  std::vector<HaloOf> halos = {};  // those dims are replicated in `placements`
  int moment_dim = -1;  // a micro-batch is a slice of the root along this dim; -1: all of it
};

// How a tensor differs between micro-batches.
inline constexpr int kSameInAll = -1;        // it does not
inline constexpr int kPartialOfMoment = -2;  // it is a summand of each

struct PlacedCall {
  Sharding sharding;
  std::vector<TaskAxis> axes;
  std::vector<OperandNeed> operands;
  std::vector<MeshPlacements> outputs;
  std::vector<int> moment_dims;  // per output: the dim along which it is of a micro-batch
  int64_t chunk = 0;             // of the model, in the order in which micro-batches go through
  bool of_inputs_alone = false;  // no weight is behind it: each chunk that needs it computes it
  // The digits that tell the pieces of an iteration dim apart, and in how many the devices have it.
  std::vector<int> DigitsOf(const Mesh& mesh, int iteration_dim) const;
};

struct PlacedLeaf {
  MeshPlacements placements = {};  // as stored
  // Of weights, where they differ from `placements`: how it is before what calls need of it is
  // made, and what the gradients of a micro-batch are, which are summed over devices behind the
  // last one or (sums_each) each by itself.
  std::optional<MeshPlacements> read = {}, summed = {};
  bool sums_each = false;
  int moment_dim = -1;            // of an input
  std::set<int64_t> chunks = {};  // that read it
};

struct PlacedProgram {
  Mesh mesh;           // of a stage
  int64_t stages = 1;  // of a pipeline, each of the devices of `mesh`
  int64_t stage_stride = 0;
  Mesh devices;          // of all: with the digit of the stages, if there are any
  int stage_digit = -1;  // of `devices`
  int64_t chunks = 1;    // a multiple of stages: the chunk c is on stage c % stages
  int64_t micro_batches = 1;
  std::vector<NodeId> order;           // calls, each behind what it needs
  std::map<NodeId, PlacedCall> calls;  // declared ones
  std::map<NodeId, PlacedLeaf> leaves;
  // The tensor behind the parallel operators that lead to `ref`.
  static TensorRef RootOf(const Graph& graph, TensorRef ref);
  int MomentDimOf(TensorRef root) const;
  const MeshPlacements& PlacementsOf(TensorRef root) const;  // as it is made, or stored
  // What is not as the plan has it, though the results are the same: lines for people.
  std::vector<std::string> notes;
};

// Partial sums as copies of their sum: so is the gradient of what is placed like this, too.
MeshPlacements AddedUp(MeshPlacements placements);

// Errors are one line that names the node: what cannot be said on a mesh.
absl::StatusOr<PlacedProgram> PlaceProgram(const Graph& graph,
                                           const std::vector<MachineView>& views,
                                           int64_t num_devices);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_PLACED_PROGRAM_H_
