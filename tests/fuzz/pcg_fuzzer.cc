// Any bytes, read as graphs, models and plans in every form that they have. What is read is written
// and read again, which must succeed. The first byte says as what the rest is read: files carry a
// digest, so that changed ones are refused before their messages are looked at; the messages
// themselves are therefore read as well.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "pcg/ir/graph.h"
#include "pcg/ir/pcg.pb.h"
#include "pcg/ir/plan.h"
#include "pcg/support/check.h"
#include "pcg/support/proto_io.h"

namespace isomer {
namespace {

void ReadGraphText(absl::string_view contents) {
  const absl::StatusOr<Graph> graph = ParseGraph(contents);
  if (graph.ok()) ISOMER_CHECK(ParseGraph(graph->ToString()).ok());
}

template <typename Message>
void ReadMessage(const Message& message) {
  const auto value = FromProto(message);
  if (!value.ok()) return;
  Message again;
  ToProto(*value, &again);
  ISOMER_CHECK(FromProto(again).ok());
}

template <typename Message>
void ReadBytes(absl::string_view contents) {
  Message message;
  if (message.ParseFromArray(contents.data(), static_cast<int>(contents.size()))) {
    ReadMessage(message);
  }
}

template <typename Message>
void ReadFileOf(absl::string_view contents, absl::string_view kind) {
  Message message;
  if (ParseProto(contents, "fuzz", kind, &message).ok()) ReadMessage(message);
}

}  // namespace
}  // namespace isomer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace isomer;  // NOLINT
  if (size == 0) return 0;
  const absl::string_view contents(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      ReadGraphText(contents);
      break;
    case 1:
      ReadBytes<proto::ModelProto>(contents);
      break;
    case 2:
      ReadBytes<proto::PlanProto>(contents);
      break;
    case 3:
      ReadFileOf<proto::ModelProto>(contents, "model");
      break;
    default:
      ReadFileOf<proto::PlanProto>(contents, "plan");
  }
  return 0;
}
