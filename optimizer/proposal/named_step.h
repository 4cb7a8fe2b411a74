// A step without a rule that calls are added to, each with its name.
#ifndef ISOMER_OPTIMIZER_PROPOSAL_NAMED_STEP_H_
#define ISOMER_OPTIMIZER_PROPOSAL_NAMED_STEP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pcg/ir/plan.h"

namespace isomer {

struct NamedStep {
  // `next_id`: of the first call (StatedRewriter::next_id).
  explicit NamedStep(NodeId next_id) : next(next_id) {}

  TensorRef Add(const Operator& op, std::vector<TensorRef> inputs, std::string name) {
    step.calls.push_back({op, std::move(inputs)});
    names.push_back(std::move(name));
    return TensorRef{NodeId{next.value++}, 0};
  }
  TensorRef Reshape(TensorRef x, std::vector<int64_t> shape, std::string name) {
    return Add({OpKind::kReshape, {{"shape", std::move(shape)}}}, {x}, std::move(name));
  }

  NodeId next;
  DerivationStep step;
  std::vector<std::string> names;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_PROPOSAL_NAMED_STEP_H_
