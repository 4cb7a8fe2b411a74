#include "pcg/ir/precision.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/finite_cast.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/states.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// The view of another output of a node: shard i of every output is on the device of shard i of the
// first.
MachineView ViewOfOutput(const MachineView& view, const TensorType& first, const TensorType& type) {
  const std::vector<int64_t> extents = AxisExtents(first);
  const auto device = [&](int64_t shard) {
    int64_t place = view.start;
    for (size_t axis = extents.size(); axis-- > 0; shard /= extents[axis]) {
      const int64_t on_devices = extents[axis] / view.MomentsOfAxis(axis);
      place += view.OffsetOf(axis, shard % extents[axis] % on_devices);
    }
    return place;
  };
  MachineView result = RowMajorView(type);
  result.start = view.start;
  if (!view.moments.empty()) result.moments.assign(result.strides.size(), 1);
  for (size_t axis = 0; axis < result.strides.size(); ++axis) {
    // The stride of a row-major view is how many shards lie between neighbours.
    const int64_t step = result.strides[axis];
    if (step == 0) continue;
    const bool is_dim = static_cast<int>(axis) < type.rank();
    const int64_t extent = is_dim                                  ? type.dims[axis].degree
                           : static_cast<int>(axis) == type.rank() ? type.copies
                                                                   : type.partials;
    // Micro-batch by micro-batch: then it begins at the first device again.
    int64_t on_devices = view.moments.empty() ? extent : 1;
    while (on_devices < extent && device(on_devices * step) != view.start) ++on_devices;
    if (!view.moments.empty()) result.moments[axis] = extent / on_devices;
    result.strides[axis] = on_devices > 1 ? device(step) - view.start : 0;
    const auto offset = [&](int64_t i) { return device(i * step) - view.start; };
    int64_t period = 1;
    while (period < on_devices && offset(period) == period * result.strides[axis]) ++period;
    if (period < on_devices) {
      result.outer.push_back({static_cast<int>(axis), period, offset(period)});
    }
  }
  return result;
}

class PrecisionRewrite {
 public:
  PrecisionRewrite(const Graph& graph, absl::Span<const MachineView> views, absl::string_view loss,
                   DataType precision, absl::Span<const NodeId> recomputed,
                   absl::Span<const NodeId> offloaded, bool training, const Fp8Products& fp8)
      : graph_(graph),
        views_(views),
        loss_(loss),
        low_(precision),
        training_(training),
        fp8_(fp8),
        order_(graph.TopologicalOrder()),
        users_(graph.Users()),
        facts_(graph.num_nodes()),
        tensors_(graph.num_nodes()) {
    recomputed_.old.insert(recomputed.begin(), recomputed.end());
    offloaded_.old.insert(offloaded.begin(), offloaded.end());
    if (training) return;
    for (const State& state : StatesOf(graph)) states_.insert(state.name);
  }

  absl::StatusOr<MappedGraph> Run();

 private:
  // Of a node, and so of all its outputs.
  struct Facts {
    std::set<NodeId> weights = {};  // it does nothing but arrange these
    // Comes from the host as it is: a leaf, or what arranges leaves there.
    HostLeaves on_host = HostLeaves::kOther;
    bool exact = false;    // computed in float32 for the sake of the loss
    bool counted = false;  // made from integers and constants alone
    bool low() const { return on_host == HostLeaves::kOther && !exact && !counted; }
  };
  // What became of a tensor of the old graph.
  struct Tensor {
    TensorRef ref, old;
  };

  void FindNodesOfTheLoss();
  void FindFacts();
  void FindFactsOf(NodeId id, const absl::flat_hash_map<TensorRef, int>& uses);
  // The weights that are stored low: no use of them is in float32.
  void FindLowWeights();
  HostLeaves ArrangedOnHost(const Node& node,
                            const absl::flat_hash_map<TensorRef, int>& uses) const;
  bool IsExact(const Node& node, NodeId id) const;
  bool IsCounted(const Node& node) const;
  absl::Status RewriteNode(NodeId id);
  absl::StatusOr<TensorRef> As(DataType wanted, const Tensor& tensor);
  absl::Status AddLeaf(NodeId id);
  absl::StatusOr<TensorRef> AddCast(Operator cast, const Tensor& from);
  absl::StatusOr<NodeId> AddNode(Operator op, std::vector<TensorRef> inputs,
                                 const std::string& name, const MachineView& view);
  // Of tensors of the old graph.
  const Facts& FactsOf(TensorRef old) const { return facts_[old.node.value]; }
  const Tensor& Now(TensorRef old) const { return tensors_[old.node.value][old.output]; }
  bool IsFloat32(TensorRef old) const { return graph_.type(old).dtype == DataType::kFloat32; }

