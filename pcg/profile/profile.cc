#include "pcg/profile/profile.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "pcg/ir/operator_traits.h"
#include "pcg/ir/precision.h"
#include "pcg/profile/profile.pb.h"
#include "pcg/support/proto_io.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Operators whose tasks read a halo when a dim of their images is split.
bool HasWindow(OpKind kind) {
  const OperatorClass op_class = TraitsOf(kind).op_class;
  return op_class == OperatorClass::kConvolution || op_class == OperatorClass::kPooling;
}

// The operator without what does not matter.
std::string OperatorText(const Operator& op) {
  const OperatorTraits& traits = TraitsOf(op.kind());
  if (!traits.attributes_change_time) return std::string(op.name());
  if (traits.salt == nullptr) return op.ToString();
  Operator unsalted = op;
  unsalted.Set(traits.salt, int64_t{0});
  return unsalted.ToString();
}

// The value of a line "model name\t: Intel(R) Xeon(R)", if it is of that name.
bool ReadField(const std::string& line, absl::string_view name, std::string* value) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, name)) return false;
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (!absl::ConsumePrefix(&rest, ":")) return false;
  *value = std::string(absl::StripAsciiWhitespace(rest));
  return true;
}

}  // namespace

std::string KernelKey(const Operator& op, absl::Span<const TensorType> operands,
                      const std::vector<bool>& wanted) {
  std::string key = OperatorText(op);
  for (const TensorType& operand : operands) {
    absl::StrAppend(&key, " ", DataTypeName(operand.dtype), "[",
                    absl::StrJoin(operand.LocalShape(), ","), "]");
  }
  if (HasWindow(op.kind())) {
    std::vector<int64_t> degrees;
    for (int i = 2; i < operands[0].rank(); ++i) degrees.push_back(operands[0].dims[i].degree);
    const bool split = std::any_of(degrees.begin(), degrees.end(), [](int64_t d) { return d > 1; });
    if (split) absl::StrAppend(&key, " split ", absl::StrJoin(degrees, "x"));
  }
  if (wanted.empty()) return key;
  key += " gradient ";
  for (const bool w : wanted) key += w ? '+' : '-';
  return key;
}

std::string KernelFamily(const Operator& op, absl::Span<const TensorType> operands, bool gradient) {
  const auto is_float = [](const TensorType& type) { return IsFloat(type.dtype); };
  auto value = std::find_if(operands.begin(), operands.end(), is_float);
  if (value == operands.end()) value = operands.begin();
  std::string family(op.name());
  if (Fp8ScalingOf(op) != Fp8Scaling::kNone) absl::StrAppend(&family, " ", kFp8Precision);
  if (value != operands.end()) absl::StrAppend(&family, " ", DataTypeName(value->dtype));
  if (gradient) family += " gradient";
  return family;
}

std::string ProfiledDevice::ToString() const {
  return absl::StrCat(processor, ", ", backend, " backend", libraries.empty() ? "" : ", ",
                      libraries, ", ", busy_devices, busy_devices == 1 ? " device" : " devices",
                      " busy", pinned ? ", pinned" : "");
}

std::string HostProcessor() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name, family, model, stepping;
  while (std::getline(file, line) && !line.empty()) {  // Of the first core.
    ReadField(line, "model name", &name) || ReadField(line, "cpu family", &family) ||
        ReadField(line, "model", &model) || ReadField(line, "stepping", &stepping);
  }
  if (name.empty()) return "unknown processor";
  return absl::StrCat(name, " (", absl::StrJoin({family, model, stepping}, "."), ")");
}

