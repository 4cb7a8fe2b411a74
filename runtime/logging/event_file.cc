#include "runtime/logging/event_file.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pcg/support/little_endian.h"
#include "pcg/support/status_macros.h"
#include "runtime/logging/crc32c.h"
#include "runtime/logging/event.pb.h"

namespace isomer {
namespace {

constexpr char kVersion[] = "brain.Event:2";  // what readers expect of a file's first event

constexpr size_t kLengthBytes = sizeof(uint64_t), kSumBytes = sizeof(uint32_t);

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

std::string TfRecord(absl::string_view contents) {
  std::string record;
  AppendLittleEndian<uint64_t>(contents.size(), &record);
  AppendLittleEndian(MaskedCrc32c(record), &record);
  absl::StrAppend(&record, contents);
  AppendLittleEndian(MaskedCrc32c(contents), &record);
  return record;
}

absl::StatusOr<std::vector<std::string>> ReadTfRecords(absl::string_view file) {
  std::vector<std::string> records;
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("record ", records.size(), what));
  };
  while (!file.empty()) {
    if (file.size() < kLengthBytes + kSumBytes) return damaged(" is cut short");
    const absl::string_view length = file.substr(0, kLengthBytes);
    if (LittleEndianAt<uint32_t>(file.data() + kLengthBytes) != MaskedCrc32c(length)) {
      return damaged(": the checksum of its length is another");
    }
    const uint64_t size = LittleEndianAt<uint64_t>(length.data());
    file.remove_prefix(kLengthBytes + kSumBytes);
    if (file.size() < kSumBytes || file.size() - kSumBytes < size) return damaged(" is cut short");
    const absl::string_view contents = file.substr(0, size);
    if (LittleEndianAt<uint32_t>(file.data() + size) != MaskedCrc32c(contents)) {
      return damaged(": its checksum is another");
    }
    records.emplace_back(contents);
    file.remove_prefix(size + kSumBytes);
  }
  return records;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Create(const std::string& folder,
                                                             std::optional<int64_t> first_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  const double now = SecondsNow();
  std::string path;
  std::FILE* file = nullptr;
  // Runs of one second each get a number.
  for (int number = 0; file == nullptr; ++number) {
    path = absl::StrFormat("%s/events.out.tfevents.%010d.%s.%d.%d", folder,
                           static_cast<int64_t>(now), HostName(), getpid(), number);
    file = std::fopen(path.c_str(), "wbxe");
    if (file == nullptr && errno != EEXIST) {
      return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
  }
  std::unique_ptr<EventFile> events(new EventFile(std::move(path), file));
  EventProto event;
  event.set_wall_time(now);
  event.set_file_version(kVersion);
  ISOMER_RETURN_IF_ERROR(events->Write(event.SerializeAsString()));
  if (first_step.has_value()) {
    EventProto start;
    start.set_wall_time(now);
    start.set_step(*first_step + 1);
    start.mutable_session_log()->set_status(SessionLogProto::START);
    ISOMER_RETURN_IF_ERROR(events->Write(start.SerializeAsString()));
  }
  return events;
}

EventFile::~EventFile() { std::fclose(file_); }

absl::Status EventFile::Write(absl::string_view record) {
  const std::string bytes = TfRecord(record);
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size() &&
      std::fflush(file_) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
}

absl::Status EventFile::Add(int64_t step,
                            const std::vector<std::pair<std::string, double>>& scalars) {
  EventProto event;
  event.set_wall_time(SecondsNow());
  event.set_step(step);
  for (const auto& [tag, number] : scalars) {
    SummaryProto::Value* value = event.mutable_summary()->add_value();
    value->set_tag(tag);
    value->set_simple_value(static_cast<float>(number));
  }
  return Write(event.SerializeAsString());
}

}  // namespace isomer
