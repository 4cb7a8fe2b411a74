// What a GPU is given to do for a plan's step, and by whom it is done. Needs no GPU.
#ifndef ISOMER_RUNTIME_CUDA_ROUTES_H_
#define ISOMER_RUNTIME_CUDA_ROUTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pcg/ir/graph.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

// Of the calls of one operator, forward or gradient, or of the tasks of a kind that are none.
struct GpuRoute {
  std::string name;
  bool gradient = false;
  int64_t tasks = 0;
  // Launches: of cuBLASLt and cuDNN (a graph is one), generated ones, ours.
  int64_t products = 0, generated = 0, others = 0;
  double flops = 0;
  // Of that, what contractions compute by generated kernels alone, for which there should be
  // better.
  double fallback_flops = 0;
  int64_t launches() const { return products + generated + others; }
};

// Of a step on a device, what is done when parameters are loaded left out; those with the most
// FLOPs first.
std::vector<GpuRoute> RoutesOf(const Graph& graph, const Schedule& schedule, int32_t device);

// A line for each, and one of all.
std::string RoutesToString(const std::vector<GpuRoute>& routes);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_ROUTES_H_
