#include "models/zoo/blocks/recurrent_blocks.h"

#include "absl/strings/str_cat.h"

namespace isomer {

LstmLayer::LstmLayer(ModelBuilder& b, int64_t batch, int64_t inputs, int64_t hidden,
                     std::string name)
    : b_(b),
      batch_(batch),
      hidden_(hidden),
      name_(std::move(name)),
      input_weight_(b.Weight(name_ + ".input_weight", {4, inputs, hidden})),
      state_weight_(b.Weight(name_ + ".state_weight", {4, hidden, hidden})),
      bias_(b.Weight(name_ + ".bias", {4, 1, hidden})) {}

LstmState LstmLayer::Step(TensorRef x, const LstmState& before) {
  const std::string name = absl::StrCat(name_, "/step", num_steps_++);
  // One matrix for all gates: a product of operands of equal rank is one that rules split.
  const auto product = [&](TensorRef rows, TensorRef weight, const std::string& of) {
    const TensorRef one = b_.Reshape(rows, {1, batch_, b_.Size(rows, 1)}, of + "/matrix");
    return b_.Call(OpKind::kMatMul, {one, weight}, of);
  };
  TensorRef gates =
      b_.Add(product(x, input_weight_, name + "/of_input"),
             product(before.h, state_weight_, name + "/of_state"), name + "/products");
  gates = b_.Add(gates, bias_, name + "/gates");
  gates = b_.Transpose(gates, {1, 0, 2}, name + "/rows");
  const std::vector<TensorRef> after =
      b_.CallAll(OpKind::kLstmCell, {gates, before.c}, 2, name + "/cell");
  return {.h = after[0], .c = after[1]};
}

std::vector<TensorRef> LstmLayer::Unroll(const std::vector<TensorRef>& inputs, LstmState* state) {
  LstmState zeros;
  if (state == nullptr) state = &zeros;
  if (state->h == TensorRef()) {
    // One row of zeros, so that the model does not hold a batch of them.
    const TensorRef row = b_.Constant(name_ + ".zeros", {1, hidden_}, std::vector<float>(hidden_));
    state->h = state->c =
        b_.Call({OpKind::kExpand, {{"shape", std::vector<int64_t>{batch_, hidden_}}}}, {row},
                name_ + "/zeros");
  }
  std::vector<TensorRef> outputs;
  for (TensorRef x : inputs) {
    *state = Step(x, *state);
    outputs.push_back(state->h);
  }
  return outputs;
}

std::vector<TensorRef> LstmStack(ModelBuilder& b, std::vector<TensorRef> inputs, int64_t layers,
                                 int64_t hidden, const std::string& name,
                                 std::vector<LstmState>* states) {
  std::vector<LstmState> zeros;
  if (states == nullptr) states = &zeros;
  states->resize(layers);
  for (int64_t i = 0; i < layers; ++i) {
    LstmLayer layer(b, b.Size(inputs[0], 0), b.Size(inputs[0], 1), hidden,
                    absl::StrCat(name, "/layer", i));
    inputs = layer.Unroll(inputs, &(*states)[i]);
  }
  return inputs;
}

std::vector<TensorRef> EmbeddedSteps(ModelBuilder& b, int64_t batch, int64_t steps,
                                     int64_t vocabulary, int64_t width, const std::string& name) {
  const TensorRef ids = b.Input(name + "_ids", {batch, steps}, DataType::kInt64);
  const TensorRef table = b.Weight(name + ".table", {vocabulary, width});
  const TensorRef embedded = b.Call(OpKind::kEmbedding, {table, ids}, name + "/embedded");
  std::vector<TensorRef> parts = b.Split(embedded, 1, steps, name + "/steps");
  for (size_t step = 0; step < parts.size(); ++step) {
    parts[step] = b.Reshape(parts[step], {batch, width}, absl::StrCat(name, "/step", step));
  }
  return parts;
}

TensorRef StackSteps(ModelBuilder& b, const std::vector<TensorRef>& steps,
                     const std::string& name) {
  std::vector<TensorRef> rows;
  for (size_t step = 0; step < steps.size(); ++step) {
    rows.push_back(b.Reshape(steps[step], {b.Size(steps[step], 0), 1, b.Size(steps[step], 1)},
                             absl::StrCat(name, "/row", step)));
  }
  return b.Concat(std::move(rows), 1, name);
}

}  // namespace isomer
