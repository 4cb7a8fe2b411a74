// The model inside of the plan is not the user's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/unsound/base_plans.h"
#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

// A change of both the model and the plan's graph, so that the two agree.
ClaimChange OfBoth(const std::string& label, std::function<void(Node*)> change) {
  return [label, change](PlanClaim* claim) {
    for (Graph* graph : {&claim->plan.model.graph, &claim->plan.graph}) {
      const int id = NodeOf(*graph, label);
      Edit(graph, [&](std::vector<Node>* nodes, auto*) { change(&(*nodes)[id]); });
    }
  };
}

ClaimChange OfModel(GraphEdit edit) {
  return [edit](PlanClaim* claim) { Edit(&claim->plan.model.graph, edit); };
}

ClaimChange OfValues(const std::string& weight, std::function<void(std::vector<float>*)> change) {
  return [=](PlanClaim* claim) {
    std::vector<float> values = claim->plan.model.weights[weight].ToVector();
    change(&values);
    claim->plan.model.weights[weight] = std::move(values);
  };
}

Forgery OfStatistics(const std::string& name, const std::function<void(BatchStatistics*)>& change,
                     const std::string& refused_for) {
  return {"statistics", name, "normalised",
          [change](PlanClaim* c) { change(&c->plan.model.statistics[0]); }, refused_for};
}

}  // namespace

