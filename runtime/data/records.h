// Rows of numbers in a file, of which any can be read: what an input of a model takes a batch from.
#ifndef ISOMER_RUNTIME_DATA_RECORDS_H_
#define ISOMER_RUNTIME_DATA_RECORDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/element_type.h"

namespace isomer {

// What the numbers of a file are: text may be either.
enum class NumberKind { kInteger, kFloat, kText };

class Records {
 public:
  virtual ~Records() = default;

  int64_t rows() const { return rows_; }
  // Of one row: [28,28] of an image, [] where a row is a number.
  const std::vector<int64_t>& row_shape() const { return row_shape_; }
  int64_t row_elements() const { return row_elements_; }
  NumberKind number_kind() const { return number_kind_; }

  // Rows [first, first + count), one behind the other, count * row_elements() numbers.
  // Thread-safe. REQUIRES: they are there. Errors name the file and where in it.
  virtual absl::Status Read(int64_t first, int64_t count, double* values) const = 0;
  // Where an element of a row stands: "x.npy: row 3, element 17".
  virtual std::string Place(int64_t row, int64_t element) const = 0;
  // The first of the files.
  virtual const DataFile& file() const = 0;
  virtual std::vector<std::string> paths() const { return {file().path()}; }
  // Of the file and of what of it the rows are.
  virtual uint64_t fingerprint() const = 0;
  // "10000 rows of uint8[28,28]".
  virtual std::string ToString() const = 0;

 protected:
  Records(int64_t rows, std::vector<int64_t> row_shape, NumberKind number_kind);

 private:
  int64_t rows_;
  std::vector<int64_t> row_shape_;
  int64_t row_elements_ = 1;
  NumberKind number_kind_;
};

// "[28,28]".
std::string ShapeText(const std::vector<int64_t>& shape);

struct BinaryLayout {
  ElementType type = ElementType::kUint8;
  bool big_endian = false;
  int64_t offset = 0;  // of the first row, in bytes
  int64_t rows = 0;
  std::vector<int64_t> row_shape = {};
  // Elements from the beginning of a row to that of the next.
  int64_t row_stride = 1;
};

// Elements of one size, row after row.
class BinaryRecords : public Records {
 public:
  // `shape` is that of all rows together; `offset` where its first element lies; `bytes` how many
  // the file has for them. Errors: no rows, another number of bytes than the shape says.
  static absl::StatusOr<std::shared_ptr<const BinaryRecords>> OfArray(
      std::shared_ptr<const DataFile> file, const std::string& name, ElementType type,
      bool big_endian, const std::vector<int64_t>& shape, int64_t offset, int64_t bytes);
  BinaryRecords(std::shared_ptr<const DataFile> file, std::string name, BinaryLayout layout);

  // Whether rows are numbers: a stream of tokens may be cut into sequences.
  bool is_stream() const { return row_shape().empty(); }
  // The rows of `length` elements each that begin at element i * length + shift, for all i < rows.
  // REQUIRES: is_stream(), and there are so many.
  std::shared_ptr<const BinaryRecords> Cut(int64_t length, int64_t shift, int64_t rows) const;

  absl::Status Read(int64_t first, int64_t count, double* values) const override;
  std::string Place(int64_t row, int64_t element) const override;
  const DataFile& file() const override { return *file_; }
  uint64_t fingerprint() const override;
  std::string ToString() const override;
  const BinaryLayout& layout() const { return layout_; }

 private:
  std::shared_ptr<const DataFile> file_;
  std::string name_;  // what errors call it: the file, or an array in it
  BinaryLayout layout_;
  int64_t first_of_stream_ = 0;  // elements before the first row, of what was cut
  bool is_cut_ = false;
};

// The rows of several files, those of one behind those of the other.
class JoinedRecords : public Records {
 public:
  // Errors: rows of another shape, or text, integers and floats together. REQUIRES: one at least.
  static absl::StatusOr<std::shared_ptr<const Records>> Join(
      std::vector<std::shared_ptr<const Records>> parts);

  absl::Status Read(int64_t first, int64_t count, double* values) const override;
  std::string Place(int64_t row, int64_t element) const override;
  const DataFile& file() const override { return parts_[0]->file(); }
  std::vector<std::string> paths() const override;
  uint64_t fingerprint() const override;
  std::string ToString() const override;

 private:
  JoinedRecords(int64_t rows, std::vector<std::shared_ptr<const Records>> parts);
  // The part that has a row.
  size_t PartOf(int64_t row) const;

  std::vector<std::shared_ptr<const Records>> parts_;
  std::vector<int64_t> first_rows_;  // of each part
};

// An array of a file with the name that it has there; "" without.
struct NamedRecords {
  std::string name;
  std::shared_ptr<const Records> records;
};

}  // namespace isomer

#endif  // ISOMER_RUNTIME_DATA_RECORDS_H_
