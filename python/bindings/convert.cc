#include "python/bindings/convert.h"

#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pcg/support/half.h"

namespace isomer {
namespace {

namespace py = pybind11;

// The class of isomer.errors for a status. What is too large is an answer, what breaks a contract a
// bug, and all else is about what was given.
const char* ErrorClassOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return "DoesNotFit";
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return "Error";
    default:
      return "InputError";
  }
}

std::string OneLineOf(absl::string_view text) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipWhitespace());
  return absl::StrJoin(lines, " ");
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

[[noreturn]] void Refuse(const std::string& what, const std::string& why) {
  throw StatusError(absl::InvalidArgumentError(absl::StrCat(what, ": ", why)));
}

// As NumPy calls numbers of so many bytes and this letter of struct.
std::string DtypeOf(char kind, int64_t item_bytes) {
  if (kind == '?') return "bool";
  const bool is_float = absl::string_view("efdg").find(kind) != absl::string_view::npos;
  const bool is_unsigned = absl::string_view("BHILQN").find(kind) != absl::string_view::npos;
  return absl::StrCat(is_float ? "float" : is_unsigned ? "uint" : "int", 8 * item_bytes);
}

// A view of an object's memory, given back at the end.
class BufferView {
 public:
  BufferView(py::handle object, const std::string& what) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      Refuse(what, "an array is expected, contiguous in C's order");
    }
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  std::vector<int64_t> shape() const { return {view_.shape, view_.shape + view_.ndim}; }
  int64_t size() const { return view_.len / view_.itemsize; }
  int64_t item_bytes() const { return view_.itemsize; }
  const char* data() const { return static_cast<const char*>(view_.buf); }
  // Of struct's letters the last: a byte order may come before.
  char kind() const {
    const absl::string_view format = view_.format == nullptr ? "B" : view_.format;
    const bool foreign = format[0] == '>' || format[0] == '!';
    return foreign ? '\0' : format.back();  // no letter of any kind
  }

 private:
  Py_buffer view_;
};

template <typename T>
void CopyAs(const BufferView& view, const std::string& what, std::vector<double>* to) {
  to->resize(view.size());
  for (int64_t i = 0; i < view.size(); ++i) {
    T value;
    std::memcpy(&value, view.data() + i * sizeof(T), sizeof(T));
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      // The runtime's numbers on the host are doubles.
      constexpr double kExact = 9007199254740992.0;  // 2^53
      if (static_cast<double>(value) > kExact || static_cast<double>(value) < -kExact) {
        Refuse(what, absl::StrCat(value, " is too large for an index"));
      }
    }
    (*to)[i] = static_cast<double>(value);
  }
}

template <typename Signed, typename Unsigned>
void CopyInteger(bool is_signed, const BufferView& view, const std::string& what,
                 std::vector<double>* to) {
  is_signed ? CopyAs<Signed>(view, what, to) : CopyAs<Unsigned>(view, what, to);
}

void CopyIntegers(const BufferView& view, const std::string& what, std::vector<double>* to) {
  const bool is_signed = absl::string_view("bhilqn").find(view.kind()) != absl::string_view::npos;
  switch (view.item_bytes()) {
    case 1:
      return CopyInteger<int8_t, uint8_t>(is_signed, view, what, to);
    case 2:
      return CopyInteger<int16_t, uint16_t>(is_signed, view, what, to);
    case 4:
      return CopyInteger<int32_t, uint32_t>(is_signed, view, what, to);
    default:
      return CopyInteger<int64_t, uint64_t>(is_signed, view, what, to);
  }
}

template <typename T>
std::vector<char> BytesAs(const std::vector<double>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

}  // namespace

void RegisterErrors() {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const StatusError& error) {
      const py::object errors = py::module_::import("isomer.errors");
      const py::object type = errors.attr(ErrorClassOf(error.status().code()));
      const std::string line = OneLineOf(
          absl::string_view(error.status().message().data(), error.status().message().size()));
      PyErr_SetObject(type.ptr(), type(ToPython(line)).ptr());
    }
  });
}

py::str ToPython(absl::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

py::list ToPython(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(ToPython(text));
  return list;
}

std::string ToBytes(py::handle text) {
  if (PyBytes_Check(text.ptr())) return std::string(py::reinterpret_borrow<py::bytes>(text));
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (encoded == nullptr) throw py::error_already_set();
  return std::string(py::reinterpret_steal<py::bytes>(encoded));
}

py::tuple ShapeToPython(const std::vector<int64_t>& shape) {
  py::tuple tuple(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) tuple[i] = shape[i];
  return tuple;
}

HostTensor::HostTensor(const Array<double>& values, DataType dtype) : shape_(values.shape) {
  switch (dtype) {
    case DataType::kInt64:
      format_ = "q";
      bytes_ = BytesAs<int64_t>(values.data);
      break;
    case DataType::kInt32:
      format_ = "i";
      bytes_ = BytesAs<int32_t>(values.data);
      break;
    case DataType::kBool:
      format_ = "?";
      bytes_ = BytesAs<bool>(values.data);
      break;
    default:
      format_ = "f";
      bytes_ = BytesAs<float>(values.data);
  }
  item_bytes_ = values.data.empty() ? 1 : static_cast<int64_t>(bytes_.size() / values.data.size());
}

py::buffer_info HostTensor::Buffer() {
  std::vector<py::ssize_t> strides(shape_.size());
  py::ssize_t stride = item_bytes_;
  for (size_t i = shape_.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape_[i];
  }
  return py::buffer_info(bytes_.data(), item_bytes_, format_,
                         static_cast<py::ssize_t>(shape_.size()),
                         std::vector<py::ssize_t>(shape_.begin(), shape_.end()), strides);
}

Array<double> FromBuffer(py::handle buffer, const TensorType& type, const std::string& what) {
  const BufferView view(buffer, what);
  if (view.shape() != type.Sizes()) {
    Refuse(what, absl::StrCat("its shape is ", ShapeText(view.shape()), ", and ",
                              ShapeText(type.Sizes()), " is expected"));
  }
  const char kind = view.kind();
  const auto is_one_of = [&](absl::string_view kinds) {
    return kinds.find(kind) != absl::string_view::npos;
  };
  Array<double> array;
  array.shape = view.shape();
  array.origin.assign(array.shape.size(), 0);
  if (IsFloat(type.dtype) && is_one_of("efd")) {
    if (kind == 'e') {
      CopyAs<Float16>(view, what, &array.data);
    } else {
      kind == 'f' ? CopyAs<float>(view, what, &array.data)
                  : CopyAs<double>(view, what, &array.data);
    }
  } else if (IsInteger(type.dtype) && is_one_of("bBhHiIlLqQnN")) {
    CopyIntegers(view, what, &array.data);
  } else if (type.dtype == DataType::kBool && kind == '?') {
    CopyAs<bool>(view, what, &array.data);
  } else {
    const char* expected = IsFloat(type.dtype)     ? "floats are"
                           : IsInteger(type.dtype) ? "integers are"
                                                   : "bool is";
    Refuse(what, absl::StrCat("its dtype is ", DtypeOf(kind, view.item_bytes()), ", and ", expected,
                              " expected"));
  }
  return array;
}

}  // namespace isomer
