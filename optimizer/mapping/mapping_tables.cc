// The tables of composites (mapping_reduction.h).
#include <algorithm>

#include "optimizer/mapping/mapping_memo.h"
#include "optimizer/mapping/mapping_reduction.h"
#include "optimizer/mapping/min_plus.h"
#include "pcg/support/hash.h"

namespace isomer {
namespace {

CostTable Transposed(const CostTable& t) {
  CostTable result(t.cols, t.rows, 0);
  for (int r = 0; r < t.rows; ++r) {
    for (int c = 0; c < t.cols; ++c) result.at(c, r) = t.at(r, c);
  }
  return result;
}

// Positions of `some` in `all`, its superset.
std::vector<int> PlacesOf(const std::vector<int>& some, const std::vector<int>& all) {
  std::vector<int> places;
  places.reserve(some.size());
  for (int choice : some) {
    places.push_back(static_cast<int>(std::find(all.begin(), all.end(), choice) - all.begin()));
  }
  return places;
}

}  // namespace

const CostTable& MappingReduction::Us(int composite, int share) const {
  if (composites_[composite].tables[share] == nullptr) {
    TablePointer table = MakeTable(composite, share);
    composites_[composite].tables[share] = std::move(table);
  }
  return *composites_[composite].tables[share];
}

MappingReduction::TablePointer MappingReduction::Towards(int composite, int node, int share) const {
  const CostTable& table = Us(composite, share);
  if (composites_[composite].b == node) return composites_[composite].tables[share];
  return std::make_shared<const CostTable>(Transposed(table));
}

MappingReduction::TablePointer MappingReduction::MakeTable(int composite, int share) const {
  const Composite& c = composites_[composite];
  if (c.edge != nullptr) return EdgeTable(c, share);
  const auto make = [&] { return c.inner >= 0 ? SeriesTable(c, share) : ParallelTable(c, share); };
  if (memo_ == nullptr) return make();
  uint64_t key = HashCombine(c.key, static_cast<uint64_t>(share));
  for (const ShareSplit& split : splits_) {
    key = HashCombine(key, static_cast<uint64_t>(split.of), static_cast<uint64_t>(split.first),
                      static_cast<uint64_t>(split.second));
  }
  TablePointer found = memo_->Find(key, static_cast<int>(Visible(c.a, share).size()),
                                   static_cast<int>(Visible(c.b, share).size()));
  if (found != nullptr) return found;
  TablePointer made = make();
  memo_->Insert(key, made);
  return made;
}

MappingReduction::TablePointer MappingReduction::EdgeTable(const Composite& c, int share) const {
  const std::vector<int>&rows = Visible(c.a, share), &cols = Visible(c.b, share);
  if (static_cast<int>(rows.size()) == c.edge->rows &&
      static_cast<int>(cols.size()) == c.edge->cols && std::is_sorted(rows.begin(), rows.end()) &&
      std::is_sorted(cols.begin(), cols.end())) {
    return TablePointer(TablePointer(), c.edge);  // Owned by the problem.
  }
  auto table =
      std::make_shared<CostTable>(static_cast<int>(rows.size()), static_cast<int>(cols.size()), 0);
  float* to = table->us.data();
  for (int r : rows) {
    const float* from = c.edge->us.data() + static_cast<size_t>(r) * c.edge->cols;
    for (int k : cols) *to++ = from[k];
  }
  return table;
}

MappingReduction::TablePointer MappingReduction::SeriesTable(const Composite& c, int share) const {
  const int m = c.inner;
  const TablePointer l = Towards(c.left, m, share);
  // Rows of the right part are the inner node's.
  Us(c.right, share);
  TablePointer r = composites_[c.right].tables[share];
  if (composites_[c.right].a != m) r = std::make_shared<const CostTable>(Transposed(*r));
  auto table = std::make_shared<CostTable>(l->rows, r->cols, kImpossibleUs);
  const std::vector<int>& own = ChoicesOf(m, share);
  const int begin = OwnBegin(m, share);
  std::vector<float> middle;
  middle.reserve(own.size());
  for (int k : own) middle.push_back(nodes_[m].us[k]);
  MinPlus(l->us.data() + begin, l->cols, middle.data(),
          r->us.data() + static_cast<size_t>(begin) * r->cols, r->cols, l->rows,
          static_cast<int>(own.size()), r->cols, table->us.data(), table->cols);
  return table;
}

MappingReduction::TablePointer MappingReduction::ParallelTable(const Composite& c,
                                                               int share) const {
  auto table = std::make_shared<CostTable>(Us(c.left, share));
  table->key = 0;
  const TablePointer right = Towards(c.right, c.b, share);
  if (c.resources.empty()) {
    for (size_t i = 0; i < table->us.size(); ++i) table->us[i] += right->us[i];
  } else {
    for (size_t i = 0; i < table->us.size(); ++i) {
      table->us[i] = std::max({table->us[i], right->us[i], c.resources[share]});
    }
  }
  if (!RunBeside(c.left, c.right)) return table;
  const std::vector<int>&rows = Visible(c.a, share), &cols = Visible(c.b, share);
  for (const ShareSplit& split : splits_) {
    if (static_cast<int>(split.of) != share) continue;
    for (const auto& [f, g] :
         {std::pair(split.first, split.second), std::pair(split.second, split.first)}) {
      const int of_left = static_cast<int>(f), of_right = static_cast<int>(g);
      const CostTable& l = Us(c.left, of_left);
      const TablePointer r = Towards(c.right, c.b, of_right);
      const std::vector<int> l_rows = PlacesOf(rows, Visible(c.a, of_left));
      const std::vector<int> r_rows = PlacesOf(rows, Visible(c.a, of_right));
      const std::vector<int> l_cols = PlacesOf(cols, Visible(c.b, of_left));
      const std::vector<int> r_cols = PlacesOf(cols, Visible(c.b, of_right));
      for (int row = 0; row < table->rows; ++row) {
        for (int col = 0; col < table->cols; ++col) {
          float& us = table->at(row, col);
          us = std::min(us,
                        std::max(l.at(l_rows[row], l_cols[col]), r->at(r_rows[row], r_cols[col])));
        }
      }
    }
  }
  return table;
}

}  // namespace isomer
