// Residual networks of bottleneck blocks: ResNet (He et al., 2016), ResNeXt (Xie et al., 2017).
#ifndef ISOMER_MODELS_ZOO_NETWORKS_RESIDUAL_NETWORK_H_
#define ISOMER_MODELS_ZOO_NETWORKS_RESIDUAL_NETWORK_H_

#include <array>

#include "models/zoo/zoo.h"

namespace isomer {

// The parameters of such a network. A block of stage s is made of a 1x1, a grouped 3x3 and a 1x1
// convolution, each with BatchNorm; the first two have
//     stem * 2^s * group_width * groups / 64
// channels, the last stem * 2^s * 4. The stride of a stage is that of its first 3x3.
std::vector<ZooParameter> ResidualNetworkParameters(const std::array<int64_t, 4>& blocks,
                                                    int64_t groups, int64_t group_width);

absl::StatusOr<Model> BuildResidualNetwork(const ZooArguments& arguments);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_NETWORKS_RESIDUAL_NETWORK_H_
