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

absl::StatusOr<std::shared_ptr<const Records>> JoinedRecords::Join(
    std::vector<std::shared_ptr<const Records>> parts) {
  if (parts.size() == 1) return parts[0];
  int64_t rows = 0;
  for (const auto& part : parts) {
    if (part->row_shape() != parts[0]->row_shape() ||
        part->number_kind() != parts[0]->number_kind()) {
      return part->file().Error(absl::StrCat("it has ", part->ToString(),
                                             ", which cannot follow the ", parts[0]->ToString(),
                                             " of ", parts[0]->file().path()));
    }
    rows += part->rows();
  }
  return std::shared_ptr<const Records>(new JoinedRecords(rows, std::move(parts)));
}

JoinedRecords::JoinedRecords(int64_t rows, std::vector<std::shared_ptr<const Records>> parts)
    : Records(rows, parts[0]->row_shape(), parts[0]->number_kind()), parts_(std::move(parts)) {
  int64_t first = 0;
  for (const auto& part : parts_) {
    first_rows_.push_back(first);
    first += part->rows();
  }
}

size_t JoinedRecords::PartOf(int64_t row) const {
  return std::upper_bound(first_rows_.begin(), first_rows_.end(), row) - first_rows_.begin() - 1;
}

absl::Status JoinedRecords::Read(int64_t first, int64_t count, double* values) const {
  for (size_t part = PartOf(first); count > 0; ++part) {
    const int64_t begin = first - first_rows_[part];
    const int64_t now = std::min(count, parts_[part]->rows() - begin);
    ISOMER_RETURN_IF_ERROR(parts_[part]->Read(begin, now, values));
    values += now * row_elements();
    first += now;
    count -= now;
  }
  return absl::OkStatus();
}

std::string JoinedRecords::Place(int64_t row, int64_t element) const {
  const size_t part = PartOf(row);
  return parts_[part]->Place(row - first_rows_[part], element);
}

std::vector<std::string> JoinedRecords::paths() const {
  std::vector<std::string> paths;
  for (const auto& part : parts_) paths.push_back(part->file().path());
  return paths;
}

uint64_t JoinedRecords::fingerprint() const {
  Digest digest;
  for (const auto& part : parts_) digest.Add(part->fingerprint());
  return digest.value();
}

std::string JoinedRecords::ToString() const {
  return absl::StrCat(rows(), " rows in ", parts_.size(), " files, the first ",
                      parts_[0]->ToString());
}

}  // namespace isomer
