#include "verifier/types/type_proof.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/ir/operator_facts.h"
#include "pcg/ir/type_inference.h"
#include "verifier/types/linear_facts.h"

namespace isomer {
namespace {

void InsertPrimes(int64_t number, std::set<int64_t>* primes) {
  for (int64_t p = 2; p * p <= number; ++p) {
    while (number % p == 0) {
      primes->insert(p);
      number /= p;
    }
  }
  if (number > 1) primes->insert(number);
}

// The primes that divide a constant of the rule at this instance, and 0 for all others.
std::set<int64_t> PrimesOf(const RuleInstance& instance) {
  std::set<int64_t> primes = {0};
  auto add_shape = [&](const Shape& shape) {
    for (const Extent& size : shape) {
      InsertPrimes(size.constant() < 0 ? -size.constant() : size.constant(), &primes);
      for (const auto& [symbol, coefficient] : size.terms()) {
        InsertPrimes(coefficient < 0 ? -coefficient : coefficient, &primes);
      }
    }
  };
  for (const Shape& shape : instance.inputs) add_shape(shape);
  for (const std::vector<Call>* side : {&instance.source, &instance.target}) {
    for (const Call& call : *side) {
      for (const Shape& shape : call.outputs) add_shape(shape);
      if (call.node->kind == OpKind::kConcatPartials) {
        InsertPrimes(static_cast<int64_t>(call.node->inputs.size()), &primes);
      }
      for (const AttributePattern& attribute : call.node->attributes) {
        const IntExpr* expr = std::get_if<IntExpr>(&attribute.value);
        if (attribute.name == "degree" && expr && expr->kind == IntExpr::Kind::kConstant) {
          InsertPrimes(expr->constant, &primes);
        }
      }
    }
  }
  for (const Condition& condition : instance.rule->conditions) {
    if (condition.left.kind == IntExpr::Kind::kConstant) {
      InsertPrimes(condition.left.constant, &primes);
    }
  }
  return primes;
}

// One side of a rule typed as far as its calls were added.
struct SideTypes {
  TypeEncoder encoder;
  std::vector<ExponentFact> facts;
  std::vector<std::vector<TypeForm>> nodes;

