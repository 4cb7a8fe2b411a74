// RNN, GRU and LSTM, unrolled over time.
//
// The projections of all steps are one product before the first step. Each step is then a product
// with the hidden state and a cell: LstmCell and GruCell with the default activations, otherwise
// the formulas of the standard. Gates in ONNX are ordered i, o, f, c (LSTM) and z, r, h (GRU).
//
// Weights have a matrix per gate, so that products can be split along the hidden dim, as the cells
// can: in one matrix of all gates a part of the columns would be of some gates alone.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "models/onnx/import/formulas.h"
#include "models/onnx/import/operators.h"

namespace isomer {
namespace {

struct Activation {
  std::string name;  // lower case
  double alpha = 0, beta = 0;
};

// One direction of a layer: its weights, as the steps use them.
struct Direction {
  bool is_reverse = false;
  std::vector<Activation> activations;
  TensorRef input_weight;   // [gates, input, hidden]
  TensorRef hidden_weight;  // [gates, hidden, hidden]
  TensorRef input_bias;     // [gates, 1, hidden]; node -1 without biases
  TensorRef hidden_bias;
  TensorRef peephole;  // LSTM: [3 * hidden] in order i, o, f; node -1 without
  TensorRef h, c;      // [batch, hidden], the state
};

class Recurrent {
 public:
  explicit Recurrent(NodeImporter& node)
      : node_(node),
        is_lstm_(node.op() == "LSTM"),
        is_gru_(node.op() == "GRU"),
        gates_(is_lstm_  ? 4
               : is_gru_ ? 3
                         : 1) {}

  void Import();

 private:
  bool ReadSizes();
  void ReadAttributes();
  Direction ReadDirection(int64_t d);
  TensorRef PartOf(int input, int64_t d);
  TensorRef Reordered(TensorRef weight, const std::vector<int>& order);
  void ReadBiases(int64_t d, Direction* direction);
  TensorRef InitialState(int input, int64_t d);
  bool HasDefaultCell(const Direction& direction) const;

  TensorRef Activate(const Activation& activation, TensorRef x);
  TensorRef Biased(TensorRef x, TensorRef bias) {
    return bias.node.value < 0 ? x : Apply(node_, OpKind::kAdd, x, bias);
  }
  TensorRef Gated(TensorRef a, TensorRef b) { return Apply(node_, OpKind::kMul, a, b); }
  // Rows [rows, n] times a weight [gates, n, hidden]: [gates, rows, hidden].
  TensorRef OfAllGates(TensorRef rows, TensorRef weight);
  // One gate of [gates, rows, hidden], without that dim.
  std::vector<TensorRef> GatesOf(TensorRef all);
  // The state after one step whose projected input (with bias) is `x` [gates, batch, hidden].
  void Step(TensorRef x, Direction* direction);
  void LstmStep(TensorRef x, Direction* direction);
  void GruStep(TensorRef x, Direction* direction);
  // A row for each sequence: whether step `t` is one of its own.
  TensorRef IsInside(int64_t t);
  void Run(int64_t d, Direction* direction);

