#include "absl/strings/str_cat.h"
#include "models/zoo/model_builder.h"
#include "models/zoo/zoo.h"

namespace isomer {

// features [batch, inputs] -> (`layers` times Linear and Relu) -> Linear -> logits
absl::StatusOr<Model> BuildMlp(const ZooArguments& arguments) {
  const int64_t hidden = arguments.at("hidden");
  ModelBuilder b;
  int64_t width = arguments.at("inputs");
  TensorRef x = b.Input("features", {arguments.at("batch"), width});
  for (int64_t layer = 0; layer < arguments.at("layers"); ++layer) {
    const std::string name = absl::StrCat("layer", layer);
    x = b.Linear(x, width, hidden, absl::StrCat(name, "/dense"));
    x = b.Call(OpKind::kRelu, {x}, absl::StrCat(name, "/relu"));
    width = hidden;
  }
  b.Output("logits", b.Linear(x, width, arguments.at("classes"), "classifier"));
  return b.Build();
}

}  // namespace isomer
