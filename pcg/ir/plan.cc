#include "pcg/ir/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/derivation_proto.h"
#include "pcg/ir/pcg.pb.h"
#include "pcg/ir/precision.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

void ToProto(const Attribute& attribute, proto::AttributeProto* message) {
  message->set_name(attribute.name);
  if (auto* i = std::get_if<int64_t>(&attribute.value)) {
    message->set_integer(*i);
  } else if (auto* d = std::get_if<double>(&attribute.value)) {
    message->set_number(*d);
  } else if (auto* list = std::get_if<std::vector<int64_t>>(&attribute.value)) {
    message->mutable_integers();  // There even if the list is empty.
    for (int64_t value : *list) message->mutable_integers()->add_values(value);
  } else {
    message->mutable_integers();
    for (const Extent& value : std::get<std::vector<Extent>>(attribute.value)) {
      message->mutable_integers()->add_values(value.value());
    }
  }
}

AttributeValue FromProto(const proto::AttributeProto& message) {
  switch (message.value_case()) {
    case proto::AttributeProto::kNumber:
      return message.number();
    case proto::AttributeProto::kIntegers:
      return std::vector<int64_t>(message.integers().values().begin(),
                                  message.integers().values().end());
    default:
      return message.integer();
  }
}

void ToProto(TensorRef ref, proto::TensorRefProto* message) {
  message->set_node(ref.node.value);
  message->set_output(ref.output);
}

TensorRef FromProto(const proto::TensorRefProto& message) {
  return {NodeId{message.node()}, message.output()};
}

void ToProto(const TensorType& type, proto::TensorTypeProto* message) {
  message->set_dtype(std::string(DataTypeName(type.dtype)));
  for (const Dim& dim : type.dims) {
    message->add_dims()->set_size(dim.size);
    message->mutable_dims()->rbegin()->set_degree(dim.degree);
  }
  message->set_copies(type.copies);
  message->set_partials(type.partials);
  message->set_micro_batches(type.micro_batches);
}

absl::StatusOr<TensorType> FromProto(const proto::TensorTypeProto& message) {
  TensorType type;
  ISOMER_ASSIGN_OR_RETURN(type.dtype, ParseDataType(message.dtype()));
  for (const auto& dim : message.dims()) type.dims.push_back({dim.size(), dim.degree()});
  type.copies = message.copies();
  type.partials = message.partials();
  type.micro_batches = message.micro_batches();
  ISOMER_RETURN_IF_ERROR(ValidateTensorType(type));
  return type;
}

// Of a node or a call.
template <typename Message>
absl::StatusOr<Operator> OperatorFromProto(const Message& message) {
  ISOMER_ASSIGN_OR_RETURN(const OpKind kind, ParseOpKind(message.op()));
  Operator op(kind);
  for (const auto& attribute : message.attributes()) {
    if (attribute.name() == kFp8Attribute) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", op.name(), " has no attribute '", kFp8Attribute,
                       "': a plan says which products are in 8 bits"));
    }
    op.Set(attribute.name(), FromProto(attribute));
  }
  return op;
}

template <typename Message>
void ToProto(const Operator& op, Message* message) {
  message->set_op(std::string(op.name()));
  for (const Attribute& attribute : op.attributes()) ToProto(attribute, message->add_attributes());
}

