#include "optimizer/page/derivation_json.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optimizer/report/folded_name.h"
#include "optimizer/report/plan_facts.h"
#include "pcg/ir/type_inference.h"

namespace isomer {
namespace {

struct StepRow {
  std::string rule, at, operators, result;
  int64_t times = 0;
  int first_step = 0;
  bool has_calls = false;  // it has calls, not parallel operators alone
  double before_us = 0, after_us = 0;
};

class StepRows {
 public:
  StepRows(const Plan& plan, const Lineage& lineage, const CostModel& cost)
      : plan_(plan), lineage_(lineage), grown_(lineage.grown()), cost_(cost) {
    for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) Add(step);
  }

  Json ToJson() const {
    Json json;
    json["steps"] = plan_.steps.size();
    json["row_of_step"] = row_of_step_;
    json["rows"] = Json::EmptyArray();
    for (const StepRow& row : rows_) {
      Json one;
      one["rule"] = row.rule;
      one["at"] = row.at;
      one["operators"] = row.operators;
      one["result"] = row.result;
      one["times"] = row.times;
      one["first_step"] = row.first_step;
      one["has_calls"] = row.has_calls;
      if (row.has_calls) {
        one["task_us_before"] = row.before_us;
        one["task_us_after"] = row.after_us;
      }
      json["rows"].Append(std::move(one));
    }
    return json;
  }

 private:
  void Add(int number) {
    const DerivationStep& step = plan_.steps[number];
    StepRow row;
    row.rule = step.rule;
    row.first_step = number;
    std::vector<NodeId> added;
    for (int id = lineage_.AddedBy(number); id < lineage_.AddedBy(number + 1); ++id) {
      added.push_back({id});
    }
    row.operators = OperatorsOf(step.nodes);
    row.result = OperatorsOf(added);
    for (NodeId id : step.nodes) {
      const std::string& name = grown_.node(id).name;
      if (row.at.empty() || !IsParallel(grown_.node(id).op.kind())) row.at = FoldedName(name);
    }
    row.has_calls = AddTimes(step.nodes, &row.before_us) | AddTimes(added, &row.after_us);
    const std::string key =
        absl::StrCat(row.rule, "|", row.at, "|", row.operators, "|", row.result);
    const auto [it, is_new] = places_.try_emplace(key, static_cast<int>(rows_.size()));
    row_of_step_.push_back(it->second);
    if (is_new) {
      row.times = 1;
      rows_.push_back(std::move(row));
      return;
    }
    StepRow& known = rows_[it->second];
    ++known.times;
    known.before_us += row.before_us;
    known.after_us += row.after_us;
  }

  std::string OperatorsOf(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> texts;
    for (NodeId id : nodes) texts.push_back(grown_.node(id).op.ToString());
    return absl::StrJoin(texts, ", ");
  }

  // Whether there are calls among them.
  bool AddTimes(const std::vector<NodeId>& nodes, double* us) {
    bool has_calls = false;
    for (NodeId id : nodes) {
      const OpKind kind = grown_.node(id).op.kind();
      if (IsLeaf(kind) || IsParallel(kind)) continue;
      has_calls = true;
      *us += TaskUsOf(grown_.node(id));
    }
    return has_calls;
  }

  double TaskUsOf(const Node& node) {
    std::vector<TensorType> operands;
    std::string key = node.op.ToString();
    for (TensorRef input : node.inputs) {
      operands.push_back(grown_.type(input));
      if (IsFloat(operands.back().dtype)) operands.back().dtype = plan_.precision;
      absl::StrAppend(&key, "|", operands.back().ToString());
    }
    const auto [it, is_new] = task_us_.try_emplace(key, 0);
    if (!is_new) return it->second;
    const auto sharding = InferSharding(node.op, operands);
    if (!sharding.ok()) return 0;
    const bool training = plan_.mode == "training";
    it->second =
        cost_.CallUs(node.op, operands, {}, ForwardWork(node.op, *sharding, operands, training));
    std::vector<bool> wanted;
    bool wants = false;
    for (const TensorType& operand : operands) {
      wanted.push_back(IsFloat(operand.dtype));
      wants |= wanted.back();
    }
    if (training && wants) {
      it->second += cost_.CallUs(node.op, operands, wanted,
                                 GradientWork(node.op, *sharding, operands, wanted));
    }
    return it->second;
  }

  const Plan& plan_;
  const Lineage& lineage_;
  const Graph& grown_;
  const CostModel& cost_;
  std::vector<StepRow> rows_;
  std::vector<int> row_of_step_;
  std::map<std::string, int> places_;
  std::map<std::string, double> task_us_;
};

}  // namespace

Json DerivationJson(const Plan& plan, const Lineage& lineage, const CostModel& cost) {
  return StepRows(plan, lineage, cost).ToJson();
}

Json RulesJson(const Plan& plan, const RuleSet& rules) {
  Json json = Json::EmptyArray();
  for (const RuleUse& use : RulesUsed(plan, rules)) {
    Json one;
    one["id"] = use.id;
    one["kind"] = use.kind;
    one["times"] = use.times;
    one["equation"] = use.text;
    if (const Rule* rule = rules.Find(use.id); rule != nullptr) {
      one["verdict"] = VerdictName(rule->proof.verdict);
      one["lemmas"] = rule->proof.lemmas;
      one["solver"] = rule->proof.solver;
      one["note"] = rule->proof.note;
      one["origin"] = rule->origin;
    }
    json.Append(std::move(one));
  }
  return json;
}

}  // namespace isomer
