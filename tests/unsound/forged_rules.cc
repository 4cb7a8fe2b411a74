// The rules file says what suits the plan.
#include "pcg/support/check.h"
#include "tests/unsound/base_plans.h"
#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

constexpr char kNotShown[] = "it is not shown that these calls compute the same";

Rule& RuleFor(OpKind source, PlanClaim* claim) {
  for (Rule& rule : claim->rules.rules) {
    if (!rule.source.nodes.empty() && rule.source.nodes[0].kind == source) return rule;
  }
  ISOMER_CHECK(false);
  return claim->rules.rules[0];
}

PatternNode& CallOf(OpKind kind, Pattern* pattern) {
  for (PatternNode& node : pattern->nodes) {
    if (node.kind == kind) return node;
  }
  ISOMER_CHECK(false);
  return pattern->nodes[0];
}

// The rule of calls of `kind` says something else, under its old id.
ClaimChange UnderItsId(OpKind kind, std::function<void(Rule*)> change) {
  return [=](PlanClaim* claim) { change(&RuleFor(kind, claim)); };
}

// .. under the id that it then has, and the plan's graph is what it then makes of the model, on
// the devices that it was on where that is possible.
ClaimChange Applied(OpKind kind, std::function<void(Rule*)> change) {
  return [=](PlanClaim* claim) {
    Rule& rule = RuleFor(kind, claim);
    const std::string old = rule.id;
    change(&rule);
    SetId(&rule);
    for (DerivationStep& step : claim->plan.steps) {
      if (step.rule == old) step.rule = rule.id;
    }
    const Plan before = claim->plan;
    if (!FollowSteps(claim).ok()) claim->plan = before;
  };
}

std::function<void(Rule*)> Target(OpKind from, OpKind to) {
  return [=](Rule* rule) { CallOf(from, &rule->target).kind = to; };
}

}  // namespace

