#include "runtime/data/npy_array.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/half.h"
#include "pcg/support/little_endian.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/data_file.h"
#include "runtime/data/npy.h"
#include "runtime/data/records.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

// As NumPy spells it.
const char* DescrOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
    case DataType::kBFloat16:
      return "<f4";
    case DataType::kFloat16:
      return "<f2";
    case DataType::kInt64:
      return "<i8";
    case DataType::kInt32:
      return "<i4";
    case DataType::kBool:
      return "|b1";
  }
  return "";
}

}  // namespace

absl::StatusOr<Array<double>> ReadNpyFor(const std::string& path, const std::string& tensor,
                                         const TensorType& type) {
  ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> file, DataFile::Open(path));
  ISOMER_ASSIGN_OR_RETURN(const std::shared_ptr<const Records> records, OpenNpy(file));
  const auto refused = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": '", tensor, "' is ", type.ToString(), ", and the array ", what...));
  };
  std::vector<int64_t> sizes = records->row_shape();
  sizes.insert(sizes.begin(), records->rows());
  const std::vector<int64_t> wanted = type.Sizes();
  if (wanted.empty() && sizes == std::vector<int64_t>{1}) sizes.clear();
  if (sizes.size() != wanted.size()) {
    return refused(ShapeText(sizes), ": of ", sizes.size(), " dims and not ", wanted.size());
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == wanted[d]) continue;
    return refused(ShapeText(sizes), ": dim ", d, " is ", sizes[d], " and not ", wanted[d]);
  }
  const bool takes_integers = !IsFloat(type.dtype);
  if (takes_integers && records->number_kind() == NumberKind::kFloat) {
    return refused("of floats");
  }
  Array<double> array(wanted);
  ISOMER_RETURN_IF_ERROR(records->Read(0, records->rows(), array.data.data()));
  if (type.dtype == DataType::kBool) {
    const auto bad = std::find_if(array.data.begin(), array.data.end(),
                                  [](double value) { return value != 0 && value != 1; });
    if (bad != array.data.end()) return refused("has ", *bad, ", which is neither 0 nor 1");
  }
  RoundElements(type.dtype, array.data.data(), array.size());
  return array;
}

std::string NpyHeaderOf(absl::string_view descr, absl::Span<const int64_t> dims) {
  constexpr size_t kLengthBytes = 2, kAlignment = 64;
  std::string bytes("\x93NUMPY\x01\x00", 8);
  std::string header = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                                    absl::StrJoin(dims, ", "), dims.size() == 1 ? "," : "", "), }");
  const size_t before = bytes.size() + kLengthBytes + header.size() + 1;
  header.append((kAlignment - before % kAlignment) % kAlignment, ' ');
  header.push_back('\n');
  AppendLittleEndian(static_cast<uint16_t>(header.size()), &bytes);
  return bytes + header;
}

std::string NpyFileOf(const Array<double>& array, DataType dtype) {
  std::string bytes = NpyHeaderOf(DescrOf(dtype), array.shape);
  for (double value : array.data) {
    switch (dtype) {
      case DataType::kFloat32:
      case DataType::kBFloat16:
        AppendLittleEndian(static_cast<float>(value), &bytes);
        break;
      case DataType::kFloat16:
        AppendLittleEndian(Float16(value), &bytes);
        break;
      case DataType::kInt64:
        AppendLittleEndian(static_cast<int64_t>(value), &bytes);
        break;
      case DataType::kInt32:
        AppendLittleEndian(static_cast<int32_t>(value), &bytes);
        break;
      case DataType::kBool:
        AppendLittleEndian(static_cast<uint8_t>(value != 0), &bytes);
        break;
    }
  }
  return bytes;
}

}  // namespace isomer