SizeTable::SizeTable(std::vector<SizeTime> times) {
  std::stable_sort(times.begin(), times.end(),
                   [](const SizeTime& a, const SizeTime& b) { return a.bytes < b.bytes; });
  for (SizeTime& time : times) {
    if (!times_.empty() && times_.back().bytes == time.bytes) {
      times_.back() = time;
    } else {
      times_.push_back(time);
    }
  }
  // Neighbours that fall are set to their mean (pool adjacent violators): a running maximum would
  // carry one slow sample upwards.
  std::vector<std::pair<double, int>> pools;  // mean of the logarithms, how many
  for (const SizeTime& time : times_) {
    pools.push_back({std::log(std::max(time.median_us, 1e-3)), 1});
    while (pools.size() > 1 && pools.back().first < pools.end()[-2].first) {
      const auto [mean, count] = pools.back();
      pools.pop_back();
      auto& [below, below_count] = pools.back();
      below = (below * below_count + mean * count) / (below_count + count);
      below_count += count;
    }
  }
  for (const auto& [mean, count] : pools) {
    const double single = std::max(times_[us_.size()].median_us, 1e-3);  // Not rounded twice.
    us_.insert(us_.end(), count, count == 1 ? single : std::exp(mean));
  }
  // Between sizes, and above the last, the time is a power of the size.
  us_per_byte_ = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < us_.size(); ++i) {
    const int64_t bytes = std::max<int64_t>(times_[i].bytes, 1);
    us_per_byte_ = std::min(us_per_byte_, us_[i] / static_cast<double>(bytes));
  }
}

double SizeTable::UsOf(int64_t bytes) const {
  const auto above =
      std::upper_bound(times_.begin(), times_.end(), bytes,
                       [](int64_t value, const SizeTime& time) { return value < time.bytes; });
  if (above == times_.begin()) return us_.front();
  const size_t i = above - times_.begin() - 1;
  const double low = static_cast<double>(std::max<int64_t>(times_[i].bytes, 1));
  const double size = static_cast<double>(std::max<int64_t>(bytes, 1));
  if (above == times_.end()) return us_[i] * size / low;
  const double span = std::log(static_cast<double>(above->bytes) / low);
  if (span <= 0) return us_[i];  // Sizes 0 and 1.
  return us_[i] * std::pow(us_[i + 1] / us_[i], std::log(size / low) / span);
}

std::string CollectiveKey(absl::string_view kind, absl::string_view communicator,
                          int64_t group_size) {
  return absl::StrCat(kind, " ", communicator, " ", group_size);
}

const KernelTime* Profile::Find(const Operator& op, absl::Span<const TensorType> operands,
                                const std::vector<bool>& wanted) const {
  const auto found = kernels.find(KernelKey(op, operands, wanted));
  return found == kernels.end() ? nullptr : &found->second;
}

const SizeTable* Profile::FindTable(absl::string_view key) const {
  const auto found = tables.find(std::string(key));
  return found == tables.end() || found->second.empty() ? nullptr : &found->second;
}

absl::Status SaveProfile(const std::string& path, const Profile& profile) {
  proto::ProfileProto message;
  proto::ProfiledDeviceProto* device = message.mutable_device();
  device->set_backend(profile.device.backend);
  device->set_processor(profile.device.processor);
  device->set_libraries(profile.device.libraries);
  device->set_busy_devices(profile.device.busy_devices);
  device->set_pinned(profile.device.pinned);
  for (const std::string& model : profile.models) message.add_models(model);
  message.set_task_overhead_us(profile.task_overhead_us);
  for (const auto& [key, time] : profile.kernels) {
    proto::KernelTimeProto* kernel = message.add_kernels();
    kernel->set_kernel(key);
    kernel->set_median_us(time.median_us);
    kernel->set_lower_us(time.lower_us);
    kernel->set_upper_us(time.upper_us);
    kernel->set_repetitions(time.repetitions);
    kernel->set_flops(time.flops);
    kernel->set_bytes(time.bytes);
    kernel->set_family(time.family);
    kernel->set_workspace_bytes(time.workspace_bytes);
    kernel->set_library_bytes(time.library_bytes);
  }
  for (const auto& [key, table] : profile.tables) {
    proto::SizeTableProto* sizes = message.add_tables();
    sizes->set_key(key);
    for (const SizeTime& time : table.times()) {
      proto::SizeTimeProto* entry = sizes->add_times();
      entry->set_bytes(time.bytes);
      entry->set_median_us(time.median_us);
      entry->set_lower_us(time.lower_us);
      entry->set_upper_us(time.upper_us);
      entry->set_repetitions(time.repetitions);
    }
  }
  return SaveProto(path, "profile", message);
}

