#include "verifier/values/evaluation_bound.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr double kMostPoints = 4e6;

absl::Status TooMany(double points) {
  if (points <= kMostPoints) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("too large to be evaluated: ", points, " points"));
}

}  // namespace

absl::Status ExpectFewPoints(const Declaration& d) {
  double points = 0;
  for (const Statement& s : d.statements) {
    std::set<int> over(s.reduced.begin(), s.reduced.end());
    for (const Index& index : s.indices) {
      for (const auto& [dim, stride] : index.terms) over.insert(dim);
    }
    double of_statement = 1;
    for (int dim : over) of_statement *= static_cast<double>(d.dims[dim].size.value());
    points += of_statement;
  }
  return TooMany(points);
}

absl::Status ExpectFewPoints(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    for (const TensorType& type : node.outputs) {
      double elements = static_cast<double>(type.partials);
      for (const Dim& dim : type.dims) elements *= static_cast<double>(dim.size);
      ISOMER_RETURN_IF_ERROR(TooMany(elements));
    }
    if (IsLeaf(node.op.kind()) || IsParallel(node.op.kind())) continue;
    std::vector<Shape> shapes;
    for (TensorRef input : node.inputs) shapes.push_back(graph.type(input).GlobalShape());
    ISOMER_ASSIGN_OR_RETURN(const Declaration d, Declare(node.op, shapes));
    ISOMER_RETURN_IF_ERROR(ExpectFewPoints(d));
  }
  return absl::OkStatus();
}

}  // namespace isomer
