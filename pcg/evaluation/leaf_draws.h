// What is drawn for leaves that nobody gives values to.
#ifndef ISOMER_PCG_EVALUATION_LEAF_DRAWS_H_
#define ISOMER_PCG_EVALUATION_LEAF_DRAWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pcg/ir/graph.h"

namespace isomer {

// One stream of random numbers per leaf, so that it does not depend on the others; numbers of a
// stream that are far apart can be had one by one (Steele, Lea, Flood, "Fast Splittable
// Pseudorandom Number Generators", 2014).
class Random {
 public:
  static uint64_t StreamOf(uint64_t seed, const std::string& leaf);
  // Behind the first `drawn` numbers.
  explicit Random(uint64_t stream, int64_t drawn = 0);
  uint64_t Next();
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }
  // Of kOfNormal numbers.
  double Normal();
  static constexpr int64_t kOfNormal = 2;

 private:
  uint64_t state_;
};

// What a leaf is for: its first use that is no parallel or layout operator, looked for through
// those; through Scale by a whole number, too, where that makes places of rows from their numbers.
struct LeafRole {
  OpKind kind = OpKind::kInput;
  int operand = 0;
  int64_t limit = 2;  // of indices: rows of the table, or classes
};
LeafRole RoleOf(const Graph& graph, const std::vector<std::vector<Graph::Use>>& users, NodeId id);

// Whether it starts at 1: scales and variances.
bool StartsAtOne(const LeafRole& role);
// Of the numbers of others: 1/sqrt(fan in) of matrices and kernels.
double Deviation(const LeafRole& role, const std::vector<int64_t>& shape);

}  // namespace isomer

#endif  // ISOMER_PCG_EVALUATION_LEAF_DRAWS_H_