  const Graph& graph_;
  absl::Span<const MachineView> views_;
  absl::string_view loss_;
  const DataType low_;
  const bool training_;
  const Fp8Products& fp8_;
  const std::vector<NodeId> order_;
  const std::vector<std::vector<Graph::Use>> users_;
  std::vector<bool> leads_to_loss_alone_;     // by node
  std::vector<Facts> facts_;                  // by node
  std::vector<std::vector<Tensor>> tensors_;  // by node and output
  std::map<std::pair<TensorRef, DataType>, TensorRef> casts_;
  // Of weights of the old graph: those used in float32, those that are of one type because the host
  // arranges them together, and those that are stored low.
  std::set<NodeId> used_whole_;
  std::set<std::set<NodeId>> together_;
  std::set<NodeId> low_weights_;
  std::set<std::string> states_;  // names
  // Of the old graph, and of the new one.
  struct Nodes {
    std::set<NodeId> old, now;
  };
  Nodes recomputed_, offloaded_;
  MappedGraph result_;
};

// Nodes whose results go through elementwise arithmetic and reductions to the loss, and nowhere
// else.
void PrecisionRewrite::FindNodesOfTheLoss() {
  std::vector<int> outputs(graph_.num_nodes(), 0), losses = outputs;
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    ++(output.name == loss_ ? losses : outputs)[output.tensor.node.value];
  }
  leads_to_loss_alone_.assign(graph_.num_nodes(), false);
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    const std::vector<Graph::Use>& uses = users_[id->value];
    const bool used = !uses.empty() || losses[id->value] > 0;
    leads_to_loss_alone_[id->value] =
        used && outputs[id->value] == 0 &&
        std::all_of(uses.begin(), uses.end(), [&](const Graph::Use& use) {
          return !IsContraction(graph_.node(use.user).op.kind()) &&
                 !IsLoss(graph_.node(use.user).op.kind()) && leads_to_loss_alone_[use.user.value];
        });
  }
}

// As the lowering finds it (pcg/schedule/lowering/forward.cc).
HostLeaves PrecisionRewrite::ArrangedOnHost(const Node& node,
                                            const absl::flat_hash_map<TensorRef, int>& uses) const {
  HostLeaves leaves = FactsOf(node.inputs[0]).on_host;
  bool integers = true, once = true;
  for (TensorRef input : node.inputs) {
    leaves = Together(leaves, FactsOf(input).on_host, training_);
    integers &= !IsFloat(graph_.type(input).dtype);
    once &= uses.at(input) == 1;
  }
  const bool is_made =
      IsPlacement(node.op.kind()) || IsMadeOnHost(node.op, leaves, integers, once, training_);
  return is_made ? leaves : HostLeaves::kOther;
}

bool PrecisionRewrite::IsExact(const Node& node, NodeId id) const {
  const OpKind kind = node.op.kind();
  if (TraitsOf(kind).needs_float32) return true;
  if (IsReduction(kind) && leads_to_loss_alone_[id.value]) return true;
  if (IsContraction(kind)) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](TensorRef input) { return FactsOf(input).exact; });
}

// Positions, masks: no number in it comes from a weight or an input of floats.
bool PrecisionRewrite::IsCounted(const Node& node) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorRef input) {
    return !IsFloat(graph_.type(input).dtype) || FactsOf(input).counted;
  });
}

void PrecisionRewrite::FindFactsOf(NodeId id, const absl::flat_hash_map<TensorRef, int>& uses) {
  const Node& node = graph_.node(id);
  Facts& facts = facts_[id.value];
  const OpKind kind = node.op.kind();
  if (IsLeaf(kind)) {
    facts.on_host = LeavesOf(kind);
    facts.counted = kind == OpKind::kConstant;
    if (kind == OpKind::kWeight) facts.weights = {id};
    return;
  }
  facts.on_host = ArrangedOnHost(node, uses);
  facts.counted = IsCounted(node);
  const bool on_host = facts.on_host != HostLeaves::kOther;
  facts.exact = !on_host && !facts.counted && IsExact(node, id);
  for (TensorRef input : node.inputs) {
    const std::set<NodeId>& weights = FactsOf(input).weights;
    if (on_host) {
      facts.weights.insert(weights.begin(), weights.end());
    } else if (!facts.low()) {
      used_whole_.insert(weights.begin(), weights.end());
    }
  }
  if (facts.weights.size() > 1) together_.insert(facts.weights);
}

void PrecisionRewrite::FindFacts() {
  absl::flat_hash_map<TensorRef, int> uses;  // by calls and outputs
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    for (TensorRef input : graph_.node({id}).inputs) ++uses[input];
  }
  for (const Graph::NamedOutput& output : graph_.outputs()) ++uses[output.tensor];
  for (NodeId id : order_) FindFactsOf(id, uses);
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    const std::set<NodeId>& weights = FactsOf(output.tensor).weights;
    used_whole_.insert(weights.begin(), weights.end());
  }
}

