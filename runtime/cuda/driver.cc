#include "runtime/cuda/driver.h"

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/cuda/library.h"

namespace isomer {

absl::StatusOr<CudaDriver> OpenCudaDriver() {
  Library library("the CUDA driver", {"libcuda.so.1"});
  CudaDriver driver;
  library.Find("cuInit", &driver.init);
  library.Find("cuDeviceGetCount", &driver.device_count);
  library.Find("cuDeviceGet", &driver.device);
  library.Find("cuDeviceGetAttribute", &driver.device_attribute);
  library.Find("cuDeviceGetName", &driver.device_name);
  library.Find("cuDevicePrimaryCtxRetain", &driver.retain_context);
  library.Find("cuDevicePrimaryCtxRelease_v2", &driver.release_context);
  library.Find("cuCtxSetCurrent", &driver.set_context);
  library.Find("cuMemAlloc_v2", &driver.allocate);
  library.Find("cuMemFree_v2", &driver.free);
  library.Find("cuMemHostAlloc", &driver.allocate_host);
  library.Find("cuMemFreeHost", &driver.free_host);
  library.Find("cuMemGetInfo_v2", &driver.memory_info);
  library.Find("cuMemcpyHtoDAsync_v2", &driver.copy_in);
  library.Find("cuMemcpyDtoHAsync_v2", &driver.copy_out);
  library.Find("cuMemcpyAsync", &driver.copy);
  library.Find("cuCtxGetStreamPriorityRange", &driver.stream_priorities);
  library.Find("cuStreamCreateWithPriority", &driver.create_stream);
  library.Find("cuStreamDestroy_v2", &driver.destroy_stream);
  library.Find("cuStreamSynchronize", &driver.synchronize);
  library.Find("cuStreamQuery", &driver.query);
  library.Find("cuEventCreate", &driver.create_event);
  library.Find("cuEventDestroy_v2", &driver.destroy_event);
  library.Find("cuEventRecord", &driver.record);
  library.Find("cuStreamWaitEvent", &driver.wait_event);
  library.Find("cuEventElapsedTime", &driver.elapsed);
  library.Find("cuStreamWaitValue32_v2", &driver.wait_value);
  library.Find("cuStreamBeginCapture_v2", &driver.begin_capture);
  library.Find("cuStreamEndCapture", &driver.end_capture);
  library.Find("cuGraphInstantiateWithFlags", &driver.instantiate);
  library.Find("cuGraphLaunch", &driver.launch_graph);
  library.Find("cuGraphDestroy", &driver.destroy_graph);
  library.Find("cuGraphExecDestroy", &driver.destroy_executable);
  library.Find("cuModuleLoadData", &driver.load_module);
  library.Find("cuModuleUnload", &driver.unload_module);
  library.Find("cuModuleGetFunction", &driver.function);
  library.Find("cuLaunchKernel", &driver.launch);
  library.Find("cuGetErrorName", &driver.error_name);
  library.Find("cuGetErrorString", &driver.error_text);
  ISOMER_RETURN_IF_ERROR(library.status());
  const int error = driver.init(0);
  if (error == cuda_driver::kNoDevice) return absl::UnavailableError("there is no GPU");
  if (error != 0) {
    return absl::UnavailableError(
        CudaStatus(driver, error, "the CUDA driver does not start").message());
  }
  return driver;
}

absl::Status CudaStatus(const CudaDriver& driver, int error, absl::string_view what) {
  if (error == 0) return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  driver.error_name(error, &name);
  driver.error_text(error, &text);
  return absl::InternalError(absl::StrCat(what, ": ", name == nullptr ? "CUDA error" : name, " (",
                                          error, ")", text == nullptr ? "" : ": ",
                                          text == nullptr ? "" : text));
}

}  // namespace isomer
