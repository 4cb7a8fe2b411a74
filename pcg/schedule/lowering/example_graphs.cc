#include "pcg/schedule/lowering/example_graphs.h"

namespace isomer {

const char kMlp[] = R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = matmul(%0, %1) : f32[8,16]
%5 = relu(%4) : f32[8,16]
%6 = matmul(%5, %2) : f32[8,4]
%7 = cross_entropy(%6, %3) : f32[]
output "y" = %6
output "loss" = %7
)";

const std::vector<ExampleGraph>& ExampleGraphs() {
  static const auto* const graphs = new std::vector<ExampleGraph>{
      {"DataParallelMlp",
       kMlp,
       R"(
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
)",
       4,
       {}},
      // Columns of the first weight, rows of the second (Megatron): one all-reduce in the forward
      // pass. The input's gradient, for which there would be another, is not wanted.
      {"ColumnRowParallelMlp",
       kMlp,
       R"(
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
)",
       4,
       {}},
      {"RowParallelThenSamples",
       kMlp,
       R"(
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
)",
       4,
       {}},
      {"ColumnParallelGathered",
       kMlp,
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = partition(%1) {axis=1, degree=4} : f32[4,16:4]
%6 = partition(%2) {axis=1, degree=4} : f32[16,4:4]
%7 = replicate(%3) {degree=4} : i64[8] c4
%8 = matmul(%4, %5) : f32[8,16:4]
%9 = combine(%8) {axis=1, degree=4} : f32[8,16]
%10 = replicate(%9) {degree=4} : f32[8,16] c4
%11 = relu(%10) : f32[8,16] c4
%12 = matmul(%11, %6) : f32[8,4:4]
%13 = combine(%12) {axis=1, degree=4} : f32[8,4]
%14 = replicate(%13) {degree=4} : f32[8,4] c4
%15 = cross_entropy(%14, %7) : f32[] c4
output "y" = %14
output "loss" = %15
)",
       4,
       {}},
      {"SamplesToColumnsAndBack",
       kMlp,
       R"(
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
)",
       4,
       {}},
      // Logits by columns, whole as an output, and by samples for the loss.
      {"ColumnsToSamplesAndGathered",
       kMlp,
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "w1" : f32[4,16]
%2 = weight "w2" : f32[16,4]
%3 = input "labels" : i64[8]
%4 = replicate(%0) {degree=4} : f32[8,4] c4
%5 = replicate(%1) {degree=4} : f32[4,16] c4
%6 = partition(%2) {axis=1, degree=4} : f32[16,4:4]
%7 = partition(%3) {axis=0, degree=4} : i64[8:4]
%8 = matmul(%4, %5) : f32[8,16] c4
%9 = relu(%8) : f32[8,16] c4
%10 = matmul(%9, %6) : f32[8,4:4]
%11 = combine(%10) {axis=1, degree=4} : f32[8,4]
%12 = partition(%11) {axis=0, degree=4} : f32[8:4,4]
%13 = cross_entropy(%12, %7) : f32[] p4
%14 = reduce(%13) {degree=4} : f32[]
output "y" = %11
output "loss" = %14
)",
       4,
       {}},
      // Two replicas of two-way tensor parallelism: device = 2 * replica + shard.
      {"HybridMlp",
       kMlp,
       R"(
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
)",
       4,
       {{5, {2, 0, 1, 0}},
        {7, {0, 1, 2, 0}},
        {9, {1, 0, 2, 0}},
        {11, {2, 1, 0}},
        {16, {2, 0, 1, 0}},
        {17, {1, 2}}}},
      // Weights that a derivation has rearranged run through the host; the shared input x is used
      // twice, so that its product's gradients meet.
      {"MergedMatMuls",
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "q" : f32[4,4]
%2 = weight "k" : f32[4,4]
%3 = input "target" : f32[8,8]
%4 = matmul(%0, %1) : f32[8,4]
%5 = matmul(%0, %2) : f32[8,4]
%6 = tanh(%4) : f32[8,4]
%7 = mul(%6, %5) : f32[8,4]
%8 = concat(%7, %6) {axis=1} : f32[8,8]
%9 = mse(%8, %3) : f32[]
output "y" = %8
output "loss" = %9
)",
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "q" : f32[4,4]
%2 = weight "k" : f32[4,4]
%3 = input "target" : f32[8,8]
%4 = concat(%1, %2) {axis=1} : f32[4,8]
%5 = replicate(%4) {degree=2} : f32[4,8] c2
%6 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%7 = partition(%3) {axis=0, degree=2} : f32[8:2,8]
%8 = matmul(%6, %5) : f32[8:2,8]
%9 = split(%8) {axis=1, sizes=[4,4]} : f32[8:2,4], f32[8:2,4]
%10 = tanh(%9.0) : f32[8:2,4]
%11 = mul(%10, %9.1) : f32[8:2,4]
%12 = concat(%11, %10) {axis=1} : f32[8:2,8]
%13 = mse(%12, %7) : f32[] p2
%14 = reduce(%13) {degree=2} : f32[]
output "y" = %12
output "loss" = %14
)",
       2,
       {}},
      {"EmbeddingByVocabulary",
       R"(
%0 = weight "table" : f32[16,4]
%1 = input "ids" : i64[2,8]
%2 = input "target" : f32[2,8,4]
%3 = embedding(%0, %1) : f32[2,8,4]
%4 = mse(%3, %2) : f32[]
output "y" = %3
output "loss" = %4
)",
       R"(
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
)",
       4,
       {}},
      // A table that gives the logits, too, for which it is transposed in parts: every device has a
      // copy, and cuts its part from it.
      {"TiedEmbedding",
       R"(
%0 = input "ids" : i64[8]
%1 = weight "table" : f32[6,4]
%2 = input "target" : f32[8,6]
%3 = embedding(%1, %0) : f32[8,4]
%4 = transpose(%1) {perm=[1,0]} : f32[4,6]
%5 = matmul(%3, %4) : f32[8,6]
%6 = mse(%5, %2) : f32[]
output "y" = %5
output "loss" = %6
)",
       R"(