absl::StatusOr<Node> FromProto(const proto::NodeProto& message) {
  Node node;
  ISOMER_ASSIGN_OR_RETURN(node.op, OperatorFromProto(message));
  for (const auto& input : message.inputs()) node.inputs.push_back(FromProto(input));
  for (const auto& output : message.outputs()) {
    ISOMER_ASSIGN_OR_RETURN(TensorType type, FromProto(output));
    node.outputs.push_back(std::move(type));
  }
  node.name = message.name();
  return node;
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace

void ToProto(const DerivationStep& step, proto::DerivationStepProto* message) {
  message->set_rule(step.rule);
  for (NodeId id : step.nodes) message->add_nodes(id.value);
  for (TensorRef ref : step.inputs) ToProto(ref, message->add_inputs());
  message->mutable_variables()->insert(step.variables.begin(), step.variables.end());
  message->mutable_numbers()->insert(step.numbers.begin(), step.numbers.end());
  for (const auto& [name, value] : step.attributes)
    ToProto(Attribute{name, value}, message->add_attributes());
  for (const AddedCall& call : step.calls) {
    proto::CallProto* out = message->add_calls();
    ToProto(call.op, out);
    for (TensorRef input : call.inputs) ToProto(input, out->add_inputs());
  }
  for (const auto& [from, to] : step.replaced) {
    proto::ReplacementProto* out = message->add_replaced();
    ToProto(from, out->mutable_from());
    ToProto(to, out->mutable_to());
  }
}

absl::StatusOr<DerivationStep> FromProto(const proto::DerivationStepProto& message) {
  DerivationStep step;
  step.rule = message.rule();
  for (int32_t id : message.nodes()) step.nodes.push_back({id});
  for (const auto& ref : message.inputs()) step.inputs.push_back(FromProto(ref));
  step.variables.insert(message.variables().begin(), message.variables().end());
  step.numbers.insert(message.numbers().begin(), message.numbers().end());
  for (const auto& attribute : message.attributes())
    step.attributes[attribute.name()] = FromProto(attribute);
  for (const auto& call : message.calls()) {
    ISOMER_ASSIGN_OR_RETURN(Operator op, OperatorFromProto(call));
    step.calls.push_back({std::move(op), {}});
    for (const auto& ref : call.inputs()) step.calls.back().inputs.push_back(FromProto(ref));
  }
  for (const auto& replaced : message.replaced()) {
    step.replaced.push_back({FromProto(replaced.from()), FromProto(replaced.to())});
  }
  return step;
}

void ToProto(const Graph& graph, proto::GraphProto* message) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    proto::NodeProto* out = message->add_nodes();
    ToProto(node.op, out);
    for (TensorRef input : node.inputs) ToProto(input, out->add_inputs());
    for (const TensorType& type : node.outputs) ToProto(type, out->add_outputs());
    out->set_name(node.name);
  }
  for (const Graph::NamedOutput& output : graph.outputs()) {
    proto::OutputProto* out = message->add_outputs();
    out->set_name(output.name);
    ToProto(output.tensor, out->mutable_tensor());
  }
}

absl::StatusOr<Graph> FromProto(const proto::GraphProto& message) {
  std::vector<Node> nodes;
  for (const auto& node : message.nodes()) {
    absl::StatusOr<Node> parsed = FromProto(node);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("node %", nodes.size(), " '", node.name(),
                                                     "': ", parsed.status().message()));
    }
    nodes.push_back(*std::move(parsed));
  }
  std::vector<Graph::NamedOutput> outputs;
  for (const auto& output : message.outputs())
    outputs.push_back({output.name(), FromProto(output.tensor())});
  return GraphFromParts(std::move(nodes), std::move(outputs));
}

namespace {

void ToProto(const FileRange& range, proto::FileRangeProto* message) {
  message->set_path(range.path);
  message->set_file_bytes(range.file_bytes);
  message->set_offset(range.offset);
  message->set_dtype(std::string(DataTypeName(range.dtype)));
  message->set_elements(range.elements);
}

absl::StatusOr<StoredValues> FromProto(const proto::FileRangeProto& message) {
  FileRange range = {.path = message.path(),
                     .file_bytes = message.file_bytes(),
                     .offset = message.offset(),
                     .elements = message.elements()};
  ISOMER_ASSIGN_OR_RETURN(range.dtype, ParseDataType(message.dtype()));
  return StoredValues::InFile(std::move(range));
}

absl::StatusOr<StoredValues> ValuesOf(const proto::WeightProto& weight, const Node& node) {
  if (!weight.has_file()) {
    return StoredValues(std::vector<float>(weight.values().begin(), weight.values().end()));
  }
  // What a constant is, rewrites may rest on.
  if (node.op.kind() != OpKind::kWeight || weight.values_size() > 0) {
    return absl::InvalidArgumentError("only values of what is trained may lie in a file");
  }
  return FromProto(weight.file());
}

}  // namespace

