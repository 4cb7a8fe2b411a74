#include "optimizer/machine/topology.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pcg/support/status_macros.h"

namespace isomer {

LinkPath Topology::Path(int64_t from, int64_t to) const {
  const auto pair = static_cast<size_t>(from * num_devices_ + to);
  return LinkPath(path_links_.begin() + path_begin_[pair],
                  path_links_.begin() + path_begin_[pair + 1]);
}

void Topology::AddDevice(std::string name) {
  vertices_.push_back(std::move(name));
  ++num_devices_;
}

int32_t Topology::AddSwitch(std::string name) {
  vertices_.push_back(std::move(name));
  return num_vertices() - 1;
}

LinkId Topology::AddLink(std::string name, Link link) {
  link_names_.push_back(std::move(name));
  links_.push_back(link);
  return num_links() - 1;
}

void Topology::ScaleBandwidths(double factor) {
  for (Link& link : links_) link.bytes_per_us *= factor;
}

absl::Status Topology::Unreachable(int32_t from, int32_t to) const {
  const auto leaves = [&](const Arc& arc) { return arc.from == from; };
  const auto arrives = [&](const Arc& arc) { return arc.to == to; };
  std::string why;
  if (std::none_of(arcs_.begin(), arcs_.end(), leaves)) {
    why = absl::StrCat(": no link leaves '", vertices_[from], "'");
  } else if (std::none_of(arcs_.begin(), arcs_.end(), arrives)) {
    why = absl::StrCat(": no link leads to '", vertices_[to], "'");
  }
  return absl::InvalidArgumentError(absl::StrCat("links: there is no way from '", vertices_[from],
                                                 "' to '", vertices_[to], "'", why));
}

// Dijkstra's algorithm by (latency, time per byte at the bottleneck, number of links).
absl::Status Topology::FindPathsFrom(int32_t from, const std::vector<std::vector<int>>& arcs_of,
                                     std::vector<LinkPath>* row) const {
  using Distance = std::tuple<double, double, int>;
  using Open = std::pair<Distance, int32_t>;
  const Distance far{std::numeric_limits<double>::infinity(), 0, 0};
  std::vector<Distance> distance(vertices_.size(), far);
  std::vector<int> last(vertices_.size(), -1);  // last arc of the best path
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  distance[from] = {0, 0, 0};
  open.push({distance[from], from});
  while (!open.empty()) {
    const auto [reached, at] = open.top();
    open.pop();
    if (reached > distance[at]) continue;
    for (int a : arcs_of[at]) {
      const Link& link = links_[arcs_[a].link];
      const Distance next{std::get<0>(reached) + link.latency_us,
                          std::max(std::get<1>(reached), 1 / link.bytes_per_us),
                          std::get<2>(reached) + 1};
      if (next >= distance[arcs_[a].to]) continue;
      distance[arcs_[a].to] = next;
      last[arcs_[a].to] = a;
      open.push({next, arcs_[a].to});
    }
  }
  for (int32_t to = 0; to < num_devices_; ++to) {
    if (to == from || !(*row)[to].empty()) continue;
    if (last[to] < 0) return Unreachable(from, to);
    for (int32_t at = to; at != from; at = arcs_[last[at]].from) {
      (*row)[to].push_back(arcs_[last[at]].link);
    }
    std::reverse((*row)[to].begin(), (*row)[to].end());
  }
  return absl::OkStatus();
}

absl::Status Topology::Follow(const ExplicitPath& path, LinkPath* links) const {
  std::vector<int32_t> stops = {path.from};
  stops.insert(stops.end(), path.via.begin(), path.via.end());
  stops.push_back(path.to);
  for (size_t i = 0; i + 1 < stops.size(); ++i) {
    const auto arc = std::find_if(arcs_.begin(), arcs_.end(), [&](const Arc& a) {
      return a.from == stops[i] && a.to == stops[i + 1];
    });
    if (arc == arcs_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("paths: the one from '", vertices_[path.from], "' to '", vertices_[path.to],
                       "' takes a link from '", vertices_[stops[i]], "' to '",
                       vertices_[stops[i + 1]], "', which there is not"));
    }
    links->push_back(arc->link);
  }
  return absl::OkStatus();
}

absl::Status Topology::FindPaths(const std::vector<ExplicitPath>& paths) {
  std::vector<std::vector<int>> arcs_of(vertices_.size());
  for (size_t a = 0; a < arcs_.size(); ++a) arcs_of[arcs_[a].from].push_back(static_cast<int>(a));
  path_begin_ = {0};
  path_links_.clear();
  for (int32_t from = 0; from < num_devices_; ++from) {
    std::vector<LinkPath> row(num_devices_);
    for (const ExplicitPath& path : paths) {
      if (path.from == from) ISOMER_RETURN_IF_ERROR(Follow(path, &row[path.to]));
    }
    ISOMER_RETURN_IF_ERROR(FindPathsFrom(from, arcs_of, &row));
    for (const LinkPath& path : row) {
      path_links_.insert(path_links_.end(), path.begin(), path.end());
      path_begin_.push_back(static_cast<int32_t>(path_links_.size()));
    }
  }
  return absl::OkStatus();
}

void AddToDigest(Digest* digest, const Link& link) {
  const auto& [bytes_per_us, latency_us] = link;
  digest->Add(bytes_per_us, latency_us);
}

// Arcs only determine the paths, on which alone costs depend.
void AddToDigest(Digest* digest, const Topology& topology) {
  digest->Add(topology.num_devices_, topology.vertices_, topology.link_names_, topology.links_,
              topology.path_begin_, topology.path_links_);
}

}  // namespace isomer
