// A network of the zoo, as the benchmarks train it.
#ifndef ISOMER_BENCH_ZOO_TRAINING_H_
#define ISOMER_BENCH_ZOO_TRAINING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/load.h"
#include "models/loss.h"
#include "pcg/support/status_macros.h"

namespace isomer {

// `spec`: "NAME?key=value"; `batch_size` 0: as the zoo has it.
inline absl::StatusOr<Model> TrainedInZoo(const std::string& spec, int64_t batch_size = 0) {
  LoadOptions options;
  options.batch_size = batch_size;
  ISOMER_ASSIGN_OR_RETURN(Model model, LoadAnyModel(absl::StrCat("zoo:", spec), options));
  ISOMER_RETURN_IF_ERROR(AttachLoss(&model, "auto"));
  return model;
}

}  // namespace isomer

#endif  // ISOMER_BENCH_ZOO_TRAINING_H_
