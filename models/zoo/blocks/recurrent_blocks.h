// Blocks of recurrent networks, unrolled: one call of a cell per step, all steps of a layer with
// the same weights.
#ifndef ISOMER_MODELS_ZOO_BLOCKS_RECURRENT_BLOCKS_H_
#define ISOMER_MODELS_ZOO_BLOCKS_RECURRENT_BLOCKS_H_

#include <string>
#include <vector>

#include "models/zoo/blocks/model_builder.h"

namespace isomer {

// [batch, hidden] each.
struct LstmState {
  TensorRef h, c;
};

// A layer of LSTM cells (Hochreiter and Schmidhuber, 1997; no peepholes). The weights are
// [4, inputs, hidden], one matrix per gate, so that the hidden dim can be partitioned:
//     gates[g,b,h] = x[b,:] W_x[g,:,h] + h_before[b,:] W_h[g,:,h] + bias[g,0,h]
class LstmLayer {
 public:
  LstmLayer(ModelBuilder& b, int64_t batch, int64_t inputs, int64_t hidden, std::string name);

  // One step for each of `inputs`, [batch, inputs]; from `*state`, or from zeros where it is null
  // or holds nothing yet, and then into it. Returns the h of every step.
  std::vector<TensorRef> Unroll(const std::vector<TensorRef>& inputs, LstmState* state = nullptr);

 private:
  LstmState Step(TensorRef x, const LstmState& before);

  ModelBuilder& b_;
  const int64_t batch_, hidden_;
  const std::string name_;
  const TensorRef input_weight_, state_weight_, bias_;
  int64_t num_steps_ = 0;
};

// `layers` of them, each on the outputs of the one below. `states`, if not null, has the first and
// receives the last state of each layer; empty: zeros.
std::vector<TensorRef> LstmStack(ModelBuilder& b, std::vector<TensorRef> inputs, int64_t layers,
                                 int64_t hidden, const std::string& name,
                                 std::vector<LstmState>* states = nullptr);

// The input `name`_ids [batch, steps] through a table [vocabulary, width]; for each step a tensor
// [batch, width].
std::vector<TensorRef> EmbeddedSteps(ModelBuilder& b, int64_t batch, int64_t steps,
                                     int64_t vocabulary, int64_t width, const std::string& name);

// Steps [batch, width] side by side: [batch, steps, width].
TensorRef StackSteps(ModelBuilder& b, const std::vector<TensorRef>& steps, const std::string& name);

}  // namespace isomer

#endif  // ISOMER_MODELS_ZOO_BLOCKS_RECURRENT_BLOCKS_H_
