#include "runtime/execution/arrangement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "pcg/ir/finite_cast.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

using Digit = LeafView::Digit;
using Digits = std::vector<Digit>;
using Views = std::vector<LeafView>;

int64_t SizeOf(const Digits& digits) {
  int64_t size = 1;
  for (const Digit& digit : digits) size *= digit.size;
  return size;
}

int64_t OffsetOf(const Digits& digits, int64_t index) {
  int64_t offset = 0;
  for (size_t i = digits.size(); i-- > 0; index /= digits[i].size) {
    offset += index % digits[i].size * digits[i].stride;
  }
  return offset;
}

// Of a dim the indices [begin, begin + size). False if they are no number of such digits.
bool Cut(int64_t begin, int64_t size, Digits* digits, int64_t* offset) {
  const int64_t all = SizeOf(*digits);
  if (begin == 0 && size == all) return true;
  Digit& first = digits->front();
  const int64_t below = all / first.size;
  if (begin % below == 0 && size % below == 0) {
    *offset += begin / below * first.stride;
    first.size = size / below;
    return true;
  }
  if (begin / below != (begin + size - 1) / below) return false;
  *offset += begin / below * first.stride;
  digits->erase(digits->begin());
  return Cut(begin % below, size, digits, offset);
}

LeafView WholeLeaf(NodeId leaf, const std::vector<int64_t>& sizes) {
  LeafView view{.leaf = leaf, .box = {std::vector<int64_t>(sizes.size(), 0), sizes}, .dims = {}};
  view.dims.resize(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) {
    if (sizes[d] != 1) view.dims[d] = {{sizes[d], stride}};
  }
  return view;
}

