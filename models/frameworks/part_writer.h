// The forward function of a placed program, or of one chunk of it, as Python: a line for each call
// on the parts that a device has, and one for each move between placements. The frameworks differ
// in the operators and in the class around it, which has the methods that are called here:
//
//   self.move(x, have, need, gradient)       x as it is needed, and its gradient back
//   self.weight(name, need, gradient)        a weight likewise
//   self.constant(name, need)
//   self.take(x, need)                       of a whole input
//   self.at(0, 1)                            how far along digits the device is
//   self.index, self.micro_batch(x, dim)     the micro-batch, and its part of a tensor
#ifndef ISOMER_MODELS_FRAMEWORKS_PART_WRITER_H_
#define ISOMER_MODELS_FRAMEWORKS_PART_WRITER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/frameworks/operator_text.h"
#include "models/frameworks/placed_program.h"
#include "pcg/ir/graph.h"

namespace isomer {

// What differs between frameworks.
struct PartStyle {
  std::string type_prefix;  // "torch."
  // The framework has arrays that lie on all devices (JAX): inputs come as the leaves of the
  // program say, outputs stay in the shards in which they are made, and weights are gathered for a
  // step as PlacedLeaf says. Else each device is given whole inputs, gives whole outputs, and
  // gathers itself.
  bool global_arrays = false;
  // Results and moves are named by `keep`, but those of `recomputed` and the moves of weights.
  bool names_kept = false;
  std::set<NodeId> recomputed = {};
};

// Names that no variable may have.
std::set<std::string> TakenNames(const OperatorText& operators);

struct PartText {
  std::set<std::string> reads;  // weights and constants, by name
  std::string forward;          // a method
};

// `inputs`: what they are called in Python; `entering`, `leaving`: the tensors that come from the
// chunk before and go to the one behind. Errors name the node that has no form.
absl::StatusOr<PartText> WritePart(const Graph& graph, const PlacedProgram& program,
                                   const PartStyle& style,
                                   const std::map<NodeId, std::string>& inputs,
                                   OperatorText* operators, int64_t chunk,
                                   const std::vector<TensorRef>& entering,
                                   const std::vector<TensorRef>& leaving, bool gives_outputs);

// The same of the model as it was: whole tensors, on one device. `inputs`: by name.
absl::StatusOr<std::string> WriteReference(const Graph& graph, const PartStyle& style,
                                           const std::map<std::string, std::string>& inputs,
                                           OperatorText* operators);

}  // namespace isomer

#endif  // ISOMER_MODELS_FRAMEWORKS_PART_WRITER_H_
