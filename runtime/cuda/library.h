// A library that is opened at run time.
#ifndef ISOMER_RUNTIME_CUDA_LIBRARY_H_
#define ISOMER_RUNTIME_CUDA_LIBRARY_H_

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace isomer {

// Where a library of the CUDA toolkit ("libnvrtc.so") may be: of CUDA 13 or 12, where the linker
// looks, and where toolkits are that nobody told it of.
inline std::vector<std::string> CudaLibraryNames(const std::string& name) {
  std::vector<std::string> names = {name + ".13", name + ".12", name};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (folder != nullptr) names.push_back(absl::StrCat(folder, "/lib64/", name));
  }
  names.push_back(absl::StrCat("/usr/local/cuda/lib64/", name));
  return names;
}

class Library {
 public:
  // The first of these names that there is. `title`: for errors.
  Library(std::string title, const std::vector<std::string>& names) : title_(std::move(title)) {
    for (size_t i = 0; i < names.size() && handle_ == nullptr; ++i) {
      handle_ = dlopen(names[i].c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (handle_ == nullptr) {
      status_ = absl::UnavailableError(
          absl::StrCat(title_, " is not there: none of ", absl::StrJoin(names, ", ")));
    }
  }

  // Sets a pointer to a function.
  template <typename Function>
  void Find(const char* name, Function* function) {
    if (handle_ == nullptr) return;
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (*function == nullptr && status_.ok()) {
      status_ = absl::UnavailableError(absl::StrCat(title_, " has no ", name, ": it is too old"));
    }
  }

  // Ok if it and all functions were there.
  const absl::Status& status() const { return status_; }

 private:
  const std::string title_;
  void* handle_ = nullptr;  // stays open
  absl::Status status_;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_CUDA_LIBRARY_H_