void ToProto(const Model& model, proto::ModelProto* message) {
  message->set_name(model.name);
  ToProto(model.graph, message->mutable_graph());
  for (const auto& [name, values] : model.weights) {
    proto::WeightProto* weight = message->add_weights();
    weight->set_name(name);
    if (values.file() != nullptr) {
      ToProto(*values.file(), weight->mutable_file());
    } else {
      weight->mutable_values()->Add(values.begin(), values.end());
    }
  }
  message->set_loss(model.loss);
  for (const std::string& assumption : model.assumptions) message->add_assumptions(assumption);
  for (const BatchStatistics& of : model.statistics) {
    proto::BatchStatisticsProto* statistics = message->add_statistics();
    statistics->set_scale(of.scale);
    statistics->set_mean(of.mean);
    statistics->set_variance(of.variance);
    statistics->set_momentum(of.momentum);
  }
}

namespace {

// What is wrong with them; "" if nothing is. `stored`: the leaves with values, by name.
std::string ProblemOf(const BatchStatistics& statistics,
                      const std::map<std::string, const Node*>& stored) {
  const auto scale = stored.find(statistics.scale);
  if (scale == stored.end()) return "the graph has no such leaf";
  for (const std::string* name : {&statistics.mean, &statistics.variance}) {
    const auto found = stored.find(*name);
    if (found == stored.end() || found->second->op.kind() != OpKind::kConstant ||
        found->second->outputs[0].Sizes() != scale->second->outputs[0].Sizes()) {
      return absl::StrCat("'", *name, "' is no constant of its channels");
    }
  }
  if (statistics.mean == statistics.variance) return "mean and variance are one";
  if (!(statistics.momentum >= 0 && statistics.momentum <= 1)) {
    return absl::StrCat("momentum ", statistics.momentum, " is not in [0, 1]");
  }
  return "";
}

}  // namespace

absl::StatusOr<Model> FromProto(const proto::ModelProto& message) {
  Model model;
  model.name = message.name();
  model.loss = message.loss();
  for (const std::string& assumption : message.assumptions()) {
    // They are shown to people, who are not to take them for anything else.
    if (assumption.empty() || !std::all_of(assumption.begin(), assumption.end(),
                                           [](char c) { return absl::ascii_isprint(c); })) {
      return absl::InvalidArgumentError("an assumption of the model is no line of printable text");
    }
    model.assumptions.push_back(assumption);
  }
  ISOMER_ASSIGN_OR_RETURN(model.graph, FromProto(message.graph()));
  std::map<std::string, const Node*> stored;
  for (int id = 0; id < model.graph.num_nodes(); ++id) {
    const Node& node = model.graph.node(id);
    if (IsStored(node.op.kind())) stored[node.name] = &node;
  }
  for (const auto& weight : message.weights()) {
    const auto found = stored.find(weight.name());
    if (found == stored.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("values for weight '", weight.name(), "', which the graph does not have"));
    }
    absl::StatusOr<StoredValues> values = ValuesOf(weight, *found->second);
    if (!values.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight '", weight.name(), "': ", values.status().message()));
    }
    const int64_t elements = found->second->outputs[0].NumElements();
    if (elements != static_cast<int64_t>(values->size())) {
      return absl::InvalidArgumentError(absl::StrCat("weight '", weight.name(), "' has ",
                                                     values->size(), " values, not ", elements));
    }
    model.weights[weight.name()] = *std::move(values);
  }
  std::set<std::string> scales;
  for (const auto& of : message.statistics()) {
    model.statistics.push_back({of.scale(), of.mean(), of.variance(), of.momentum()});
    std::string problem = ProblemOf(model.statistics.back(), stored);
    if (!scales.insert(of.scale()).second) problem = "there are two of it";
    if (problem.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("batch statistics of '", of.scale(), "': ", problem));
  }
  bool has_loss = model.loss.empty();
  for (const Graph::NamedOutput& output : model.graph.outputs()) {
    has_loss |= output.name == model.loss && model.graph.type(output.tensor).NumElements() == 1;
  }
  if (!has_loss)
    return absl::InvalidArgumentError(
        absl::StrCat("the loss '", model.loss, "' is not a scalar output"));
  return model;
}

