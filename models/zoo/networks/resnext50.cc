#include "models/zoo/models.h"
#include "models/zoo/networks/residual_network.h"

namespace isomer {

ZooModel Resnext50() {
  return {.name = "resnext50",
          .description = "ResNeXt-50 (32x4d): residual network of grouped convolutions; logits",
          .parameters = ResidualNetworkParameters({3, 4, 6, 3}, 32, 4),
          .build = BuildResidualNetwork,
          .small =
              "blocks1=1&blocks2=1&blocks3=1&blocks4=1&groups=4&group_width=16&stem=4&side=20&"
              "classes=16&batch=16",
          .source = "Xie et al., 2017, table 1; Unity, table 1",
          .published_parameters = 25028904,
          .notes = "stride on the 3x3 convolution, as torchvision has it"};
}

}  // namespace isomer
