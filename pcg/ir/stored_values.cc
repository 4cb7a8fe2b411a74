#include "pcg/ir/stored_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/half.h"
#include "pcg/support/mapped_file.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

template <typename Stored>
float ElementAt(const char* data, size_t i) {
  Stored value;
  std::memcpy(&value, data + i * sizeof(Stored), sizeof(Stored));
  return static_cast<float>(value);
}

}  // namespace

StoredValues::StoredValues(std::vector<float> values)
    : held_(std::make_shared<const std::vector<float>>(std::move(values))),
      data_(reinterpret_cast<const char*>(held_->data())),
      size_(held_->size()) {}

StoredValues::StoredValues(std::initializer_list<float> values)
    : StoredValues(std::vector<float>(values)) {}

absl::StatusOr<StoredValues> StoredValues::InFile(FileRange range) {
  if (!IsFloat(range.dtype) || range.offset < 0 || range.elements < 0) {
    return absl::InvalidArgumentError(absl::StrCat(range.path, ": no range of floats"));
  }
  ISOMER_ASSIGN_OR_RETURN(const MappedFile mapping, MapFile(range.path));
  if (mapping.size != range.file_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(range.path, " has ", mapping.size,
                                                      " bytes; the file that is meant has ",
                                                      range.file_bytes));
  }
  const int64_t width = BytesPerElement(range.dtype);
  if (range.offset > mapping.size || range.elements > (mapping.size - range.offset) / width) {
    return absl::InvalidArgumentError(absl::StrCat(range.path, " has ", mapping.size,
                                                   " bytes, not ", range.elements, " elements of ",
                                                   width, " from ", range.offset, " on"));
  }
  StoredValues values;
  values.mapping_ = mapping.bytes;
  values.data_ = mapping.bytes.get() + range.offset;
  values.size_ = static_cast<size_t>(range.elements);
  values.dtype_ = range.dtype;
  values.file_ = std::make_shared<const FileRange>(std::move(range));
  return values;
}

float StoredValues::operator[](size_t i) const {
  if (dtype_ == DataType::kFloat32) return ElementAt<float>(data_, i);
  return dtype_ == DataType::kFloat16 ? ElementAt<Float16>(data_, i)
                                      : ElementAt<BFloat16>(data_, i);
}

std::vector<float> StoredValues::ToVector() const {
  return held_ != nullptr ? *held_ : std::vector<float>(begin(), end());
}

void StoredValues::LetGo() const {
  if (file_ == nullptr) return;
  MappedFile{mapping_, file_->file_bytes}.LetGo(file_->offset,
                                                file_->elements * BytesPerElement(dtype_));
}

bool operator==(const StoredValues& a, const StoredValues& b) {
  if (a.size_ != b.size_) return false;
  if (a.file_ != nullptr && b.file_ != nullptr && *a.file_ == *b.file_) return true;
  return std::equal(a.begin(), a.end(), b.begin());
}

}  // namespace isomer
