#include "pcg/schedule/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/schedule/schedule.h"
#include "pcg/schedule/task_error.h"

namespace isomer {
namespace {

// [batch, channels, d1 ..]
constexpr size_t kLeastRank = 3, kMostRank = 5;
constexpr int kChannels = 1;

// Sizes aligned from the right with `rank` dims, as operands are broadcast.
std::vector<int64_t> Padded(absl::Span<const int64_t> sizes, size_t rank) {
  std::vector<int64_t> padded(std::max(rank, sizes.size()) - sizes.size(), 1);
  padded.insert(padded.end(), sizes.begin(), sizes.end());
  return padded;
}

// What is kept of a reduction's operand has one order, or as many dims and either.
bool KeepsChannelsApart(const Operator& op, absl::Span<const int64_t> sizes) {
  if (op.Int("keepdims") == 1) return true;
  const int rank = static_cast<int>(sizes.size());
  std::vector<int64_t> kept(sizes.begin(), sizes.end());
  for (int64_t axis : op.Ints("axes")) kept[axis < 0 ? axis + rank : axis] = 1;
  return !HasLayouts(kept);
}

}  // namespace

bool HasLayouts(absl::Span<const int64_t> sizes) {
  if (sizes.size() < kLeastRank || sizes.size() > kMostRank || sizes[kChannels] == 1) return false;
  return absl::c_any_of(sizes.subspan(kChannels + 1), [](int64_t size) { return size > 1; });
}

Box InMemory(const Box& box, Layout layout) {
  if (layout == Layout::kRowMajor) return box;
  Box turned = box;
  for (SmallList<int64_t, 4>* list : {&turned.origin, &turned.shape}) {
    std::rotate(list->begin() + kChannels, list->begin() + kChannels + 1, list->end());
  }
  return turned;
}

LayoutUse LayoutUseOf(const Operator& op, absl::Span<const TensorType> operands,
                      absl::Span<const TensorType> outputs) {
  if (IsConvolution(op.kind())) return LayoutUse::kEach;
  if (TraitsOf(op.kind()).takes_channels_last) return LayoutUse::kTogether;
  if (IsReduction(op.kind())) {
    return KeepsChannelsApart(op, operands[0].Sizes()) ? LayoutUse::kTogether
                                                       : LayoutUse::kRowMajor;
  }
  if (outputs.size() != 1) return LayoutUse::kRowMajor;
  const size_t rank = outputs[0].dims.size();
  std::vector<Shape> shapes;
  for (const TensorType& operand : operands) {
    // With fewer dims it has no layouts of its own, and its dims are others than those of the rest.
    if (operand.dims.size() < rank && HasLayouts(Padded(operand.Sizes(), rank))) {
      return LayoutUse::kRowMajor;
    }
    shapes.push_back(operand.GlobalShape());
  }
  const absl::StatusOr<Declaration> declaration = Declare(op, shapes);
  return declaration.ok() && IsPointwise(*declaration) ? LayoutUse::kTogether
                                                       : LayoutUse::kRowMajor;
}

namespace {

// Tensors that have one layout are one region.
class Regions {
 public:
  explicit Regions(const Graph& graph) : graph_(graph) {
    int tensors = 0;
    for (int n = 0; n < graph.num_nodes(); ++n) {
      first_.push_back(tensors);
      tensors += static_cast<int>(graph.node(n).outputs.size());
    }
    parent_.resize(tensors);
    std::iota(parent_.begin(), parent_.end(), 0);
    row_major_.assign(tensors, false);
    gains_.assign(tensors, false);
  }

  void Join(TensorRef a, TensorRef b) {
    const int x = Find(Number(a)), y = Find(Number(b));
    if (x == y) return;
    parent_[x] = y;
    row_major_[y] = row_major_[y] || row_major_[x];
    gains_[y] = gains_[y] || gains_[x];
  }
  void KeepRowMajor(TensorRef tensor) { row_major_[Find(Number(tensor))] = true; }
  void Gains(TensorRef tensor) { gains_[Find(Number(tensor))] = true; }

  Layout LayoutOf(TensorRef tensor) {
    if (!HasLayouts(graph_.type(tensor).Sizes())) return Layout::kRowMajor;
    const int region = Find(Number(tensor));
    return gains_[region] && !row_major_[region] ? Layout::kChannelsLast : Layout::kRowMajor;
  }