namespace {

// Writes what is not the default.
void ToProto(const UpdateOptions& update, proto::UpdateProto* message) {
  const UpdateOptions defaults;
  if (update.optimizer != defaults.optimizer) {
    message->set_optimizer(OptimizerName(update.optimizer));
  }
  if (update.method != defaults.method) message->set_method(UpdateMethodName(update.method));
  for (const auto& [weight, method] : update.methods) {
    (*message->mutable_methods())[weight] = UpdateMethodName(method);
  }
  if (update.bucket_bytes != defaults.bucket_bytes) {
    message->set_bucket_bytes(update.bucket_bytes);
  }
  for (const std::string& weight : update.bucket_ends) message->add_bucket_ends(weight);
  if (update.eager_sums) message->set_eager_sums(true);
  if (update.immediate) message->set_immediate(true);
  if (update.states_on_host) message->set_states_on_host(true);
  if (update.gradient_sums != defaults.gradient_sums) {
    message->set_gradient_sums(std::string(PrecisionName(update.gradient_sums)));
  }
  if (update.state_precision != defaults.state_precision) {
    message->set_state_precision(std::string(PrecisionName(update.state_precision)));
  }
  if (update.clips) message->set_clips(true);
  if (update.averages) message->set_averages(true);
  if (update.steps_between_flushes != 1) {
    message->set_steps_between_flushes(update.steps_between_flushes);
  }
}

absl::StatusOr<UpdateOptions> FromProto(const proto::UpdateProto& message) {
  UpdateOptions update;
  if (!message.optimizer().empty()) {
    ISOMER_ASSIGN_OR_RETURN(update.optimizer, ParseOptimizer(message.optimizer()));
  }
  if (!message.method().empty()) {
    ISOMER_ASSIGN_OR_RETURN(update.method, ParseUpdateMethod(message.method()));
  }
  for (const auto& [weight, method] : message.methods()) {
    ISOMER_ASSIGN_OR_RETURN(update.methods[weight], ParseUpdateMethod(method));
  }
  if (message.has_bucket_bytes()) update.bucket_bytes = message.bucket_bytes();
  if (update.bucket_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("buckets of ", update.bucket_bytes, " bytes of gradients"));
  }
  update.bucket_ends = {message.bucket_ends().begin(), message.bucket_ends().end()};
  update.eager_sums = message.eager_sums();
  update.immediate = message.immediate();
  update.states_on_host = message.states_on_host();
  if (!message.gradient_sums().empty()) {
    ISOMER_ASSIGN_OR_RETURN(update.gradient_sums, ParsePrecision(message.gradient_sums()));
  }
  if (!message.state_precision().empty()) {
    ISOMER_ASSIGN_OR_RETURN(update.state_precision, ParsePrecision(message.state_precision()));
  }
  update.clips = message.clips();
  update.averages = message.averages();
  if (message.steps_between_flushes() != 0) {
    update.steps_between_flushes = message.steps_between_flushes();
  }
  ISOMER_RETURN_IF_ERROR(CheckStepsBetweenFlushes(update.steps_between_flushes));
  ISOMER_RETURN_IF_ERROR(CheckGoTogether(update));
  return update;
}

void ToProto(const ZeroBubble& zero_bubble, proto::ZeroBubbleProto* message) {
  message->set_most_in_flight(zero_bubble.most_in_flight);
  message->set_forward(zero_bubble.forward);
  message->set_backward(zero_bubble.backward);
  message->set_weights(zero_bubble.weights);
}

ZeroBubble FromProto(const proto::ZeroBubbleProto& message) {
  const auto time = [](int32_t given) { return given == 0 ? 1 : given; };
  return {.most_in_flight = message.most_in_flight(),
          .forward = time(message.forward()),
          .backward = time(message.backward()),
          .weights = time(message.weights())};
}

