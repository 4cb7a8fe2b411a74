#include "optimizer/report/machine_text.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "optimizer/cost/collective_cost.h"
#include "optimizer/machine/machine_units.h"

namespace isomer {
namespace {

using TextRow = std::vector<std::string>;

// Columns as wide as their widest cell; the first is flush left, the others flush right.
std::string Table(const std::vector<TextRow>& rows) {
  std::vector<size_t> width;
  for (const TextRow& row : rows) {
    width.resize(std::max(width.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const TextRow& row : rows) {
    std::string line = "  ";
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string pad(width[c] - row[c].size(), ' ');
      absl::StrAppend(&line, c == 0 ? row[c] : pad, c == 0 ? pad : row[c], "  ");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string FlopsText(double flops_per_us) {
  return flops_per_us >= 1e6 ? absl::StrFormat("%.4g TFLOP/s", flops_per_us / 1e6)
                             : absl::StrFormat("%.4g GFLOP/s", flops_per_us / 1e3);
}

std::string DevicesText(const Machine& machine) {
  std::map<int, int64_t> count;
  for (int64_t d = 0; d < machine.num_devices(); ++d) ++count[machine.kind_index(d)];
  std::set<DataType> dtypes;
  for (const auto& [kind, n] : count) {
    for (const auto& [dtype, rate] : machine.kinds[kind].flops_per_us_of) dtypes.insert(dtype);
  }
  std::vector<TextRow> rows = {{"devices", "count", "float32"}};
  for (DataType dtype : dtypes) rows[0].push_back(std::string(DataTypeName(dtype)));
  for (const char* name : {"memory", "memory rate", "launch"}) rows[0].push_back(name);
  for (const auto& [index, n] : count) {
    const DeviceKind& kind = machine.kinds[index];
    TextRow row = {kind.name, absl::StrCat(n), FlopsText(kind.flops_per_us)};
    for (DataType dtype : dtypes) row.push_back(FlopsText(kind.FlopsPerUs(dtype)));
    row.push_back(absl::StrFormat("%.4g GiB", static_cast<double>(kind.memory_bytes) / (1 << 30)));
    row.push_back(BandwidthText(kind.memory_bytes_per_us));
    row.push_back(TimeText(kind.launch_us));
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

std::string LevelsText(const Machine& machine) {
  std::vector<TextRow> rows = {{"levels", "joins", "rate of a link", "latency", ""}};
  for (size_t l = 0; l < machine.levels.size(); ++l) {
    const Machine::Level& level = machine.levels[l];
    const std::string unit = l == 0 ? " devices" : absl::StrCat(" x ", machine.levels[l - 1].name);
    std::vector<std::string> notes;
    if (level.shared) notes.push_back("one link for all units");
    if (level.through) notes.push_back("on the way out");
    if (level.reduces) notes.push_back("the switch adds up");
    rows.push_back({level.name, absl::StrCat(level.count, unit), BandwidthText(level.bytes_per_us),
                    TimeText(level.latency_us), absl::StrJoin(notes, ", ")});
  }
  return Table(rows);
}

std::string LinksText(const Machine& machine) {
  constexpr int kMost = 40;
  std::vector<TextRow> rows = {{"links", "rate", "latency"}};
  const Topology& topology = machine.topology;
  for (LinkId id = 0; id < std::min(kMost, topology.num_links()); ++id) {
    const Link& link = topology.link(id);
    rows.push_back(
        {topology.link_name(id), BandwidthText(link.bytes_per_us), TimeText(link.latency_us)});
  }
  std::string text = Table(rows);
  if (topology.num_links() > kMost) {
    absl::StrAppend(&text, "  and ", topology.num_links() - kMost, " more\n");
  }
  return text;
}

std::string CollectivesText(const CollectiveCost& cost, int64_t group) {
  constexpr Collective kKinds[] = {Collective::kAllReduce, Collective::kReduceScatter,
                                   Collective::kAllGather, Collective::kAllToAll,
                                   Collective::kBroadcast};
  std::vector<int32_t> devices(group);
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<TextRow> rows = {{"", "4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB", ""}};
  for (Collective kind : kKinds) {
    TextRow row = {TraitsOf(kind).name};
    CollectiveLine line;
    for (int64_t bytes = 4 << 10; bytes <= 256 << 20; bytes *= 16) {
      line = cost.Choice(kind, bytes, devices);
      row.push_back(TimeText(line.Us(bytes)));
    }
    row.push_back(absl::StrCat(line.algorithm, *line.protocol == 0 ? "" : ", ", line.protocol));
    rows.push_back(std::move(row));
  }
  return Table(rows);
}

}  // namespace

std::string DescribeMachine(const Machine& machine) {
  const int64_t devices = machine.num_devices(), node = machine.devices_per_node();
  std::string text =
      absl::StrCat(machine.ToString(), ", ", devices, " devices, ", machine.num_links(),
                   " links\n\n", DevicesText(machine), "\n", LevelsText(machine));
  if (!machine.topology.empty()) absl::StrAppend(&text, "\n", LinksText(machine));
  const CollectiveCost cost(machine);
  std::vector<int64_t> groups;
  if (node > 1) groups.push_back(node);
  if (devices > node) groups.push_back(devices);
  for (int64_t group : groups) {
    absl::StrAppend(&text, "\nCollectives", machine.nccl ? " of NCCL" : "", ", predicted; over ",
                    group == devices ? "all " : "one node: ", group,
                    " devices (on the right: how, at the largest size)\n",
                    CollectivesText(cost, group));
  }
  return text;
}

}  // namespace isomer
