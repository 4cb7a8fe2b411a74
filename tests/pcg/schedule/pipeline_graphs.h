// Perceptrons in stages, with micro-batches and data parallelism.
#ifndef ISOMER_TESTS_PCG_SCHEDULE_PIPELINE_GRAPHS_H_
#define ISOMER_TESTS_PCG_SCHEDULE_PIPELINE_GRAPHS_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/plan.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/schedule.h"

namespace isomer {

struct StagedMlp {
  int64_t layers = 4, stages = 2, data = 1, micro_batches = 4;
  bool shortcut = false;  // each layer but the first also adds what the first gives
  int64_t batch = 48, width = 8;
  int64_t chunks = 1;  // of a stage's devices: the layers go round so often
  bool folds = false;  // or to and fro
  bool tied = false;   // the last layer has the first one's weight
  // Behind them a layer of the whole batch, whose columns the devices of the last stage share.
  bool whole_logits = false;

  int64_t devices() const { return stages * data; }
  std::string Name() const {
    return absl::StrCat(
        layers, "LayersIn", stages, "StagesBy", data, "Of", micro_batches,
        shortcut ? "WithShortcuts" : "", chunks > 1 ? absl::StrCat("In", chunks, "Chunks") : "",
        folds ? "ThatFold" : "", tied ? "Tied" : "", whole_logits ? "WithWholeLogits" : "");
  }
};
inline void PrintTo(const StagedMlp& pipeline, std::ostream* out) { *out << pipeline.Name(); }

// `mapped` with views of stages, micro-batches and data parallelism; `model` undivided.
struct PipelineGraphs {
  Model model;
  MappedGraph mapped;
};

class PipelineMaker {
 public:
  explicit PipelineMaker(const StagedMlp& pipeline, bool divided)
      : pipeline_(pipeline), degree_(divided ? pipeline.data * pipeline.micro_batches : 1) {}

  MappedGraph Make() {
    Graph& graph = made_.graph;
    const int64_t width = pipeline_.width;
    TensorRef h = Placed(graph.AddInput("x", SequentialType({pipeline_.batch, width})), 0);
    h = Divided(h, 0);
    TensorRef first = h, first_weight;
    for (int64_t layer = 0; layer < pipeline_.layers; ++layer) {
      const int64_t stage = StageOf(layer * pipeline_.stages * pipeline_.chunks / pipeline_.layers);
      const bool shares = pipeline_.tied && layer == pipeline_.layers - 1;
      const TensorRef w =
          shares ? first_weight
                 : Placed(graph.AddWeight(absl::StrCat("w", layer), SequentialType({width, width})),
                          stage);
      if (layer == 0) first_weight = w;
      h = Call(OpKind::kMatMul, {h, Copied(w, stage)}, stage);
      h = Call(OpKind::kTanh, {h}, stage);
      if (pipeline_.shortcut && layer > 0) h = Call(OpKind::kAdd, {h, first}, stage);
      if (layer == 0) first = h;
    }
    const int64_t last = StageOf(pipeline_.stages * pipeline_.chunks - 1);
    TensorRef target =
        Placed(graph.AddInput("target", SequentialType({pipeline_.batch, width})), last);
    if (pipeline_.whole_logits) {
      const TensorRef w = Placed(graph.AddWeight("logits", SequentialType({width, width})), last);
      h = Call(OpKind::kMatMul, {Gathered(h, last), Columns(w, last)}, last);
      target = Columns(target, last);
    } else {
      target = Divided(target, last);
    }
    TensorRef loss = Call(OpKind::kMeanSquaredError, {h, target}, last);
    const int64_t partials = graph.type(loss).partials;
    if (partials > 1) loss = Placed(*graph.AddOp(Reduce(partials), {loss}), last);
    graph.AddOutput("y", h);
    graph.AddOutput("loss", loss);
    return std::move(made_);
  }

 private:
  int64_t StageOf(int64_t level) const {
    const int64_t place = level % pipeline_.stages;
    const bool back = pipeline_.folds && level / pipeline_.stages % 2 == 1;
    return back ? pipeline_.stages - 1 - place : place;
  }
  TensorRef Call(OpKind kind, std::vector<TensorRef> operands, int64_t stage) {
    return Placed(*made_.graph.AddOp(kind, std::move(operands)), stage);
  }
  TensorRef Divided(TensorRef x, int64_t stage) {
    return degree_ == 1 ? x : Placed(*made_.graph.AddOp(Partition(0, degree_), {x}), stage);
  }
  // All of the batch, on each device of a stage.
  TensorRef Gathered(TensorRef x, int64_t stage) {
    if (degree_ == 1) return x;
    x = Placed(*made_.graph.AddOp(Combine(0, degree_), {x}), stage);
    return Placed(*made_.graph.AddOp(Replicate(pipeline_.data), {x}), stage);
  }
  TensorRef Columns(TensorRef x, int64_t stage) {
    return degree_ == 1 ? x : Placed(*made_.graph.AddOp(Partition(1, pipeline_.data), {x}), stage);
  }
  TensorRef Copied(TensorRef w, int64_t stage) {
    return degree_ == 1 ? w : Placed(*made_.graph.AddOp(Replicate(degree_), {w}), stage);
  }

  // The axis that is divided, if any, goes over the stage's devices and over micro-batches.
  TensorRef Placed(TensorRef tensor, int64_t stage) {
    const TensorType& type = made_.graph.type(tensor);
    MachineView view = RowMajorView(type);
    view.start = stage * pipeline_.data;
    const int64_t micro_batches = degree_ / pipeline_.data;
    if (type.NumShards() == degree_ && micro_batches > 1) {
      view.moments.assign(view.strides.size(), 1);
      for (size_t axis = 0; axis < view.strides.size(); ++axis) {
        if (view.strides[axis] > 0) view.moments[axis] = micro_batches;
      }
    }
    made_.views.resize(tensor.node.value + 1);
    made_.views[tensor.node.value] = view;
    return tensor;
  }

  const StagedMlp& pipeline_;
  const int64_t degree_;
  MappedGraph made_;
};

inline PipelineGraphs MakePipeline(const StagedMlp& pipeline) {
  PipelineGraphs graphs;
  graphs.model.graph = PipelineMaker(pipeline, false).Make().graph;
  graphs.model.loss = "loss";
  graphs.mapped = PipelineMaker(pipeline, true).Make();
  EXPECT_EQ(graphs.mapped.graph.Validate(), absl::OkStatus());
  return graphs;
}

// Its plan.
inline Plan MicroBatchPlan(const StagedMlp& pipeline, DataType precision) {
  const PipelineGraphs graphs = MakePipeline(pipeline);
  Plan plan;
  plan.model = graphs.model;
  plan.graph = graphs.mapped.graph;
  plan.views = graphs.mapped.views;
  plan.num_devices = pipeline.devices();
  plan.precision = precision;
  return plan;
}

inline Schedule LoweredPipeline(const StagedMlp& pipeline, const MappedGraph& mapped,
                                PipelineOrder order = PipelineOrder::kOneForwardOneBackward,
                                const std::vector<NodeId>& recomputed = {},
                                const UpdateOptions& update = {.bucket_bytes = 0}) {
  auto schedule = LowerGraph(mapped.graph, mapped.views,
                             {.num_devices = pipeline.devices(),
                              .loss = "loss",
                              .update = update,
                              .order = order,
                              .keep_gradients = true,
                              .recomputed = recomputed});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

}  // namespace isomer

#endif  // ISOMER_TESTS_PCG_SCHEDULE_PIPELINE_GRAPHS_H_
