#include "optimizer/mapping/mapping_memo.h"

#include <utility>

namespace isomer {

std::shared_ptr<const CostTable> MappingMemo::Find(uint64_t key, int rows, int cols) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = young_.find(key);
  if (it == young_.end()) {
    auto old = old_.find(key);
    if (old == old_.end()) {
      ++misses_;
      return nullptr;
    }
    Keep(key, old->second);
    it = young_.find(key);
  }
  if (it->second->rows != rows || it->second->cols != cols) return nullptr;
  ++hits_;
  return it->second;
}

void MappingMemo::Insert(uint64_t key, std::shared_ptr<const CostTable> table) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Keep(key, std::move(table));
}

void MappingMemo::Keep(uint64_t key, std::shared_ptr<const CostTable> table) {
  if (young_bytes_ > max_bytes_ / 2) {
    old_ = std::exchange(young_, Tables());
    young_bytes_ = 0;
  }
  young_bytes_ += static_cast<int64_t>(table->us.size() * sizeof(float) + sizeof(CostTable));
  young_.insert_or_assign(key, std::move(table));
}

void MappingMemo::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  young_.clear();
  old_.clear();
  young_bytes_ = 0;
}

}  // namespace isomer
