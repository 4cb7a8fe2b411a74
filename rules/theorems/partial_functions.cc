// Which partial functions a declaration applies, read off its statements (domains.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "pcg/ir/examples.h"
#include "pcg/ir/operator.h"
#include "rules/theorems/domains.h"
#include "rules/theorems/needed_operands.h"

namespace isomer {
namespace {

using Domain = PartialFunction::Domain;

// A value on the stack of a body: what its sign is, the constant that it is, and the accesses that
// it depends on.
struct Traced {
  Sign sign = Sign::kUnknown;
  std::optional<double> constant;
  std::set<int> accesses;
  bool of_others = false;  // depends on statements or coordinates, too
  bool is_load = false;    // is just the element of the one access
  int begin = 0;           // its code begins there
};

Sign Weaker(Sign a, Sign b) { return std::max(a, b); }

// Smaller constants may be marks that stand for variables, of any sign.
constexpr double kSmallestNumber = 1e-200;

Sign SignOfConstant(double value) {
  if (value == 0) return Sign::kNonnegative;
  return value >= kSmallestNumber ? Sign::kPositive : Sign::kUnknown;
}

bool IsNonzero(const Traced& value) {
  return value.sign == Sign::kPositive ||
         (value.constant.has_value() && std::abs(*value.constant) >= kSmallestNumber);
}

std::optional<double> Folded(ScalarOp op, const Traced& a, const Traced& b) {
  if (!a.constant.has_value() || !b.constant.has_value()) return std::nullopt;
  switch (op) {
    case ScalarOp::kAdd:
      return *a.constant + *b.constant;
    case ScalarOp::kSub:
      return *a.constant - *b.constant;
    case ScalarOp::kMul:
      return *a.constant * *b.constant;
    default:
      return std::nullopt;
  }
}

Sign SignOf(ScalarOp op, const std::vector<Traced>& arguments, bool is_square) {
  auto sign = [&](int i) { return arguments[i].sign; };
  switch (op) {
    case ScalarOp::kAdd: {
      const Sign weaker = Weaker(sign(0), sign(1));
      const bool any = sign(0) == Sign::kPositive || sign(1) == Sign::kPositive;
      return weaker == Sign::kNonnegative && any ? Sign::kPositive : weaker;
    }
    case ScalarOp::kMul:
      return is_square ? std::min(sign(0), Sign::kNonnegative) : Weaker(sign(0), sign(1));
    case ScalarOp::kDiv:
      return sign(1) == Sign::kPositive ? sign(0) : Sign::kUnknown;
    case ScalarOp::kMax:
      return std::min(sign(0), sign(1));
    case ScalarOp::kExp:
      return Sign::kPositive;
    case ScalarOp::kPow:
      return sign(0) == Sign::kPositive ? Sign::kPositive : Sign::kUnknown;
    case ScalarOp::kSqrt:
      return sign(0) == Sign::kPositive ? Sign::kPositive : Sign::kNonnegative;
    case ScalarOp::kTanh:
    case ScalarOp::kErf:
    case ScalarOp::kAtan:
      return sign(0);
    case ScalarOp::kFloor:
    case ScalarOp::kRound:
      return Weaker(sign(0), Sign::kNonnegative);
    case ScalarOp::kLess:
    case ScalarOp::kEqual:
    case ScalarOp::kRandom:
      return Sign::kNonnegative;
    case ScalarOp::kWhere:
      return Weaker(sign(1), sign(2));
    default:
      return Sign::kUnknown;
  }
}

// Goes through the statements once.
class Analysis {
 public:
  Analysis(const Declaration& d, const std::vector<Sign>& operands) : d_(d), signs_(operands) {
    for (const Statement& s : d.statements) {
      Sign sign = SignOfBody(s);
      // A sum skips what a look-up does not select.
      const bool sums_none = s.reduction == Reduction::kSum && s.select_dim >= 0;
      if (sums_none) sign = Weaker(sign, Sign::kNonnegative);
      // The largest of none is no number.
      const bool may_skip = std::any_of(s.body.begin(), s.body.end(), [&](const Instruction& i) {
        return i.op == ScalarOp::kLoad && d.accesses[i.access].outside == Outside::kSkip;
      });
      if (may_skip) sign = Sign::kUnknown;
      signs_.push_back(s.positive ? Sign::kPositive : sign);
    }
  }
  // Of the operands, then of what the statements define.
  const std::vector<Sign>& signs() const { return signs_; }
  std::vector<PartialFunction> found() {
    // What the operator says of some elements is known if all of it is.
    for (const PartialFunction& a : found_) {
      for (PartialFunction& b : found_) {
        const bool alike = a.domain == Domain::kOfOperator && b.domain == a.domain;
        if (alike && a.operands == b.operands) b.of_all_elements &= a.of_all_elements;
      }
    }
    return std::move(found_);
  }

