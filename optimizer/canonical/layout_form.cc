#include "optimizer/canonical/layout_form.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "optimizer/canonical/places.h"

namespace isomer {
namespace {

using Keeps = std::function<bool(const std::string&)>;

// A tensor, as an index map of the base that no layout call made.
struct Laid {
  TensorRef base;
  Places places;
  std::vector<NodeId> calls;  // from the base to the tensor
};

// Composes `outer` with `inner`, the map of its base.
std::optional<Places> Composed(const Places& inner, const Places& outer) {
  std::optional<Places> places = inner;
  for (const LayoutCall& call : CallsOf(outer)) {
    places = PlacesAfter(call.op, call.output, *places);
    if (!places.has_value()) return std::nullopt;
  }
  return places;
}

class LayoutPass {
 public:
  LayoutPass(const Keeps& keeps, StatedRewriter* rewriter)
      : keeps_(keeps), rewriter_(*rewriter), graph_(rewriter->graph()) {}

  // Moves row-wise calls before layout chains, to the original order of rows.
  void MoveRows() {
    for (NodeId id : graph_.TopologicalOrder()) {
      if (!MayBeChain(id) && !MoveGather(id)) MoveRowsOf(id);
      NoteLaid(id);
    }
  }

  void ShortenChains() {
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    std::set<TensorRef> used;
    for (NodeId id : order) {
      NoteLaid(id);
      used.insert(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end());
    }
    std::set<TensorRef> ends;
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      used.insert(output.tensor);
      ends.insert(output.tensor);
    }
    for (NodeId id : order) {
      bool begins = false;
      for (int o = 0; o < static_cast<int>(graph_.node(id).outputs.size()); ++o) {
        begins |= used.contains({id, o}) && !IsInChain({id, o});
      }
      if (begins) ends.insert(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end());
    }
    std::map<TensorRef, std::vector<TensorRef>> by_base;
    for (TensorRef end : ends) {
      if (IsInChain(end)) by_base[LaidOf(end).base].push_back(end);
    }
    for (const auto& [base, tensors] : by_base) Shorten(base, tensors);
  }

  int NumCalls() const {
    const std::vector<NodeId> live = graph_.TopologicalOrder();
    return static_cast<int>(std::count_if(
        live.begin(), live.end(), [&](NodeId id) { return IsLayout(graph_.node(id).op.kind()); }));
  }

 private:
  bool MayBeChain(NodeId id) const {
    const Node& node = graph_.node(id);
    return IsLayout(node.op.kind()) && node.op.kind() != OpKind::kConcat && !keeps_(node.name);
  }
  bool IsInChain(TensorRef tensor) const { return LaidOf(tensor).base != tensor; }
  const Laid& LaidOf(TensorRef tensor) const { return laid_.at(tensor); }

  // REQUIRES: earlier calls are recorded.
  void NoteLaid(NodeId id) {
    const Node& node = graph_.node(id);
    for (int o = 0; o < static_cast<int>(node.outputs.size()); ++o) {
      Laid laid{{id, o}, Places::Of(SizesOf({id, o})), {}};
      if (MayBeChain(id)) {
        const Laid& before = LaidOf(node.inputs[0]);
        std::optional<Places> after = PlacesAfter(node.op, o, before.places);
        if (after.has_value()) {
          laid = {before.base, *std::move(after), before.calls};
          laid.calls.push_back(id);
          LookIntoConcat(&laid);
        }
      } else if (node.op.kind() == OpKind::kConcat && !keeps_(node.name)) {
        JoinParts(id, &laid);
      }
      laid_.insert_or_assign({id, o}, std::move(laid));
    }
  }

  // Replaces a selection within one operand of a Concat by a selection of that operand.
  void LookIntoConcat(Laid* laid) const {
    const Node& concat = graph_.node(laid->base.node);
    if (concat.op.kind() != OpKind::kConcat || keeps_(concat.name)) return;
    const int axis = AxisOf(concat.op, laid->places.base.size());
    int64_t first = laid->places.first[axis], last = first;
    for (const std::vector<Atom>& dim : laid->places.dims) {
      for (const Atom& atom : dim) {
        if (atom.dim == axis) last += (atom.size - 1) * atom.stride;
      }
    }
    for (TensorRef part : concat.inputs) {
      const std::vector<int64_t> sizes = SizesOf(part);
      if (last < sizes[axis]) {
        if (first < 0) return;
        Places of_part = laid->places;
        of_part.base = sizes;
        of_part.first[axis] = first;
        const Laid& inner = LaidOf(part);
        std::optional<Places> composed = Composed(inner.places, of_part);
        if (!composed.has_value()) return;
        std::vector<NodeId> calls = inner.calls;
        calls.push_back(laid->base.node);
        calls.insert(calls.end(), laid->calls.begin(), laid->calls.end());
        *laid = {inner.base, *std::move(composed), std::move(calls)};
        return;
      }
      first -= sizes[axis];
      last -= sizes[axis];
    }
  }