std::vector<Forgery> ForgedRules() {
  const auto relu = OpKind::kRelu;
  const auto exchange = [](Rule* rule) {
    auto& inputs = CallOf(OpKind::kMeanSquaredError, &rule->target).inputs;
    std::swap(inputs[0], inputs[1]);
  };
  const auto copies = [](OpKind of) {
    return [of](Rule* rule) {
      PatternNode& node = CallOf(of, &rule->target);
      node.kind = OpKind::kReplicate;
      node.attributes.erase(node.attributes.begin());
    };
  };
  const auto past = [](OpKind kind) {
    return [kind](Rule* rule) {
      for (PatternNode& node : rule->target.nodes) {
        for (PatternRef& ref : node.inputs) {
          if (ref.node >= 0 && rule->target.nodes[ref.node].kind == kind) {
            ref = rule->target.nodes[ref.node].inputs[0];
          }
        }
      }
    };
  };
  return {
      {"rules", "gelu for relu, under its id", "data",
       UnderItsId(relu, Target(relu, OpKind::kGelu)), "its id is not that of what it says"},
      {"rules", "no conditions, under its id", "data",
       UnderItsId(relu, [](Rule* r) { r->conditions.clear(); }),
       "its id is not that of what it says"},
      {"rules", "both ways, under its id", "data",
       UnderItsId(relu, [](Rule* r) { r->reversible = true; }), "cannot speak of source nodes"},
      {"rules", "other ranks, under its id", "data",
       UnderItsId(relu, [](Rule* r) { r->ranks = {{9}}; }), "its id is not that of what it says"},
      {"rules", "an id of its own", "data",
       [](PlanClaim* c) {
         RuleFor(OpKind::kRelu, c).id = "relu";
         for (DerivationStep& step : c->plan.steps) {
           if (c->rules.Find(step.rule) == nullptr) step.rule = "relu";
         }
       },
       "not in the rules file"},
      {"rules", "two of one id", "data",
       [](PlanClaim* c) {
         Rule other = RuleFor(OpKind::kRelu, c);
         other.target.nodes[1].kind = OpKind::kGelu;
         c->rules.rules.insert(c->rules.rules.begin(), other);
         c->rules.rules.push_back(other);
       },
       "its id is not that of what it says"},
      {"rules", "a weight of the rule's own", "data",
       UnderItsId(relu,
                  [](Rule* r) {
                    r->target.nodes.push_back({OpKind::kWeight, {}, {}});
                  }),
       "weight is no operator of rules"},
      {"rules", "a call of nothing", "data",
       UnderItsId(relu, [](Rule* r) { r->target.nodes[1].inputs.clear(); }), "relu"},
      {"rules", "a call of what comes later", "data",
       UnderItsId(relu, [](Rule* r) { r->target.nodes[0].inputs = {PatternRef::Node(2)}; }),
       "target node 0"},
      {"rules", "not in the file", "data",
       [](PlanClaim* c) { c->rules.rules.erase(c->rules.rules.begin()); }, "not in the rules file"},
      {"rules", "an empty file", "data", [](PlanClaim* c) { c->rules.rules.clear(); },
       "not in the rules file"},
      {"rules", "another file", "data",
       [](PlanClaim* c) { c->rules.rules.push_back(c->rules.rules[0]); },
       "the plan was made with the rules", true},
      {"rules", "the shipped file's digest", "data",
       [](PlanClaim* c) {
         c->plan.rules_digest += 1;
         c->plan.seal = SealOf(c->plan);
       },
       "the plan was made with the rules", true},
      {"rules", "gelu for relu", "data", Applied(relu, Target(relu, OpKind::kGelu)), kNotShown},
      {"rules", "abs for relu", "recomputed", Applied(relu, Target(relu, OpKind::kAbs)), kNotShown},
      {"rules", "sigmoid for tanh", "pipeline",
       Applied(OpKind::kTanh, Target(OpKind::kTanh, OpKind::kSigmoid)), kNotShown},
      {"rules", "sub for add", "data", Applied(OpKind::kAdd, Target(OpKind::kAdd, OpKind::kSub)),
       kNotShown},
      {"rules", "maximum for add", "low",
       Applied(OpKind::kAdd, Target(OpKind::kAdd, OpKind::kMaximum)), kNotShown},
      {"rules", "another loss", "data",
       Applied(OpKind::kMeanSquaredError,
               Target(OpKind::kMeanSquaredError, OpKind::kBinaryCrossEntropy)),
       kNotShown},
      {"rules", "add for mul", "embedding",
       Applied(OpKind::kMul, Target(OpKind::kMul, OpKind::kAdd)), kNotShown},
      {"rules", "another salt", "dropout",
       Applied(OpKind::kDropout,
               [](Rule* r) {
                 for (auto& attribute : CallOf(OpKind::kDropout, &r->target).attributes) {
                   if (attribute.name == "salt") attribute.value = IntExpr::Constant(0);
                 }
               }),
       kNotShown},
      {"rules", "another rate", "dropout",
       Applied(OpKind::kDropout,
               [](Rule* r) {
                 for (auto& attribute : CallOf(OpKind::kDropout, &r->target).attributes) {
                   if (attribute.name == "rate") attribute.value = NumberExpr{0.0, {}};
                 }
               }),
       kNotShown},
      {"rules", "windows that do not slide", "spatial",
       Applied(OpKind::kConv2d,
               [](Rule* r) {
                 for (auto& attribute : CallOf(OpKind::kConv2d, &r->target).attributes) {
                   if (attribute.name != "padding") continue;
                   attribute.value =
                       std::vector<IntExpr>{IntExpr::Constant(2), IntExpr::Constant(1),
                                            IntExpr::Constant(0), IntExpr::Constant(1)};
                 }
               }),
       kNotShown},
      {"rules", "prediction and target exchanged, which is true", "data",
       Applied(OpKind::kMeanSquaredError, exchange), ""},
      {"rules", "rows that are not cut", "data", Applied(relu, past(OpKind::kPartition)),
       "4 does not divide the degree of dim 0"},
      {"rules", "rows that stay apart", "data", Applied(relu, past(OpKind::kRelu)), kNotShown},
      {"rules", "copies for rows", "data", Applied(OpKind::kMatMul, copies(OpKind::kPartition)),
       "step 0 (rule"},
      {"rules", "copies that are summed", "data",
       Applied(OpKind::kMeanSquaredError, copies(OpKind::kPartition)), "step 4 (rule"},
      {"rules", "proofs that the file does not claim", "data",
       [](PlanClaim* c) {
         for (Rule& rule : c->rules.rules) rule.proof = ProofRecord();
       },
       ""},
  };
}

}  // namespace isomer
