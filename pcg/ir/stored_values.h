#ifndef ISOMER_PCG_IR_STORED_VALUES_H_
#define ISOMER_PCG_IR_STORED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pcg/ir/tensor_type.h"

namespace isomer {

// Elements of a file, little-endian, one behind the other.
struct FileRange {
  std::string path;
  int64_t file_bytes = 0;               // of the whole file, which tells when it is another one
  int64_t offset = 0;                   // bytes
  DataType dtype = DataType::kFloat32;  // float32, float16 or bfloat16
  int64_t elements = 0;
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

// The values of a tensor of floats, row-major: held, or left in the file in which they lie until
// they are read, so that a model may be larger than memory. Copies share what is held.
class StoredValues {
 public:
  // Of the values, as numbers.
  class const_iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = float;
    using difference_type = std::ptrdiff_t;
    using pointer = const float*;
    using reference = float;
    const_iterator() = default;
    const_iterator(const StoredValues* of, difference_type i) : of_(of), i_(i) {}
    float operator*() const { return (*of_)[static_cast<size_t>(i_)]; }
    float operator[](difference_type n) const { return *(*this + n); }
    const_iterator& operator+=(difference_type n) { return i_ += n, *this; }
    const_iterator& operator-=(difference_type n) { return i_ -= n, *this; }
    const_iterator& operator++() { return *this += 1; }
    const_iterator& operator--() { return *this -= 1; }
    const_iterator operator++(int) { return const_iterator(of_, i_++); }
    const_iterator operator--(int) { return const_iterator(of_, i_--); }
    friend const_iterator operator+(const_iterator a, difference_type n) { return a += n; }
    friend const_iterator operator+(difference_type n, const_iterator a) { return a += n; }
    friend const_iterator operator-(const_iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(const_iterator a, const_iterator b) { return a.i_ - b.i_; }
    friend bool operator==(const_iterator a, const_iterator b) { return a.i_ == b.i_; }
    friend auto operator<=>(const_iterator a, const_iterator b) { return a.i_ <=> b.i_; }

   private:
    const StoredValues* of_ = nullptr;
    difference_type i_ = 0;
  };
  using iterator = const_iterator;
  using value_type = float;
  using const_reference = float;

  StoredValues() = default;
  StoredValues(std::vector<float> values);            // NOLINT: as a vector would be
  StoredValues(std::initializer_list<float> values);  // NOLINT: as a vector would be

  // Values that stay in their file. Error: "weights.bin: no such file", "weights.bin has 12 bytes,
  // not 16 from 8 on", or that it has another size than `range` says.
  static absl::StatusOr<StoredValues> InFile(FileRange range);
  // Where they lie; null: they are held.
  const FileRange* file() const { return file_.get(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // REQUIRES: i < size().
  float operator[](size_t i) const;
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, static_cast<std::ptrdiff_t>(size_)}; }

  std::vector<float> ToVector() const;
  // What has been read of a file need not stay in memory.
  void LetGo() const;

  friend bool operator==(const StoredValues& a, const StoredValues& b);

 private:
  std::shared_ptr<const std::vector<float>> held_;
  std::shared_ptr<const FileRange> file_;
  std::shared_ptr<const char> mapping_;  // of all of the file
  const char* data_ = nullptr;
  size_t size_ = 0;
  DataType dtype_ = DataType::kFloat32;
};

}  // namespace isomer

#endif  // ISOMER_PCG_IR_STORED_VALUES_H_
