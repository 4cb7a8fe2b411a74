// Clusters of unlike nodes, by name: "dgx_h100:2+dgx_a100:2" are two nodes of one machine, then two
// of another, on one network.
#ifndef ISOMER_OPTIMIZER_MACHINE_JOINED_MACHINE_H_
#define ISOMER_OPTIMIZER_MACHINE_JOINED_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optimizer/machine/machine.h"

namespace isomer {

struct NamedNodes {
  std::string machine;  // name or file
  int64_t nodes = 1;
};
// The parts of "A:2+B:2". Absent: it is no such text. Errors: a number of nodes is missing, or
// none.
absl::StatusOr<std::optional<std::vector<NamedNodes>>> ParseJoined(const std::string& spec);

// One machine of the nodes of all, in this order. A node keeps its links; two unlike nodes send to
// each other at the rate of the slower one's. Errors: nodes that are not built alike (levels,
// devices per node, collectives), machines of several kinds or of named links; they begin with
// `spec`.
absl::StatusOr<Machine> Join(absl::Span<const Machine> machines, const std::string& spec);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_JOINED_MACHINE_H_
