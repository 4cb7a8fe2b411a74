#include "optimizer/grid.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "optimizer/baselines.h"
#include "optimizer/batch_dims.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

class Enumerator {
 public:
  Enumerator(const Graph& graph, const GridOptions& options, CostTables* tables)
      : graph_(graph),
        options_(options),
        tables_(*tables),
        base_(tables->options()),
        batch_(BatchSize(graph)) {}

  absl::StatusOr<std::vector<GridEstimate>> Run() {
    const bool pipelines = !MixesSamples(graph_) && AnalyzeCompute(graph_).nodes.size() > 1;
    const int64_t node = std::gcd(tables_.cost().machine().devices_per_node(), options_.devices);
    for (int64_t tensor = 1; tensor <= node; tensor *= 2) {
      if (node % tensor != 0) break;
      for (int64_t stages = 1; stages <= options_.max_stages; stages *= 2) {
        if (options_.devices % (stages * tensor) != 0) break;
        if (stages > 1 && !pipelines) break;
        ISOMER_RETURN_IF_ERROR(AddMicroBatches(tensor, stages, pipelines));
      }
    }
    tables_.set_options(base_);
    return std::move(estimates_);
  }

 private:
  // The counts of micro-batches that are worth a look: as few as fill the pipeline, and more.
  absl::Status AddMicroBatches(int64_t tensor, int64_t stages, bool pipelines) {
    const int64_t data = options_.devices / (stages * tensor);
    for (int64_t n = stages; n <= options_.max_micro_batches; n *= 2) {
      const bool divides = batch_ % (data * n) == 0;
      // Without micro-batches calls of a smaller batch leave devices idle, which may be best.
      if (!divides && n > 1) break;
      ISOMER_RETURN_IF_ERROR(Add({options_.devices, stages, n, tensor}));
      if (!pipelines) break;
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Grid& grid) {
    tables_.set_options(OptionsOfStage(grid, base_, /*by_hand=*/true));
    auto mapped = MapTensorParallel(graph_, grid.tensor_degree, &tables_);
    if (absl::IsNotFound(mapped.status())) return absl::OkStatus();
    ISOMER_RETURN_IF_ERROR(mapped.status());
    ISOMER_ASSIGN_OR_RETURN(const MappedEstimate estimate, EstimateMapped(*mapped, &tables_));
    if (grid.stages > static_cast<int64_t>(estimate.calls.size())) return absl::OkStatus();
    estimates_.push_back(Estimate(grid, estimate));
    return absl::OkStatus();
  }

  GridEstimate Estimate(const Grid& grid, const MappedEstimate& mapped) const {
    struct Stage {
      double us = 0, synchronisation_us = 0;
      int64_t stored_bytes = 0, kept_bytes = 0;
    };
    std::vector<Stage> stages(grid.stages);
    const std::vector<int> stage_of_call = StagesOfCalls(mapped, grid.stages);
    for (size_t i = 0; i < mapped.calls.size(); ++i) {
      const CallEstimate& call = mapped.calls[i];
      Stage& stage = stages[stage_of_call[i]];
      stage.us += call.us;
      stage.synchronisation_us += call.synchronisation_us;
      stage.stored_bytes += call.fixed_bytes + StoredBytes(call);
      stage.kept_bytes += call.kept_bytes;
    }
    GridEstimate result{grid, 0, 0};
    double sum = 0, slowest = 0;
    const auto n = static_cast<double>(grid.micro_batches);
    for (int64_t s = 0; s < grid.stages; ++s) {
      const Stage& stage = stages[s];
      sum += stage.us / n;
      slowest = std::max(slowest, stage.us / n);
      const int64_t in_flight = std::min(grid.stages - s, grid.micro_batches);
      result.peak_bytes =
          std::max(result.peak_bytes, stage.stored_bytes + in_flight * stage.kept_bytes);
    }
    double synchronisation = 0;
    for (const Stage& stage : stages) {
      synchronisation = std::max(synchronisation, stage.synchronisation_us);
    }
    result.step_us = sum + (n - 1) * slowest + options_.exposed_synchronisation * synchronisation;
    return result;
  }

  // Weights with their gradients and states, and their copies in a lower precision.
  int64_t StoredBytes(const CallEstimate& call) const {
    const bool low = base_.precision != DataType::kFloat32;
    const int64_t states = NumStates(base_.optimizer) * call.weight_bytes;
    return call.weight_bytes * 2 + (low ? call.weight_bytes / 2 : 0) + states;
  }

  const Graph& graph_;
  const GridOptions& options_;
  CostTables& tables_;
  const CostOptions base_;
  const int64_t batch_;
  std::vector<GridEstimate> estimates_;
};

}  // namespace

std::string Grid::ToString() const {
  std::string text;
  if (tensor_degree > 1) absl::StrAppend(&text, "tensor ", tensor_degree, " x ");
  if (stages > 1) absl::StrAppend(&text, "pipeline ", stages, " x ");
  absl::StrAppend(&text, "data ", devices / stages / tensor_degree);
  if (micro_batches > 1) absl::StrAppend(&text, ", ", micro_batches, " micro-batches");
  return text;
}

CostOptions OptionsOfStage(const Grid& grid, CostOptions options, bool by_hand) {
  options.num_devices = grid.stage_devices();
  options.moments = grid.micro_batches;
  // Branches beside each other are for machines without micro-batches to fill them.
  options.halves = options.halves && grid.micro_batches == 1 && !by_hand;
  if (by_hand) options.max_axes = 1;
  return options;
}

absl::StatusOr<std::vector<GridEstimate>> EnumerateGrids(const Graph& graph,
                                                         const GridOptions& options,
                                                         int64_t memory_bytes, CostTables* tables) {
  ISOMER_ASSIGN_OR_RETURN(std::vector<GridEstimate> estimates,
                          Enumerator(graph, options, tables).Run());
  const auto worse = [&](const GridEstimate& e) {
    const bool fits = e.peak_bytes <= memory_bytes;
    return std::pair(!fits, fits ? e.step_us : static_cast<double>(e.peak_bytes));
  };
  std::stable_sort(estimates.begin(), estimates.end(),
                   [&](const auto& a, const auto& b) { return worse(a) < worse(b); });
  return estimates;
}

absl::Status SpreadOverStages(const Grid& grid, CostTables* tables, MappedModel* mapped) {
  if (grid.stages == 1) return absl::OkStatus();
  ISOMER_ASSIGN_OR_RETURN(const MappedEstimate estimate, EstimateMapped(*mapped, tables));
  // Algebra may leave fewer calls than there are stages.
  const auto calls = static_cast<int64_t>(estimate.calls.size());
  MoveToStages(estimate, StagesOfCalls(estimate, std::min(grid.stages, calls)),
               grid.stage_devices(), mapped);
  return absl::OkStatus();
}

}  // namespace isomer
