// Parallel graphs of a few devices, each with the sequential graph that it is equal to: what
// lowering, its checks and their tests are tried on. Every collective occurs.
#ifndef ISOMER_PCG_SCHEDULE_LOWERING_EXAMPLE_GRAPHS_H_
#define ISOMER_PCG_SCHEDULE_LOWERING_EXAMPLE_GRAPHS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/ir/plan.h"

namespace isomer {

// A multi-layer perceptron with a loss, as text.
extern const char kMlp[];

struct ExampleGraph {
  std::string name;                  // "DataParallelMlp"
  std::string sequential, parallel;  // text forms; the loss is the output "loss"
  int64_t num_devices = 1;
  // Strides of views by node id; others put shard i on device i.
  std::map<int, std::vector<int64_t>> strides;
};

const std::vector<ExampleGraph>& ExampleGraphs();

// Views with these strides, by node id; others put shard i on device i.
std::vector<MachineView> ViewsOf(const Graph& graph,
                                 const std::map<int, std::vector<int64_t>>& strides = {});

}  // namespace isomer

#endif  // ISOMER_PCG_SCHEDULE_LOWERING_EXAMPLE_GRAPHS_H_
