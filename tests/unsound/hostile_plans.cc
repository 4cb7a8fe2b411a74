#include "tests/unsound/hostile_plans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/support/hash.h"
#include "verifier/certificate/replay_graph.h"
#include "verifier/certificate/stated_step.h"
#include "verifier/mutation/example_graphs.h"
#include "verifier/mutation/pattern_changes.h"
#include "verifier/mutation/plan_changes.h"
#include "verifier/plans/model_match.h"
#include "verifier/plans/plan_checker.h"

namespace isomer {
namespace {

constexpr int kChangesOfAPlan = 12, kMostChanges = 3;
constexpr int64_t kRows = 4, kColumns = 4;

// Small models with what is easily got wrong: partial functions beside look-ups and selections,
// numbers that do not multiply in doubles, weights that are shared.
class RandomModel {
 public:
  explicit RandomModel(uint64_t seed) : random_(seed) {
    Graph& graph = model_.graph;
    model_.name = "hostile";
    tensors_ = {graph.AddInput("x", SequentialType({kRows, kColumns})),
                graph.AddInput("z", SequentialType({kRows, kColumns}))};
    indices_ = graph.AddInput("indices", SequentialType({kRows}, DataType::kInt64));
    table_ = graph.AddWeight("table", SequentialType({2 * kRows, kColumns}));
    const int calls = 3 + Below(6);
    for (int call = 0; call < calls; ++call) AddCall();
    const TensorRef last = tensors_.back();
    graph.AddOutput("y", last);
    if (Below(3) > 0) {
      const TensorRef target = graph.AddInput("target", graph.type(last));
      graph.AddOutput("loss", graph.AddOp(OpKind::kMeanSquaredError, {last, target}).value());
      model_.loss = "loss";
    }
    graph = graph.Canonical();
  }
  const Model& model() const { return model_; }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint64_t>(end)); }
  TensorRef Any() {
    return Below(3) > 0 ? tensors_.back() : tensors_[Below(static_cast<int>(tensors_.size()))];
  }
  void AddCall() {
    static const OpKind kUnary[] = {OpKind::kExp,  OpKind::kLog,        OpKind::kSqrt,
                                    OpKind::kRelu, OpKind::kReciprocal, OpKind::kAbs,
                                    OpKind::kTanh, OpKind::kSigmoid,    OpKind::kSwish};
    static const OpKind kBinary[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv,
                                     OpKind::kMaximum};
    static const double kNumbers[] = {0, 1, -1, 2, 0.5, 0.1, 10, 3, 1e-30, 1e30};
    Graph& graph = model_.graph;
    const TensorRef x = Any();
    absl::StatusOr<TensorRef> made = absl::InternalError("");
    switch (Below(11)) {
      case 0:
      case 1:
        made = graph.AddOp(kUnary[Below(9)], {x});
        break;
      case 2:
      case 3:
        made = graph.AddOp(kBinary[Below(5)], {x, Any()});
        break;
      case 4:
        made = graph.AddOp(Operator(OpKind::kScale, {{"factor", kNumbers[Below(10)]}}), {x});
        break;
      case 5: {
        const TensorRef condition = graph.AddOp(OpKind::kLess, {x, Any()}).value();
        made = graph.AddOp(OpKind::kWhere, {condition, Any(), Any()});
        break;
      }
      case 6:
        made = graph.AddOp(OpKind::kEmbedding, {table_, indices_});
        break;
      case 7:
        made =
            graph.AddOp(Operator(OpKind::kTranspose, {{"perm", std::vector<int64_t>{1, 0}}}), {x});
        break;
      case 8:
        made = graph.AddOp(Operator(OpKind::kSoftmax, {{"axis", int64_t{-1}}}), {x});
        break;
      default: {
        const TensorRef weight = Below(3) == 0 && weights_ > 0
                                     ? shared_
                                     : graph.AddWeight(absl::StrCat("w", weights_++),
                                                       SequentialType({kColumns, kColumns}));
        shared_ = weight;
        made = graph.AddOp(OpKind::kMatMul, {x, weight});
      }
    }
    if (made.ok()) tensors_.push_back(*made);
  }

