// A user's constraints on the plan (constraints.proto), as parsed from a file.
#ifndef ISOMER_OPTIMIZER_SHARDING_CONSTRAINTS_H_
#define ISOMER_OPTIMIZER_SHARDING_CONSTRAINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optimizer/sharding/recompute_mode.h"
#include "pcg/ir/weight_update.h"

namespace isomer {

struct DeviceRange {
  int64_t first = 0, count = 0;
  friend bool operator==(const DeviceRange&, const DeviceRange&) = default;
};

// `source`: file and line of a constraint, "mine.txt:3", for messages.
struct Constraints {
  struct Split {
    int dim;
    int64_t degree;
  };
  struct OfTensor {
    std::string name, source;
    std::vector<Split> splits;
    bool replicate = false;
  };
  struct OfNode {
    std::string name, source;
    std::optional<DeviceRange> devices;
    std::optional<int64_t> stage;
  };
  struct Colocation {
    std::vector<std::string> names;
    std::string source;
  };
  // Of the whole step: what is absent is free. A plan without a pipeline has one stage of one
  // chunk.
  struct OfStep {
    std::string source = {};
    std::optional<int64_t> stages = {}, chunks = {}, micro_batches = {};
    std::optional<UpdateMethod> update = {};
    std::optional<RecomputeMode> recompute = {};

    bool empty() const { return !stages && !chunks && !micro_batches && !update && !recompute; }
    // No plan of one micro-batch, and none of one stage, does what it says.
    bool IsPipeline() const { return stages.value_or(1) > 1 || chunks.value_or(1) > 1; }
    bool HasMicroBatches() const { return IsPipeline() || micro_batches.value_or(1) > 1; }
    // "stages: 4, update: sharded".
    std::string ToString() const;
  };
  std::vector<OfTensor> tensors;
  std::vector<OfNode> nodes;
  std::vector<Colocation> colocations;
  OfStep step;

  // Some operator runs on certain devices, or on all of them.
  bool PlaceNodes() const;
  bool empty() const {
    return tensors.empty() && nodes.empty() && colocations.empty() && step.empty();
  }
};

// Errors: unreadable file, constraints that say nothing, or that contradict themselves; one line
// that begins with file and line.
absl::StatusOr<Constraints> LoadConstraints(const std::string& path);
absl::StatusOr<Constraints> ParseConstraints(absl::string_view contents, const std::string& name);

// '*' stands for any characters, '?' for one.
bool MatchesGlob(absl::string_view glob, absl::string_view text);

// Whether some constraint names `name`.
bool AreAbout(const Constraints& constraints, absl::string_view name);

// The name in `known` at the least edit distance; "" if `known` is empty.
std::string NearestName(absl::string_view name, const std::vector<std::string>& known);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CONSTRAINTS_H_
