// The mapping problem, a graph of cost tables with one choice to pick per node, and its solution.
#ifndef ISOMER_OPTIMIZER_MAPPING_MAPPING_PROBLEM_H_
#define ISOMER_OPTIMIZER_MAPPING_MAPPING_PROBLEM_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace isomer {

class MappingMemo;
class MappingReduction;

// The time of an infeasible choice. Sums of them stay finite.
inline constexpr float kImpossibleUs = 1e30f;

struct CostTable {
  int rows = 0, cols = 0;
  std::vector<float> us;  // row-major
  // Equal for equal tables; 0: unknown. A table with a key is immutable.
  uint64_t key = 0;
  CostTable() = default;
  CostTable(int rows_in, int cols_in, float fill)
      : rows(rows_in), cols(cols_in), us(static_cast<size_t>(rows_in) * cols_in, fill) {}
  float& at(int r, int c) { return us[static_cast<size_t>(r) * cols + c]; }
  float at(int r, int c) const { return us[static_cast<size_t>(r) * cols + c]; }
  // Hash of the contents; never 0.
  uint64_t ContentKey() const;
};

// The devices that a choice uses: the full machine or a share of it. Shares are for concurrent
// branches; nodes outside of these use the full machine.
enum class Share : int8_t { kWhole = 0, kLower = 1, kUpper = 2 };

// Two disjoint shares, both within `of`.
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
  // Up to two nodes; the solution is a table over their choices: [first][second].
  std::vector<int> terminals;
  std::vector<ShareSplit> splits =
      std::vector<ShareSplit>(1, {Share::kWhole, Share::kLower, Share::kUpper});
};

struct MappingOptions {
  int64_t max_conditions = 256;  // solves of a core with nodes fixed
  int rounds = 3;                // to improve a large core's solution, while they do
  int passes = 12;               // message passing over
  MappingMemo* memo = nullptr;   // outlives the solution
};

class MappingSolution {
 public:
  // Minimum microseconds per choice of the terminals (1 x 1, n x 1 or n x m).
  const CostTable& table() const { return table_; }
  // A choice for every node that reaches table().at(first, second).
  std::vector<int> Choices(int first, int second) const;
  // Relative gap between the minimum of table() and its lower bound; 0: optimal.
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
  // Assignments of the core, each with the table of the rest under it.
  struct Alternative {
    std::shared_ptr<const MappingReduction> reduction;
    CostTable table;
  };
  std::vector<Alternative> alternatives_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_MAPPING_PROBLEM_H_
