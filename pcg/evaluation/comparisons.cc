#include "pcg/evaluation/comparisons.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pcg/ir/declaration.h"

namespace isomer {
namespace {

// Of numbers of the size of 1; a sum of a few thousand of them is off by less.
constexpr double kRounding = 1e-9;

// Equal numbers are taken to be equal.
bool DifferByRounding(double a, double b) {
  return a != b && std::abs(a - b) <= kRounding * std::max({1.0, std::abs(a), std::abs(b)});
}

bool AllFinite(const std::vector<double>& elements) {
  return std::all_of(elements.begin(), elements.end(), [](double x) { return std::isfinite(x); });
}

bool AreNear(std::vector<double> elements) {
  for (double element : elements) {
    if (DifferByRounding(element, std::round(element))) return true;
  }
  std::sort(elements.begin(), elements.end());
  return std::adjacent_find(elements.begin(), elements.end(), DifferByRounding) != elements.end();
}

// Whether what some call compares, all its operands' elements, is `so`.
template <typename Predicate>
bool ComparesWhatIs(const Predicate& so, const Graph& graph, const Values<double>& values) {
  for (int n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(n);
    // Of calls that nothing needs there are no values.
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind()) || values[n].empty()) continue;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    const absl::StatusOr<Declaration> declaration = Declare(node.op, shapes);
    if (!declaration.ok() || !declaration->ComparesElements()) continue;
    std::vector<double> compared;
    for (TensorRef input : node.inputs) {
      for (const Array<double>& meaning : Meaning(values[input.node.value][input.output])) {
        compared.insert(compared.end(), meaning.data.begin(), meaning.data.end());
      }
    }
    if (so(compared)) return true;
  }
  return false;
}

}  // namespace

bool ComparesWhatIsNotFinite(const Graph& graph, const Values<double>& values) {
  return ComparesWhatIs([](const auto& elements) { return !AllFinite(elements); }, graph, values);
}

bool RoundingMayDecide(const Graph& graph, const Values<double>& values) {
  return ComparesWhatIs(
      [](const auto& elements) { return AllFinite(elements) && AreNear(elements); }, graph, values);
}

}  // namespace isomer
