#include <cstdlib>
#include <filesystem>
#include <limits>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/json.h"
#include "pcg/support/program.h"
#include "pcg/support/progress.h"
#include "pcg/support/proto_io.h"

ABSL_FLAG(int, support_test_budget, 7, "for tests");
ABSL_FLAG(bool, support_test_check, false, "for tests");

namespace isomer {
namespace {

using google::protobuf::FileDescriptorProto;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "/isomer_support_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(File, WritesReplaceTheWholeFileAndLeaveNothingElse) {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  const std::string bytes("long\0contents", 13);
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  EXPECT_EQ(*ReadFile(path), bytes);
  ASSERT_TRUE(WriteFileAtomically(path, "b").ok());
  EXPECT_EQ(*ReadFile(path), "b");
  EXPECT_THAT(NamesIn(folder / ""), ElementsAre("a"));
}

TEST(File, SymbolicLinksAreFollowed) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "target", "old").ok());
  std::filesystem::create_symlink("target", folder / "link");
  ASSERT_TRUE(WriteFileAtomically(folder / "link", "new").ok());
  EXPECT_EQ(*ReadFile(folder / "target"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
}

TEST(File, DevicesAreWrittenToAndNotReplaced) {
  ASSERT_TRUE(WriteFileAtomically("/dev/null", "x").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(File, WhetherItCanBeWrittenIsKnownWithoutWriting) {
  TemporaryFolder folder;
  const std::string path = folder / "file";
  EXPECT_TRUE(CheckCanWrite(path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(WriteFileAtomically(path, "old").ok());
  EXPECT_TRUE(CheckCanWrite(path).ok());
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_TRUE(CheckCanWrite("/dev/null").ok());
  for (const std::string& bad : {folder / "none/x", folder / "", std::string()}) {
    EXPECT_EQ(CheckCanWrite(bad), WriteFileAtomically(bad, "")) << bad;
    EXPECT_FALSE(CheckCanWrite(bad).ok()) << bad;
  }
}

TEST(File, ErrorsNameTheFile) {
  TemporaryFolder folder;
  const std::string missing = folder / "missing";
  EXPECT_EQ(ReadFile(missing).status().message(), missing + ": no such file");
  EXPECT_EQ(ReadFile(folder / "").status().message(), (folder / "") + ": is a directory");
  EXPECT_FALSE(WriteFileAtomically(missing + "/x", "").ok());
  EXPECT_EQ(WriteFileAtomically(folder / "", "").message(), (folder / "") + ": is a directory");
}

// Files and golden outputs hold these values: they must never change.
TEST(Hash, IsTheSameInEveryRun) {
  EXPECT_EQ(HashMix(0), 0xe220a8397b1dcdafu);  // the first output of SplitMix64 seeded with 0
  EXPECT_EQ(DigestString(HashBytes("")), "a706dd2f4d197e6f");
  EXPECT_EQ(DigestString(HashBytes("isomer rules")), "4cb0baddbdf85cc6");
  EXPECT_EQ(DigestString(0xab), "00000000000000ab");
}

TEST(Hash, OrderLengthAndEveryBitMatter) {
  EXPECT_NE(HashCombine(1, 2, 3), HashCombine(1, 3, 2));
  EXPECT_EQ(HashCombine(1, 2, 3), HashCombine(HashCombine(1, 2), 3));
  EXPECT_NE(HashBytes("a"), HashBytes(std::string("a\0", 2)));
  const std::string bytes = "thirteen byte";
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= 1 << (bit % 8);
    EXPECT_NE(HashBytes(flipped), HashBytes(bytes)) << bit;
  }
}

TEST(Json, PrintsTreesInOrder) {
  Json json;
  json["zebra"] = "b\"\\\n\x01";
  json["apple"]["seconds"] = 0.1;
  json["loss"].Append(1.5);
  json["loss"].Append(std::numeric_limits<double>::quiet_NaN());
  json["empty"] = Json::EmptyObject();
  json["none"] = Json::EmptyArray();
  json["dims"] = std::vector<int>{3};
  json["big"] = std::numeric_limits<uint64_t>::max();
  json["done"] = true;
  EXPECT_EQ(json.Print(), R"({
  "zebra": "b\"\\\n\u0001",
  "apple": {
    "seconds": 0.1
  },
  "loss": [
    1.5,
    null
  ],
  "empty": {},
  "none": [],
  "dims": [
    3
  ],
  "big": 18446744073709551615,
  "done": true
}
)");
}

TEST(Json, CompactIsTheSameWithoutSpace) {
  Json json;
  json["a b"] = "c d\n";
  json["list"] = std::vector<int>{1, 2};
  json["nested"]["empty"] = Json::EmptyArray();
  json["nested"]["half"] = 0.5;
  EXPECT_EQ(json.PrintCompact(),
            R"({"a b":"c d\n","list":[1,2],"nested":{"empty":[],"half":0.5}})");
}

TEST(Json, NumbersReadBackToTheSame) {
  for (double value : {1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789012345680.0}) {
    EXPECT_EQ(std::strtod(Json(value).Print().c_str(), nullptr), value);
  }
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(Json("\xc3\xa9\xff\xe2\x82\xac\xed\xa0\x80").Print(),
            "\"\xc3\xa9\\ufffd\xe2\x82\xac\\ufffd\\ufffd\\ufffd\"\n");
}

TEST(Progress, RendersBarAndCount) {
  EXPECT_EQ(
      RenderProgress({.label = "prove", .detail = "", .done = 50, .total = 100, .seconds = 3}),
      "prove  [###############...............]  50%  50/100  3 s, 3 s left");
  const ProgressState plan{.label = "plan",
                           .detail = "grids on 8 devices",
                           .done = 12,
                           .seconds = 4,
                           .limit_s = 60,
                           .unit = "plans"};
  EXPECT_EQ(RenderProgress(plan), "plan: grids on 8 devices  12 plans  4 s, at most 56 s left");
  EXPECT_EQ(RenderProgress(plan, {.label = "search", .detail = "", .done = 9, .total = 300}),
            "plan: grids on 8 devices  12 plans  4 s, at most 56 s left  (search 9/300)");
}

FileDescriptorProto SomeMessage() {
  FileDescriptorProto message;
  message.set_name("caf\xc3\xa9");
  for (int i = 0; i < 5; ++i) message.add_dependency("a dependency");
  return message;
}

std::string ParseError(absl::string_view contents, absl::string_view kind = "plan",
                       TextHeader text_header = TextHeader::kRequired) {
  FileDescriptorProto message;
  return std::string(ParseProto(contents, "f", kind, &message, text_header).message());
}

TEST(ProtoIo, BothFormsReadBackWhateverTheName) {
  TemporaryFolder folder;
  for (const char* name : {"a.plan", "a.txt", "a.textproto"}) {
    ASSERT_TRUE(SaveProto(folder / name, "plan", SomeMessage()).ok());
    std::filesystem::rename(folder / name, folder / "renamed");
    FileDescriptorProto read;
    ASSERT_TRUE(LoadProto(folder / "renamed", "plan", &read).ok());
    EXPECT_EQ(ProtoDigest(read), ProtoDigest(SomeMessage()));
    EXPECT_EQ(DeclaredKind(*ReadFile(folder / "renamed")), "plan");
  }
}

TEST(ProtoIo, EveryTruncationIsRefused) {
  for (const std::string& whole :
       {BinaryForm("plan", SomeMessage()), TextForm("plan", SomeMessage())}) {
    ASSERT_EQ(ParseError(whole), "");
    const size_t needed = whole.size() - (whole.back() == '\n' ? 1 : 0);
    for (size_t size = 0; size < needed; ++size) {
      EXPECT_THAT(ParseError(whole.substr(0, size)), StartsWith("f: ")) << size;
    }
  }
}

TEST(ProtoIo, EveryFlippedBitOfABinaryFileIsRefused) {
  const std::string whole = BinaryForm("plan", SomeMessage());
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] ^= 1 << (bit % 8);
    EXPECT_THAT(ParseError(flipped), StartsWith("f: ")) << bit;
  }
}

TEST(ProtoIo, ErrorsSayWhatIsWrong) {
  const std::string binary = BinaryForm("plan", SomeMessage());
  std::string newer = binary;
  newer[24] = 2;
  EXPECT_EQ(ParseError(""), "f: is empty");
  EXPECT_EQ(ParseError("ISOM"), "f: truncated: 4 bytes end within the header");
  EXPECT_EQ(ParseError(binary.substr(0, 50)), "f: truncated: 2 of 77 payload bytes");
  EXPECT_EQ(ParseError(binary + "x"), "f: damaged: its digest does not match");
  EXPECT_EQ(ParseError(newer), "f: has format version '2', this program reads 1");
  EXPECT_EQ(ParseError(binary, "rules"), "f: is a file of kind 'plan', not 'rules'");
  EXPECT_EQ(ParseError("\x7f"
                       "ELF\x02\x01"),
            "f: is not an Isomer file (a file of kind 'plan' was expected)");
  EXPECT_EQ(ParseError("# isomer plan v9\n# end\n"),
            "f: has format version '9', this program reads 1");
  EXPECT_EQ(ParseError("# isomer plan v1\nname: 'x'\n"),
            "f: truncated: its last line is not '# end'");
  EXPECT_EQ(ParseError("# isomer plan v1\nname: 'x'\n  nome: 'y'\n# end\n"),
            "f:3:7: Message type \"google.protobuf.FileDescriptorProto\" has no field named "
            "\"nome\".");
}

TEST(ProtoIo, HandWrittenTextNeedsNoHeaderWhereThatIsAllowed) {
  EXPECT_EQ(ParseError("# mine\nname: 'x'\n", "machine", TextHeader::kOptional), "");
  EXPECT_THAT(ParseError("name: 'x'\n", "machine"), HasSubstr("is not an Isomer file"));
  EXPECT_THAT(ParseError("na\x01me", "machine", TextHeader::kOptional),
              HasSubstr("is not an Isomer file"));
}

TEST(File, WritingIntoNoFolderSaysSo) {
  TemporaryFolder folder;
  EXPECT_EQ(WriteFileAtomically(folder / "none/x", "").message(),
            (folder / "none/x") + ": the folder to write to does not exist");
}

TEST(ProtoIo, ErrorsLeaveTheFileNameInFront) {
  TemporaryFolder folder;
  FileDescriptorProto message;
  EXPECT_EQ(LoadProto(folder / "none", "plan", &message).message(),
            (folder / "none") + ": no such file");
}

absl::StatusOr<std::vector<std::string>> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return ParseCommandLine(arguments.size(), arguments.data());
}

