#include "runtime/execution/host_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "pcg/ir/weight_update.h"
#include "pcg/support/bytes_text.h"
#include "pcg/support/file.h"

namespace isomer {
namespace {

// Version 2 of control groups, as seen from within; none: no limit.
int64_t LimitOfControlGroup() {
  const absl::StatusOr<std::string> text = ReadFile("/sys/fs/cgroup/memory.max");
  int64_t bytes = 0;
  const bool is_limit = text.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &bytes);
  return is_limit ? bytes : std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t HostMemoryBytes() {
  struct sysinfo info;
  int64_t bytes = std::numeric_limits<int64_t>::max();
  if (sysinfo(&info) == 0) {
    bytes = static_cast<int64_t>(info.totalram + info.totalswap) * info.mem_unit;
  }
  return std::min(bytes, LimitOfControlGroup());
}

absl::Status CheckFitsHost(const std::string& what, int64_t bytes) {
  const int64_t has = HostMemoryBytes();
  if (bytes <= has) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " need ", BytesText(bytes), ", and this computer has ", BytesText(has)));
}

absl::Status CheckRunsInThreads(const Plan& plan) {
  if (plan.num_devices <= kMostDeviceThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      plan.num_devices, " devices: the in-process communicator runs at most ", kMostDeviceThreads));
}

int64_t LeastBytesOfModel(const Plan& plan) {
  const Graph& graph = plan.model.graph;
  const bool training = plan.mode == "training";
  int64_t bytes = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node({id});
    if (node.op.kind() != OpKind::kWeight) continue;
    const TensorType& type = node.outputs[0];
    const DataType stored = type.dtype == DataType::kFloat32 ? plan.precision : type.dtype;
    const WeightBytes each = BytesOfWeight(stored, plan.update.optimizer, plan.update.gradient_sums,
                                           plan.update.averages, plan.update.clips);
    bytes += type.NumElements() * (each.stored + (training ? each.trained : 0));
  }
  return bytes;
}

}  // namespace isomer
