#include "runtime/kernel_beside_sums.h"

#include <utility>
#include <vector>

#include "pcg/support/status_macros.h"
#include "runtime/elements.h"

namespace isomer {
namespace {

class BesideSums : public Kernel {
 public:
  BesideSums(const KernelCall& call, std::unique_ptr<Kernel> writing)
      : writing_(std::move(writing)) {
    for (size_t o = 0; o < call.sums.size(); ++o) {
      const bool is_plain = !call.Adds(o) && call.sums[o].dtype == call.dtypes[o];
      if (!call.wanted[o] || is_plain) continue;
      sums_.push_back({o, call.operands[o].Volume(), call.dtypes[o], call.sums[o]});
    }
  }

  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes) override {
    std::vector<std::unique_ptr<double[]>> shares;  // Doubles are aligned for all.
    std::vector<void*> beside(writes.begin(), writes.end());
    for (const Sum& sum : sums_) {
      shares.push_back(std::make_unique_for_overwrite<double[]>(
          sum.elements * BytesPerElement(sum.share) / sizeof(double) + 1));
      beside[sum.operand] = shares.back().get();
    }
    ISOMER_RETURN_IF_ERROR(writing_->Run(reads, beside));
    for (const Sum& sum : sums_) {
      const auto from_there = sum.is.adds ? AddElements : ConvertElements;
      from_there(sum.share, beside[sum.operand], sum.elements, sum.is.dtype, writes[sum.operand]);
    }
    return absl::OkStatus();
  }

 private:
  struct Sum {
    size_t operand;
    int64_t elements;
    DataType share;
    KernelCall::Sum is;
  };
  const std::unique_ptr<Kernel> writing_;
  std::vector<Sum> sums_;
};

}  // namespace

KernelCall WithoutSums(const KernelCall& call) {
  KernelCall writing = call;
  writing.sums.clear();
  return writing;
}

std::unique_ptr<Kernel> KernelBesideSums(const KernelCall& call, std::unique_ptr<Kernel> writing) {
  return std::make_unique<BesideSums>(call, std::move(writing));
}

}  // namespace isomer