absl::StatusOr<Fp8Products> FromProto(const proto::Fp8Proto& message) {
  Fp8Products products;
  ISOMER_ASSIGN_OR_RETURN(products.scaling, ParseFp8Scaling(message.scaling()));
  products.kept = {message.kept().begin(), message.kept().end()};
  products.error_budget = message.error_budget();
  return products;
}

}  // namespace

void ToProto(const Plan& plan, proto::PlanProto* message) {
  ToProto(plan.model, message->mutable_model());
  message->set_mode(plan.mode);
  if (plan.precision != DataType::kFloat32) {
    message->set_precision(std::string(PrecisionName(plan.precision)));
  }
  if (plan.fp8.any()) {
    proto::Fp8Proto* fp8 = message->mutable_fp8();
    fp8->set_scaling(std::string(Fp8ScalingName(plan.fp8.scaling)));
    for (const std::string& weight : plan.fp8.kept) fp8->add_kept(weight);
    fp8->set_error_budget(plan.fp8.error_budget);
  }
  if (plan.update != UpdateOptions()) ToProto(plan.update, message->mutable_update());
  message->set_machine(plan.machine);
  message->set_num_devices(plan.num_devices);
  message->set_rules_digest(plan.rules_digest);
  for (const DerivationStep& step : plan.steps) ToProto(step, message->add_steps());
  ToProto(plan.graph, message->mutable_graph());
  for (const MachineView& view : plan.views) {
    proto::MachineViewProto* out = message->add_views();
    out->set_start(view.start);
    out->mutable_strides()->Add(view.strides.begin(), view.strides.end());
    out->mutable_moments()->Add(view.moments.begin(), view.moments.end());
    for (const OuterStride& outer : view.outer) {
      auto* const message = out->add_outer();
      message->set_axis(outer.axis);
      message->set_period(outer.period);
      message->set_stride(outer.stride);
    }
  }
  for (NodeId id : plan.recomputed) message->add_recomputed(id.value);
  for (NodeId id : plan.offloaded) message->add_offloaded(id.value);
  message->set_spread_branches(plan.spread_branches);
  if (plan.zero_bubble != ZeroBubble()) {
    ToProto(plan.zero_bubble, message->mutable_zero_bubble());
  }
  message->set_predicted_step_us(plan.predicted_step_us);
  message->set_predicted_peak_bytes(plan.predicted_peak_bytes);
  message->set_peak_flops(plan.peak_flops);
  message->set_seal(plan.seal);
}

namespace {

uint64_t SealOf(proto::PlanProto* message) {
  message->clear_seal();
  const uint64_t seal = ProtoDigest(*message);
  return seal == 0 ? 1 : seal;
}

}  // namespace

uint64_t SealOf(const Plan& plan) {
  proto::PlanProto message;
  ToProto(plan, &message);
  return SealOf(&message);
}

namespace {

// Some nodes of a plan's graph, ascending.
template <typename Ids>
absl::StatusOr<std::vector<NodeId>> NodesFromProto(absl::string_view field, const Ids& ids,
                                                   const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const int32_t id : ids) {
    const bool ascending = nodes.empty() || nodes.back().value < id;
    if (id < 0 || id >= graph.num_nodes() || !ascending) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": node %", id, " is not of the graph, or out of order"));
    }
    nodes.push_back({id});
  }
  return nodes;
}

}  // namespace

