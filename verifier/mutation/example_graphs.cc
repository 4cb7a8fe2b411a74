#include "verifier/mutation/example_graphs.h"

#include <map>
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

struct ScheduleRow {
  const char* name;
  int64_t num_devices;
  const char* text;
};

constexpr ScheduleRow kSchedules[] = {
    {"data parallel mlp", 4, R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%5 = replicate(%1) {degree=4} : f32[4,16] c4
%6 = replicate(%2) {degree=4} : f32[16,4] c4
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8:4,16]
%9 = relu(%8) : f32[8:4,16]
%10 = matmul(%9, %6) : f32[8:4,4]
%11 = cross_entropy(%10, %7) : f32[] p4
%12 = reduce(%11) {degree=4} : f32[]
output "y" = %10
output "loss" = %12
)"},
    {"column row parallel mlp", 4, R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%6 = partition(%2) {axis=0, degree=4} : f32[16:4,4]
%7 = replicate(%3) {degree=4} : i64[8] c4
%8 = matmul(%4, %5) : f32[8,16:4]
%9 = relu(%8) : f32[8,16:4]
%10 = matmul(%9, %6) : f32[8,4] p4
%11 = reduce(%10) {degree=4} : f32[8,4]
%12 = replicate(%11) {degree=4} : f32[8,4] c4
%13 = cross_entropy(%12, %7) : f32[] c4
output "y" = %12
output "loss" = %13
)"},
    {"row parallel then samples", 4, R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%6 = partition(%2) {axis=0, degree=4} : f32[16:4,4]
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8,16:4]
%9 = relu(%8) : f32[8,16:4]
%10 = matmul(%9, %6) : f32[8,4] p4
%11 = reduce(%10) {degree=4} : f32[8,4]
%12 = partition(%11) {axis=0, degree=4} : f32[8:4,4]
%13 = cross_entropy(%12, %7) : f32[] p4
%14 = reduce(%13) {degree=4} : f32[]
%15 = replicate(%14) {degree=4} : f32[] c4
output "y" = %12
output "loss" = %15
)"},
    {"samples to columns and back", 4, R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=4} : f32[8:4,4]
%5 = replicate(%1) {degree=4} : f32[4,16] c4
%6 = replicate(%2) {degree=4} : f32[16,4] c4
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8:4,16]
%9 = combine(%8) {axis=0, degree=4} : f32[8,16]
%10 = partition(%9) {axis=1, degree=4} : f32[8,16:4]
%11 = relu(%10) : f32[8,16:4]
%12 = combine(%11) {axis=1, degree=4} : f32[8,16]
%13 = partition(%12) {axis=0, degree=4} : f32[8:4,16]
%14 = matmul(%13, %6) : f32[8:4,4]
%15 = cross_entropy(%14, %7) : f32[] p4
%16 = reduce(%15) {degree=4} : f32[]
output "y" = %14
output "loss" = %16
)"},
    {"hybrid mlp", 4, R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%5 = replicate(%4) {degree=2} : f32[8:2,4] c2
%6 = partition(%1) {axis=1, degree=2} : f32[4,16:2]
%7 = replicate(%6) {degree=2} : f32[4,16:2] c2
%8 = partition(%2) {axis=0, degree=2} : f32[16:2,4]
%9 = replicate(%8) {degree=2} : f32[16:2,4] c2
%10 = partition(%3) {axis=0, degree=2} : i64[8:2]
%11 = replicate(%10) {degree=2} : i64[8:2] c2
%12 = matmul(%5, %7) : f32[8:2,16:2]
%13 = relu(%12) : f32[8:2,16:2]
%14 = matmul(%13, %9) : f32[8:2,4] p2
%15 = reduce(%14) {degree=2} : f32[8:2,4]
%16 = replicate(%15) {degree=2} : f32[8:2,4] c2
%17 = cross_entropy(%16, %11) : f32[] c2 p2
%18 = reduce(%17) {degree=2} : f32[] c2
%19 = replicate(%18) {degree=2} : f32[] c4
output "y" = %16
output "loss" = %19
)"},
    {"embedding by vocabulary", 4, R"(
%0 = weight "table" : f32[16,4]
%1 = input "ids" : i64[2,8]
%2 = input "target" : f32[2,8,4]
%3 = partition(%0) {axis=0, degree=4} : f32[16:4,4]
%4 = replicate(%1) {degree=4} : i64[2,8] c4
%5 = partition(%2) {axis=1, degree=4} : f32[2,8:4,4]
%6 = embedding(%3, %4) : f32[2,8,4] p4
%7 = reduce(%6) {degree=4} : f32[2,8,4]
%8 = partition(%7) {axis=1, degree=4} : f32[2,8:4,4]
%9 = mse(%8, %5) : f32[] p4
%10 = reduce(%9) {degree=4} : f32[]
output "y" = %8
output "loss" = %10
)"},
    {"branches on two devices", 2, R"(
%0 = input "x" : f32[4,4]
%1 = weight "w" : f32[4,4]
%2 = weight "v" : f32[4,4]
%3 = input "target" : f32[4,4]
%4 = matmul(%0, %1) : f32[4,4]
%5 = matmul(%4, %2) : f32[4,4]
%6 = sigmoid(%4) : f32[4,4]
%7 = concat_partials(%5, %6) : f32[4,4] p2
%8 = reduce(%7) {degree=2} : f32[4,4]
%9 = mse(%8, %3) : f32[]
output "y" = %8
output "loss" = %9
)"},
};

// Strides of views by the node's id; others put shard i on device i. Device = 2 * replica + shard.
const std::map<int, std::vector<int64_t>> kHybridStrides = {{5, {2, 0, 1, 0}},  {7, {0, 1, 2, 0}},
                                                            {9, {1, 0, 2, 0}},  {11, {2, 1, 0}},
                                                            {16, {2, 0, 1, 0}}, {17, {1, 2}}};

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

absl::StatusOr<std::vector<ExampleSchedule>> ExampleSchedules() {
  std::vector<ExampleSchedule> examples;
  for (const ScheduleRow& row : kSchedules) {
    ExampleSchedule example;
    example.name = row.name;
    example.num_devices = row.num_devices;
    ISOMER_ASSIGN_OR_RETURN(example.mapped.graph, ParseGraph(row.text));
    for (int id = 0; id < example.mapped.graph.num_nodes(); ++id) {
      example.mapped.views.push_back(RowMajorView(example.mapped.graph.node(id).outputs[0]));
      const auto strides = kHybridStrides.find(id);
      if (example.name == "hybrid mlp" && strides != kHybridStrides.end()) {
        example.mapped.views.back().strides = strides->second;
      }
    }
    examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace isomer
