// Steps that are not there, not there any more, or other ones.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/unsound/false_plans.h"

namespace isomer {
namespace {

using Step = DerivationStep;

ClaimChange OfStep(size_t s, std::function<void(Step*)> change) {
  return [=](PlanClaim* claim) { change(&claim->plan.steps[s]); };
}
ClaimChange OfSteps(std::function<void(std::vector<Step>*)> change) {
  return [=](PlanClaim* claim) { change(&claim->plan.steps); };
}
ClaimChange WithVariable(size_t s, const std::string& name, int64_t value) {
  return OfStep(s, [=](Step* step) { step->variables[name] = value; });
}

}  // namespace

// Of the base "data": steps 0 and 3 split products, 1 the sum, 2 relu, 4 the loss, by variables d,
// i0, j0; 5 to 8 leave out what was put together and taken apart again, by d and i.
std::vector<Forgery> ForgedSteps() {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::vector<Forgery> rows = {
      {"steps", "none", "data", OfSteps([](auto* s) { s->clear(); }), "graph: "},
      {"steps", "in another order", "data", OfSteps([](auto* s) { std::swap((*s)[0], (*s)[8]); }),
       "step 0 (rule"},
      {"steps", "backwards", "data", OfSteps([](auto* s) { std::reverse(s->begin(), s->end()); }),
       "there is no node"},
      {"steps", "those of another plan", "data", OfSteps([](auto* s) { s->resize(2); }), "graph: "},
      {"steps", "at a node of another kind", "data",
       OfStep(2, [](Step* s) { s->nodes[0].value = 0; }), "%0 input 'x' is not relu"},
      {"steps", "at a node that there is not", "data",
       OfStep(2, [](Step* s) { s->nodes[0].value = 1 << 30; }), "there is no node"},
      {"steps", "at a node before the first", "data",
       OfStep(2, [](Step* s) { s->nodes[0].value = -1; }), "there is no node"},
      {"steps", "at one node for two", "data",
       OfStep(5, [](Step* s) { s->nodes[1] = s->nodes[0]; }), "is matched twice"},
      {"steps", "at too many nodes", "data", OfStep(2, [](Step* s) { s->nodes.push_back({0}); }),
       "other numbers of nodes or inputs"},
      {"steps", "with too few inputs", "data", OfStep(1, [](Step* s) { s->inputs.pop_back(); }),
       "other numbers of nodes or inputs"},
      {"steps", "with inputs exchanged", "data",
       OfStep(0, [](Step* s) { std::swap(s->inputs[0], s->inputs[1]); }), "has other operands"},
      {"steps", "with an input of its own", "data",
       OfStep(2,
              [](Step* s) {
                s->inputs[0] = {s->nodes[0], 0};
              }),
       "has other operands"},
      {"steps", "with an input that there is not", "data",
       OfStep(2, [](Step* s) { s->inputs[0].output = 7; }), "there is no tensor"},
      {"steps", "with an input from far away", "data",
       OfStep(2, [](Step* s) { s->inputs[0].node.value = 1 << 30; }), "there is no tensor"},
      {"steps", "by no rule", "data", OfStep(2, [](Step* s) { s->rule = ""; }),
       "it has inputs or variables, but no rule"},
      {"steps", "by no rule, with calls of its own", "data",
       OfStep(2,
              [](Step* s) {
                const TensorRef input = s->inputs[0];
                const NodeId node = s->nodes[0];
                *s = {};
                s->nodes = {node};
                s->calls = {{Operator(OpKind::kRelu), {input}}};
                s->replaced = {{{node, 0}, input}};
              }),
       "step 2 (no rule)"},
      {"steps", "by a rule backwards that holds one way", "data",
       OfStep(2, [](Step* s) { s->rule += "^-1"; }), "not in the rules file"},
      {"steps", "by a rule backwards twice", "data",
       OfStep(5, [](Step* s) { s->rule += "^-1^-1"; }), "not in the rules file"},
      {"steps", "by the rule of another call", "data",
       OfSteps([](auto* s) { (*s)[2].rule = (*s)[0].rule; }), "other numbers of nodes or inputs"},
      {"steps", "half as wide", "data", WithVariable(2, "d", 2), "step 6 (rule"},
      {"steps", "along another axis", "data", WithVariable(2, "i0", -1), "step 2 (rule"},
      {"steps", "put together along another axis", "data", WithVariable(2, "j0", -1),
       "step 2 (rule"},
      {"steps", "along an axis from the front", "data", WithVariable(2, "i0", 0), "i0 is 0"},
      {"steps", "along an axis that there is not", "data", WithVariable(2, "i0", -3), "axis -3"},
      {"steps", "along the first axis of all", "data",
       WithVariable(2, "i0", std::numeric_limits<int64_t>::min()), "axis -9223372036854775808"},
      {"steps", "in no pieces", "data", WithVariable(2, "d", 0), "d is 0"},
      {"steps", "in fewer pieces than none", "data", WithVariable(2, "d", -4), "d is -4"},
      {"steps", "in three pieces of eight rows", "data", WithVariable(2, "d", 3),
       "3 does not divide"},
      {"steps", "in as many pieces as can be said", "data", WithVariable(2, "d", kMost),
       "between 1 and 2^20"},
      {"steps", "in more pieces than 32 bits", "data", WithVariable(2, "d", (int64_t{1} << 32) + 4),
       "between 1 and 2^20"},
      {"steps", "with another loss axis", "data", WithVariable(4, "i1", -1), "step 4 (rule"},
      {"steps", "without a variable", "data", OfStep(2, [](Step* s) { s->variables.erase("d"); }),
       "d is not bound"},
      {"steps", "with a variable more", "data", WithVariable(2, "e", 2),
       "no variable 'e' of this kind"},
      {"steps", "with a number for a degree", "data",
       OfStep(2, [](Step* s) { s->numbers["d"] = 4; }), "no variable 'd' of this kind"},
      {"steps", "with a whole attribute for an axis", "data",
       OfStep(2, [](Step* s) { s->attributes["i0"] = int64_t{-2}; }),
       "no variable 'i0' of this kind"},
      {"steps", "with another salt", "dropout",
       OfStep(1, [](Step* s) { s->attributes["salt"] = int64_t{4}; }), "attribute salt"},
      {"steps", "with a salt that is a list", "dropout",
       OfStep(1, [](Step* s) { s->attributes["salt"] = std::vector<int64_t>{3}; }),
       "attribute salt"},
      {"steps", "with another rate", "dropout",
       OfStep(1, [](Step* s) { s->numbers["rate"] = 0.25; }), "attribute rate"},
      {"steps", "with a rate that is no number", "dropout",
       OfStep(1, [](Step* s) { s->numbers["rate"] = std::nan(""); }), "rate"},
      {"steps", "in another order, where each adds nothing", "data",
       OfSteps([](auto* s) { std::swap((*s)[5], (*s)[8]); }), ""},
  };
  for (size_t s = 0; s < 9; ++s) {
    rows.push_back({"steps", absl::StrCat("without step ", s), "data",
                    OfSteps([s](auto* steps) { steps->erase(steps->begin() + s); }),
                    s < 5 ? "step " : "graph: "});
    rows.push_back({"steps", absl::StrCat("step ", s, " twice"), "data", OfSteps([s](auto* steps) {
                      const Step again = (*steps)[s];
                      steps->insert(steps->begin() + s, again);
                    }),
                    "was replaced before"});
  }
  return rows;
}

}  // namespace isomer