TEST(Program, FlagsAndArgumentsAreToldApart) {
  EXPECT_THAT(
      *Parse({"model.onnx", "--support_test_budget=3", "-", "--support_test_check", "plan"}),
      ElementsAre("model.onnx", "-", "plan"));
  EXPECT_EQ(absl::GetFlag(FLAGS_support_test_budget), 3);
  EXPECT_TRUE(absl::GetFlag(FLAGS_support_test_check));
  EXPECT_THAT(*Parse({"--nosupport_test_check", "-support_test_budget", "-4", "--", "--x"}),
              ElementsAre("--x"));
  EXPECT_EQ(absl::GetFlag(FLAGS_support_test_budget), -4);
  EXPECT_FALSE(absl::GetFlag(FLAGS_support_test_check));
}

TEST(Program, BadFlagsAreNamed) {
  EXPECT_EQ(Parse({"--budgt=3"}).status().message(), "unknown flag --budgt (see --help)");
  EXPECT_EQ(Parse({"--support-test-budget=3"}).status().message(),
            "unknown flag --support-test-budget (did you mean --support_test_budget?)");
  EXPECT_EQ(Parse({"--support_test_budget"}).status().message(),
            "flag --support_test_budget needs a value");
  EXPECT_THAT(std::string(Parse({"--support_test_budget=x"}).status().message()),
              StartsWith("flag --support_test_budget: 'x' is no value for it"));
}