// The digits of all dims, dealt out to dims of other sizes.
std::optional<Views> Reshaped(const Views& views, const std::vector<int64_t>& sizes) {
  if (views.size() != 1) return std::nullopt;
  Digits digits;
  for (const Digits& dim : views[0].dims) digits.insert(digits.end(), dim.begin(), dim.end());
  LeafView view = WholeLeaf(views[0].leaf, sizes);
  view.offset = views[0].offset;
  for (size_t d = sizes.size(); d-- > 0;) {
    view.dims[d].clear();
    int64_t left = sizes[d];
    while (left > 1) {
      if (digits.empty()) return std::nullopt;
      Digit& last = digits.back();
      if (left % last.size == 0) {
        view.dims[d].insert(view.dims[d].begin(), last);
        left /= last.size;
        digits.pop_back();
      } else if (last.size % left == 0) {
        view.dims[d].insert(view.dims[d].begin(), {left, last.stride});
        last = {last.size / left, last.stride * left};
        left = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return Views{std::move(view)};
}

Views Transposed(Views views, absl::Span<const int64_t> perm) {
  for (LeafView& view : views) {
    const LeafView before = view;
    for (size_t d = 0; d < perm.size(); ++d) {
      view.box.origin[d] = before.box.origin[perm[d]];
      view.box.shape[d] = before.box.shape[perm[d]];
      view.dims[d] = before.dims[perm[d]];
    }
  }
  return views;
}

// Of the tensor the indices [begin, begin + size) of a dim.
std::optional<Views> PartOf(const Views& views, size_t axis, int64_t begin, int64_t size) {
  Views parts;
  for (LeafView view : views) {
    int64_t &origin = view.box.origin[axis], &extent = view.box.shape[axis];
    const int64_t from = std::max(begin, origin), to = std::min(begin + size, origin + extent);
    if (from >= to) continue;
    if (!Cut(from - origin, to - from, &view.dims[axis], &view.offset)) return std::nullopt;
    origin = from - begin;
    extent = to - from;
    parts.push_back(std::move(view));
  }
  return parts;
}

size_t AxisOf(const Operator& op, int rank) {
  const int64_t axis = op.Int("axis");
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

bool OnlyArranges(const Operator& op) {
  return IsPlacement(op.kind()) || IsFloatCast(op) || IsLayout(op.kind());
}

// Of each output; none if it does more than arrange.
std::optional<std::vector<Views>> ResultsOf(const Node& node, const std::vector<Views>& operands) {
  const auto one = [](std::optional<Views> views) -> std::optional<std::vector<Views>> {
    if (!views.has_value()) return std::nullopt;
    return std::vector<Views>{*std::move(views)};
  };
  const Operator& op = node.op;
  const int rank = node.outputs[0].rank();
  if (IsPlacement(op.kind()) || IsFloatCast(op)) return std::vector<Views>{operands[0]};
  switch (op.kind()) {
    case OpKind::kTranspose:
      return one(Transposed(operands[0], op.Ints("perm")));
    case OpKind::kReshape:
      return one(Reshaped(operands[0], node.outputs[0].Sizes()));
    case OpKind::kConcat: {
      Views all;
      int64_t begin = 0;
      const size_t axis = AxisOf(op, rank);
      for (const Views& operand : operands) {
        int64_t end = begin;
        for (LeafView view : operand) {
          view.box.origin[axis] += begin;
          end = std::max(end, view.box.origin[axis] + view.box.shape[axis]);
          all.push_back(std::move(view));
        }
        begin = end;
      }
      return one(std::move(all));
    }
    case OpKind::kSplit: {
      std::vector<Views> parts;
      int64_t begin = 0;
      const size_t axis = AxisOf(op, rank);
      for (const TensorType& output : node.outputs) {
        const int64_t size = output.dims[axis].size;
        std::optional<Views> part = PartOf(operands[0], axis, begin, size);
        if (!part.has_value()) return std::nullopt;
        parts.push_back(*std::move(part));
        begin += size;
      }
      return parts;
    }
    default:
      return std::nullopt;
  }
}

// Calls f for the lines of a leaf that are one line of a region: along the last dim, from `index`
// of the tensor on, element `place` of the box.
void ForEachInLine(const LeafView& view, const std::vector<int64_t>& index, int64_t count,
                   int64_t place, absl::FunctionRef<void(const LeafLine&)> f) {
  int64_t offset = view.offset;
  const size_t rank = view.dims.size();
  for (size_t d = 0; d + 1 < rank; ++d) {
    offset += OffsetOf(view.dims[d], index[d] - view.box.origin[d]);
  }
  if (rank == 0 || view.dims.back().empty()) return f({view.leaf, offset, 1, 1, place});
  const Digits& digits = view.dims.back();
  int64_t at = index.back() - view.box.origin.back();
  for (const int64_t end = at + count; at < end;) {
    // As far as the last digit goes.
    const Digit& last = digits.back();
    const int64_t run = std::min(end - at, last.size - at % last.size);
    f({view.leaf, offset + OffsetOf(digits, at), last.stride, run, place});
    place += run;
    at += run;
  }
}

// Calls f(index) for the beginning of every line of the region.
template <typename Function>
void ForEachLine(const Box& region, Function f) {
  std::vector<int64_t> index(region.origin.begin(), region.origin.end());
  const int64_t lines =
      region.shape.empty() ? 1 : region.Volume() / std::max<int64_t>(region.shape.back(), 1);
  for (int64_t line = 0; line < lines; ++line) {
    f(index);
    for (size_t d = index.size() < 2 ? 0 : index.size() - 1; d-- > 0;) {
      if (++index[d] < region.origin[d] + region.shape[d]) break;
      index[d] = region.origin[d];
    }
  }
}

void ForEachInView(const LeafView& view, const Box& box,
                   absl::FunctionRef<void(const LeafLine&)> f) {
  const Box region = Intersection(view.box, box);
  if (region.empty()) return;
  const int64_t count = region.shape.empty() ? 1 : region.shape.back();
  ForEachLine(region, [&](const std::vector<int64_t>& index) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      place = place * box.shape[d] + index[d] - box.origin[d];
    }
    ForEachInLine(view, index, count, place, f);
  });
}

// Views that are the whole tensor together; none: they cannot say it.
std::optional<Views> ViewsOfTensor(const Graph& graph, const Schedule::HostTensor& tensor) {
  std::map<TensorRef, Views> views;
  for (NodeId id : tensor.leaves) {
    views[{id, 0}] = {WholeLeaf(id, graph.node(id).outputs[0].Sizes())};
  }
  for (NodeId id : tensor.operators) {
    const Node& node = graph.node(id);
    std::vector<Views> operands;
    for (TensorRef input : node.inputs) operands.push_back(views.at(input));
    std::optional<std::vector<Views>> results = ResultsOf(node, operands);
    if (!results.has_value()) return std::nullopt;
    for (size_t t = 0; t < results->size(); ++t) {
      views[{id, static_cast<int32_t>(t)}] = std::move((*results)[t]);
    }
  }
  return std::move(views.at(tensor.tensor));
}

int64_t RowMajor(const std::vector<int64_t>& index, const std::vector<int64_t>& sizes) {
  int64_t place = 0;
  for (size_t d = 0; d < index.size(); ++d) place = place * sizes[d] + index[d];
  return place;
}

std::vector<int64_t> IndexAt(int64_t place, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; place /= sizes[d]) index[d] = place % sizes[d];
  return index;
}

// One operator back: of which operand an element is, and its index there.
TensorRef StepBack(const Graph& graph, TensorRef tensor, std::vector<int64_t>* index) {
  const Node& node = graph.node(tensor.node);
  const Operator& op = node.op;
  const int rank = node.outputs[0].rank();
  switch (op.kind()) {
    case OpKind::kTranspose: {
      const std::vector<int64_t> before = *index;
      const auto perm = op.Ints("perm");
      for (size_t d = 0; d < perm.size(); ++d) (*index)[perm[d]] = before[d];
      return node.inputs[0];
    }
    case OpKind::kReshape:
      *index =
          IndexAt(RowMajor(*index, node.outputs[0].Sizes()), graph.type(node.inputs[0]).Sizes());
      return node.inputs[0];
    case OpKind::kConcat: {
      int64_t& at = (*index)[AxisOf(op, rank)];
      size_t operand = 0;
      for (;; ++operand) {
        const int64_t size = graph.type(node.inputs[operand]).dims[AxisOf(op, rank)].size;
        if (at < size) break;
        at -= size;
      }
      return node.inputs[operand];
    }
    case OpKind::kSplit:
      for (int32_t t = 0; t < tensor.output; ++t) {
        (*index)[AxisOf(op, rank)] += node.outputs[t].dims[AxisOf(op, rank)].size;
      }
      return node.inputs[0];
    default:
      return node.inputs[0];
  }
}

}  // namespace