std::vector<Forgery> ForgedModels() {
  constexpr char kOthers[] = "batch statistics are others in the plan's model";
  const auto exchanged = [](PlanClaim* c) {
    auto& weights = c->plan.model.weights;
    std::vector<float> negative = weights["up"].ToVector();
    for (float& value : negative) value = -value;
    weights["up"] = std::move(negative);
    std::swap(weights["up"], weights["down"]);
  };
  return {
      {"model", "one bit of a weight", "data",
       OfValues("up", [](auto* v) { (*v)[5] = std::nextafter((*v)[5], 1.0f); }), "value 5 of up"},
      {"model", "NaN for a weight", "data",
       OfValues("up", [](auto* v) { (*v)[0] = std::numeric_limits<float>::quiet_NaN(); }),
       "value 0 of up"},
      {"model", "another zero", "data", OfValues("shift", [](auto* v) { (*v)[3] = -0.0f; }),
       "value 3 of shift"},
      {"model", "values backwards", "data",
       OfValues("down", [](auto* v) { std::reverse(v->begin(), v->end()); }), "value 1 of down"},
      {"model", "weights of one size exchanged", "data", exchanged, "value 0 of down"},
      {"model", "values left to chance", "data",
       [](PlanClaim* c) { c->plan.model.weights.erase("up"); }, "the values of up are not"},
      {"model", "a value missing", "data", OfValues("shift", [](auto* v) { v->pop_back(); }),
       "weight 'shift' has 31 values, not 32"},
      {"model", "values of an input", "data",
       OfValues("target", [](auto* v) { v->assign(128, 0); }), "values for weight 'target'"},
      {"model", "another constant", "embedding", OfValues("kept", [](auto* v) { (*v)[3] = 1; }),
       "value 3 of kept"},
      {"model", "gelu for relu", "data",
       OfBoth("relu", [](Node* n) { n->op = Operator(OpKind::kGelu); }),
       "relu in the model and gelu"},
      {"model", "another loss", "data",
       OfBoth("mse", [](Node* n) { n->op = Operator(OpKind::kBinaryCrossEntropy); }),
       "mse in the model and binary_cross_entropy"},
      {"model", "another salt", "dropout",
       OfBoth("dropout", [](Node* n) { n->op.Set("salt", int64_t{4}); }), "salt=3"},
      {"model", "another rate", "dropout",
       OfBoth("dropout", [](Node* n) { n->op.Set("rate", 0.25); }), "rate=0.25"},
      {"model", "a wider stencil", "spatial",
       OfBoth("conv2d",
              [](Node* n) {
                n->op.Set("padding", std::vector<int64_t>{2, 2, 2, 2});
                n->op.Set("dilation", std::vector<int64_t>{2, 2});
              }),
       "dilation=[2,2]"},
      {"model", "a weight by another name", "data",
       [](PlanClaim* c) {
         OfBoth("weight 'up'", [](Node* n) { n->name = "upper"; })(c);
         auto values = c->plan.model.weights.extract("up");
         values.key() = "upper";
         c->plan.model.weights.insert(std::move(values));
       },
       "is up in the model and upper"},
      {"model", "a weight that is not trained", "data",
       OfBoth("weight 'shift'", [](Node* n) { n->op = Operator(OpKind::kConstant); }),
       "weight in the model and constant"},
      {"model", "a constant that is trained", "embedding",
       OfBoth("constant 'kept'", [](Node* n) { n->op = Operator(OpKind::kWeight); }),
       "constant in the model and weight"},
      {"model", "an input that is trained", "data",
       OfBoth("input 'x'", [](Node* n) { n->op = Operator(OpKind::kWeight); }),
       "input in the model and weight"},
      {"model", "inputs exchanged by name", "data",
       [](PlanClaim* c) {
         Edit(&c->plan.model.graph, [](auto* nodes, auto*) {
           std::swap((*nodes)[0].name, nodes->at(nodes->size() - 2).name);
         });
       },
       "input 'x' is x in the model and target"},
      {"model", "indices of 32 bits", "embedding", OfModel([](auto* nodes, auto*) {
         for (Node& node : *nodes) {
           if (node.name == "ids") node.outputs[0].dtype = DataType::kInt32;
         }
       }),
       "i64[8,4] in the model and i32[8,4]"},
      {"model", "prediction and target exchanged", "data", OfModel([](auto* nodes, auto*) {
         std::swap(nodes->back().inputs[0], nodes->back().inputs[1]);
       }),
       "has other operands"},
      {"model", "an output less", "data",
       OfModel([](auto*, auto* outputs) { outputs->erase(outputs->begin()); }),
       "the number of outputs"},
      {"model", "an output more", "data", OfModel([](auto*, auto* outputs) {
         outputs->push_back({"x", {{0}, 0}});
       }),
       "the number of outputs"},
      {"model", "another name of an output", "data",
       OfModel([](auto*, auto* outputs) { (*outputs)[0].name = "z"; }), "output 0 is y"},
      {"model", "another tensor of an output", "data", OfModel([](auto*, auto* outputs) {
         (*outputs)[0].tensor = {{0}, 0};
       }),
       "output y is another tensor"},
      {"model", "a node more", "data", OfModel([](auto* nodes, auto*) {
         nodes->push_back({Operator(OpKind::kRelu), {{{0}, 0}}, {(*nodes)[0].outputs[0]}, ""});
       }),
       "the number of nodes"},
      {"model", "an assumption that the file does not need", "data",
       [](PlanClaim* c) { c->plan.model.assumptions = {"weights are small"}; },
       "what is assumed is nothing in the model and 'weights are small'"},
      {"model", "an assumption that looks like a verdict", "data",
       [](PlanClaim* c) { c->plan.model.assumptions = {"x\n  its rules are proved"}; },
       "an assumption of the model is no line of printable text"},
      {"model", "no loss", "data", [](PlanClaim* c) { c->plan.model.loss = ""; },
       "the loss is 'loss' in the model"},
      {"model", "a loss that is no number", "data", [](PlanClaim* c) { c->plan.model.loss = "y"; },
       "the loss 'y' is not a scalar output"},
      {"model", "a true plan of another model", "data",
       [](PlanClaim* c) { c->plan = BasePlan("dropout").plan; }, "the number of nodes"},
      {"model", "a true plan of the model without dropout", "dropout",
       [](PlanClaim* c) {
         c->plan.model.graph = BasePlan("data").plan.model.graph;
         c->plan.model.weights = BasePlan("data").plan.model.weights;
       },
       "the number of nodes"},
      {"model", "ties cut", "tied",
       [](PlanClaim* c) {
         Edit(&c->plan.model.graph, [](std::vector<Node>* nodes, auto*) {
           Node other = (*nodes)[0];
           other.name = "logits_table";
           nodes->push_back(other);
           for (Node& node : *nodes) {
             if (node.op.kind() == OpKind::kTranspose) {
               node.inputs[0] = {{static_cast<int32_t>(nodes->size()) - 1}, 0};
             }
           }
         });
       },
       "the number of nodes"},
      {"model", "names that are for people", "data",
       [](PlanClaim* c) {
         c->plan.model.name = "anything";
         Edit(&c->plan.model.graph, [](auto* nodes, auto*) { nodes->back().name = "anything"; });
       },
       ""},
      OfStatistics(
          "another momentum", [](BatchStatistics* s) { s->momentum = 0.5; }, kOthers),
      OfStatistics(
          "mean and variance exchanged",
          [](BatchStatistics* s) { std::swap(s->mean, s->variance); }, kOthers),
      OfStatistics(
          "of the offset", [](BatchStatistics* s) { s->scale = "offset"; }, kOthers),
      OfStatistics(
          "of a leaf that there is not", [](BatchStatistics* s) { s->scale = "gains"; },
          "batch statistics of 'gains': the graph has no such leaf"),
      OfStatistics(
          "a mean that is trained", [](BatchStatistics* s) { s->mean = "offset"; },
          "'offset' is no constant of its channels"),
      OfStatistics(
          "a variance that there is not", [](BatchStatistics* s) { s->variance = ""; },
          "'' is no constant of its channels"),
      OfStatistics(
          "one constant for both", [](BatchStatistics* s) { s->variance = s->mean; },
          "mean and variance are one"),
      OfStatistics(
          "what grows without end", [](BatchStatistics* s) { s->momentum = 1.5; },
          "momentum 1.5 is not in [0, 1]"),
      OfStatistics(
          "a momentum that is no number", [](BatchStatistics* s) { s->momentum = std::nan(""); },
          "momentum nan is not in [0, 1]"),
      {"statistics", "of one scale twice", "normalised",
       [](PlanClaim* c) { c->plan.model.statistics.push_back(c->plan.model.statistics[0]); },
       "there are two of it"},
      {"statistics", "none, so that tests normalise by their batch", "normalised",
       [](PlanClaim* c) { c->plan.model.statistics.clear(); }, kOthers},
      {"statistics", "another mean to begin with", "normalised",
       OfValues("mean", [](auto* v) { (*v)[2] = 1; }), "value 2 of mean"},
      {"statistics", "as they are", "normalised", [](PlanClaim*) {}, ""},
  };
}

}  // namespace isomer
