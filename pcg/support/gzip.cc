#include "pcg/support/gzip.h"

#include "absl/strings/match.h"
#include "google/protobuf/io/gzip_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "pcg/support/file.h"

namespace isomer {

std::string Gzip(absl::string_view text) {
  std::string result;
  {
    google::protobuf::io::StringOutputStream bytes(&result);
    google::protobuf::io::GzipOutputStream compressed(&bytes);
    void* buffer = nullptr;
    int size = 0;
    while (!text.empty() && compressed.Next(&buffer, &size)) {
      const size_t taken = text.copy(static_cast<char*>(buffer), size);
      text.remove_prefix(taken);
      compressed.BackUp(size - static_cast<int>(taken));
    }
    compressed.Close();
  }
  return result;
}

absl::Status WriteTextOrGzip(const std::string& path, absl::string_view text) {
  if (!absl::EndsWith(path, ".gz")) return WriteFileAtomically(path, text);
  return WriteFileAtomically(path, Gzip(text));
}

}  // namespace isomer