std::optional<Arrangement> Arrangement::Of(const Graph& graph, const Schedule::HostTensor& tensor) {
  for (NodeId id : tensor.operators) {
    if (!OnlyArranges(graph.node(id).op)) return std::nullopt;
  }
  std::optional<Views> views = ViewsOfTensor(graph, tensor);
  return Arrangement(graph, tensor.tensor, tensor.leaves, views.has_value() ? *views : Views());
}

void Arrangement::ForEachLine(const Box& box, absl::FunctionRef<void(const LeafLine&)> f) const {
  if (views_.empty()) return Walk(box, f);
  for (const LeafView& view : views_) ForEachInView(view, box, f);
}

void Arrangement::ForEachLineOf(NodeId leaf, const Box& box,
                                absl::FunctionRef<void(const LeafLine&)> f) const {
  for (const LeafView& view : views_) {
    if (view.leaf == leaf) ForEachInView(view, box, f);
  }
  if (!views_.empty()) return;
  Walk(box, [&](const LeafLine& line) {
    if (line.leaf == leaf) f(line);
  });
}

int64_t Arrangement::ElementsOf(NodeId leaf, const Box& box) const {
  int64_t elements = 0;
  for (const LeafView& view : views_) {
    if (view.leaf == leaf) elements += Intersection(view.box, box).Volume();
  }
  if (!views_.empty()) return elements;
  ForEachLineOf(leaf, box, [&](const LeafLine& line) { elements += line.count; });
  return elements;
}

void Arrangement::Walk(const Box& box, absl::FunctionRef<void(const LeafLine&)> f) const {
  LeafLine line = {.leaf = {}, .first = 0, .stride = 1, .count = 0, .place = 0};
  const int64_t elements = box.shape.empty() ? 1 : box.Volume();
  for (int64_t place = 0; place < elements; ++place) {
    std::vector<int64_t> index = IndexAt(place, box.shape);
    for (size_t d = 0; d < index.size(); ++d) index[d] += box.origin[d];
    TensorRef at = tensor_;
    while (!IsLeaf(graph_->node(at.node).op.kind())) at = StepBack(*graph_, at, &index);
    const int64_t element = RowMajor(index, graph_->type(at).Sizes());
    if (line.count == 1 && line.leaf == at.node && element > line.first) {
      line.stride = element - line.first;
    }
    if (line.count > 0 && line.leaf == at.node &&
        element == line.first + line.stride * line.count) {
      ++line.count;
      continue;
    }
    if (line.count > 0) f(line);
    line = {at.node, element, 1, 1, place};
  }
  if (line.count > 0) f(line);
}

// As casts of what comes from the host leave it (pcg/ir/finite_cast.h).
static void StayFinite(double most, absl::Span<double> numbers) {
  for (double& number : numbers) {
    if (!std::isinf(number)) number = std::clamp(number, -most, most);
  }
}

absl::Status Arrangement::ReadBox(const LeafValues& leaves, const Box& box, DataType dtype,
                                  void* buffer) const {
  // Of a leaf that lies in a file so much stays in memory (64 MiB of float32).
  constexpr int64_t kMostKept = int64_t{16} << 20;
  std::map<NodeId, const LeafValues::Leaf*> found;
  std::vector<double> numbers;
  const bool is_low = dtype == DataType::kBFloat16 || dtype == DataType::kFloat16;
  absl::Status status;
  int64_t kept = 0;
  ForEachLine(box, [&](const LeafLine& line) {
    if (!status.ok()) return;
    const LeafValues::Leaf*& leaf = found[line.leaf];
    if (leaf == nullptr) {
      const absl::StatusOr<const LeafValues::Leaf*> values = leaves.Find(*graph_, line.leaf);
      status = values.status();
      if (!status.ok()) return;
      leaf = *values;
    }
    numbers.resize(std::max(numbers.size(), static_cast<size_t>(line.count)));
    leaf->Read(line.first, line.stride, line.count, numbers.data());
    if (is_low) StayFinite(LargestNumber(dtype), absl::MakeSpan(numbers).first(line.count));
    StoreElements(numbers.data(), line.count, dtype,
                  static_cast<char*>(buffer) + line.place * BytesPerElement(dtype));
    if ((kept += line.count) < kMostKept) return;
    kept = 0;
    leaf->LetGo();
  });
  return status;
}

}  // namespace isomer
