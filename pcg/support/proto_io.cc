#include "pcg/support/proto_io.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "pcg/support/check.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr absl::string_view kMagic("ISOMER\x01\n", 8);
constexpr size_t kKindSize = 16;
constexpr size_t kSignedSize = 40;  // the header but for its digest
constexpr size_t kHeaderSize = 48;
constexpr absl::string_view kTextMagic = "# isomer ";
constexpr absl::string_view kTextEnd = "# end";

void AppendWord(uint64_t word, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(word >> shift));
}

// REQUIRES: bytes has 8 bytes at `offset`.
uint64_t WordAt(absl::string_view bytes, size_t offset) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return word;
}

std::string SerializeDeterministically(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    ISOMER_CHECK(message.SerializePartialToCodedStream(&coded));
  }
  return bytes;
}

// Keeps the first error; protobuf would print all of them to stderr.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = line < 0 ? absl::StrCat(" ", message)
                     : absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Printable, so that an error that quotes it stays one line.
std::string Quoted(absl::string_view text) {
  std::string quoted = "'";
  for (char c : text.substr(0, 40)) quoted.push_back(absl::ascii_isprint(c) ? c : '?');
  return quoted + "'";
}

absl::Status CheckKindAndVersion(const std::string& name, absl::string_view kind,
                                 absl::string_view found_kind, absl::string_view found_version) {
  if (found_kind != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is a file of kind ", Quoted(found_kind), ", not '", kind, "'"));
  }
  if (found_version != absl::StrCat(kFormatVersion)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": has format version ",
                                                   Quoted(found_version), ", this program reads ",
                                                   kFormatVersion));
  }
  return absl::OkStatus();
}

absl::Status ParseBinary(absl::string_view contents, const std::string& name,
                         absl::string_view kind, Message* message) {
  if (contents.size() < kHeaderSize) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": truncated: ", contents.size(), " bytes end within the header"));
  }
  ISOMER_RETURN_IF_ERROR(
      CheckKindAndVersion(name, kind, DeclaredKind(contents), absl::StrCat(WordAt(contents, 24))));
  const absl::string_view payload = contents.substr(kHeaderSize);
  const uint64_t size = WordAt(contents, 32);
  if (payload.size() < size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": truncated: ", payload.size(), " of ", size, " payload bytes"));
  }
  const uint64_t seed = HashBytes(contents.substr(0, kSignedSize));
  if (payload.size() > size || HashBytes(payload, seed) != WordAt(contents, kSignedSize)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": damaged: its digest does not match"));
  }
  google::protobuf::LogSilencer silencer;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(payload.data()),
                                                payload.size());
  if (!message->ParsePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage() ||
      !message->IsInitialized()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": damaged: its payload is no ", message->GetTypeName()));
  }
  return absl::OkStatus();
}

absl::Status ParseText(absl::string_view contents, const std::string& name, Message* message) {
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  google::protobuf::io::ArrayInputStream stream(contents.data(), contents.size());
  google::protobuf::LogSilencer silencer;
  if (parser.Parse(&stream, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ":", error.text()));
}

absl::Status ParseTextWithHeader(absl::string_view contents, const std::string& name,
                                 absl::string_view kind, Message* message) {
  absl::string_view header = contents.substr(0, contents.find('\n'));
  header.remove_prefix(kTextMagic.size());
  std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(absl::StripAsciiWhitespace(header), absl::MaxSplits(' ', 1));
  absl::ConsumePrefix(&words.second, "v");
  ISOMER_RETURN_IF_ERROR(CheckKindAndVersion(name, kind, words.first, words.second));
  absl::string_view body = absl::StripTrailingAsciiWhitespace(contents);
  if (!absl::EndsWith(body, absl::StrCat("\n", kTextEnd))) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": truncated: its last line is not '", kTextEnd, "'"));
  }
  return ParseText(contents, name, message);
}

bool LooksLikeText(absl::string_view contents) {
  return std::all_of(contents.begin(), contents.end(), [](unsigned char c) {
    return c >= 0x20 ? c != 0x7f : absl::ascii_isspace(c);
  });
}

}  // namespace

bool IsTextName(absl::string_view path) {
  return absl::EndsWith(path, ".txt") || absl::EndsWith(path, ".textproto");
}

absl::Status ParseProto(absl::string_view contents, const std::string& name, absl::string_view kind,
                        Message* message, TextHeader text_header) {
  message->Clear();
  if (contents.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": is empty"));
  if (IsBinaryForm(contents)) return ParseBinary(contents, name, kind, message);
  if (absl::StartsWith(contents, kTextMagic)) {
    return ParseTextWithHeader(contents, name, kind, message);
  }
  if (absl::StartsWith(kMagic, contents) || absl::StartsWith(kTextMagic, contents)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": truncated: ", contents.size(), " bytes end within the header"));
  }
  if (text_header == TextHeader::kOptional && LooksLikeText(contents)) {
    return ParseText(contents, name, message);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": is not an Isomer file (a file of kind '", kind, "' was expected)"));
}

bool IsBinaryForm(absl::string_view contents) { return absl::StartsWith(contents, kMagic); }

std::string BinaryForm(absl::string_view kind, const Message& message) {
  ISOMER_CHECK(!kind.empty() && kind.size() < kKindSize);
  const std::string payload = SerializeDeterministically(message);
  std::string out(kMagic);
  absl::StrAppend(&out, kind, std::string(kKindSize - kind.size(), '\0'));
  AppendWord(kFormatVersion, &out);
  AppendWord(payload.size(), &out);
  ISOMER_CHECK(out.size() == kSignedSize);
  AppendWord(HashBytes(payload, HashBytes(out)), &out);
  return out + payload;
}

std::string TextForm(absl::string_view kind, const Message& message) {
  TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string body;
  ISOMER_CHECK(printer.PrintToString(message, &body));
  return absl::StrCat(kTextMagic, kind, " v", kFormatVersion, "\n", body, kTextEnd, "\n");
}

absl::Status LoadProto(const std::string& path, absl::string_view kind, Message* message,
                       TextHeader text_header) {
  ISOMER_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path));
  return ParseProto(contents, path, kind, message, text_header);
}

absl::Status SaveProto(const std::string& path, absl::string_view kind, const Message& message) {
  // Protobuf's own limit; what is larger could be written in text form only, and not be read.
  if (message.ByteSizeLong() > size_t{INT32_MAX}) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": would be larger than 2 GiB"));
  }
  return WriteFileAtomically(
      path, IsTextName(path) ? TextForm(kind, message) : BinaryForm(kind, message));
}

std::string DeclaredKind(absl::string_view contents) {
  if (IsBinaryForm(contents)) {
    const absl::string_view field = contents.substr(kMagic.size(), kKindSize);
    // Everything up to the filling, so that a stray byte after it makes another kind.
    const size_t last = field.find_last_not_of('\0');
    return std::string(field.substr(0, last == field.npos ? 0 : last + 1));
  }
  if (!absl::ConsumePrefix(&contents, kTextMagic)) return "";
  return std::string(contents.substr(0, contents.find_first_of(" \n")));
}

uint64_t ProtoDigest(const Message& message) {
  return HashBytes(SerializeDeterministically(message));
}

}  // namespace isomer
