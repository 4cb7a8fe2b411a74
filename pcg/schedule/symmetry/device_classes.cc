#include "pcg/schedule/symmetry/device_classes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

int64_t SmallestPrimeFactor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

class ClassFinder {
 public:
  ClassFinder(const Plan& plan, const ClassOptions& options)
      : plan_(plan), graph_(plan.graph), options_(options) {}

  std::optional<DeviceClasses> Run() {
    if (!FindDigits() || !KeepDigitsOfHalos()) return std::nullopt;
    for (size_t k = 0; k + 1 < weights_.size(); ++k) {
      const int64_t radix = weights_[k + 1] / weights_[k];
      classes_.radix.push_back(radix);
      classes_.reduced_radix.push_back(kept_[k] ? radix : SmallestPrimeFactor(radix));
    }
    const std::vector<int64_t> least = classes_.reduced_radix;
    // Digits only grow: this ends.
    while (!Build()) {
      if (!options_.widen || !Widen()) return std::nullopt;
    }
    if (classes_.reduced_radix != least) Narrow(least);
    classes_.node = options_.node;
    bool some_alike = false;
    for (size_t k = 0; k < least.size(); ++k) {
      const bool is_cut = classes_.reduced_radix[k] != classes_.radix[k];
      classes_.alike.push_back(is_cut || (options_.uncut_alike && !kept_[k]));
      some_alike |= classes_.alike[k];
    }
    if (!some_alike && options_.moments == options_.represented) return std::nullopt;
    return std::move(classes_);
  }

