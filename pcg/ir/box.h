#ifndef ISOMER_PCG_IR_BOX_H_
#define ISOMER_PCG_IR_BOX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pcg/ir/tensor_type.h"
#include "pcg/support/small_list.h"

namespace isomer {

// A box of a logical tensor: [origin, origin + shape).
struct Box {
  SmallList<int64_t, 4> origin, shape;

  int64_t Volume() const;
  bool empty() const { return Volume() == 0; }
  std::string ToString() const;  // "[0:4,8:16]"
  friend bool operator==(const Box&, const Box&) = default;
};

// REQUIRES: equal ranks. Volume 0 if they are disjoint.
Box Intersection(const Box& a, const Box& b);
int64_t IntersectionVolume(const Box& a, const Box& b);
// False for other ranks, too.
bool Covers(const Box& outer, const Box& inner);
// Where `region` begins among the elements of `box`, row-major, if its own lie there side by side;
// else -1. REQUIRES: Covers(box, region).
int64_t LineOffset(const Box& region, const Box& box);

// Where a shard lies among the shards of its tensor, which are in row-major order of
// [dims.., copies, partials].
struct ShardCoordinates {
  std::vector<int64_t> dims;
  int64_t copy = 0;
  int64_t partial = 0;
};
ShardCoordinates CoordinatesOfShard(const TensorType& type, int64_t shard);
int64_t ShardAt(const TensorType& type, const ShardCoordinates& coordinates);

// The box of the logical tensor that a shard with these coordinates holds.
Box ShardBox(const TensorType& type, const std::vector<int64_t>& dim_coordinates);

// The dim coordinates of the shards whose boxes share something with `box`, in row-major order.
// REQUIRES: box is not empty and inside of the tensor.
std::vector<std::vector<int64_t>> OverlappingPieces(const TensorType& type, const Box& box);

}  // namespace isomer

#endif  // ISOMER_PCG_IR_BOX_H_
