// Every example call under every legal assignment of degrees to its iteration dims, on virtual
// devices, and with operands in partials where it is linear in them: outputs and gradients are
// those of the undivided call.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/ir/examples.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/parallel_operator.h"
#include "pcg/ir/type_inference.h"
#include "pcg/schedule/lowering/lower.h"
#include "runtime/checking/check_executions.h"
#include "runtime/checking/compare.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/execution/job.h"
#include "tests/from_environment.h"
#include "tests/pcg/random_operands.h"
#include "tests/runtime/agreement.h"
#include "tests/runtime/kernel_checker.h"

namespace isomer {
namespace {

constexpr int64_t kDevices = 8;

using Degrees = std::vector<int64_t>;

// All degrees of 1 to 4 that divide partitionable dims and need no more than kDevices tasks.
std::vector<Degrees> Assignments(const Declaration& declaration) {
  std::vector<Degrees> assignments = {{}};
  for (size_t v = 0; v < declaration.dims.size(); ++v) {
    std::vector<Degrees> longer;
    for (const Degrees& degrees : assignments) {
      int64_t tasks = 1;
      for (int64_t degree : degrees) tasks *= degree;
      for (int64_t degree = 1; degree <= 4 && degree * tasks <= kDevices; ++degree) {
        const bool legal = declaration.IsPartitionable(static_cast<int>(v)) &&
                           declaration.dims[v].size.value() % degree == 0;
        if (degree > 1 && !legal) continue;
        longer.push_back(degrees);
        longer.back().push_back(degree);
      }
    }
    assignments = std::move(longer);
  }
  return assignments;
}

TensorRef Must(absl::StatusOr<TensorRef> tensor) {
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : TensorRef();
}

// A graph of calls of one operator on leaves of their own, and the sum of their losses: the sum of
// each floating-point output, every element with a weight.
class Calls {
 public:
  explicit Calls(const ExampleCall& call) : call_(call) {}

  // Adds a call whose operands have `types`; `label` tells its leaves and outputs from others'.
  void Add(const std::vector<TensorType>& types, const std::string& label) {
    std::vector<TensorRef> operands;
    for (size_t o = 0; o < types.size(); ++o) {
      const TensorType& whole = call_.operands[o];
      const std::string name = absl::StrCat("x", o, label);
      TensorRef x =
          IsFloat(whole.dtype) ? graph_.AddWeight(name, whole) : graph_.AddInput(name, whole);
      trains_ |= IsFloat(whole.dtype);
      if (types[o].partials == 2) x = InPartials(x);
      for (int i = 0; i < whole.rank(); ++i) {
        const int64_t degree = types[o].dims[i].degree;
        if (degree > 1) x = Must(graph_.AddOp(Partition(i, degree), {x}));
      }
      if (types[o].copies > 1) x = Must(graph_.AddOp(Replicate(types[o].copies), {x}));
      operands.push_back(x);
    }
    const absl::StatusOr<NodeId> node = graph_.Add(call_.op, operands);
    ASSERT_TRUE(node.ok()) << label << ": " << node.status();
    const int outputs = static_cast<int>(graph_.node(*node).outputs.size());
    for (int t = 0; t < outputs; ++t) {
      const TensorRef y = Gathered({*node, t});
      graph_.AddOutput(absl::StrCat("y", t, label), y);
      if (IsFloat(graph_.type(y).dtype)) AddLoss(y, t);
    }
  }

  // REQUIRES: all calls were added.
  Model Finish() {
    Model model;
    if (trains_ && loss_.has_value()) {
      graph_.AddOutput("loss", *loss_);
      model.loss = "loss";
    }
    model.graph = graph_;
    return model;
  }

 private:
  // x as the sum of a quarter and three quarters of it.
  TensorRef InPartials(TensorRef x) {
    std::vector<TensorRef> parts;
    for (double factor : {0.25, 0.75}) {
      parts.push_back(Must(graph_.AddOp(Operator(OpKind::kScale, {{"factor", factor}}), {x})));
    }
    return Must(graph_.AddOp(OpKind::kConcatPartials, parts));
  }

