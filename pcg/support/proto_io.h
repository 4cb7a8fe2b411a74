// Isomer's files: one protobuf message behind a header that says what it is.
//
// Text form (names ending in .txt or .textproto), for people and diffs:
//
//   # isomer rules v1
//   ...the message in protobuf text format...
//   # end
//
// The closing line shows that nothing is missing. Binary form (any other name), integers
// little-endian:
//
//   offset  bytes
//        0      8  "ISOMER\x01\n"
//        8     16  kind, filled up with zeros: "rules", "plan", "profile", "model", "machine", ...
//       24      8  version of the format (kFormatVersion)
//       32      8  payload size in bytes
//       40      8  HashBytes of the payload, seeded with HashBytes of the 40 bytes above
//       48         payload: the serialized message
//
// Readers tell the two apart by the first bytes, never by the name.
#ifndef ISOMER_PCG_SUPPORT_PROTO_IO_H_
#define ISOMER_PCG_SUPPORT_PROTO_IO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace isomer {

// Of every kind of file. A change that old readers would misread raises it.
inline constexpr uint64_t kFormatVersion = 1;

enum class TextHeader {
  kRequired,
  kOptional,  // for what people write by hand, such as machines: header and closing line may be
              // absent
};

// Reads `path` into `message`. A file that is empty, cut short, damaged, of another kind or
// version, or none of ours is refused in one line that begins with the file name (and line:column
// for text):
//   "bert.plan: truncated: 48213 of 96402 payload bytes"
//   "mine.txt:7:3: Message type \"isomer.Machine\" has no field named \"nods\"."
// On an error `message` is left in an unspecified state.
absl::Status LoadProto(const std::string& path, absl::string_view kind,
                       google::protobuf::Message* message,
                       TextHeader text_header = TextHeader::kRequired);

// Whether files of this name are written in text form: it ends in .txt or .textproto.
bool IsTextName(absl::string_view path);

// Writes `message` atomically, in text form when IsTextName(path).
// REQUIRES: kind has 1 to 15 characters.
absl::Status SaveProto(const std::string& path, absl::string_view kind,
                       const google::protobuf::Message& message);

// The same on the contents of a file; `name` is what errors call it.
absl::Status ParseProto(absl::string_view contents, const std::string& name, absl::string_view kind,
                        google::protobuf::Message* message,
                        TextHeader text_header = TextHeader::kRequired);
// Whether contents begin as the binary form does.
bool IsBinaryForm(absl::string_view contents);
std::string BinaryForm(absl::string_view kind, const google::protobuf::Message& message);
std::string TextForm(absl::string_view kind, const google::protobuf::Message& message);

// The kind that a file's contents declare ("plan"), "" when they declare none. Of the header only:
// the rest may still be damaged. For programs that take files of several kinds.
std::string DeclaredKind(absl::string_view contents);

// Equal messages have equal digests, in every run. What a file says it was made from.
uint64_t ProtoDigest(const google::protobuf::Message& message);

}  // namespace isomer

#endif  // ISOMER_PCG_SUPPORT_PROTO_IO_H_
