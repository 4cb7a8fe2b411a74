#ifndef ISOMER_TESTS_OPTIMIZER_EXAMPLE_MODELS_H_
#define ISOMER_TESTS_OPTIMIZER_EXAMPLE_MODELS_H_

#include <cstdint>

#include "pcg/ir/plan.h"

namespace isomer {

// Residual blocks x + relu(norm(x) W1) W2 with a mean squared error: pieces that repeat, products
// that pair up, weights to synchronise.
Model ResidualModel(int blocks, int64_t batch, int64_t hidden, int64_t inner);

// Three products of one operand, added, and an mse: algebra to find.
Model ThreeProducts(int64_t batch, int64_t hidden);

// relu(x), then two branches of `length` products each, their sum, and an mse.
Model TwoBranches(int length, int64_t batch, int64_t hidden);

// A recurrent network, unrolled: two weights that all steps share, an mse at the last.
Model Recurrent(int steps, int64_t batch, int64_t hidden);

// A convolution, then two of its result, their sum, and an mse: halos that two calls need.
Model Convolutions(int64_t batch, int64_t side);
// Views of what is computed, indices that are fed and that are computed, what depends on constants.
Model Arrangements();

}  // namespace isomer

#endif  // ISOMER_TESTS_OPTIMIZER_EXAMPLE_MODELS_H_