  TensorRef Gathered(TensorRef y) {
    const TensorType type = graph_.type(y);
    for (int i = 0; i < type.rank(); ++i) {
      if (type.dims[i].degree > 1) y = Must(graph_.AddOp(Combine(i, type.dims[i].degree), {y}));
    }
    if (type.partials > 1) y = Must(graph_.AddOp(Reduce(type.partials), {y}));
    return y;
  }

  void AddLoss(TensorRef y, int output) {
    if (graph_.type(y).dtype != DataType::kFloat32) {
      y = Must(graph_.AddOp(Operator(OpKind::kCast, {{"to", int64_t{0}}}), {y}));
    }
    const auto [weight, is_new] = loss_weights_.try_emplace(output);
    if (is_new) weight->second = graph_.AddInput(absl::StrCat("s", output), graph_.type(y));
    std::vector<int64_t> axes;
    for (int i = 0; i < graph_.type(y).rank(); ++i) axes.push_back(i);
    const TensorRef product = Must(graph_.AddOp(OpKind::kMul, {y, weight->second}));
    const TensorRef sum = Must(graph_.AddOp(
        Operator(OpKind::kReduceSum, {{"axes", axes}, {"keepdims", int64_t{0}}}), {product}));
    loss_ = loss_.has_value() ? Must(graph_.AddOp(OpKind::kAdd, {*loss_, sum})) : sum;
  }

