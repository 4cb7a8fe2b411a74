// How large are the bubbles of pipelines whose backward passes are whole, or two halves, and how
// many micro-batches do they keep? The settings, times of slots and bubbles of the paper's tables
// (Qi et al., "Zero Bubble Pipeline Parallelism", 2024, tables 4 to 6) beside those of our orders.
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/strings/str_format.h"
#include "pcg/schedule/order/pipeline.h"
#include "pcg/schedule/order/slot_run.h"
#include "pcg/support/check.h"

namespace isomer {
namespace {

// Microseconds of a micro-batch on a stage, as the paper's authors measured them on A100 (from
// their public code), and their bubble rates (from memory).
struct Setting {
  const char* model;
  int64_t stages, micro_batches, forward, backward, weights, message;
  double of_1f1b, of_h1, of_h2;
};

constexpr Setting kSettings[] = {
    {"1.5B", 8, 24, 18522, 18086, 9337, 601, 0.2431, 0.1585, 0.1083},
    {"1.5B", 8, 32, 18513, 18086, 9331, 626, 0.1985, 0.1242, 0.0837},
    {"1.5B", 8, 64, 18546, 18097, 9321, 762, 0.1240, 0.0674, 0.0444},
    {"6.2B", 8, 24, 29718, 29444, 19927, 527, 0.2347, 0.1323, 0.0698},
    {"6.2B", 8, 32, 29802, 29428, 19530, 577, 0.1898, 0.1045, 0.0559},
    {"6.2B", 8, 64, 29935, 29621, 19388, 535, 0.1091, 0.0554, 0.0294},
    {"14.6B", 16, 48, 11347, 11248, 8132, 377, 0.2552, 0.1397, 0.0672},
    {"14.6B", 16, 64, 11307, 11254, 8101, 379, 0.2082, 0.1088, 0.0516},
    {"14.6B", 16, 128, 11325, 11308, 8109, 378, 0.1251, 0.0576, 0.0266},
    {"28.3B", 32, 96, 10419, 10207, 7715, 408, 0.2646, 0.1421, 0.0641},
    {"28.3B", 32, 128, 10408, 10204, 7703, 408, 0.2168, 0.1106, 0.0490},
    {"28.3B", 32, 256, 10402, 10248, 7698, 460, 0.1352, 0.0594, 0.0257},
};

struct Order {
  double bubble = 0;      // of the time that the longest stage is at work or waits
  int64_t in_flight = 0;  // micro-batches of a whole stage, at most
};

Order OrderOf(const Setting& setting, int32_t in_flight, int64_t chunks = 1) {
  PipelineShape shape{.num_stages = setting.stages,
                      .num_moments = setting.micro_batches,
                      .num_chunks = chunks,
                      .zero_bubble = {in_flight},
                      .folds = chunks > 1};
  SlotTimes times{setting.forward / chunks, setting.backward / chunks, setting.weights / chunks,
                  setting.message};
  shape.zero_bubble.forward = static_cast<int32_t>(times.forward);
  shape.zero_bubble.backward = static_cast<int32_t>(times.backward);
  shape.zero_bubble.weights = static_cast<int32_t>(times.weights);
  if (in_flight == 0) times.backward += times.weights;
  const auto slots = SlotsOfStages(PipelineOrder::kOneForwardOneBackward, shape);
  ISOMER_CHECK(slots.ok());
  const auto run = RunSlots(shape, *slots, times);
  ISOMER_CHECK(run.has_value());
  Order order{1 - static_cast<double>(run->busy) / static_cast<double>(run->longest_stage)};
  for (int64_t most : run->most_in_flight) {
    order.in_flight = std::max(order.in_flight, (most + chunks - 1) / chunks);
  }
  return order;
}

int Main() {
  absl::PrintF(
      "| GPT | stages | micro-batches | 1F1B, paper | ours | ZB-H1, paper | ours | ZB-H2, "
      "paper | ours | ZB-V, ours | in flight: 1F1B, H1, H2, V |\n");
  absl::PrintF("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
  for (const Setting& setting : kSettings) {
    const auto stages = static_cast<int32_t>(setting.stages);
    const Order whole = OrderOf(setting, 0), h1 = OrderOf(setting, stages),
                h2 = OrderOf(setting, 2 * stages - 1), v = OrderOf(setting, 2 * stages, 2);
    absl::PrintF(
        "| %s | %d | %d | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %d, %d, %d, %d |\n",
        setting.model, setting.stages, setting.micro_batches, setting.of_1f1b, whole.bubble,
        setting.of_h1, h1.bubble, setting.of_h2, h2.bubble, v.bubble, whole.in_flight, h1.in_flight,
        h2.in_flight, v.in_flight);
  }
  return 0;
}

}  // namespace
}  // namespace isomer

int main() { return isomer::Main(); }
