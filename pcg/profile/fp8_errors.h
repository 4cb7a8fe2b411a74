// How far products in 8 bits (pcg/ir/fp8.h) take a step of a model, product by product:
// isomer-profile measures it, and isomer-optimize chooses by it which products keep bfloat16.
#ifndef ISOMER_PCG_PROFILE_FP8_ERRORS_H_
#define ISOMER_PCG_PROFILE_FP8_ERRORS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pcg/ir/fp8.h"

namespace isomer {

// Errors are relative, in the Euclidean norm: of the gradient by all weights, or in inference of
// all outputs.
struct Fp8Errors {
  std::string model, mode;
  Fp8Scaling scaling = Fp8Scaling::kTensor;
  double bfloat16 = 0;  // with no product in 8 bits, from float32
  // By weight: with the products with it alone in 8 bits, from bfloat16.
  std::map<std::string, double> of_weights;

  // Of a plan in which the products with these weights keep bfloat16. Roundings of different
  // products know nothing of each other, so that squares add up.
  double Predicted(const std::vector<std::string>& kept) const;
};

// Files of kind "fp8_errors". Reading refuses errors that are negative or no numbers.
absl::Status SaveFp8Errors(const std::string& path, const Fp8Errors& errors);
absl::StatusOr<Fp8Errors> LoadFp8Errors(const std::string& path);

// The weights whose products keep bfloat16, ascending: `kept`, those that were not measured, and as
// many others as it takes for Predicted to be within `budget`: those with the least arithmetic for
// the square of their error. Errors: bfloat16 itself exceeds the budget, or no product is left.
absl::StatusOr<std::vector<std::string>> KeptWithin(double budget, const Graph& graph,
                                                    const Fp8Errors& errors,
                                                    const std::vector<std::string>& kept);

}  // namespace isomer

#endif  // ISOMER_PCG_PROFILE_FP8_ERRORS_H_