  std::mt19937_64 random_;
  Model model_;
  std::vector<TensorRef> tensors_;
  TensorRef indices_, table_, shared_;
  int weights_ = 0;
};

std::vector<double> Numbers(double number) {
  return {number * (1 + 1e-15),
          number * 1e-162,
          number * 1e162,
          0,
          -number,
          5e-324,
          1 / number,
          std::numeric_limits<double>::infinity(),
          std::nan("")};
}

// The graph with another attribute, or none if it does not type-check.
std::optional<Graph> WithAttribute(const Graph& graph, int id, size_t attribute, uint64_t seed) {
  std::vector<Node> nodes;
  for (int n = 0; n < graph.num_nodes(); ++n) nodes.push_back(graph.node(n));
  Operator& op = nodes[id].op;
  const Attribute old = op.attributes()[attribute];
  if (const auto* number = std::get_if<double>(&old.value)) {
    const std::vector<double> numbers = Numbers(*number);
    op.Set(old.name, numbers[seed % numbers.size()]);
  } else if (const auto* integer = std::get_if<int64_t>(&old.value)) {
    op.Set(old.name, *integer + (seed % 2 == 0 ? 1 : -1));
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&old.value)) {
    std::vector<int64_t> other = *list;
    if (other.empty()) return std::nullopt;
    other[seed % other.size()] += seed % 3 == 0 ? -1 : 1;
    op.Set(old.name, other);
  }
  absl::StatusOr<Graph> changed = GraphFromParts(nodes, graph.outputs());
  if (!changed.ok()) return std::nullopt;
  return *std::move(changed);
}

// Changes that somebody with an editor would make, besides those of plan_changes.h.
class Forger {
 public:
  Forger(Certified* made, std::mt19937_64* random) : made_(*made), random_(*random) {}

  std::string Change() {
    switch (random_() % 8) {
      case 0:
        return ChangeNumber();
      case 4:
      case 5:
        return StateStep();
      case 1:
        return ChangeAttribute(&made_.plan.graph, "the plan's graph");
      case 2:
        return ChangeAttribute(&made_.plan.model.graph, "the model inside");
      case 3:
        return ForgeRule();
      default:
        break;
    }
    const std::vector<PlanChange> changes = ChangesOf(made_);
    if (changes.empty()) return "";
    const PlanChange& taken = changes[random_() % changes.size()];
    taken.change(&made_.plan);
    return taken.what;
  }

 private:
  std::string ChangeNumber() {
    if (made_.plan.steps.empty()) return "";
    DerivationStep& step = made_.plan.steps[random_() % made_.plan.steps.size()];
    if (step.numbers.empty()) return ChangeAttribute(&made_.plan.graph, "the plan's graph");
    auto at = step.numbers.begin();
    std::advance(at, random_() % step.numbers.size());
    const std::vector<double> numbers = Numbers(at->second);
    at->second = numbers[random_() % numbers.size()];
    return absl::StrCat("number ", at->first, " of a step is ", at->second);
  }

  std::string ChangeAttribute(Graph* graph, const std::string& where) {
    if (graph->num_nodes() == 0) return "";
    const int id = static_cast<int>(random_() % static_cast<uint64_t>(graph->num_nodes()));
    const size_t attributes = graph->node(id).op.attributes().size();
    if (attributes == 0) return "";
    std::optional<Graph> changed = WithAttribute(*graph, id, random_() % attributes, random_());
    if (!changed.has_value()) return "";
    *graph = *std::move(changed);
    return absl::StrCat("an attribute of %", id, " in ", where);
  }

  // The only step names no rule, and puts calls in the place of some that are nearly the same; the
  // graph is what that makes of the model. Mostly a lie.
  std::string StateStep() {
    const Graph& model = made_.plan.model.graph;
    DerivationStep step;
    for (int tries = 0; tries < 20 && step.nodes.empty(); ++tries) {
      const NodeId root{static_cast<int>(random_() % static_cast<uint64_t>(model.num_nodes()))};
      if (!IsLeaf(model.node(root).op.kind())) step = CopyOf(root);
    }
    if (step.nodes.empty()) return "";
    const std::string what = ChangeCall(&step);
    ReplayGraph graph(model);
    const auto believed = [](const ConcreteSide&, const ConcreteSide&, const InputNumbers&) {
      return absl::OkStatus();
    };
    if (!ReplayStatedStep(step, &graph, believed).ok()) return "";
    absl::StatusOr<Graph> stated = graph.ToGraph();
    if (!stated.ok()) return "";
    made_.plan.graph = stated->Canonical();
    made_.plan.steps = {std::move(step)};
    made_.plan.recomputed.clear();
    made_.plan.views.clear();
    for (int id = 0; id < made_.plan.graph.num_nodes(); ++id) {
      made_.plan.views.push_back(RowMajorView(made_.plan.graph.node(id).outputs[0]));
    }
    return "a step without a rule: " + what;
  }

