// A machine's links as a graph of any topology: named devices and switches, links between them, and
// the route of messages between each pair of devices.
#ifndef ISOMER_OPTIMIZER_MACHINE_TOPOLOGY_H_
#define ISOMER_OPTIMIZER_MACHINE_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "pcg/support/digest.h"

namespace isomer {

using LinkId = int32_t;
using LinkPath = absl::InlinedVector<LinkId, 8>;

struct Link {
  double bytes_per_us = 0;
  double latency_us = 0;
};
void AddToDigest(Digest* digest, const Link& link);

// Limits the table of paths over pairs.
inline constexpr int64_t kMaxNamedDevices = 512;

class Topology {
 public:
  // One direction of a link; the two directions of a shared link have the same id.
  struct Arc {
    int32_t from, to;  // vertices
    LinkId link;
  };
  struct ExplicitPath {
    int32_t from, to;          // devices
    std::vector<int32_t> via;  // vertices
  };

  Topology() = default;
  bool empty() const { return num_devices_ == 0; }
  int64_t num_devices() const { return num_devices_; }
  int num_links() const { return static_cast<int>(links_.size()); }
  const Link& link(LinkId id) const { return links_[id]; }
  // Paths stay.
  void ScaleBandwidths(double factor);
  const std::string& link_name(LinkId id) const { return link_names_[id]; }
  const std::string& vertex_name(int32_t vertex) const { return vertices_[vertex]; }
  int32_t num_vertices() const { return static_cast<int32_t>(vertices_.size()); }
  const std::vector<Arc>& arcs() const { return arcs_; }
  LinkPath Path(int64_t from, int64_t to) const;

  // All devices must be added before switches.
  void AddDevice(std::string name);
  // REQUIRES: no device is added later.
  int32_t AddSwitch(std::string name);
  LinkId AddLink(std::string name, Link link);
  void AddArc(int32_t from, int32_t to, LinkId link) { arcs_.push_back({from, to, link}); }
  // Computes the paths: those given, and for other pairs the one of least latency, then of widest
  // bottleneck. Errors: an unreachable device, a path over a missing link.
  absl::Status FindPaths(const std::vector<ExplicitPath>& paths);

  friend void AddToDigest(Digest* digest, const Topology& topology);

 private:
  absl::Status FindPathsFrom(int32_t from, const std::vector<std::vector<int>>& arcs_of,
                             std::vector<LinkPath>* row) const;
  absl::Status Follow(const ExplicitPath& path, LinkPath* links) const;
  absl::Status Unreachable(int32_t from, int32_t to) const;

  int64_t num_devices_ = 0;
  std::vector<std::string> vertices_, link_names_;
  std::vector<Link> links_;
  std::vector<Arc> arcs_;
  std::vector<int32_t> path_begin_;  // per pair of devices, and the end
  std::vector<LinkId> path_links_;
};

}  // namespace isomer

#endif  // ISOMER_OPTIMIZER_MACHINE_TOPOLOGY_H_
