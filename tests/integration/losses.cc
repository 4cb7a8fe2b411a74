#include "tests/integration/losses.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {

std::vector<double> LossesOf(std::vector<std::string> flags) {
  const std::string json = ScratchFile("losses.json");
  flags.push_back("--json=" + json);
  const ProgramResult result = RunBinary("isomer-run", flags);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  google::protobuf::Struct summary;
  EXPECT_TRUE(
      google::protobuf::util::JsonStringToMessage(ReadFile(json).value_or(""), &summary).ok());
  std::vector<double> losses;
  for (const auto& loss : summary.fields().at("loss").list_value().values()) {
    losses.push_back(loss.number_value());
  }
  return losses;
}

}  // namespace isomer