TEST(Program, HelpIsShort) {
  const std::string help =
      HelpText({.name = "p", .purpose = "Does it.", .usage = "FILE", .example = "p x"});
  EXPECT_THAT(help, StartsWith("Does it.\n\nUsage: p FILE\n\nFlags:\n"));
  EXPECT_THAT(help, HasSubstr("  --support_test_budget: for tests (7)\n"));
  EXPECT_THAT(help, HasSubstr("\nOf every program: --help "));
  EXPECT_THAT(help, testing::EndsWith("\nExample:\n  p x\n"));
  EXPECT_THAT(help, testing::Not(HasSubstr("flagfile")));
}

int Exit(std::vector<const char*> arguments, absl::StatusOr<int> result) {
  arguments.insert(arguments.begin(), "p");
  return RunProgram({.name = "p", .purpose = "", .usage = "", .example = ""}, arguments.size(),
                    arguments.data(), [&](const auto&) { return result; });
}

TEST(Program, OneDeclarationFeedsHelpManualAndCompletion) {
  const ProgramInfo info{.name = "p-q",
                         .purpose = "Does it.",
                         .usage = "",
                         .example = "p-q run x",
                         .commands = {{"run", "FILE", "Runs .it.", {"support_test_budget"}}},
                         .version = {{"version", "1.2"}, {"commit", "abc"}},
                         .words = [] {
                           return CompletionWords{
                               .of_flags = {{"support_test_budget", {"7", "it's"}}},
                               .arguments = {"zoo:a"}};
                         }};
  EXPECT_THAT(HelpText(info), HasSubstr("Usage: p-q run FILE\n"));
  const std::string page = *HelpIn("man", info);
  EXPECT_THAT(page,
              HasSubstr(".TP\n\\fBrun\\fR FILE\nRuns .it. Flags: \\-\\-support_test_budget\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-support_test_budget\\fR=\\fIN\\fR\n"));
  EXPECT_THAT(*HelpIn("bash", info),
              HasSubstr("--support_test_budget) words='7 it'\\''s' files='' ;;"));
  EXPECT_THAT(*HelpIn("zsh", info), HasSubstr("compadd -- '7' 'it'\\''s'\n"));
  EXPECT_THAT(*HelpIn("fish", info), HasSubstr("-l support_test_budget -x -a '7 it\\'s' -d"));
  EXPECT_EQ(HelpIn("html", info).status().message(),
            "--help=html: there are man, bash, zsh and fish");
  EXPECT_EQ(VersionText(info.name, info.version), "p-q 1.2\ncommit: abc\n");
}

TEST(Program, ExitCodes) {
  EXPECT_EQ(Exit({}, kExitDone), 0);
  EXPECT_EQ(Exit({}, kExitNo), 1);
  EXPECT_EQ(Exit({"--help"}, kExitNo), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Exit({}, absl::InvalidArgumentError("a\n b")), 2);
  EXPECT_EQ(Exit({"--what"}, kExitDone), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: a  b\nerror: unknown flag --what (see --help)\n");
}

TEST(Program, SummaryGoesToTheJsonFlagsFile) {
  TemporaryFolder folder;
  ASSERT_TRUE(WriteJsonSummary(Json(1)).ok());
  const std::string flag = "--json=" + (folder / "out.json");
  ASSERT_TRUE(Parse({flag.c_str()}).ok());
  ASSERT_TRUE(WriteJsonSummary(Json(1)).ok());
  EXPECT_EQ(*ReadFile(folder / "out.json"), "1\n");
  absl::SetFlag(&FLAGS_json, "");
}

}  // namespace
}  // namespace isomer