absl::StatusOr<NodeId> PrecisionRewrite::AddNode(Operator op, std::vector<TensorRef> inputs,
                                                 const std::string& name, const MachineView& view) {
  ISOMER_ASSIGN_OR_RETURN(const NodeId id,
                          result_.graph.Add(std::move(op), std::move(inputs), name));
  result_.views.resize(id.value + 1);
  result_.views[id.value] = view;
  return id;
}

absl::StatusOr<TensorRef> PrecisionRewrite::AddCast(Operator op, const Tensor& from) {
  auto [cast, added] = casts_.try_emplace({from.ref, static_cast<DataType>(op.Int("to"))});
  if (added) {
    const std::string name = result_.graph.node(from.ref.node).name;
    const auto [made_by, output] = from.old;
    const std::vector<TensorType>& made = graph_.node(made_by).outputs;
    const MachineView& view = views_[made_by.value];
    ISOMER_ASSIGN_OR_RETURN(
        const NodeId id, AddNode(std::move(op), {from.ref}, name,
                                 output == 0 ? view : ViewOfOutput(view, made[0], made[output])));
    cast->second = {id, 0};
    for (Nodes* nodes : {&recomputed_, &offloaded_}) {
      if (nodes->now.contains(from.ref.node)) nodes->now.insert(id);
    }
  }
  return cast->second;
}

// The tensor in another float type; one cast serves all its users. What is made from integers and
// constants alone may hide others by the lowest number; in inference, where nothing is
// differentiated, so may what comes from the host: of an ONNX file such a number is a weight.
absl::StatusOr<TensorRef> PrecisionRewrite::As(DataType wanted, const Tensor& tensor) {
  const TensorType& type = result_.graph.type(tensor.ref);
  if (type.dtype == wanted) return tensor.ref;
  const Facts& facts = FactsOf(tensor.old);
  const bool is_set = facts.counted || (!training_ && facts.on_host != HostLeaves::kOther);
  const bool stays_finite = is_set && wanted == low_ && type.partials == 1;
  return AddCast(stays_finite ? FiniteCast(low_)
                              : Operator(OpKind::kCast, {{"to", static_cast<int64_t>(wanted)}}),
                 tensor);
}

absl::Status PrecisionRewrite::RewriteNode(NodeId id) {
  const Node& node = graph_.node(id);
  const OpKind kind = node.op.kind();
  const Facts& facts = facts_[id.value];
  const bool low = facts.low();
  std::vector<TensorRef> inputs;
  for (TensorRef input : node.inputs) {
    const bool is_table =
        IsLookUp(kind) && inputs.empty() && FactsOf(input).on_host != HostLeaves::kOther;
    // Tensors that the model has in other types stay as they are.
    const bool converts = (low || facts.exact) && !is_table && IsFloat32(input);
    ISOMER_ASSIGN_OR_RETURN(inputs.emplace_back(),
                            converts ? As(low ? low_ : DataType::kFloat32, Now(input))
                                     : absl::StatusOr<TensorRef>(Now(input).ref));
  }
  Operator op = node.op;
  if (low && kind == OpKind::kCast && IsFloat32({id, 0})) {
    op.Set("to", static_cast<int64_t>(low_));
  }
  if (low) op = WithFp8(std::move(op), ScalingOfProduct(graph_, id, fp8_));
  ISOMER_ASSIGN_OR_RETURN(const NodeId added,
                          AddNode(std::move(op), std::move(inputs), node.name, views_[id.value]));
  for (Nodes* nodes : {&recomputed_, &offloaded_}) {
    if (nodes->old.contains(id)) nodes->now.insert(added);
  }
  for (int32_t t = 0; t < static_cast<int32_t>(node.outputs.size()); ++t) {
    Tensor result{.ref = {added, t}, .old = {id, t}};
    if (low && IsFloat32({id, t}) && !IsStatistic(kind, t)) {
      ISOMER_ASSIGN_OR_RETURN(result.ref, As(low_, result));  // What a look-up found.
    }
    tensors_[id.value].push_back(result);
  }
  return absl::OkStatus();
}

absl::Status PrecisionRewrite::AddLeaf(NodeId id) {
  const Node& node = graph_.node(id);
  const OpKind kind = node.op.kind();
  TensorType type = node.outputs[0];
  const bool is_state = kind == OpKind::kInput && states_.contains(node.name);
  // From step to step as its users want it.
  if (is_state && type.dtype == DataType::kFloat32) type.dtype = low_;
  const TensorRef leaf = result_.graph.AddLeaf(kind, node.name, type);
  result_.views.resize(leaf.node.value + 1);
  result_.views[leaf.node.value] = views_[id.value];
  Tensor tensor{.ref = leaf, .old = {id, 0}};
  if (low_weights_.contains(id)) {
    ISOMER_ASSIGN_OR_RETURN(tensor.ref, As(low_, tensor));
  }
  tensors_[id.value].push_back(tensor);
  return absl::OkStatus();
}

