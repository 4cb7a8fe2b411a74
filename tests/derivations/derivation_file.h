// Derivations as files: a graph, the graph that it should become, and way points between them.
//
//   # Megatron's MLP
//   #
//   # Why it matters, in a few lines.
//   x = input f32[4,8]
//   w = weight f32[8,16]
//
//   [start]
//   h = matmul(x, w)
//   output y = gelu(h)
//
//   [the MatMul by columns]
//   ..
//   [goal]
//   output y = combine(gelu(matmul(replicate(x; degree=2), partition(w; axis=1, degree=2))); ..)
//
// Leaves come first and are those of every stage; calls read as those of rules do, and name.1 or
// split(..).1 is output 1. A line "needs: EQUATION" names what the shipped rules lack.
#ifndef ISOMER_TESTS_DERIVATIONS_DERIVATION_FILE_H_
#define ISOMER_TESTS_DERIVATIONS_DERIVATION_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"

namespace isomer {

struct Stage {
  std::string title;
  std::string text;  // its lines in the file
  Graph graph;       // canonical
};

struct Derivation {
  std::string title;
  std::string prose;
  std::string needs;          // empty: the shipped rules suffice
  std::vector<Stage> stages;  // start, way points, goal; at least two
};

// The error is one line that names the line of the file.
absl::StatusOr<Derivation> ParseDerivation(absl::string_view text);

}  // namespace isomer

#endif  // ISOMER_TESTS_DERIVATIONS_DERIVATION_FILE_H_
