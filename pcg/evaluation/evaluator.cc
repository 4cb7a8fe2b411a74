#include "pcg/evaluation/evaluator.h"

#include <type_traits>

#include "pcg/evaluation/loop_nest.h"
#include "pcg/evaluation/partial_field.h"
#include "pcg/evaluation/traced_number.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Runs one statement.
template <typename T>
absl::StatusOr<Array<T>> RunStatement(const Declaration& declaration, const Statement& statement,
                                      const IterationBox& box,
                                      const std::vector<const Array<T>*>& tensors) {
  LoopNest<T> nest(declaration, statement, box, tensors);
  Array<T> result = nest.MakeResult();
  nest.ForEachIndex([&](int64_t offset) {
    T accumulated = T();
    bool first = true;
    nest.ForEachReduced([&] {
      if (!nest.Run()) return;
      accumulated = first ? nest.value()
                    : statement.reduction == Reduction::kMax
                        ? Number<T>::Max(accumulated, nest.value())
                    : statement.reduction == Reduction::kProduct ? accumulated * nest.value()
                                                                 : accumulated + nest.value();
      first = false;
    });
    result.data[offset] = accumulated;
  });
  ISOMER_RETURN_IF_ERROR(nest.status());
  return result;
}

// Operands and intermediates of a call; the intermediates are owned.
template <typename T>
struct Tensors {
  std::vector<Array<T>> intermediates;
  std::vector<const Array<T>*> all;
};

template <typename T>
absl::StatusOr<Tensors<T>> RunStatements(const Declaration& declaration, const IterationBox& box,
                                         absl::Span<const Array<T>* const> operands) {
  Tensors<T> tensors;
  tensors.intermediates.reserve(declaration.statements.size());
  tensors.all.assign(operands.begin(), operands.end());
  for (const Statement& statement : declaration.statements) {
    ISOMER_ASSIGN_OR_RETURN(Array<T> result,
                            RunStatement<T>(declaration, statement, box, tensors.all));
    tensors.intermediates.push_back(std::move(result));
    tensors.all.push_back(&tensors.intermediates.back());
  }
  return tensors;
}

// For each factor of a product, the product of the others.
template <typename T>
std::vector<T> Cofactors(LoopNest<T>* nest) {
  std::vector<T> factors, cofactors;
  nest->ForEachReduced([&] {
    if (nest->Run()) factors.push_back(nest->value());
  });
  T product = Number<T>::FromDouble(1);
  for (const T& factor : factors) {
    cofactors.push_back(product);
    product = product * factor;
  }
  product = Number<T>::FromDouble(1);
  for (size_t i = factors.size(); i-- > 0;) {
    cofactors[i] = cofactors[i] * product;
    product = product * factors[i];
  }
  return cofactors;
}

}  // namespace

IterationBox FullBox(const Declaration& declaration) {
  IterationBox box;
  for (const IterationDim& dim : declaration.dims) {
    box.begin.push_back(0);
    box.end.push_back(dim.size.value());
  }
  return box;
}

IterationBox TaskBox(const Declaration& declaration, absl::Span<const int64_t> degrees,
                     absl::Span<const int64_t> coordinates) {
  IterationBox box;
  for (size_t v = 0; v < declaration.dims.size(); ++v) {
    const int64_t local = declaration.dims[v].size.value() / degrees[v];
    box.begin.push_back(coordinates[v] * local);
    box.end.push_back((coordinates[v] + 1) * local);
  }
  return box;
}

template <typename T>
absl::StatusOr<std::vector<Array<T>>> Evaluate(const Declaration& declaration,
                                               const IterationBox& box,
                                               absl::Span<const Array<T>* const> operands) {
  ISOMER_ASSIGN_OR_RETURN(Tensors<T> tensors, RunStatements<T>(declaration, box, operands));
  std::vector<Array<T>> outputs(declaration.outputs.size());
  for (size_t s = 0; s < declaration.statements.size(); ++s) {
    const int output = declaration.statements[s].output;
    if (output >= 0) outputs[output] = std::move(tensors.intermediates[s]);
  }
  return outputs;
}

template <typename T>
absl::Status EvaluateGradient(const Declaration& declaration, const IterationBox& box,
                              absl::Span<const Array<T>* const> operands,
                              absl::Span<const Array<T>* const> output_gradients,
                              absl::Span<Array<T>* const> operand_gradients) {
  ISOMER_ASSIGN_OR_RETURN(const Tensors<T> tensors, RunStatements<T>(declaration, box, operands));
  std::vector<Array<T>> owned;
  owned.reserve(declaration.statements.size());
  std::vector<Array<T>*> gradients(operand_gradients.begin(), operand_gradients.end());
  for (const Array<T>& value : tensors.intermediates) {
    Array<T> zero(value.shape);
    zero.origin = value.origin;
    owned.push_back(std::move(zero));
    gradients.push_back(&owned.back());
  }
  const int n = declaration.num_operands();
  for (int s = static_cast<int>(declaration.statements.size()) - 1; s >= 0; --s) {
    const Statement& statement = declaration.statements[s];
    const Array<T>& seed =
        statement.output >= 0 ? *output_gradients[statement.output] : *gradients[n + s];
    const Array<T>& result = tensors.intermediates[s];
    LoopNest<T> nest(declaration, statement, box, tensors.all);
    nest.ForEachIndex([&](int64_t offset) {
      const T g = seed.data[offset];
      if constexpr (std::is_same_v<T, PrimeField>) {
        if (g == T()) return;  // In a field all is finite.
      }
      bool taken = false;  // A maximum passes its gradient to the first that attains it.
      const std::vector<T> cofactors =
          statement.reduction == Reduction::kProduct ? Cofactors(&nest) : std::vector<T>();
      size_t factor = 0;
      nest.ForEachReduced([&] {
        if (!nest.Run()) return;
        if (statement.reduction == Reduction::kProduct) {
          nest.RunBackward(g * cofactors[factor++], gradients);
          return;
        }
        if (statement.reduction == Reduction::kMax) {
          if (taken || !(nest.value() == result.data[offset])) return;
          taken = true;
        }
        nest.RunBackward(g, gradients);
      });
    });
  }
  return absl::OkStatus();
}

#define ISOMER_INSTANTIATE(T)                                                      \
  template absl::StatusOr<std::vector<Array<T>>> Evaluate<T>(                      \
      const Declaration&, const IterationBox&, absl::Span<const Array<T>* const>); \
  template absl::Status EvaluateGradient<T>(                                       \
      const Declaration&, const IterationBox&, absl::Span<const Array<T>* const>,  \
      absl::Span<const Array<T>* const>, absl::Span<Array<T>* const>);
ISOMER_INSTANTIATE(double)
ISOMER_INSTANTIATE(float)
ISOMER_INSTANTIATE(PrimeField)
#undef ISOMER_INSTANTIATE
template absl::StatusOr<std::vector<Array<Traced>>> Evaluate<Traced>(
    const Declaration&, const IterationBox&, absl::Span<const Array<Traced>* const>);
template absl::StatusOr<std::vector<Array<PartialField>>> Evaluate<PartialField>(
    const Declaration&, const IterationBox&, absl::Span<const Array<PartialField>* const>);

}  // namespace isomer