absl::StatusOr<Plan> FromProto(const proto::PlanProto& message) {
  Plan plan;
  ISOMER_ASSIGN_OR_RETURN(plan.model, FromProto(message.model()));
  plan.mode = message.mode();
  if (plan.mode != "training" && plan.mode != "inference") {
    return absl::InvalidArgumentError(
        absl::StrCat("mode '", plan.mode, "' is neither training nor inference"));
  }
  if (!message.precision().empty()) {
    ISOMER_ASSIGN_OR_RETURN(plan.precision, ParsePrecision(message.precision()));
  }
  if (message.has_fp8()) {
    ISOMER_ASSIGN_OR_RETURN(plan.fp8, FromProto(message.fp8()));
    ISOMER_RETURN_IF_ERROR(CheckFp8Products(plan.fp8, plan.precision));
  }
  if (message.has_update()) {
    ISOMER_ASSIGN_OR_RETURN(plan.update, FromProto(message.update()));
  }
  if (const DataType sums = plan.update.gradient_sums;
      sums != DataType::kFloat32 && sums != LowGradientSums(plan.precision)) {
    return absl::InvalidArgumentError(absl::StrCat("gradients are summed in ", PrecisionName(sums),
                                                   " of a plan in ",
                                                   PrecisionName(plan.precision)));
  }
  plan.machine = message.machine();
  plan.num_devices = message.num_devices();
  if (plan.num_devices < 1 || plan.num_devices > (1 << 20)) {
    return absl::InvalidArgumentError(absl::StrCat("a plan for ", plan.num_devices, " devices"));
  }
  plan.rules_digest = message.rules_digest();
  for (const auto& step : message.steps()) {
    ISOMER_ASSIGN_OR_RETURN(DerivationStep parsed, FromProto(step));
    plan.steps.push_back(std::move(parsed));
  }
  ISOMER_ASSIGN_OR_RETURN(plan.graph, FromProto(message.graph()));
  for (const auto& view : message.views()) {
    plan.views.push_back({.start = view.start(),
                          .strides = {view.strides().begin(), view.strides().end()},
                          .moments = {view.moments().begin(), view.moments().end()}});
    for (const auto& outer : view.outer()) {
      plan.views.back().outer.push_back({outer.axis(), outer.period(), outer.stride()});
    }
  }
  if (static_cast<int>(plan.views.size()) != plan.graph.num_nodes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.views.size(), " machine views for ", plan.graph.num_nodes(), " nodes"));
  }
  for (int id = 0; id < plan.graph.num_nodes(); ++id) {
    absl::Status valid =
        ValidateView(plan.views[id], plan.graph.node(id).outputs[0], plan.num_devices);
    if (!valid.ok())
      return absl::InvalidArgumentError(
          absl::StrCat(plan.graph.Label({id}), ": ", valid.message()));
  }
  plan.spread_branches = message.spread_branches();
  plan.zero_bubble = FromProto(message.zero_bubble());
  ISOMER_RETURN_IF_ERROR(CheckZeroBubble(plan.zero_bubble, plan.update.steps_between_flushes));
  ISOMER_ASSIGN_OR_RETURN(plan.recomputed,
                          NodesFromProto("recomputed", message.recomputed(), plan.graph));
  ISOMER_ASSIGN_OR_RETURN(plan.offloaded,
                          NodesFromProto("offloaded", message.offloaded(), plan.graph));
  plan.predicted_step_us = message.predicted_step_us();
  plan.predicted_peak_bytes = message.predicted_peak_bytes();
  plan.peak_flops = message.peak_flops();
  plan.seal = message.seal();
  return plan;
}

absl::Status SaveModel(const std::string& path, const Model& model) {
  proto::ModelProto message;
  ToProto(model, &message);
  return SaveProto(path, "model", message);
}

absl::StatusOr<Model> LoadModel(const std::string& path) {
  proto::ModelProto message;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, "model", &message));
  absl::StatusOr<Model> model = FromProto(message);
  if (!model.ok()) return InFile(path, model.status());
  return model;
}

absl::Status SavePlan(const std::string& path, const Plan& plan) {
  proto::PlanProto message;
  ToProto(plan, &message);
  if (plan.seal == 0) message.set_seal(SealOf(&message));
  return SaveProto(path, "plan", message);
}

absl::StatusOr<Plan> LoadPlan(const std::string& path) {
  proto::PlanProto message;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, "plan", &message));
  absl::StatusOr<Plan> plan = FromProto(message);
  if (!plan.ok()) return InFile(path, plan.status());
  return plan;
}

}  // namespace isomer
