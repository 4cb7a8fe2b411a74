// Cells of recurrent networks: LstmCell, GruCell. Gates lie side by side: [.., gate, h].
#include <array>
#include <cmath>
#include <vector>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/vector_math.h"
#include "runtime/device/workspace.h"

namespace isomer {
namespace {

// Calls f(row, h) for every element of the state.
template <typename Function>
void ForEachUnit(int64_t rows, int64_t hidden, Function f) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t h = 0; h < hidden; ++h) f(row, h);
  }
}

// One unit of an LSTM.
struct LstmUnit {
  float i, f, g, o, c, next, tanh_next;

  ISOMER_IN_LOOP LstmUnit(const float* gates, int64_t hidden, float state)
      : i(Logistic(gates[0])),
        f(Logistic(gates[hidden])),
        g(Tanh(gates[2 * hidden])),
        o(Logistic(gates[3 * hidden])),
        c(state),
        next(f * c + i * g),
        tanh_next(Tanh(next)) {}

  // Given the gradients of h' and c': those of the four gates, and of c.
  ISOMER_IN_LOOP std::array<float, 5> Gradient(float dh, float dc) const {
    const float dnext = dc + dh * o * (1 - tanh_next * tanh_next);
    return {dnext * g * i * (1 - i), dnext * c * f * (1 - f), dnext * i * (1 - g * g),
            dh * tanh_next * o * (1 - o), dnext * f};
  }
};

}  // namespace

// c' = s(f) c + s(i) tanh(g);  h' = s(o) tanh(c'), with the logistic function s. Of one row.
ISOMER_VECTORISED void LstmRow(const float* gates, const float* state, int64_t hidden, float* out,
                               float* next) {
#pragma GCC ivdep
  for (int64_t h = 0; h < hidden; ++h) {
    const LstmUnit unit(gates + h, hidden, state[h]);
    out[h] = unit.o * unit.tanh_next;
    next[h] = unit.next;
  }
}

ISOMER_VECTORISED void LstmRowGradient(const float* gates, const float* state, const float* dout,
                                       const float* dnext, int64_t hidden, float* dgates,
                                       float* dstate) {
#pragma GCC ivdep
  for (int64_t h = 0; h < hidden; ++h) {
    const LstmUnit unit(gates + h, hidden, state[h]);
    const auto [di, df, dg, d_o, dc] = unit.Gradient(dout[h], dnext[h]);
    dgates[h] = di;
    dgates[hidden + h] = df;
    dgates[2 * hidden + h] = dg;
    dgates[3 * hidden + h] = d_o;
    dstate[h] = dc;
  }
}

KernelFunction LstmCellKernel(const KernelCall& call) {
  const int64_t hidden = call.operands[1].shape.back();
  const int64_t rows = call.operands[1].Volume() / hidden;
  if (!call.gradient) {
    return [=](Reads reads, Writes writes) {
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row * hidden;
        LstmRow(Floats(reads[0]) + 4 * at, Floats(reads[1]) + at, hidden, Floats(writes[0]) + at,
                Floats(writes[1]) + at);
      }
      return absl::OkStatus();
    };
  }
  // Of gradients that nobody wants, one row.
  WorkspacePlan plan;
  const auto gates = plan.Add<float>(call.wanted[0] ? 0 : 4 * hidden);
  const auto state = plan.Add<float>(call.wanted[1] ? 0 : hidden);
  return {plan.bytes(), [=](Reads reads, Writes writes, char* workspace) {
            for (int64_t row = 0; row < rows; ++row) {
              const int64_t at = row * hidden;
              LstmRowGradient(
                  Floats(reads[0]) + 4 * at, Floats(reads[1]) + at, Floats(reads[4]) + at,
                  Floats(reads[5]) + at, hidden,
                  writes[0] == nullptr ? gates.In(workspace) : Floats(writes[0]) + 4 * at,
                  writes[1] == nullptr ? state.In(workspace) : Floats(writes[1]) + at);
            }
            return absl::OkStatus();
          }};
}

namespace {

// One unit of a GRU; y_n is the hidden projection that the reset gate scales.
struct GruUnit {
  float r, z, y_n, n, h;

  GruUnit(const float* x, const float* y, int64_t hidden, float state)
      : r(Logistic(x[0] + y[0])),
        z(Logistic(x[hidden] + y[hidden])),
        y_n(y[2 * hidden]),
        n(Tanh(x[2 * hidden] + r * y_n)),
        h(state) {}

  // Given the gradient of h': those of the three gates' sums and of h.
  std::array<float, 4> Gradient(float g) const {
    const float dn = g * (1 - z) * (1 - n * n);
    return {dn * y_n * r * (1 - r), g * (h - n) * z * (1 - z), dn, g * z};
  }
};

}  // namespace

// r = s(x_r + y_r);  z = s(x_z + y_z);  n = tanh(x_n + r y_n);  h' = (1 - z) n + z h
KernelFunction GruCellKernel(const KernelCall& call) {
  const int64_t hidden = call.operands[2].shape.back();
  const int64_t rows = call.operands[2].Volume() / hidden;
  return [=, gradient = call.gradient](Reads reads, Writes writes) {
    ForEachUnit(rows, hidden, [&](int64_t row, int64_t h) {
      const int64_t at = row * hidden + h, gate = row * 3 * hidden + h;
      const GruUnit unit(Floats(reads[0]) + gate, Floats(reads[1]) + gate, hidden,
                         Floats(reads[2])[at]);
      if (!gradient) {
        Floats(writes[0])[at] = (1 - unit.z) * unit.n + unit.z * unit.h;
        return;
      }
      const auto d = unit.Gradient(Floats(reads[4])[at]);
      for (int k = 0; k < 3; ++k) {
        if (writes[0] != nullptr) Floats(writes[0])[gate + k * hidden] = d[k];
        const float share = k == 2 ? d[k] * unit.r : d[k];
        if (writes[1] != nullptr) Floats(writes[1])[gate + k * hidden] = share;
      }
      if (writes[2] != nullptr) Floats(writes[2])[at] = d[3];
    });
    return absl::OkStatus();
  };
}

}  // namespace isomer