  const TypeForm& At(PatternRef ref) const {
    return ref.node < 0 ? encoder.inputs()[ref.index] : nodes[ref.node][ref.index];
  }
};

// Calls `visit` with every choice of linear sets for the calls; until it returns true.
bool ForEachChoice(const std::vector<Call>& calls, const SideTypes& so_far,
                   const std::function<bool(const SideTypes&)>& visit) {
  const size_t n = so_far.nodes.size();
  if (n == calls.size()) return visit(so_far);
  std::vector<TypeForm> operands;
  for (const PatternRef& ref : calls[n].node->inputs) operands.push_back(so_far.At(ref));
  for (const std::vector<bool>& linear : LinearSets(calls[n])) {
    SideTypes next = so_far;
    next.nodes.emplace_back();
    next.encoder.AddCall(calls[n], operands, linear, &next.facts, &next.nodes.back());
    if (ForEachChoice(calls, next, visit)) return true;
  }
  return false;
}

// The cases of the source's being well typed, conditions included.
void ForEachCase(const RuleInstance& instance, int64_t prime,
                 const std::function<bool(const SideTypes&)>& visit) {
  ForEachChoice(instance.source, {TypeEncoder(instance, prime), {}, {}},
                [&](const SideTypes& side) {
                  SideTypes typed = side;
                  typed.encoder.AddConditions(typed.nodes, &typed.facts);
                  return visit(typed);
                });
}

std::vector<ExponentFact> Hypotheses(const SideTypes& source, const TypeEncoder& encoder) {
  std::vector<ExponentFact> facts = encoder.base_facts();
  facts.insert(facts.end(), source.facts.begin(), source.facts.end());
  return facts;
}

ExponentFact Equals(const Extent& a, const Extent& b, std::string text) {
  ExponentFact fact;
  fact.left = a;
  fact.right = b;
  fact.text = std::move(text);
  return fact;
}

// That the outputs of both sides have the same types.
std::vector<ExponentFact> SameOutputs(const Rule& rule, const SideTypes& source,
                                      const SideTypes& target) {
  std::vector<ExponentFact> facts;
  for (size_t o = 0; o < rule.source.outputs.size(); ++o) {
    const TypeForm &a = source.At(rule.source.outputs[o]), &b = target.At(rule.target.outputs[o]);
    for (size_t i = 0; i < a.degrees.size(); ++i) {
      facts.push_back(
          Equals(a.degrees[i], b.degrees[i], absl::StrCat("output ", o, ": degree of dim ", i)));
    }
    facts.push_back(Equals(a.copies, b.copies, absl::StrCat("output ", o, ": copies")));
    facts.push_back(Equals(a.partials, b.partials, absl::StrCat("output ", o, ": partials")));
  }
  return facts;
}

// A choice of linear sets for the target's calls, and what it leaves to be proved.
struct Attempt {
  SideTypes target;
  std::vector<ExponentFact> hypotheses;
  std::vector<ExponentFact> open;  // does not follow by substitution
};

// Up to the first that leaves nothing, if `one_suffices`.
std::vector<Attempt> AttemptsAt(const RuleInstance& instance, const SideTypes& source,
                                bool one_suffices) {
  std::vector<Attempt> attempts;
  ForEachChoice(instance.target, {source.encoder, {}, {}}, [&](const SideTypes& target) {
    Attempt attempt{target, Hypotheses(source, target.encoder), target.facts};
    for (ExponentFact& fact : SameOutputs(*instance.rule, source, target)) {
      attempt.open.push_back(std::move(fact));
    }
    std::erase_if(attempt.open, [known = LinearFacts(attempt.hypotheses)](const ExponentFact& f) {
      return known.Imply(f);
    });
    attempts.push_back(std::move(attempt));
    return one_suffices && attempts.back().open.empty();
  });
  return attempts;
}

// One choice for the source's calls, at every prime: [prime][choice for the target].
using Attempts = std::vector<std::vector<Attempt>>;

// The choices for the target, those that leave least to be proved first.
std::vector<size_t> ByWhatIsOpen(const Attempts& attempts) {
  std::vector<size_t> open(attempts[0].size()), order(attempts[0].size());
  for (size_t t = 0; t < order.size(); ++t) {
    order[t] = t;
    for (const std::vector<Attempt>& at_prime : attempts) open[t] += at_prime[t].open.size();
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return open[a] < open[b]; });
  return order;
}

// A choice for the target must fit all primes, since it is one of operands, not of exponents.
bool SomeChoiceFits(const Attempts& attempts, bool ask_solver, std::string* why) {
  for (const size_t t : ByWhatIsOpen(attempts)) {
    const bool fits = std::all_of(attempts.begin(), attempts.end(), [&](const auto& at_prime) {
      const Attempt& attempt = at_prime[t];
      if (attempt.open.empty()) return true;
      if (!ask_solver) return false;
      const ExponentAnswer answer = DecideExponents(attempt.hypotheses, attempt.open);
      if (answer.failed >= 0) *why = attempt.open[answer.failed].text;
      return answer.verdict == SmtVerdict::kValid;
    });
    if (fits) return true;
  }
  return false;
}

// Looks for exponents of one prime at which every choice fails.
SmtVerdict Refute(const Attempts& attempts, std::vector<Binding>* suspects) {
  for (const std::vector<Attempt>& at_prime : attempts) {
    std::vector<std::vector<ExponentFact>> alternatives;
    for (const Attempt& attempt : at_prime) alternatives.push_back(attempt.open);
    // Each choice numbers its sums of sizes afresh, but alike.
    const Attempt& last = at_prime.back();
    const std::map<int, int64_t> model = RefuteAll(last.hypotheses, alternatives);
    if (model.empty()) continue;
    for (uint64_t seed : {0, 1, 2}) {
      suspects->push_back(last.target.encoder.BindingOf(model, seed));
    }
    return SmtVerdict::kInvalid;
  }
  return SmtVerdict::kUnknown;
}

}  // namespace

TypeProof ProveTypes(const RuleInstance& instance) {
  TypeProof proof;
  if (!instance.target_status.ok()) {
    proof.verdict = SmtVerdict::kInvalid;
    proof.why = absl::StrCat("shapes: ", std::string(instance.target_status.message()), " at ",
                             instance.ToString());
    proof.suspects = SmallBindings(instance, 3, 1);
    return proof;
  }
  std::vector<std::vector<SideTypes>> cases;  // [prime][choice for the source]
  for (int64_t prime : PrimesOf(instance)) {
    cases.emplace_back();
    ForEachCase(instance, prime, [&](const SideTypes& source) {
      cases.back().push_back(source);
      return false;
    });
  }
  for (size_t s = 0; s < cases[0].size(); ++s) {
    Attempts attempts;
    for (const std::vector<SideTypes>& at_prime : cases) {
      attempts.push_back(AttemptsAt(instance, at_prime[s], cases.size() == 1));
    }
    std::string why = "not decided";
    if (SomeChoiceFits(attempts, false, &why) || SomeChoiceFits(attempts, true, &why)) continue;
    proof.why = absl::StrCat("types: ", why, " at ", instance.ToString());
    proof.verdict = Refute(attempts, &proof.suspects);
    return proof;
  }
  proof.verdict = SmtVerdict::kValid;
  return proof;
}

std::vector<Binding> SmallBindings(const RuleInstance& instance, int count, uint64_t seed) {
  std::vector<Binding> bindings;
  // Powers of 2 fit every constant that is a power of 2, which is all that generation uses.
  const int64_t prime = PrimesOf(instance).contains(2) ? 2 : 0;
  for (bool with_degrees : {true, false}) {
    ForEachCase(instance, prime, [&](const SideTypes& source) {
      std::vector<ExponentFact> facts = Hypotheses(source, source.encoder);
      for (const auto& [name, variable] : source.encoder.degree_variables()) {
        ExponentFact above_one;
        above_one.kind = ExponentFact::Kind::kAtMost;
        above_one.left = with_degrees ? 1 : 0;
        above_one.right = Extent::Symbol(variable);
        facts.push_back(std::move(above_one));
      }
      for (const auto& model : SolveExponents(facts, count)) {
        bindings.push_back(source.encoder.BindingOf(model, seed));
      }
      return static_cast<int>(bindings.size()) >= 3 * count;
    });
    if (!bindings.empty() || instance.rule->variables.empty()) break;
  }
  return bindings;
}

