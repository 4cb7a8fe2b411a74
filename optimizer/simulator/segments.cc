#include "optimizer/simulator/segments.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "optimizer/cost/task_time.h"
#include "optimizer/sharding/batch_dims.h"
#include "optimizer/simulator/simulator.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/schedule/memory/memory.h"
#include "pcg/schedule/memory/views.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Number of bounds on segment sizes that are tried.
constexpr int kBounds = 24;
constexpr double kBoundStep = 0.75;
// A single call must free this many times the bytes that segments do in the same time.
constexpr double kSingleGain = 4;

void SortByBytesPerTime(std::vector<Segment>* segments) {
  std::stable_sort(segments->begin(), segments->end(), [](const Segment& a, const Segment& b) {
    return static_cast<double>(a.bytes) * b.us > static_cast<double>(b.bytes) * a.us;
  });
}

class Segmentation {
 public:
  Segmentation(const Graph& graph, absl::Span<const NodeResults> results)
      : graph_(graph), results_(results), order_(graph.TopologicalOrder()) {
    FindBorders();
  }

  std::vector<Segment> Run() {
    std::vector<size_t> best = {gaps_.size() - 1};
    int64_t least = std::numeric_limits<int64_t>::max();
    double bound = static_cast<double>(Bytes(0, gaps_.size()));
    for (int i = 0; i < kBounds; ++i, bound *= kBoundStep) {
      std::vector<size_t> ends = SmallestBorders(static_cast<int64_t>(bound));
      const int64_t bytes = BytesOf(ends);
      if (bytes >= least) continue;
      least = bytes;
      best = std::move(ends);
    }
    std::vector<Segment> segments;
    std::vector<bool> is_border(graph_.num_nodes(), false);
    size_t first = 0;
    for (size_t end : best) {
      if (end + 1 < gaps_.size()) is_border[gaps_[end].nodes.back().value] = true;
      segments.push_back(Between(first, end));
      first = end + 1;
    }
    std::vector<Segment> singles = Singles(segments, is_border);
    Segment last = std::move(segments.back());
    segments.pop_back();
    std::move(singles.begin(), singles.end(), std::back_inserter(segments));
    std::erase_if(segments, [](const Segment& s) { return s.nodes.empty() || s.bytes <= 0; });
    SortByBytesPerTime(&segments);
    if (!last.nodes.empty() && last.bytes > 0) segments.push_back(std::move(last));
    return segments;
  }

 private:
  // Nodes from one possible border to the next; the last of them is the border.
  struct Gap {
    std::vector<NodeId> nodes;
    int64_t kept_bytes = 0, border_bytes = 0;
  };

  // A border is a call through which alone all later ones depend on earlier ones, except for
  // weights and inputs.
  void FindBorders() {
    // Whether a node depends on earlier calls of the step.
    const std::vector<bool> of_data = OfData(graph_);
    std::vector<bool> is_made(graph_.num_nodes(), false);
    std::vector<size_t> last_use(graph_.num_nodes(), 0);
    for (size_t at = 0; at < order_.size(); ++at) {
      const Node& node = graph_.node(order_[at]);
      bool made = !IsLeaf(node.op.kind()) && !IsParallel(node.op.kind());
      for (TensorRef input : node.inputs) {
        last_use[input.node.value] = at;
        made |= is_made[input.node.value];
      }
      is_made[order_[at].value] = made && of_data[order_[at].value];
    }
    for (const Graph::NamedOutput& output : graph_.outputs())
      last_use[output.tensor.node.value] = order_.size();
    gaps_.emplace_back();
    // Live computed tensors after each position of the order.
    std::vector<int> ends(order_.size() + 2, 0);
    int alive = 0;
    for (size_t at = 0; at < order_.size(); ++at) {
      const NodeId id = order_[at];
      const Node& node = graph_.node(id);
      alive -= ends[at];
      if (is_made[id.value] && last_use[id.value] > at) {
        ++alive;
        ++ends[last_use[id.value]];
      }
      if (IsLeaf(node.op.kind())) continue;
      gaps_.back().nodes.push_back(id);
      gaps_.back().kept_bytes += results_[id.value].kept_bytes;
      const bool is_border = is_made[id.value] && alive == 1 && last_use[id.value] > at &&
                             node.outputs.size() == 1 && !IsParallel(node.op.kind());
      if (!is_border) continue;
      gaps_.back().border_bytes = results_[id.value].bytes;
      gaps_.emplace_back();
    }
    sums_ = {0};
    for (const Gap& gap : gaps_) sums_.push_back(sums_.back() + gap.kept_bytes);
  }

