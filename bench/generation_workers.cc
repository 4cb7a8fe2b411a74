// How long would generation take by so many workers on so many computers, and what would they wait
// for? The generator itself runs, with workers that only exist in simulated time: an item is done
// when it is dealt out, here, and what it took in CPU time is when its worker has it done. Between,
// what this process does counts as the time of rank 0. Messages cost rank 0 time by their number
// and bytes, and arrive later. So what workers know when they begin an item, how far rank 0 looks
// ahead, and in which order items are dealt out is as in a real run (generator/workers/).
//
// The first run measures the items; those after it take its results and times, but for
// derivations, which depend on what their worker knows.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/resources.h"
#include "generator/pipeline/generate_command.h"
#include "generator/pipeline/memo.pb.h"
#include "generator/pipeline/step_records.h"
#include "generator/pipeline/steps.h"
#include "generator/workers/local_workers.h"
#include "pcg/support/check.h"
#include "pcg/support/little_endian.h"
#include "verifier/proving/prover.h"

ABSL_FLAG(std::string, ops, "all", "operators, separated by commas, or all");
ABSL_FLAG(int, max_ops, 3, "largest number of operators on one side of a rule");
ABSL_FLAG(int, composition_steps, 1, "as isomer-generate has it; 2 for four operators a side");
ABSL_FLAG(std::vector<std::string>, workers,
          std::vector<std::string>({"1", "2", "4", "8", "16", "32", "64", "256"}),
          "how many, for each simulation");
ABSL_FLAG(std::string, measured, "", "folder for what was measured, for other runs");
ABSL_FLAG(int, longest, 0, "items to list for each simulation, the longest");
ABSL_FLAG(double, message_us, 10, "time of rank 0 for a message");
ABSL_FLAG(double, bytes_per_us, 1000, "that rank 0 sends or receives");
ABSL_FLAG(double, latency_us, 200, "until a message is read: ranks look every 200 us");

namespace isomer {
namespace {

// What an item gave, and how long it took.
struct Measured {
  StepResult result;
  double seconds = 0;
};

struct StepTotal {
  int64_t items = 0;
  double seconds = 0, longest = 0;
  double last = 0;  // when the last one was done
};

// When a worker did an item.
struct DoneItem {
  StepItem item;
  double begins = 0, seconds = 0;
};

// What an item is about, for people.
std::string NameOf(const StepItem& item) {
  if (item.step == "families") {
    proto::FamiliesInput input;
    ISOMER_CHECK(input.ParseFromString(item.input));
    return input.form() + " of " + input.kind();
  }
  if (item.step == "enumerate") {
    proto::EnumerationInput input;
    ISOMER_CHECK(input.ParseFromString(item.input));
    return input.configuration();
  }
  if (item.step == "generalize") {
    proto::GeneralizationInput input;
    ISOMER_CHECK(input.ParseFromString(item.input));
    return ConstantRule(*DecodeCandidate(input.candidate())).ToString();
  }
  if (item.step != "prove") return "";
  const Rule rule = DecodeGeneralRule(item.input)->rule;
  return absl::StrFormat("%d ranks, %d nodes: %s", rule.ranks.size(),
                         rule.source.nodes.size() + rule.target.nodes.size(), rule.ToString());
}

// By the keys of items; in a folder, so that another run finds them.
class Measurements {
 public:
  explicit Measurements(Memo* memo) : memo_(memo) {}

  std::optional<Measured> Find(const StepItem& item) {
    if (const auto found = known_.find(item.key); found != known_.end()) return found->second;
    const std::optional<std::string> kept = memo_->Find(item.step, item.key);
    if (!kept.has_value() || kept->size() < sizeof(double)) return std::nullopt;
    const Measured measured{{kept->substr(sizeof(double))}, LittleEndianAt<double>(kept->data())};
    return known_[item.key] = measured;
  }
  void Put(const StepItem& item, const Measured& measured) {
    known_[item.key] = measured;
    std::string bytes;
    AppendLittleEndian(measured.seconds, &bytes);
    memo_->Put(item.key, bytes + measured.result.bytes);
  }

 private:
  Memo* const memo_;
  std::map<MemoKey, Measured> known_;
};

class SimulatedWorkers : public Workers {
 public:
  SimulatedWorkers(int count, const Steps* steps, Measurements* measurements)
      : steps_(steps), measurements_(measurements), workers_(count), mark_(CpuSeconds()) {}

  int count() const override { return static_cast<int>(workers_.size()); }

