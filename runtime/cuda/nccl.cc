#include "runtime/cuda/nccl.h"

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/cuda/library.h"

namespace isomer {

absl::StatusOr<Nccl> OpenNccl() {
  Library library("NCCL", {"libnccl.so.2", "/usr/local/cuda/lib64/libnccl.so.2"});
  Nccl nccl;
  library.Find("ncclGetVersion", &nccl.version);
  library.Find("ncclGetUniqueId", &nccl.unique_id);
  library.Find("ncclCommInitRankConfig", &nccl.init);
  library.Find("ncclCommDestroy", &nccl.destroy);
  library.Find("ncclCommAbort", &nccl.abort);
  library.Find("ncclCommGetAsyncError", &nccl.async_error);
  library.Find("ncclGetErrorString", &nccl.error_text);
  library.Find("ncclGetLastError", &nccl.last_error);
  library.Find("ncclAllReduce", &nccl.all_reduce);
  library.Find("ncclReduce", &nccl.reduce);
  library.Find("ncclBroadcast", &nccl.broadcast);
  library.Find("ncclReduceScatter", &nccl.reduce_scatter);
  library.Find("ncclAllGather", &nccl.all_gather);
  library.Find("ncclSend", &nccl.send);
  library.Find("ncclRecv", &nccl.receive);
  library.Find("ncclGroupStart", &nccl.group_start);
  library.Find("ncclGroupEnd", &nccl.group_end);
  ISOMER_RETURN_IF_ERROR(library.status());
  constexpr int kOldest = 21800;
  int version = 0;
  if (nccl.version(&version) != nccl::kSuccess || version < kOldest) {
    return absl::UnavailableError(absl::StrCat("NCCL ", version / 10000, ".", version / 100 % 100,
                                               " is too old: 2.18 and "
                                               "later are supported"));
  }
  return nccl;
}

}  // namespace isomer
