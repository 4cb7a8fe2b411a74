#include "runtime/cuda/nvrtc.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/cuda/library.h"

namespace isomer {
namespace {

// The functions of nvrtc.h that are used, with its types: a result of 0 is success.
struct Nvrtc {
  using Program = void*;
  int (*version)(int* major, int* minor);
  int (*create)(Program*, const char* text, const char* name, int headers,
                const char* const* header_texts, const char* const* header_names);
  int (*destroy)(Program*);
  int (*compile)(Program, int options, const char* const*);
  int (*log_bytes)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_bytes)(Program, size_t*);
  int (*cubin)(Program, char*);
  const char* (*error)(int);
};

absl::StatusOr<Nvrtc> Open() {
  Library library("NVRTC, the compiler of the CUDA toolkit,", CudaLibraryNames("libnvrtc.so"));
  Nvrtc nvrtc;
  library.Find("nvrtcVersion", &nvrtc.version);
  library.Find("nvrtcCreateProgram", &nvrtc.create);
  library.Find("nvrtcDestroyProgram", &nvrtc.destroy);
  library.Find("nvrtcCompileProgram", &nvrtc.compile);
  library.Find("nvrtcGetProgramLogSize", &nvrtc.log_bytes);
  library.Find("nvrtcGetProgramLog", &nvrtc.log);
  library.Find("nvrtcGetCUBINSize", &nvrtc.cubin_bytes);
  library.Find("nvrtcGetCUBIN", &nvrtc.cubin);
  library.Find("nvrtcGetErrorString", &nvrtc.error);
  ISOMER_RETURN_IF_ERROR(library.status());
  return nvrtc;
}

const absl::StatusOr<Nvrtc>& Opened() {
  static const absl::StatusOr<Nvrtc> nvrtc = Open();
  return nvrtc;
}

// What the compiler said, without the many lines that follow from the first.
std::string LogOf(const Nvrtc& nvrtc, Nvrtc::Program program) {
  size_t bytes = 0;
  if (nvrtc.log_bytes(program, &bytes) != 0 || bytes <= 1) return "";
  std::string log(bytes, '\0');
  if (nvrtc.log(program, log.data()) != 0) return "";
  constexpr size_t kMost = 2000;
  log.resize(std::min(bytes - 1, kMost));
  return log;
}

}  // namespace

absl::Status HasNvrtc() { return Opened().status(); }

std::string NvrtcVersion() {
  int major = 0, minor = 0;
  Opened()->version(&major, &minor);
  return absl::StrCat(major, ".", minor);
}

absl::StatusOr<std::string> CompileForGpu(absl::string_view text, absl::string_view architecture) {
  ISOMER_RETURN_IF_ERROR(HasNvrtc());
  const Nvrtc& nvrtc = *Opened();
  Nvrtc::Program program = nullptr;
  const std::string owned(text);
  const auto failed = [&](absl::string_view what, int code) {
    const std::string log = program == nullptr ? "" : LogOf(nvrtc, program);
    if (program != nullptr) nvrtc.destroy(&program);
    return absl::InvalidArgumentError(absl::StrCat("NVRTC ", NvrtcVersion(), ": ", what, " for ",
                                                   architecture, ": ", nvrtc.error(code), "\n",
                                                   log));
  };
  if (const int code = nvrtc.create(&program, owned.c_str(), "generated.cu", 0, nullptr, nullptr)) {
    return failed("no program", code);
  }
  const std::string arch = absl::StrCat("--gpu-architecture=", architecture);
  const char* options[] = {arch.c_str(), "--std=c++17", "--disable-warnings",
                           "--extra-device-vectorization"};
  if (const int code = nvrtc.compile(program, std::size(options), options))
    return failed("does not compile", code);
  size_t bytes = 0;
  if (const int code = nvrtc.cubin_bytes(program, &bytes)) return failed("no cubin", code);
  std::string cubin(bytes, '\0');
  if (const int code = nvrtc.cubin(program, cubin.data())) return failed("no cubin", code);
  nvrtc.destroy(&program);
  return cubin;
}

}  // namespace isomer