namespace {

// The most outputs that `pattern` uses of one node.
int MostOutputs(const Pattern& pattern) {
  int most = 1;
  auto use = [&most](PatternRef ref) { most = std::max(most, ref.node < 0 ? 1 : ref.index + 1); };
  for (const PatternNode& node : pattern.nodes) {
    for (PatternRef ref : node.inputs) use(ref);
  }
  for (PatternRef ref : pattern.outputs) use(ref);
  return most;
}

// Goes over all data types of the inputs that the source accepts, and of what a Cast makes. Calls
// that round integers are no business of rules (Admits).
class DataTypeCheck {
 public:
  explicit DataTypeCheck(const Rule& rule)
      : rule_(rule),
        used_(std::max(MostOutputs(rule.source), MostOutputs(rule.target))),
        types_(rule.num_inputs) {}

  bool Agrees() {
    for (DataType type : kAllDataTypes) {
      cast_to_ = type;
      if (!AgreesFrom(0, {})) return false;
    }
    return true;
  }

 private:
  using NodeTypes = std::vector<std::vector<DataType>>;  // [node][output]

  // The source's nodes up to `node` accept the types chosen for the inputs they use.
  bool AgreesFrom(size_t node, const NodeTypes& nodes) {
    if (node < rule_.source.nodes.size()) {
      return ForEachTypes(rule_.source.nodes[node].inputs, 0, [&] {
        NodeTypes next = nodes;
        return !AddNode(rule_.source.nodes[node], &next) || rounds_ || AgreesFrom(node + 1, next);
      });
    }
    return ForEachTypes(rule_.source.outputs, 0, [&] {
      NodeTypes target;
      for (const PatternNode& other : rule_.target.nodes) {
        if (!AddNode(other, &target)) return false;
        if (rounds_) return true;
      }
      for (size_t o = 0; o < rule_.source.outputs.size(); ++o) {
        if (At(rule_.source.outputs[o], nodes) != At(rule_.target.outputs[o], target)) return false;
      }
      return true;
    });
  }

  // With every type of those inputs among `refs` that have none yet. False: `visit` was once.
  bool ForEachTypes(const std::vector<PatternRef>& refs, size_t from,
                    const std::function<bool()>& visit) {
    while (from < refs.size() && (refs[from].node >= 0 || types_[refs[from].index])) ++from;
    if (from == refs.size()) return visit();
    const int input = refs[from].index;
    bool agree = true;
    for (DataType type : kAllDataTypes) {
      if (!LikeAlikes(input, type)) continue;
      types_[input] = type;
      agree = agree && ForEachTypes(refs, from + 1, visit);
    }
    types_[input].reset();
    return agree;
  }

  bool LikeAlikes(int input, DataType type) const {
    for (const Condition& condition : rule_.conditions) {
      if (condition.kind != Condition::Kind::kSameType) continue;
      for (const auto& [a, b] : {std::pair(condition.input, condition.input_b),
                                 std::pair(condition.input_b, condition.input)}) {
        if (a == input && types_[b].has_value() && *types_[b] != type) return false;
      }
    }
    return true;
  }

  DataType At(PatternRef ref, const NodeTypes& nodes) const {
    // An input of the target alone is anything.
    if (ref.node < 0) return types_[ref.index].value_or(DataType::kFloat32);
    return nodes[ref.node][ref.index];
  }

  bool AddNode(const PatternNode& node, NodeTypes* nodes) {
    std::vector<DataType> operands;
    for (const PatternRef& ref : node.inputs) operands.push_back(At(ref, *nodes));
    // Attributes are the same on both sides; which type a Cast makes is the only one that counts.
    Operator op(node.kind);
    if (node.kind == OpKind::kCast) op.Set("to", static_cast<int64_t>(cast_to_));
    nodes->emplace_back();
    for (int output = 0; output < used_; ++output) {
      const absl::StatusOr<DataType> type = InferDataType(op, operands, output);
      if (!type.ok()) return false;
      nodes->back().push_back(*type);
    }
    rounds_ = RoundsIntegers(op, operands[0], nodes->back()[0]);
    return true;
  }

  const Rule& rule_;
  const int used_;
  DataType cast_to_ = DataType::kFloat32;
  bool rounds_ = false;                         // the node that was added last
  std::vector<std::optional<DataType>> types_;  // of the inputs chosen so far
};

}  // namespace

bool DataTypesAgree(const Rule& rule, std::string* why) {
  if (DataTypeCheck(rule).Agrees()) return true;
  *why = "types: the target does not take the data types that the source takes";
  return false;
}

}  // namespace isomer
