#include "runtime/data/records.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pcg/support/digest.h"
#include "pcg/support/status_macros.h"

namespace isomer {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

Records::Records(int64_t rows, std::vector<int64_t> row_shape, NumberKind number_kind)
    : rows_(rows), row_shape_(std::move(row_shape)), number_kind_(number_kind) {
  for (int64_t size : row_shape_) row_elements_ *= size;
}

absl::StatusOr<std::shared_ptr<const BinaryRecords>> BinaryRecords::OfArray(
    std::shared_ptr<const DataFile> file, const std::string& name, ElementType type,
    bool big_endian, const std::vector<int64_t>& shape, int64_t offset, int64_t bytes) {
  const auto error = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", what...));
  };
  const std::string text = absl::StrCat(ElementTypeName(type), ShapeText(shape));
  if (shape.empty()) return error("it is one number and has no rows");
  int64_t needed = ElementBytes(type);
  for (int64_t size : shape) {
    if (size <= 0) return error("its shape is ", text, ": it has no elements");
    if (__builtin_mul_overflow(needed, size, &needed)) {
      return error("its shape is ", text, ": no file has so many bytes");
    }
  }
  if (needed != bytes) {
    return error("its shape is ", text, ", of ", needed, " bytes, but there are ", bytes,
                 bytes < needed ? ": it is cut short" : "");
  }
  BinaryLayout layout = {.type = type,
                         .big_endian = big_endian,
                         .offset = offset,
                         .rows = shape[0],
                         .row_shape = {shape.begin() + 1, shape.end()}};
  for (int64_t size : layout.row_shape) layout.row_stride *= size;
  return std::make_shared<const BinaryRecords>(std::move(file), name, std::move(layout));
}

BinaryRecords::BinaryRecords(std::shared_ptr<const DataFile> file, std::string name,
                             BinaryLayout layout)
    : Records(layout.rows, layout.row_shape,
              IsFloatElement(layout.type) ? NumberKind::kFloat : NumberKind::kInteger),
      file_(std::move(file)),
      name_(std::move(name)),
      layout_(std::move(layout)) {}

std::shared_ptr<const BinaryRecords> BinaryRecords::Cut(int64_t length, int64_t shift,
                                                        int64_t rows) const {
  BinaryLayout layout = layout_;
  layout.offset += shift * ElementBytes(layout.type);
  layout.rows = rows;
  layout.row_shape = {length};
  layout.row_stride = length;
  auto cut = std::make_shared<BinaryRecords>(file_, name_, std::move(layout));
  cut->first_of_stream_ = shift;
  cut->is_cut_ = true;
  return cut;
}

absl::Status BinaryRecords::Read(int64_t first, int64_t count, double* values) const {
  // A piece at a time: 64 KiB stay in the caches until they are converted.
  constexpr int64_t kPieceBytes = int64_t{64} << 10;
  const int64_t element_bytes = ElementBytes(layout_.type);
  const int64_t piece = kPieceBytes / element_bytes;
  std::vector<char> bytes(std::min(piece, count * row_elements()) * element_bytes);
  // Rows lie one behind the other.
  int64_t element = first * layout_.row_stride;
  for (int64_t left = count * row_elements(); left > 0;) {
    const int64_t now = std::min(left, piece);
    ISOMER_RETURN_IF_ERROR(
        file_->ReadAt(layout_.offset + element * element_bytes, now * element_bytes, bytes.data()));
    ConvertElements(layout_.type, layout_.big_endian, bytes.data(), now, values);
    values += now;
    element += now;
    left -= now;
  }
  return absl::OkStatus();
}

std::string BinaryRecords::Place(int64_t row, int64_t element) const {
  if (is_cut_) {
    return absl::StrCat(name_, ": token ", first_of_stream_ + row * layout_.row_stride + element);
  }
  if (row_shape().empty()) return absl::StrCat(name_, ": row ", row);
  std::vector<int64_t> index(row_shape().size());
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = element % row_shape()[d];
    element /= row_shape()[d];
  }
  return absl::StrCat(name_, ": row ", row, ", element ", ShapeText(index));
}

uint64_t BinaryRecords::fingerprint() const {
  return Digest()
      .Add(file_->fingerprint(), layout_.type, layout_.big_endian, layout_.offset, layout_.rows,
           layout_.row_shape, layout_.row_stride)
      .value();
}

std::string BinaryRecords::ToString() const {
  return absl::StrCat(rows(), is_cut_ ? " sequences of " : " rows of ",
                      ElementTypeName(layout_.type),
                      row_shape().empty() ? "" : ShapeText(row_shape()));
}

}  // namespace isomer