  // A Concat of consecutive parts of one tensor is one part of it.
  void JoinParts(NodeId id, Laid* laid) const {
    const Node& concat = graph_.node(id);
    const Laid& head = LaidOf(concat.inputs[0]);
    if (concat.inputs.size() < 2) return;
    const int axis = AxisOf(concat.op, head.places.dims.size());
    Places joined = head.places;
    int64_t total = 0, stride = 0;
    int along = -1;  // the dim of the base
    std::vector<NodeId> calls;
    for (TensorRef input : concat.inputs) {
      const Laid& part = LaidOf(input);
      if (!IsInChain(input) || part.base != head.base) return;
      const int64_t size = part.places.Sizes()[axis];
      for (size_t d = 0; d < joined.base.size(); ++d) {
        const int64_t moved = part.places.first[d] - head.places.first[d];
        if (moved == 0) continue;
        if (along < 0) {
          along = static_cast<int>(d);
          stride = moved / total;
        }
        if (static_cast<int>(d) != along || total == 0 || moved != stride * total) return;
      }
      if (total > 0 && along < 0) return;
      Places rest = part.places;
      const std::vector<Atom> own = rest.dims[axis];
      rest.dims[axis] = head.places.dims[axis];
      rest.first = head.places.first;
      if (!(rest == head.places)) return;
      if (own.size() > 1 || (own.size() == 1 && along >= 0 && own[0].dim != along)) return;
      total += size;
      for (NodeId call : part.calls) {
        if (std::find(calls.begin(), calls.end(), call) == calls.end()) calls.push_back(call);
      }
    }
    for (TensorRef input : concat.inputs) {
      const std::vector<Atom>& own = LaidOf(input).places.dims[axis];
      if (!own.empty() && (own[0].dim != along || own[0].stride != stride)) return;
    }
    joined.dims[axis] = {{along, stride, total}};
    calls.push_back(id);
    *laid = {head.base, std::move(joined), std::move(calls)};
  }

  static int AxisOf(const Operator& op, size_t rank) {
    return NormalizeAxis(op.Int("axis"), static_cast<int>(rank)).value();
  }

  std::vector<int64_t> SizesOf(TensorRef tensor) const {
    std::vector<int64_t> sizes;
    for (const Extent& size : graph_.type(tensor).GlobalShape()) sizes.push_back(size.value());
    return sizes;
  }

  // Adds the calls between a tensor and its base.
  void AddChain(TensorRef tensor, std::vector<NodeId>* calls) const {
    for (NodeId call : LaidOf(tensor).calls) {
      if (std::find(calls->begin(), calls->end(), call) == calls->end()) calls->push_back(call);
    }
  }

  // The calls of a step under construction; equal ones are shared.
  struct Target {
    NodeId first;
    std::vector<AddedCall> calls;
    std::vector<std::string> names;

    TensorRef Add(const Operator& op, std::vector<TensorRef> inputs, const std::string& name) {
      AddedCall call{op, std::move(inputs)};
      const size_t at = std::find(calls.begin(), calls.end(), call) - calls.begin();
      if (at == calls.size()) {
        calls.push_back(std::move(call));
        names.push_back(name);
      }
      return {NodeId{first.value + static_cast<int>(at)}, 0};
    }
    TensorRef Add(const std::vector<LayoutCall>& chain, TensorRef of, const std::string& name) {
      for (const LayoutCall& call : chain) {
        of = Add(call.op, {of}, name);
        of.output = call.output;
      }
      return of;
    }
  };

  bool Try(std::vector<NodeId> nodes, Target target, std::vector<Replacement> replaced) {
    // Topological order.
    const std::vector<NodeId> order = graph_.TopologicalOrder();
    std::vector<int> place(graph_.num_nodes(), 0);
    for (size_t i = 0; i < order.size(); ++i) place[order[i].value] = static_cast<int>(i);
    std::sort(nodes.begin(), nodes.end(),
              [&](NodeId a, NodeId b) { return place[a.value] < place[b.value]; });
    DerivationStep step;
    step.nodes = std::move(nodes);
    step.calls = std::move(target.calls);
    step.replaced = std::move(replaced);
    if (!rewriter_.Try(std::move(step), target.names)) return false;
    for (NodeId id = target.first; id < rewriter_.next_id(); ++id.value) NoteLaid(id);
    return true;
  }

