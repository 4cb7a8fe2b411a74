// The operators and inputs of TASO's generator, as one configuration.
//
// Source: Jia et al., SOSP'19, and the program src/generator/generator.cc that goes with it, whose
// inputs and operators these are, one for one: three data and three weight matrices, three images,
// weights of 3x3, 1x3, 3x1 and depthwise convolutions, a scalar; products, sums, convolutions,
// poolings, enlargement of kernels, ReLU, Concat, Split, Transpose; its four constant operators are
// inputs with fixed values. A convolution with fused ReLU is no operator here: a convolution with a
// dilation of 2 stands in its place, so that there are as many operators and as much to compute.
#ifndef ISOMER_BENCH_TASO_CONFIGURATION_H_
#define ISOMER_BENCH_TASO_CONFIGURATION_H_

#include "generator/enumeration/configuration.h"

namespace isomer {

Configuration TasoConfiguration(int max_operators);

}  // namespace isomer

#endif  // ISOMER_BENCH_TASO_CONFIGURATION_H_
