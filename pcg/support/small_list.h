// A list that is short nearly always: up to N elements lie in place. Schedules have millions of
// them, and what making those takes is mostly memory that is asked for and given back.
#ifndef ISOMER_PCG_SUPPORT_SMALL_LIST_H_
#define ISOMER_PCG_SUPPORT_SMALL_LIST_H_

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace isomer {

// GCC 12 takes what is not in use of a list in place for read when lists are moved.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

// Converts from and to vectors: lists that are not many are those.
template <typename T, size_t N>
class SmallList : public absl::InlinedVector<T, N> {
 public:
  using Base = absl::InlinedVector<T, N>;
  using Base::Base;
  SmallList() = default;
  SmallList(const std::vector<T>& list) : Base(list.begin(), list.end()) {}  // NOLINT
  operator std::vector<T>() const { return {this->begin(), this->end()}; }   // NOLINT
  friend bool operator==(const SmallList& a, const SmallList& b) {
    return static_cast<const Base&>(a) == static_cast<const Base&>(b);
  }
};

#pragma GCC diagnostic pop

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_SMALL_LIST_H_