 private:
  Sign SignOfBody(const Statement& s) {
    std::vector<Traced> stack;
    for (int at = 0; at < static_cast<int>(s.body.size()); ++at) {
      const Instruction& i = s.body[at];
      std::vector<Traced> arguments(Arity(i.op));
      for (size_t a = arguments.size(); a-- > 0;) {
        arguments[a] = std::move(stack.back());
        stack.pop_back();
      }
      stack.push_back(Apply(s, at, arguments));
    }
    return stack.empty() ? Sign::kUnknown : stack.back().sign;
  }

  Traced Apply(const Statement& s, int at, const std::vector<Traced>& arguments) {
    const Instruction& i = s.body[at];
    Traced value;
    value.begin = arguments.empty() ? at : arguments[0].begin;
    switch (i.op) {
      case ScalarOp::kLoad: {
        const Access& access = d_.accesses[i.access];
        value.sign = signs_[access.tensor];
        if (access.outside == Outside::kZero) value.sign = Weaker(value.sign, Sign::kNonnegative);
        value.of_others = access.tensor >= d_.num_operands() || access.outside != Outside::kNever;
        value.accesses = {i.access};
        value.is_load = !value.of_others;
        return value;
      }
      case ScalarOp::kConstant:
        value.constant = i.constant;
        value.sign = SignOfConstant(i.constant);
        return value;
      case ScalarOp::kInside:
      case ScalarOp::kIndex:
        value.sign = Sign::kNonnegative;
        value.of_others = true;
        return value;
      default:
        break;
    }
    for (const Traced& argument : arguments) {
      value.accesses.insert(argument.accesses.begin(), argument.accesses.end());
      value.of_others |= argument.of_others;
    }
    if (arguments.size() == 2) value.constant = Folded(i.op, arguments[0], arguments[1]);
    value.sign = value.constant.has_value() ? SignOfConstant(*value.constant)
                                            : SignOf(i.op, arguments, IsSquare(s, at, arguments));
    NotePartial(s, i.op, arguments);
    return value;
  }

  // Both factors are the same code.
  bool IsSquare(const Statement& s, int at, const std::vector<Traced>& arguments) const {
    if (s.body[at].op != ScalarOp::kMul) return false;
    const int first = arguments[0].begin, second = arguments[1].begin;
    if (second - first != at - second) return false;
    for (int i = 0; i < second - first; ++i) {
      const Instruction &a = s.body[first + i], &b = s.body[second + i];
      if (a.op != b.op || a.dim != b.dim || a.constant != b.constant) return false;
      // A load is an access of its own each time.
      if ((a.access < 0) != (b.access < 0)) return false;
      if (a.access >= 0 && !SameAccess(a.access, b.access)) return false;
    }
    return true;
  }

  bool SameAccess(int a, int b) const {
    const Access &x = d_.accesses[a], &y = d_.accesses[b];
    return x.tensor == y.tensor && x.indices == y.indices && x.outside == y.outside;
  }

