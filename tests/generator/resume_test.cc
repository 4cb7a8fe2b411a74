// The same rules for any number of jobs, after any interruption, and after a change at the cost of
// what it touches.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

#include "generator/enumeration/configuration.h"
#include "generator/pipeline/generate_command.h"
#include "generator/pipeline/prove_rules.h"
#include "rules/language/rule.h"

namespace isomer {
namespace {

std::string EmptyFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Takes every rule for proved but some, which it does not know: those stay open.
Judge Credulous() {
  return [](const Rule& rule) {
    Verdict verdict;
    verdict.record.verdict =
        rule.Digest() % 8 == 0 ? ProofRecord::Verdict::kUnknown : ProofRecord::Verdict::kProved;
    return verdict;
  };
}

GenerateCommand CommandIn(const std::string& folder, int jobs) {
  GenerateCommand command;
  command.options.kinds = {OpKind::kRelu,      OpKind::kScale,  OpKind::kTanh,
                           OpKind::kReplicate, OpKind::kReduce, OpKind::kPartition};
  command.options.max_operators = 2;
  command.jobs = jobs;
  command.files = {folder + "/out.rules"};
  command.work_dir = folder;
  command.make_judge = Credulous;
  return command;
}

GenerateOutcome RunWhole(const GenerateCommand& command) {
  absl::StatusOr<GenerateOutcome> outcome = RunGenerate(command);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *std::move(outcome) : GenerateOutcome();
}

uint64_t DigestIn(const std::string& folder) {
  const absl::StatusOr<RuleSet> rules = LoadRules(folder + "/out.rules");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? rules->Digest() : 0;
}

// The folder of an uninterrupted run.
const std::string& WholeRun() {
  static const std::string folder = [] {
    const std::string made = EmptyFolder("resume_whole");
    EXPECT_GT(RunWhole(CommandIn(made, 1)).proved.rules.size(), 10u);
    return made;
  }();
  return folder;
}

uint64_t ExpectedDigest() { return DigestIn(WholeRun()); }

// A copy of it, to go on from.
std::string CopyOfWholeRun(const std::string& name) {
  const std::string folder = EmptyFolder(name);
  std::filesystem::copy(WholeRun(), folder, std::filesystem::copy_options::recursive);
  return folder;
}

int64_t SizeOfLog(const std::string& folder) {
  struct stat state;
  return stat((folder + "/memo.log").c_str(), &state) == 0 ? state.st_size : 0;
}

// Runs in a child until the log has grown by `bytes`, then kills it with SIGKILL. False: it ended
// before.
bool RunAndKill(const GenerateCommand& command, int64_t bytes) {
  const int64_t enough = SizeOfLog(command.work_dir) + bytes;
  const pid_t child = fork();
  if (child == 0) {
    _exit(RunGenerate(command).ok() ? 0 : 1);
  }
  int state = 0;
  while (SizeOfLog(command.work_dir) < enough) {
    if (waitpid(child, &state, WNOHANG) == child) {
      EXPECT_EQ(state, 0);
      return false;
    }
    usleep(200);
  }
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, &state, 0), child);
  return WIFSIGNALED(state);
}

TEST(Resume, SameDigestForAnyNumberOfJobs) {
  for (int jobs : {2, 3}) {
    const std::string folder = EmptyFolder("resume_jobs");
    RunWhole(CommandIn(folder, jobs));
    EXPECT_EQ(DigestIn(folder), ExpectedDigest()) << jobs;
  }
}

// Also of configurations that follow from declarations, and at four operators a side.
TEST(Resume, SameDigestForAnyNumberOfJobsOfEveryChoice) {
  for (const auto& [choice, max_operators] :
       {std::pair(ConfigurationChoice::kWritten, 4), std::pair(ConfigurationChoice::kBoth, 2)}) {
    std::set<uint64_t> digests;
    for (int jobs : {1, 3}) {
      const std::string folder = EmptyFolder("resume_choices");
      GenerateCommand command = CommandIn(folder, jobs);
      command.options.kinds = {OpKind::kRelu, OpKind::kAdd};
      command.options.configurations = choice;
      command.options.max_operators = max_operators;
      EXPECT_GT(RunWhole(command).proved.rules.size(), 5u);
      digests.insert(DigestIn(folder));
    }
    EXPECT_EQ(digests.size(), 1u) << max_operators;
  }
}

