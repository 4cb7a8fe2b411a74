#include "verifier/audit/array_degrees.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {
namespace {

// The value of a variable plus a constant.
struct Exponent {
  int variable = 0;  // 0: the constant alone
  int64_t plus = 0;
};
using Exponents = std::vector<Exponent>;  // of a tensor's dims

// What an operator asks of its operands' degrees.
struct Demand {
  std::string who;    // "target operator 1 (OP_REDUCE)"
  bool equal = true;  // left == right; else left >= right.plus
  Exponent left, right;
};

// Variables that are at least 0, classes of those whose differences are known.
class Differences {
 public:
  explicit Differences(int variables) : parent_(variables), plus_(variables), least_(variables) {
    for (int v = 0; v < variables; ++v) parent_[v] = v;
  }

  // Adds a demand; false: it contradicts those before.
  bool Add(const Demand& demand) {
    const Exponent left = Resolved(demand.left), right = Resolved(demand.right);
    if (!demand.equal) {
      int64_t& least = least_[left.variable];
      least = std::max(least, right.plus - left.plus);
    } else if (left.variable == right.variable) {
      return left.plus == right.plus;
    } else {
      // right's root = left's root + difference
      const int64_t difference = left.plus - right.plus;
      parent_[right.variable] = left.variable;
      plus_[right.variable] = difference;
      least_[left.variable] = std::max(least_[left.variable], least_[right.variable] - difference);
    }
    return IsPossible();
  }

  bool Implies(const Demand& demand) const {
    const Exponent left = Resolved(demand.left), right = Resolved(demand.right);
    if (demand.equal) return left.variable == right.variable && left.plus == right.plus;
    return Least(left.variable) + left.plus >= right.plus;
  }

  // The smallest values at which the demand fails. REQUIRES: it is not implied.
  std::vector<int64_t> Against(const Demand& demand) const {
    std::vector<int64_t> values = Values(/*raised=*/0);
    for (const Exponent& side : {demand.left, demand.right}) {
      if (!Holds(demand, values)) break;
      values = Values(Resolved(side).variable);
    }
    return values;
  }

 private:
  static bool Holds(const Demand& demand, const std::vector<int64_t>& values) {
    const int64_t left = values[demand.left.variable] + demand.left.plus;
    const int64_t right = values[demand.right.variable] + demand.right.plus;
    return demand.equal ? left == right : left >= right;
  }
  // A value of each variable, as small as may be, but for one more of a class (of 0: none).
  std::vector<int64_t> Values(int raised) const {
    std::vector<int64_t> values;
    for (int v = 0; v < static_cast<int>(parent_.size()); ++v) {
      const Exponent at = Resolved({v, 0});
      const bool is_raised = at.variable == raised && raised != Resolved({0, 0}).variable;
      values.push_back(Least(at.variable) + at.plus + (is_raised ? 1 : 0));
    }
    return values;
  }
  Exponent Resolved(Exponent exponent) const {
    while (parent_[exponent.variable] != exponent.variable) {
      exponent.plus += plus_[exponent.variable];
      exponent.variable = parent_[exponent.variable];
    }
    return exponent;
  }
  // The class of variable 0, which is 0, has one value.
  int64_t Least(int root) const {
    const Exponent zero = Resolved({0, 0});
    return zero.variable == root ? -zero.plus : least_[root];
  }
  bool IsPossible() const {
    const Exponent zero = Resolved({0, 0});
    return -zero.plus >= least_[zero.variable];
  }

  std::vector<int> parent_;
  std::vector<int64_t> plus_;   // to the parent
  std::vector<int64_t> least_;  // of roots
};

int64_t PowerOf(int64_t prime, int64_t number) {
  int64_t power = 0;
  for (; number > 0 && number % prime == 0; number /= prime) ++power;
  return power;
}

std::set<int64_t> PrimesOf(const ForeignRule& rule) {
  std::set<int64_t> primes;
  for (const auto* side : {&rule.source, &rule.target}) {
    for (const ForeignOperator& op : *side) {
      int64_t rest = op.Find("PM_PARALLEL_DEGREE").value_or(1);
      for (int64_t prime = 2; rest > 1; ++prime) {
        for (; rest % prime == 0; rest /= prime) primes.insert(prime);
      }
    }
  }
  return primes;
}

// The demands of both sides on the exponents of one prime.
class DemandReader {
 public:
  DemandReader(const ForeignRule& rule, int rank, int64_t prime)
      : rule_(rule), rank_(rank), prime_(prime) {
    const auto sources = ReadSide("source", rule.source, &source_);
    const auto targets = ReadSide("target", rule.target, &target_);
    for (size_t o = 0; o < rule.outputs.size(); ++o) {
      const auto& [from, to] = rule.outputs[o];
      Equal(absl::StrCat("mapped output ", o), sources[from.op], targets[to.op], -1, &target_);
    }
  }

  const std::vector<Demand>& source() const { return source_; }
  const std::vector<Demand>& target() const { return target_; }
  int num_variables() const { return static_cast<int>(inputs_.size()) * rank_ + 1; }

