#include "pcg/profile/expert_loads.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/profile/expert_loads.pb.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

constexpr char kKind[] = "expert_loads";

// Empty: a run may have counted it.
std::string ProblemOf(const ExpertLoad& load) {
  if (load.tokens.empty()) return "it has no experts";
  if (load.groups < 1) return absl::StrCat(load.groups, " groups of tokens");
  if (!(std::isfinite(load.even) && load.even > 0)) {
    return absl::StrCat("an even load of ", load.even);
  }
  if (*std::min_element(load.tokens.begin(), load.tokens.end()) < 0) {
    return "an expert got less than no token";
  }
  const int64_t largest = *std::max_element(load.tokens.begin(), load.tokens.end());
  if (load.most < 0 || load.most > largest) {
    return absl::StrCat("an expert got ", load.most, " tokens of one group and ", largest,
                        " of all");
  }
  const double all = std::accumulate(load.tokens.begin(), load.tokens.end(), 0.0);
  const double expected =
      load.even * static_cast<double>(load.groups) * static_cast<double>(load.tokens.size());
  if (std::abs(all - expected) > 1e-6 * expected) {
    return absl::StrCat("experts got ", all, " tokens of ", expected);
  }
  return "";
}

}  // namespace

double ExpertLoads::Imbalance() const {
  double largest = 1;
  for (const ExpertLoad& call : calls) largest = std::max(largest, call.imbalance());
  constexpr double kHundredths = 100, kRounding = 1e-9;
  return std::ceil(largest * kHundredths * (1 - kRounding)) / kHundredths;
}

absl::Status SaveExpertLoads(const std::string& path, const ExpertLoads& loads) {
  proto::ExpertLoadsProto message;
  message.set_model(loads.model);
  for (const ExpertLoad& call : loads.calls) {
    proto::ExpertLoadProto* one = message.add_calls();
    one->set_node(call.node);
    one->set_groups(call.groups);
    one->set_even(call.even);
    one->mutable_tokens()->Add(call.tokens.begin(), call.tokens.end());
    one->set_most(call.most);
  }
  return SaveProto(path, kKind, message);
}

absl::StatusOr<ExpertLoads> LoadExpertLoads(const std::string& path) {
  proto::ExpertLoadsProto message;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, kKind, &message));
  ExpertLoads loads{.model = message.model()};
  for (const proto::ExpertLoadProto& one : message.calls()) {
    ExpertLoad call{.node = one.node(),
                    .groups = one.groups(),
                    .even = one.even(),
                    .tokens = {one.tokens().begin(), one.tokens().end()},
                    .most = one.most()};
    if (const std::string problem = ProblemOf(call); !problem.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": '", call.node, "': ", problem));
    }
    loads.calls.push_back(std::move(call));
  }
  if (loads.calls.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": it has no loads of experts"));
  }
  return loads;
}

}  // namespace isomer