  // A step that puts the call, with some of those that it takes, in their own place.
  DerivationStep CopyOf(NodeId root) {
    const Graph& model = made_.plan.model.graph;
    std::set<NodeId> taken = {root};
    for (int more = static_cast<int>(random_() % 3); more > 0; --more) {
      for (NodeId id : std::set<NodeId>(taken)) {
        for (TensorRef input : model.node(id).inputs) {
          if (!IsLeaf(model.node(input.node).op.kind()) && random_() % 2 == 0) {
            taken.insert(input.node);
          }
        }
      }
    }
    DerivationStep step;
    std::map<NodeId, NodeId> copies;
    for (NodeId id : model.TopologicalOrder()) {
      if (!taken.contains(id)) continue;
      std::vector<TensorRef> inputs = model.node(id).inputs;
      for (TensorRef& input : inputs) {
        if (copies.contains(input.node)) input.node = copies.at(input.node);
      }
      copies[id] = NodeId{model.num_nodes() + static_cast<int>(step.calls.size())};
      step.nodes.push_back(id);
      step.calls.push_back({model.node(id).op, std::move(inputs)});
    }
    step.replaced = {{{root, 0}, {copies.at(root), 0}}};
    return step;
  }

  std::string ChangeCall(DerivationStep* step) {
    static const std::vector<OpKind> kAlike[] = {
        {OpKind::kExp, OpKind::kLog, OpKind::kSqrt, OpKind::kRelu, OpKind::kReciprocal,
         OpKind::kAbs, OpKind::kTanh, OpKind::kSigmoid, OpKind::kSwish},
        {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kMaximum,
         OpKind::kMinimum}};
    AddedCall& call = step->calls[random_() % step->calls.size()];
    switch (random_() % 5) {
      case 0:
        if (call.inputs.size() > 1) std::swap(call.inputs[0], call.inputs[1]);
        return "operands exchanged";
      case 1:
        // What it computes is left out.
        step->replaced[0].to =
            step->calls.back().inputs[random_() % step->calls.back().inputs.size()];
        return "the last call left out";
      case 2:
        call.inputs[random_() % call.inputs.size()] = step->calls[0].inputs[0];
        return "another operand";
      default:
        break;
    }
    for (const auto& kinds : kAlike) {
      if (std::find(kinds.begin(), kinds.end(), call.op.kind()) == kinds.end()) continue;
      call.op = Operator(kinds[random_() % kinds.size()]);
      return "another operator";
    }
    for (const Attribute& attribute : std::vector<Attribute>(call.op.attributes())) {
      if (const auto* number = std::get_if<double>(&attribute.value)) {
        const std::vector<double> numbers = Numbers(*number);
        call.op.Set(attribute.name, numbers[random_() % numbers.size()]);
      } else if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
        call.op.Set(attribute.name, *integer - 1);
      }
    }
    return "other attributes";
  }

  // A rule of the file says something else, under its own id or a new one, and that it is proved.
  std::string ForgeRule() {
    std::vector<Rule>& rules = made_.rules.rules;
    if (rules.empty()) return "";
    Rule& rule = rules[random_() % rules.size()];
    std::vector<ChangedRule> changes = ChangesOf(rule);
    if (changes.empty()) return "";
    ChangedRule& taken = changes[random_() % changes.size()];
    const std::string old = rule.id;
    const ProofRecord proof = rule.proof;
    rule = std::move(taken.rule);
    rule.proof = proof;
    if (random_() % 2 == 0) {
      rule.id = old;
    } else {
      for (DerivationStep& step : made_.plan.steps) {
        if (step.rule == old) step.rule = rule.id;
      }
    }
    made_.rules.BuildIndex();
    made_.plan.rules_digest = made_.rules.Digest();
    // And the graph is what the forged rules make of the model.
    Graph graph = made_.plan.model.graph;
    for (const DerivationStep& step : made_.plan.steps) {
      const Rule* of_step = made_.rules.Find(step.rule);
      if (of_step == nullptr || !ReplayStep(*of_step, step, &graph).ok()) {
        return "a forged rule: " + taken.change;
      }
    }
    made_.plan.graph = graph.Canonical();
    made_.plan.views.clear();
    for (int id = 0; id < made_.plan.graph.num_nodes(); ++id) {
      made_.plan.views.push_back(RowMajorView(made_.plan.graph.node(id).outputs[0]));
    }
    return "a forged rule, applied: " + taken.change;
  }

  Certified& made_;
  std::mt19937_64& random_;
};

