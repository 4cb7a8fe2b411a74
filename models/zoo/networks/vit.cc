#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/convolution_blocks.h"
#include "models/zoo/blocks/transformer_blocks.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// A token for each patch of an image, after one that is trained: [batch, 1 + patches, hidden].
TensorRef Patches(ModelBuilder& b, TensorRef image, int64_t patch, int64_t hidden) {
  TensorRef x = Convolution(b, image, hidden, ConvolutionWindow::Square(patch, patch), "patches");
  x = ChannelBias(b, x, "patches");
  const int64_t batch = b.Size(x, 0), patches = b.Size(x, 2) * b.Size(x, 3);
  x = b.Reshape(x, {batch, hidden, patches}, "patches/row");
  x = b.Transpose(x, {0, 2, 1}, "patches/tokens");
  const TensorRef first =
      b.Call({OpKind::kExpand, {{"shape", std::vector<int64_t>{batch, 1, hidden}}}},
             {b.Weight("class_token.weight", {1, 1, hidden})}, "class_token");
  return b.Concat({first, x}, 1, "tokens");
}

absl::StatusOr<Model> BuildVit(const ZooArguments& arguments) {
  constexpr double kEpsilon = 1e-6;
  ModelBuilder b;
  const int64_t side = arguments.at("side"), patch = arguments.at("patch");
  const int64_t hidden = arguments.at("hidden");
  if (side % patch != 0) {
    b.Fail(absl::InvalidArgumentError(
        absl::StrCat("side=", side, " does not divide into patch=", patch)));
  }
  const AttentionSizes sizes = HeadsOf(b, hidden, arguments.at("heads"));
  const TensorRef image = b.Input("image", {arguments.at("batch"), 3, side, side});
  TensorRef x = AddPositions(b, Patches(b, image, patch, hidden), "positions");
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    x = PreNormLayer(b, x, sizes, arguments.at("intermediate"), kEpsilon,
                     absl::StrCat("layer", layer));
  }
  x = LayerNorm(b, x, "norm", kEpsilon);
  const std::vector<Extent> first = {Extent(1), Extent(b.Size(x, 1) - 1)};
  x = b.CallAll({OpKind::kSplit, {{"axis", int64_t{1}}, {"sizes", first}}}, {x}, 2, "encoded")[0];
  b.Output("logits", b.Dense(b.Flatten(x, "encoded/class"), arguments.at("classes"), "classifier"));
  return b.Build();
}

}  // namespace

ZooModel Vit() {
  return {.name = "vit",
          .description = "Vision Transformer, by default ViT-B/16; logits of 1000 classes",
          .parameters = {ZooCount("layers", 12),
                         {.name = "hidden", .value = 768},
                         {.name = "heads", .value = 12},
                         {.name = "intermediate", .value = 3072},
                         {.name = "patch", .value = 16, .largest = 4096},
                         {.name = "side", .value = 224, .largest = 4096},
                         {.name = "classes", .value = 1000},
                         {.name = "batch", .value = 256}},
          .build = BuildVit,
          .small = "layers=1&hidden=32&heads=16&intermediate=32&patch=4&side=8&classes=16&batch=16",
          .source = "Dosovitskiy et al., 2021, table 1",
          .published_parameters = 86567656,
          .notes =
              "no dropout; the classifier is one layer, as torchvision has it; ViT-L/16 is "
              "`layers=24&hidden=1024&heads=16&intermediate=4096`"};
}

}  // namespace isomer
