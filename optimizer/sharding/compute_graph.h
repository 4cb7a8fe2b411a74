// The operators of a sequential graph that run in every step: those that are mapped.
//
// Weights, and layout operators on weights only (Transpose, Reshape, Concat, Split whose ancestors
// are weights, each used once), are loaded: their results are stored on the devices in the operand
// types of their users. Inputs are fed, after layout operators on indices, and results of constants
// alone are computed once, both on the host (IsMadeOnHost). Neither moves data in a step.
#ifndef ISOMER_OPTIMIZER_SHARDING_COMPUTE_GRAPH_H_
#define ISOMER_OPTIMIZER_SHARDING_COMPUTE_GRAPH_H_

#include <string>
#include <vector>

#include "pcg/ir/graph.h"

namespace isomer {

struct ComputeGraph {
  struct Operand {
    int producer = -1;  // index in `nodes`; -1: stored or fed
    int output = 0;     // output of the producer
    bool stored = false;
    bool gradient = false;  // needed, as the tensor depends
    bool first_use = true;  // first use of the tensor, if known
  };
  struct ComputeNode {
    NodeId id;
    std::vector<Operand> operands;
    std::vector<TensorType> operand_types;
  };
  std::vector<ComputeNode> nodes;       // in topological order
  std::vector<int> index;               // per graph node: its index in
  std::vector<bool> depends_on_weight;  // per graph node
};

// `fed_needs_gradient`: inputs whose gradient is needed (crossing tensors of an earlier piece).
ComputeGraph AnalyzeCompute(const Graph& graph, bool training = true,
                            const std::vector<NodeId>& fed_needs_gradient = {});

// Drops the gradients of all that does not lead to the output `loss`. Costs that a search compares
// may include these gradients; a lower bound must not. "": the loss is unknown.
void DropGradientsWithoutLoss(const Graph& graph, const std::string& loss, ComputeGraph* compute);

// Per operand of the call `op` at `node`: whether its gradient may be a task of its own, after that
// of computed operands (pcg/schedule/lowering/split_gradients.h). Empty: none may.
std::vector<bool> SeparateGradients(const Operator& op, const ComputeGraph::ComputeNode& node);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_COMPUTE_GRAPH_H_
