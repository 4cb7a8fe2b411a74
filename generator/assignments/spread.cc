#include "generator/assignments/spread.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rules/language/rule.h"

namespace isomer {
namespace {

constexpr int64_t kDegree = 2;

// All shares of a tensor, or those that its sizes allow.
std::vector<SpreadShare> SharesOf(const TensorType& type) {
  std::vector<SpreadShare> shares = {{SpreadShare::Kind::kWhole}, {SpreadShare::Kind::kCopies}};
  shares.push_back({SpreadShare::Kind::kPartials});
  for (int64_t axis = -1; axis >= -type.rank(); --axis) {
    if (type.dims[type.rank() + axis].size % kDegree != 0) continue;
    shares.push_back({SpreadShare::Kind::kPieces, axis});
  }
  return shares;
}

class SpreadSearch {
 public:
  SpreadSearch(const OperatorCall& call, TypeOracle* oracle, Statistics* statistics)
      : call_(call), oracle_(oracle), statistics_(statistics) {
    if (const auto* types = oracle->Infer(call.op, call.operands)) outputs_ = *types;
  }

  std::vector<CallSpread> Run() {
    if (!outputs_.empty()) Choose({});
    return std::move(found_);
  }

  std::vector<CallSpread> RunAlongDims(const std::vector<CallSpread>& others) {
    for (const SplittableDim& dim : SplittableDims(call_.op, call_.operands)) {
      if (dim.size % kDegree != 0) continue;
      std::vector<SpreadShare> shares;
      for (const std::optional<int64_t>& axis : dim.operand_axes) {
        shares.push_back(axis ? SpreadShare{SpreadShare::Kind::kPieces, *axis}
                              : SpreadShare{SpreadShare::Kind::kCopies});
      }
      Match(std::move(shares));
    }
    for (const CallSpread& other : others) {
      if (other.operands.size() == call_.operands.size()) Match(other.operands);
    }
    return std::move(found_);
  }

 private:
  void Choose(std::vector<SpreadShare> operands) {
    const size_t next = operands.size();
    if (next == call_.operands.size()) {
      Match(std::move(operands));
      return;
    }
    for (const SpreadShare& share : SharesOf(call_.operands[next])) {
      operands.push_back(share);
      Choose(operands);
      operands.pop_back();
    }
  }

  void Match(std::vector<SpreadShare> shares) {
    ++statistics_->graphs_enumerated;
    std::vector<TensorType> operands = call_.operands;
    for (size_t o = 0; o < operands.size(); ++o) {
      operands[o] = Shared(operands[o], shares[o], kDegree);
    }
    const std::vector<TensorType>* types = oracle_->Infer(call_.op, operands);
    if (types == nullptr) return;
    CallSpread spread{std::move(shares), {}};
    for (size_t t = 0; t < types->size(); ++t) {
      const std::vector<SpreadShare> of_output = SharesOf(outputs_[t]);
      const auto share =
          std::find_if(of_output.begin(), of_output.end(), [&](const SpreadShare& s) {
            return s.kind != SpreadShare::Kind::kWhole &&
                   Shared(outputs_[t], s, kDegree) == (*types)[t];
          });
      if (share == of_output.end()) return;  // Nothing is spread, or not every output is.
      spread.outputs.push_back(*share);
    }
    found_.push_back(std::move(spread));
  }

  const OperatorCall& call_;
  TypeOracle* const oracle_;
  Statistics* const statistics_;
  std::vector<TensorType> outputs_;
  std::vector<CallSpread> found_;
};

}  // namespace

std::vector<CallSpread> SpreadsAlongDims(const OperatorCall& call,
                                         const std::vector<CallSpread>& others,
                                         TypeOracle* oracle) {
  Statistics statistics;  // Nothing is enumerated.
  return SpreadSearch(call, oracle, &statistics).RunAlongDims(others);
}

bool CallSpread::Has(SpreadShare::Kind kind) const {
  return std::any_of(operands.begin(), operands.end(),
                     [kind](const SpreadShare& share) { return share.kind == kind; });
}

std::string CallSpread::Form() const {
  std::string form;
  for (const SpreadShare& share : operands) form.push_back(share.Letter());
  form.push_back('>');
  for (const SpreadShare& share : outputs) form.push_back(share.Letter());
  return form;
}

TensorType Shared(TensorType type, const SpreadShare& share, int64_t degree) {
  switch (share.kind) {
    case SpreadShare::Kind::kWhole:
      break;
    case SpreadShare::Kind::kPieces:
      type.dims[type.dims.size() + share.axis].degree *= degree;
      break;
    case SpreadShare::Kind::kCopies:
      type.copies *= degree;
      break;
    case SpreadShare::Kind::kPartials:
      type.partials *= degree;
      break;
  }
  return type;
}

std::vector<CallSpread> FindSpreads(const OperatorCall& call, TypeOracle* oracle,
                                    Statistics* statistics) {
  return SpreadSearch(call, oracle, statistics).Run();
}

}  // namespace isomer
