// The plan's graph is not what its steps make of the model.
#include <utility>

#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

using Nodes = std::vector<Node>;
using Outputs = std::vector<Graph::NamedOutput>;

ClaimChange OfGraph(GraphEdit edit) {
  return [edit](PlanClaim* claim) { Edit(&claim->plan.graph, edit); };
}

ClaimChange OfNode(const std::string& label, std::function<void(Node*)> change) {
  return [=](PlanClaim* claim) {
    const int id = NodeOf(claim->plan.graph, label);
    Edit(&claim->plan.graph, [&](Nodes* nodes, auto*) { change(&(*nodes)[id]); });
  };
}

// With a view like that of the node before.
ClaimChange WithNode(Node node) {
  return [node](PlanClaim* claim) {
    Edit(&claim->plan.graph, [&](Nodes* nodes, auto*) { nodes->push_back(node); });
    claim->plan.views.push_back(RowMajorView(node.outputs[0]));
  };
}

MessageChange OfNodeMessage(int id, std::function<void(proto::NodeProto*)> change) {
  return [=](proto::PlanProto* plan) { change(plan->mutable_graph()->mutable_nodes(id)); };
}

}  // namespace

std::vector<Forgery> ForgedGraphs() {
  constexpr char kOther[] = "is not what the derivation gives there";
  // Of the base "data": see BasePlan("data").plan.graph.
  constexpr int kUp = 1, kProduct = 7, kAdd = 9, kRelu = 10, kLoss = 15;
  const TensorType images = SequentialType({8, 16});
  return {
      {"graph", "tanh for relu", "data",
       OfNode("relu", [](Node* n) { n->op = Operator(OpKind::kTanh); }), kOther},
      {"graph", "sub for add", "data",
       OfNode("add", [](Node* n) { n->op = Operator(OpKind::kSub); }), kOther},
      {"graph", "another loss", "data",
       OfNode("mse", [](Node* n) { n->op = Operator(OpKind::kBinaryCrossEntropy); }), kOther},
      {"graph", "prediction and target exchanged", "data",
       OfNode("mse", [](Node* n) { std::swap(n->inputs[0], n->inputs[1]); }), kOther},
      {"graph", "a call left out", "data", OfGraph([](Nodes* nodes, auto*) {
         for (Node& node : *nodes) {
           if (node.op.kind() == OpKind::kMatMul && node.inputs[0].node.value == kRelu) {
             node.inputs[0] = {{kAdd}, 0};
           }
         }
       }),
       kOther},
      {"graph", "weights of one type exchanged", "pipeline", OfGraph([](Nodes* nodes, auto*) {
         std::swap((*nodes)[8].inputs[1], (*nodes)[11].inputs[1]);
       }),
       kOther},
      {"graph", "a layer twice, another not at all", "pipeline",
       OfGraph([](Nodes* nodes, auto*) { (*nodes)[11].inputs[1] = (*nodes)[8].inputs[1]; }),
       kOther},
      {"graph", "another salt", "dropout",
       OfNode("dropout", [](Node* n) { n->op.Set("salt", int64_t{4}); }), kOther},
      {"graph", "windows one row higher", "spatial",
       OfNode("conv2d",
              [](Node* n) {
                n->op.Set("padding", std::vector<int64_t>{1, 0, 1, 2});
              }),
       kOther},
      {"graph", "a constant that is trained", "embedding",
       OfNode("constant 'kept'", [](Node* n) { n->op = Operator(OpKind::kWeight); }), kOther},
      {"graph", "a weight that is not trained", "data",
       OfNode("weight 'shift'", [](Node* n) { n->op = Operator(OpKind::kConstant); }), kOther},
      {"graph", "a target that is trained", "data",
       OfNode("input 'target'", [](Node* n) { n->op = Operator(OpKind::kWeight); }), kOther},
      {"graph", "a weight by another name", "data",
       OfNode("weight 'up'", [](Node* n) { n->name = "upper"; }), "the plan has no %1 weight 'up'"},
      {"graph", "inputs of one type exchanged by name", "data",
       OfGraph([](Nodes* nodes, auto*) { std::swap((*nodes)[0].name, (*nodes)[4].name); }),
       "is not what the derivation gives"},
      {"graph", "another tensor of an output", "data", OfGraph([](auto*, Outputs* outputs) {
         (*outputs)[0].tensor = {{0}, 0};
       }),
       "%0 input 'x' is not what the derivation gives there"},
      {"graph", "outputs in another order", "data",
       OfGraph([](auto*, Outputs* outputs) { std::swap((*outputs)[0], (*outputs)[1]); }),
       "output 0 is not what the derivation gives"},
      {"graph", "another name of an output", "data",
       OfGraph([](auto*, Outputs* outputs) { (*outputs)[0].name = "z"; }),
       "output 0 is not what the derivation gives"},
      {"graph", "an output less", "data",
       OfGraph([](auto*, Outputs* outputs) { outputs->erase(outputs->begin()); }),
       "the derivation gives 2 outputs, the plan has 1"},
      {"graph", "a call that nothing needs", "data",
       WithNode({Operator(OpKind::kRelu), {{{0}, 0}}, {images}, ""}),
       "the derivation does not give %17 relu"},
      {"graph", "a weight that nothing needs", "data",
       WithNode({Operator(OpKind::kWeight), {}, {images}, "spare"}),
       "the derivation does not give %17 weight 'spare'"},
      {"graph", "a call twice, once for each use", "tied",
       OfGraph([](Nodes*, Outputs* outputs) { outputs->push_back(outputs->back()); }),
       "the derivation gives 2 outputs, the plan has 3"},
      {"graph", "more degrees than copies", "data",
       OfNodeMessage(kProduct,
                     [](auto* n) { n->mutable_outputs(0)->mutable_dims(0)->set_degree(2); }),
       "stated as f32[8:2,32] but must be f32[8:4,32]"},
      {"graph", "a partial sum that counts as whole", "data",
       OfNodeMessage(kLoss, [](auto* n) { n->mutable_outputs(0)->set_partials(1); }), "%15 mse"},
      {"graph", "copies that are not made", "data",
       OfNodeMessage(6, [](auto* n) { n->mutable_outputs(0)->set_copies(1); }), "%6 replicate"},
      {"graph", "a weight in parts from the start", "data",
       OfNodeMessage(kUp, [](auto* n) { n->mutable_outputs(0)->set_copies(4); }), "%6 replicate"},
      {"graph", "another size", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->mutable_outputs(0)->mutable_dims(1)->set_size(16); }),
       "%10 relu"},
      {"graph", "fewer bits", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->mutable_outputs(0)->set_dtype("bf16"); }), "%10 relu"},
      {"graph", "a sequence of micro-batches", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->mutable_outputs(0)->set_micro_batches(2); }),
       "%10 relu"},
      {"graph", "in a circle", "data",
       OfNodeMessage(kProduct, [](auto* n) { n->mutable_inputs(0)->set_node(kProduct); }), "%7"},
      {"graph", "an edge to nowhere", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->mutable_inputs(0)->set_node(99); }), "%10 relu"},
      {"graph", "an edge from before the first", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->mutable_inputs(0)->set_node(-1); }), "%10 relu"},
      {"graph", "an output that there is not", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->mutable_inputs(0)->set_output(1); }), "%10 relu"},
      {"graph", "an operator that there is not", "data",
       OfNodeMessage(kRelu, [](auto* n) { n->set_op("identity"); }), "node %10 'relu'"},
      {"graph", "an attribute that there is not", "data",
       OfNodeMessage(kRelu,
                     [](auto* n) {
                       n->add_attributes()->set_name("alpha");
                       n->mutable_attributes(0)->set_number(0.1);
                     }),
       "%10 relu"},
      {"graph", "an axis that is a number", "data",
       OfNodeMessage(5,
                     [](auto* n) {
                       for (auto& attribute : *n->mutable_attributes()) attribute.set_number(-2);
                     }),
       "%5 partition"},
      {"graph", "two leaves of one name", "data",
       OfNodeMessage(3, [](auto* n) { n->set_name("up"); }), "'up'"},
      {"graph", "nothing at all", "data",
       [](proto::PlanProto* p) {
         p->clear_graph();
         p->clear_views();
       },
       "the derivation gives 2 outputs, the plan has 0"},
      {"graph", "names that are for people", "data",
       OfNode("relu", [](Node* n) { n->name = "anything"; }), ""},
  };
}

}  // namespace isomer