  NodeImporter& node_;
  const bool is_lstm_, is_gru_;
  const int64_t gates_;
  bool batch_first_ = false, linear_before_reset_ = false, input_forget_ = false;
  double clip_ = 0;
  std::vector<std::string> directions_;
  std::vector<Activation> activations_;
  int64_t steps_ = 0, batch_ = 0, hidden_ = 0, num_directions_ = 1;
  TensorRef x_, lengths_;
  std::vector<std::vector<TensorRef>> outputs_;  // [direction][step], each [batch, hidden]
};

void Recurrent::ReadAttributes() {
  const std::string direction = node_.attributes.String("direction", "forward");
  if (!node_.Expect(
          direction == "forward" || direction == "reverse" || direction == "bidirectional",
          "direction ", QuotedName(direction), " is not known")) {
    return;
  }
  num_directions_ = direction == "bidirectional" ? 2 : 1;
  directions_.assign(num_directions_, direction);
  if (num_directions_ == 2) directions_ = {"forward", "reverse"};
  clip_ = node_.attributes.Float("clip", 0);
  batch_first_ = node_.attributes.Int("layout", 0) == 1;
  linear_before_reset_ = node_.attributes.Int("linear_before_reset", 0) != 0;
  input_forget_ = node_.attributes.Int("input_forget", 0) != 0;
  const std::vector<std::string> standard =
      is_lstm_  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
      : is_gru_ ? std::vector<std::string>{"Sigmoid", "Tanh"}
                : std::vector<std::string>{"Tanh"};
  std::vector<std::string> names;
  for (int64_t d = 0; d < num_directions_; ++d) {
    names.insert(names.end(), standard.begin(), standard.end());
  }
  names = node_.attributes.Strings("activations", names);
  const std::vector<double> alpha = node_.attributes.Floats("activation_alpha", {});
  const std::vector<double> beta = node_.attributes.Floats("activation_beta", {});
  if (!node_.Expect(names.size() == standard.size() * num_directions_, names.size(),
                    " activations, not ", standard.size() * num_directions_)) {
    return;
  }
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    Activation activation = {absl::AsciiStrToLower(name)};
    const std::string& key = activation.name;
    // Those that have parameters take them from the lists in turn.
    const bool has_beta = key == "hardsigmoid" || key == "scaledtanh" || key == "affine";
    const bool has_alpha =
        has_beta || key == "leakyrelu" || key == "elu" || key == "thresholdedrelu";
    activation.alpha = key == "leakyrelu" ? 0.01f : key == "hardsigmoid" ? 0.2f : 1;
    activation.beta = key == "hardsigmoid" ? 0.5 : key == "affine" ? 0 : 1;
    if (has_alpha && next_alpha < alpha.size()) activation.alpha = alpha[next_alpha++];
    if (has_beta && next_beta < beta.size()) activation.beta = beta[next_beta++];
    activations_.push_back(std::move(activation));
  }
}

bool Recurrent::ReadSizes() {
  x_ = node_.Operand(0);
  const TensorRef r = node_.Operand(2);
  if (!node_.ok()) return false;
  if (!node_.Expect(node_.Rank(x_) == 3 && node_.Rank(r) == 3, "X and R need rank 3")) return false;
  if (batch_first_) x_ = Transposed(node_, x_, {1, 0, 2});
  if (!node_.ok()) return false;
  const Sizes x = node_.Sizes(x_);
  steps_ = x[0], batch_ = x[1], hidden_ = node_.Sizes(r)[2];
  constexpr int64_t kMostSteps = 4096;
  if (steps_ > kMostSteps) node_.Refuse(steps_, " steps to unroll; at most ", kMostSteps);
  node_.Expect(node_.attributes.Int("hidden_size", hidden_) == hidden_,
               "hidden_size differs from the last dim of R");
  const Sizes w_expected = {num_directions_, gates_ * hidden_, x[2]};
  const Sizes r_expected = {num_directions_, gates_ * hidden_, hidden_};
  node_.Expect(
      !node_.ok() || (node_.Sizes(node_.Operand(1)) == w_expected && node_.Sizes(r) == r_expected),
      "W or R have not ", num_directions_, " directions of ", gates_, " gates of ", hidden_);
  if (!node_.ok() || !node_.HasInput(4)) return node_.ok();
  const OnnxTensor* const lengths = node_.Constant(4);
  const bool are_full =
      lengths != nullptr && std::count(lengths->ints.begin(), lengths->ints.end(), steps_) ==
                                static_cast<int64_t>(lengths->ints.size());
  if (!are_full) lengths_ = node_.Operand(4);
  return node_.ok();
}

// Row d of an operand [directions, ..], without that dim.
TensorRef Recurrent::PartOf(int input, int64_t d) {
  const TensorRef all = node_.Operand(input);
  if (!node_.ok()) return {};
  Sizes sizes = node_.Sizes(all);
  if (!node_.Expect(!sizes.empty() && sizes[0] == num_directions_, "input ", input, " has not ",
                    num_directions_, " directions")) {
    return {};
  }
  const TensorRef row = SplitInto(node_, all, 0, Sizes(num_directions_, 1))[d];
  sizes.erase(sizes.begin());
  return Reshaped(node_, row, std::move(sizes));
}

// The gates, dim 0, in another order.
TensorRef Recurrent::Reordered(TensorRef weight, const std::vector<int>& order) {
  if (!node_.ok()) return {};
  const std::vector<TensorRef> parts = SplitInto(node_, weight, 0, Sizes(gates_, 1));
  std::vector<TensorRef> moved;
  for (int gate : order) moved.push_back(parts[gate]);
  return Concatenated(node_, std::move(moved), 0);
}

TensorRef Recurrent::OfAllGates(TensorRef rows, TensorRef weight) {
  if (!node_.ok()) return {};
  const Sizes sizes = node_.Sizes(rows);
  // Of equal rank: a product that rules split.
  return Product(node_, Reshaped(node_, rows, {1, sizes[0], sizes[1]}), weight);
}

std::vector<TensorRef> Recurrent::GatesOf(TensorRef all) {
  if (!node_.ok()) return std::vector<TensorRef>(gates_);
  const Sizes sizes = node_.Sizes(all);
  std::vector<TensorRef> gates = SplitInto(node_, all, 0, Sizes(gates_, 1));
  for (TensorRef& gate : gates) gate = Reshaped(node_, gate, {sizes[1], sizes[2]});
  return gates;
}

TensorRef Recurrent::InitialState(int input, int64_t d) {
  if (!node_.HasInput(input)) return Filled(node_, 0, {batch_, hidden_}, x_);
  if (!batch_first_) return PartOf(input, d);
  const TensorRef all = node_.Operand(input);  // [batch, directions, hidden]
  if (!node_.ok()) return {};
  return Reshaped(node_, SplitInto(node_, all, 1, Sizes(num_directions_, 1))[d], {batch_, hidden_});
}

bool Recurrent::HasDefaultCell(const Direction& direction) const {
  const std::vector<Activation>& f = direction.activations;
  if (clip_ != 0 || f[0].name != "sigmoid" || f[1].name != "tanh") return false;
  if (is_gru_) return linear_before_reset_;
  return is_lstm_ && f[2].name == "tanh" && direction.peephole.node.value < 0 && !input_forget_;
}

void Recurrent::ReadBiases(int64_t d, Direction* direction) {
  if (!node_.HasInput(3)) return;
  const TensorRef biases = PartOf(3, d);
  if (!node_.ok()) return;
  const std::vector<TensorRef> parts = SplitInto(node_, biases, 0, Sizes(2, gates_ * hidden_));
  direction->input_bias = parts[0];
  direction->hidden_bias = parts[1];
}

Direction Recurrent::ReadDirection(int64_t d) {
  Direction direction;
  direction.is_reverse = directions_[d] == "reverse";
  const size_t functions = activations_.size() / num_directions_;
  direction.activations.assign(activations_.begin() + d * functions,
                               activations_.begin() + (d + 1) * functions);
  if (is_lstm_ && node_.HasInput(7)) direction.peephole = PartOf(7, d);
  direction.input_weight = PartOf(1, d);
  direction.hidden_weight = PartOf(2, d);
  ReadBiases(d, &direction);
  direction.h = InitialState(5, d);
  if (is_lstm_) direction.c = InitialState(6, d);
  const std::vector<TensorRef*> weights = {&direction.input_weight, &direction.hidden_weight,
                                           &direction.input_bias, &direction.hidden_bias};
  for (TensorRef* weight : weights) {
    if (weight->node.value < 0 || !node_.ok()) continue;
    const Sizes sizes = node_.Sizes(*weight);
    *weight =
        Reshaped(node_, *weight,
                 sizes.size() == 2 ? Sizes{gates_, hidden_, sizes[1]} : Sizes{gates_, 1, hidden_});
  }
  if (node_.ok() && HasDefaultCell(direction)) {  // i, f, c, o and r, z, h
    const std::vector<int> order =
        is_lstm_ ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{1, 0, 2};
    for (TensorRef* weight : weights) {
      if (weight->node.value >= 0) *weight = Reordered(*weight, order);
    }
  }
  if (is_lstm_ && direction.input_bias.node.value >= 0) {
    // Both are added to all gates, and one of them need not be in every step.
    direction.input_bias = Biased(direction.input_bias, direction.hidden_bias);
    direction.hidden_bias = {};
  }
  direction.input_weight = Transposed(node_, direction.input_weight, {0, 2, 1});
  direction.hidden_weight = Transposed(node_, direction.hidden_weight, {0, 2, 1});
  return direction;
}

TensorRef Recurrent::Activate(const Activation& activation, TensorRef x) {
  if (clip_ != 0) x = Clipped(node_, x, -clip_, clip_);
  const std::string& name = activation.name;
  if (name == "sigmoid") return Apply(node_, OpKind::kSigmoid, x);
  if (name == "tanh") return Apply(node_, OpKind::kTanh, x);
  if (name == "relu") return Apply(node_, OpKind::kRelu, x);
  if (name == "softplus") return Apply(node_, OpKind::kSoftplus, x);
  if (name == "elu") return node_.Call({OpKind::kElu, {{"alpha", activation.alpha}}}, {x}, "/elu");
  if (name == "leakyrelu") {
    return node_.Call({OpKind::kLeakyRelu, {{"alpha", activation.alpha}}}, {x}, "/leaky_relu");
  }
  if (name == "hardsigmoid") {
    return node_.Call(
        {OpKind::kHardSigmoid, {{"alpha", activation.alpha}, {"beta", activation.beta}}}, {x},
        "/hard_sigmoid");
  }
  if (name == "affine") {
    return Apply(node_, OpKind::kAdd, Scaled(node_, x, activation.alpha), activation.beta);
  }
  if (name == "scaledtanh") {
    const TensorRef inner = Apply(node_, OpKind::kTanh, Scaled(node_, x, activation.beta));
    return Scaled(node_, inner, activation.alpha);
  }
  node_.Refuse("the activation ", QuotedName(name));
  return {};
}

void Recurrent::LstmStep(TensorRef x, Direction* direction) {
  const TensorRef gates =
      Apply(node_, OpKind::kAdd, x, OfAllGates(direction->h, direction->hidden_weight));
  if (HasDefaultCell(*direction)) {
    const TensorRef rows = Transposed(node_, gates, {1, 0, 2});
    const TensorRef cell = node_.Call(OpKind::kLstmCell, {rows, direction->c}, "/cell");
    direction->h = cell;
    direction->c = {cell.node, 1};
    return;
  }
  const std::vector<TensorRef> g = GatesOf(gates);
  std::vector<TensorRef> p(3);
  if (direction->peephole.node.value >= 0) {
    p = SplitInto(node_, direction->peephole, 0, Sizes(3, hidden_));
  }
  auto peeping = [&](TensorRef gate, TensorRef weight, TensorRef cell) {
    return weight.node.value < 0 ? gate : Apply(node_, OpKind::kAdd, gate, Gated(cell, weight));
  };
  const std::vector<Activation>& f = direction->activations;
  const TensorRef i = Activate(f[0], peeping(g[0], p[0], direction->c));
  const TensorRef forget = input_forget_ && node_.ok()
                               ? Apply(node_, OpKind::kSub, Number(node_, 1, i), i)
                               : Activate(f[0], peeping(g[2], p[2], direction->c));
  const TensorRef kept = Gated(forget, direction->c), candidate = Gated(i, Activate(f[1], g[3]));
  direction->c = Apply(node_, OpKind::kAdd, kept, candidate);
  const TensorRef o = Activate(f[0], peeping(g[1], p[1], direction->c));
  // The clip is for what enters the gates; the cell leaves through its function as it is.
  const double clip = std::exchange(clip_, 0);
  direction->h = Gated(o, Activate(f[2], direction->c));
  clip_ = clip;
}

void Recurrent::GruStep(TensorRef x, Direction* direction) {
  if (HasDefaultCell(*direction)) {
    const TensorRef y =
        Biased(OfAllGates(direction->h, direction->hidden_weight), direction->hidden_bias);
    direction->h = node_.Call(
        OpKind::kGruCell,
        {Transposed(node_, x, {1, 0, 2}), Transposed(node_, y, {1, 0, 2}), direction->h}, "/cell");
    return;
  }
  const std::vector<Activation>& f = direction->activations;
  const std::vector<TensorRef> in = GatesOf(x), weight = GatesOf(direction->hidden_weight);
  std::vector<TensorRef> bias(3);
  if (direction->hidden_bias.node.value >= 0) bias = GatesOf(direction->hidden_bias);
  auto of_state = [&](TensorRef state, int gate) {
    return Biased(Product(node_, state, weight[gate]), bias[gate]);
  };
  const TensorRef h = direction->h;
  const TensorRef z = Activate(f[0], Apply(node_, OpKind::kAdd, in[0], of_state(h, 0)));
  const TensorRef r = Activate(f[0], Apply(node_, OpKind::kAdd, in[1], of_state(h, 1)));
  const TensorRef reset =
      linear_before_reset_ ? Gated(r, of_state(h, 2)) : of_state(Gated(r, h), 2);
  const TensorRef n = Activate(f[1], Apply(node_, OpKind::kAdd, in[2], reset));
  if (!node_.ok()) return;
  const TensorRef rest = Apply(node_, OpKind::kSub, Number(node_, 1, z), z);
  direction->h = Apply(node_, OpKind::kAdd, Gated(rest, n), Gated(z, h));
}

void Recurrent::Step(TensorRef x, Direction* direction) {
  if (is_lstm_) return LstmStep(x, direction);
  if (is_gru_) return GruStep(x, direction);
  const TensorRef recurrent =
      Biased(OfAllGates(direction->h, direction->hidden_weight), direction->hidden_bias);
  const TensorRef gate = Apply(node_, OpKind::kAdd, x, recurrent);
  direction->h = Activate(direction->activations[0], GatesOf(gate)[0]);
}

TensorRef Recurrent::IsInside(int64_t t) {
  const TensorRef column = Reshaped(node_, lengths_, {batch_, 1});
  return node_.ok()
             ? Apply(node_, OpKind::kLess, Number(node_, static_cast<double>(t), column), column)
             : TensorRef();
}

// A sequence that is shorter keeps its state outside, and its output there is 0. Backwards it
// begins where it ends, for until then it keeps the initial state.
void Recurrent::Run(int64_t d, Direction* direction) {
  const int64_t features = node_.Sizes(x_)[2];
  const TensorRef rows = Reshaped(node_, x_, {steps_ * batch_, features});
  const TensorRef projected =
      Biased(OfAllGates(rows, direction->input_weight), direction->input_bias);
  const std::vector<TensorRef> inputs = SplitInto(node_, projected, 1, Sizes(steps_, batch_));
  outputs_[d].resize(steps_);
  for (int64_t step = 0; step < steps_ && node_.ok(); ++step) {
    const int64_t t = direction->is_reverse ? steps_ - 1 - step : step;
    const TensorRef h = direction->h, c = direction->c;
    Step(inputs[t], direction);
    outputs_[d][t] = direction->h;
    if (lengths_.node.value < 0 || !node_.ok()) continue;
    const TensorRef inside = IsInside(t);
    outputs_[d][t] = Where(node_, inside, direction->h, Number(node_, 0, h));
    direction->h = Where(node_, inside, direction->h, h);
    if (is_lstm_) direction->c = Where(node_, inside, direction->c, c);
  }
}

void Recurrent::Import() {
  ReadAttributes();
  if (!node_.ok() || !ReadSizes()) return;
  outputs_.resize(num_directions_);
  std::vector<TensorRef> last_h, last_c, rows;
  const int direction_dim = batch_first_ ? 1 : 0;
  const Sizes state = batch_first_ ? Sizes{batch_, 1, hidden_} : Sizes{1, batch_, hidden_};
  for (int64_t d = 0; d < num_directions_ && node_.ok(); ++d) {
    Direction direction = ReadDirection(d);
    Run(d, &direction);
    last_h.push_back(Reshaped(node_, direction.h, state));
    if (is_lstm_) last_c.push_back(Reshaped(node_, direction.c, state));
  }
  if (!node_.ok()) return;
  if (IsWanted(node_, 0)) {
    for (const std::vector<TensorRef>& of_direction : outputs_) {
      std::vector<TensorRef> steps;
      for (TensorRef h : of_direction) steps.push_back(Reshaped(node_, h, {1, 1, batch_, hidden_}));
      rows.push_back(Concatenated(node_, std::move(steps), 0));
    }
    const TensorRef y = Concatenated(node_, std::move(rows), 1);  // [steps, directions, batch, h]
    DefineAs(node_, 0, batch_first_ ? Transposed(node_, y, {2, 0, 1, 3}) : y);
  }
  DefineAs(node_, 1, Concatenated(node_, std::move(last_h), direction_dim));
  if (is_lstm_) DefineAs(node_, 2, Concatenated(node_, std::move(last_c), direction_dim));
}

}  // namespace

void ImportRecurrent(NodeImporter& node) { Recurrent(node).Import(); }

}  // namespace isomer
