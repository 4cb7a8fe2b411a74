#include "pcg/profile/fp8_errors.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/ir/type_inference.h"
#include "pcg/profile/profile.pb.h"
#include "pcg/profile/work.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

absl::Status CheckError(const std::string& where, double error) {
  if (std::isfinite(error) && error >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", error, " is not an error"));
}

// FLOPs of the forward products with each weight.
std::map<std::string, double> FlopsByWeight(const Graph& graph) {
  std::map<std::string, double> flops;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const std::vector<std::string> weights = WeightsOfProduct(graph, {id});
    if (weights.empty()) continue;
    const Node& node = graph.node({id});
    std::vector<TensorType> types;
    for (TensorRef input : node.inputs) types.push_back(graph.type(input));
    const auto sharding = InferSharding(node.op, types);
    if (!sharding.ok()) continue;
    const double own = ForwardWork(node.op, *sharding, types).flops;
    for (const std::string& weight : weights) flops[weight] += own;
  }
  return flops;
}

}  // namespace

double Fp8Errors::Predicted(const std::vector<std::string>& kept) const {
  double squares = bfloat16 * bfloat16;
  for (const auto& [weight, error] : of_weights) {
    if (!std::binary_search(kept.begin(), kept.end(), weight)) squares += error * error;
  }
  return std::sqrt(squares);
}

absl::Status SaveFp8Errors(const std::string& path, const Fp8Errors& errors) {
  proto::Fp8ErrorsProto message;
  message.set_model(errors.model);
  message.set_mode(errors.mode);
  message.set_scaling(std::string(Fp8ScalingName(errors.scaling)));
  message.set_bfloat16(errors.bfloat16);
  message.mutable_of_weights()->insert(errors.of_weights.begin(), errors.of_weights.end());
  return SaveProto(path, "fp8_errors", message);
}

absl::StatusOr<Fp8Errors> LoadFp8Errors(const std::string& path) {
  proto::Fp8ErrorsProto message;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, "fp8_errors", &message));
  const auto scaling = ParseFp8Scaling(message.scaling());
  if (!scaling.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", scaling.status().message()));
  }
  Fp8Errors errors{.model = message.model(),
                   .mode = message.mode(),
                   .scaling = *scaling,
                   .bfloat16 = message.bfloat16(),
                   .of_weights = {message.of_weights().begin(), message.of_weights().end()}};
  ISOMER_RETURN_IF_ERROR(CheckError(absl::StrCat(path, ": bfloat16"), errors.bfloat16));
  for (const auto& [weight, error] : errors.of_weights) {
    ISOMER_RETURN_IF_ERROR(CheckError(absl::StrCat(path, ": weight '", weight, "'"), error));
  }
  return errors;
}

absl::StatusOr<std::vector<std::string>> KeptWithin(double budget, const Graph& graph,
                                                    const Fp8Errors& errors,
                                                    const std::vector<std::string>& kept) {
  double left = budget * budget - errors.bfloat16 * errors.bfloat16;
  if (left < 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "an error of %g is less than bfloat16 alone makes, %.3g", budget, errors.bfloat16));
  }
  struct Product {
    double square, flops;
    std::string weight;
  };
  std::vector<Product> products;
  std::set<std::string> still_kept(kept.begin(), kept.end());
  double least = 0;
  for (const auto& [weight, flops] : FlopsByWeight(graph)) {
    const auto error = errors.of_weights.find(weight);
    if (still_kept.contains(weight)) continue;
    still_kept.insert(weight);
    if (error == errors.of_weights.end()) continue;
    products.push_back({error->second * error->second, flops, weight});
    if (least == 0 || error->second < least) least = error->second;
  }
  // A knapsack, by the worth of what is put in it.
  std::stable_sort(products.begin(), products.end(), [](const Product& a, const Product& b) {
    return a.flops * b.square > b.flops * a.square;
  });
  const size_t all = still_kept.size();
  for (const Product& product : products) {
    if (product.square > left) continue;
    left -= product.square;
    still_kept.erase(product.weight);
  }
  if (still_kept.size() == all) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "an error of %g leaves no product in 8 bits; the least that one makes is %.3g, beside "
        "bfloat16's %.3g",
        budget, least, errors.bfloat16));
  }
  return std::vector<std::string>(still_kept.begin(), still_kept.end());
}

}  // namespace isomer
