// Level 3: the best choice for every node, by dynamic programming over a graph of cost tables.
//
// The problem: every node has a list of choices with a time each; every edge has a table of times
// over the choices of its two ends; the sum is to be least. Two reductions take a series-parallel
// graph to one edge between its terminals, exactly:
//
//   series    a - m - b           T[a][b] = min over m: L[a][m] + m's time + R[m][b]
//   parallel  two edges a - b     T[a][b] = L[a][b] + R[a][b], one after the other,
//                                 or max(L[a][b], R[a][b]) if the one keeps to the lower half of
//                                 the machine and the other to the upper half: at the same time
//
// (Unity, OSDI'22, section 6: sequence and non-sequence splits of its dynamic programming.) The
// tables also hold what a branch costs if all its inner nodes keep to one half. A node with one
// neighbour folds into it. What is left of a graph that is not series-parallel has three neighbours
// at every node: the node with most is set to each of its choices in turn (the most promising ones,
// when they are too many), and the rest is solved for each; so the result is exact as long as
// `options.max_conditions` suffices. Once it is used up, and in a core of many nodes (an unrolled
// recurrent network is a lattice), nodes get their most promising choice for good, one after the
// other, with reductions in between: a bound from above, in time linear in nodes.
#ifndef ISOMER_OPTIMIZER_MAPPING_H_
#define ISOMER_OPTIMIZER_MAPPING_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace isomer {

// Times that are not possible. Sums of them stay finite.
inline constexpr float kImpossibleUs = 1e30f;

struct CostTable {
  int rows = 0, cols = 0;
  std::vector<float> us;  // row-major
  CostTable() = default;
  CostTable(int rows_in, int cols_in, float fill)
      : rows(rows_in), cols(cols_in), us(static_cast<size_t>(rows_in) * cols_in, fill) {}
  float& at(int r, int c) { return us[static_cast<size_t>(r) * cols + c]; }
  float at(int r, int c) const { return us[static_cast<size_t>(r) * cols + c]; }
};

// Which devices a choice uses: the whole machine, its lower half, or its upper half. Halves are for
// branches that run at the same time; nodes that are in no such branch use the whole.
enum class Share : int8_t { kWhole = 0, kLower = 1, kUpper = 2 };

struct MappingProblem {
  struct MappingNode {
    std::vector<float> us;      // per choice
    std::vector<Share> shares;  // per choice; empty: all kWhole
  };
  struct Edge {
    int from, to;
    const CostTable* table;  // rows: choices of `from`
  };
  std::vector<MappingNode> nodes;
  std::vector<Edge> edges;
  // Up to two nodes whose choices the solution is a table of: [first][second].
  std::vector<int> terminals;
};

struct MappingOptions {
  int64_t max_conditions = 256;  // solves of a graph that is not series-parallel
};

class MappingSolution {
 public:
  // Least time for each choice of the terminals (1 x 1, n x 1 or n x m).
  const CostTable& table() const { return table_; }
  // A choice for every node that reaches table().at(first, second).
  std::vector<int> Choices(int first, int second) const;
  bool exact() const { return exact_; }

  MappingSolution();
  MappingSolution(MappingSolution&&) noexcept;
  MappingSolution& operator=(MappingSolution&&) noexcept;
  ~MappingSolution();

  struct Trace;

 private:
  friend class MappingSolver;
  CostTable table_;
  bool exact_ = true;
  std::unique_ptr<Trace> trace_;
};

MappingSolution SolveMapping(const MappingProblem& problem, const MappingOptions& options = {});

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MAPPING_H_
