// Networks of the zoo that benchmarks of the search go over, and their batches.
#ifndef ISOMER_BENCH_ZOO_NETWORKS_H_
#define ISOMER_BENCH_ZOO_NETWORKS_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "models/zoo/zoo.h"

namespace isomer {

inline constexpr const char* kSearchedNetworks[] = {
    "mlp",          "lenet",    "alexnet", "vgg19", "squeezenet", "resnet101", "resnext50",
    "inception_v3", "nasnet_a", "unet",    "vit",   "bert_large", "dlrm",      "xdl",
    "candle_uno",   "rnntc",    "rnnlm",   "nmt",   "nasrnn"};

// As many samples for each device as in the zoo, whose batches are for four. 0: no such network, or
// NAME?key=value, which has what it says.
inline int64_t BatchOn(const std::string& name, int64_t devices) {
  constexpr int64_t kDevicesOfZoo = 4;
  for (const ZooModel& model : ListModels()) {
    if (model.name != name) continue;
    for (const ZooParameter& parameter : model.parameters) {
      if (parameter.name != "batch") continue;
      return std::max<int64_t>(1, parameter.value / kDevicesOfZoo) * devices;
    }
  }
  return 0;
}

}  // namespace isomer

#endif  // ISOMER_BENCH_ZOO_NETWORKS_H_