  // Bytes kept of the gaps [first, end).
  int64_t Bytes(size_t first, size_t end) const { return sums_[end] - sums_[first]; }

  // The last gaps of segments of at most `bound` bytes each (or of one gap), with the smallest
  // borders.
  std::vector<size_t> SmallestBorders(int64_t bound) const {
    // least[e]: minimum bytes of borders of the gaps [0, e), the last at gap e - 1; from[e]: its
    // segment.
    std::vector<int64_t> least(gaps_.size() + 1, 0);
    std::vector<size_t> from(gaps_.size() + 1, 0);
    // Monotonic queue of the starts of a segment that ends here, their `least` ascending.
    std::deque<size_t> starts;
    for (size_t end = 1; end <= gaps_.size(); ++end) {
      while (!starts.empty() && least[starts.back()] >= least[end - 1]) starts.pop_back();
      starts.push_back(end - 1);
      while (starts.front() + 1 < end && Bytes(starts.front(), end) > bound) starts.pop_front();
      from[end] = starts.front();
      least[end] = least[from[end]] + gaps_[end - 1].border_bytes;
    }
    std::vector<size_t> ends;
    for (size_t end = gaps_.size(); end > 0; end = from[end]) ends.push_back(end - 1);
    std::reverse(ends.begin(), ends.end());
    return ends;
  }

  // Bytes of the borders plus the largest segment.
  int64_t BytesOf(const std::vector<size_t>& ends) const {
    int64_t borders = 0, largest = 0;
    size_t first = 0;
    for (size_t end : ends) {
      borders += gaps_[end].border_bytes;
      largest = std::max(largest, Bytes(first, end + 1));
      first = end + 1;
    }
    return borders + largest;
  }

  // The segment of the gaps, without the last one's border.
  Segment Between(size_t first, size_t last) const {
    Segment segment;
    for (size_t g = first; g <= last; ++g) {
      for (NodeId id : gaps_[g].nodes) {
        segment.nodes.push_back(id);
        segment.us += results_[id.value].us;
      }
    }
    segment.bytes = Bytes(first, last + 1);
    if (!segment.nodes.empty()) segment.device = results_[segment.nodes[0].value].device;
    const bool has_border = last + 1 < gaps_.size();
    if (!has_border) return segment;
    segment.us -= results_[segment.nodes.back().value].us;
    segment.nodes.pop_back();
    segment.bytes -= gaps_[last].border_bytes;
    return segment;
  }

  // Calls that free many more bytes per time than segments, as their operands are kept anyway.
  std::vector<Segment> Singles(const std::vector<Segment>& segments,
                               const std::vector<bool>& is_border) const {
    double bytes = 0, us = 0;
    for (const Segment& segment : segments) {
      bytes += static_cast<double>(segment.bytes);
      us += segment.us;
    }
    std::vector<bool> is_kept(graph_.num_nodes(), false);
    // Per node: the single call that it is, or is a view of; -1: none.
    std::vector<int> single_of(graph_.num_nodes(), -1);
    std::vector<Segment> singles;
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      const NodeResults& results = results_[id.value];
      const bool has_operands =
          std::all_of(node.inputs.begin(), node.inputs.end(),
                      [&](TensorRef input) { return is_kept[input.node.value]; });
      if (IsLeaf(node.op.kind())) {
        is_kept[id.value] = true;
      } else if (IsParallel(node.op.kind()) && results.bytes == 0) {
        is_kept[id.value] = has_operands;
        const int single = single_of[id.value] = single_of[node.inputs[0].node.value];
        if (single >= 0) singles[single].nodes.push_back(id);
      } else {
        const auto kept = static_cast<double>(results.kept_bytes);
        const bool is_single = has_operands && !is_border[id.value] && kept > 0 &&
                               kept * us > kSingleGain * bytes * results.us;
        is_kept[id.value] = !is_single && results.kept_bytes >= results.bytes;
        if (!is_single) continue;
        single_of[id.value] = static_cast<int>(singles.size());
        singles.push_back({{id}, results.kept_bytes, results.us, results.device});
      }
    }
    return singles;
  }

  const Graph& graph_;
  const absl::Span<const NodeResults> results_;
  const std::vector<NodeId> order_;
  std::vector<Gap> gaps_;
  std::vector<int64_t> sums_;  // prefix sums of kept bytes
};

}  // namespace

