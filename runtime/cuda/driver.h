// NVIDIA's driver, opened when a program first asks for a GPU: one binary runs everywhere, and says
// what is missing.
#ifndef ISOMER_RUNTIME_CUDA_DRIVER_H_
#define ISOMER_RUNTIME_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

// The functions of cuda.h that are used, with its types: a device is an int, an address of a
// device's memory an integer, all else a pointer; a result of 0 is success. A table, so that tests
// have a driver of their own.
struct CudaDriver {
  using Address = unsigned long long;
  using Handle = void*;
  int (*init)(unsigned flags);
  int (*device_count)(int* count);
  int (*device)(int* device, int ordinal);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*device_name)(char* name, int bytes, int device);
  int (*retain_context)(Handle* context, int device);
  int (*release_context)(int device);
  int (*set_context)(Handle context);
  int (*allocate)(Address* address, size_t bytes);
  int (*free)(Address address);
  int (*allocate_host)(void** memory, size_t bytes, unsigned flags);
  int (*free_host)(void* memory);
  int (*memory_info)(size_t* free, size_t* total);
  int (*copy_in)(Address to, const void* from, size_t bytes, Handle stream);
  int (*copy_out)(void* to, Address from, size_t bytes, Handle stream);
  int (*copy)(Address to, Address from, size_t bytes, Handle stream);
  // Least, greatest: smaller is more urgent.
  int (*stream_priorities)(int* least, int* greatest);
  int (*create_stream)(Handle* stream, unsigned flags, int priority);
  int (*destroy_stream)(Handle stream);
  int (*synchronize)(Handle stream);
  int (*query)(Handle stream);
  int (*create_event)(Handle* event, unsigned flags);
  int (*destroy_event)(Handle event);
  int (*record)(Handle event, Handle stream);
  int (*wait_event)(Handle stream, Handle event, unsigned flags);
  int (*elapsed)(float* ms, Handle from, Handle to);
  // The stream goes on when the word at the address is at least `value` (flags 0).
  int (*wait_value)(Handle stream, Address address, unsigned value, unsigned flags);
  // What streams are given is recorded as a graph, not done.
  int (*begin_capture)(Handle stream, int mode);
  int (*end_capture)(Handle stream, Handle* graph);
  int (*instantiate)(Handle* executable, Handle graph, unsigned long long flags);
  int (*launch_graph)(Handle executable, Handle stream);
  int (*destroy_graph)(Handle graph);
  int (*destroy_executable)(Handle executable);
  int (*load_module)(Handle* module, const void* image);
  int (*unload_module)(Handle module);
  int (*function)(Handle* function, Handle module, const char* name);
  int (*launch)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                Handle stream, void** parameters, void** extra);
  int (*error_name)(int error, const char** name);
  int (*error_text)(int error, const char** text);
};

// What of cuda.h's enumerations is used.
namespace cuda_driver {
inline constexpr int kNoDevice = 100, kNotReady = 600;              // CUDA_ERROR_...
inline constexpr int kCaptureOfThisThread = 1;                      // of begin_capture
inline constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // attributes
inline constexpr int kLastCacheBytes = 38;
inline constexpr unsigned kNonBlocking = 1, kPortableAndMapped = 3;  // of streams; of host memory
}  // namespace cuda_driver

// Unavailable, with what is missing: the driver, or a GPU.
absl::StatusOr<CudaDriver> OpenCudaDriver();

// Ok if `error` is 0; else an error that begins with `what`, and names the driver's.
absl::Status CudaStatus(const CudaDriver& driver, int error, absl::string_view what);

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_DRIVER_H_
