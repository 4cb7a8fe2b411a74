// Updates that depend on whole weights, whatever parts of them the devices have: LAMB's on two
// norms of each, Muon's on products of each matrix. Weights are the model's: a plan may keep
// several in one tensor, or parts of one in several.
//
// Norms: each device sums the squares of what it has, each element of a weight on one device alone;
// all get the sums of all and add them in one order.
//
// Matrices: where all devices that update one have it whole, each makes its products itself. Else
// parts go to an owner, which makes the products, and come back; owners take turns, so that many
// matrices keep all of them busy. Both go by way of the hosts (ControlPlane), behind the backward
// pass.
#ifndef ISOMER_RUNTIME_EXECUTION_WHOLE_UPDATES_H_
#define ISOMER_RUNTIME_EXECUTION_WHOLE_UPDATES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"
#include "runtime/device/control_plane.h"
#include "runtime/execution/arrangement.h"
#include "runtime/execution/executor.h"

namespace isomer {

class WholeUpdates {
 public:
  // `matrices`: names of the weights that Muon is for; it updates the others as Adam does. Errors
  // name a weight whose elements the devices do not have as they are. REQUIRES: `graph` and
  // `schedule` outlive it; the schedule's optimizer needs norms or matrices.
  static absl::StatusOr<std::unique_ptr<WholeUpdates>> Make(const Graph& graph,
                                                            const Schedule& schedule,
                                                            const std::set<std::string>& matrices,
                                                            const OptimizerSettings& settings);

  // Behind the backward pass, on the executor's device: finds what the update that follows depends
  // on. All devices call it.
  absl::Status Prepare(Executor* executor, ControlPlane* control) const;

 private:
  struct Weight {
    int64_t elements = 0;
    bool is_matrix = false;  // one of `matrices`
    int64_t rows = 0, columns = 0;
    int32_t owner = -1;  // of a matrix that some device has in parts alone
  };
  // What one update changes of a tensor.
  struct Part {
    int32_t task = 0, segment = 0, device = 0;
    bool counts = false;  // No part before it is of the same elements.
    std::vector<LeafLine> lines = {};
    std::map<NodeId, int64_t> elements = {};  // of each weight
    std::vector<UpdatePiece> pieces = {};     // whose weights are in `weights`
    std::vector<NodeId> weights = {};
  };

  WholeUpdates(const Graph& graph, const Schedule& schedule) : graph_(graph), schedule_(schedule) {}
  absl::Status AddPart(int32_t task, int32_t segment, const Schedule::HostTensor& parameter,
                       const std::set<BufferId>& gradients_once);
  absl::Status SetWeights(const std::set<std::string>& matrices, const OptimizerSettings& settings);
  bool IsWhole(const Part& part, NodeId weight) const;
  absl::Status PrepareNorms(Executor* executor, ControlPlane* control) const;
  absl::Status PrepareMatrices(Executor* executor, ControlPlane* control) const;
  absl::Status Exchange(Executor* executor, ControlPlane* control) const;
  void GivePieces(Executor* executor) const;

  const Graph& graph_;
  const Schedule& schedule_;
  std::vector<Part> parts_;  // of all devices, in the order of the schedule
  std::map<NodeId, Weight> weights_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_EXECUTION_WHOLE_UPDATES_H_