// Of a leaf's element. Indices are valid in every table that there is.
double ValueOf(const Node& leaf, uint64_t seed, int64_t i, bool edges) {
  constexpr double kUsual[] = {1, 2, 0.5, 3, -1, 4, 0.25, -2};
  constexpr double kEdges[] = {0, -1, 0, 1, 2, -0.5, 0.5, 0};
  const uint64_t drawn = HashCombine(seed, HashBytes(leaf.name, seed), static_cast<uint64_t>(i));
  if (!IsFloat(leaf.outputs[0].dtype)) return static_cast<double>(drawn % 2);
  if (edges && drawn % 5 == 0) return kEdges[(drawn >> 8) % 8];
  const double usual = kUsual[(drawn >> 8) % 8];
  return edges ? std::fabs(usual) : usual;
}

template <typename T>
absl::StatusOr<Values<T>> Run(const Graph& graph, uint64_t seed, bool edges) {
  std::map<NodeId, Value<T>> leaves;
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(n);
    if (!IsLeaf(node.op.kind())) continue;
    Value<T> value;
    value.type = node.outputs[0];
    Array<T> array(value.type.Sizes());
    for (int64_t i = 0; i < array.size(); ++i) {
      array.data[i] = Number<T>::FromDouble(ValueOf(node, seed, i, edges));
    }
    value.parts.push_back(std::move(array));
    leaves[NodeId{n}] = std::move(value);
  }
  return EvaluateGraph<T>(graph, leaves);
}

bool AllFinite(const std::vector<Array<double>>& arrays) {
  for (const Array<double>& array : arrays) {
    for (double x : array.data) {
      if (!std::isfinite(x)) return false;
    }
  }
  return true;
}

// By name: outputs, and gradients of the loss.
using Named = std::map<std::string, std::vector<Array<double>>>;

absl::StatusOr<Named> Results(const Graph& graph, bool training, uint64_t seed) {
  const absl::StatusOr<Values<double>> values = Run<double>(graph, seed, /*edges=*/true);
  if (!values.ok()) return values.status();
  Named results;
  std::vector<std::vector<Array<double>>> seeds;
  for (const Graph::NamedOutput& output : graph.outputs()) {
    std::vector<Array<double>> meaning =
        Meaning((*values)[output.tensor.node.value][output.tensor.output]);
    results[output.name] = meaning;
    for (Array<double>& array : meaning) {
      std::fill(array.data.begin(), array.data.end(), output.name == "loss" ? 1.0 : 0.0);
    }
    seeds.push_back(std::move(meaning));
  }
  if (!training) return results;
  const auto gradients = EvaluateGradients<double>(graph, *values, seeds);
  if (!gradients.ok()) return gradients.status();
  for (const auto& [leaf, parts] : *gradients) {
    if (graph.node(leaf).op.kind() != OpKind::kWeight) continue;
    results["the gradient of " + graph.node(leaf).name] = parts;
  }
  return results;
}

// Of exp a certificate may know a law that no function of the field has.
bool AppliesExp(const Graph& graph) {
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(n);
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    const absl::StatusOr<Declaration> d = Declare(node.op, shapes);
    if (!d.ok()) continue;
    for (const Statement& statement : d->statements) {
      for (const Instruction& instruction : statement.body) {
        if (instruction.op == ScalarOp::kExp) return true;
      }
    }
  }
  return false;
}