 private:
  // How many devices each axis of a node's view walks over.
  std::vector<int64_t> DevicesOfAxes(int id) const {
    std::vector<int64_t> extents = AxisExtents(graph_.node(id).outputs[0]);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      extents[axis] /= plan_.views[id].MomentsOfAxis(axis);
    }
    return extents;
  }

  // The weights of digits: where some axis begins or ends, each a multiple of the one before.
  bool FindDigits() {
    std::set<int64_t> weights = {1, plan_.num_devices};
    for (const MachineView& view : plan_.views) {
      if (view.start < 0) return false;
      stage_ = std::gcd(stage_, view.start);
    }
    if (options_.alike > 0) stage_ = std::gcd(stage_, options_.alike);
    if (stage_ > 0) weights.insert(stage_);
    for (int64_t weight : {options_.whole, options_.node}) {
      if (plan_.num_devices % weight == 0) weights.insert(weight);
    }
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const MachineView& view = plan_.views[id];
      const std::vector<int64_t> extents = DevicesOfAxes(id);
      for (size_t axis = 0; axis < extents.size(); ++axis) {
        for (const ViewDigit& digit : view.DigitsOf(axis, extents[axis])) {
          if (digit.stride < 1) return false;
          weights.insert(digit.stride);
          weights.insert(digit.stride * digit.extent);
        }
      }
    }
    weights_.assign(weights.begin(), weights.end());
    for (size_t k = 0; k + 1 < weights_.size(); ++k) {
      if (weights_[k + 1] % weights_[k] != 0) return false;
    }
    kept_.assign(weights_.size() - 1, false);
    for (size_t k = 0; k < kept_.size(); ++k) {
      kept_[k] = (stage_ > 0 && weights_[k] >= stage_) || weights_[k] < options_.whole;
    }
    return weights_.back() == plan_.num_devices;
  }

  void KeepDigitsOfAxis(int node, int axis) {
    for (size_t k = 0; k + 1 < weights_.size(); ++k) {
      if (HasDigit({node, axis}, k)) kept_[k] = true;
    }
  }

  bool KeepDigitsOfHalos() {
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
      std::vector<TensorType> types;
      bool split = false;  // in a dim: else there is no halo
      for (TensorRef input : node.inputs) {
        types.push_back(graph_.type(input));
        for (const Dim& dim : types.back().dims) split |= dim.degree > 1;
      }
      if (!split) continue;
      const absl::StatusOr<Sharding> sharding = InferSharding(node.op, types);
      if (!sharding.ok()) return false;
      const Declaration& d = sharding->declaration;
      for (int o = 0; o < static_cast<int>(types.size()); ++o) {
        for (int i = 0; i < types[o].rank(); ++i) {
          if (types[o].dims[i].degree == 1 || !d.HasHalo(o, i)) continue;
          if (node.inputs[o].output != 0) return false;
          KeepDigitsOfAxis(node.inputs[o].node.value, i);
          const int lead = d.LeadOfOperandDim(o, i);
          for (int j = 0; j < node.outputs[0].rank(); ++j) {
            if (d.LeadOfOutputDim(0, j) == lead) KeepDigitsOfAxis(id, j);
          }
        }
      }
    }
    return true;
  }

  // The product of the reduced radices of digits that weigh from `first` to below `last`.
  int64_t Reduced(int64_t first, int64_t last) const {
    int64_t product = 1;
    for (size_t k = 0; k + 1 < weights_.size(); ++k) {
      if (weights_[k] >= first && weights_[k + 1] <= last) product *= classes_.reduced_radix[k];
    }
    return product;
  }

  // The plan on fewer devices; false if degrees of a node, mismatch_, do not come out as its view
  // says.
  bool Build() {
    // All fields by name, so that one that is added does not compile before it is known here: what
    // says how a plan runs is the same for the classes.
    const auto& [model, mode, precision, fp8, update, machine, num_devices, rules_digest, steps,
                 graph, views, recomputed, offloaded, spread_branches, zero_bubble,
                 predicted_step_us, predicted_peak_bytes, peak_flops, seal] = plan_;
    classes_.plan = Plan();
    Plan& reduced = classes_.plan;
    reduced.model.loss = model.loss;
    reduced.mode = mode;
    reduced.precision = precision;
    reduced.fp8 = fp8;
    reduced.update = update;
    reduced.recomputed = recomputed;
    reduced.offloaded = offloaded;
    reduced.spread_branches = spread_branches;
    reduced.zero_bubble = zero_bubble;
    for (int64_t radix : classes_.reduced_radix) reduced.num_devices *= radix;
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      mismatch_ = {};
      if (!AddNode(id)) return false;
    }
    for (const Graph::NamedOutput& output : graph_.outputs()) {
      reduced.graph.AddOutput(output.name, output.tensor);
    }
    return true;
  }

  struct AxisOfNode {
    int node = -1;
    int axis = 0;
  };

  // An axis that has too few shards here beside another, or for what its view says.
  struct Mismatch {
    AxisOfNode small = {}, large = {};
  };

  bool HasDigit(const AxisOfNode& of, size_t k) const {
    const int64_t extent = DevicesOfAxes(of.node)[of.axis];
    const auto digits = plan_.views[of.node].DigitsOf(of.axis, extent);
    return std::any_of(digits.begin(), digits.end(), [&](const ViewDigit& digit) {
      return weights_[k] >= digit.stride && weights_[k + 1] <= digit.stride * digit.extent;
    });
  }

  // A digit of the axis that fell short gets more values; rather one that the axis it is compared
  // with does not walk over, too. False if none can.
  bool Widen() {
    if (mismatch_.small.node < 0) return false;
    size_t widest = weights_.size();
    std::pair<bool, int64_t> most = {false, 1};
    for (size_t k = 0; k + 1 < weights_.size(); ++k) {
      if (!HasDigit(mismatch_.small, k)) continue;
      const int64_t left = classes_.radix[k] / classes_.reduced_radix[k];
      const bool apart = mismatch_.large.node < 0 || !HasDigit(mismatch_.large, k);
      if (left == 1 || std::pair(apart, left) <= most) continue;
      most = {apart, left};
      widest = k;
    }
    if (widest == weights_.size()) return false;
    classes_.reduced_radix[widest] *= SmallestPrimeFactor(most.second);
    return true;
  }

  // Of several digits that an axis walks over, those that were widened first may no longer need it.
  void Narrow(const std::vector<int64_t>& least) {
    bool is_built = true;
    for (size_t k = 0; k < least.size(); ++k) {
      const int64_t widened = classes_.reduced_radix[k];
      int64_t& radix = classes_.reduced_radix[k];
      for (radix = least[k]; radix < widened; radix *= SmallestPrimeFactor(widened / radix)) {
        is_built = Build();
        if (is_built) break;
      }
    }
    if (!is_built) Build();
  }

  // Axes of operands that are as long as each other in the plan, and not here.
  void FindMismatchOfOperands(int id) {
    std::vector<AxisOfNode> axes;
    for (TensorRef input : graph_.node({id}).inputs) {
      if (input.output != 0) continue;
      const auto count = static_cast<int>(plan_.views[input.node.value].strides.size());
      for (int axis = 0; axis < count; ++axis) axes.push_back({input.node.value, axis});
    }
    const auto in_plan = [&](const AxisOfNode& a) {
      return AxisExtents(graph_.node({a.node}).outputs[0])[a.axis];
    };
    const auto here = [&](const AxisOfNode& a) {
      return AxisExtents(classes_.plan.graph.node({a.node}).outputs[0])[a.axis];
    };
    for (const AxisOfNode& small : axes) {
      for (const AxisOfNode& large : axes) {
        if (in_plan(small) != in_plan(large) || here(small) >= here(large)) continue;
        mismatch_ = {small, large};
        return;
      }
    }
  }

  // Of a node whose outputs have other degrees than its view asks for, `reduced`.
  void FindMismatch(int id, const std::vector<int64_t>& reduced) {
    const std::vector<int64_t> in_plan = AxisExtents(graph_.node({id}).outputs[0]);
    const std::vector<int64_t> here = AxisExtents(classes_.plan.graph.node({id}).outputs[0]);
    for (int axis = 0; axis < static_cast<int>(reduced.size()); ++axis) {
      if (here[axis] == reduced[axis]) continue;
      if (here[axis] > reduced[axis]) {
        mismatch_ = {.small = {id, axis}};
        return;
      }
      for (TensorRef input : graph_.node({id}).inputs) {
        if (input.output != 0) continue;
        const Node& operand = graph_.node(input.node);
        const std::vector<int64_t> extents = AxisExtents(operand.outputs[0]);
        const std::vector<int64_t> extents_here = AxisExtents(classes_.plan.graph.type(input));
        for (int a = 0; a < static_cast<int>(extents.size()); ++a) {
          if (extents[a] != in_plan[axis] || extents_here[a] != here[axis]) continue;
          mismatch_ = {{input.node.value, a}, {id, axis}};
          return;
        }
      }
    }
  }

  // The node on fewer devices; false if its degrees do not come out as its view says.
  bool AddNode(int id) {
    const Node& node = graph_.node(id);
    Graph& graph = classes_.plan.graph;
    const std::vector<int64_t> extents = DevicesOfAxes(id);
    std::vector<int64_t> reduced(extents.size(), 1);
    MachineView view;
    view.strides.assign(extents.size(), 0);
    view.moments = plan_.views[id].moments;
    if (!HasFewerMoments(&view)) return false;
    if (stage_ > 0) view.start = plan_.views[id].start / stage_ * Reduced(1, stage_);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      reduced[axis] = view.MomentsOfAxis(axis);  // as represented
      if (extents[axis] == 1) continue;
      const auto digits = plan_.views[id].DigitsOf(axis, extents[axis]);
      view.strides[axis] = Reduced(1, digits[0].stride);
      for (const ViewDigit& digit : digits) {
        const int64_t extent = Reduced(digit.stride, digit.stride * digit.extent);
        reduced[axis] *= extent;
        if (digits.size() == 1) continue;
        if (&digit == digits.begin()) {
          view.outer.push_back({static_cast<int>(axis), extent, Reduced(1, digits[1].stride)});
        }
      }
    }
    classes_.plan.views.push_back(std::move(view));
    const OpKind kind = node.op.kind();
    if (IsLeaf(kind)) {
      if (node.outputs[0].IsParallel()) return false;
      graph.AddLeaf(kind, node.name, node.outputs[0]);
      return true;
    }
    for (TensorRef input : node.inputs) {
      if (input.node.value >= id) return false;  // not in topological order
    }
    Operator op = node.op;
    if (IsParallel(kind) && kind != OpKind::kConcatPartials) {
      const std::optional<int64_t> degree = ReducedDegree(id, graph.type(node.inputs[0]), reduced);
      if (!degree.has_value()) return false;
      op.Set("degree", *degree);
    }
    const absl::StatusOr<NodeId> added = graph.Add(std::move(op), node.inputs, node.name);
    if (!added.ok()) {
      FindMismatchOfOperands(id);
      return false;
    }
    if (AxisExtents(graph.node(*added).outputs[0]) == reduced) return true;
    FindMismatch(id, reduced);
    return false;
  }

  // False if micro-batches are of several axes.
  bool HasFewerMoments(MachineView* view) const {
    if (options_.moments == options_.represented) return true;
    for (int64_t& moments : view->moments) {
      if (moments == options_.moments) moments = options_.represented;
    }
    const int64_t now = NumMoments(*view);
    return now == 1 || now == options_.represented;
  }

  std::optional<int64_t> ReducedDegree(int id, const TensorType& operand,
                                       const std::vector<int64_t>& reduced) {
    const Operator& op = graph_.node({id}).op;
    const int rank = operand.rank();
    const bool has_axis = op.kind() == OpKind::kPartition || op.kind() == OpKind::kCombine;
    if (!has_axis && op.kind() != OpKind::kReplicate && op.kind() != OpKind::kReduce) {
      return std::nullopt;  // sequences of micro-batches
    }
    int axis = op.kind() == OpKind::kReplicate ? rank : rank + 1;
    if (has_axis) {
      const absl::StatusOr<int> from_front = NormalizeAxis(op.Int("axis"), rank);
      if (!from_front.ok()) return std::nullopt;
      axis = *from_front;
    }
    const bool grows = op.kind() == OpKind::kPartition || op.kind() == OpKind::kReplicate;
    const int64_t before = AxisExtents(operand)[axis], after = reduced[axis];
    const int64_t large = grows ? after : before, small = grows ? before : after;
    if (large > small && large % small == 0) return large / small;
    const AxisOfNode of_node = {id, axis},
                     of_operand = {graph_.node({id}).inputs[0].node.value, axis};
    mismatch_ = grows ? Mismatch{of_node, of_operand} : Mismatch{of_operand, of_node};
    return std::nullopt;
  }

  const Plan& plan_;
  const Graph& graph_;
  const ClassOptions& options_;
  int64_t stage_ = 0;             // every view starts at a multiple of it; 0: all at device 0
  std::vector<int64_t> weights_;  // of digits, ascending, and the number of devices
  std::vector<bool> kept_;        // per digit
  Mismatch mismatch_;
  DeviceClasses classes_;
};

}  // namespace

int64_t DeviceClasses::ClassOf(int64_t device) const {
  int64_t result = 0, weight = 1;
  for (size_t k = 0; k < radix.size(); ++k) {
    result += std::min(device % radix[k], reduced_radix[k] - 1) * weight;
    device /= radix[k];
    weight *= reduced_radix[k];
  }
  return result;
}

int64_t DeviceClasses::DeviceOf(int64_t reduced) const {
  int64_t result = 0, weight = 1;
  for (size_t k = 0; k < radix.size(); ++k) {
    result += reduced % reduced_radix[k] * weight;
    reduced /= reduced_radix[k];
    weight *= radix[k];
  }
  return result;
}

std::optional<DeviceClasses> ClassesOfDevices(const Plan& plan, const ClassOptions& options) {
  return ClassFinder(plan, options).Run();
}

}  // namespace isomer
