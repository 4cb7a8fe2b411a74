#include "runtime/checking/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/status_macros.h"
#include "runtime/checking/rounding.h"

namespace isomer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool AreSameInfinity(double a, double b) {
  return StandsForInfinity(a) && StandsForInfinity(b) && (a > 0) == (b > 0);
}

double RootOf(double squares) { return std::isfinite(squares) ? std::sqrt(squares) : kInfinity; }

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
  return ValuesOfStep(model, job.get(), training);
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

double Distance(const Array<double>& a, const Array<double>& b) {
  if (a.shape != b.shape) return kInfinity;
  double squares = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (AreSameInfinity(a.data[i], b.data[i])) continue;
    squares += (a.data[i] - b.data[i]) * (a.data[i] - b.data[i]);
  }
  return RootOf(squares);
}

double Norm(const Array<double>& array) {
  double squares = 0;
  for (double value : array.data) {
    if (!StandsForInfinity(value)) squares += value * value;
  }
  return RootOf(squares);
}

namespace {

double BoundOf(const std::map<std::string, double>& bounds, const std::string& name) {
  const auto found = bounds.find(name);
  return found == bounds.end() ? 0 : found->second;
}

// How near the error is to its bound: above 1 it is beyond it.
double ShareOfBound(const Difference& difference) {
  if (difference.error == 0) return 0;
  return difference.error / difference.bound /
         (difference.comparable() ? 1 : Difference::kFarBeyond);
}

std::map<std::string, Difference> Differences(const HostValues& expected, const HostValues& actual,
                                              const std::map<std::string, double>& bounds,
                                              const std::string& what, Comparison* comparison) {
  std::map<std::string, Difference> differences;
  for (const auto& [name, array] : expected) {
    const auto found = actual.find(name);
    const Difference difference = {
        .error = found == actual.end() ? kInfinity : Distance(array, found->second),
        .norm = Norm(array),
        .bound = BoundOf(bounds, name)};
    differences[name] = difference;
    const std::string title = absl::StrCat(what, " ", name);
    if (!difference.comparable()) comparison->not_comparable.push_back(title);
    if (difference.comparable() || !difference.agrees()) {
      comparison->max_rel_error = std::max(comparison->max_rel_error, difference.relative_error());
    }
    if (comparison->worst.empty() ||
        ShareOfBound(difference) > ShareOfBound(comparison->of_worst)) {
      comparison->worst = title;
      comparison->of_worst = difference;
    }
  }
  return differences;
}

}  // namespace

bool Comparison::differs() const {
  for (const auto* differences : {&outputs, &gradients}) {
    for (const auto& [name, difference] : *differences) {
      if (!difference.agrees()) return true;
    }
  }
  return false;
}

bool Comparison::compared() const {
  return not_comparable.size() < outputs.size() + gradients.size();
}

double ErrorOfAll(const Comparison& comparison) {
  double error = 0, norm = 0;
  for (const auto& [name, difference] :
       comparison.gradients.empty() ? comparison.outputs : comparison.gradients) {
    error = std::hypot(error, difference.error);
    norm = std::hypot(norm, difference.norm);
  }
  return error == 0 ? 0 : error / norm;
}

Comparison Compare(const StepValues& expected, const StepValues& actual, const StepBounds& bounds) {
  Comparison comparison;
  comparison.outputs =
      Differences(expected.outputs, actual.outputs, bounds.outputs, "output", &comparison);
  comparison.gradients = Differences(expected.gradients, actual.gradients, bounds.gradients,
                                     "gradient of", &comparison);
  return comparison;
}

}  // namespace isomer
