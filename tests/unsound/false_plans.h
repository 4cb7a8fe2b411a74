// Lies about true plans, by class.
#ifndef ISOMER_TESTS_UNSOUND_FALSE_PLANS_H_
#define ISOMER_TESTS_UNSOUND_FALSE_PLANS_H_

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pcg/ir/pcg.pb.h"
#include "tests/unsound/plan_claims.h"

namespace isomer {

// What is done to a plan; to what its file says, for what a Plan cannot say; or to the file's
// bytes.
using ClaimChange = std::function<void(PlanClaim*)>;
using MessageChange = std::function<void(proto::PlanProto*)>;
using FileChange = std::function<void(std::string*)>;

struct Forgery {
  std::string of_class, name, base;  // base: of base_plans.h
  std::variant<ClaimChange, MessageChange, FileChange> change;
  std::string refused_for;  // a part of the refusal; empty: a sound twin
  bool keeps_seal = false;  // the seal, or the rules' digest, is what is wrong
};

// The verdict on the base with the change, sealed again.
absl::Status Judge(const Forgery& forgery);

// Of one class one after the other.
std::vector<Forgery> AllForgeries();

// Of these AllForgeries is made.
std::vector<Forgery> ForgedModels();
std::vector<Forgery> ForgedGraphs();
std::vector<Forgery> ForgedSteps();
std::vector<Forgery> ForgedRules();
std::vector<Forgery> ForgedViews();
std::vector<Forgery> ForgedOptions();
std::vector<Forgery> ForgedFiles();

// `edit` changes nodes and outputs of the graph, which must type-check then.
using GraphEdit = std::function<void(std::vector<Node>*, std::vector<Graph::NamedOutput>*)>;
void Edit(Graph* graph, const GraphEdit& edit);
// The node with this label's last words, "relu" or "'loss'"; the first of several.
int NodeOf(const Graph& graph, absl::string_view label);

}  // namespace isomer

#endif  // ISOMER_TESTS_UNSOUND_FALSE_PLANS_H_