%0 = input "ids" : i64[8]
%1 = weight "table" : f32[6,4]
%2 = input "target" : f32[8,6]
%3 = partition(%0) {axis=0, degree=4} : i64[8:4]
%4 = replicate(%1) {degree=4} : f32[6,4] c4
%5 = embedding(%4, %3) : f32[8:4,4]
%6 = partition(%1) {axis=1, degree=4} : f32[6,4:4]
%7 = transpose(%6) {perm=[1,0]} : f32[4:4,6]
%8 = combine(%7) {axis=0, degree=4} : f32[4,6]
%9 = replicate(%8) {degree=4} : f32[4,6] c4
%10 = matmul(%5, %9) : f32[8:4,6]
%11 = partition(%2) {axis=0, degree=4} : f32[8:4,6]
%12 = mse(%10, %11) : f32[] p4
%13 = reduce(%12) {degree=4} : f32[]
output "y" = %10
output "loss" = %13
)",
       4,
       {}},
      // Outputs that are weights, as the forward pass used them: one in copies, and one in parts
      // that are whole as an output.
      {"WeightsAsOutputs",
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,4]
%2 = weight "v" : f32[4,8]
%3 = input "target" : f32[8,8]
%4 = matmul(%0, %1) : f32[8,4]
%5 = matmul(%4, %2) : f32[8,8]
%6 = mse(%5, %3) : f32[]
output "y" = %5
output "w" = %1
output "v" = %2
output "loss" = %6
)",
       R"(
