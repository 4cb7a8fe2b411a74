// Memo of simulations, shared by the contests of one run: the algebra-first search, run
// concurrently with the joint one, and searches of parts of the machine reach many of the same
// plans.
#ifndef ISOMER_OPTIMIZER_SIMULATOR_PREDICTION_MEMO_H_
#define ISOMER_OPTIMIZER_SIMULATOR_PREDICTION_MEMO_H_

#include <cstdint>
#include <future>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "optimizer/simulator/simulator.h"

namespace isomer {

// Simulations on one cost model, by a digest of everything that they depend on. Thread-safe.
class PredictionMemo {
 public:
  using Future = std::shared_future<absl::StatusOr<Simulation>>;

  // The known simulation, or else the one that `begin` starts.
  Future FindOrBegin(uint64_t digest, absl::FunctionRef<Future()> begin) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [known, added] = simulations_.try_emplace(digest);
    if (added) known->second = begin();
    return known->second;
  }
  // Frees a simulation, which is large; futures already returned stay valid.
  void Forget(uint64_t digest) {
    const std::lock_guard<std::mutex> lock(mutex_);
    simulations_.erase(digest);
  }

 private:
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, Future> simulations_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_SIMULATOR_PREDICTION_MEMO_H_
