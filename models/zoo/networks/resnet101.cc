#include "models/zoo/models.h"
#include "models/zoo/networks/residual_network.h"

namespace isomer {

ZooModel Resnet101() {
  return {.name = "resnet101",
          .description = "ResNet-101: residual network of bottleneck blocks; logits",
          .parameters = ResidualNetworkParameters({3, 4, 23, 3}, 1, 64),
          .build = BuildResidualNetwork,
          .small = "blocks1=1&blocks2=1&blocks3=1&blocks4=1&stem=2&side=20&classes=16&batch=16",
          .source = "He et al., 2016, table 1; FlexFlow, table 4",
          .published_parameters = 44549160,
          .notes = "stride on the 3x3 convolution, as torchvision has it"};
}

}  // namespace isomer