  const ExampleCall& call_;
  Graph graph_;
  std::map<int, TensorRef> loss_weights_;
  std::optional<TensorRef> loss_;
  bool trains_ = false;
};

// The operand types of the call for each set of operands in which it is linear: those hold two
// partials, the others two copies. Only of floats, which Scale makes parts of.
std::vector<std::vector<TensorType>> WithPartials(const ExampleCall& call, const Declaration& d) {
  std::vector<std::vector<TensorType>> calls;
  for (const std::vector<int>& set : LinearOperandSets(d)) {
    std::vector<TensorType> types = call.operands;
    for (TensorType& type : types) type.copies = 2;
    bool floats = true;
    for (int operand : set) {
      types[operand].copies = 1;
      types[operand].partials = 2;
      floats &= IsFloat(types[operand].dtype);
    }
    if (floats) calls.push_back(std::move(types));
  }
  return calls;
}

// Values that a float holds exactly.
Array<double> Rounded(Array<double> array) {
  for (double& value : array.data) value = static_cast<float>(value);
  return array;
}

class DegreesTest : public testing::TestWithParam<ExampleCall> {};

TEST_P(DegreesTest, EveryLegalAssignmentGivesTheUndividedResult) {
  const ExampleCall& call = GetParam();
  const absl::StatusOr<Sharding> whole = InferSharding(call.op, call.operands);
  ASSERT_TRUE(whole.ok()) << whole.status();

  Calls sequential(call), divided(call);
  sequential.Add(call.operands, "");
  std::vector<std::string> labels;
  for (const Degrees& degrees : Assignments(whole->declaration)) {
    const auto types = OperandTypesFor(call.op, call.operands, degrees);
    if (!types.ok()) continue;  // Halos of pieces that are not equally many.
    labels.push_back(absl::StrCat(" by [", absl::StrJoin(degrees, ","), "]"));
    divided.Add(*types, labels.back());
  }
  for (const std::vector<TensorType>& types : WithPartials(call, whole->declaration)) {
    labels.push_back(absl::StrCat(" of partials ", labels.size()));
    divided.Add(types, labels.back());
  }
  const Model model = sequential.Finish(), parallel = divided.Finish();
  ASSERT_EQ(parallel.graph.Validate(), absl::OkStatus());
  const bool training = !model.loss.empty();

  std::mt19937_64 random(17);
  HostValues weights, inputs, all_weights, all_inputs;
  const std::vector<Array<double>> operands = RandomOperands<double>(call, random);
  for (size_t o = 0; o < operands.size(); ++o) {
    const bool is_weight = IsFloat(call.operands[o].dtype);
    const std::string name = absl::StrCat("x", o);
    (is_weight ? weights : inputs)[name] = Rounded(operands[o]);
    for (const std::string& label : labels) {
      (is_weight ? all_weights : all_inputs)[name + label] = Rounded(operands[o]);
    }
  }
  for (size_t t = 0; t < whole->outputs.size(); ++t) {
    const std::string name = absl::StrCat("s", t);
    inputs[name] = all_inputs[name] =
        Rounded(RandomArray<double>(whole->outputs[t].Sizes(), random));
  }

  const auto reference = ReferenceStep(model, weights, inputs, training);
  ASSERT_TRUE(reference.ok()) << reference.status();
  StepValues expected;
  for (const std::string& label : labels) {
    for (const auto& [name, value] : reference->outputs) {
      if (name != "loss") expected.outputs[name + label] = value;
    }
    for (const auto& [name, value] : reference->gradients) {
      expected.gradients[name + label] = value;
    }
  }

  const auto backend = MakeCpuBackend(/*reference=*/true);
  std::vector<MachineView> views;
  for (int id = 0; id < parallel.graph.num_nodes(); ++id) {
    views.push_back(RowMajorView(parallel.graph.node(id).outputs[0]));
  }
  auto schedule = LowerGraph(parallel.graph, views,
                             {.training = training,
                              .num_devices = kDevices,
                              .loss = parallel.loss,
                              .keep_gradients = training});
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  // ISOMER_EXECUTION_SEEDS: adversarial runs of each call.
  const int64_t seeds = FromEnvironment("ISOMER_EXECUTION_SEEDS", 1);
  const auto executions =
      CheckExecutions(parallel.graph, *schedule, all_weights, all_inputs, 0, seeds, backend.get());
  ASSERT_TRUE(executions.ok()) << executions.status();
  EXPECT_EQ(executions->difference, "");
  auto job = Job::Start(parallel.graph, *std::move(schedule), backend.get());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ((*job)->SetParameters(all_weights), absl::OkStatus());
  ASSERT_EQ(training ? (*job)->TrainStep(all_inputs, 0) : (*job)->Evaluate(all_inputs),
            absl::OkStatus());
  const auto actual = ValuesOfStep(parallel, job->get(), training);
  ASSERT_TRUE(actual.ok()) << actual.status();

  const Comparison comparison = Compare(expected, *actual, ShareOf(expected, 1e-5));
  EXPECT_TRUE(comparison.agrees()) << comparison.worst << " " << comparison.of_worst.error;
  for (size_t t = 0; t < whole->outputs.size(); ++t) {
    if (IsFloat(whole->outputs[t].dtype)) continue;
    for (const std::string& label : labels) {
      EXPECT_EQ(comparison.outputs.at(absl::StrCat("y", t, label)).error, 0) << label;
    }
  }
}

// Shapes whose runs of dims have something or nothing in common, at the ranks of exported networks.
std::vector<ExampleCall> Reshapes() {
  const std::vector<std::pair<const char*, std::vector<std::vector<int64_t>>>> shapes = {
      {"RelativePositions", {{2, 4, 2, 3}, {2, 4, 3, 2}}},
      {"QueriesKeysAndValues", {{2, 4, 18}, {2, 4, 3, 2, 3}}},
      {"HeadsToSamples", {{4, 2, 12}, {4, 8, 3}}},
      {"Windows", {{2, 4, 4, 2}, {2, 2, 2, 2, 2, 2}}},
      {"OnesAnywhere", {{1, 2, 1, 4, 6, 1}, {2, 1, 4, 1, 6}}}};
  std::vector<ExampleCall> calls;
  for (const auto& [name, from_to] : shapes) {
    calls.push_back(
        {name, Operator(OpKind::kReshape, {{"shape", from_to[1]}}), {SequentialType(from_to[0])}});
  }
  return calls;
}
INSTANTIATE_TEST_SUITE_P(Reshapes, DegreesTest, testing::ValuesIn(Reshapes()),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Operators, DegreesTest, testing::ValuesIn(Examples()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace isomer
