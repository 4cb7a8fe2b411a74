// What of a sequential graph there is to map: the operators that run in every step.
//
// Weights, and operators that only arrange weights (Transpose, Reshape, Concat, Split whose
// ancestors are weights, each used once), are loaded: what comes out of them is stored on the
// devices as the operand types of its users ask. Inputs are fed, arranged where they are indices;
// and what depends on constants alone is made once (IsMadeOnHost). Neither moves data in a step.
#ifndef ISOMER_OPTIMIZER_SHARDING_COMPUTE_GRAPH_H_
#define ISOMER_OPTIMIZER_SHARDING_COMPUTE_GRAPH_H_

#include <string>
#include <vector>

#include "pcg/ir/graph.h"

namespace isomer {

struct ComputeGraph {
  struct Operand {
    int producer = -1;  // in `nodes`; -1: stored or fed
    int output = 0;     // of the producer
    bool stored = false;
    bool gradient = false;  // wanted: the tensor depends on a weight
    bool first_use = true;  // of the tensor, as far as is known (ChargeFirstUses)
  };
  struct ComputeNode {
    NodeId id;
    std::vector<Operand> operands;
    std::vector<TensorType> operand_types;
  };
  std::vector<ComputeNode> nodes;       // in topological order
  std::vector<int> index;               // per graph node: its place in `nodes`, or -1
  std::vector<bool> depends_on_weight;  // per graph node
};

// `fed_needs_gradient`: inputs whose gradient is wanted (what crosses from an earlier piece).
ComputeGraph AnalyzeCompute(const Graph& graph, bool training = true,
                            const std::vector<NodeId>& fed_needs_gradient = {});

// Training for the output `loss`: what does not lead to it has no gradient. Costs that a search
// compares may count more than is done; a bound must not. "": nothing is known of a loss.
void DropGradientsWithoutLoss(const Graph& graph, const std::string& loss, ComputeGraph* compute);

// Per operand of the call `op` that `node` is: its gradient may be a task of its own, behind that
// of computed operands (pcg/schedule/lowering/split_gradients.h). Empty: there is none such.
std::vector<bool> SeparateGradients(const Operator& op, const ComputeGraph::ComputeNode& node);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_COMPUTE_GRAPH_H_
