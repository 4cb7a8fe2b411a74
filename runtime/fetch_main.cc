#include "runtime/fetch_main.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/partial_graph.h"
#include "pcg/ir/expert_room.h"
#include "pcg/schedule/lowering/lower.h"
#include "pcg/support/file.h"
#include "pcg/support/messages.h"
#include "pcg/support/output_files.h"
#include "pcg/support/program.h"
#include "pcg/support/status_macros.h"
#include "runtime/data/input_binding.h"
#include "runtime/data/npy_array.h"
#include "runtime/execution/host_memory.h"
#include "runtime/execution/host_values.h"
#include "runtime/execution/job.h"
#include "runtime/execution/leaf_values.h"

ABSL_FLAG(
    std::vector<std::string>, feed, {},
    "NAME=FILE.npy: with --fetch, the value of a tensor of the model by its ONNX name, an input "
    "or any other; what would make it does not run. May be given several times");
ABSL_FLAG(std::vector<std::string>, fetch, {},
          "NAME or NAME=FILE.npy: run once, forward, no more than this tensor needs, and print or "
          "write it: an output, an input, a weight, or what a call makes, by its ONNX name. May be "
          "given several times (docs/training.md)");

ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(bool, pin);

namespace isomer {
namespace {

struct Fetch {
  std::string name, path;  // path "": it is printed
  TensorRef tensor;
  DataType dtype;
};

// "NAME=FILE", of which both may have a '='. Of `names` the longest that begins `text`.
std::pair<std::string, std::string> SplitAtName(const std::map<std::string, TensorRef>& names,
                                                const std::string& text) {
  if (names.contains(text)) return {text, ""};
  for (size_t at = text.rfind('='); at != text.npos && at > 0; at = text.rfind('=', at - 1)) {
    if (names.contains(text.substr(0, at))) return {text.substr(0, at), text.substr(at + 1)};
  }
  const size_t first = text.find('=');
  return first == text.npos ? std::pair(text, std::string())
                            : std::pair(text.substr(0, first), text.substr(first + 1));
}

absl::Status WithFlag(absl::string_view flag, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--", flag, ": ", status.message()));
}

class Fetcher {
 public:
  Fetcher(Plan plan, bool is_plan, ProcessCommunicator* processes)
      : plan_(std::move(plan)),
        is_plan_(is_plan),
        processes_(processes),
        names_(TensorNames(plan_.graph)) {}

  absl::Status ReadFlags() {
    std::vector<NamedFile> read, written;
    for (const std::string& text : absl::GetFlag(FLAGS_feed)) {
      const auto [name, path] = SplitAtName(names_, text);
      if (path.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--feed=", text, ": NAME=FILE.npy is expected"));
      }
      ISOMER_RETURN_IF_ERROR(Feed(name, path));
      read.push_back({"--feed", path});
    }
    std::vector<std::string> fetched = absl::GetFlag(FLAGS_fetch);
    if (fetched.empty()) {
      for (const Graph::NamedOutput& output : plan_.graph.outputs()) fetched.push_back(output.name);
    }
    for (const std::string& text : fetched) {
      auto [name, path] = SplitAtName(names_, text);
      const absl::StatusOr<TensorRef> tensor = FindTensor(names_, name);
      if (!tensor.ok()) return WithFlag("fetch", tensor.status());
      if (!path.empty()) written.push_back({"--fetch", path});
      fetches_.push_back(
          {std::move(name), std::move(path), *tensor, plan_.graph.type(*tensor).dtype});
    }
    if (Writes()) ISOMER_RETURN_IF_ERROR(CheckCanWriteAll(written));
    return CheckAreApart(written, read);
  }

  absl::Status Run(const Execution& execution, Backend* backend) {
    const InitialLeafValues initial(plan_.model, absl::GetFlag(FLAGS_seed));
    ISOMER_RETURN_IF_ERROR(TakeLeaves(initial));
    if (std::any_of(fetches_.begin(), fetches_.end(),
                    [&](const Fetch& fetch) { return !values_.contains(fetch.name); })) {
      ISOMER_RETURN_IF_ERROR(RunGraph(initial, execution, backend));
    }
    for (const Fetch& fetch : fetches_) ISOMER_RETURN_IF_ERROR(Give(fetch));
    return absl::OkStatus();
  }

 private:
  bool Writes() const { return processes_ == nullptr || processes_->rank() == 0; }

  // An input; else what FindTensor says. The name of a state is that of its next value, too, which
  // is not what is fed.
  absl::StatusOr<TensorRef> FindFed(const std::string& name) const {
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) {
      const Node& node = plan_.graph.node(id);
      if (node.op.kind() == OpKind::kInput && node.name == name) return TensorRef{{id}, 0};
    }
    return FindTensor(names_, name);
  }

