// Memo of the tables that reductions make: a candidate that differs from another in three nodes
// recomputes only tables over one of them.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_MEMO_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_MEMO_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "optimizer/mapping/mapping_problem.h"

namespace isomer {

// Thread-safe. Keeps the most recently used tables, up to `max_bytes`.
class MappingMemo {
 public:
  explicit MappingMemo(int64_t max_bytes = int64_t{256} << 20) : max_bytes_(max_bytes) {}

  // Null: absent. Keys are hashes: `rows` and `cols` are compared as well.
  std::shared_ptr<const CostTable> Find(uint64_t key, int rows, int cols);
  void Insert(uint64_t key, std::shared_ptr<const CostTable> table);

  void Clear();

  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  using Tables = absl::flat_hash_map<uint64_t, std::shared_ptr<const CostTable>>;
  void Keep(uint64_t key, std::shared_ptr<const CostTable> table);

  const int64_t max_bytes_;
  std::mutex mutex_;
  // Two generations: when the young one reaches half of `max_bytes`, the old one is dropped and the
  // young one becomes old. A hit makes a table young again.
  Tables young_, old_;
  int64_t young_bytes_ = 0;
  int64_t hits_ = 0, misses_ = 0;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_MEMO_H_