 private:
  int Number(TensorRef tensor) const { return first_[tensor.node.value] + tensor.output; }
  int Find(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  const Graph& graph_;
  std::vector<int> first_;  // of each node's outputs
  std::vector<int> parent_;
  std::vector<bool> row_major_, gains_;  // of regions, by the number of one of their tensors
};

// The tensors of a call, operands before results.
std::vector<TensorRef> TensorsOf(const Graph& graph, NodeId id) {
  std::vector<TensorRef> tensors = graph.node(id).inputs;
  for (int t = 0; t < static_cast<int>(graph.node(id).outputs.size()); ++t) {
    tensors.push_back({id, t});
  }
  return tensors;
}

void JoinTensorsOfCall(const Graph& graph, NodeId id, Regions* regions) {
  const Node& node = graph.node(id);
  std::vector<TensorRef> tensors = TensorsOf(graph, id);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  switch (LayoutUseOf(node.op, operands, node.outputs)) {
    case LayoutUse::kRowMajor:
      for (TensorRef tensor : tensors) regions->KeepRowMajor(tensor);
      return;
    case LayoutUse::kEach:
      regions->Gains(tensors.front());
      regions->Gains(tensors.back());
      regions->KeepRowMajor(tensors[1]);  // Kernels have channels elsewhere.
      return;
    case LayoutUse::kTogether:
      std::erase_if(tensors, [&](TensorRef t) { return !HasLayouts(graph.type(t).Sizes()); });
      for (TensorRef tensor : tensors) regions->Join(tensor, tensors.front());
      return;
  }
}

// The buffers of a call's task that are of operand or result i, as value and as gradient.
std::vector<BufferId> BuffersOf(const Task& task, size_t operands, size_t outputs, size_t i) {
  std::vector<BufferId> ids;
  if (task.kind == TaskKind::kComputeGradient) {
    ids = {task.reads[i], i < operands ? task.writes[i] : task.reads[i + outputs]};
  } else {
    ids = {i < operands ? task.reads[i] : task.writes[i - operands]};
  }
  std::erase(ids, kNoBuffer);
  return ids;
}

// What the host reads or writes, or what belongs to what it does.
bool IsOfHost(TaskKind kind) {
  return kind == TaskKind::kLoad || kind == TaskKind::kFeed || kind == TaskKind::kUpdate ||
         kind == TaskKind::kUnload;
}

}  // namespace

bool CallLayouts::AreRowMajor() const {
  return !absl::c_linear_search(operands, Layout::kChannelsLast) &&
         !absl::c_linear_search(outputs, Layout::kChannelsLast);
}

CallLayouts LayoutsOf(const Graph& graph, const Schedule& schedule, const Task& task) {
  const size_t operands = graph.node(task.node).inputs.size();
  const size_t outputs = graph.node(task.node).outputs.size();
  CallLayouts layouts;
  const auto layout = [&](size_t i) {
    const std::vector<BufferId> ids = BuffersOf(task, operands, outputs, i);
    return ids.empty() ? Layout::kRowMajor : schedule.buffers[ids[0]].layout;
  };
  for (size_t o = 0; o < operands; ++o) layouts.operands.push_back(layout(o));
  for (size_t t = 0; t < outputs; ++t) layouts.outputs.push_back(layout(operands + t));
  if (layouts.AreRowMajor() || IsConvolution(graph.node(task.node).op.kind())) return layouts;
  // What the task has no buffer of would lie as the others do.
  for (size_t o = 0; o < operands; ++o) {
    const TensorType& type = graph.type(graph.node(task.node).inputs[o]);
    if (BuffersOf(task, operands, outputs, o).empty() && HasLayouts(type.Sizes())) {
      layouts.operands[o] = Layout::kChannelsLast;
    }
  }
  for (size_t t = 0; t < outputs; ++t) {
    if (BuffersOf(task, operands, outputs, operands + t).empty() &&
        HasLayouts(graph.node(task.node).outputs[t].Sizes())) {
      layouts.outputs[t] = Layout::kChannelsLast;
    }
  }
  return layouts;
}

void ChooseLayouts(const Graph& graph, Schedule* schedule) {
  bool any = false;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const OpKind kind = graph.node(n).op.kind();
    any |= IsConvolution(kind);
  }
  if (!any) return;
  Regions regions(graph);
  std::vector<bool> is_joined(graph.num_nodes(), false);
  for (const Task& task : schedule->tasks) {
    if (IsOfKernel(task.kind)) {
      if (!is_joined[task.node.value]) JoinTensorsOfCall(graph, task.node, &regions);
      is_joined[task.node.value] = true;
      continue;
    }
    const TensorRef first =
        schedule->buffers[task.reads.empty() ? task.writes[0] : task.reads[0]].tensor;
    for (const BufferList* list : {&task.reads, &task.writes}) {
      for (BufferId id : *list) {
        const TensorRef tensor = schedule->buffers[id].tensor;
        if (IsOfHost(task.kind)) {
          regions.KeepRowMajor(tensor);
        } else {
          regions.Join(tensor, first);
        }
      }
    }
  }
  for (Buffer& buffer : schedule->buffers) {
    if (buffer.role != BufferRole::kSaved) buffer.layout = regions.LayoutOf(buffer.tensor);
  }
}

namespace {

bool Takes(const Graph& graph, NodeId id, const CallLayouts& layouts) {
  const Node& node = graph.node(id);
  std::vector<TensorType> operands;
  for (TensorRef input : node.inputs) operands.push_back(graph.type(input));
  const LayoutUse use = LayoutUseOf(node.op, operands, node.outputs);
  if (use == LayoutUse::kRowMajor) return layouts.AreRowMajor();
  if (use == LayoutUse::kEach) return layouts.OfOperand(1) == Layout::kRowMajor;
  std::vector<Layout> all;
  for (size_t o = 0; o < operands.size(); ++o) {
    if (HasLayouts(operands[o].Sizes())) all.push_back(layouts.OfOperand(o));
  }
  for (size_t t = 0; t < node.outputs.size(); ++t) {
    if (HasLayouts(node.outputs[t].Sizes())) all.push_back(layouts.OfOutput(t));
  }
  return absl::c_all_of(all, [&](Layout layout) { return layout == all[0]; });
}

}  // namespace

absl::Status CheckLayouts(const Graph& graph, const Schedule& schedule) {
  for (size_t t = 0; t < schedule.tasks.size(); ++t) {
    const Task& task = schedule.tasks[t];
    const auto error = [&](absl::string_view what) {
      return TaskError(graph, schedule, static_cast<int32_t>(t), what);
    };
    std::vector<BufferId> all;
    for (const BufferList* list : {&task.reads, &task.writes}) {
      absl::c_copy_if(*list, std::back_inserter(all), [](BufferId id) { return id != kNoBuffer; });
    }
    const auto layout = [&](BufferId id) { return schedule.buffers[id].layout; };
    const auto is_row_major = [&](BufferId id) { return layout(id) == Layout::kRowMajor; };
    if (absl::c_all_of(all, is_row_major)) continue;
    for (BufferId id : all) {
      if (is_row_major(id)) continue;
      const TensorType& type = graph.type(schedule.buffers[id].tensor);
      if (!HasLayouts(type.Sizes())) {
        return error(absl::StrCat("buffer ", id, " of ", type.ToString(), " has one layout"));
      }
      if (IsOfHost(task.kind) || (task.is_view && IsOfKernel(task.kind))) {
        return error(absl::StrCat("buffer ", id, " is not row-major"));
      }
    }
    const auto differ = [&](const std::vector<BufferId>& ids) {
      return absl::c_any_of(ids, [&](BufferId id) { return layout(id) != layout(ids[0]); });
    };
    if (!IsOfKernel(task.kind)) {
      if (differ(all)) return error("its buffers have different layouts");
      continue;
    }
    const size_t operands = graph.node(task.node).inputs.size();
    const size_t outputs = graph.node(task.node).outputs.size();
    for (size_t i = 0; i < operands + outputs; ++i) {
      if (differ(BuffersOf(task, operands, outputs, i))) {
        return error("a value and its gradient have different layouts");
      }
    }
    if (!Takes(graph, task.node, LayoutsOf(graph, schedule, task))) {
      return error("it takes no such layouts");
    }
  }
  return absl::OkStatus();
}

}  // namespace isomer