absl::StatusOr<std::vector<NodeResults>> ResultsOfNodes(const CostModel& cost, const Plan& plan) {
  Plan kept = plan;
  kept.recomputed.clear();
  kept.precision = DataType::kFloat32;
  kept.fp8 = {};
  ISOMER_ASSIGN_OR_RETURN(const LoweredPlan lowered, LowerForSimulation(cost.machine(), kept));
  const Graph& graph = lowered.mapped.graph;
  const Schedule& schedule = lowered.schedule;
  struct Sum {
    int64_t bytes = 0, kept_bytes = 0;
    double us = 0;
    std::set<int32_t> devices;
  };
  std::vector<Sum> sums(graph.num_nodes());
  const std::vector<LiveRange> ranges = LiveRanges(schedule);
  const std::vector<BufferId> holders = HoldersOf(schedule);
  for (size_t i = 0; i < schedule.buffers.size(); ++i) {
    const Buffer& buffer = schedule.buffers[i];
    const bool made =
        buffer.role == BufferRole::kActivation || buffer.role == BufferRole::kReceived;
    const bool is_held = holders[i] != static_cast<BufferId>(i);  // is another's memory
    if (!made || is_held || buffer.moment > 0 || ranges[i].first > ranges[i].last) continue;
    if (schedule.tasks[ranges[i].first].phase != Phase::kForward) continue;
    Sum& sum = sums[buffer.tensor.node.value];
    sum.bytes += buffer.bytes();
    if (schedule.tasks[ranges[i].last].phase != Phase::kForward) sum.kept_bytes += buffer.bytes();
    sum.devices.insert(buffer.device);
  }
  TaskTimes times(cost, graph, schedule);
  for (const Task& task : schedule.tasks) {
    if (task.phase != Phase::kForward || task.moment > 0) continue;
    Sum& sum = sums[task.node.value];
    sum.us += times.Of(task).us * static_cast<double>(task.devices.size());
    sum.devices.insert(task.devices.begin(), task.devices.end());
  }
  std::vector<NodeResults> results;
  for (const Sum& sum : sums) {
    const auto devices = std::max<int64_t>(1, static_cast<int64_t>(sum.devices.size()));
    const int32_t first = sum.devices.empty() ? 0 : *sum.devices.begin();
    results.push_back({sum.bytes / devices, sum.kept_bytes / devices,
                       sum.us / static_cast<double>(devices), first});
  }
  return results;
}

std::vector<Segment> SegmentsToRecompute(const Graph& graph,
                                         absl::Span<const NodeResults> results) {
  return Segmentation(graph, results).Run();
}

std::vector<Segment> SegmentsOf(absl::Span<const NodeId> recomputed, const Graph& graph,
                                absl::Span<const NodeResults> results) {
  std::vector<bool> again(graph.num_nodes(), false);
  for (NodeId id : recomputed) again[id.value] = true;
  std::vector<int> segment_of(graph.num_nodes(), -1);
  std::vector<Segment> segments;
  for (NodeId id : graph.TopologicalOrder()) {
    if (!again[id.value]) continue;
    int& of = segment_of[id.value];
    for (TensorRef input : graph.node(id).inputs) of = std::max(of, segment_of[input.node.value]);
    if (of < 0) {
      of = static_cast<int>(segments.size());
      segments.emplace_back().device = results[id.value].device;
    }
    Segment& segment = segments[of];
    segment.nodes.push_back(id);
    segment.bytes += results[id.value].kept_bytes;
    segment.us += results[id.value].us;
  }
  SortByBytesPerTime(&segments);
  return segments;
}

std::vector<std::vector<NodeId>> LevelsOfRecomputation(absl::Span<const Segment> segments,
                                                       int levels) {
  struct OfDevice {
    std::vector<const Segment*> segments;
    int64_t bytes = 0;
    int64_t taken_bytes = 0;  // of the first `taken` segments
    size_t taken = 0;
  };
  std::map<int32_t, OfDevice> devices;
  for (const Segment& segment : segments) {
    OfDevice& of = devices[segment.device];
    of.segments.push_back(&segment);
    of.bytes += segment.bytes;
  }
  std::set<NodeId> nodes;
  std::vector<std::vector<NodeId>> result;
  for (int64_t level = 1; level <= levels; ++level) {
    const size_t before = nodes.size();
    for (auto& [device, of] : devices) {
      while (of.taken < of.segments.size() && of.taken_bytes * levels < of.bytes * level) {
        const Segment& next = *of.segments[of.taken++];
        nodes.insert(next.nodes.begin(), next.nodes.end());
        of.taken_bytes += next.bytes;
      }
    }
    if (nodes.size() > before) result.emplace_back(nodes.begin(), nodes.end());
  }
  return result;
}

}  // namespace isomer
