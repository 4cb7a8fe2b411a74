#ifndef ISOMER_GENERATOR_ASSIGNMENTS_STATISTICS_H_
#define ISOMER_GENERATOR_ASSIGNMENTS_STATISTICS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace isomer {

// What a run of the generator did.
struct Statistics {
  int64_t graphs_enumerated = 0;  // evaluated and fingerprinted
  int64_t tensors_kept = 0;       // representatives, and graphs that may be a side of an equation
  int64_t bytes_kept = 0;
  int64_t candidates = 0;                 // pairs of equal graphs
  std::map<std::string, int64_t> pruned;  // reason -> pairs
  // Examples per reason, for whoever asks.
  std::map<std::string, std::vector<std::string>> pruned_examples;
  // Phase -> wall time of the run; of an enumeration: what making patterns of equations took.
  std::map<std::string, double> seconds;

  void Prune(const std::string& reason, const std::string& what) {
    ++pruned[reason];
    AddExample(reason, what);
  }

  // The same, where the text is costly and most are not kept.
  void PruneLazily(const std::string& reason, absl::FunctionRef<std::string()> what) {
    ++pruned[reason];
    if (WantsExample(reason)) AddExample(reason, what());
  }

  // What another part of the run did; its seconds are not added.
  void Add(const Statistics& other) {
    graphs_enumerated += other.graphs_enumerated;
    tensors_kept += other.tensors_kept;
    bytes_kept += other.bytes_kept;
    candidates += other.candidates;
    for (const auto& [reason, count] : other.pruned) pruned[reason] += count;
    for (const auto& [reason, examples] : other.pruned_examples) {
      for (const std::string& example : examples) AddExample(reason, example);
    }
  }

 private:
  bool WantsExample(const std::string& reason) {
    constexpr size_t kMostExamples = 1000;
    return pruned_examples[reason].size() < kMostExamples;
  }
  void AddExample(const std::string& reason, const std::string& what) {
    if (WantsExample(reason)) pruned_examples[reason].push_back(what);
  }
};

}  // namespace isomer

#endif  // ISOMER_GENERATOR_ASSIGNMENTS_STATISTICS_H_
