#include "generator/enumeration/found_equations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "generator/enumeration/equation.h"
#include "generator/enumeration/in_chunks.h"

namespace isomer {
namespace {

// Most equations are renamings of others: candidates of so many are in memory at once.
constexpr size_t kBatch = 1 << 12, kChunk = 64;

// An equation as patterns; none: each side has an input of its own.
struct NamedCandidate {
  std::optional<Candidate> candidate;
  std::string name;
};

struct Sides {
  EnumeratedNode term;
  TensorList source, target;
};

Sides SidesOf(const FoundEquation& equation, const EnumeratedNodes& nodes) {
  Sides sides{{equation.term.call, equation.term.operands}, {}, equation.equals};
  for (size_t t = 0; t < equation.term.call->output_types.size(); ++t) {
    const int output = static_cast<int>(t);
    if (equation.output >= 0 && equation.output != output) continue;
    sides.source.push_back(nodes.OutputOfTerm(output));
  }
  // Of several outputs the term is the side that is simpler: it computes them together.
  if (equation.output < 0) std::swap(sides.source, sides.target);
  return sides;
}

}  // namespace

std::vector<Candidate> CandidatesOf(const std::vector<FoundEquation>& equations,
                                    const EnumeratedNodes& nodes,
                                    const Configuration& configuration, int threads,
                                    Statistics* statistics) {
  statistics->candidates += static_cast<int64_t>(equations.size());
  std::vector<Candidate> candidates;
  absl::flat_hash_set<std::string> seen;
  std::vector<NamedCandidate> batch;
  for (size_t first = 0; first < equations.size(); first += batch.size()) {
    batch.assign(std::min(kBatch, equations.size() - first), {});
    InChunks(threads, batch.size(), kChunk, [&](int, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const Sides sides = SidesOf(equations[first + i], nodes);
        batch[i].candidate =
            MakeCandidate(nodes, sides.term, configuration.inputs, sides.source, sides.target);
        if (batch[i].candidate.has_value()) batch[i].name = CanonicalName(*batch[i].candidate);
      }
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      auto& [candidate, name] = batch[i];
      const auto text = [&] {
        const Sides sides = SidesOf(equations[first + i], nodes);
        return nodes.Text(sides.term, sides.source, sides.target);
      };
      if (!candidate.has_value()) {
        statistics->PruneLazily("each side has an input of its own", text);
      } else if (!seen.insert(std::move(name)).second) {
        statistics->PruneLazily("renaming of inputs", text);
      } else {
        candidate->origin = absl::StrCat("enumerated: ", configuration.name);
        candidates.push_back(*std::move(candidate));
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    auto size = [](const Candidate& c) { return c.source.nodes.size() + c.target.nodes.size(); };
    return size(a) < size(b);
  });
  return candidates;
}

}  // namespace isomer