void PrecisionRewrite::FindLowWeights() {
  if (!training_ || loss_.empty()) return;
  const auto is_used_whole = [this](NodeId id) { return used_whole_.contains(id); };
  for (size_t before = 0; before != used_whole_.size();) {
    before = used_whole_.size();
    for (const std::set<NodeId>& weights : together_) {
      if (std::none_of(weights.begin(), weights.end(), is_used_whole)) continue;
      used_whole_.insert(weights.begin(), weights.end());
    }
  }
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    const bool is_weight = graph_.node({id}).op.kind() == OpKind::kWeight;
    if (is_weight && IsFloat32({{id}, 0}) && !is_used_whole({id})) low_weights_.insert({id});
  }
}

absl::StatusOr<MappedGraph> PrecisionRewrite::Run() {
  FindNodesOfTheLoss();
  FindFacts();
  FindLowWeights();
  for (NodeId id : order_) {
    ISOMER_RETURN_IF_ERROR(IsLeaf(graph_.node(id).op.kind()) ? AddLeaf(id) : RewriteNode(id));
  }
  for (const Graph::NamedOutput& output : graph_.outputs()) {
    TensorRef tensor = Now(output.tensor).ref;
    if (IsFloat32(output.tensor)) {
      const DataType dtype = states_.contains(output.name) ? low_ : DataType::kFloat32;
      ISOMER_ASSIGN_OR_RETURN(tensor, As(dtype, Now(output.tensor)));
    }
    result_.graph.AddOutput(output.name, tensor);
  }
  ISOMER_RETURN_IF_ERROR(result_.graph.Validate());
  result_.recomputed.assign(recomputed_.now.begin(), recomputed_.now.end());
  result_.offloaded.assign(offloaded_.now.begin(), offloaded_.now.end());
  return std::move(result_);
}

}  // namespace

absl::string_view PrecisionName(DataType precision) {
  switch (precision) {
    case DataType::kBFloat16:
      return "bfloat16";
    case DataType::kFloat16:
      return "float16";
    default:
      return "float32";
  }
}

absl::StatusOr<DataType> ParsePrecision(absl::string_view name) {
  for (DataType dtype : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    if (name == PrecisionName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("precision '", name, "': there are float32, bfloat16 and float16"));
}

absl::StatusOr<std::pair<DataType, Fp8Products>> ParsePlanPrecision(absl::string_view name) {
  if (name == kFp8Precision) {
    return std::pair(DataType::kBFloat16, Fp8Products{.scaling = Fp8Scaling::kTensor});
  }
  const absl::StatusOr<DataType> dtype = ParsePrecision(name);
  if (dtype.ok()) return std::pair(*dtype, Fp8Products());
  return absl::InvalidArgumentError(
      absl::StrCat("precision '", name, "': there are float32, bfloat16, float16 and fp8"));
}

DataType LowGradientSums(DataType precision) {
  return precision == DataType::kFloat32 ? DataType::kBFloat16 : precision;
}

double LossScale(DataType precision) { return precision == DataType::kFloat16 ? 1024 : 1; }

double UnitRoundoff(DataType precision) {
  switch (precision) {
    case DataType::kBFloat16:
      return 0x1p-8;
    case DataType::kFloat16:
      return 0x1p-11;
    default:
      return 0x1p-24;
  }
}

double SmallestPositive(DataType precision) {
  return precision == DataType::kFloat16 ? 0x1p-24 : 0;
}

absl::StatusOr<MappedGraph> ApplyPrecision(const Graph& graph, absl::Span<const MachineView> views,
                                           absl::string_view loss, DataType precision,
                                           absl::Span<const NodeId> recomputed, bool training,
                                           const Fp8Products& fp8,
                                           absl::Span<const NodeId> offloaded) {
  ISOMER_RETURN_IF_ERROR(CheckFp8Products(fp8, precision));
  if (precision == DataType::kFloat32) {
    return MappedGraph{graph,
                       {views.begin(), views.end()},
                       {recomputed.begin(), recomputed.end()},
                       {offloaded.begin(), offloaded.end()}};
  }
  return PrecisionRewrite(graph, views, loss, precision, recomputed, offloaded, training, fp8)
      .Run();
}

absl::StatusOr<MappedGraph> InPrecisionOf(const Plan& plan, const Graph& graph,
                                          absl::Span<const MachineView> views) {
  return ApplyPrecision(graph, views, plan.model.loss, plan.precision, plan.recomputed,
                        plan.mode == "training", plan.fp8, plan.offloaded);
}

}  // namespace isomer
