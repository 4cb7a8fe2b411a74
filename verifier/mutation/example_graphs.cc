#include "verifier/mutation/example_graphs.h"

#include <utility>

#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

struct ModelRow {
  const char* name;
  const char* text;
};

constexpr ModelRow kModels[] = {
    {"mlp", R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "b1" : f32[16]
%3 = weight "w2" : f32[16,4]
%4 = input "labels" : i64[8]
%5 = matmul(%0, %1) : f32[8,16]
%6 = add(%5, %2) : f32[8,16]
%7 = relu(%6) : f32[8,16]
%8 = matmul(%7, %3) : f32[8,4]
%9 = cross_entropy(%8, %4) : f32[]
output "y" = %8
output "loss" = %9
)"},
    {"convolution", R"(
%0 = input "x" : f32[4,2,8,8]
%1 = weight "kernel" : f32[4,2,3,3]
%2 = input "target" : f32[4,4,4,4]
%3 = conv2d(%0, %1) {dilation=[1,1], groups=1, padding=[1,1,1,1], stride=[1,1]} : f32[4,4,8,8]
%4 = relu(%3) : f32[4,4,8,8]
%5 = max_pool(%4) {kernel=[2,2], padding=[0,0,0,0], stride=[2,2]} : f32[4,4,4,4]
%6 = mse(%5, %2) : f32[]
output "y" = %5
output "loss" = %6
)"},
    {"attention", R"(
%0 = input "x" : f32[2,8,4]
%1 = weight "q" : f32[4,4]
%2 = weight "k" : f32[4,4]
%3 = weight "v" : f32[4,4]
%4 = input "target" : f32[2,8,4]
%5 = matmul(%0, %1) : f32[2,8,4]
%6 = matmul(%0, %2) : f32[2,8,4]
%7 = matmul(%0, %3) : f32[2,8,4]
%8 = transpose(%6) {perm=[0,2,1]} : f32[2,4,8]
%9 = matmul(%5, %8) : f32[2,8,8]
%10 = softmax(%9) {axis=-1} : f32[2,8,8]
%11 = matmul(%10, %7) : f32[2,8,4]
%12 = mse(%11, %4) : f32[]
output "y" = %11
output "loss" = %12
)"},
};

}  // namespace

absl::StatusOr<std::vector<Model>> ExampleModels() {
  std::vector<Model> models;
  for (const ModelRow& row : kModels) {
    Model model;
    model.name = row.name;
    model.loss = "loss";
    ISOMER_ASSIGN_OR_RETURN(model.graph, ParseGraph(row.text));
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace isomer
