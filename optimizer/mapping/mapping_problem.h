// Graphs of cost tables, from which a choice is wanted for every node, and what solves them.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_PROBLEM_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace isomer {

class MappingMemo;
class MappingReduction;

// Times that are not possible. Sums of them stay finite.
inline constexpr float kImpossibleUs = 1e30f;

struct CostTable {
  int rows = 0, cols = 0;
  std::vector<float> us;  // row-major
  // Equal for equal tables; 0: not known. Whoever sets it changes the table no more.
  uint64_t key = 0;
  CostTable() = default;
  CostTable(int rows_in, int cols_in, float fill)
      : rows(rows_in), cols(cols_in), us(static_cast<size_t>(rows_in) * cols_in, fill) {}
  float& at(int r, int c) { return us[static_cast<size_t>(r) * cols + c]; }
  float at(int r, int c) const { return us[static_cast<size_t>(r) * cols + c]; }
  // Of what the table holds; never 0.
  uint64_t ContentKey() const;
};

// Which devices a choice uses: the whole machine, or a share of it, by its number. Shares are for
// branches that run at the same time; nodes that are in no such branch use the whole.
enum class Share : int8_t { kWhole = 0, kLower = 1, kUpper = 2 };

// Two shares without a device in common, both part of a third.
struct ShareSplit {
  Share of, first, second;
};

struct MappingProblem {
  struct MappingNode {
    std::vector<float> us;      // per choice
    std::vector<Share> shares;  // per choice; empty: all kWhole
  };
  struct Edge {
    int from, to;
    const CostTable* table;  // rows: choices of `from`; outlives the solution
  };
  std::vector<MappingNode> nodes;
  std::vector<Edge> edges;
  // Up to two nodes whose choices the solution is a table of: [first][second].
  std::vector<int> terminals;
  std::vector<ShareSplit> splits =
      std::vector<ShareSplit>(1, {Share::kWhole, Share::kLower, Share::kUpper});
};

struct MappingOptions {
  int64_t max_conditions = 256;  // solves of a core
  int rounds = 3;                // of a large core, after the first, while they make it better
  int passes = 12;               // of message passing over a large core
  MappingMemo* memo = nullptr;   // outlives the solution
};

class MappingSolution {
 public:
  // Least time for each choice of the terminals (1 x 1, n x 1 or n x m).
  const CostTable& table() const { return table_; }
  // A choice for every node that reaches table().at(first, second).
  std::vector<int> Choices(int first, int second) const;
  // How much less than the least of table() a solution could be at most, as a part of it; 0: none.
  double gap() const { return gap_; }
  bool exact() const { return gap_ == 0; }

  MappingSolution();
  MappingSolution(MappingSolution&&) noexcept;
  MappingSolution& operator=(MappingSolution&&) noexcept;
  ~MappingSolution();

 private:
  friend class MappingSolver;
  CostTable table_;
  double gap_ = 0;
  // Ways to set the core, each with what it takes the rest to.
  struct Alternative {
    std::shared_ptr<const MappingReduction> reduction;
    CostTable table;
  };
  std::vector<Alternative> alternatives_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_PROBLEM_H_
