#include "runtime/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Of float32, after sums of many terms that cancel.
constexpr double kRoundingOfKernels = 1e-6;

}  // namespace

absl::StatusOr<StepValues> ReferenceStep(const Model& model, const HostValues& weights,
                                         const HostValues& inputs, bool training) {
  const Graph& graph = model.graph;
  std::map<NodeId, Value<double>> leaves;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (!IsLeaf(node.op.kind())) continue;
    const HostValues& values = IsStored(node.op.kind()) ? weights : inputs;
    const auto found = values.find(node.name);
    if (found == values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(graph.Label(NodeId{id}), ": no value was given"));
    }
    leaves[NodeId{id}] = {.type = node.outputs[0], .parts = {found->second}};
  }
  ISOMER_ASSIGN_OR_RETURN(const Values<double> values, EvaluateGraph<double>(graph, leaves));
  StepValues step;
  std::vector<std::vector<Array<double>>> seeds;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    const Value<double>& value = values[output.tensor.node.value][output.tensor.output];
    step.outputs[output.name] = Meaning(value)[0];
    const double seed = output.name == model.loss ? 1 : 0;
    seeds.push_back({Array<double>(value.type.Sizes(), seed)});
  }
  if (!training) return step;
  using Gradients = std::map<NodeId, std::vector<Array<double>>>;
  ISOMER_ASSIGN_OR_RETURN(Gradients gradients, EvaluateGradients<double>(graph, values, seeds));
  for (auto& [id, gradient] : gradients) {
    if (graph.node(id).op.kind() != OpKind::kWeight) continue;
    step.gradients[graph.node(id).name] = std::move(gradient[0]);
  }
  return step;
}

absl::StatusOr<StepValues> SequentialStep(const Model& model, const HostValues& weights,
                                          const HostValues& inputs, bool training,
                                          Backend* backend) {
  const ScheduleOptions options{
      .training = training, .loss = model.loss, .keep_gradients = training};
  ISOMER_ASSIGN_OR_RETURN(Schedule schedule,
                          LowerGraph(model.graph, SequentialViews(model.graph), options));
  ISOMER_ASSIGN_OR_RETURN(const std::unique_ptr<Job> job,
                          Job::Start(model.graph, std::move(schedule), backend));
  ISOMER_RETURN_IF_ERROR(job->SetParameters(weights));
  ISOMER_RETURN_IF_ERROR(training ? job->TrainStep(inputs, 0) : job->Evaluate(inputs));
  ISOMER_ASSIGN_OR_RETURN(StepValues step, ValuesOfStep(model, job.get(), training));
  step.rounding = kRoundingOfKernels;
  return step;
}

absl::StatusOr<StepValues> ValuesOfStep(const Model& model, Job* job, bool training,
                                        int32_t number) {
  StepValues step;
  for (const Graph::NamedOutput& output : model.graph.outputs()) {
    ISOMER_ASSIGN_OR_RETURN(step.outputs[output.name], job->Output(output.name, number));
  }
  if (training) {
    ISOMER_ASSIGN_OR_RETURN(step.gradients, job->Gradients(number));
  }
  return step;
}

namespace {

double NormOf(const Array<double>& array, ErrorNorm norm) {
  double largest = 0, squares = 0;
  for (double value : array.data) {
    largest = std::max(largest, std::abs(value));
    squares += value * value;
  }
  return norm == ErrorNorm::kLargest ? largest : std::sqrt(squares);
}

// NaN counts as infinitely wrong.
double DifferenceNorm(const Array<double>& a, const Array<double>& b, ErrorNorm norm) {
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  Array<double> difference = a;
  for (int64_t i = 0; i < a.size(); ++i) {
    difference.data[i] -= b.data[i];
    if (std::isnan(difference.data[i])) return std::numeric_limits<double>::infinity();
  }
  return NormOf(difference, norm);
}

std::map<std::string, double> Errors(const HostValues& expected, const HostValues& actual,
                                     double rounding, const std::string& what, ErrorNorm norm,
                                     Comparison* comparison) {
  double largest_of_all = std::numeric_limits<double>::min();
  for (const auto& [name, array] : expected) {
    largest_of_all = std::max(largest_of_all, NormOf(array, norm));
  }
  std::map<std::string, double> errors;
  for (const auto& [name, array] : expected) {
    const auto found = actual.find(name);
    double scale = NormOf(array, norm);
    if (scale <= rounding * largest_of_all) scale = largest_of_all;
    const double error = found == actual.end() ? std::numeric_limits<double>::infinity()
                                               : DifferenceNorm(array, found->second, norm) / scale;
    errors[name] = error;
    if (error > comparison->max_rel_error) {
      comparison->max_rel_error = error;
      comparison->worst = absl::StrCat(what, " ", name);
    }
  }
  return errors;
}

}  // namespace

Comparison Compare(const StepValues& expected, const StepValues& actual, ErrorNorm norm) {
  Comparison comparison;
  comparison.outputs =
      Errors(expected.outputs, actual.outputs, expected.rounding, "output", norm, &comparison);
  comparison.gradients = Errors(expected.gradients, actual.gradients, expected.rounding,
                                "gradient of", norm, &comparison);
  return comparison;
}

}  // namespace isomer
