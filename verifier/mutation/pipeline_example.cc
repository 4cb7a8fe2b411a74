#include "verifier/mutation/pipeline_example.h"

#include <set>
#include <utility>

#include "pcg/support/status_macros.h"

namespace isomer {

absl::StatusOr<MappedGraph> PipelineExample() {
  const std::set<int> second_stage = {3, 7, 8, 9, 12, 13, 14};
  MappedGraph mapped;
  ISOMER_ASSIGN_OR_RETURN(mapped.graph, ParseGraph(R"(
%0 = input "x" : f32[6,4]
%1 = weight "w1" : f32[4,4]
%2 = weight "w2" : f32[4,4]
%3 = input "target" : f32[6,4]
%4 = partition(%0) {axis=0, degree=3} : f32[6:3,4]
%5 = replicate(%1) {degree=3} : f32[4,4] c3
%6 = replicate(%2) {degree=3} : f32[4,4] c3
%7 = partition(%3) {axis=0, degree=3} : f32[6:3,4]
%8 = weight "w3" : f32[4,4]
%9 = replicate(%8) {degree=3} : f32[4,4] c3
%10 = matmul(%4, %5) : f32[6:3,4]
%11 = matmul(%10, %6) : f32[6:3,4]
%12 = matmul(%11, %9) : f32[6:3,4]
%13 = mse(%12, %7) : f32[] p3
%14 = reduce(%13) {degree=3} : f32[]
output "loss" = %14
)"));
  for (int id = 0; id < mapped.graph.num_nodes(); ++id) {
    const TensorType& type = mapped.graph.node({id}).outputs[0];
    MachineView view;
    view.start = second_stage.contains(id) ? 1 : 0;
    // What is divided is in micro-batches.
    for (const Dim& dim : type.dims) view.moments.push_back(dim.degree);
    view.moments.push_back(type.copies);
    view.moments.push_back(type.partials);
    view.strides.assign(view.moments.size(), 0);
    if (type.NumShards() == 1) view.moments.clear();
    mapped.views.push_back(std::move(view));
  }
  return mapped;
}

}  // namespace isomer
