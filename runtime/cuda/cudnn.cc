#include "runtime/cuda/cudnn.h"

#include "pcg/support/status_macros.h"
#include "runtime/cuda/library.h"

namespace isomer {

absl::StatusOr<Cudnn> OpenCudnn() {
  Library library("cuDNN 9", {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"});
  Cudnn cudnn;
  library.Find("cudnnCreate", &cudnn.create);
  library.Find("cudnnDestroy", &cudnn.destroy);
  library.Find("cudnnSetStream", &cudnn.set_stream);
  library.Find("cudnnBackendCreateDescriptor", &cudnn.create_descriptor);
  library.Find("cudnnBackendDestroyDescriptor", &cudnn.destroy_descriptor);
  library.Find("cudnnBackendSetAttribute", &cudnn.set_attribute);
  library.Find("cudnnBackendGetAttribute", &cudnn.get_attribute);
  library.Find("cudnnBackendFinalize", &cudnn.finalize);
  library.Find("cudnnBackendExecute", &cudnn.execute);
  library.Find("cudnnGetLastErrorString", &cudnn.last_error);
  ISOMER_RETURN_IF_ERROR(library.status());
  return cudnn;
}

}  // namespace isomer