  absl::Status Feed(const std::string& name, const std::string& path) {
    const absl::StatusOr<TensorRef> tensor = FindFed(name);
    if (!tensor.ok()) return WithFlag("feed", tensor.status());
    const Node& node = plan_.graph.node(tensor->node);
    if (is_plan_ && node.op.kind() != OpKind::kInput) {
      return absl::UnimplementedError(
          absl::StrCat("--feed: '", name,
                       "' is no input: a plan is fed with inputs alone, its "
                       "model with any tensor"));
    }
    if (feeds_.contains(name)) {
      return absl::InvalidArgumentError(absl::StrCat("--feed: '", name, "' is fed twice"));
    }
    const TensorType type =
        SequentialType(plan_.graph.type(*tensor).Sizes(), plan_.graph.type(*tensor).dtype);
    absl::StatusOr<Array<double>> array = ReadNpyFor(path, name, type);
    if (!array.ok()) return WithFlag("feed", array.status());
    ISOMER_RETURN_IF_ERROR(CheckRange(name, path, *array));
    feeds_.emplace(name, *tensor);
    fed_.emplace(name, *std::move(array));
    return absl::OkStatus();
  }

  // Indices must be of the table.
  absl::Status CheckRange(const std::string& name, const std::string& path,
                          const Array<double>& array) const {
    for (const ModelInput& input : InputsForData(plan_.model.graph)) {
      if (input.name != name || !input.range.is_integer) continue;
      for (double value : array.data) {
        if (value >= input.range.least && value <= input.range.most) continue;
        return absl::InvalidArgumentError(
            absl::StrFormat("--feed: %s: it has %.17g, and '%s' takes integers from %.17g to %.17g",
                            path, value, name, input.range.least, input.range.most));
      }
    }
    return absl::OkStatus();
  }

  // What is fetched and need not be computed.
  absl::Status TakeLeaves(const LeafValues& initial) {
    for (const Fetch& fetch : fetches_) {
      const Node& node = plan_.graph.node(fetch.tensor.node);
      for (const auto& [name, tensor] : feeds_) {
        if (tensor == fetch.tensor) values_[fetch.name] = fed_.at(name);
      }
      if (values_.contains(fetch.name)) continue;
      if (node.op.kind() == OpKind::kInput) {
        values_[fetch.name] =
            RandomInputs(plan_.model.graph, absl::GetFlag(FLAGS_seed)).at(node.name);
      } else if (IsStored(node.op.kind())) {
        ISOMER_ASSIGN_OR_RETURN(const LeafValues::Leaf* leaf,
                                initial.Find(plan_.graph, fetch.tensor.node));
        Array<double> values(node.outputs[0].Sizes());
        leaf->Read(0, 1, values.size(), values.data.data());
        values_[fetch.name] = std::move(values);
      }
    }
    return absl::OkStatus();
  }

  // Sets plan_'s graph to what is needed, with as many views.
  absl::Status Cut() {
    std::vector<Graph::NamedOutput> outputs;
    for (const Fetch& fetch : fetches_) {
      const bool is_new = std::none_of(outputs.begin(), outputs.end(),
                                       [&](const auto& known) { return known.name == fetch.name; });
      if (is_new && !values_.contains(fetch.name)) outputs.push_back({fetch.name, fetch.tensor});
    }
    if (!is_plan_) {
      ISOMER_ASSIGN_OR_RETURN(plan_.graph, CutGraph(plan_.graph, feeds_, outputs));
      KeepStatistics();
      plan_.views = SequentialViews(plan_.graph);
      return absl::OkStatus();
    }
    std::vector<Node> nodes;
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) nodes.push_back(plan_.graph.node(id));
    ISOMER_ASSIGN_OR_RETURN(const Graph all, GraphFromParts(std::move(nodes), std::move(outputs)));
    std::vector<NodeId> new_ids;
    plan_.graph = all.Canonical(&new_ids);
    std::vector<MachineView> views(plan_.graph.num_nodes());
    for (size_t id = 0; id < new_ids.size(); ++id) {
      if (new_ids[id].value >= 0) views[new_ids[id].value] = plan_.views[id];
    }
    plan_.views = std::move(views);
    return absl::OkStatus();
  }

  // No call uses them, until batch norms are evaluated.
  void KeepStatistics() {
    std::set<std::string> names;
    for (const BatchStatistics& of : plan_.model.statistics) names.insert({of.mean, of.variance});
    for (int id = 0; id < plan_.graph.num_nodes(); ++id) names.erase(plan_.graph.node(id).name);
    for (int id = 0; id < plan_.model.graph.num_nodes(); ++id) {
      const Node& node = plan_.model.graph.node(id);
      if (names.contains(node.name)) plan_.graph.AddConstant(node.name, node.outputs[0]);
    }
  }

