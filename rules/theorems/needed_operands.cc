#include "rules/theorems/needed_operands.h"

#include <set>
#include <utility>

namespace isomer {
namespace {

// The result is no number if an argument is none, and gradients go through.
bool PassesAll(ScalarOp op) {
  switch (op) {
    case ScalarOp::kMax:  // The larger of a number and of what is none may be the number.
    case ScalarOp::kWhere:
    case ScalarOp::kPow:  // To the power of zero all is one.
    case ScalarOp::kLess:
    case ScalarOp::kEqual:
    case ScalarOp::kRandom:
    case ScalarOp::kFloor:  // No gradient.
    case ScalarOp::kRound:
      return false;
    default:
      return true;
  }
}

// The accesses whose loads reach the value of the body through functions that pass all.
std::set<int> AccessesPassed(const Body& body) {
  std::vector<std::set<int>> stack;
  for (const Instruction& i : body) {
    std::set<int> passed;
    if (i.op == ScalarOp::kLoad) passed.insert(i.access);
    for (int argument = Arity(i.op); argument > 0; --argument) {
      if (PassesAll(i.op)) passed.merge(stack.back());
      stack.pop_back();
    }
    stack.push_back(std::move(passed));
  }
  return stack.back();
}

class NeededTensors {
 public:
  explicit NeededTensors(const Declaration& d)
      : d_(d), needed_(static_cast<size_t>(d.num_operands()) + d.statements.size(), false) {}

  void Visit(const Statement& s) {
    if (s.select >= 0 || s.reduction == Reduction::kMax) return;
    for (int a : AccessesPassed(s.body)) {
      const Access& access = d_.accesses[a];
      if (needed_[access.tensor] || access.outside != Outside::kNever || !ReadsAll(d_, s, access)) {
        continue;
      }
      needed_[access.tensor] = true;
      if (access.tensor >= d_.num_operands()) {
        Visit(d_.statements[access.tensor - d_.num_operands()]);
      }
    }
  }

  std::vector<bool> OfOperands() const {
    return {needed_.begin(), needed_.begin() + d_.num_operands()};
  }

 private:
  const Declaration& d_;
  std::vector<bool> needed_;  // operands, then statements
};

}  // namespace

bool ReadsAll(const Declaration& d, const Statement& s, const Access& access) {
  std::set<int> over(s.reduced.begin(), s.reduced.end()), seen;
  for (const Index& index : s.indices) {
    for (const auto& [dim, stride] : index.terms) over.insert(dim);
  }
  if (s.select_dim >= 0) over.erase(s.select_dim);
  const Shape shape = access.tensor < d.num_operands()
                          ? d.operands[access.tensor]
                          : d.StatementShape(d.statements[access.tensor - d.num_operands()]);
  for (size_t i = 0; i < shape.size(); ++i) {
    const Index& index = access.indices[i];
    if (index == Index() && shape[i] == Extent(1)) continue;
    if (index.terms.size() != 1 || index != Index(index.terms[0].first)) return false;
    const int dim = index.terms[0].first;
    if (over.count(dim) == 0 || !seen.insert(dim).second || d.dims[dim].size != shape[i]) {
      return false;
    }
  }
  return true;
}

std::vector<bool> NeededOperands(const Declaration& d, int output) {
  NeededTensors needed(d);
  for (const Statement& s : d.statements) {
    if (s.output == output) needed.Visit(s);
  }
  return needed.OfOperands();
}

}  // namespace isomer
