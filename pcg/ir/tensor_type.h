// The type of a tensor in a parallel computation graph.
//
// A tensor is stored as product(degrees) * copies * partials shards, each of local shape
// size/degree. Copies are equal; partials sum to the logical value. The two are kept apart, so
// that a non-linear operator on partial sums is a type error and not a wrong result.
//
//   gradient of (c copies, p partials)  =  same dims, (p copies, c partials)
//
// because each copy's gradient is one share of the sum, and each partial's gradient is a copy of
// the whole. Unity (OSDI'22, section 4) has one replica dimension for both.
#ifndef ISOMER_PCG_IR_TENSOR_TYPE_H_
#define ISOMER_PCG_IR_TENSOR_TYPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/extent.h"

namespace isomer {

// The numbers are those of the attribute `to` of Cast.
enum class DataType {
  kFloat32 = 0,
  kInt64 = 1,
  kBFloat16 = 2,
  kFloat16 = 3,
  kInt32 = 4,
  kBool = 5,  // a byte: 0 or 1
};
inline constexpr DataType kAllDataTypes[] = {DataType::kFloat32,  DataType::kInt64,
                                             DataType::kBFloat16, DataType::kFloat16,
                                             DataType::kInt32,    DataType::kBool};

// "f32", "i64", "bf16", "f16", "i32", "bool".
absl::string_view DataTypeName(DataType dtype);
absl::StatusOr<DataType> ParseDataType(absl::string_view name);
int64_t BytesPerElement(DataType dtype);
// A floating-point type: only these have gradients.
bool IsFloat(DataType dtype);
// int32 or int64: what indices may be.
bool IsInteger(DataType dtype);

struct Dim {
  int64_t size = 1;    // global, logical
  int64_t degree = 1;  // number of equal, contiguous pieces; divides size
  friend bool operator==(const Dim&, const Dim&) = default;
};

struct TensorType {
  DataType dtype = DataType::kFloat32;
  std::vector<Dim> dims;
  int64_t copies = 1;
  int64_t partials = 1;
  // Length of the sequence that Pipeline made of the tensor; dims describe one micro-batch.
  int64_t micro_batches = 1;

  int rank() const { return static_cast<int>(dims.size()); }
  // Elements of the logical tensor (of one micro-batch).
  int64_t NumElements() const;
  // Elements of one shard.
  int64_t LocalElements() const;
  int64_t LocalBytes() const { return LocalElements() * BytesPerElement(dtype); }
  // Shards of one micro-batch: product(degrees) * copies * partials.
  int64_t NumShards() const;
  std::vector<int64_t> LocalShape() const;
  std::vector<int64_t> Sizes() const;
  Shape GlobalShape() const;
  bool IsParallel() const { return NumShards() > 1 || micro_batches > 1; }

  // "f32[8:2,16] c2 p1": dims as size[:degree]; copies, partials, micro-batches only if not 1.
  std::string ToString() const;
  friend bool operator==(const TensorType&, const TensorType&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TensorType& t) {
    for (const Dim& dim : t.dims) h = H::combine(std::move(h), dim.size, dim.degree);
    return H::combine(std::move(h), t.dtype, t.copies, t.partials, t.micro_batches);
  }
};

// A type of `sizes` that is not parallel.
TensorType SequentialType(std::vector<int64_t> sizes, DataType dtype = DataType::kFloat32);

// Parses the form that ToString prints.
absl::StatusOr<TensorType> ParseTensorType(absl::string_view text);

// Ok if sizes, degrees, copies and partials are positive, degrees divide sizes, and the tensor has
// fewer than 2^48 elements and 2^20 shards, and at most 64 dims.
absl::Status ValidateTensorType(const TensorType& type);

// The type of the gradient of a tensor of `type`: copies and partials change places.
TensorType GradientType(const TensorType& type);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_TENSOR_TYPE_H_
