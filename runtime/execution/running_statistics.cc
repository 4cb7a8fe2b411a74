#include "runtime/execution/running_statistics.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"
#include "runtime/device/elements.h"

namespace isomer {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

std::array<const void*, 2> Halves(const Backend::Memory& memory, int64_t bytes) {
  return {memory.get(), memory.get() + bytes};
}

}  // namespace

absl::Status RunningStatistics::AddTask(int32_t task, const Channels& channels, DataType dtype) {
  const Key key = {channels.entry, channels.first};
  ISOMER_ASSIGN_OR_RETURN(Backend::Memory batch,
                          backend_.Allocate(2 * channels.count * kFloatBytes));
  tasks_.emplace(task, OfTask{key, channels.count, std::move(batch)});
  if (const auto found = running_.find(key); found != running_.end()) {
    if (static_cast<int64_t>(found->second.mean.size()) == channels.count) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("statistics of '", entries_[channels.entry].scale,
                                            "' in two ways on one device"));
  }
  ISOMER_ASSIGN_OR_RETURN(Backend::Memory in_float32,
                          backend_.Allocate(2 * channels.count * kFloatBytes));
  ISOMER_ASSIGN_OR_RETURN(Backend::Memory in_dtype,
                          backend_.Allocate(2 * channels.count * kFloatBytes));
  running_.emplace(
      key, Running{std::vector<float>(channels.count, 0), std::vector<float>(channels.count, 1),
                   dtype, std::move(in_float32), std::move(in_dtype)});
  return absl::OkStatus();
}

absl::Status RunningStatistics::Keep(int32_t task, const void* mean, const void* variance) {
  const OfTask& of = tasks_.at(task);
  const int64_t bytes = of.count * kFloatBytes;
  DeviceOperations& operations = backend_.operations();
  ISOMER_RETURN_IF_ERROR(operations.Copy(mean, bytes, of.batch.get()));
  return operations.Copy(variance, bytes, of.batch.get() + bytes);
}

absl::Status RunningStatistics::Advance() {
  for (const auto& [task, of] : tasks_) {
    std::vector<float> batch(2 * of.count);
    ISOMER_RETURN_IF_ERROR(
        backend_.operations().ToHost(of.batch.get(), 2 * of.count * kFloatBytes, batch.data()));
    if (!std::all_of(batch.begin(), batch.end(),
                     [](float value) { return std::isfinite(value); })) {
      continue;
    }
    Running& running = running_.at(of.key);
    const double momentum = entries_[of.key.first].momentum;
    const auto move = [&](const float* seen, std::vector<float>* kept) {
      for (int64_t c = 0; c < of.count; ++c) {
        (*kept)[c] = static_cast<float>(momentum * (*kept)[c] + (1 - momentum) * seen[c]);
      }
    };
    move(batch.data(), &running.mean);
    move(batch.data() + of.count, &running.variance);
  }
  is_loaded_ = false;
  return absl::OkStatus();
}

absl::Status RunningStatistics::Load() {
  if (is_loaded_) return absl::OkStatus();
  for (auto& [key, running] : running_) {
    std::vector<float> both = running.mean;
    both.insert(both.end(), running.variance.begin(), running.variance.end());
    const int64_t count = static_cast<int64_t>(both.size());
    DeviceOperations& operations = backend_.operations();
    ISOMER_RETURN_IF_ERROR(
        operations.FromHost(both.data(), count * kFloatBytes, running.in_float32.get()));
    std::vector<float> converted(count);  // no type of floats is larger
    ConvertElements(DataType::kFloat32, both.data(), count, running.dtype, converted.data());
    ISOMER_RETURN_IF_ERROR(operations.FromHost(
        converted.data(), count * BytesPerElement(running.dtype), running.in_dtype.get()));
  }
  is_loaded_ = true;
  return absl::OkStatus();
}

std::array<const void*, 2> RunningStatistics::MeanAndVariance(int32_t task) const {
  const OfTask& of = tasks_.at(task);
  const Running& running = running_.at(of.key);
  return Halves(running.in_dtype, of.count * BytesPerElement(running.dtype));
}

std::array<const void*, 2> RunningStatistics::InFloat32(int32_t task) const {
  const OfTask& of = tasks_.at(task);
  return Halves(running_.at(of.key).in_float32, of.count * kFloatBytes);
}

void RunningStatistics::ForEach(
    const std::function<void(int32_t entry, int64_t first, std::vector<float>* means,
                             std::vector<float>* variances)>& f) {
  for (auto& [key, running] : running_) f(key.first, key.second, &running.mean, &running.variance);
  is_loaded_ = false;
}

}  // namespace isomer
