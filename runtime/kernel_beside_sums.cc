#include "runtime/kernel_beside_sums.h"

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "pcg/schedule/memory.h"
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
      const int64_t elements = call.operands[o].Volume();
      sums_.push_back({o, elements, bytes_, call.dtypes[o], call.sums[o]});
      bytes_ += Aligned(elements * BytesPerElement(call.dtypes[o]));
    }
  }

  // The shares, and behind them the workspace of the kernel that writes them.
  int64_t workspace_bytes() const override { return bytes_ + writing_->workspace_bytes(); }

  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                   void* workspace) override {
    char* const shares = static_cast<char*>(workspace);
    absl::InlinedVector<void*, 12> beside(writes.begin(), writes.end());
    for (const Sum& sum : sums_) beside[sum.operand] = shares + sum.offset;
    ISOMER_RETURN_IF_ERROR(writing_->Run(reads, beside, shares + bytes_));
    for (const Sum& sum : sums_) {
      const auto from_there = sum.is.adds ? AddElements : ConvertElements;
      from_there(sum.share, beside[sum.operand], sum.elements, sum.is.dtype, writes[sum.operand]);
    }
    return absl::OkStatus();
  }

 private:
  struct Sum {
    size_t operand;
    int64_t elements, offset;
    DataType share;
    KernelCall::Sum is;
  };
  const std::unique_ptr<Kernel> writing_;
  std::vector<Sum> sums_;
  int64_t bytes_ = 0;  // of the shares
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