  absl::Status RunGraph(const LeafValues& initial, const Execution& execution, Backend* backend) {
    ISOMER_RETURN_IF_ERROR(Cut());
    const bool evaluates = plan_.mode == "training";
    plan_.mode = "inference";
    plan_.recomputed.clear();
    plan_.offloaded.clear();
    plan_.update = {};
    plan_.model.loss.clear();
    ISOMER_ASSIGN_OR_RETURN(LoweredPlan lowered, LowerPlan(plan_));
    HostValues inputs = RandomInputs(plan_.graph, absl::GetFlag(FLAGS_seed));
    SayWhatIsRandom(lowered);
    for (auto& [name, array] : fed_) inputs[name] = array;
    const JobOptions options = {.pin = absl::GetFlag(FLAGS_pin) && plan_.num_devices > 1,
                                .execution = execution,
                                .statistics = plan_.model.statistics,
                                .expert_imbalance = AssumedImbalance(plan_.model),
                                .evaluates = evaluates,
                                .control = processes_,
                                .communicator = processes_};
    ISOMER_ASSIGN_OR_RETURN(
        const std::unique_ptr<Job> job,
        Job::Start(lowered.mapped.graph, std::move(lowered.schedule), backend, options));
    ISOMER_RETURN_IF_ERROR(job->SetParameters(initial));
    ISOMER_RETURN_IF_ERROR(job->Evaluate(inputs));
    for (const Graph::NamedOutput& output : plan_.graph.outputs()) {
      ISOMER_ASSIGN_OR_RETURN(values_[output.name], job->Output(output.name));
    }
    return absl::OkStatus();
  }

  void SayWhatIsRandom(const LoweredPlan& lowered) const {
    std::set<std::string> random, of_data;
    for (const ModelInput& input : InputsForData(lowered.mapped.graph)) of_data.insert(input.name);
    for (const Schedule::HostTensor& input : lowered.schedule.inputs) {
      for (NodeId leaf : input.leaves) {
        const Node& node = lowered.mapped.graph.node(leaf);
        if (of_data.contains(node.name) && !fed_.contains(node.name)) random.insert(node.name);
      }
    }
    for (const std::string& name : random) {
      if (Writes()) {
        PrintNote(absl::StrCat("input '", name, "' is not fed: it is random, from --seed=",
                               absl::GetFlag(FLAGS_seed)));
      }
    }
  }

  absl::Status Give(const Fetch& fetch) const {
    if (!Writes()) return absl::OkStatus();
    const Array<double>& value = values_.at(fetch.name);
    if (!fetch.path.empty()) return WriteFileAtomically(fetch.path, NpyFileOf(value, fetch.dtype));
    constexpr int64_t kShown = 8;
    absl::PrintF("%s %s:", fetch.name, SequentialType(value.shape, fetch.dtype).ToString());
    for (int64_t i = 0; i < std::min(value.size(), kShown); ++i) {
      absl::PrintF(" %.6g", value.data[i]);
    }
    absl::PrintF("%s\n", value.size() > kShown ? " .." : "");
    return absl::OkStatus();
  }

  Plan plan_;
  const bool is_plan_;
  ProcessCommunicator* const processes_;
  const std::map<std::string, TensorRef> names_;
  std::map<std::string, TensorRef> feeds_;
  HostValues fed_;
  std::vector<Fetch> fetches_;
  HostValues values_;  // by name of a fetch
};

}  // namespace

bool Fetches() { return WasGiven("feed") || WasGiven("fetch"); }

absl::Status CheckFlagsOfFetch() {
  ISOMER_RETURN_IF_ERROR(RefuseFlags({"json"}, "does not go with --fetch, which writes arrays"));
  return RefuseFlagsBut({"feed", "fetch", "backend", "communicator", "execution", "execution_seed",
                         "pin", "mode", "precision", "batch_size", "dim", "carry", "seed",
                         "weights", "rename_weights", "partial_weights"},
                        "does not go with --fetch");
}

absl::Status RunFetch(Plan plan, bool is_plan, const Execution& execution, Backend* backend,
                      ProcessCommunicator* processes) {
  if (processes == nullptr) {
    ISOMER_RETURN_IF_ERROR(CheckRunsInThreads(plan));
  } else if (processes->num_ranks() != plan.num_devices) {
    return absl::InvalidArgumentError(absl::StrCat("the plan is for ", plan.num_devices,
                                                   " devices, but there are ",
                                                   processes->num_ranks(), " processes"));
  }
  Fetcher fetcher(std::move(plan), is_plan, processes);
  ISOMER_RETURN_IF_ERROR(fetcher.ReadFlags());
  return fetcher.Run(execution, backend);
}

}  // namespace isomer
