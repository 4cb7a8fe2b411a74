// What changes weights, as a user asks for it: LAMB and Muon, averages, accumulation, plans that
// count clipping.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "pcg/ir/plan.h"
#include "pcg/support/file.h"
#include "tests/integration/program.h"

namespace isomer {
namespace {

using testing::HasSubstr;
using Flags = std::vector<std::string>;

Flags With(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

google::protobuf::Struct SummaryOf(const Flags& flags) {
  const std::string json = ScratchFile("summary.json");
  const ProgramResult result = RunBinary("isomer-run", With(flags, {"--json=" + json}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  google::protobuf::Struct summary;
  EXPECT_TRUE(
      google::protobuf::util::JsonStringToMessage(ReadFile(json).value_or(""), &summary).ok());
  return summary;
}

std::vector<double> NumbersOf(const google::protobuf::Struct& summary, const std::string& name) {
  std::vector<double> numbers;
  for (const auto& value : summary.fields().at(name).list_value().values()) {
    numbers.push_back(value.number_value());
  }
  return numbers;
}

std::string Planned(const std::string& model, const Flags& flags) {
  const std::string plan = ScratchFile("net.plan");
  const ProgramResult made = RunBinary(
      "isomer-optimize",
      With({model, "--machine=dgx_h100", "--nodes=1", "--cache=false", "--quiet", "--out=" + plan},
           flags));
  EXPECT_EQ(made.exit_code, 0) << made.err;
  return plan;
}

void ExpectAlike(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " " << i;
  }
}

// Data, tensor and pipeline parallelism, ZeRO 1 to 3.
std::vector<Flags> SeveralPlans() {
  return {{"--devices_per_node=2", "--plan=data_parallel", "--update=all_reduce"},
          {"--devices_per_node=2", "--plan=data_parallel", "--update=sharded"},
          {"--devices_per_node=4", "--plan=zero3"},
          {"--devices_per_node=4", "--plan=grid", "--tensor=2"},
          {"--devices_per_node=4", "--plan=grid", "--pipeline=2"}};
}

// Gradients that travel in bfloat16: the same numbers however devices exchange them, near those of
// the exact plan, and said by all who look at the plan.
TEST(LossyGradients, AreTheSameOnThreadsAndProcesses) {
  const std::string model = SourceFile("models/data/digits_cnn.onnx");
  const Flags machine = {"--machine=laptop_cpu", "--devices_per_node=2", "--optimizer=adam"};
  const Flags run = {absl::StrCat("--data=", SourceFile("models/data/digits.csv")),
                     "--learning_rate=0.01", "--steps=20"};
  const auto losses = [&](const std::string& plan, const Flags& more) {
    return NumbersOf(SummaryOf(With(With({plan}, run), more)), "loss");
  };
  for (const std::string kind : {"data_parallel", "zero3"}) {
    const Flags flags = With(machine, {"--plan=" + kind});
    const std::vector<double> exact = losses(Planned(model, flags), {});
    const std::string plan = Planned(model, With(flags, {"--gradient_precision=bfloat16"}));
    EXPECT_EQ(LoadPlan(plan)->update.gradient_sums, DataType::kBFloat16);
    const std::vector<double> lossy = losses(plan, {});
    ExpectAlike(lossy, exact, 0.05, kind);
    EXPECT_NE(lossy, exact);
    EXPECT_EQ(losses(plan, {"--communicator=processes"}), lossy) << kind;
    const ProgramResult check = RunBinary("isomer-run", {plan, "--check", "--steps=1"});
    EXPECT_EQ(check.exit_code, 0) << check.out;
    EXPECT_THAT(check.out, HasSubstr("gradients in float32, largest relative error"));
    EXPECT_THAT(check.out, HasSubstr("gradients in float32, summed in bfloat16, largest"));
    EXPECT_THAT(check.out, HasSubstr("it sums gradients over devices in bfloat16"));
    const ProgramResult verified = RunBinary("isomer-verify", {"plan", plan, "--model=" + model});
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
    EXPECT_THAT(verified.out, HasSubstr("it sums gradients over devices in bfloat16"));
    const ProgramResult exported = RunBinary(
        "isomer-optimize", With({"export", plan, "--to=megatron", "--out=" + ScratchFile("args")},
                                {machine[0], machine[1]}));
    EXPECT_NE(exported.exit_code, 0) << exported.out;
  }
}

TEST(LossyGradients, AreChosenWhereLinksAreSlow) {
  const std::string model = "zoo:mlp?layers=3&inputs=64&hidden=512&classes=10&batch=64";
  const std::string json = ScratchFile("auto.json");
  for (const std::string allowed : {"auto", "float32"}) {
    const ProgramResult result =
        RunBinary("isomer-optimize",
                  {model, "--machine=laptop_cpu", "--nodes=4", "--devices_per_node=1",
                   "--plan=data_parallel", "--cache=false", "--gradient_precision=" + allowed,
                   "--json=" + json, "--out=" + ScratchFile("auto.plan")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    google::protobuf::Struct summary;
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(ReadFile(json).value_or(""), &summary).ok());
    const auto& fields = summary.fields();
    EXPECT_EQ(fields.at("gradient_precision").string_value(),
              allowed == "auto" ? "bfloat16" : "float32");
    EXPECT_EQ(fields.contains("with_other_gradient_precision"), allowed == "auto");
    EXPECT_EQ(result.out.find("gradients in float32 ") != std::string::npos, allowed == "auto");
  }
}

TEST(WholeWeights, AreTrainedAlikeByEveryPlan) {
  const std::string model = SourceFile("models/data/bert_tiny.onnx");
  for (const Flags& flags : std::vector<Flags>{{"--learning_rate=0.02", "--weight_decay=0.1"},
                                               {"--learning_rate=0.005", "--clip_norm=0.3"}}) {
    const std::string optimizer =
        flags[0] == "--learning_rate=0.02" ? "--optimizer=lamb" : "--optimizer=muon";
    const Flags run = With({"--steps=5", "--gradient_norm"}, flags);
    const auto one = SummaryOf(With({model, optimizer}, run));
    for (const Flags& of_plan : SeveralPlans()) {
      const std::string plan = Planned(model, With({optimizer}, of_plan));
      const auto found = SummaryOf(With({plan}, run));
      const std::string what = absl::StrCat(optimizer, " ", of_plan[1], " ", of_plan.back());
      ExpectAlike(NumbersOf(found, "loss"), NumbersOf(one, "loss"), 2e-4, what);
    }
  }
}

// Tokens for a small GPT: as they are, in two batches and in four of a step.
TEST(Accumulate, IsALargerBatch) {
  const std::string tokens = ScratchFile("tokens.uint16.bin");
  std::string bytes;
  for (uint32_t i = 0, state = 7; i < 8 * 150; ++i) {
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<char>((state >> 24) % 32));
    bytes.push_back(0);
  }
  ASSERT_TRUE(WriteFileAtomically(tokens, bytes).ok());
  const auto model = [](int batch) {
    return absl::StrCat("zoo:gpt?layers=1&hidden=16&heads=2&vocabulary=32&seq=8&batch=", batch);
  };
  const Flags run = {"--data=" + tokens,  "--test_split=tail:20", "--epochs=2",
                     "--clip_norm=0.5",   "--gradient_norm",      "--learning_rate=0.01",
                     "--schedule=cosine", "--warmup_steps=3"};
  const auto whole = SummaryOf(With({model(16), "--optimizer=adam"}, run));
  for (int parts : {2, 4}) {
    const std::string accumulate = absl::StrCat("--accumulate=", parts);
    const auto found =
        SummaryOf(With(With({model(16 / parts), "--optimizer=adam"}, run), {accumulate}));
    for (const std::string name : {"loss", "gradient_norm"}) {
      ExpectAlike(NumbersOf(found, name), NumbersOf(whole, name), 1e-4, accumulate);
    }
  }
  for (const Flags& of_plan : SeveralPlans()) {
    const std::string plan = Planned(model(8), With({"--optimizer=adam", "--clip_norm"}, of_plan));
    const auto found = SummaryOf(With(With({plan}, run), {"--accumulate=2"}));
    ExpectAlike(NumbersOf(found, "loss"), NumbersOf(whole, "loss"), 2e-4, of_plan[1]);
  }
  const ProgramResult few =
      RunBinary("isomer-run", With({model(16)}, With(run, {"--accumulate=9"})));
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_THAT(few.err, HasSubstr("--accumulate=9: an epoch has 8 batches"));
}

TEST(Averages, AreTestedWrittenAndResumed) {
  const std::string folder = ScratchFile("averages.checkpoints");
  const std::string out = ScratchFile("averages.model"), again = ScratchFile("again.model");
  const Flags run = {"--data=" + SourceFile("models/data/digits.csv"), "--learning_rate=0.05",
                     "--average_decay=0.9", "--accumulate=2", "--test_split=every_fifth"};
  const std::string model = SourceFile("models/data/digits_cnn.onnx");
  const auto undisturbed =
      SummaryOf(With(With({model, "--steps=8", "--out=" + out}, run), {"--optimizer=momentum"}));
  std::filesystem::remove_all(folder);
  SummaryOf(With(With({model, "--steps=4", "--checkpoint_dir=" + folder}, run),
                 {"--optimizer=momentum"}));
  const std::string plan = Planned(model, {"--optimizer=momentum", "--devices_per_node=2",
                                           "--plan=zero3", "--average", "--clip_norm"});
  const auto resumed = SummaryOf(
      With({plan, "--steps=8", "--checkpoint_dir=" + folder, "--resume", "--out=" + again}, run));
  const std::vector<double> all = NumbersOf(undisturbed, "loss");
  ExpectAlike(NumbersOf(resumed, "loss"), {all.begin() + 4, all.end()}, 1e-5, "resumed");
  const auto test_of = [](const google::protobuf::Struct& summary) {
    return summary.fields().at("metrics").struct_value().fields().at("test_loss").number_value();
  };
  EXPECT_NEAR(test_of(resumed), test_of(undisturbed), 1e-4);
  const Model expected = LoadModel(out).value(), found = LoadModel(again).value();
  for (const auto& [name, value] : expected.weights) {
    ASSERT_TRUE(found.weights.contains(name)) << name;
  }
  // The weights themselves are others.
  const auto of_weights =
      SummaryOf(With(With({model, "--steps=8"}, run), {"--optimizer=momentum", "--nouse_average"}));
  EXPECT_NE(test_of(of_weights), test_of(undisturbed));
  EXPECT_EQ(NumbersOf(of_weights, "loss"), all);
}

TEST(Averages, BeginAndEndWithCheckpoints) {
  const std::string folder = ScratchFile("plain.checkpoints");
  std::filesystem::remove_all(folder);
  const std::string model = SourceFile("models/data/digits_cnn.onnx");
  const auto run = [&](const Flags& flags) {
    return RunBinary("isomer-run", With({model, "--checkpoint_dir=" + folder}, flags));
  };
  ASSERT_EQ(run({"--steps=2"}).exit_code, 0);
  const ProgramResult mean = run({"--steps=3", "--resume", "--average_decay=mean"});
  EXPECT_EQ(mean.exit_code, 2);
  EXPECT_THAT(mean.err, HasSubstr("a mean begins with --average_from=3 or later"));
  const ProgramResult begun = run({"--steps=3", "--resume", "--average_decay=0.9"});
  EXPECT_EQ(begun.exit_code, 0) << begun.err;
  EXPECT_THAT(begun.err, HasSubstr("has no averages: they begin with its weights"));
  const ProgramResult ended = run({"--steps=4", "--resume"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("has averages, which end here"));
}

// A plan that counts clipping updates late, takes longer, is right and needs no other flag.
TEST(ClippingInPlans, IsPricedAndNeedsNoOtherFlag) {
  const std::string model = SourceFile("models/data/bert_tiny.onnx");
  const Flags flags = {"--optimizer=adam", "--devices_per_node=4", "--plan=grid",
                       "--recompute=full", "--update=sharded",     "--bucket_bytes=1000"};
  const Plan without = LoadPlan(Planned(model, flags)).value();
  EXPECT_TRUE(without.update.immediate);
  const std::string path = Planned(model, With(flags, {"--clip_norm", "--average"}));
  const Plan with = LoadPlan(path).value();
  EXPECT_FALSE(with.update.immediate);
  EXPECT_TRUE(with.update.clips);
  EXPECT_TRUE(with.update.averages);
  EXPECT_GT(with.predicted_step_us, without.predicted_step_us);
  EXPECT_GT(with.predicted_peak_bytes, without.predicted_peak_bytes);
  const ProgramResult verified = RunBinary("isomer-verify", {"plan", path, "--model=" + model});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const ProgramResult clipped = RunBinary(
      "isomer-run", {path, "--steps=2", "--clip_norm=1", "--average_decay=0.9", "--check"});
  EXPECT_EQ(clipped.exit_code, 0) << clipped.out << clipped.err;
  EXPECT_THAT(clipped.err, testing::Not(HasSubstr("than the plan says")));
  const ProgramResult late = RunBinary("isomer-run", {path, "--steps=1", "--late_updates"});
  EXPECT_EQ(late.exit_code, 2);
  EXPECT_THAT(late.err, HasSubstr("--late_updates: the plan does not update weights as soon"));
}

TEST(OptimisationFlags, AreRefusedWhereTheyDoNotApply) {
  const std::string mlp = "zoo:mlp?batch=4";
  for (const auto& [program, arguments, why] :
       std::vector<std::tuple<std::string, Flags, std::string>>{
           {"isomer-run", {mlp, "--muon=w"}, "--muon does not apply to --optimizer=sgd"},
           {"isomer-run", {mlp, "--optimizer=muon", "--muon=("}, "is no regular expression"},
           {"isomer-run", {mlp, "--optimizer=muon", "--muon=nothing"}, "matches no weight"},
           {"isomer-run",
            {mlp, "--optimizer=muon", "--muon_scale=big"},
            "--muon_scale=big: there are adam and spectral"},
           {"isomer-run",
            {mlp, "--optimizer=muon", "--adam_rate=-1"},
            "--adam_rate=-1: a number from 0"},
           {"isomer-run", {mlp, "--accumulate=0"}, "--accumulate must be positive"},
           {"isomer-run",
            {mlp, "--accumulate=2", "--check"},
            "--check is of a step of one batch; not with --accumulate"},
           {"isomer-run", {mlp, "--average_every=2"}, "--average_every needs --average_decay"},
           {"isomer-run",
            {mlp, "--average_decay=1"},
            "--average_decay=1: a number from 0 and below 1 is expected, or mean"},
           {"isomer-run",
            {mlp, "--average_decay=mean", "--average_from=0"},
            "--average_from and --average_every must be positive"},
           {"isomer-run",
            {mlp, "--mode=inference", "--average_decay=0.9"},
            "--average_decay is for --mode=training"},
           {"isomer-optimize",
            {mlp, "--machine=laptop_cpu", "--out=x.plan", "--mode=inference", "--clip_norm"},
            "--clip_norm is for --mode=training"},
           {"isomer-optimize",
            {mlp, "--machine=laptop_cpu", "--out=x.plan", "--optimizer=lamb",
             "--steps_between_flushes=2"},
            "do not go with the optimizer lamb, for which all gradients of a step must be "
            "known"}}) {
    const ProgramResult result = RunBinary(program, arguments);
    EXPECT_EQ(result.exit_code, 2) << why << result.out;
    EXPECT_THAT(result.err, HasSubstr(why));
  }
}

}  // namespace
}  // namespace isomer