  void Start(uint64_t ticket, const StepItem& item) override {
    PassTime();
    waiting_.Add(ticket, item);
    DealOut();
    mark_ = CpuSeconds();
  }

  absl::StatusOr<FinishedItem> Next() override {
    PassTime();
    ISOMER_CHECK(!finished_.empty());
    const Finish first = finished_.top();
    finished_.pop();
    if (first.arrives > now_) {
      rank_0_waits_ += first.arrives - now_;
      now_ = first.arrives;
    }
    FinishedItem item = std::move(results_.at(first.ticket));
    results_.erase(first.ticket);
    CountMessage(item.result.bytes.size());
    --workers_[first.worker].open;
    workers_[first.worker].others -= first.is_other;
    DealOut();
    mark_ = CpuSeconds();
    return item;
  }

  void Tell(const StepItem& item, bool anew) override {
    PassTime();
    // To all, in the one process that there is: whatever is dealt out from now on knows it.
    steps_->at(item.step)(item.input);
    if (anew) told_bytes_.clear();
    for (SimulatedWorker& worker : workers_) worker.told = anew ? 0 : worker.told;
    told_bytes_.push_back(item.input.size());
    mark_ = CpuSeconds();
  }

  double now() const { return now_; }
  double rank_0_busy() const { return now_ - rank_0_waits_; }
  const std::map<std::string, StepTotal>& totals() const { return totals_; }
  double work() const {
    double seconds = 0;
    for (const auto& [step, total] : totals_) seconds += total.seconds;
    return seconds;
  }
  // So many of those that took longest.
  std::vector<DoneItem> Longest(size_t count) const {
    std::vector<DoneItem> longest = done_;
    std::stable_sort(longest.begin(), longest.end(),
                     [](const DoneItem& a, const DoneItem& b) { return a.seconds > b.seconds; });
    longest.resize(std::min(count, longest.size()));
    return longest;
  }
  StepTotal TotalOf(const std::string& step) const {
    const auto found = totals_.find(step);
    return found == totals_.end() ? StepTotal() : found->second;
  }
  void Finished() { PassTime(); }

 private:
  struct SimulatedWorker {
    double free_at = 0;
    int open = 0, others = 0;  // items; those that are not `first`
    size_t told = 0;
  };
  struct Finish {
    double arrives;
    uint64_t ticket;
    size_t worker;
    bool is_other;
    friend bool operator<(const Finish& a, const Finish& b) {  // The first is on top.
      return a.arrives != b.arrives ? a.arrives > b.arrives : a.ticket > b.ticket;
    }
  };

  // Of rank 0, since it was last here.
  void PassTime() {
    const double cpu = CpuSeconds();
    now_ += cpu - mark_;
    mark_ = cpu;
  }
  void CountMessage(size_t bytes) {
    now_ += 1e-6 * (absl::GetFlag(FLAGS_message_us) +
                    static_cast<double>(bytes) / absl::GetFlag(FLAGS_bytes_per_us));
  }

  // As RankWorkers do it.
  void DealOut() {
    for (int depth = 1; depth <= 2; ++depth) {
      for (size_t w = 0; w < workers_.size(); ++w) {
        if (waiting_.empty() || (depth == 2 && !waiting_.HasManyFor(workers_.size()))) {
          return;
        }
        const bool may_have_two = workers_[w].others == 0;
        if (workers_[w].open < depth && (depth == 1 || may_have_two)) Give(w, waiting_.Take());
      }
    }
  }

  void Give(size_t number, const WaitingItems::Item& next) {
    SimulatedWorker& worker = workers_[number];
    for (; worker.told < told_bytes_.size(); ++worker.told) CountMessage(told_bytes_[worker.told]);
    CountMessage(next.item.input.size());
    const Measured measured = Do(next.item);
    const double latency = 1e-6 * absl::GetFlag(FLAGS_latency_us);
    // With an item at hand a worker does not wait for this one.
    const double begins = std::max(worker.free_at, now_ + latency);
    worker.free_at = begins + measured.seconds;
    ++worker.open;
    worker.others += !next.item.first;
    StepTotal& total = totals_[next.item.step];
    ++total.items;
    total.seconds += measured.seconds;
    total.longest = std::max(total.longest, measured.seconds);
    total.last = std::max(total.last, worker.free_at);
    if (absl::GetFlag(FLAGS_longest) > 0) done_.push_back({next.item, begins, measured.seconds});
    finished_.push({worker.free_at + latency, next.ticket, number, !next.item.first});
    results_[next.ticket] = {next.ticket, measured.result};
  }