TEST(Resume, SameDigestAfterFiftyKills) {
  const uint64_t expected = ExpectedDigest();
  Random random(20);
  int kills = 0, chains = 0;
  for (; kills < 50; ++chains) {
    const std::string folder = EmptyFolder("resume_kills");
    while (kills < 50 && RunAndKill(CommandIn(folder, 1 + kills % 3), 1 + Below(&random, 2500))) {
      ++kills;
    }
    RunWhole(CommandIn(folder, 2));
    EXPECT_EQ(DigestIn(folder), expected) << "after " << kills << " kills";
  }
  RecordProperty("chains", chains);
}

int64_t Misses(const GenerateOutcome& outcome, const std::string& step) {
  const auto counts = outcome.memo.find(step);
  return counts == outcome.memo.end() ? 0 : counts->second.misses;
}

int64_t Hits(const GenerateOutcome& outcome, const std::string& step) {
  const auto counts = outcome.memo.find(step);
  return counts == outcome.memo.end() ? 0 : counts->second.hits;
}

TEST(Resume, NothingIsDoneTwice) {
  const std::string folder = CopyOfWholeRun("resume_again");
  const GenerateOutcome again = RunWhole(CommandIn(folder, 2));
  for (const char* step : {"families", "enumerate", "decide", "generalize"}) {
    EXPECT_EQ(Misses(again, step), 0) << step;
  }
  // More time might settle what is unknown.
  EXPECT_GT(again.unknown, 0);
  EXPECT_EQ(Misses(again, "prove"), again.unknown);
  EXPECT_EQ(DigestIn(folder), ExpectedDigest());
}

TEST(Resume, AChangedOperatorCostsWhatContainsIt) {
  const std::string folder = CopyOfWholeRun("resume_changed");
  GenerateCommand command = CommandIn(folder, 2);
  command.options.meanings[OpKind::kRelu] = 1;
  const GenerateOutcome changed = RunWhole(command);
  // Its own expansions and kernels, and the algebraic families and the definitions of the three
  // operators that it may stand around, or be a part of.
  EXPECT_EQ(Misses(changed, "families"), 2 + 3 + 3);
  int64_t with_relu = 0;
  for (const Configuration& c : Configurations(command.options.kinds, 2)) {
    with_relu += std::any_of(c.operators.begin(), c.operators.end(),
                             [](const Operator& op) { return op.kind() == OpKind::kRelu; });
  }
  EXPECT_EQ(Misses(changed, "enumerate"), with_relu);
  EXPECT_GT(Misses(changed, "generalize"), 0);
  EXPECT_GT(Hits(changed, "generalize"), 0);
  EXPECT_GT(Misses(changed, "prove"), changed.unknown);
  EXPECT_GT(Hits(changed, "prove"), 0);
  EXPECT_EQ(DigestIn(folder), ExpectedDigest());

  // And back: all of it is still there.
  command.options.meanings.clear();
  const GenerateOutcome back = RunWhole(command);
  EXPECT_EQ(Misses(back, "families") + Misses(back, "enumerate") + Misses(back, "generalize"), 0);
}

TEST(Resume, AnAddedOperatorCostsWhatContainsIt) {
  const std::string folder = EmptyFolder("resume_added");
  GenerateCommand command = CommandIn(folder, 2);
  command.options.kinds.erase(OpKind::kRelu);
  RunWhole(command);
  command.options.kinds.insert(OpKind::kRelu);
  const GenerateOutcome added = RunWhole(command);
  EXPECT_EQ(Misses(added, "families"), 4);  // its expansions, algebra, kernels, definition
  EXPECT_GT(Hits(added, "generalize"), 0);
  EXPECT_EQ(DigestIn(folder), ExpectedDigest());
}

}  // namespace
}  // namespace isomer
