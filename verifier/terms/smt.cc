#include "verifier/terms/smt.h"

#include <z3++.h>

#include <memory>
#include <set>

#include "absl/strings/str_cat.h"

namespace isomer {
namespace {

// A bound on work rather than time, so that verdicts are the same on every machine.
constexpr unsigned kResourceLimit = 1000000;

// A fresh solver for each goal, in a context that is replaced before it grows large: making a
// context takes longer (1.7 ms) than deciding most goals, and Z3's combined solver, its default,
// takes 10 ms to start.
constexpr int kGoalsPerContext = 200;

z3::context& Context() {
  static std::unique_ptr<z3::context> context;
  static int goals = 0;
  if (goals++ % kGoalsPerContext == 0) context = std::make_unique<z3::context>();
  return *context;
}

z3::solver FreshSolver(z3::context* context) {
  z3::solver solver(*context, z3::solver::simple());
  z3::params parameters(*context);
  parameters.set("rlimit", kResourceLimit);
  solver.set(parameters);
  return solver;
}

class ExponentEncoder {
 public:
  explicit ExponentEncoder(z3::context* context) : context_(context) {}

  z3::expr Linear(const Extent& form) {
    z3::expr sum = context_->int_val(form.constant());
    for (const auto& [symbol, coefficient] : form.terms()) {
      sum = sum + context_->int_val(coefficient) * Variable(symbol);
    }
    return sum;
  }

  z3::expr Formula(const ExponentFact& fact) {
    switch (fact.kind) {
      case ExponentFact::Kind::kEqual:
        return Linear(fact.left) == Linear(fact.right);
      case ExponentFact::Kind::kAtMost:
        return Linear(fact.left) <= Linear(fact.right);
      case ExponentFact::Kind::kAboveLeast:
        break;
    }
    z3::expr any = context_->bool_val(false);
    for (const Extent& part : fact.parts) any = any || Linear(fact.left) >= Linear(part);
    return any;
  }

  // Every variable seen so far is at least 0.
  z3::expr NonNegative() const {
    z3::expr all = context_->bool_val(true);
    for (const auto& [symbol, variable] : variables_) all = all && variable >= 0;
    return all;
  }
  z3::expr Sum() const {
    z3::expr sum = context_->int_val(0);
    for (const auto& [symbol, variable] : variables_) sum = sum + variable;
    return sum;
  }

  std::map<int, int64_t> Model(const z3::model& model) const {
    std::map<int, int64_t> values;
    for (const auto& [symbol, variable] : variables_) {
      values[symbol] = model.eval(variable, true).get_numeral_int64();
    }
    return values;
  }

 private:
  z3::expr Variable(int symbol) {
    auto at = variables_.find(symbol);
    if (at == variables_.end()) {
      const std::string name = absl::StrCat("e", symbol);
      at = variables_.emplace(symbol, context_->int_const(name.c_str())).first;
    }
    return at->second;
  }

  z3::context* context_;
  std::map<int, z3::expr> variables_;
};

}  // namespace

std::string SolverName() {
  unsigned major, minor, build, revision;
  Z3_get_version(&major, &minor, &build, &revision);
  return absl::StrCat("z3 ", major, ".", minor, ".", build);
}

ExponentAnswer DecideExponents(const std::vector<ExponentFact>& hypotheses,
                               const std::vector<ExponentFact>& conclusions) {
  z3::context& context = Context();
  z3::solver solver = FreshSolver(&context);
  ExponentEncoder encoder(&context);
  z3::expr_vector failures(context);
  for (const ExponentFact& fact : hypotheses) solver.add(encoder.Formula(fact));
  for (const ExponentFact& fact : conclusions) failures.push_back(!encoder.Formula(fact));
  solver.add(z3::mk_or(failures));
  solver.add(encoder.NonNegative());
  ExponentAnswer answer;
  const z3::check_result result = solver.check();
  if (result == z3::unsat) answer.verdict = SmtVerdict::kValid;
  if (result != z3::sat) return answer;
  answer.verdict = SmtVerdict::kInvalid;
  const z3::model model = solver.get_model();
  answer.model = encoder.Model(model);
  for (unsigned i = 0; i < failures.size() && answer.failed < 0; ++i) {
    if (model.eval(failures[static_cast<int>(i)], true).is_true())
      answer.failed = static_cast<int>(i);
  }
  return answer;
}

std::map<int, int64_t> RefuteAll(const std::vector<ExponentFact>& hypotheses,
                                 const std::vector<std::vector<ExponentFact>>& alternatives) {
  z3::context& context = Context();
  z3::solver solver = FreshSolver(&context);
  ExponentEncoder encoder(&context);
  for (const ExponentFact& fact : hypotheses) solver.add(encoder.Formula(fact));
  for (const std::vector<ExponentFact>& alternative : alternatives) {
    z3::expr_vector failures(context);
    for (const ExponentFact& fact : alternative) failures.push_back(!encoder.Formula(fact));
    solver.add(z3::mk_or(failures));
  }
  solver.add(encoder.NonNegative());
  if (solver.check() != z3::sat) return {};
  return encoder.Model(solver.get_model());
}

std::vector<std::map<int, int64_t>> SolveExponents(const std::vector<ExponentFact>& facts,
                                                   int count) {
  z3::context& context = Context();
  z3::solver solver = FreshSolver(&context);
  ExponentEncoder encoder(&context);
  for (const ExponentFact& fact : facts) solver.add(encoder.Formula(fact));
  solver.add(encoder.NonNegative());
  std::vector<std::map<int, int64_t>> models;
  for (int64_t bound = 0; bound <= 24 && static_cast<int>(models.size()) < count;) {
    z3::expr_vector assumptions(context);
    const z3::expr within = context.bool_const(absl::StrCat("within", bound).c_str());
    solver.add(z3::implies(within, encoder.Sum() <= context.int_val(bound)));
    assumptions.push_back(within);
    if (solver.check(assumptions) != z3::sat) {
      ++bound;
      continue;
    }
    models.push_back(encoder.Model(solver.get_model()));
    z3::expr differs = context.bool_val(false);
    for (const auto& [symbol, value] : models.back()) {
      differs = differs || encoder.Linear(Extent::Symbol(symbol)) != context.int_val(value);
    }
    solver.add(differs);
  }
  return models;
}

}  // namespace isomer
