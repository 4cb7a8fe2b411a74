// What a user wants of the plan (constraints.proto), as it is written in a file.
#ifndef ISOMER_OPTIMIZER_SHARDING_CONSTRAINTS_H_
#define ISOMER_OPTIMIZER_SHARDING_CONSTRAINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isomer {

struct DeviceRange {
  int64_t first = 0, count = 0;
  friend bool operator==(const DeviceRange&, const DeviceRange&) = default;
};

// `source` says where a constraint stands, "mine.txt:3", for messages.
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
  std::vector<OfTensor> tensors;
  std::vector<OfNode> nodes;
  std::vector<Colocation> colocations;
};

// Errors: those of the file, and what says nothing, or two things at once, in one line that begins
// with file and line.
absl::StatusOr<Constraints> LoadConstraints(const std::string& path);
absl::StatusOr<Constraints> ParseConstraints(absl::string_view contents, const std::string& name);

// '*' stands for any characters, '?' for one.
bool MatchesGlob(absl::string_view glob, absl::string_view text);

// Whether a constraint is about `name`.
bool AreAbout(const Constraints& constraints, absl::string_view name);

// Of `known`, the name with the fewest characters to change; "" if there is none.
std::string NearestName(absl::string_view name, const std::vector<std::string>& known);

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SHARDING_CONSTRAINTS_H_
