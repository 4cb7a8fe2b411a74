#include "bench/search/tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/search/findings.h"
#include "bench/search/proposers.h"
#include "pcg/support/status_macros.h"

namespace isomer {
namespace {

// Unity (OSDI'22), section 7.1: samples a device; its speed-ups over the best of experts' plans and
// of TASO with FlexFlow (figure 14).
struct UnityModel {
  const char* name;
  int64_t batch_per_device;
  double speedup;
};
constexpr UnityModel kUnityModels[] = {
    {"resnext50", 64, 1.0}, {"inception_v3", 64, 1.3}, {"bert_large", 4, 1.0}, {"dlrm", 1024, 3.6},
    {"xdl", 1024, 1.9},     {"candle_uno", 256, 1.6},  {"mlp", 256, 2.0}};
constexpr int64_t kSummitNode = 6;

OptimizerJob UnityJob(const UnityModel& model, int64_t nodes) {
  return {.model = absl::StrCat("zoo:", model.name),
          .machine = "summit",
          .nodes = nodes,
          .devices_per_node = kSummitNode,
          .batch_size = model.batch_per_device * nodes * kSummitNode};
}

std::string Seconds(double s) { return absl::StrFormat(s < 10 ? "%.2f" : "%.1f", s); }
std::string Gigabytes(int64_t bytes) {
  return absl::StrFormat("%.2f", static_cast<double>(bytes) / (1 << 30));
}

// The time of a run, or why there is none.
std::string TimeText(const Outcome& outcome, double limit_s) {
  if (outcome.run.timed_out) return absl::StrFormat("> %.0f", limit_s);
  return outcome.found() ? Seconds(outcome.run.seconds) : "no plan";
}

}  // namespace

absl::StatusOr<Table> AblationTable(const TableContext& context) {
  struct Ablation {
    const char* column;
    std::vector<std::string> flags;
  };
  const Ablation kAblations[] = {{"all s", {}},
                                 {"no splitting s", {"--nosplit"}},
                                 {"nor cache s", {"--nosplit", "--nocache"}},
                                 {"no dynamic program s", {"--search=enumeration"}}};
  // What finishes at all does so soon.
  constexpr double kAblationLimit = 120;
  struct UnityRow {
    int64_t nodes;
    const char *all, *no_splitting;
  };
  // 192, 1,152 and 9,216 devices are ours: whole nodes near 1,024 and 8,192 devices.
  constexpr UnityRow kRows[] = {{1, "57", "241"},     {2, "107", "675"}, {4, "180", "> 3600"},
                                {8, "355", "> 3600"}, {32, "", ""},      {192, "", ""},
                                {1536, "", ""}};
  std::vector<std::string> columns = {"devices"};
  for (const Ablation& ablation : kAblations) columns.push_back(ablation.column);
  columns.insert(columns.end(),
                 {"all CPU s", "step us", "GiB", "Unity: all s", "Unity: no splitting s"});
  Table table("ablation", columns);
  for (const UnityRow& row : kRows) {
    std::vector<std::string> cells = {absl::StrCat(row.nodes * kSummitNode)};
    std::string cpu, step, memory;
    for (const Ablation& ablation : kAblations) {
      const bool whole = ablation.flags.empty();
      if (!whole && row.nodes > 8) {
        cells.push_back("");
        continue;
      }
      OptimizerJob job = UnityJob(kUnityModels[0], row.nodes);
      job.flags = ablation.flags;
      const double limit_s = whole ? context.limit_s : std::min(kAblationLimit, context.limit_s);
      ISOMER_ASSIGN_OR_RETURN(const Outcome outcome, context.runner.Run(job, limit_s));
      cells.push_back(TimeText(outcome, limit_s));
      if (!whole || !outcome.found()) continue;
      ISOMER_ASSIGN_OR_RETURN(const double us, outcome.summary.Number("predicted_step_us"));
      cpu = Seconds(outcome.run.cpu_seconds);
      step = absl::StrFormat("%.0f", us);
      memory = Gigabytes(outcome.run.peak_bytes);
    }
    cells.insert(cells.end(), {cpu, step, memory, row.all, row.no_splitting});
    table.AddRow(std::move(cells));
  }
  return table;
}

absl::StatusOr<Table> UnityModelsTable(const TableContext& context) {
  Table table("models", {"network", "s", "CPU s", "GiB", "step us", "data_parallel us",
                         "candidates", "stopped", "goal s"});
  for (const UnityModel& model : kUnityModels) {
    if (!context.Wants(model.name)) continue;
    ISOMER_ASSIGN_OR_RETURN(const Outcome outcome,
                            context.runner.Run(UnityJob(model, 32), context.limit_s));
    if (!outcome.found()) {
      table.AddRow({model.name, TimeText(outcome, context.limit_s), "", "", "", "", "", "", "5"});
      continue;
    }
    ISOMER_ASSIGN_OR_RETURN(const double step, outcome.summary.Number("predicted_step_us"));
    ISOMER_ASSIGN_OR_RETURN(const double candidates, outcome.summary.Number("search.candidates"));
    ISOMER_ASSIGN_OR_RETURN(const std::string stop, outcome.summary.Text("search.stop_reason"));
    const auto data_parallel = outcome.summary.Number("baselines.data_parallel.predicted_step_us");
    table.AddRow({model.name, Seconds(outcome.run.seconds), Seconds(outcome.run.cpu_seconds),
                  Gigabytes(outcome.run.peak_bytes), absl::StrFormat("%.0f", step),
                  data_parallel.ok() ? absl::StrFormat("%.0f", *data_parallel) : "",
                  absl::StrFormat("%.0f", candidates), stop, "5"});
  }
  return table;
}

absl::StatusOr<Table> LargeModelsTable(const TableContext& context) {
  struct Large {
    const char* model;
    int64_t nodes, batch;
  };
  // Samples of a step: 2 million tokens of GPT-3 on 1,024 devices (3 million as published) and 33
  // on 16,384; of Llama 3 8 million (16 as published) and 16; GShard's 4 million, and as many of
  // each device on 16,384.
  constexpr Large kLarge[] = {{"gpt_175b", 128, 1024},   {"gpt_175b", 2048, 16384},
                              {"llama_405b", 128, 1024}, {"llama_405b", 2048, 2048},
                              {"gshard_moe", 128, 4096}, {"gshard_moe", 2048, 16384}};
  Table table("large", {"network", "devices", "s", "CPU s", "GiB", "step ms", "of rate %",
                        "device GiB", "stages", "micro-batches", "goal s"});
  for (const Large& large : kLarge) {
    if (!context.Wants(large.model)) continue;
    const OptimizerJob job{.model = absl::StrCat("zoo:", large.model),
                           .machine = "dgx_h100",
                           .nodes = large.nodes,
                           .devices_per_node = 8,
                           .batch_size = large.batch,
                           .flags = {"--precision=bfloat16", "--optimizer=adam", "--loss_alone"}};
    ISOMER_ASSIGN_OR_RETURN(const Outcome outcome, context.runner.Run(job, context.limit_s));
    if (!outcome.found()) {
      table.AddRow({large.model, absl::StrCat(job.devices()), TimeText(outcome, context.limit_s),
                    Seconds(outcome.run.cpu_seconds), Gigabytes(outcome.run.peak_bytes), "", "", "",
                    "", "", "30"});
      table.AddNote(absl::StrCat(large.model, " on ", job.devices(), ": ", outcome.run.complaint));
      continue;
    }
    const Summary& summary = outcome.summary;
    ISOMER_ASSIGN_OR_RETURN(const double us, summary.Number("predicted_step_us"));
    ISOMER_ASSIGN_OR_RETURN(const double bytes, summary.Number("predicted_peak_bytes"));
    const auto peak = summary.Number("share_of_rate");
    const auto stages = summary.Number("pipeline.stages");
    const auto micro_batches = summary.Number("pipeline.micro_batches");
    table.AddRow({large.model, absl::StrCat(job.devices()), Seconds(outcome.run.seconds),
                  Seconds(outcome.run.cpu_seconds), Gigabytes(outcome.run.peak_bytes),
                  absl::StrFormat("%.1f", us / 1000),
                  peak.ok() ? absl::StrFormat("%.0f", 100 * *peak) : "",
                  absl::StrFormat("%.1f", bytes / (1 << 30)),
                  stages.ok() ? absl::StrFormat("%.0f", *stages) : "1",
                  micro_batches.ok() ? absl::StrFormat("%.0f", *micro_batches) : "1", "30"});
  }
  return table;
}

absl::StatusOr<Table> SpeedupTable(const TableContext& context) {
  Table table("speedup", {"network", "devices", "step us", "over published", "over data parallel",
                          "over sequential", "Unity: best over published or sequential"});
  for (const UnityModel& model : kUnityModels) {
    if (!context.Wants(model.name)) continue;
    for (int64_t nodes : {1, 2, 4, 8, 16, 32}) {
      OptimizerJob job = UnityJob(model, nodes);
      job.flags = {"--loss_alone"};
      const auto joint = context.runner.RunToPlan(job, context.limit_s);
      job.flags.push_back("--search=sequential");
      const auto sequential = context.runner.RunToPlan(job, context.limit_s);
      if (!joint.ok() || !sequential.ok()) {
        const absl::Status& why = joint.ok() ? sequential.status() : joint.status();
        table.AddRow({model.name, absl::StrCat(job.devices()), "none", "", "", "", ""});
        table.AddNote(std::string(why.message()));
        continue;
      }
      ISOMER_ASSIGN_OR_RETURN(const double us, joint->summary.Number("predicted_step_us"));
      ISOMER_ASSIGN_OR_RETURN(const double other, sequential->summary.Number("predicted_step_us"));
      const auto over = [&](const char* baseline) -> std::string {
        const auto base =
            joint->summary.Number(absl::StrCat("baselines.", baseline, ".predicted_step_us"));
        return base.ok() ? absl::StrFormat("%.2f", *base / us) : "";
      };
      const std::string expert = over("published").empty() ? over("megatron") : over("published");
      table.AddRow({model.name, absl::StrCat(job.devices()), absl::StrFormat("%.0f", us), expert,
                    over("data_parallel"), absl::StrFormat("%.2f", other / us),
                    absl::StrFormat("%.1f", model.speedup)});
    }
  }
  return table;
}

absl::StatusOr<Table> MemoryTable(const TableContext& context) {
  Table table("memory", {"network", "limit %", "limit GiB", "s", "plan GiB", "step us", "slower",
                         "update", "stages", "recomputed"});
  for (const char* model : {"encoder", "bert_large", "resnext50", "gpt", "vgg19", "mlp"}) {
    if (!context.Wants(model)) continue;
    // The logits of a language model's batch are larger than the limits.
    std::vector<std::string> flags = {"--optimizer=adam"};
    const bool is_gpt = std::string(model) == "gpt";
    if (is_gpt) flags.push_back("--loss_alone");
    OptimizerJob job{.model = absl::StrCat("zoo:", model),
                     .machine = "dgx_h100",
                     .nodes = is_gpt ? 2 : 1,
                     .devices_per_node = 8,
                     .batch_size = std::string(model) == "vgg19" ? 256 : 0,
                     .flags = flags};
    ISOMER_ASSIGN_OR_RETURN(const Outcome free, context.runner.RunToPlan(job, context.limit_s));
    ISOMER_ASSIGN_OR_RETURN(const double peak, free.summary.Number("predicted_peak_bytes"));
    ISOMER_ASSIGN_OR_RETURN(const double free_us, free.summary.Number("predicted_step_us"));
    for (const int percent : {100, 75, 50, 35}) {
      const double limit = peak * percent / 100;
      job.flags = flags;
      job.flags.push_back(absl::StrFormat("--device_memory_gib=%.17g", limit / (1 << 30)));
      ISOMER_ASSIGN_OR_RETURN(const Outcome outcome, context.runner.Run(job, context.limit_s));
      std::vector<std::string> cells = {model, absl::StrCat(percent),
                                        absl::StrFormat("%.3f", limit / (1 << 30)),
                                        TimeText(outcome, context.limit_s)};
      if (!outcome.found()) {
        table.AddNote(absl::StrCat(model, " at ", percent, " %: ", outcome.run.complaint));
        cells.resize(10);
        table.AddRow(std::move(cells));
        continue;
      }
      const Summary& summary = outcome.summary;
      ISOMER_ASSIGN_OR_RETURN(const double bytes, summary.Number("predicted_peak_bytes"));
      ISOMER_ASSIGN_OR_RETURN(const double us, summary.Number("predicted_step_us"));
      ISOMER_ASSIGN_OR_RETURN(std::string update, summary.Text("update"));
      const auto is_set = [&](const char* key) {
        const auto* value = summary.Find(key);
        return value != nullptr && value->bool_value();
      };
      if (is_set("immediate_updates")) absl::StrAppend(&update, ", at once");
      if (is_set("states_on_host")) absl::StrAppend(&update, ", states on the host");
      const auto stages = summary.Number("pipeline.stages");
      const auto recomputed = summary.Number("recomputed_operators");
      cells.insert(cells.end(), {absl::StrFormat("%.3f", bytes / (1 << 30)),
                                 absl::StrFormat("%.0f", us), absl::StrFormat("%.2f", us / free_us),
                                 update, stages.ok() ? absl::StrFormat("%.0f", *stages) : "1",
                                 recomputed.ok() ? absl::StrFormat("%.0f", *recomputed) : "0"});
      if (bytes > limit) table.AddNote(absl::StrCat(model, " at ", percent, " %: DOES NOT FIT"));
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

absl::StatusOr<Table> ScaleTable(const TableContext& context) {
  struct Entry {
    const char* model;
    int64_t nodes, batch;
  };
  constexpr Entry kEntries[] = {{"gpt?layers=385&hidden=768", 1, 64},
                                {"gpt?layers=3846&hidden=768", 1, 64},
                                {"gpt?layers=3846&hidden=768", 2048, 16384}};
  Table table("scale", {"network", "operators", "devices", "s", "GiB", "goal GiB"});
  // The logits of such a batch are more than any device has.
  for (const Entry& entry : kEntries) {
    const OptimizerJob job{.model = absl::StrCat("zoo:", entry.model),
                           .machine = "dgx_h100",
                           .nodes = entry.nodes,
                           .devices_per_node = 8,
                           .batch_size = entry.batch,
                           .flags = {"--loss_alone"}};
    ISOMER_ASSIGN_OR_RETURN(const Outcome outcome, context.runner.Run(job, context.limit_s));
    const auto operators = outcome.summary.Number("operators");
    table.AddRow({entry.model, operators.ok() ? absl::StrFormat("%.0f", *operators) : "",
                  absl::StrCat(job.devices()), TimeText(outcome, context.limit_s),
                  Gigabytes(outcome.run.peak_bytes), "4"});
    if (!outcome.found()) table.AddNote(outcome.run.complaint);
  }
  return table;
}

absl::Span<const NamedTable> AllTables() {
  static constexpr NamedTable kTables[] = {
      {"ablation", "ResNeXt-50 on Summit without parts of the search", AblationTable},
      {"models", "Unity's seven networks on 192 devices", UnityModelsTable},
      {"large", "networks of 10^11 parameters on 1,024 and 16,384 devices", LargeModelsTable},
      {"speedup", "over experts' plans and over the sequential search", SpeedupTable},
      {"findings", "what Unity found, looked for in the plans", FindingsTable},
      {"memory", "plans under limits of memory", MemoryTable},
      {"scale", "100,000 operators, 16,384 devices", ScaleTable},
      {"proposers", "each proposer of plans switched off, an hour and more", ProposersTable},
      {"changes", "plans of the zoo that are others than --before found", ChangesTable}};
  return kTables;
}

}  // namespace isomer
