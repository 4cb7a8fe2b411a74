// Between C++ and Python: errors, texts, arrays.
#ifndef ISOMER_PYTHON_BINDINGS_CONVERT_H_
#define ISOMER_PYTHON_BINDINGS_CONVERT_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/evaluation/evaluator.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// A Status on its way to Python, where it is one of isomer.errors.
class StatusError : public std::exception {
 public:
  explicit StatusError(absl::Status status) : status_(std::move(status)) {}
  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return "an error of Isomer"; }

 private:
  absl::Status status_;
};

// From now on StatusErrors are raised as exceptions of isomer.errors.
void RegisterErrors();

inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw StatusError(status);
}
template <typename T>
T ValueOrThrow(absl::StatusOr<T> value) {
  ThrowIfError(value.status());
  return *std::move(value);
}

// Names of files and of tensors are bytes, mostly UTF-8. Others are kept as os.fsdecode keeps them.
pybind11::str ToPython(absl::string_view text);
pybind11::list ToPython(const std::vector<std::string>& texts);
// REQUIRES: a str or bytes.
std::string ToBytes(pybind11::handle text);

pybind11::tuple ShapeToPython(const std::vector<int64_t>& shape);

// A tensor for NumPy, by the buffer protocol: its numbers are those of this object.
class HostTensor {
 public:
  // Of what the runtime gives back, in `dtype`: floats as float32, others as they are.
  HostTensor(const Array<double>& values, DataType dtype);

  pybind11::buffer_info Buffer();

 private:
  std::vector<int64_t> shape_;
  int64_t item_bytes_;
  std::string format_;
  std::vector<char> bytes_;
};

// The numbers of `buffer`, which must have the shape of `type` and numbers of its kind. Errors name
// `what` ("input 'x'"): its shape, its dtype, or a number that int64 does not hold.
Array<double> FromBuffer(pybind11::handle buffer, const TensorType& type, const std::string& what);

}  // namespace isomer

#endif  // ISOMER_PYTHON_BINDINGS_CONVERT_H_
