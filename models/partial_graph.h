// Partial execution: what a fetched tensor needs, up to what is fed (Abadi et al., "TensorFlow: A
// System for Large-Scale Machine Learning", 2016, section 3.2).
#ifndef ISOMER_MODELS_PARTIAL_GRAPH_H_
#define ISOMER_MODELS_PARTIAL_GRAPH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"

namespace isomer {

// The tensors of a graph by what a file calls them: leaves, outputs, and what a call makes by the
// call's name, of its k-th further output with ":k" behind. Of calls of one name the last one's:
// what an importer makes several calls of ends there.
std::map<std::string, TensorRef> TensorNames(const Graph& graph);

// Error: there is none of that name, with a few that are like it.
absl::StatusOr<TensorRef> FindTensor(const std::map<std::string, TensorRef>& names,
                                     const std::string& name);

// What `fetches` need, as outputs of these names; `feeds` are inputs of these names, and nothing
// that makes them is left. Types are the graph's.
absl::StatusOr<Graph> CutGraph(const Graph& graph, const std::map<std::string, TensorRef>& feeds,
                               const std::vector<Graph::NamedOutput>& fetches);

}  // namespace isomer

#endif  // ISOMER_MODELS_PARTIAL_GRAPH_H_