%0 = input "x" : f32[8,4]
%1 = weight "w" : f32[4,4]
%2 = weight "v" : f32[4,8]
%3 = input "target" : f32[8,8]
%4 = partition(%0) {axis=0, degree=2} : f32[8:2,4]
%5 = replicate(%1) {degree=2} : f32[4,4] c2
%6 = matmul(%4, %5) : f32[8:2,4]
%7 = combine(%6) {axis=0, degree=2} : f32[8,4]
%8 = replicate(%7) {degree=2} : f32[8,4] c2
%9 = partition(%2) {axis=1, degree=2} : f32[4,8:2]
%10 = matmul(%8, %9) : f32[8,8:2]
%11 = partition(%3) {axis=1, degree=2} : f32[8,8:2]
%12 = mse(%10, %11) : f32[] p2
%13 = reduce(%12) {degree=2} : f32[]
output "y" = %10
output "w" = %5
output "v" = %9
output "loss" = %13
)",
       2,
       {}},
      // The sum of two branches as Reduce of their concatenation along partials; w is used twice.
      {"BranchesOnTwoDevices",
       R"(
%0 = input "x" : f32[4,4]
%1 = weight "w" : f32[4,4]
%2 = weight "v" : f32[4,4]
%3 = input "target" : f32[4,4]
%4 = matmul(%0, %1) : f32[4,4]
%5 = matmul(%4, %2) : f32[4,4]
%6 = sigmoid(%4) : f32[4,4]
%7 = add(%5, %6) : f32[4,4]
%8 = mse(%7, %3) : f32[]
output "y" = %7
output "loss" = %8
)",
       R"(
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
)",
       2,
       {}},
      {"ChannelsThenSamples",
       R"(
%0 = input "x" : f32[2,2,3,3]
%1 = weight "v" : f32[4,2,3,3]
%2 = weight "w" : f32[4,4,1,1]
%3 = input "target" : f32[2,4]
%4 = conv2d(%0, %1) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1]} : f32[2,4,3,3]
%5 = relu(%4) : f32[2,4,3,3]
%6 = conv2d(%5, %2) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1]} : f32[2,4,3,3]
%7 = reduce_mean(%6) {axes=[2,3], keepdims=0} : f32[2,4]
%8 = mse(%7, %3) : f32[]
output "y" = %7
output "loss" = %8
)",
       R"(
%0 = input "x" : f32[2,2,3,3]
%1 = weight "v" : f32[4,2,3,3]
%2 = weight "w" : f32[4,4,1,1]
%3 = input "target" : f32[2,4]
%4 = replicate(%0) {degree=2} : f32[2,2,3,3] c2
%5 = partition(%1) {axis=0, degree=2} : f32[4:2,2,3,3]
%6 = conv2d(%4, %5) {stride=[1,1], padding=[1,1,1,1], dilation=[1,1]} : f32[2,4:2,3,3]
%7 = relu(%6) : f32[2,4:2,3,3]
%8 = combine(%7) {axis=1, degree=2} : f32[2,4,3,3]
%9 = partition(%8) {axis=0, degree=2} : f32[2:2,4,3,3]
%10 = replicate(%2) {degree=2} : f32[4,4,1,1] c2
%11 = conv2d(%9, %10) {stride=[1,1], padding=[0,0,0,0], dilation=[1,1]} : f32[2:2,4,3,3]
%12 = reduce_mean(%11) {axes=[2,3], keepdims=0} : f32[2:2,4]
%13 = partition(%3) {axis=0, degree=2} : f32[2:2,4]
%14 = mse(%12, %13) : f32[] p2
%15 = reduce(%14) {degree=2} : f32[]
%16 = combine(%12) {axis=0, degree=2} : f32[2,4]
output "y" = %16
output "loss" = %15
)",
       2,
       {}},
  };
  return *graphs;
}

std::vector<MachineView> ViewsOf(const Graph& graph,
                                 const std::map<int, std::vector<int64_t>>& strides) {
  std::vector<MachineView> views;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    views.push_back(RowMajorView(graph.node(id).outputs[0]));
    if (const auto given = strides.find(id); given != strides.end()) {
      views.back().strides = given->second;
    }
  }
  return views;
}

}  // namespace isomer
