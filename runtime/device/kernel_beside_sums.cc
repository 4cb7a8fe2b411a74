#include "runtime/device/kernel_beside_sums.h"

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/elements.h"
#include "runtime/device/workspace.h"

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
      const auto share = plan_.Add<char>(elements * BytesPerElement(call.dtypes[o]));
      sums_.push_back({o, elements, share, call.dtypes[o], call.sums[o]});
    }
    of_writing_ = plan_.Add<char>(writing_->workspace_bytes());
  }

  int64_t workspace_bytes() const override { return plan_.bytes(); }

  absl::Status Run(absl::Span<const void* const> reads, absl::Span<void* const> writes,
                   void* workspace) override {
    char* const memory = static_cast<char*>(workspace);
    absl::InlinedVector<void*, 12> beside(writes.begin(), writes.end());
    for (const Sum& sum : sums_) beside[sum.operand] = sum.share.In(memory);
    ISOMER_RETURN_IF_ERROR(writing_->Run(reads, beside, of_writing_.In(memory)));
    for (const Sum& sum : sums_) {
      const auto from_there = sum.is.adds ? AddElements : ConvertElements;
      from_there(sum.dtype, beside[sum.operand], sum.elements, sum.is.dtype, writes[sum.operand]);
    }
    return absl::OkStatus();
  }

 private:
  struct Sum {
    size_t operand;
    int64_t elements;
    Place<char> share;
    DataType dtype;  // of the share
    KernelCall::Sum is;
  };
  const std::unique_ptr<Kernel> writing_;
  std::vector<Sum> sums_;
  WorkspacePlan plan_;
  Place<char> of_writing_;  // what the kernel that writes has
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
