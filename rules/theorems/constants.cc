#include "rules/theorems/theorems.h"

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "rules/theorems/declaration_facts.h"

namespace isomer::structure {
namespace {

// op(scale(x; f), w) with a constant c on one side, op(x, w) with c * f on the other.
class FactorTheorem {
 public:
  FactorTheorem(const Side& inside, int call, const Side& outside, int other)
      : in_(inside), out_(outside), call_(call), other_(other) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    const ConcreteCall& call = in_.call(call_);
    int operand = -1;
    double factor = 1;
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      if (call.inputs[o] == out_.call(other_).inputs[o] && IsInput(call.inputs[o])) continue;
      const ConcreteCall* scale = in_.Maker(call.inputs[o]);
      if (operand >= 0 || scale == nullptr || scale->op.kind() != OpKind::kScale ||
          !IsInput(scale->inputs[0]) || scale->inputs[0] != out_.call(other_).inputs[o]) {
        return No("not one operand is scaled");
      }
      operand = static_cast<int>(o);
      factor = std::get<double>(*scale->op.Find("factor"));
    }
    if (operand < 0 || in_.side->outputs.size() != 1 ||
        in_.side->outputs[0] != PatternRef::Node(call_) ||
        out_.side->outputs[0] != PatternRef::Node(other_) ||
        !SameButForFactor(in_.declarations[call_], out_.declarations[other_], operand, factor)) {
      return No("the declarations differ in more than a factor");
    }
    lemmas->insert(absl::StrCat(std::string(OpName(call.op.kind())), "_takes_factor_of_", operand));
    return absl::OkStatus();
  }

 private:
  const Side& in_;
  const Side& out_;
  const int call_, other_;
};

// op(x, w) on one side, op(x, pad(w)) on the other, by one zero before and after some dims.
class MarginsTheorem {
 public:
  MarginsTheorem(const Side& small, int call, const Side& large, int other)
      : s_(small), l_(large), call_(call), other_(other) {}

  absl::Status Prove(std::set<std::string>* lemmas) {
    const ConcreteCall& call = s_.call(call_);
    const ConcreteCall& grown = l_.call(other_);
    int padded = -1;
    for (size_t o = 0; o < call.inputs.size(); ++o) {
      if (!IsInput(call.inputs[o])) return No("an operand is computed");
      if (call.inputs[o] == grown.inputs[o]) continue;
      const ConcreteCall* pad = l_.Maker(grown.inputs[o]);
      if (padded >= 0 || pad == nullptr || pad->op.kind() != OpKind::kPad ||
          pad->inputs[0] != call.inputs[o] || pad->op.Int("mode") != 0 ||
          std::get<double>(*pad->op.Find("value")) != 0) {
        return No("the operands are not padded with zeros");
      }
      padded = static_cast<int>(o);
      const std::vector<int64_t>& margins = pad->op.Ints("padding");
      const size_t rank = call.operands[o].size();
      for (size_t i = 0; i < rank; ++i) {
        const bool grows =
            s_.declarations[call_].operands[o][i] != l_.declarations[other_].operands[o][i];
        if (margins[i] != (grows ? 1 : 0) || margins[rank + i] != margins[i]) {
          return No("the margins are not one zero");
        }
      }
    }
    const bool same_outputs = s_.side->outputs.size() == 1 &&
                              s_.side->outputs[0] == PatternRef::Node(call_) &&
                              l_.side->outputs[0] == PatternRef::Node(other_);
    if (padded < 0 || !same_outputs ||
        !SameButForMargins(s_.declarations[call_], l_.declarations[other_], padded)) {
      return No("the declarations differ in more than margins");
    }
    lemmas->insert(absl::StrCat(std::string(OpName(call.op.kind())), "_skips_zeros"));
    return absl::OkStatus();
  }

 private:
  const Side& s_;
  const Side& l_;
  const int call_, other_;
};

}  // namespace

absl::Status TakesFactor(const Side& inside, int call, const Side& outside,
                         const std::vector<int>& calls, std::set<std::string>* lemmas) {
  return FactorTheorem(inside, call, outside, calls[0]).Prove(lemmas);
}

absl::Status GrowsKernel(const Side& small, int call, const Side& large,
                         const std::vector<int>& calls, std::set<std::string>* lemmas) {
  return MarginsTheorem(small, call, large, calls[0]).Prove(lemmas);
}

}  // namespace isomer::structure