// Wherever both are defined.
bool AreAlike(const std::vector<PartialField>& a, const std::vector<PartialField>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), MayBeEqual);
}
// But for rounding.
bool AreAlike(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kTolerance = 1e-9;
  if (a.size() != b.size()) return false;
  double largest = 0;
  for (double x : a) largest = std::fmax(largest, std::fabs(x));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && !(std::fabs(a[i] - b[i]) <= kTolerance * largest)) return false;
  }
  return true;
}

// "" also if the model cannot be run.
template <typename T>
std::string DifferenceOfValues(const Graph& model, const Graph& plan, uint64_t seed) {
  const auto left = Run<T>(model, seed, false), right = Run<T>(plan, seed, false);
  if (!left.ok()) return "";
  if (!right.ok()) return absl::StrCat("it cannot be run: ", right.status().message());
  for (const Graph::NamedOutput& output : model.outputs()) {
    for (const Graph::NamedOutput& other : plan.outputs()) {
      if (other.name != output.name) continue;
      const auto a = Meaning((*left)[output.tensor.node.value][output.tensor.output]);
      const auto b = Meaning((*right)[other.tensor.node.value][other.tensor.output]);
      for (size_t p = 0; p < a.size(); ++p) {
        if (!AreAlike(a[p].data, b[p].data)) return "output " + output.name + " differs";
      }
    }
  }
  return "";
}

}  // namespace

std::string DifferenceSeen(const Graph& model, const Graph& plan, bool training, uint64_t seed) {
  constexpr uint64_t kDraws = 6;
  const bool in_field = !AppliesExp(model) && !AppliesExp(plan);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const std::string difference = in_field
                                       ? DifferenceOfValues<PartialField>(model, plan, seed + draw)
                                       : DifferenceOfValues<double>(model, plan, seed + draw);
    if (!difference.empty()) return difference;
    const auto expected = Results(model, training, seed + draw);
    const auto found = Results(plan, training, seed + draw);
    if (!expected.ok()) return "";
    if (!found.ok()) return absl::StrCat("it cannot be run: ", found.status().message());
    const bool finite = std::all_of(expected->begin(), expected->end(),
                                    [](const auto& named) { return AllFinite(named.second); });
    if (!finite) continue;
    for (const auto& [name, arrays] : *expected) {
      const auto at = found->find(name);
      if (at == found->end()) return name + " is not there";
      if (!AllFinite(at->second)) return name + " is not finite; all is in the model";
    }
  }
  return "";
}

void HostilePlans::Attack(uint64_t seed, std::map<std::string, int64_t>* counts,
                          std::vector<std::string>* findings) {
  std::mt19937_64 random(seed);
  const std::vector<Model> examples = ExampleModels().value();
  const size_t drawn = random() % (2 * examples.size() + 4);
  const Model model = drawn < examples.size() ? examples[drawn] : RandomModel(random()).model();
  const Certified base = DeriveCertified(model, rules_, random());
  for (int draw = 0; draw < kChangesOfAPlan; ++draw) {
    Certified made = base;
    std::string how;
    // The first is what an honest search makes.
    const int changes = draw == 0 ? 0 : 1 + static_cast<int>(random() % kMostChanges);
    for (int change = 0; change < changes; ++change) {
      absl::StrAppend(&how, how.empty() ? "" : "; ", Forger(&made, &random).Change());
    }
    made.plan.seal = SealOf(made.plan);
    const bool accepted =
        ExpectSameModel(model, made.plan.model).ok() && CheckPlan(made.plan, made.rules).ok();
    ++(*counts)[accepted ? "plans accepted" : "plans refused"];
    if (!accepted) continue;
    const std::string seen =
        DifferenceSeen(model.graph, made.plan.graph, !model.loss.empty(), seed + 1);
    if (seen.empty()) continue;
    findings->push_back(absl::StrCat("accepted, and false: ", how, "\n  ", seen, "\n",
                                     model.graph.ToString(), "\nmade into\n",
                                     made.plan.graph.ToString()));
  }
}

}  // namespace isomer