  // Whether operands other than the rows' are equal for all rows.
  bool SaysTheSameToRows(const Node& node, size_t rows) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (i == rows) continue;
      const std::vector<int64_t> sizes = SizesOf(node.inputs[i]);
      if (sizes.size() <= 2) continue;
      if (std::any_of(sizes.begin(), sizes.end() - 1, [](int64_t size) { return size != 1; })) {
        return false;
      }
    }
    return true;
  }

  // Moves a look-up before the transposition of its tensor: x[:, i, j] is exported with the
  // looked-up dims in front.
  bool MoveGather(NodeId id) {
    const Node node = graph_.node(id);
    if (node.op.kind() != OpKind::kGather || keeps_(node.name) || !IsInChain(node.inputs[0]) ||
        graph_.type(node.inputs[1]).rank() != 1) {
      return false;
    }
    const auto& [base, places, calls] = LaidOf(node.inputs[0]);
    const int rank = static_cast<int>(places.dims.size());
    std::vector<int64_t> order;  // of the operand's dims in the base
    for (int i = 0; i < rank; ++i) {
      if (places.dims[i].empty()) return false;
      order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&places = places](int64_t a, int64_t b) {
      const Atom &first = places.dims[a][0], &second = places.dims[b][0];
      return std::pair(first.dim, -first.stride) < std::pair(second.dim, -second.stride);
    });
    if (std::is_sorted(order.begin(), order.end())) return false;
    Places ordered = places;
    std::vector<int64_t> back(rank);
    for (int i = 0; i < rank; ++i) {
      ordered.dims[i] = places.dims[order[i]];
      back[order[i]] = i;
    }
    const int at = AxisOf(node.op, rank);
    Target target{rewriter_.next_id(), {}, {}};
    const TensorRef x = target.Add(CallsOf(ordered), base, node.name);
    const TensorRef made =
        target.Add({OpKind::kGather, {{"axis", back[at]}}}, {x, node.inputs[1]}, node.name);
    const TensorRef to = target.Add({OpKind::kTranspose, {{"perm", back}}}, {made}, node.name);
    std::vector<NodeId> nodes;
    AddChain(node.inputs[0], &nodes);
    nodes.push_back(id);
    return Try(std::move(nodes), std::move(target), {{{id, 0}, to}});
  }

  void MoveRowsOf(NodeId id) {
    const Node node = graph_.node(id);
    if (IsLeaf(node.op.kind()) || node.outputs.size() != 1 || keeps_(node.name)) return;
    const std::vector<int64_t> sizes = SizesOf({id, 0});
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& [base, places, calls] = LaidOf(node.inputs[i]);
      if (!IsInChain(node.inputs[i]) || sizes.empty()) continue;
      const std::vector<int64_t> operand = places.Sizes();
      if (operand.size() != sizes.size() ||
          !std::equal(operand.begin(), operand.end() - 1, sizes.begin()) ||
          !SaysTheSameToRows(node, i)) {
        continue;
      }
      RowsApart apart = WithRowsInOrder(places);
      if (apart.rest.IsIdentity()) continue;
      Target target{rewriter_.next_id(), {}, {}};
      std::vector<TensorRef> inputs = node.inputs;
      inputs[i] = target.Add(CallsOf(apart.rows), base, node.name);
      const TensorRef made = target.Add(node.op, std::move(inputs), node.name);
      apart.rest.base.back() = sizes.back();
      apart.rest.dims.back() = Places::Of(apart.rest.base).dims.back();
      const TensorRef to = target.Add(CallsOf(apart.rest), made, node.name);
      std::vector<NodeId> nodes;
      AddChain(node.inputs[i], &nodes);
      nodes.push_back(id);
      if (Try(std::move(nodes), std::move(target), {{{id, 0}, to}})) return;
    }
  }

  void Shorten(TensorRef base, const std::vector<TensorRef>& tensors) {
    std::vector<NodeId> nodes;
    Target target{rewriter_.next_id(), {}, {}};
    std::vector<Replacement> replaced;
    for (TensorRef tensor : tensors) {
      AddChain(tensor, &nodes);
      const TensorRef to =
          target.Add(CallsOf(LaidOf(tensor).places), base, graph_.node(tensor.node).name);
      replaced.push_back({tensor, to});
    }
    if (target.calls.size() < nodes.size())
      Try(std::move(nodes), std::move(target), std::move(replaced));
  }

  const Keeps& keeps_;
  StatedRewriter& rewriter_;
  const Graph& graph_;
  std::map<TensorRef, Laid> laid_;
};

}  // namespace

void PutLayoutsTogether(const Keeps& keeps, StatedRewriter* rewriter) {
  StatedRewriter moved = *rewriter;
  LayoutPass(keeps, &moved).MoveRows();
  LayoutPass(keeps, &moved).ShortenChains();
  LayoutPass(keeps, rewriter).ShortenChains();
  if (LayoutPass(keeps, &moved).NumCalls() < LayoutPass(keeps, rewriter).NumCalls()) {
    *rewriter = std::move(moved);
  }
}

}  // namespace isomer