namespace {

// Of a kernel's times or a size's.
template <typename Times>
absl::Status CheckTimes(const std::string& where, const Times& times) {
  for (double time : {times.median_us(), times.lower_us(), times.upper_us()}) {
    if (std::isfinite(time) && time >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", time, " is not a time"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SizeTable> TableOf(const std::string& where, const proto::SizeTableProto& sizes) {
  std::vector<SizeTime> times;
  for (const proto::SizeTimeProto& entry : sizes.times()) {
    ISOMER_RETURN_IF_ERROR(CheckTimes(absl::StrCat(where, ": ", entry.bytes(), " bytes"), entry));
    if (entry.bytes() < 0 || (!times.empty() && entry.bytes() <= times.back().bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", entry.bytes(), " bytes: sizes must ascend"));
    }
    times.push_back({.bytes = entry.bytes(),
                     .median_us = entry.median_us(),
                     .lower_us = entry.lower_us(),
                     .upper_us = entry.upper_us(),
                     .repetitions = entry.repetitions()});
  }
  return SizeTable(std::move(times));
}

// More than any device has, and so few that sums of them are numbers.
constexpr int64_t kMostBytes = int64_t{1} << 50;

}  // namespace

absl::StatusOr<Profile> LoadProfile(const std::string& path) {
  proto::ProfileProto message;
  ISOMER_RETURN_IF_ERROR(LoadProto(path, "profile", &message));
  if (message.device().backend().empty() || message.device().processor().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": does not say of which device it is; measure it again"));
  }
  Profile profile;
  profile.device = {.backend = message.device().backend(),
                    .processor = message.device().processor(),
                    .libraries = message.device().libraries(),
                    .busy_devices = message.device().busy_devices(),
                    .pinned = message.device().pinned()};
  profile.models.assign(message.models().begin(), message.models().end());
  profile.task_overhead_us = message.task_overhead_us();
  if (!std::isfinite(profile.task_overhead_us) || profile.task_overhead_us < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": overhead: ", profile.task_overhead_us, " is not a time"));
  }
  for (const proto::KernelTimeProto& kernel : message.kernels()) {
    const std::string where = absl::StrCat(path, ": kernel '", kernel.kernel(), "'");
    ISOMER_RETURN_IF_ERROR(CheckTimes(where, kernel));
    const auto are_bytes = [](int64_t bytes) { return bytes >= 0 && bytes <= kMostBytes; };
    if (!std::isfinite(kernel.flops()) || kernel.flops() < 0 || !are_bytes(kernel.bytes()) ||
        !are_bytes(kernel.workspace_bytes()) || !are_bytes(kernel.library_bytes())) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": its FLOPs or bytes are no numbers"));
    }
    profile.kernels[kernel.kernel()] = {.median_us = kernel.median_us(),
                                        .lower_us = kernel.lower_us(),
                                        .upper_us = kernel.upper_us(),
                                        .repetitions = kernel.repetitions(),
                                        .flops = kernel.flops(),
                                        .bytes = kernel.bytes(),
                                        .workspace_bytes = kernel.workspace_bytes(),
                                        .library_bytes = kernel.library_bytes(),
                                        .family = kernel.family()};
  }
  for (const proto::SizeTableProto& sizes : message.tables()) {
    const std::string where = absl::StrCat(path, ": table '", sizes.key(), "'");
    ISOMER_ASSIGN_OR_RETURN(profile.tables[sizes.key()], TableOf(where, sizes));
  }
  return profile;
}

void AddToDigest(Digest* digest, const KernelTime& time) {
  const auto& [median_us, lower_us, upper_us, repetitions, flops, bytes, workspace_bytes,
               library_bytes, family] = time;
  digest->Add(median_us, lower_us, upper_us, repetitions, flops, bytes, workspace_bytes,
              library_bytes, family);
}

void AddToDigest(Digest* digest, const ProfiledDevice& device) {
  const auto& [backend, processor, libraries, busy_devices, pinned] = device;
  digest->Add(backend, processor, libraries, busy_devices, pinned);
}

void AddToDigest(Digest* digest, const SizeTime& time) {
  const auto& [bytes, median_us, lower_us, upper_us, repetitions] = time;
  digest->Add(bytes, median_us, lower_us, upper_us, repetitions);
}

void AddToDigest(Digest* digest, const SizeTable& table) { digest->Add(table.times()); }

void AddToDigest(Digest* digest, const Profile& profile) {
  const auto& [device, models, kernels, tables, task_overhead_us] = profile;
  digest->Add(device, models, kernels, tables, task_overhead_us);
}

}  // namespace isomer
