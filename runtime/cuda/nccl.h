// NCCL, opened when a plan of several devices is run on GPUs.
#ifndef ISOMER_RUNTIME_CUDA_NCCL_H_
#define ISOMER_RUNTIME_CUDA_NCCL_H_

#include <climits>
#include <cstddef>

#include "absl/status/statusor.h"

namespace isomer {

// The functions of nccl.h that are used, with its types: a communicator and a stream are pointers,
// a result of 0 is success. A table, so that tests have one of their own.
struct Nccl {
  using Comm = void*;
  using Stream = void*;
  struct UniqueId {
    char bytes[128];
  };
  // As NCCL 2.18 has it; later ones add fields behind these, and know by `version` that there are
  // none.
  struct Config {
    size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef, version = 21800;
    int blocking = 0;  // calls return before they are done
    int cga_cluster_size = INT_MIN, min_ctas = INT_MIN, max_ctas = INT_MIN;
    const char* net_name = nullptr;
    int split_share = INT_MIN;
  };

  int (*version)(int* version);
  int (*unique_id)(UniqueId* id);
  int (*init)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  int (*destroy)(Comm comm);
  int (*abort)(Comm comm);
  int (*async_error)(Comm comm, int* error);
  const char* (*error_text)(int error);
  const char* (*last_error)(Comm comm);
  int (*all_reduce)(const void* send, void* receive, size_t count, int type, int op, Comm comm,
                    Stream stream);
  int (*reduce)(const void* send, void* receive, size_t count, int type, int op, int root,
                Comm comm, Stream stream);
  int (*broadcast)(const void* send, void* receive, size_t count, int type, int root, Comm comm,
                   Stream stream);
  int (*reduce_scatter)(const void* send, void* receive, size_t count, int type, int op, Comm comm,
                        Stream stream);
  int (*all_gather)(const void* send, void* receive, size_t count, int type, Comm comm,
                    Stream stream);
  int (*send)(const void* data, size_t count, int type, int peer, Comm comm, Stream stream);
  int (*receive)(void* data, size_t count, int type, int peer, Comm comm, Stream stream);
  int (*group_start)();
  int (*group_end)();
};

// What of nccl.h's enumerations is used.
namespace nccl {
inline constexpr int kSuccess = 0, kInProgress = 7;  // results
inline constexpr int kSum = 0;
inline constexpr int kBytes = 0, kInt32 = 2, kInt64 = 4, kFloat16 = 6, kFloat32 = 7,
                     kBFloat16 = 9;  // types
}  // namespace nccl

// Unavailable, with what is missing. NCCL 2.18 and later.
absl::StatusOr<Nccl> OpenNccl();

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_NCCL_H_
