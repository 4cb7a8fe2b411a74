#include "models/onnx/data_in_file.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "models/onnx/onnx.pb.h"

namespace isomer {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

constexpr uint32_t TagOf(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

class Rewriter {
 public:
  Rewriter(absl::string_view contents, const std::string& path, size_t many_bytes)
      : contents_(contents), path_(path), many_bytes_(many_bytes) {}

  std::optional<OnnxWithoutData> Run() {
    std::optional<std::string> model =
        Message(contents_, onnx::ModelProto::kGraphFieldNumber,
                [this](absl::string_view graph) { return Graph(graph); });
    if (!model.has_value()) return std::nullopt;
    result_.model = *std::move(model);
    return std::move(result_);
  }

 private:
  // The message with its fields `field` as `rewrite` has them, and all else byte for byte, so that
  // what is no message stays none; none if its fields cannot be told apart.
  template <typename Rewrite>
  static std::optional<std::string> Message(absl::string_view message, int field,
                                            const Rewrite& rewrite) {
    std::string result;
    ArrayInputStream bytes(message.data(), static_cast<int>(message.size()));
    CodedInputStream in(&bytes);
    in.SetTotalBytesLimit(INT32_MAX);
    const auto place = [&] { return static_cast<size_t>(in.CurrentPosition()); };
    for (size_t begin = 0; begin < message.size(); begin = place()) {
      const uint32_t tag = in.ReadTag();
      if (tag != TagOf(field)) {
        if (tag == 0 || !WireFormatLite::SkipField(&in, tag)) return std::nullopt;
        absl::StrAppend(&result, message.substr(begin, place() - begin));
        continue;
      }
      absl::StrAppend(&result, message.substr(begin, place() - begin));
      // A longer number is none to the parser, whatever its value.
      constexpr size_t kMostBytesOfSize = 5;
      const size_t size_begin = place();
      uint64_t size = 0;
      if (!in.ReadVarint64(&size) || place() - size_begin > kMostBytesOfSize ||
          size > message.size() - place()) {
        return std::nullopt;
      }
      const std::optional<std::string> inner = rewrite(message.substr(place(), size));
      if (!inner.has_value() || !in.Skip(static_cast<int>(size))) return std::nullopt;
      StringOutputStream strings(&result);
      CodedOutputStream out(&strings);
      out.WriteVarint32(static_cast<uint32_t>(inner->size()));
      out.WriteString(*inner);
    }
    return result;
  }

  std::optional<std::string> Graph(absl::string_view graph) {
    return Message(graph, onnx::GraphProto::kInitializerFieldNumber,
                   [this](absl::string_view tensor) { return Tensor(tensor); });
  }

  // Of a tensor that has its data twice, the last counts.
  std::optional<std::string> Tensor(absl::string_view tensor) {
    const int place = num_initializers_++;
    std::optional<absl::string_view> raw;
    std::optional<std::string> without =
        Message(tensor, onnx::TensorProto::kRawDataFieldNumber, [&](absl::string_view data) {
          raw = data;
          return std::optional<std::string>("");
        });
    if (!raw.has_value() || raw->size() < many_bytes_) return std::string(tensor);
    result_.data[place] = {path_, static_cast<int64_t>(contents_.size()),
                           raw->data() - contents_.data(), static_cast<int64_t>(raw->size())};
    return without;
  }

  const absl::string_view contents_;
  const std::string& path_;
  const size_t many_bytes_;
  int num_initializers_ = 0;
  OnnxWithoutData result_;
};

}  // namespace

OnnxWithoutData LeaveDataInFile(absl::string_view contents, const std::string& path,
                                size_t many_bytes) {
  std::optional<OnnxWithoutData> result = Rewriter(contents, path, many_bytes).Run();
  return result.has_value() ? *std::move(result) : OnnxWithoutData{std::string(contents), {}};
}

}  // namespace isomer
