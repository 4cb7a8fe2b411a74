#include <array>

#include "absl/strings/str_cat.h"
#include "models/zoo/blocks/model_builder.h"
#include "models/zoo/models.h"

namespace isomer {
namespace {

// The recurrent cell that architecture search found, unrolled: eight sums of two products, combined
// in a tree of element functions.
class NasrnnNetwork {
 public:
  explicit NasrnnNetwork(const ZooArguments& arguments)
      : hidden_(arguments.at("hidden")),
        steps_(arguments.at("steps")),
        batch_(arguments.at("batch")),
        shared_(arguments.at("shared") == 1) {}

  absl::StatusOr<Model> Build() {
    TensorRef state = b_.Weight("initial_state", {1, hidden_});
    for (int64_t step = 0; step < steps_; ++step) {
      const TensorRef x = b_.Input(absl::StrCat("x", step), {batch_, hidden_});
      if (step == 0 || !shared_) NewWeights(shared_ ? "cell" : absl::StrCat("step", step));
      state = Cell(x, state, absl::StrCat("step", step));
    }
    b_.Output("state", state);
    return b_.Build();
  }

 private:
  void NewWeights(const std::string& name) {
    for (int i = 0; i < 8; ++i) {
      of_input_[i] = b_.Weight(absl::StrCat(name, "/input", i, ".weight"), {hidden_, hidden_});
      of_state_[i] = b_.Weight(absl::StrCat(name, "/state", i, ".weight"), {hidden_, hidden_});
    }
  }

  TensorRef Cell(TensorRef x, TensorRef state, const std::string& name) {
    std::array<TensorRef, 8> t;
    for (int i = 0; i < 8; ++i) {
      const std::string part = absl::StrCat(name, "/gate", i);
      t[i] = b_.Add(b_.Call(OpKind::kMatMul, {x, of_input_[i]}, part + "/input"),
                    b_.Call(OpKind::kMatMul, {state, of_state_[i]}, part + "/state"), part);
    }
    int number = 0;
    const auto call = [&](OpKind kind, std::vector<TensorRef> operands) {
      return b_.Call(kind, std::move(operands), absl::StrCat(name, "/", OpName(kind), number++));
    };
    const auto relu = [&](TensorRef a) { return call(OpKind::kRelu, {a}); };
    const auto sigmoid = [&](TensorRef a) { return call(OpKind::kSigmoid, {a}); };
    const auto tanh = [&](TensorRef a) { return call(OpKind::kTanh, {a}); };
    const TensorRef a = call(OpKind::kAdd, {relu(t[0]), sigmoid(t[3])});
    const TensorRef b = call(OpKind::kAdd, {sigmoid(t[1]), tanh(t[2])});
    const TensorRef c = call(OpKind::kMul, {sigmoid(t[4]), tanh(t[5])});
    const TensorRef d = call(OpKind::kMul, {sigmoid(t[6]), relu(t[7])});
    const TensorRef e = call(OpKind::kAdd, {sigmoid(b), tanh(c)});
    const TensorRef f = call(OpKind::kMul, {tanh(a), tanh(d)});
    return tanh(call(OpKind::kMul, {tanh(e), tanh(f)}));
  }

  const int64_t hidden_, steps_, batch_;
  const bool shared_;
  ModelBuilder b_;
  std::array<TensorRef, 8> of_input_, of_state_;
};

absl::StatusOr<Model> BuildNasrnn(const ZooArguments& arguments) {
  return NasrnnNetwork(arguments).Build();
}

}  // namespace

ZooModel Nasrnn() {
  return {.name = "nasrnn",
          .description = "the recurrent cell of architecture search, unrolled; the last state",
          .parameters = {ZooCount("steps", 5),
                         {.name = "hidden", .value = 512},
                         ZooSwitch("shared", false),
                         {.name = "batch", .value = 1}},
          .build = BuildNasrnn,
          .small = "steps=2&hidden=16&batch=16",
          .source = "Zoph and Le, 2017, figure 8; TENSAT, section 6; TASO's examples/nasrnn.py",
          .notes =
              "every step has weights of its own, as in TASO's and TENSAT's code; `shared=1` is "
              "a recurrent network"};
}

}  // namespace isomer