  Measured Do(const StepItem& item) {
    const bool has_key = item.key != MemoKey{};
    if (has_key) {
      if (const std::optional<Measured> known = measurements_->Find(item)) return *known;
    }
    const double before = CpuSeconds();
    Measured measured;
    measured.result = steps_->at(item.step)(item.input);
    measured.seconds = CpuSeconds() - before;
    if (has_key) measurements_->Put(item, measured);
    return measured;
  }

  const Steps* const steps_;
  Measurements* const measurements_;
  std::vector<SimulatedWorker> workers_;
  WaitingItems waiting_;
  std::vector<size_t> told_bytes_;
  std::priority_queue<Finish> finished_;
  std::map<uint64_t, FinishedItem> results_;
  std::map<std::string, StepTotal> totals_;
  std::vector<DoneItem> done_;
  double now_ = 0, rank_0_waits_ = 0;
  double mark_ = 0;
};

Judge MakeJudge() {
  return [prover = std::make_shared<Prover>()](const Rule& rule) {
    Judgement judgement = prover->Judge(rule);
    Verdict verdict{std::move(judgement.record), std::nullopt};
    if (judgement.counterexample.has_value()) {
      verdict.counterexample = judgement.counterexample->binding;
    }
    return verdict;
  };
}

GenerateCommand CommandOfFlags() {
  GenerateCommand command;
  command.options.max_operators = absl::GetFlag(FLAGS_max_ops);
  command.options.composition_steps = absl::GetFlag(FLAGS_composition_steps);
  const std::string ops = absl::GetFlag(FLAGS_ops);
  if (ops == "all") {
    command.options.kinds = {AllOpKinds().begin(), AllOpKinds().end()};
  } else {
    for (const absl::string_view name : absl::StrSplit(ops, ',')) {
      const auto kind = ParseOpKind(name);
      ISOMER_CHECK(kind.ok());
      command.options.kinds.insert(*kind);
    }
  }
  return command;
}

void Main() {
  const Steps steps = GeneratorSteps(MakeJudge)();
  absl::StatusOr<std::unique_ptr<Memo>> memo = std::make_unique<Memo>();
  if (!absl::GetFlag(FLAGS_measured).empty()) memo = Memo::Open(absl::GetFlag(FLAGS_measured));
  ISOMER_CHECK(memo.ok());
  Measurements measurements(memo->get());
  uint64_t digest = 0;
  double first_work = 0;  // workers times seconds, of the first simulation
  for (const std::string& text : absl::GetFlag(FLAGS_workers)) {
    int count = 0;
    ISOMER_CHECK(absl::SimpleAtoi(text, &count) && count > 0);
    SimulatedWorkers workers(count, &steps, &measurements);
    GenerateCommand command = CommandOfFlags();
    command.workers = &workers;
    const auto outcome = RunGenerate(command);
    ISOMER_CHECK(outcome.ok());
    workers.Finished();
    if (digest == 0) {
      for (const auto& [step, total] : workers.totals()) {
        absl::PrintF("%-10s %6d items %8.2f s, the longest %.2f s\n", step, total.items,
                     total.seconds, total.longest);
      }
      absl::PrintF(
          "| workers | time, s | speed of each | families until | candidates until | proofs until "
          "| derive, s | generalize, s | work, s | of the time used | rank 0 at work, s |\n");
      absl::PrintF("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
      first_work = count * workers.now();
    }
    // The same, whoever works.
    ISOMER_CHECK(digest == 0 || digest == outcome->proved.Digest());
    digest = outcome->proved.Digest();
    const StepTotal derive = workers.TotalOf("derive"), generalize = workers.TotalOf("generalize");
    const double percent = 100 / (count * workers.now());
    absl::PrintF(
        "| %d | %.2f | %.0f %% | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f %% | %.2f |\n",
        count, workers.now(), percent * first_work, workers.TotalOf("families").last,
        std::max(derive.last, generalize.last), workers.TotalOf("prove").last, derive.seconds,
        generalize.seconds, workers.work(), percent * workers.work(), workers.rank_0_busy());
    for (const DoneItem& done : workers.Longest(absl::GetFlag(FLAGS_longest))) {
      absl::PrintF("  %.2f s from %.2f on: %s: %s\n", done.seconds, done.begins, done.item.step,
                   NameOf(done.item));
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace isomer

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "What isomer-generate would take by so many workers, from the time of each of its items.");
  absl::ParseCommandLine(argc, argv);
  isomer::Main();
}
