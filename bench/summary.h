// The summary that a program writes with --json, read back.
#ifndef ISOMER_BENCH_SUMMARY_H_
#define ISOMER_BENCH_SUMMARY_H_

#include <google/protobuf/struct.pb.h>

#include <string>

#include "absl/status/statusor.h"

namespace isomer {

class Summary {
 public:
  Summary() = default;
  // Errors: no such file, not JSON.
  static absl::StatusOr<Summary> Read(const std::string& path);

  // What stands at a path of keys: "search.seconds". Null if it is not there.
  const google::protobuf::Value* Find(const std::string& path) const;
  // Errors: it is not there, or of another kind.
  absl::StatusOr<double> Number(const std::string& path) const;
  absl::StatusOr<std::string> Text(const std::string& path) const;

 private:
  google::protobuf::Struct root_;
};

}  // namespace isomer

#endif  // ISOMER_BENCH_SUMMARY_H_