  void NotePartial(const Statement& s, ScalarOp op, const std::vector<Traced>& arguments) {
    switch (op) {
      case ScalarOp::kDiv:
        if (!IsNonzero(arguments[1])) Note(s, Domain::kNonzero, {arguments[1]});
        break;
      case ScalarOp::kLog:
        if (arguments[0].sign != Sign::kPositive) Note(s, Domain::kPositive, {arguments[0]});
        break;
      case ScalarOp::kSqrt:
        // At zero it is defined and has no gradient, so what may be zero is a partial function too.
        if (arguments[0].sign != Sign::kPositive && !IsNonzero(arguments[0])) {
          Note(s, Domain::kNonnegative, {arguments[0]});
        }
        break;
      case ScalarOp::kPow:
        if (arguments[0].sign != Sign::kPositive) Note(s, Domain::kOfOperator, arguments);
        break;
      default:
        break;
    }
  }

  void Note(const Statement& s, Domain domain, const std::vector<Traced>& arguments) {
    PartialFunction f{domain, {}, true};
    // Places are those of the first access; others must be at the same.
    std::optional<int> place;
    for (const Traced& argument : arguments) {
      if (argument.of_others) return found_.push_back({});
      if (!argument.is_load) f.domain = Domain::kOfOperator;
      for (int a : argument.accesses) {
        const Access& access = d_.accesses[a];
        if (place.has_value() && access.indices != d_.accesses[*place].indices) {
          return found_.push_back({});
        }
        place = a;
        f.of_all_elements &= AppliesToAll(s, access);
        if (std::find(f.operands.begin(), f.operands.end(), access.tensor) == f.operands.end()) {
          f.operands.push_back(access.tensor);
        }
      }
    }
    if (f.operands.empty()) return found_.push_back({});
    found_.push_back(std::move(f));
  }

  // The statement reads every element of the operand, and does not choose between what it makes.
  bool AppliesToAll(const Statement& s, const Access& access) const {
    return ReadsAll(d_, s, access) &&
           std::none_of(s.body.begin(), s.body.end(),
                        [](const Instruction& i) { return i.op == ScalarOp::kWhere; });
  }

  const Declaration& d_;
  std::vector<Sign> signs_;
  std::vector<PartialFunction> found_;
};

bool IsPartialInAnExample(OpKind kind) {
  for (const ExampleCall& example : ExamplesOf(kind)) {
    Operator op = example.op;
    for (const Attribute& attribute : example.op.attributes()) {
      // Epsilons that do not help.
      if (std::holds_alternative<double>(attribute.value)) op.Set(attribute.name, -1.0);
    }
    absl::StatusOr<Declaration> d = DeclarationOf({op, example.operands});
    if (!d.ok()) d = DeclarationOf(example);  // Such numbers are refused.
    if (!d.ok() || !PartialFunctionsOf(*d).empty()) return true;
  }
  return false;
}

}  // namespace

Sign SignOfOutput(const Declaration& d, int output, const std::vector<Sign>& operands) {
  const std::vector<Sign> signs = Analysis(d, operands).signs();
  Sign sign = Sign::kPositive;
  bool is_defined = false;
  for (size_t s = 0; s < d.statements.size(); ++s) {
    if (d.statements[s].output != output) continue;
    sign = Weaker(sign, signs[d.num_operands() + s]);
    is_defined = true;
  }
  return is_defined ? sign : Sign::kUnknown;
}

std::vector<PartialFunction> PartialFunctionsOf(const Declaration& d) {
  return Analysis(d, std::vector<Sign>(d.num_operands(), Sign::kUnknown)).found();
}

bool MayBePartial(OpKind kind) {
  static const auto* const known = [] {
    auto* partial = new std::array<bool, kNumOpKinds>();
    for (OpKind kind : AllOpKinds()) {
      const bool declared = !IsLeaf(kind) && !IsParallel(kind);
      (*partial)[static_cast<size_t>(kind)] = declared && IsPartialInAnExample(kind);
    }
    return partial;
  }();
  return (*known)[static_cast<size_t>(kind)];
}

}  // namespace isomer
