// Simulations that several contests of one run ask for: a search of algebra first, beside the joint
// one, and searches of parts of the machine end at many of the same plans.
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

// Of plans on one cost model, by a digest of all that their simulation can depend on. For several
// threads.
class PredictionMemo {
 public:
  using Future = std::shared_future<absl::StatusOr<Simulation>>;

  // What `begin` returns, unless somebody began before.
  Future FindOrBegin(uint64_t digest, absl::FunctionRef<Future()> begin) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [known, added] = simulations_.try_emplace(digest);
    if (added) known->second = begin();
    return known->second;
  }
  // It takes much memory, and who has it keeps it.
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