  // "x0 in 2 x 1 x 1 pieces".
  std::string Text(const std::vector<int64_t>& values) const {
    std::vector<std::string> parts;
    for (const auto& [tensor, number] : inputs_) {
      std::vector<int64_t> degrees;
      for (int i = 0; i < rank_; ++i) {
        int64_t degree = 1;
        for (int64_t e = values[1 + number * rank_ + i]; e > 0; --e) degree *= prime_;
        degrees.push_back(degree);
      }
      parts.push_back(
          absl::StrCat("input ", tensor.op, " in ", absl::StrJoin(degrees, " x "), " pieces"));
    }
    return absl::StrJoin(parts, ", ");
  }

 private:
  Exponents InputOf(ForeignTensor tensor) {
    const int number = inputs_.emplace(tensor, static_cast<int>(inputs_.size())).first->second;
    Exponents exponents;
    for (int i = 0; i < rank_; ++i) exponents.push_back({1 + number * rank_ + i, 0});
    return exponents;
  }

  static void Equal(const std::string& who, const Exponents& a, const Exponents& b, int except,
                    std::vector<Demand>* demands) {
    for (int i = 0; i < static_cast<int>(a.size()); ++i) {
      if (i != except) demands->push_back({who, true, a[i], b[i]});
    }
  }

  // Outputs of one operator are alike.
  std::vector<Exponents> ReadSide(const std::string& side, const std::vector<ForeignOperator>& ops,
                                  std::vector<Demand>* demands) {
    std::vector<Exponents> outputs;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      std::vector<Exponents> operands;
      for (ForeignTensor t : ops[i].inputs) {
        operands.push_back(t.op < 0 ? InputOf(t) : outputs[t.op]);
      }
      outputs.push_back(Read(LabelOf(side, i, ops[i]), ops[i], operands, demands));
    }
    return outputs;
  }

  Exponents Read(const std::string& who, const ForeignOperator& op,
                 const std::vector<Exponents>& operands, std::vector<Demand>* demands) const {
    Exponents result = operands[0];
    const int dim = static_cast<int>(op.Find("PM_PARALLEL_DIM").value_or(0));
    const int64_t power = PowerOf(prime_, op.Find("PM_PARALLEL_DEGREE").value_or(1));
    if (op.type == "OP_PARTITION" || op.type == "OP_REPLICATE") {
      result[dim].plus += power;
    } else if (op.type == "OP_COMBINE" || op.type == "OP_REDUCE") {
      result[dim].plus -= power;
      demands->push_back({who, false, result[dim], {}});
    } else if (op.type == "OP_CONCAT" || op.type == "OP_SPLIT") {
      const int axis = static_cast<int>(*op.Find("PM_AXIS"));
      for (const Exponents& operand : operands) {
        demands->push_back({who, true, operand[axis], {}});
        Equal(who, operands[0], operand, axis, demands);
      }
    } else if (op.type == "OP_LINEAR" || op.type == "OP_MATMUL" || op.type == "OP_BATCHMATMUL") {
      ReadMatMul(who, op.type == "OP_LINEAR", operands, &result, demands);
    } else if (op.type != "OP_MUL") {  // whose second operand is a number
      for (const Exponents& operand : operands) Equal(who, operands[0], operand, -1, demands);
    }
    return result;
  }

  // Batch dims are alike, and what is summed over is whole: pieces of it would be partial sums.
  void ReadMatMul(const std::string& who, bool transposed, const std::vector<Exponents>& operands,
                  Exponents* result, std::vector<Demand>* demands) const {
    const Exponents &a = operands[0], &b = operands[1];
    for (int i = 0; i + 2 < rank_; ++i) demands->push_back({who, true, a[i], b[i]});
    const int n = rank_ - (transposed ? 2 : 1), k = rank_ - (transposed ? 1 : 2);
    demands->push_back({who, true, a[rank_ - 1], {}});
    demands->push_back({who, true, b[k], {}});
    (*result)[rank_ - 1] = b[n];
  }

  const ForeignRule& rule_;
  const int rank_;
  const int64_t prime_;
  std::map<ForeignTensor, int> inputs_;
  std::vector<Demand> source_, target_;
};

DegreesVerdict CheckPrime(const ForeignRule& rule, int rank, int64_t prime) {
  using Kind = DegreesVerdict::Kind;
  const DemandReader reader(rule, rank, prime);
  Differences known(reader.num_variables());
  for (const Demand& demand : reader.source()) {
    if (!known.Add(demand)) {
      return {Kind::kSourceImpossible, absl::StrCat(demand.who, ": no degrees fit")};
    }
  }
  Differences both = known;
  for (const Demand& demand : reader.target()) {
    if (!both.Add(demand)) {
      return {Kind::kTargetImpossible, absl::StrCat(demand.who, ": no degrees fit")};
    }
  }
  for (const Demand& demand : reader.target()) {
    if (known.Implies(demand)) continue;
    return {Kind::kTargetFails,
            absl::StrCat(reader.Text(known.Against(demand)), ": ", demand.who, " does not fit")};
  }
  return {};
}

}  // namespace

DegreesVerdict CheckDegrees(const ForeignRule& rule, int rank) {
  for (int64_t prime : PrimesOf(rule)) {
    DegreesVerdict verdict = CheckPrime(rule, rank, prime);
    if (verdict.kind != DegreesVerdict::Kind::kHold) return verdict;
  }
  return {};
}

}  // namespace isomer
