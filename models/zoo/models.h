// The networks of the zoo, one function per file.
#ifndef ISOMER_MODELS_ZOO_MODELS_H_
#define ISOMER_MODELS_ZOO_MODELS_H_

#include "models/zoo/zoo.h"

namespace isomer {

// Ours: small, for tests and examples.
ZooModel DigitsCnn();
ZooModel Encoder();

// Unity (Unger et al., OSDI 2022), table 1.
ZooModel Resnext50();
ZooModel InceptionV3();
ZooModel BertLarge();
ZooModel Dlrm();
ZooModel Xdl();
ZooModel CandleUno();
ZooModel Mlp();

// FlexFlow (Jia et al., MLSys 2019), table 4 and section 8.4. Inception-v3 is above.
ZooModel AlexNet();
ZooModel Resnet101();
ZooModel Rnntc();
ZooModel Rnnlm();
ZooModel Nmt();
ZooModel LeNet();

// TASO (Jia et al., SOSP 2019) and TENSAT (Yang et al., MLSys 2021).
ZooModel SqueezeNet();
ZooModel Vgg19();
ZooModel NasnetA();
ZooModel Nasrnn();

// GShard (Lepikhin et al., ICLR 2021).
ZooModel GshardMoe();

// Today's.
ZooModel Gpt();
ZooModel Gpt175B();
ZooModel Llama();
ZooModel Llama70B();
ZooModel Llama405B();
ZooModel Mixtral();
ZooModel Vit();
ZooModel Unet();
ZooModel Gemma2();
ZooModel T5();
ZooModel Swin();
ZooModel ConvNext();
ZooModel Qwen3Moe();
ZooModel DeepSeekV3();
ZooModel GptOss20B();

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_MODELS_H_
